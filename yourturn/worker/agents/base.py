"""What the worker and an adapter say to each other.

An adapter knows one kind of agent: how to start it, how to wake a session of it, what its lines of output mean, and what its
end means. It runs nothing itself (`process.py` does) and knows no desk. What an agent says becomes a few kinds of `Said`;
what is not understood is kept as `Unknown`, because agents change every week and a new event must never break a run.

`Heard` is what remains of a run while it goes on: the last message, not every message, so that an agent may talk for days.
An `Ending` is the verdict: what happened, in words for a person, and a `cause` for programs.

| what      | means                                                                   | causes                             |
|-----------|-------------------------------------------------------------------------|------------------------------------|
| done      | the agent ended its turn by itself; its message says what came of it     |                                    |
| parked    | the session waits for a person, and its process has gone                |                                    |
| failed    | trying again would not help                                             | login api turns aborted error      |
|           |                                                                         | crash silent not_started exception |
| retryable | the same again may go well; `lost`: with a fresh session only           | overloaded killed tool_unavailable |
|           |                                                                         | session_lost session_taken         |
|           |                                                                         | not_parked (`perform` tries again) |
| stopped   | we ended it                                                             | stop time silence                  |
"""

from __future__ import annotations

import json
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

#: A message or a line longer than this is not kept (the log has it all).
LIMIT = 64 * 2**20
#: An argument of a command may be 128 KiB on Linux. Longer prompts go through standard input.
ARGUMENT = 100_000


@dataclass(frozen=True)
class Agent:
    """`[agents.NAME]` of .yourturn/config.toml, checked."""

    name: str
    adapter: str = "command"
    argv: tuple[str, ...] = ()
    model: str = ""
    allowed_tools: tuple[str, ...] = ()
    timeout: float | None = None
    silence: float | None = None
    gate: tuple[str, ...] = ()
    permission_mode: str = ""
    env: Mapping[str, str] = field(default_factory=dict)


class Launch(NamedTuple):
    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    stdin: bytes | None = None  # None: nothing to read


@dataclass
class Run:
    """One run of an agent on a task. `env` is the whole environment of the process."""

    task: str
    agent: Agent
    prompt: str
    folder: str
    env: dict[str, str]
    answer_prompt: str = ""
    session_id: str | None = None
    resumed: bool = False
    parked: bool = False  # the session ended in a parked tool call: it is woken without a prompt
    log: str | None = None
    hook_command: tuple[str, ...] = ()
    mcp_command: tuple[str, ...] = ()
    stop: Any = None  # for Python functions: set when it is time to go
    say: Callable[[str], None] = print  # for Python functions: a sign of life for whoever watches

    @property
    def ask_wait(self) -> float:
        """How long a question waits for a quick person inside the session."""
        from ..claude.hook_question import ask_wait

        return ask_wait(self.env)


class SessionStarted(NamedTuple):
    id: str
    model: str = ""


class Text(NamedTuple):
    text: str


class ToolUse(NamedTuple):
    id: str
    name: str
    input: Any = None


class ToolResult(NamedTuple):
    id: str
    text: str = ""
    error: bool = False
    data: Any = None  #: the same for programs, where the tool says it


class Denied(NamedTuple):
    """A tool that the agent was not allowed to use."""

    id: str
    name: str
    why: str = ""
    input: Any = None


class Parked(NamedTuple):
    """The tool call that waits for a person. Without an id: it waits no longer."""

    id: str
    name: str
    input: Any = None
    question: str = ""


#: A parked session was woken and has not shown yet that it went on.
STILL = Parked("?", "")


class Progress(NamedTuple):
    """A sign of life."""

    text: str = ""


class Finished(NamedTuple):
    """The agent's own last word about its turn."""

    ok: bool
    text: str = ""
    tokens: int = 0
    cost: float = 0.0
    error: str = ""
    cause: str = ""
    parked: Parked | None = None
    denials: tuple[Denied, ...] = ()


class Unknown(NamedTuple):
    kind: str
    raw: str


Said = SessionStarted | Text | ToolUse | ToolResult | Denied | Parked | Progress | Finished | Unknown


class Ending(NamedTuple):
    what: str
    text: str = ""
    session_id: str | None = None
    tokens: int = 0
    cost: float = 0.0
    error: str = ""
    denials: tuple[Denied, ...] = ()
    parked: Parked | None = None  # what the session still waits with, as far as we know; also when it was stopped early
    superseded: tuple[ToolUse, ...] = ()  # calls that were dropped when another one was parked
    cause: str = ""
    rc: int | None = None

    @property
    def lost(self) -> bool:
        """The session can not be woken: start a fresh one, with the whole history in its brief."""
        return self.cause in ("session_lost", "session_taken")


class Heard:
    """What a run has said so far, in bounded memory."""

    def __init__(self) -> None:
        self.session_id: str | None = None
        self.text = ""
        self.finished: Finished | None = None
        self.parked: Parked | None = None
        self.denials: OrderedDict[str, Denied] = OrderedDict()
        self.open: OrderedDict[str, ToolUse] = OrderedDict()
        self.tokens = 0
        self.cost = 0.0
        self.errors = ""  # the end of standard error
        self.cut = False  # something was too long to be kept
        self.stopped = ""  # stop, time or silence: we ended it

    def add(self, said: Said) -> None:
        match said:
            case SessionStarted():
                self.session_id = said.id
            case Text():
                self.text = said.text
                self._awake()
            case ToolUse():
                _keep(self.open, said)
                self._awake()
            case ToolResult():
                self.open.pop(said.id, None)
                self._awake()
            case Denied():
                _keep(self.denials, said)
            case Parked():
                self.parked = said if said.id else None
            case Finished():
                self.finished = said
                self.tokens += said.tokens
                self.cost += said.cost
                for denied in said.denials:
                    _keep(self.denials, denied)

    def _awake(self) -> None:
        if self.parked is STILL:
            self.parked = None

    def ending(self, what: str, error: str = "", cause: str = "", *, text: str | None = None, rc: int | None = None) -> Ending:
        return Ending(
            what,
            self.text if text is None else text,
            self.session_id,
            self.tokens,
            self.cost,
            error,
            tuple(self.denials.values()),
            self.parked,
            tuple(call for call in self.open.values() if self.parked and call.id != self.parked.id),
            cause,
            rc,
        )

    def stderr(self, limit: int = 2000) -> str:
        """Its last words on standard error, for a person."""
        return self.errors.strip()[-limit:]


def _keep(some: OrderedDict[str, Any], said: Any, limit: int = 1000) -> None:
    known = some.pop(said.id, None)
    if known is not None and isinstance(said, Denied):
        said = Denied(said.id, said.name or known.name, said.why or known.why, known.input if said.input is None else said.input)
    some[said.id] = said
    if len(some) > limit:
        some.popitem(last=False)


class Adapter(Protocol):
    #: Standard output is the message itself, not a stream of events.
    plain: bool

    def session_id(self) -> str | None:
        """An id for a new session, where the agent lets us choose it."""

    def start(self, run: Run) -> Launch: ...

    def resume(self, run: Run) -> Launch: ...

    def parse(self, line: str) -> list[Said]: ...

    def classify(self, rc: int, heard: Heard) -> Ending: ...


Hear = Callable[[Said], None]


def turn_command(*words: str) -> tuple[str, ...]:
    """`turn …` of this installation, whatever PATH says."""
    script = Path(sys.executable).with_name("turn")
    if script.exists():
        return (str(script), *words)
    return (sys.executable, "-c", "from yourturn.cli.main import run; run()", *words)


def environment(run: Run, **more: str) -> dict[str, str]:
    """The worker's environment, the agent's own settings, and never another YOURTURN_ than the worker's."""
    ours = {name: value for name, value in run.env.items() if name.startswith("YOURTURN_")}
    found = {**run.env, **run.agent.env, **ours, **more}
    if run.session_id:
        found["YOURTURN_SESSION"] = run.session_id
    return {name: value.replace("\0", "\ufffd") for name, value in found.items()}


def structured(text: str) -> Any:
    """What a tool's result says to programs, where its text is that."""
    try:
        return json.loads(text) if text[:1] == "{" else None
    except (ValueError, RecursionError):
        return None


def argument(text: str) -> str:
    """A prompt as an argument: it must not look like an option, and C knows no zero bytes."""
    text = text.replace("\0", "\ufffd")
    return "\n" + text if text.startswith("-") else text


def killed(rc: int) -> str:
    """'' or the words for a process that somebody killed (a shell tells it as 128 + n)."""
    import signal

    number = -rc if rc < 0 else rc - 128 if rc in (130, 137, 143) else 0
    if not number:
        return ""
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return f"Its process was killed ({name})"

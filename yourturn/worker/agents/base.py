"""The interface between the worker and an adapter.

An adapter knows one kind of agent: how to start it, how to resume a session, what its lines of output mean, and what its end
means. It runs nothing itself (`process.py` does) and does not use the desk. The agent's output becomes a few kinds of
`AgentEvent`; lines that the adapter does not understand become `Unknown`, because agents change every week and a new event must
not break a run.

A `Transcript` keeps the state of a run in bounded memory: the last message, not every message.
An `Ending` is the result: what happened, in words for a person, and a `cause` for programs.

| what      | means                                                                   | causes                             |
|-----------|-------------------------------------------------------------------------|------------------------------------|
| done      | the agent ended its turn normally; its message has the outcome          |                                    |
| parked    | the session waits for a person, and its process has ended               |                                    |
| failed    | a retry would not help                                                  | login api turns aborted error      |
|           |                                                                         | crash silent not_started exception |
| retryable | a retry may succeed; `lost`: with a fresh session only                  | overloaded killed tool_unavailable |
|           |                                                                         | session_lost session_taken         |
|           |                                                                         | not_parked (`perform` tries again) |
| stopped   | the worker ended it                                                     | stop time silence                  |
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ..claude.hook_question import ask_wait

#: Longest message or line, in bytes, that is kept. The log has everything.
LIMIT = 64 * 2**20
#: Longer prompts go through standard input: Linux allows 128 KiB for an argument.
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
    stdin: bytes | None = None  #: None: an empty standard input


@dataclass
class AgentRun:
    """One turn of an agent, as the worker orders it. `env` is the whole environment of the process."""

    task: str
    agent: Agent
    prompt: str
    folder: str
    env: dict[str, str]
    answer_prompt: str = ""
    session_id: str | None = None
    resumed: bool = False
    parked: bool = False  #: the session ended in a parked tool call: it is resumed without a prompt
    log: str | None = None
    hook_command: tuple[str, ...] = ()
    mcp_command: tuple[str, ...] = ()
    say: Callable[[str], None] = print  #: for Python functions: shows a line of progress

    @property
    def ask_wait(self) -> float:
        """Seconds that a question waits for an answer before the session parks."""
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
    data: Any = None  #: the structured result, if the tool has one


class Denied(NamedTuple):
    """A tool call that was refused."""

    id: str
    name: str
    why: str = ""
    input: Any = None


class Parked(NamedTuple):
    """The tool call that waits for a person. Without an id: it no longer waits."""

    id: str
    name: str
    input: Any = None
    question: str = ""


#: A parked session was resumed and has produced no output yet.
STILL_PARKED = Parked("?", "")


class Activity(NamedTuple):
    """Progress without a message, which ends a silence."""

    text: str = ""


class Finished(NamedTuple):
    """The agent's own report of how its turn ended."""

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


AgentEvent = SessionStarted | Text | ToolUse | ToolResult | Denied | Parked | Activity | Finished | Unknown


class Ending(NamedTuple):
    what: str
    text: str = ""
    session_id: str | None = None
    tokens: int = 0
    cost: float = 0.0
    error: str = ""
    denials: tuple[Denied, ...] = ()
    parked: Parked | None = None  #: the call in which the session waits, as far as known; also if it was stopped early
    superseded: tuple[ToolUse, ...] = ()  #: calls that were dropped when another one was parked
    cause: str = ""
    rc: int | None = None

    @property
    def lost(self) -> bool:
        """The session cannot be resumed: a fresh one begins, with the whole history in its brief."""
        return self.cause in ("session_lost", "session_taken")


class Transcript:
    """The state of a run as its events tell it."""

    def __init__(self) -> None:
        self.session_id: str | None = None
        self.text = ""
        self.finished: Finished | None = None
        self.parked: Parked | None = None
        self.denials: OrderedDict[str, Denied] = OrderedDict()
        self.open: OrderedDict[str, ToolUse] = OrderedDict()
        self.tokens = 0
        self.cost = 0.0
        self.errors = ""  #: the end of standard error
        self.cut = False  #: a message or line was too long to be kept
        self.stopped = ""  #: stop, time or silence, if the worker ended it

    def add(self, event: AgentEvent) -> None:
        match event:
            case SessionStarted():
                self.session_id = event.id
            case Text():
                self.text = event.text
                self._resumed()
            case ToolUse():
                _add(self.open, event)
                self._resumed()
            case ToolResult():
                self.open.pop(event.id, None)
                self._resumed()
            case Denied():
                _add(self.denials, event)
            case Parked():
                self.parked = event if event.id else None
            case Finished():
                self.finished = event
                self.tokens += event.tokens
                self.cost += event.cost
                for denied in event.denials:
                    _add(self.denials, denied)

    def _resumed(self) -> None:
        if self.parked is STILL_PARKED:
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
        """The end of standard error, for a person."""
        return self.errors.strip()[-limit:]


def _add(events: OrderedDict[str, Any], new: Any, limit: int = 1000) -> None:
    old = events.pop(new.id, None)
    if old is not None and isinstance(new, Denied):
        new = Denied(new.id, new.name or old.name, new.why or old.why, old.input if new.input is None else new.input)
    events[new.id] = new
    if len(events) > limit:
        events.popitem(last=False)


class Adapter(Protocol):
    plain: bool  #: standard output is the message itself, not a stream of events

    def session_id(self) -> str | None:
        """An id for a new session, if the agent accepts one."""

    def start(self, run: AgentRun) -> Launch: ...

    def resume(self, run: AgentRun) -> Launch: ...

    def parse(self, line: str) -> list[AgentEvent]: ...

    def classify(self, rc: int, transcript: Transcript) -> Ending: ...


OnEvent = Callable[[AgentEvent], None]


def turn_command(*words: str) -> tuple[str, ...]:
    """`turn …` of this installation, independent of PATH."""
    script = Path(sys.executable).with_name("turn")
    if script.exists():
        return (str(script), *words)
    return (sys.executable, "-c", "from yourturn.cli.main import run; run()", *words)


#: What a worker sets for an agent; an agent that starts a worker must not pass its own on.
_OURS = {
    "YOURTURN_DB", "YOURTURN_TOKEN", "YOURTURN_TASK", "YOURTURN_AGENT", "YOURTURN_CLAIM", "YOURTURN_PROJECT", "YOURTURN_SESSION",
    "YOURTURN_SIGNALS", "YOURTURN_STEP", "YOURTURN_GATE", "YOURTURN_GATED", "YOURTURN_FAULT", "YOURTURN_URL", "YOURTURN_WORKER",
}  # fmt: skip


def agent_environment(env: Mapping[str, str]) -> dict[str, str]:
    """An environment without what a worker sets for its own agent, and with `turn` on the PATH."""
    env = {name: value for name, value in env.items() if name not in _OURS}
    if shutil.which("turn", path=env.get("PATH")) is None:
        env["PATH"] = os.pathsep.join(filter(None, (env.get("PATH"), str(Path(turn_command()[0]).parent))))
    return env


def environment(run: AgentRun, **more: str) -> dict[str, str]:
    """The worker's environment and the agent's settings. An agent cannot change the worker's YOURTURN_ variables."""
    ours = {name: value for name, value in run.env.items() if name.startswith("YOURTURN_")}
    env = {**run.env, **run.agent.env, **ours, **more}
    if run.session_id:
        env["YOURTURN_SESSION"] = run.session_id
    return {name: value.replace("\0", "\ufffd") for name, value in env.items()}


def parse_event(line: str, read: Callable[[dict[str, Any]], list[AgentEvent]]) -> list[AgentEvent]:
    """The events of a line with a JSON object, read by `read`. A known name in an unknown shape is `Unknown`, too."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return [Unknown("", line)]
    if not isinstance(event, dict):
        return [Unknown("", line)]
    try:
        events = read(event)
    except (AttributeError, TypeError, ValueError, KeyError):
        events = []
    return events or [Unknown(str(event.get("type", "")), line)]


def ended_without_result(rc: int, transcript: Transcript) -> Ending:
    """The ending of a process that printed no final event."""
    words = transcript.stderr()
    if death := killed(rc):
        return transcript.ending("retryable", death, "killed")
    if rc == 0:
        return transcript.ending("failed", f"It ended without a result. {words}".strip(), "silent")
    return transcript.ending("failed", words or f"It ended with exit code {rc} and printed nothing.", "crash")


def structured(text: str) -> Any:
    """The JSON object of a tool's result, if its text is one."""
    try:
        return json.loads(text) if text[:1] == "{" else None
    except (ValueError, RecursionError):
        return None


def argument(text: str) -> str:
    """A prompt as an argument: it must not look like an option, and must have no zero bytes."""
    text = text.replace("\0", "\ufffd")
    return "\n" + text if text.startswith("-") else text


def killed(rc: int) -> str:
    """'' or the words for a process that was killed by a signal (a shell reports 128 + n)."""
    number = -rc if rc < 0 else rc - 128 if rc in (130, 137, 143) else 0
    if not number:
        return ""
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return f"Its process was killed ({name})"

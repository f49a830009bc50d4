"""The worker of the workflow harness: agents give scripted replies, and it can crash at a step."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

from ..client import Client
from ..core.model import Who
from ..flow import script as scripts
from ..flow.agent_step import AgentCall, Turn
from ..flow.results import Released
from .scripted_replies import AgentTurn, asks, crashes, turn_of

if TYPE_CHECKING:
    from .harness import Stage

WORKER = Who("agent:stage", "agent", True)
Script = Callable[..., Any] | str | Path


class StageScript:
    """The current version of the workflow: a file, a function of the test, or source text."""

    def __init__(self, script: Script, file: str) -> None:
        self.function: Callable[..., Any] | None = None
        self.in_memory = True  #: the file system does not have it, or not in this version
        self.root = Path.cwd()
        if callable(script):
            self.function = inspect.unwrap(script)
            name = getattr(script, "__name__", "workflow")
            self.ref = f"{name if name.isidentifier() else 'workflow'}.py"
            self.source: scripts.Source | None = scripts.Source(self.ref, _source_of(self.function), None)
        elif isinstance(script, str) and "\n" in script:
            self.ref = file
            self.source = scripts.Source(scripts.split(file)[0], dedent(script), None)
        else:
            self.in_memory = False
            head, name = scripts.split(str(script))
            if Path(head).is_file():
                self.root, head = Path(head).resolve().parent, Path(head).name
            self.ref = f"{head}:{name}" if name else head
            self.source = scripts.must_read(self.ref, self.root)

    @property
    def file(self) -> str:
        return scripts.split(self.ref)[0]

    def edit(self, script: Script | None) -> None:
        """Replace the source, or remove it."""
        self.in_memory = True
        self.function = inspect.unwrap(script) if callable(script) else None
        if script is None:
            self.source = None
        else:
            body = dedent(str(script)) if self.function is None else _source_of(self.function)
            self.source = scripts.Source(self.file, body, self.source.path if self.source else None)

    def read(self) -> scripts.Source | None:
        return self.source if self.in_memory else scripts.read(self.ref, self.root)

    def load(self, source: scripts.Source) -> tuple[Callable[[str], Any], str]:
        if self.function is not None and source is self.source:
            return self.function, self.function.__code__.co_filename
        return scripts.ScriptFile(self.ref, self.root).load(source)


def _source_of(function: Callable[..., Any]) -> str:
    try:
        return dedent(inspect.getsource(function))
    except (OSError, TypeError):
        code = function.__code__  # defined interactively: its bytecode identifies it
        return f"# {function.__qualname__}\n# {code.co_code.hex()} {code.co_names} {code.co_consts}\n"


class WorkerCrashed(BaseException):
    """The simulated worker has crashed."""


class CrashingClient(Client):
    """The client of the simulated worker. `crash`: the step at which it crashes, and whether after the step's commit."""

    def __init__(self, desk: Client, crash: tuple[str, bool] | None) -> None:
        super().__init__(desk.desk.as_(WORKER), desk.project)
        self.crash, self.crashed, self.stopped = crash, False, threading.Event()

    def do(self, verb: str, /, **args: Any) -> Any:
        if self.crashed:
            raise WorkerCrashed
        path, after = self.crash or ("", False)
        crashes_here = any(step["path"] == path and step["status"] != "running" for step in args.get("steps") or ())
        if crashes_here and not after:
            raise self.crashes()
        reply = super().do(verb, **args)
        if crashes_here:
            raise self.crashes()
        return reply

    def crashes(self) -> WorkerCrashed:
        self.crashed = True
        self.stopped.set()
        return WorkerCrashed()


class StageHost:
    """The host of the run: agents give their scripted replies."""

    def __init__(self, stage: Stage, client: CrashingClient) -> None:
        self.stage, self.client, self.stop = stage, client, client.stopped
        self.error: Exception | None = None  #: the error of the test that stopped the run
        self.lock = threading.Lock()

    def turns(self, call: AgentCall) -> Turn:
        if self.client.crashed:
            raise WorkerCrashed
        closed = [q for q in call.questions() if q["status"] != "pending"]
        turn_id = (call.journal.key, call.journal.number, call.path, len(closed))
        turn = self._turn(call, closed)
        if call.session_id is None:
            call.remember(turn.session)
        try:
            with self.lock:
                self.stage.calls.append(turn)
                reply = self.stage.agents.reply(call, turn_id)
            if callable(reply):
                reply = reply(turn)
            if isinstance(reply, asks):
                self.client.ask(call.journal.key, reply.text, claim=call.journal.claim, step=call.path, **reply.fields)
                return Turn("waiting")
            if isinstance(reply, crashes):
                with self.lock:
                    self.stage.agents.retry(turn_id)
                raise Released(reply.reason)
            return turn_of(reply)
        except Exception as error:
            self.error = self.error or error
            raise self.client.crashes() from None

    def _turn(self, call: AgentCall, closed: list[dict[str, Any]]) -> AgentTurn:
        with self.lock:
            sessions = {turn.session for turn in self.stage.calls if turn.agent == call.agent}
            session = call.session_id or f"{call.agent}-{len(sessions) + 1}"
        response = (closed[-1]["response"] or {}) if closed else {}
        text = (response.get("text") or response.get("value")) if closed else None
        answer = None if not closed else "" if text is None else str(text)
        return AgentTurn(
            call.agent, call.prompt, call.path, session, call.session_id is not None, answer, response.get("verdict")
        )

    def leave(self) -> None:
        pass

    def close(self, what: str, words: str) -> str:
        return words

    def say(self, text: str) -> None:
        self.stage.said.append(text)

    @contextmanager
    def fork(self, path: str, branches: int) -> Iterator[None]:
        yield

    def join(self, path: str, branches: int) -> None:
        pass

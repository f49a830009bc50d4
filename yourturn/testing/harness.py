"""The test harness for workflows: the real engine, journal and desk, with scripted agents, a scripted person and a fake clock.

Whenever the run can go on, the harness claims it again and replays its script from the first line, as a worker does after a
restart. So a test sees the same behaviour as with days, crashes and other machines between two lines of the script.
"""

from __future__ import annotations

import inspect
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

from ..client import Client
from ..core.model import ENDED, Who
from ..flow import script as program
from ..flow.agent_step import AgentCall, Turn
from ..flow.engine import Ended, Engine
from ..flow.results import Released
from .desk import FakeClock, temporary_desk
from .scripted_replies import AgentReplies, Given, OffScript, PersonReply, Replies, Told, asks, crashes, turn_of

Script = Callable[..., Any] | str | Path


class Waiting(NamedTuple):
    """A question that the run waits for."""

    id: str
    kind: str
    text: str
    agent: str | None  #: the agent that asks; None: the script itself
    step: str
    options: list[str]
    timeout_at: str | None
    question: dict[str, Any]


class Stage:
    """Runs one workflow in a test: a function, a file (`flows/feature.py`, `…:name`, `.lua`), a module's function, or source.

    agents   name -> a list of replies, each used once; or one reply, or a function of `Told`, for every time
    person   replies of a person, in order, for `play()`: text, approve(), reject(), silence(), or a function of the stage
    desk     a desk to use instead of a temporary one, with its `clock`
    strict   a run that ends while replies are left is an error
    """

    def __init__(
        self,
        script: Script,
        agents: Mapping[str, Given] | None = None,
        person: Sequence[Any] | Callable[..., Any] | PersonReply | str = (),
        *,
        file: str = "workflow.py",
        desk: Client | None = None,
        clock: FakeClock | None = None,
        strict: bool = True,
    ) -> None:
        self.clock = clock or FakeClock(1_790_000_000_000_000)
        self._stack = ExitStack()
        self.desk = desk or self._stack.enter_context(temporary_desk(clock=self.clock))
        weakref.finalize(self, self._stack.close)
        self.strict = strict
        self.key = ""
        self.calls: list[Told] = []  #: every turn of every agent
        self.said: list[str] = []  #: what the script logged
        self.ended = Ended("waiting")  #: the result of the last claim
        self._agents, self._person = AgentReplies(agents or {}), Replies(person)
        self._crash: tuple[str, bool] | None = None
        self._script = _Script(script, file)

    # --- running ----------------------------------------------------------------------------------------------------

    def run(self, prompt: str = "", **fields: Any) -> Stage:
        """Start the workflow and run it until it waits or ends."""
        title = (prompt.strip() or Path(self._script.file).stem).splitlines()[0][:200]
        source = self._script.source
        recorded = None if source is None else {"file": source.file, "body": source.body}
        fields = {"description": prompt or None, "workflow": self._script.ref, "program": recorded, **fields}
        self.key = self.desk.create(title, **fields)["key"]
        return self.proceed()

    def play(self, prompt: str = "") -> Stage:
        """Run to the end, from the start or from where it waits, with the person's replies; the clock is advanced over sleeps."""
        if not self.key:
            self.run(prompt)
        while self.state not in ENDED:
            waiting, wakes = self.waiting, self.task["wake_at"]
            if waiting is not None:
                self._person_says(waiting)
            elif wakes is not None:
                self._until(wakes)
            else:
                raise OffScript(f"{self.key} is {self.state!r}, and nothing on this stage makes it go on")
        if self._person.once and self._person.left:
            left = ", ".join(map(repr, self._person.left))
            raise OffScript(f"{self.key} has ended ({self.state}), and the person has not said {left}")
        return self

    def proceed(self) -> Stage:
        """Run until the workflow waits or ends."""
        for _ in range(1000):
            if self.state != "ready":
                return self._checked()
            self.go()
        raise OffScript(f"{self.key} goes round in circles: {self.ended.words}")

    def go(self) -> Ended:
        """One claim: a new worker replays the script and runs it until it waits or ends."""
        got = self.desk.as_(Who("agent:stage", "agent", True)).claim(self.key, "stage")
        worker = _Worker(self.desk, self._crash)
        host = _Host(self, worker)
        try:
            self.ended = _Engine(worker, got, host, self._script).go()
        except _Dead:
            if host.trouble is not None:
                raise host.trouble from None
            self._crash = None
            self.ended = Ended("crashed")
            self._until(got["claim"]["expires_at"], proceed=False)
        return self.ended

    def advance(self, **units: float) -> Stage:
        """Advance the clock: advance(days=2). Questions time out, and sleeping runs wake."""
        self.clock.advance(**units)
        self.desk.reconcile()
        return self.proceed() if self.key else self

    def crash_at(self, step: str | int, *, after: bool = False) -> Stage:
        """Crash the worker just before this step's result is recorded, or right after; when its lease has expired, another
        worker continues."""
        self._crash = (str(step), after)
        return self

    def edit(self, script: Script | None) -> Stage:
        """Change the workflow while the run waits: new source, or another function; None removes the file."""
        self._script = self._script.edited(script)
        return self

    # --- actions of a person ----------------------------------------------------------------------------------------

    def answer(self, value: Any = None, text: str = "", *, to: str | None = None) -> Stage:
        """Answer the open question; `to` (its id, step, text or agent) selects one of several."""
        self.desk.answer(self._asked(to).id, value, text)
        return self.proceed()

    def approve(self, text: str = "", *, to: str | None = None) -> Stage:
        self.desk.approve(self._asked(to).id, text)
        return self.proceed()

    def reject(self, text: str = "", *, to: str | None = None) -> Stage:
        self.desk.reject(self._asked(to).id, text)
        return self.proceed()

    def signal(self, status: str, message: str = "", *, to: str | None = None, **more: Any) -> Stage:
        """End the waiting call with this signal, as `turn signal` does."""
        signal = {**more, "status": status, **({"message": message} if message else {})}
        self.desk.answer(self._asked(to).id, signal=signal)
        return self.proceed()

    def withdraw(self, reason: str = "", *, to: str | None = None) -> Stage:
        self.desk.withdraw(self._asked(to).id, reason)
        return self.proceed()

    def hand_back(self) -> Stage:
        self.desk.hand_back(self.key)
        return self.proceed()

    def stop(self, reason: str = "") -> Stage:
        self.desk.stop(self.key, reason)
        return self._checked()

    def rewind(self, to: str | int | None = None) -> Stage:
        """Go back to a step, as `turn resume --from` does; without one, on from where it failed."""
        self.desk.rewind(self.key, to)
        return self.proceed()

    def reopen(self, reason: str = "") -> Stage:
        """Restart the run from its first line."""
        self.desk.reopen(self.key, reason)
        return self.proceed()

    # --- state of the run -------------------------------------------------------------------------------------------

    @property
    def task(self) -> dict[str, Any]:
        return self.desk.show(self.key)

    @property
    def state(self) -> str:
        return str(self.task["state"])

    @property
    def summary(self) -> str:
        return str(self.task["summary"] or "")

    @property
    def failure(self) -> str | None:
        """`stuck`, `error` or `timeout`, if the run has failed."""
        failure: str | None = self.task["failure"]
        return failure

    @property
    def reason(self) -> str:
        return str(self.task["reason"] or "")

    @property
    def error(self) -> str:
        """The traceback of a failed script."""
        asked = [q for q in self.task["questions"] if q["reason"] == "run_failed"]
        return str((asked[-1]["context"] or {}).get("traceback") or "") if asked else ""

    @property
    def notes(self) -> list[str]:
        return [note["text"] for note in self.task["notes"]]

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The journal: `index`, `name`, `agent`, `call`, `status`, `result` …, in the order of the script's calls."""
        return self.desk.steps(self.key)

    @property
    def waiting(self) -> Waiting | None:
        """The first open question, in the order of the script's calls."""
        return next(iter(self.questions), None)

    @property
    def questions(self) -> list[Waiting]:
        agents = {step["index"]: step["agent"] for step in self.steps if step["name"] == "run" and not step["spare"]}
        waiting = [
            Waiting(
                q["id"], q["kind"], q["text"], agents.get(q["step"]), q["step"] or "", [str(o["id"]) for o in q["options"]],
                q["timeout_at"], q,
            )
            for q in self.task["questions"] if q["status"] == "pending" and q["blocking"]
        ]  # fmt: skip
        return sorted(waiting, key=lambda w: [int(part) for part in w.step.split(".") if part])

    # --- inside -----------------------------------------------------------------------------------------------------

    def _checked(self) -> Stage:
        if self.state not in ENDED or not self.strict:
            return self
        unsaid = self._agents.unsaid()
        if self._crash is not None:
            unsaid.append(f"the crash at step {self._crash[0]} never came")
        if unsaid:
            how = f"{self.state}: {self.reason}" if self.reason else self.state
            raise OffScript(f"{self.key} has ended ({how}), but {'; '.join(unsaid)}")
        return self

    def _asked(self, to: str | None) -> Waiting:
        waiting = self.questions
        if to is not None:
            waiting = [w for w in waiting if to in (w.id, w.step, w.text, w.agent)]
        if not waiting:
            what = f"nothing that is called {to!r}" if to is not None else "nothing"
            how = f" ({self.reason})" if self.reason else ""
            raise OffScript(f"{self.key} is {self.state!r}{how} and waits for {what}")
        return waiting[0]

    def _person_says(self, waiting: Waiting) -> None:
        what = f"{waiting.id} ({waiting.kind}, step {waiting.step or '-'}): {waiting.text}"
        if not self._person.left:
            raise OffScript(f"{self.key} waits, and the person has nothing more to say to {what}")
        line = self._person.next()
        if callable(line):
            line(self)
        elif not isinstance(line, PersonReply):
            self.answer(line)
        elif line.how == "silence":
            if waiting.timeout_at is None:
                raise OffScript(f"Nobody answers, and there is no time limit for {what}")
            self._until(waiting.timeout_at)
        else:
            (self.approve if line.how == "approve" else self.reject)(line.text)

    def _until(self, moment: str, proceed: bool = True) -> None:
        until = round(datetime.fromisoformat(moment).timestamp() * 1_000_000) + 1
        self.clock.micros = max(self.clock.micros, until)
        self.desk.reconcile()
        if proceed:
            self.proceed()

    def close(self) -> None:
        """Remove the temporary desk. Optional: garbage collection does the same."""
        self._stack.close()

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Script:
    """The current version of the workflow: a file, or source that only the harness has."""

    def __init__(self, given: Script, file: str) -> None:
        self.function: Callable[..., Any] | None = None
        self.own = True
        self.root = Path.cwd()
        if callable(given):
            self.function = inspect.unwrap(given)
            name = getattr(given, "__name__", "workflow")
            self.ref = f"{name if name.isidentifier() else 'workflow'}.py"
            self.source: program.Source | None = program.Source(self.ref, _source_of(self.function), None)
        elif isinstance(given, str) and "\n" in given:
            self.ref = file
            self.source = program.Source(program.split(file)[0], dedent(given), None)
        else:
            self.own = False
            head, name = program.split(str(given))
            if Path(head).is_file():
                self.root, head = Path(head).resolve().parent, Path(head).name
            self.ref = f"{head}:{name}" if name else head
            self.source = program.must_read(self.ref, self.root)

    @property
    def file(self) -> str:
        return program.split(self.ref)[0]

    def edited(self, given: Script | None) -> _Script:
        new = _Script.__new__(_Script)
        new.ref, new.root, new.own, new.function, new.source = self.ref, self.root, True, None, None
        if callable(given):
            new.function = inspect.unwrap(given)
        if given is not None:
            body = dedent(str(given)) if new.function is None else _source_of(new.function)
            new.source = program.Source(self.file, body, self.source.path if self.source else None)
        return new


def _source_of(function: Callable[..., Any]) -> str:
    try:
        return dedent(inspect.getsource(function))
    except (OSError, TypeError):
        code = function.__code__  # defined interactively: its bytecode identifies it
        return f"# {function.__qualname__}\n# {code.co_code.hex()} {code.co_names} {code.co_consts}\n"


class _Engine(Engine):
    def __init__(self, desk: Client, got: dict[str, Any], host: _Host, script: _Script) -> None:
        super().__init__(desk, got, host, script.root)
        self.script = script

    def _read(self) -> program.Source | None:
        return self.script.source if self.script.own else super()._read()

    def _load(self, source: program.Source) -> tuple[Callable[[str], Any], str]:
        if self.script.function is None or source is not self.script.source:
            return super()._load(source)
        return self.script.function, self.script.function.__code__.co_filename


class _Dead(BaseException):
    """The simulated worker has crashed."""


class _Worker(Client):
    """The client of the simulated worker, which can crash at a step."""

    def __init__(self, desk: Client, crash: tuple[str, bool] | None) -> None:
        super().__init__(desk.desk.as_(Who("agent:stage", "agent", True)), desk.project)
        self.crash, self.dead, self.over = crash, False, threading.Event()

    def do(self, verb: str, /, **args: Any) -> Any:
        if self.dead:
            raise _Dead
        where, after = self.crash or ("", False)
        here = any(step["path"] == where and step["status"] != "running" for step in args.get("steps") or ())
        if here and not after:
            raise self.dies()
        reply = super().do(verb, **args)
        if here:
            raise self.dies()
        return reply

    def dies(self) -> _Dead:
        self.dead = True
        self.over.set()
        return _Dead()


class _Host:
    """The host of the run: agents give their scripted replies."""

    def __init__(self, stage: Stage, worker: _Worker) -> None:
        self.stage, self.worker, self.stop = stage, worker, worker.over
        self.trouble: BaseException | None = None
        self.lock = threading.Lock()

    def turns(self, call: AgentCall) -> Turn:
        if self.worker.dead:
            raise _Dead
        closed = [q for q in call.questions() if q["status"] != "pending"]
        turn = (call.journal.key, call.journal.number, call.path, len(closed))
        told = self._told(call, closed)
        if call.session_id is None:
            call.remember(told.session)
        try:
            with self.lock:
                self.stage.calls.append(told)
                line = self.stage._agents.line(call, turn)
            if callable(line):
                line = line(told)
            if isinstance(line, asks):
                self.worker.ask(call.journal.key, line.text, claim=call.journal.claim, step=call.path, **line.fields)
                return Turn("waiting")
            if isinstance(line, crashes):
                with self.lock:
                    self.stage._agents.again(turn)
                raise Released(line.reason)
            return turn_of(line)
        except Exception as error:
            self.trouble = self.trouble or error
            raise self.worker.dies() from None

    def _told(self, call: AgentCall, closed: list[dict[str, Any]]) -> Told:
        with self.lock:
            sessions = {told.session for told in self.stage.calls if told.agent == call.agent}
            session = call.session_id or f"{call.agent}-{len(sessions) + 1}"
        response = (closed[-1]["response"] or {}) if closed else {}
        words = (response.get("text") or response.get("value")) if closed else None
        answer = None if not closed else "" if words is None else str(words)
        return Told(call.agent, call.prompt, call.path, session, call.session_id is not None, answer, response.get("verdict"))

    def leave(self) -> None:
        pass

    def say(self, text: str) -> None:
        self.stage.said.append(text)

    @contextmanager
    def fork(self, path: str, branches: int) -> Iterator[None]:
        yield

    def join(self, path: str, branches: int) -> None:
        pass

"""The test harness for workflows: the real engine, journal and desk, with scripted agents, a scripted person and a fake clock.

Whenever the run can go on, the harness claims it again and replays its script from the first line, as a worker does after a
restart. So a test sees the same behaviour as with days, crashes and other machines between two lines of the script.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from ..client import Client
from ..core.model import ENDED
from ..flow.engine import Ended, Engine
from .desk import FakeClock, temporary_desk
from .scripted_replies import AgentReplies, AgentTurn, OffScript, PersonReply, Replies, Scripted
from .simulated_worker import WORKER, CrashingClient, Script, StageHost, StageScript, WorkerCrashed


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

    agents   name -> a list of replies, each used once; or one reply, or a function of an `AgentTurn`, for every time
    person   replies of a person, in order, for `play()`: text, approve(), reject(), silence(), or a function of the stage
    desk     a desk to use instead of a temporary one, with its `clock`
    strict   a run that ends while replies are left is an error
    """

    def __init__(
        self,
        script: Script,
        agents: Mapping[str, Scripted] | None = None,
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
        self.calls: list[AgentTurn] = []  #: every turn of every agent
        self.said: list[str] = []  #: what the script logged
        self.ended = Ended("waiting")  #: the result of the last claim
        self.agents = AgentReplies(agents or {})
        self._person = Replies(person)
        self._crash: tuple[str, bool] | None = None
        self._script = StageScript(script, file)

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
                self._person_acts(waiting)
            elif wakes is not None:
                self._advance_to(wakes)
            else:
                raise OffScript(f"{self.key} is {self.state!r}, and no reply or date continues it")
        if self._person.once and self._person.left:
            left = ", ".join(map(repr, self._person.left))
            raise OffScript(f"{self.key} has ended ({self.state}), and these replies of the person are left: {left}")
        return self

    def proceed(self) -> Stage:
        """Run until the workflow waits or ends."""
        for _ in range(1000):
            if self.state != "ready":
                return self._checked()
            self.go()
        raise OffScript(f"{self.key} is claimed again and again: {self.ended.words}")

    def go(self) -> Ended:
        """One claim: a new worker replays the script and runs it until it waits or ends."""
        claimed = self.desk.as_(WORKER).claim(self.key, "stage")
        client = CrashingClient(self.desk, self._crash)
        host = StageHost(self, client)
        try:
            self.ended = Engine(client, claimed, host, self._script.root, self._script).go()
        except WorkerCrashed:
            if host.error is not None:
                raise host.error from None
            self._crash = None
            self.ended = Ended("crashed")
            self._advance_to(claimed["claim"]["expires_at"], proceed=False)
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
        self._script.edit(script)
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
        """Go back to a step, as `turn resume --from` does; without one, continue from where it failed."""
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

    # --- internal -----------------------------------------------------------------------------------------------------

    def _checked(self) -> Stage:
        if self.state not in ENDED or not self.strict:
            return self
        unused = self.agents.unused()
        if self._crash is not None:
            unused.append(f"step {self._crash[0]}, where it should crash, was not reached")
        if unused:
            how = f"{self.state}: {self.reason}" if self.reason else self.state
            raise OffScript(f"{self.key} has ended ({how}), but {'; '.join(unused)}")
        return self

    def _asked(self, to: str | None) -> Waiting:
        waiting = self.questions
        if to is not None:
            waiting = [w for w in waiting if to in (w.id, w.step, w.text, w.agent)]
        if not waiting:
            what = f"no question {to!r}" if to is not None else "no question"
            how = f" ({self.reason})" if self.reason else ""
            raise OffScript(f"{self.key} is {self.state!r}{how} and has {what}")
        return waiting[0]

    def _person_acts(self, waiting: Waiting) -> None:
        question = f"{waiting.id} ({waiting.kind}, step {waiting.step or '-'}): {waiting.text}"
        if not self._person.left:
            raise OffScript(f"{self.key} waits, and the person has no reply left for {question}")
        reply = self._person.next()
        if callable(reply):
            reply(self)
        elif not isinstance(reply, PersonReply):
            self.answer(reply)
        elif reply.how == "silence":
            if waiting.timeout_at is None:
                raise OffScript(f"silence() for a question without a timeout: {question}")
            self._advance_to(waiting.timeout_at)
        else:
            (self.approve if reply.how == "approve" else self.reject)(reply.text)

    def _advance_to(self, moment: str, proceed: bool = True) -> None:
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

"""One task from its claim to its outcome.

    folder ─ session (new, or the one that asked) ─ brief ─ run ─ what came of it ─ say that ─ next

After each turn of the agent the desk is looked at first: what the agent has said there itself, by tool or command, counts
more than any message. A question that is still open parks the task; one that was answered while the session ended wakes it
at once, under the same claim. Only then the signal file and the message are read (signals.py). An agent that says nothing of
how its turn ended gets another one, so many times, and then a person is asked.

Whatever goes wrong here goes wrong for this task only, and reaches a person: a lost claim ends the work, everything else
becomes a question. Work in the folder is kept unless the agent itself says that it failed; then it is put aside, not lost.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.errors import ClaimLost, YourturnError
from ..core.rules import KINDS
from . import brief as briefs
from . import gitwork, signals
from .agents import make
from .agents.base import Ending, Run, Said, SessionStarted, Text, turn_command
from .agents.process import perform
from .minutes import Minutes
from .signalfile import SignalFile

if TYPE_CHECKING:
    from ..client import Client
    from .agents.base import Agent
    from .loop import Worker

LOOK = 1.0  #: seconds between two looks at whether a session waits
_NUDGE = (
    "Your turn ended without a signal, so nobody knows whether the task is done. Go on if work remains; then end with one of "
    "the signals that you were told about. If a person has to decide something, ask."
)
_AGAIN = {
    "lost": "The session that worked on this before is gone. What it knew is written here, and its work lies in the folder.",
    "moved": "This was begun on another machine. What was said is written here, and its work was brought into the folder.",
}


class Result(NamedTuple):
    what: str  #: done, waiting, released, failed, moved, lost, stopped
    words: str
    person: bool = False  #: somebody is asked, though the agent did not


class Sitting:
    def __init__(self, worker: Worker, desk: Client, got: dict[str, Any], agent: Agent) -> None:
        self.worker, self.desk, self.agent = worker, desk, agent
        self.task: dict[str, Any] = got["task"]
        self.claim: dict[str, Any] = got["claim"]
        self.key: str = self.task["key"]
        self.adapter = make(agent)
        self.stop = threading.Event()
        self.lost = False
        self._waiting = (0.0, False)
        self.place: gitwork.Workplace | None = None
        self.session: str | None = None
        self.parked = False
        self.fresh = 0
        self.again = ""
        self.told: str | None = None  #: when it was last told of answers
        self.heard_of: set[str] = set()  #: questions whose answers this session was told
        self.minutes = Minutes(desk, self.claim)

    # --- the whole ----------------------------------------------------------------------------------------------------

    def run(self) -> Result:
        try:
            with ExitStack() as stack:
                self._sit_down()
                stack.callback(self._leave)
                self._open_gate(stack)
                return self._turns()
        except ClaimLost as error:
            return Result("lost", str(error))
        except YourturnError as error:
            return self._hand_over(error, getattr(error, "flag", "") or "blocked_external")
        except Exception as bug:
            return self._hand_over(bug, "blocked_external")
        finally:
            self.minutes.flush()

    def _hand_over(self, error: Exception, reason: str) -> Result:
        words = f"{type(error).__name__}: {error}"
        if isinstance(error, OSError) and error.strerror:
            words = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
        if isinstance(error, YourturnError):
            words = "\n".join(error.lines()).removeprefix("Error: ")
        try:
            self.desk.flag(self.key, f"The worker could not go on with {self.key}.\n{words}", reason, claim=self.claim)
        except YourturnError as trouble:
            return Result("lost", f"{words.splitlines()[0]}; and that could not be said: {trouble}")
        return Result("waiting", words.splitlines()[0])

    def _leave(self) -> None:
        assert self.place is not None
        gitwork.leave(self.place)

    # --- where and who ------------------------------------------------------------------------------------------------

    def _sit_down(self) -> None:
        """The folder, and the session that is to be woken, if there is one and it can be."""
        seat, left = self.task.get("seat") or {}, self.desk.patch(self.key)
        needs = [other["branch"] for other in map(self.desk.show, self.task["depends_on"]) if other["branch"]]
        self.place = gitwork.prepare(
            self.worker.root, self.key, str(self.task["branch"]), needs=needs, patch=left["body"] if left else None,
            base=left["base"] if left else None, in_place=self.worker.in_place,
        )  # fmt: skip
        here = self.task["host"] in (None, self.worker.host)
        same = seat.get("agent") == self.agent.name and seat.get("folder") == self.place.folder
        self.heard_of = {q["id"] for q in self.task["questions"] if q["status"] == "pending"}
        if self.task["session_id"] and seat and here and same:
            self.session, self.parked, self.told = self.task["session_id"], bool(seat.get("parked")), seat.get("told")
        elif seat and (self.task["session_id"] or not here):
            self.again = _AGAIN["lost" if here else "moved"]

    def _remember(self, **more: Any) -> None:
        """Where the session sits, before anything can go wrong with it."""
        assert self.place is not None
        seat = {"agent": self.agent.name, "folder": self.place.folder, "base": self.place.base, "told": self.told, **more}
        seat = {name: value for name, value in seat.items() if value}
        known: dict[str, Any] = {"session_id": self.session, "host": self.worker.host, "seat": seat}
        if any(self.task[name] != value for name, value in known.items()):
            self.task = self.desk.update(self.key, claim=self.claim, **known)

    # --- turns --------------------------------------------------------------------------------------------------------

    def _turns(self) -> Result:
        nudge, silent, trouble = "", 0, ""
        while True:
            ending = self._turn(nudge)
            self.worker.budget.spend(iterations=1, tokens=ending.tokens, cost=ending.cost)
            found = self._after(ending)
            if isinstance(found, Result):
                return found
            nudge = found
            silent = silent + 1 if nudge == _NUDGE else 0
            trouble = ending.error.strip()[-2000:] or trouble
            if silent >= self.worker.turns:
                return self._ask("escalation", self._without_a_signal(silent, ending.text, trouble), "decision_needed")
            if self.stop.is_set() or self.worker.budget.over(taking=False):
                return self._pause(ending)

    def _without_a_signal(self, silent: int, said: str, trouble: str) -> str:
        times = "a turn" if silent == 1 else f"{silent} turns"
        parts = [f"{self.agent.name} had {times} without saying how it ended."]
        parts += [trouble] if trouble else []
        parts += [f"It last said:\n{said.strip()[-2000:]}"] if said.strip() else []
        return "\n\n".join(parts)

    def _pause(self, ending: Ending) -> Result:
        self._park(ending)
        return Result("stopped", "it goes on where it was, next time")

    def _turn(self, nudge: str) -> Ending:
        resume = self.session is not None and (self.fresh > 0 or self.task["session_id"] == self.session)
        if not resume:
            self.session = self.adapter.session_id()
            self.fresh += 1
        told, self.told = self.told, self.task["updated_at"]
        if self.session:
            self._remember(parked=self.parked and resume)
        self.signal = SignalFile(self._signals() / f"{self.agent.name}.json")
        assert self.place is not None
        ready = briefs.informed(self.task, self.desk.show, self.desk.history)
        name, folder = self.agent.name, Path(self.place.folder)
        role = briefs.role_text(name, folder) or briefs.role_text(name, self.worker.root)
        run = Run(
            task=self.key, agent=self.agent, folder=self.place.folder, env=self._environment(), session_id=self.session,
            prompt=briefs.brief(ready, agent=name, role=role, again=self.again or (nudge if not resume else ""),
                                signals=self._signals().relative_to(folder).as_posix()),
            answer_prompt=nudge or briefs.answers(ready, told), resumed=resume, parked=self.parked and resume,
            log=str(self.worker.logs / self.key / f"{self.claim['epoch']}.log"),
            hook_command=turn_command("hook", "claude"), mcp_command=turn_command("mcp"), say=lambda text: self.hear(Text(text)),
        )  # fmt: skip
        self.again, self.parked = "", False
        self.heard_of |= {q["id"] for q in self.task["questions"] if q["status"] != "pending"}
        self._waiting = (time.monotonic(), False)
        return perform(
            self.adapter, run, resume=resume, heard=self.hear, stop=self.stop, waiting=self.is_waiting,
            time_limit=self.agent.timeout or self.worker.time_limit,
            silence_limit=self.agent.silence or self.worker.silence_limit,
        )  # fmt: skip

    def _after(self, ending: Ending) -> Result | str:
        """What came of a turn: the end of this sitting, or what the agent is told at the beginning of the next."""
        self.minutes.flush()
        task = self.task = self.desk.show(self.key)
        if ending.session_id and not ending.lost:
            self.session = ending.session_id
        if self.lost or not task["claim"] or task["claim"]["epoch"] != self.claim["epoch"]:
            return self._moved()
        if ending.superseded:
            task = self._superseded(ending)
        if ending.cause == "stop":
            if ending.rc != 0:
                return self._pause(ending)
            ending = ending._replace(what="done")  # it was asked to go, and ended in order: what it said counts
        if task["awaiting"]:
            self._park(ending)
            assert self.place is not None
            self.worker.waits(self.key, self.place)
            return self._waits()
        if ending.lost and self.fresh < 2:
            self.session, self.again = None, _AGAIN["lost"]
            return ""
        if ending.parked is not None and ending.what in ("parked", "retryable"):
            self.parked = True
            if ending.what == "parked":
                return briefs.answers(task, self.told)
            self._remember(parked=True)  # it is still parked; each attempt to wake it costs a try
            return self._release(ending.error)
        outcome = signals.read(ending.text, self.signal.read())
        return briefs.answers(task, self.told) if self._was_answered(outcome) else self._read(ending, outcome)

    def _was_answered(self, outcome: signals.Outcome) -> bool:
        """A person was quick: what it asked was answered while the session ended, and it has said nothing beyond that."""
        new = [
            q["text"].strip()
            for q in self.task["questions"]
            if q["blocking"] and q["status"] != "pending" and q["id"] not in self.heard_of
        ]
        return outcome.text.strip() in new if outcome.what == "ask" else bool(new) and outcome.what == "nothing"

    def _read(self, ending: Ending, outcome: signals.Outcome) -> Result | str:
        said = outcome.text.strip()
        if outcome.what == "broken":
            text = f"{self.agent.name} ended its turn in a way that cannot be understood: {said or 'no words'}"
            return self._ask("escalation", text, "protocol_error", outcome.context)
        if outcome.what == "ask":
            return self._ask(outcome.kind, said, outcome.reason, outcome.context)
        if outcome.what == "failed":
            return self._fail(said or ending.error or "the agent gave no reason")
        if outcome.what == "done" and ending.what not in ("failed", "stopped"):
            return self._complete(said)
        if ending.what == "stopped":
            return self._release(ending.error)
        if ending.what == "failed":
            if ending.cause in ("login", "not_started"):
                return self._ask("escalation", f"{self.agent.name} cannot work: {ending.error}", "access_required")
            return self._release(ending.error or "the agent failed")
        if ending.what == "retryable":
            return self._release(ending.error or "the agent could not go on")
        return _NUDGE

    # --- what is said about it ----------------------------------------------------------------------------------------

    def _complete(self, summary: str) -> Result:
        assert self.place is not None
        title = self.task["title"]
        gitwork.finish(self.place, f"{self.key}: {title}\n\n{summary}".strip() + "\n")
        self.task = self.desk.complete(self.claim, summary)
        self.worker.finished(self.key, self.place, self.task)
        return self._finished(summary or "finished")

    def _finished(self, words: str) -> Result:
        if self.task["awaiting"]:
            return self._waits()
        return Result("done", words if self.task["ended_at"] else f"{words} (a person looks at it before it counts)")

    def _waits(self) -> Result:
        return Result("waiting", f"waits for a person ({self.task['awaiting']}): {_question(self.task)}")

    def _ask(self, kind: str, text: str, reason: str | None, context: dict[str, Any] | None = None) -> Result:
        """The signal's text becomes the question and a note."""
        self._remember()
        self._keep()
        if text:
            self.desk.note(self.key, text)
        else:
            text = KINDS[kind].prompt.format(title=self.task["title"])
        assert self.place is not None
        self.desk.flag(self.key, text, reason or None, kind, claim=self.claim, context=context or None)  # type: ignore[arg-type]
        self.worker.waits(self.key, self.place)
        return Result("waiting", f"waits for a person ({kind}): {text.splitlines()[0]}")

    def _fail(self, reason: str) -> Result:
        assert self.place is not None
        ref = gitwork.roll_back(self.place, self.key)
        kept = f" (its work is kept as {ref})" if ref else ""
        self.desk.fail(self.claim, f"{reason}{kept}")
        return Result("failed", f"{reason}{kept}")

    def _release(self, reason: str) -> Result:
        self._keep()
        self.desk.note(self.key, f"Given back: {reason}")
        task = self.desk.release(self.claim, reason)
        left, person = task["max_retries"] - task["retry_count"], bool(task["awaiting"])
        more = "a person is asked" if person else f"{left} more tr{'y' if left == 1 else 'ies'}"
        return Result("released", f"{reason.rstrip('.')}; {more}", person)

    def _park(self, ending: Ending) -> None:
        self.parked = ending.parked is not None
        self._remember(parked=self.parked)
        self._keep()
        self.desk.park(self.claim)

    def _keep(self) -> None:
        """The work in the folder, in case that another machine goes on."""
        assert self.place is not None
        try:
            body = gitwork.patch_of(self.place)
            if body or self.desk.patch(self.key):
                self.desk.keep_patch(self.claim, self.place.base or "", body)
        except ClaimLost:
            raise
        except YourturnError as trouble:  # too large, say: it still lies in the folder
            self.worker.progress.say(self.key, f"only this machine can go on with it: {trouble}")

    def _moved(self) -> Result:
        """The task has moved without us: by the agent itself, through a tool or a command, or because the claim is over."""
        assert self.place is not None
        claims = self.desk.history(self.key, action="claim", limit=1000)
        since = next(event["seq"] for event in reversed(claims) if event["data"]["set"]["epoch"] == self.claim["epoch"])
        told = self._events(since)
        ours = takewhile(lambda event: event["action"] not in ("claim", "expire"), told)  # then it was somebody else's
        own = [event["action"] for event in ours if event["actor"] == self.desk.who.name and _lets_go(event)]
        if "complete" in own:
            made = gitwork.finish(self.place, f"{self.key}: {self.task['title']}\n\n{self.task['summary']}".strip() + "\n")
            self.worker.finished(self.key, self.place, self.task)
            return self._finished(self.task["summary"] or made["words"])
        if "fail" in own:
            ref = gitwork.roll_back(self.place, self.key)
            return Result("failed", self.task["reason"] + (f" (its work is kept as {ref})" if ref else ""))
        if self.task["awaiting"] and own:
            return self._waits()
        if own:
            return Result("moved", "the agent moved it on itself")
        return Result("lost", "the claim was lost; what was done stays in its folder")

    def _events(self, after: int) -> Iterator[dict[str, Any]]:
        """All of the task since then, however much it noted."""
        while page := self.desk.history(self.key, after=after, limit=100):
            yield from page
            after = page[-1]["seq"]

    def _superseded(self, ending: Ending) -> dict[str, Any]:
        """Nobody has to answer for calls that the session has dropped."""
        from . import gate

        found = gate.asked_for(self.desk, self.key, str(self.session), [call.id for call in ending.superseded])
        why = "the agent asked for several things at once, and only the last one is waited for"
        gate.superseded(self.desk, [q for q in found if q["status"] == "pending"], why, claim=self.claim["token"])
        self.task = self.desk.show(self.key)
        return self.task

    # --- what it hears ------------------------------------------------------------------------------------------------

    def hear(self, said: Said) -> None:
        if isinstance(said, SessionStarted):
            if said.id != self.session:
                self.session = said.id
                self._remember()
        elif words := self.minutes.write(said):
            self.worker.progress.heard(self.key, words)

    def beat(self) -> None:
        """Still here. Who has lost the claim stops at once."""
        try:
            self.desk.heartbeat(self.claim)
        except ClaimLost:
            self.lost = True
            self.stop.set()
        except YourturnError:
            pass  # the next one may get through, before the lease is over

    def is_waiting(self) -> bool:
        """Does the session wait for a person right now? That time is not the agent's."""
        now = time.monotonic()
        if now - self._waiting[0] >= LOOK:
            try:
                task, before = self.desk.show(self.key), self._waiting[1]
                self._waiting = (now, bool(task["awaiting"]))
                if task["awaiting"] and not before:
                    self.worker.progress.say(self.key, f"asks a person ({task['awaiting']}): {_question(task)}")
            except YourturnError:
                self._waiting = (now, self._waiting[1])
        return self._waiting[1]

    # --- the surroundings ---------------------------------------------------------------------------------------------

    def _signals(self) -> Path:
        """Where several agents share a folder, one must not be taken for the other."""
        assert self.place is not None
        shared = not self.place.own and self.worker.parallel > 1
        return Path(self.place.folder, ".agents", "signals", *([self.key] if shared else []))

    def _open_gate(self, stack: ExitStack) -> None:
        """Where opening the database is slow, hooks ask the worker."""
        self.gate = ""
        if self.agent.adapter != "claude" or not self.worker.address.startswith(("postgresql:", "postgres:")):
            return
        from . import gate

        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="turn-"))
        self.gate = str(Path(folder, "gate"))
        stack.enter_context(gate.serve(self.gate, gate.handler(self.desk, self._environment())))

    def _environment(self) -> dict[str, str]:
        return {
            **self.worker.environment(self.agent.name),
            **(gitwork.identity(self.place.folder) if self.place and self.place.repo else {}),
            "YOURTURN_TASK": self.key,
            "YOURTURN_AGENT": self.agent.name,
            "YOURTURN_CLAIM": self.claim["token"],
            "YOURTURN_PROJECT": self.key.rpartition("-")[0],
            "YOURTURN_SIGNALS": str(self._signals()),
            **({"YOURTURN_SESSION": self.session} if self.session else {}),
            **({"YOURTURN_GATE": self.gate} if self.gate else {}),
        }


def _question(task: dict[str, Any]) -> str:
    asked = [q["text"] for q in task["questions"] if q["status"] == "pending" and q["blocking"]]
    return str(asked[0]).splitlines()[0] if asked else ""


def _lets_go(event: dict[str, Any]) -> bool:
    """Did the claim end with this?"""
    return (event["data"].get("set") or {}).get("holder", "") is None

"""The turns of one agent in one folder, until something has come of them.

    session (new, or the one that asked) ─ brief ─ run ─ what came of it ─ once more, or that is it

After each turn of the agent the desk is looked at first: what the agent has said there itself, by tool or command, counts
more than any message. A question that is still open ends the turns, and what a signal asks beside it is asked, too; one that
was answered while the session ended wakes it at once, under the same claim. Only then the signal file and the message are
read (signals.py). An agent that says nothing of how its turn ended gets another one, so many times, and then a person is asked.

What a session was told, and what is news to it, stands in marks.py.

Here is what a task and a step of a run have in common. What it means for them is said by sitting.py and running.py.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.errors import Invalid, YourturnError
from ..core.rules import KINDS
from . import read_marks
from .agents import make
from .agents.base import Ending, Run, Said, SessionStarted, Text, turn_command
from .agents.process import perform
from .claude import permission_gate
from .git import worktrees
from .prompt import brief as briefs
from .read_marks import Reading
from .signals import outcomes
from .signals.signal_file import SignalFile

if TYPE_CHECKING:
    from ..client import Client
    from .agents.base import Agent
    from .claim_holder import Holder

LOOK = 1.0  #: seconds between two looks at whether a session waits
_NUDGE = (
    "Your turn ended without a signal, so nobody knows whether the task is done. Go on if work remains; then end with one of "
    "the signals that you were told about. If a person has to decide something, ask."
)
#: What a shell says of a command that it did not find, or may not run.
_NOT_RUN = {126: "it may not be run", 127: "it was not found"}
_AGAIN = {
    "lost": "The session that worked on this before is gone. What it knew is written here, and its work lies in the folder.",
    "moved": "This was begun on another machine. What was said is written here, and its work was brought into the folder.",
    "cut": "It was cut off before it had said anything. Go on with {key} where you stopped; what was done lies in the folder.",
}


class Came(NamedTuple):
    """What came of an agent's turns."""

    what: str  #: done, failed, ask, said (a status of its own), broken, silent, unable, waiting, released, stopped, moved
    text: str = ""
    kind: str = ""
    reason: str | None = None
    context: dict[str, Any] = {}
    fields: dict[str, Any] = {}  #: how the question is asked, and `also`: the other ones
    status: str = ""
    parked: bool = False  #: the session waits inside a tool call


class Turns:
    in_step = False  #: of a run: a status that is nobody's word counts too, and where it sits is always remembered
    step: dict[str, Any] = {}  #: which one, for a question
    patience: dict[str, Any] = {}  #: how long its questions wait, as the script says

    def __init__(self, holder: Holder, desk: Client, agent: Agent, place: worktrees.Workplace) -> None:
        self.holder, self.worker, self.desk, self.agent, self.place = holder, holder.worker, desk, agent, place
        self.key, self.claim = holder.key, holder.claim
        self.adapter = make(agent)
        self.session: str | None = None
        self.parked = False
        self.fresh = 0
        self.again = ""
        self.task = self.look()
        self.reading = Reading()
        self.heard_of: set[str] = set()  #: questions that were closed when a turn began, or open when the first one did
        self._waiting = (0.0, False)
        self.gate = self.news = ""
        self._around: dict[str, str] = {}  #: the environment of the turn, for the gate

    # --- what a task and a step have each in its own way -----------------------------------------------------------------

    def look(self) -> dict[str, Any]:
        """The task as it concerns this agent."""
        return self.desk.show(self.key)

    def remember(self, **more: Any) -> None:
        """Where the session sits, before anything can go wrong with it."""
        seat = {"agent": self.agent.name, "folder": self.place.folder, "base": self.place.base, "told": self.reading.mark, **more}
        seat = {name: value for name, value in seat.items() if value}
        self.write_down({"session_id": self.session, "host": self.worker.host, "seat": seat})

    def write_down(self, known: dict[str, Any]) -> None:
        if any(self.task[name] != value for name, value in known.items()):
            self.desk.update(self.key, claim=self.claim, **known)
            self.task = {**self.task, **known}

    def brief(self, task: dict[str, Any], again: str) -> str:
        task = {**task, "branch": self.place.branch}  # outside of a repository there is none
        return briefs.brief(task, agent=self.agent.name, role=self.role(), again=again, signals=self._shown_signals())

    def signal_folder(self) -> Path:
        """Where several agents share a folder, one must not be taken for the other."""
        shared = not self.place.own and self.worker.parallel > 1
        return Path(self.place.folder, ".agents", "signals", *([self.key] if shared else []))

    def log(self) -> Path:
        return self.worker.logs / self.key / f"{self.claim['epoch']}.log"

    def more_environment(self) -> dict[str, str]:
        return {}

    # --- the turns --------------------------------------------------------------------------------------------------------

    def sit_down(self, session: str | None, seat: dict[str, Any], host: str | None) -> None:
        """The session that is to be woken, if there is one and it can be."""
        here = host in (None, self.worker.host)
        same = seat.get("agent") == self.agent.name and seat.get("folder") == self.place.folder
        self.heard_of = {q["id"] for q in self.task["questions"] if q["status"] == "pending"}
        if session and seat and here and same:
            self.session, self.parked = session, bool(seat.get("parked"))
            self.reading = Reading(read_marks.read(seat.get("told")))
        elif seat and (session or not here):
            self.again = _AGAIN["lost" if here else "moved"]

    def take(self) -> Came:
        with ExitStack() as stack:
            self._open_gate(stack)
            return self._turns()

    def _turns(self) -> Came:
        nudge, silent, trouble = "", 0, ""
        while True:
            ending = self._turn(nudge)
            self.worker.budget.spend(iterations=1, tokens=ending.tokens, cost=ending.cost)
            found = self._after(ending)
            if isinstance(found, Came):
                return found
            nudge = found
            silent = silent + 1 if nudge == _NUDGE else 0
            trouble = ending.error.strip()[-2000:] or trouble
            if silent == 1:
                again = f"it gets {self.worker.turns - 1} more" if self.worker.turns > 1 else "a person is asked"
                said = f"{self.agent.name} ended a turn without a signal; {again}. {self._signal()}"
                self.worker.progress.say(self.shown(), said)
            if silent >= self.worker.turns:
                return Came("silent", self._without_a_signal(silent, ending.text, trouble), "escalation", "decision_needed")
            if self.holder.stop.is_set() or self.worker.budget.over(taking=False):
                return Came("stopped", parked=ending.parked is not None)

    def _without_a_signal(self, silent: int, said: str, trouble: str) -> str:
        times = "a turn" if silent == 1 else f"{silent} turns"
        parts = [f"{self.agent.name} had {times} without saying how it ended."]
        parts += [trouble] if trouble else []
        parts += [f"It last said:\n{said.strip()[-2000:]}"] if said.strip() else []
        return "\n\n".join([*parts, self._signal()])

    def _signal(self) -> str:
        """What an agent has to print, for the person who wrote it. In backticks it is shown, not said."""
        return (
            "To end a turn it has to print `<promise>COMPLETE</promise>`, or run `turn complete`. "
            f"All the ways: turn brief {self.key}, or docs/agents.md."
        )

    def _not_run(self, rc: int, error: str) -> str:
        """A command that is not there is not tried again."""
        what = self.agent.argv[-1] if self.agent.argv[:2] == ("/bin/sh", "-c") else " ".join(self.agent.argv)
        said = f" {error.strip()}" if error.strip() else ""
        return (
            f"{self.agent.name} cannot work: its command `{what[:500]}` did not run, {_NOT_RUN[rc]} (exit code {rc}).{said}\n\n"
            "Put that right, then answer: the task is tried again."
        )

    def _turn(self, nudge: str) -> Ending:
        resume = self.session is not None
        if not resume:
            self.session = self.adapter.session_id()
            self.fresh += 1
        woken = self.parked and resume
        if self.session or self.in_step:
            self.remember(parked=woken)
        self.reading.begin(self.task)
        self.signal = SignalFile(self.signal_folder() / f"{self.agent.name}.json")
        ready = briefs.informed(self.task, self.desk.show, self.desk.history)
        known = self.reading.mark
        without_brief = resume and known is None
        self.news = permission_gate.news(ready, briefs.news(ready, known)) if woken else ""
        self._around.update({"YOURTURN_NEWS": "", **(env := self.environment())})
        run = Run(
            task=self.key, agent=self.agent, folder=self.place.folder, env=env, session_id=self.session,
            prompt=self.brief(ready, self.again or (_AGAIN["cut"].format(key=self.key) if without_brief else nudge)),
            answer_prompt="" if without_brief else briefs.answers(ready, known, nudge), resumed=resume, parked=woken,
            log=str(self.log()), hook_command=turn_command("hook", "claude"), mcp_command=turn_command("mcp"),
            say=lambda text: self.hear(Text(text)),
        )  # fmt: skip
        self.again, self.parked = "", False
        self.heard_of |= {q["id"] for q in self.task["questions"] if q["status"] != "pending"}
        self._waiting = (time.monotonic(), False)
        return perform(
            self.adapter, run, resume=resume, heard=self.hear, stop=self.holder.stop, waiting=self.is_waiting,
            time_limit=self.agent.timeout or self.worker.time_limit,
            silence_limit=self.agent.silence or self.worker.silence_limit,
        )  # fmt: skip

    def _after(self, ending: Ending) -> Came | str:
        """What came of a turn: the end of all turns, or what the agent is told at the beginning of the next."""
        self.holder.minutes.flush()
        task = self.task = self.look()
        if ending.session_id and not ending.lost:
            self.session = ending.session_id
        if self.holder.lost or not task["claim"] or task["claim"]["epoch"] != self.claim["epoch"]:
            return Came("moved")
        if self.reading.end(task, ending.what) and self.session:
            self.remember(parked=ending.parked is not None)
        if ending.superseded:
            task = self._superseded(ending)
        if ending.cause == "stop":
            if ending.rc != 0:
                return Came("stopped", parked=ending.parked is not None)
            ending = ending._replace(what="done")  # it was asked to go, and ended in order: what it said counts
        if task["awaiting"]:
            self._ask_beside(ending)
            return Came("waiting", parked=ending.parked is not None)
        if ending.lost and self.fresh < 2:
            self.session, self.reading, self.again = None, Reading(), _AGAIN["lost"]
            return ""
        if ending.parked is not None and ending.what in ("parked", "retryable"):
            self.parked = True
            if ending.what == "parked":
                return ""
            self.remember(parked=True)  # it is still parked; each attempt to wake it costs a try
            return Came("released", ending.error)
        written = self.signal.read()
        outcome = self._fit(outcomes.read(ending.text, written), outcomes.exact(ending.text, written))
        return "" if self._was_answered(outcome) else self._read(ending, outcome)

    def _ask_beside(self, ending: Ending) -> None:
        """A question is open, and the signal asks another one. What would end the task has to wait for the answer.

        A tag without words means the question that is open.
        """
        written = self.signal.read(keep=True)
        outcome = self._fit(outcomes.read(ending.text, written, alone=False), {})
        asked = {q["text"].strip() for q in self.task["questions"] if q["status"] == "pending" or q["id"] not in self.heard_of}
        more = [q for q in outcomes.asks(outcome) if q.get("text", "").strip() not in ("", *asked)]
        more = [q for q in more if KINDS[q["kind"]].approved != "done"]
        if not more:
            return
        first, *also = ({"reason": None, **q, **self.patience} for q in more)
        fields: dict[str, Any] = {**first, **self.step, **({"also": also} if also else {})}
        for q in more:
            self.desk.note(self.key, q["text"])
        self.desk.flag(self.key, claim=self.claim, hold=True, **fields)
        self.signal.forget()
        self.task = self.look()

    def _fit(self, outcome: outcomes.Outcome, said: dict[str, Any]) -> outcomes.Outcome:
        """What the desk would not take is for a person to look at, with the exact words."""
        if outcome.what == "nothing" and outcome.status and not self.in_step:
            return outcomes.Outcome("broken", text=outcomes.unknown(outcome.status, outcome.source), context=said)
        if outcome.what != "ask" or not outcome.fields:
            return outcome
        own = {name: value for name, value in outcome.fields.items() if name != "also"}
        for question in ({**outcome.questions[0], **own}, *outcome.fields.get("also", ())):
            fields = {name: value for name, value in question.items() if value}
            try:
                self.desk.check_question(fields.pop("text", "?"), project=self.key.rpartition("-")[0], **fields)
            except Invalid as trouble:
                why = f"'{outcome.status}' cannot be asked like that: {trouble}.{' ' + trouble.hint if trouble.hint else ''}"
                return outcomes.Outcome("broken", text=why, context={"question": question["text"], **said})
        return outcome

    def _was_answered(self, outcome: outcomes.Outcome) -> bool:
        """A person was quick: what it asked was answered while the session ended, and it has said nothing beyond that."""
        new = {q["id"]: q["text"].strip() for q in self.task["questions"]
               if q["blocking"] and q["status"] != "pending" and q["id"] not in self.heard_of}  # fmt: skip
        if outcome.what == "ask":
            asked = {question["text"].strip() for question in outcome.questions}
            if not asked <= {*new.values()}:
                return False
            self.reading.tell_again({name for name, text in new.items() if text in asked})
            return True
        unheard = [name for name in new if not self.reading.knows(name)]
        return bool(unheard) and outcome.what == "nothing" and not (self.in_step and outcome.status)

    def _read(self, ending: Ending, outcome: outcomes.Outcome) -> Came | str:
        said, name = outcome.text.strip(), self.agent.name
        well = ending.what not in ("failed", "stopped")
        if outcome.what == "broken":
            text = f"{name} ended its turn in a way that cannot be understood: {said or 'no words'}"
            return Came("broken", text, "escalation", "protocol_error", outcome.context)
        if outcome.what == "ask":
            return Came("ask", said, outcome.kind, outcome.reason, outcome.context, outcome.fields)
        if outcome.what == "failed":
            return Came("failed", said or ending.error or "the agent gave no reason", context=outcome.context)
        if outcome.what == "done" and well:
            return Came("done", said, context=outcome.context)
        if outcome.what == "nothing" and outcome.status and self.in_step and well:
            return Came("said", said, context=outcome.context, status=outcome.status)
        if ending.what == "stopped":
            return Came("released", ending.error)
        if ending.what == "failed":
            if ending.cause in ("login", "not_started"):
                return Came("unable", f"{name} cannot work: {ending.error}", "escalation", "access_required")
            return Came("released", ending.error or "the agent failed")
        if ending.what == "retryable":
            return Came("released", ending.error or "the agent could not go on")
        if self.adapter.plain and ending.rc in _NOT_RUN:
            return Came("unable", self._not_run(ending.rc, ending.error.partition(". ")[2]), "escalation", "access_required")
        return _NUDGE

    def _superseded(self, ending: Ending) -> dict[str, Any]:
        """Nobody has to answer for calls that the session has dropped."""
        found = permission_gate.asked_for(self.desk, self.key, str(self.session), [call.id for call in ending.superseded])
        why = "the agent asked for several things at once, and only the last one is waited for"
        permission_gate.superseded(self.desk, [q for q in found if q["status"] == "pending"], why, claim=self.claim["token"])
        self.task = self.look()
        return self.task

    # --- what it hears ------------------------------------------------------------------------------------------------

    def hear(self, said: Said) -> None:
        if isinstance(said, SessionStarted):
            if said.id != self.session:
                self.session = said.id
                self.remember()
            return
        if self.reading.hear(said) and self.session:
            self.remember()
        if words := self.holder.minutes.write(said):
            self.worker.progress.heard(self.shown(), words)

    def shown(self) -> str:
        """Its name on the screen."""
        return self.key

    def is_waiting(self) -> bool:
        """Does the session wait for a person right now? That time is not the agent's."""
        now = time.monotonic()
        if now - self._waiting[0] >= LOOK:
            try:
                task, before = self.look(), self._waiting[1]
                self._waiting = (now, bool(task["awaiting"]))
                if task["awaiting"] and not before:
                    self.worker.progress.say(self.key, f"asks a person ({task['awaiting']}): {question(task)}")
            except YourturnError:
                self._waiting = (now, self._waiting[1])
        return self._waiting[1]

    # --- the surroundings ---------------------------------------------------------------------------------------------

    def role(self) -> str:
        name = self.agent.name
        return briefs.role_text(name, Path(self.place.folder)) or briefs.role_text(name, self.worker.root)

    def _shown_signals(self) -> str:
        return self.signal_folder().relative_to(self.place.folder).as_posix()

    def _open_gate(self, stack: ExitStack) -> None:
        """Where opening the database is slow, hooks ask the worker."""
        if self.agent.adapter != "claude" or not self.worker.address.startswith(("postgresql:", "postgres:")):
            return
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="turn-"))
        self.gate = str(Path(folder, "gate"))
        self._around.update(self.environment())
        stack.enter_context(permission_gate.serve(self.gate, permission_gate.handler(self.desk, self._around)))

    def environment(self) -> dict[str, str]:
        return {
            **self.worker.environment(self.agent),
            **(worktrees.identity(self.place.folder) if self.place.repo else {}),
            "YOURTURN_TASK": self.key,
            "YOURTURN_AGENT": self.agent.name,
            "YOURTURN_CLAIM": self.claim["token"],
            "YOURTURN_PROJECT": self.key.rpartition("-")[0],
            "YOURTURN_SIGNALS": str(self.signal_folder()),
            **({"YOURTURN_SESSION": self.session} if self.session else {}),
            **({"YOURTURN_GATE": self.gate} if self.gate else {}),
            **({"YOURTURN_NEWS": self.news} if self.news else {}),
            **self.more_environment(),
        }


def question(task: dict[str, Any]) -> str:
    """The first that holds it up, in a line."""
    asked = [q["text"] for q in task["questions"] if q["status"] == "pending" and q["blocking"]]
    return str(asked[0]).splitlines()[0] if asked else ""

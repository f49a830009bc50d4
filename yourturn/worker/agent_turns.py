"""The turns of one agent in one folder, until they have a result.

    session (new, or the one that asked) ─ brief ─ run ─ evaluate ─ next turn, or a result

After each turn the desk is read first: what the agent did there itself, by tool or command, counts more than any message. An
open question ends the turns, and further questions in a signal are asked, too; a question that was answered while the session
ended resumes the session at once, under the same claim. Only then the signal file and the message are read (signals/). An agent
that ends a turn without a signal gets another one, up to a limit; then a person is asked.

read_marks.py keeps track of what a session has read. Where a task and a step of a run differ, a `TurnContext` decides:
task_session.py and step_session.py.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..core.errors import Invalid, YourturnError
from ..core.rules import KINDS
from . import read_marks
from .agents import make
from .agents.base import AgentEvent, AgentRun, Ending, SessionStarted, Text, turn_command
from .agents.process import perform
from .claude import permission_gate
from .git import worktrees
from .prompt import brief as briefs
from .read_marks import ReadTracker
from .signals import outcomes
from .signals.signal_file import SignalFile

if TYPE_CHECKING:
    from ..client import Client
    from .agents.base import Agent
    from .claim_holder import ClaimHolder

POLL_INTERVAL = 1.0  #: seconds between two reads of whether a session waits
_NUDGE = (
    "Your turn ended without a signal, so nobody knows whether the task is done. Go on if work remains; then end with one of "
    "the signals that you were told about. If a person has to decide something, ask."
)
#: Exit codes of a shell for a command that it did not find, or may not run.
_NOT_RUN = {126: "it may not be run", 127: "it was not found"}
_AGAIN = {
    "lost": "The session that worked on this before is gone. What it knew is written here, and its work lies in the folder.",
    "moved": "This was begun on another machine. What was said is written here, and its work was brought into the folder.",
    "cut": "It was cut off before it had said anything. Go on with {key} where you stopped; what was done lies in the folder.",
}


class TurnResult(NamedTuple):
    what: str  #: done, failed, ask, said (a status of its own), broken, silent, unable, waiting, released, stopped, moved
    text: str = ""
    kind: str = ""
    reason: str | None = None
    context: dict[str, Any] = {}
    fields: dict[str, Any] = {}  #: options of the question; `also`: further questions
    status: str = ""
    parked: bool = False  #: the session waits inside a tool call


class TurnContext(Protocol):
    """What differs between the turns for a task and those for a step of a run."""

    in_step: bool  #: in a step, an unknown status is a result too, and the session is always recorded
    step: dict[str, Any]  #: the step that asks, as a field of a question
    patience: dict[str, Any]  #: how long its questions wait, as the script specifies
    log_name: str

    @property
    def label(self) -> str:
        """The name of the work on the terminal."""

    def load(self) -> dict[str, Any]:
        """The task, with the questions that concern this agent."""

    def record(self, known: dict[str, Any]) -> None:
        """Record where the session is, beside the task's row."""

    def brief(self, task: dict[str, Any], again: str, role: str, signals: str) -> str: ...

    def signal_folder(self, folder: Path) -> Path:
        """The folder for the signal file, given the default."""

    def environment(self) -> dict[str, str]: ...


class AgentTurns:
    def __init__(
        self, holder: ClaimHolder, desk: Client, agent: Agent, place: worktrees.Workplace, context: TurnContext
    ) -> None:  # fmt: skip
        self.holder, self.worker, self.desk, self.agent, self.place = holder, holder.worker, desk, agent, place
        self.context = context
        self.key, self.claim = holder.key, holder.claim
        self.adapter = make(agent)
        self.session: str | None = None
        self.parked = False
        self.fresh_sessions = 0
        self.again = ""
        self.task = context.load()
        self.reads = ReadTracker()
        self.old_questions: set[str] = set()  #: closed when a turn began, or open when the first one did
        self._waiting = (0.0, False)
        self.gate = self.news = ""
        self._gate_environment: dict[str, str] = {}

    # --- the session --------------------------------------------------------------------------------------------------

    def restore_session(self, session: str | None, seat: dict[str, Any], host: str | None) -> None:
        """Choose the recorded session if it can be resumed in this folder."""
        here = host in (None, self.worker.host)
        same = seat.get("agent") == self.agent.name and seat.get("folder") == self.place.folder
        self.old_questions = {q["id"] for q in self.task["questions"] if q["status"] == "pending"}
        if session and seat and here and same:
            self.session, self.parked = session, bool(seat.get("parked"))
            self.reads = ReadTracker(read_marks.parse(seat.get("told")))
        elif seat and (session or not here):
            self.again = _AGAIN["lost" if here else "moved"]

    def record_session(self, **more: Any) -> None:
        """Record where the session is, before it can fail."""
        seat = {"agent": self.agent.name, "folder": self.place.folder, "base": self.place.base, "told": self.reads.mark}
        seat |= {"signals": str(self.signal_folder())} if self.context.in_step else {}
        seat = {name: value for name, value in {**seat, **more}.items() if value}
        known = {"session_id": self.session, "host": self.worker.host, "seat": seat}
        self.context.record(known)
        if any(self.task[name] != value for name, value in known.items()):
            self.desk.update(self.key, claim=self.claim, **known)  # type: ignore[arg-type]
            self.task = {**self.task, **known}

    # --- the turns ----------------------------------------------------------------------------------------------------

    def run(self) -> TurnResult:
        with ExitStack() as stack:
            self._open_gate(stack)
            return self._run_turns()

    def _run_turns(self) -> TurnResult:
        nudge, silent, trouble = "", 0, ""
        while True:
            ending = self._run_turn(nudge)
            self.worker.budget.spend(iterations=1, tokens=ending.tokens, cost=ending.cost)
            result = self._evaluate(ending)
            if isinstance(result, TurnResult):
                return result
            nudge = result
            silent = silent + 1 if nudge == _NUDGE else 0
            trouble = ending.error.strip()[-2000:] or trouble
            if silent == 1:
                again = f"it gets {self.worker.turns - 1} more" if self.worker.turns > 1 else "a person is asked"
                words = f"{self.agent.name} ended a turn without a signal; {again}. {self._signal_help()}"
                self.worker.progress.report(self.context.label, words)
            if silent >= self.worker.turns:
                text = self._without_a_signal(silent, ending.text, trouble)
                return TurnResult("silent", text, "escalation", "decision_needed")
            if self.holder.stop.is_set() or self.worker.budget.over(taking=False):
                return TurnResult("stopped", parked=ending.parked is not None)

    def _without_a_signal(self, silent: int, message: str, trouble: str) -> str:
        times = "a turn" if silent == 1 else f"{silent} turns"
        parts = [f"{self.agent.name} had {times} without a signal."]
        parts += [trouble] if trouble else []
        parts += [f"Its last message:\n{message.strip()[-2000:]}"] if message.strip() else []
        return "\n\n".join([*parts, self._signal_help()])

    def _signal_help(self) -> str:
        """How an agent ends a turn, for the person who configured it. In backticks the tag does not count as a signal."""
        return (
            "To end a turn it has to print `<promise>COMPLETE</promise>`, or run `turn complete`. "
            f"All the ways: turn brief {self.key}, or docs/agents.md."
        )

    def _command_not_run(self, rc: int, error: str) -> str:
        command = self.agent.argv[-1] if self.agent.argv[:2] == ("/bin/sh", "-c") else " ".join(self.agent.argv)
        more = f" {error.strip()}" if error.strip() else ""
        return (
            f"{self.agent.name} cannot work: its command `{command[:500]}` did not run, {_NOT_RUN[rc]} (exit code {rc}).{more}"
            "\n\nPut that right, then answer: the task is tried again."
        )

    def _run_turn(self, nudge: str) -> Ending:
        resume = self.session is not None
        if not resume:
            self.session = self.adapter.session_id()
            self.fresh_sessions += 1
        parked = self.parked and resume
        if self.session or self.context.in_step:
            self.record_session(parked=parked)
        self.reads.begin(self.task)
        self.signal = SignalFile(self.signal_folder() / f"{self.agent.name}.json")
        ready = briefs.informed(self.task, self.desk.show, self.desk.history)
        mark = self.reads.mark
        without_brief = resume and mark is None
        self.news = permission_gate.news(ready, briefs.news(ready, mark)) if parked else ""
        self._gate_environment.update({"YOURTURN_NEWS": "", **(env := self.environment())})
        run = AgentRun(
            task=self.key, agent=self.agent, folder=self.place.folder, env=env, session_id=self.session,
            prompt=self._brief(ready, self.again or (_AGAIN["cut"].format(key=self.key) if without_brief else nudge)),
            answer_prompt="" if without_brief else briefs.answers(ready, mark, nudge), resumed=resume, parked=parked,
            log=str(self.worker.logs / self.key / self.context.log_name), hook_command=turn_command("hook", "claude"),
            mcp_command=turn_command("mcp"), say=lambda text: self.handle(Text(text)),
        )  # fmt: skip
        self.again, self.parked = "", False
        self.old_questions |= {q["id"] for q in self.task["questions"] if q["status"] != "pending"}
        self._waiting = (time.monotonic(), False)
        return perform(
            self.adapter, run, resume=resume, on_event=self.handle, stop=self.holder.stop, waiting=self.is_waiting,
            time_limit=self.agent.timeout or self.worker.time_limit,
            silence_limit=self.agent.silence or self.worker.silence_limit,
        )  # fmt: skip

    # --- the result of a turn -----------------------------------------------------------------------------------------

    def _evaluate(self, ending: Ending) -> TurnResult | str:
        """The result of all turns, or the text with which the next turn begins."""
        self.holder.output.flush()
        task = self.task = self.context.load()
        if ending.session_id and not ending.lost:
            self.session = ending.session_id
        if self.holder.lost or not task["claim"] or task["claim"]["epoch"] != self.claim["epoch"]:
            return TurnResult("moved")
        if self.reads.end(task, ending.what) and self.session:
            self.record_session(parked=ending.parked is not None)
        if ending.superseded:
            task = self._withdraw_superseded(ending)
        if ending.cause == "stop":
            if ending.rc != 0:
                return TurnResult("stopped", parked=ending.parked is not None)
            ending = ending._replace(what="done")  # it was asked to stop and ended normally: its signal counts
        if task["awaiting"]:
            self._ask_further_questions(ending)
            return TurnResult("waiting", parked=ending.parked is not None)
        if ending.lost and self.fresh_sessions < 2:
            self.session, self.reads, self.again = None, ReadTracker(), _AGAIN["lost"]
            return ""
        if ending.parked is not None and ending.what in ("parked", "retryable"):
            self.parked = True
            if ending.what == "parked":
                return ""
            self.record_session(parked=True)  # it is still parked; each attempt to resume it costs a retry
            return TurnResult("released", ending.error)
        data = self.signal.read()
        outcome = self._checked(outcomes.read(ending.text, data), outcomes.exact(ending.text, data))
        return "" if self._was_answered(outcome) else self._result(ending, outcome)

    def _ask_further_questions(self, ending: Ending) -> None:
        """A question is open, and the signal asks others. Those that would end the task are dropped until the answer.

        A tag without text means the open question.
        """
        data = self.signal.read(keep=True)
        outcome = self._checked(outcomes.read(ending.text, data, alone=False), {})
        asked = [q for q in self.task["questions"] if q["status"] == "pending" or q["id"] not in self.old_questions]
        texts = {q["text"].strip() for q in asked}
        new = [q for q in outcomes.asks(outcome) if q.get("text", "").strip() not in ("", *texts)]
        new = [q for q in new if KINDS[q["kind"]].approved != "done"]
        if not new:
            return
        first, *also = ({"reason": None, **q, **self.context.patience} for q in new)
        fields: dict[str, Any] = {**first, **self.context.step, **({"also": also} if also else {})}
        for q in new:
            self.desk.note(self.key, q["text"])
        self.desk.flag(self.key, claim=self.claim, hold=True, **fields)
        self.signal.remove()
        self.task = self.context.load()

    def _checked(self, outcome: outcomes.Outcome, exact: dict[str, Any]) -> outcomes.Outcome:
        """The outcome, or `broken`, with the agent's exact words, if the desk would refuse it."""
        if outcome.what == "nothing" and outcome.status and not self.context.in_step:
            return outcomes.Outcome("broken", text=outcomes.unknown(outcome.status, outcome.source), context=exact)
        if outcome.what != "ask" or not outcome.fields:
            return outcome
        own = {name: value for name, value in outcome.fields.items() if name != "also"}
        for question in ({**outcome.questions[0], **own}, *outcome.fields.get("also", ())):
            fields = {name: value for name, value in question.items() if value}
            try:
                self.desk.check_question(fields.pop("text", "?"), project=self.key.rpartition("-")[0], **fields)
            except Invalid as trouble:
                why = f"'{outcome.status}' cannot be asked like that: {trouble}.{' ' + trouble.hint if trouble.hint else ''}"
                return outcomes.Outcome("broken", text=why, context={"question": question["text"], **exact})
        return outcome

    def _was_answered(self, outcome: outcomes.Outcome) -> bool:
        """True if the agent's question was answered while its session ended, and the turn said nothing else."""
        new = {q["id"]: q["text"].strip() for q in self.task["questions"]
               if q["blocking"] and q["status"] != "pending" and q["id"] not in self.old_questions}  # fmt: skip
        if outcome.what == "ask":
            texts = {question["text"].strip() for question in outcome.questions}
            if not texts <= {*new.values()}:
                return False
            self.reads.unmark({name for name, text in new.items() if text in texts})
            return True
        unread = [name for name in new if not self.reads.has_read(name)]
        return bool(unread) and outcome.what == "nothing" and not (self.context.in_step and outcome.status)

    def _result(self, ending: Ending, outcome: outcomes.Outcome) -> TurnResult | str:
        text, name = outcome.text.strip(), self.agent.name
        succeeded = ending.what not in ("failed", "stopped")
        if outcome.what == "broken":
            words = f"{name} ended its turn with an invalid signal: {text or 'no words'}"
            return TurnResult("broken", words, "escalation", "protocol_error", outcome.context)
        if outcome.what == "ask":
            return TurnResult("ask", text, outcome.kind, outcome.reason, outcome.context, outcome.fields)
        if outcome.what == "failed":
            return TurnResult("failed", text or ending.error or "the agent gave no reason", context=outcome.context)
        if outcome.what == "done" and succeeded:
            return TurnResult("done", text, context=outcome.context)
        if outcome.what == "nothing" and outcome.status and self.context.in_step and succeeded:
            return TurnResult("said", text, context=outcome.context, status=outcome.status)
        if ending.what == "stopped":
            return TurnResult("released", ending.error)
        if ending.what == "failed":
            if ending.cause in ("login", "not_started"):
                return TurnResult("unable", f"{name} cannot work: {ending.error}", "escalation", "access_required")
            return TurnResult("released", ending.error or "the agent failed")
        if ending.what == "retryable":
            return TurnResult("released", ending.error or "the agent could not go on")
        if self.adapter.plain and ending.rc in _NOT_RUN:
            words = self._command_not_run(ending.rc, ending.error.partition(". ")[2])
            return TurnResult("unable", words, "escalation", "access_required")
        return _NUDGE

    def _withdraw_superseded(self, ending: Ending) -> dict[str, Any]:
        """Withdraw the questions of calls that the session has dropped."""
        calls = [call.id for call in ending.superseded]
        questions = permission_gate.questions_of_calls(self.desk, self.key, str(self.session), calls)
        why = "the agent asked for several things at once, and only the last one is waited for"
        pending = [q for q in questions if q["status"] == "pending"]
        permission_gate.withdraw_superseded(self.desk, pending, why, claim=self.claim["token"])
        self.task = self.context.load()
        return self.task

    # --- events of the session ----------------------------------------------------------------------------------------

    def handle(self, event: AgentEvent) -> None:
        if isinstance(event, SessionStarted):
            if event.id != self.session:
                self.session = event.id
                self.record_session()
            return
        if self.reads.handle(event) and self.session:
            self.record_session()
        if words := self.holder.output.write(event):
            self.worker.progress.update(self.context.label, words)

    def is_waiting(self) -> bool:
        """True while the session waits for a person: time limits do not count that time."""
        now = time.monotonic()
        if now - self._waiting[0] >= POLL_INTERVAL:
            try:
                task, before = self.context.load(), self._waiting[1]
                self._waiting = (now, bool(task["awaiting"]))
                if task["awaiting"] and not before:
                    words = f"asks a person ({task['awaiting']}): {first_question(task)}"
                    self.worker.progress.report(self.key, words)
            except YourturnError:
                self._waiting = (now, self._waiting[1])
        return self._waiting[1]

    # --- prompt and environment ---------------------------------------------------------------------------------------

    def _brief(self, task: dict[str, Any], again: str) -> str:
        name, task = self.agent.name, {**task, "branch": self.place.branch}  # None outside of a repository
        role = briefs.role_text(name, Path(self.place.folder)) or briefs.role_text(name, self.worker.root)
        return self.context.brief(task, again, role, self.signal_folder().relative_to(self.place.folder).as_posix())

    def signal_folder(self) -> Path:
        """Agents that share a folder must not read each other's signals."""
        shared = not self.place.own and self.worker.parallel > 1
        return self.context.signal_folder(Path(self.place.folder, ".agents", "signals", *([self.key] if shared else [])))

    def _open_gate(self, stack: ExitStack) -> None:
        """With PostgreSQL, where connecting is slow, hooks ask the worker through a socket."""
        if self.agent.adapter != "claude" or not self.worker.address.startswith(("postgresql:", "postgres:")):
            return
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="turn-"))
        self.gate = str(Path(folder, "gate"))
        self._gate_environment.update(self.environment())
        stack.enter_context(permission_gate.serve(self.gate, permission_gate.handler(self.desk, self._gate_environment)))

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
            **self.context.environment(),
        }


def first_question(task: dict[str, Any]) -> str:
    """The first line of the question that blocks the task."""
    texts = [q["text"] for q in task["questions"] if q["status"] == "pending" and q["blocking"]]
    return str(texts[0]).splitlines()[0] if texts else ""

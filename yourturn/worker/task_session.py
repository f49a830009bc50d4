"""One task from its claim to its outcome: prepare the folder, run the agent's turns, apply their result to the task.

Work in the folder is kept unless the agent reports a failure; then it is stored under refs/yourturn/failed and the folder is
reset.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.field_text import account
from ..core.rules import KINDS
from .agent_turns import AgentTurns, TurnResult, first_question
from .claim_holder import ClaimHolder, SessionResult
from .git import worktrees
from .prompt import brief as briefs
from .signals import outcomes

if TYPE_CHECKING:
    from ..client import Client
    from .agents.base import Agent
    from .worker import Worker


_BODY = 10_000  #: characters of each part of a commit message


class TaskSession:
    """Runs an agent on a task; also the `TurnContext` of its turns."""

    in_step = False

    def __init__(self, worker: Worker, desk: Client, claimed: dict[str, Any], agent: Agent) -> None:
        self.holder = ClaimHolder(worker, desk, claimed)
        self.worker, self.desk, self.agent = worker, desk, agent
        self.task, self.claim, self.key = self.holder.task, self.holder.claim, self.holder.key
        self.step: dict[str, Any] = {}
        self.patience: dict[str, Any] = {}
        self.label, self.log_name = self.key, f"{self.claim['epoch']}.log"

    # --- the session --------------------------------------------------------------------------------------------------

    def run(self) -> SessionResult:
        try:
            return self.holder.guard(self._run)
        finally:
            self.holder.output.flush()

    def _run(self) -> SessionResult:
        with ExitStack() as stack:
            self.place = self.holder.prepare_folder(self.desk.patch(self.key))
            stack.callback(worktrees.leave, self.place)
            self.turns = AgentTurns(self.holder, self.desk, self.agent, self.place, self)
            self.turns.restore_session(self.task["session_id"], self.task.get("seat") or {}, self.task["host"])
            result = self.turns.run()
            self.task = self.turns.task
            return self._apply(result)

    def _apply(self, result: TurnResult) -> SessionResult:
        match result.what:
            case "done":
                return self._complete(result.text, outcomes.account(result.context))
            case "failed":
                return self._fail(result.text, outcomes.account(result.context))
            case "moved":
                return self._moved()
            case "released":
                return self._release(result.text)
            case "stopped":
                self._park(result)
                return SessionResult("stopped", "it continues there next time")
            case "waiting":
                self._park(result)
                self.worker.deliver_later(self.key, self.place)
                return self._waiting()
        if result.what == "unable":
            self.worker.agent_unable(self.agent.name, result.text)
        return self._ask(result)

    # --- the context of the turns -------------------------------------------------------------------------------------

    def load(self) -> dict[str, Any]:
        return self.desk.show(self.key)

    def record(self, known: dict[str, Any]) -> None:
        """The task's row, which the turns write, is the only record."""

    def brief(self, task: dict[str, Any], again: str, role: str, signals: str) -> str:
        return briefs.brief(task, agent=self.agent.name, role=role, again=again, signals=signals)

    def signal_folder(self, folder: Path) -> Path:
        return folder

    def environment(self) -> dict[str, str]:
        return {}

    # --- results ------------------------------------------------------------------------------------------------------

    def _complete(self, summary: str, report: dict[str, Any]) -> SessionResult:
        worktrees.finish(self.place, self._message(summary, account(**report)))
        self.task = self.desk.complete(self.claim, summary, **report)
        self.worker.deliver(self.key, self.place, self.task)
        return self._finished(summary or "finished")

    def _message(self, *texts: str) -> str:
        """The commit message: the task, the summary, and the agent's report."""
        title = " ".join(self.task["title"].split())
        return "\n\n".join([f"{self.key}: {title}", *(text.strip()[:_BODY] for text in texts if text.strip())]) + "\n"

    def _finished(self, words: str) -> SessionResult:
        if self.task["awaiting"]:
            return self._waiting()
        return SessionResult("done", words if self.task["ended_at"] else f"{words} (a person reviews it before it counts)")

    def _waiting(self) -> SessionResult:
        return SessionResult("waiting", f"waits for a person ({self.task['awaiting']}): {first_question(self.task)}")

    def _ask(self, result: TurnResult) -> SessionResult:
        """The text of the signal becomes the question and a note."""
        self.turns.record_session()
        self._store_patch()
        also = result.fields.get("also", ())
        for note in (result.text, *(question["text"] for question in also)):
            if note:
                self.desk.note(self.key, note)
        text = result.text or KINDS[result.kind].prompt.format(title=self.task["title"])
        fields = {"context": result.context or None, **result.fields}
        self.desk.flag(self.key, text, result.reason or None, result.kind, claim=self.claim, **fields)  # type: ignore[arg-type]
        self.worker.deliver_later(self.key, self.place)
        more = f" (and {len(also)} more)" if also else ""
        return SessionResult("waiting", f"waits for a person ({result.kind}): {text.splitlines()[0]}{more}")

    def _fail(self, reason: str, report: dict[str, Any]) -> SessionResult:
        words = f"{reason}{_kept(worktrees.roll_back(self.place, self.key))}"
        self.desk.fail(self.claim, words, **report)
        return SessionResult("failed", words)

    def _release(self, reason: str) -> SessionResult:
        self._store_patch()
        self.desk.note(self.key, f"Given back: {reason}")
        task = self.desk.release(self.claim, reason)
        retries, person = task["max_retries"] - task["retry_count"], bool(task["awaiting"])
        more = "a person is asked" if person else f"{retries} more tr{'y' if retries == 1 else 'ies'}"
        return SessionResult("released", f"{reason.rstrip('.')}; {more}", person)

    def _park(self, result: TurnResult) -> None:
        self.turns.record_session(parked=result.parked)
        self._store_patch()
        self.desk.park(self.claim)

    def _store_patch(self) -> None:
        self.holder.store_patch(self.place.base or "", lambda: worktrees.patch_of(self.place))

    def _moved(self) -> SessionResult:
        """The agent moved the task with a tool or a command, or the claim is over."""
        claims = self.desk.history(self.key, action="claim", limit=1000)
        since = next(event["seq"] for event in reversed(claims) if event["data"]["set"]["epoch"] == self.claim["epoch"])
        ours = takewhile(lambda event: event["action"] not in ("claim", "expire"), self._events(since))  # until the next holder
        moves = {event["action"]: event for event in ours if event["actor"] == self.desk.who.name and _ends_claim(event)}
        if "complete" in moves:
            notes = [note["text"] for note in moves["complete"]["data"].get("notes", ())]
            delivery = worktrees.finish(self.place, self._message(self.task["summary"], *notes))
            self.worker.deliver(self.key, self.place, self.task)
            return self._finished(self.task["summary"] or delivery["words"])
        if "fail" in moves:
            return SessionResult("failed", self.task["reason"] + _kept(worktrees.roll_back(self.place, self.key)))
        if self.task["awaiting"] and moves:
            return self._waiting()
        if moves:
            return SessionResult("moved", "the agent moved it on itself")
        return SessionResult("lost", "the claim was lost; what was done stays in its folder")

    def _events(self, after: int) -> Iterator[dict[str, Any]]:
        while page := self.desk.history(self.key, after=after, limit=100):
            yield from page
            after = page[-1]["seq"]


def _ends_claim(event: dict[str, Any]) -> bool:
    return (event["data"].get("set") or {}).get("holder", "") is None


def _kept(ref: str | None) -> str:
    return f" (its work is kept as {ref})" if ref else ""

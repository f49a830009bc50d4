"""One `run()` of a script: the agent's turns, as one step of a run.

The step records its session, so that the same session gets the answer, on the same machine and in the same folder. Elsewhere a
fresh session begins with the whole history. Questions of other steps are not shown to it.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.canonical_json import seat_token
from ..core.errors import ClaimLost
from ..core.rules import KINDS
from ..display.terminal import length
from ..flow.agent_step import Turn
from ..flow.results import Interrupted, Released
from .agent_turns import AgentTurns, TurnResult
from .prompt import step_brief

if TYPE_CHECKING:
    from ..flow.agent_step import AgentCall
    from .agents.base import Agent
    from .git import worktrees
    from .run_session import RunSession


class StepSession:
    """Runs an agent for one step; also the `TurnContext` of its turns."""

    in_step = True

    def __init__(self, session: RunSession, call: AgentCall, agent: Agent, place: worktrees.Workplace) -> None:
        assert call.desk is not None
        self.call, self.session, self.agent, self.place, self.desk = call, session, agent, place, call.desk
        self.key, self.claim = session.key, session.claim
        self.step = {"step": call.path}
        self.patience = {name: value for name, value in call.patience.items() if value is not None}
        self.log_name = f"{self.claim['epoch']}-{call.path}.log"
        self.turns = AgentTurns(session.holder, self.desk, agent, place, self)
        self.turns.restore_session(call.session_id, call.seat, call.seat.get("host"))

    def run(self) -> Turn:
        """Run the turns, and report their begin and end."""
        progress, alone = self.session.worker.progress, self.call.branch.alone
        progress.begin(self.label, self.agent.name)
        progress.report(self.key, f"step {self.call.path}: {self.agent.name} {'goes on' if self.call.begun else 'begins'}")
        began = time.monotonic()
        try:
            result = self.turns.run()
        finally:
            if alone:
                progress.begin(self.key, self.session.script)
            else:
                progress.end(self.label)
        words = f"{_STATUS.get(result.what) or result.status or result.what} ({length(time.monotonic() - began, compact=True)})"
        more = result.text.splitlines()[0] if result.text and result.what in ("done", "said", "failed", "released") else ""
        progress.report(self.key, f"step {self.call.path}: {self.agent.name} {words}{': ' if more else ''}{more}")
        return self._turn(result)

    def _turn(self, result: TurnResult) -> Turn:
        """The result in the terms of the flow engine."""
        match result.what:
            case "unable":
                raise self.session.needs(self.call, result.text, result.reason or "access_required")
            case "released":
                raise Released(result.text)
            case "stopped":
                self.turns.record_session(parked=result.parked)
                raise self.call.branch.suspend("stop")
            case "moved":
                raise Interrupted(ClaimLost(f"The claim on {self.key} is over", hint="What was done stays in its folder."))
            case "waiting":
                self.turns.record_session(parked=result.parked)
                return Turn("waiting")
            case "ask" | "silent":
                text = result.text or KINDS[result.kind].prompt.format(title=self.turns.task["title"])
                return Turn("ask", "", text, result.kind, result.reason, result.context, result.fields)
        return Turn(result.what, result.status, result.text, result.kind, result.reason, result.context)

    # --- the context of the turns -------------------------------------------------------------------------------------

    @property
    def label(self) -> str:
        return self.key if self.call.branch.alone else f"{self.key} {self.call.path}"

    def load(self) -> dict[str, Any]:
        task = self.desk.show(self.key)
        self.call.journal.task = task
        questions = self.call.questions()
        waits = [q["kind"] for q in questions if q["status"] == "pending" and q["blocking"]]
        return {**task, "questions": questions, "awaiting": waits[0] if waits else None}

    def record(self, known: dict[str, Any]) -> None:
        seat = {"parked": False, **known["seat"], "host": known["host"]}
        if (self.call.session_id, self.call.seat) != (known["session_id"], {**self.call.seat, **seat}) or not self.call.begun:
            self.call.remember(known["session_id"], **seat)

    def brief(self, task: dict[str, Any], again: str, role: str, signals: str) -> str:
        return step_brief.brief(
            task, self.desk.steps(self.key), self.call.path, self.call.prompt, agent=self.agent.name, role=role, again=again,
            signals=signals,
        )  # fmt: skip

    def signal_folder(self, folder: Path) -> Path:
        branch = self.call.branch.prefix
        return folder / branch if branch and not self.place.own else folder

    def environment(self) -> dict[str, str]:
        """A token of its own: the agent can ask, and cannot write the journal."""
        return {"YOURTURN_STEP": self.call.path, "YOURTURN_CLAIM": seat_token(self.claim["token"])}


_STATUS = {
    "done": "DONE", "failed": "FAILED", "ask": "needs a person", "waiting": "needs a person", "silent": "needs a person",
    "unable": "cannot work", "broken": "was not understood", "released": "could not go on", "moved": "lost its claim",
}  # fmt: skip

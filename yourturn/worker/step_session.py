"""One `run()` of a script: an agent's turns, as a step of a run.

The step remembers its session, so that an answer finds it again, on the same machine and in the same folder; elsewhere a
fresh one begins with the whole history. Questions of other steps are not its own.
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
from .agent_turns import Came, Turns
from .prompt import step_brief

if TYPE_CHECKING:
    from ..flow.agent_step import AgentCall
    from .agents.base import Agent
    from .git import worktrees
    from .run_session import Running


class Step(Turns):
    in_step = True

    def __init__(self, running: Running, call: AgentCall, agent: Agent, place: worktrees.Workplace) -> None:
        self.call, self.running, self.step = call, running, {"step": call.path}
        self.patience = {name: value for name, value in call.patience.items() if value is not None}
        assert call.desk is not None
        super().__init__(running, call.desk, agent, place)
        self.sit_down(call.session_id, call.seat, call.seat.get("host"))

    def turn(self) -> Turn:
        """Its turns, with a line for whoever watches before and after."""
        progress, alone = self.worker.progress, self.call.branch.alone
        progress.begin(self.shown(), self.agent.name)
        progress.say(self.key, f"step {self.call.path}: {self.agent.name} {'goes on' if self.call.begun else 'begins'}")
        began = time.monotonic()
        try:
            came = self.take()
        finally:
            if alone:
                progress.begin(self.key, self.running.script)
            else:
                progress.end(self.shown())
        words = f"{_STATUS.get(came.what) or came.status or came.what} ({length(time.monotonic() - began, compact=True)})"
        more = came.text.splitlines()[0] if came.text and came.what in ("done", "said", "failed", "released") else ""
        progress.say(self.key, f"step {self.call.path}: {self.agent.name} {words}{': ' if more else ''}{more}")
        return self._said(came)

    def _said(self, came: Came) -> Turn:
        match came.what:
            case "unable":
                raise self.running.needs(self.call, came.text, came.reason or "access_required")
            case "released":
                raise Released(came.text)
            case "stopped":
                self.remember(parked=came.parked)
                raise self.call.branch.suspend("stop")
            case "moved":
                raise Interrupted(ClaimLost(f"The claim on {self.key} is over", hint="What was done stays in its folder."))
            case "waiting":
                self.remember(parked=came.parked)
                return Turn("waiting")
            case "ask" | "silent":
                text = came.text or KINDS[came.kind].prompt.format(title=self.task["title"])
                return Turn("ask", text=text, kind=came.kind, reason=came.reason, context=came.context, fields=came.fields)
        return Turn(came.what, came.status, came.text, came.kind, came.reason, came.context)

    # --- in its own way ------------------------------------------------------------------------------------------------

    def look(self) -> dict[str, Any]:
        task = self.desk.show(self.key)
        self.call.journal.task = task
        asked = self.call.questions()
        waits = [q["kind"] for q in asked if q["status"] == "pending" and q["blocking"]]
        return {**task, "questions": asked, "awaiting": waits[0] if waits else None}

    def remember(self, **more: Any) -> None:
        super().remember(signals=str(self.signal_folder()), **more)

    def write_down(self, known: dict[str, Any]) -> None:
        seat = {"parked": False, **known["seat"], "host": known["host"]}
        if (self.call.session_id, self.call.seat) != (known["session_id"], {**self.call.seat, **seat}) or not self.call.begun:
            self.call.remember(known["session_id"], **seat)
        super().write_down(known)

    def brief(self, task: dict[str, Any], again: str) -> str:
        steps, task = self.desk.steps(self.key), {**task, "branch": self.place.branch}
        return step_brief.brief(
            task, steps, self.call.path, self.call.prompt, agent=self.agent.name, role=self.role(), again=again,
            signals=self._shown_signals(),
        )  # fmt: skip

    def signal_folder(self) -> Path:
        folder, branch = super().signal_folder(), self.call.branch.prefix
        return folder / branch if branch and not self.place.own else folder

    def log(self) -> Path:
        return super().log().with_name(f"{self.claim['epoch']}-{self.call.path}.log")

    def shown(self) -> str:
        return self.key if self.call.branch.alone else f"{self.key} {self.call.path}"

    def more_environment(self) -> dict[str, str]:
        """The agent is not the script: it can ask, and cannot write the journal."""
        return {"YOURTURN_STEP": self.call.path, "YOURTURN_CLAIM": seat_token(self.claim["token"])}


_STATUS = {
    "done": "DONE", "failed": "FAILED", "ask": "needs a person", "waiting": "needs a person", "silent": "needs a person",
    "unable": "cannot work", "broken": "was not understood", "released": "could not go on", "moved": "lost its claim",
}  # fmt: skip

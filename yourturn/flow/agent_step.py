"""One `run()` of an agent inside a script, from its first turn to its final signal.

The host runs the agent's turns (`Host.turns`) and returns their outcome, in the terms of worker/signals/outcomes.py. This module
decides what the outcome means for the run: a result is returned to the script; a question suspends the run, and the answer goes
to the same session, which takes its next turns. One call of the script is one step, however many questions the agent asks.

    the answer to what it asked        | goes
    -----------------------------------+----------------------------------------------------
    approved, of a kind that ends work | to the script, as DONE: the person accepted the work
    rejected, of a kind that cancels   | to the script, as REJECTED
    anything else                      | to the agent's session
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..core.rules import KINDS, outcome
from .results import Released, Signal, refusal

if TYPE_CHECKING:
    from ..client import Client
    from .journal import Branch, Entry


class Turn(NamedTuple):
    """The outcome of an agent's turns."""

    what: str  #: done, failed, ask, waiting (the agent asked by itself and ended its session), said (a status of its own), broken
    status: str = ""
    text: str = ""
    kind: str = ""
    reason: str | None = None
    context: dict[str, Any] = {}
    fields: dict[str, Any] = {}  #: options of the question; `also`: further questions


class Host(Protocol):
    """The process that runs a script: the worker, or a test."""

    stop: threading.Event  #: set when the process stops: the next call with an effect suspends the run

    def turns(self, call: AgentCall) -> Turn:
        """Run the agent until it returns an outcome. May raise Released, Suspended('stop') or ClaimLost."""

    def leave(self) -> None:
        """The run is about to be parked: save the work in its folder."""

    def close(self, what: str, words: str) -> str:
        """The run is about to end as done, failed or stuck: deliver its work. Returns the text of the ending."""

    def say(self, text: str) -> None:
        """Show a line of the script's log."""

    def fork(self, path: str, branches: int) -> AbstractContextManager[None]:
        """Branches start in parallel: prepare their folders."""

    def join(self, path: str, branches: int) -> None:
        """All branches have succeeded: merge their work. May raise Suspended."""


class AgentCall:
    def __init__(self, branch: Branch, entry: Entry, agent: str, prompt: str | None, patience: dict[str, Any]) -> None:
        self.branch, self.entry, self.agent, self.prompt, self.patience = branch, entry, agent, prompt, patience
        self.journal = branch.journal
        self.session_id: str | None = (entry.step or {}).get("session_id")
        self.seat: dict[str, Any] = entry.seat
        self.desk: Client | None = None  #: the agent's own client, if the host set one

    @property
    def path(self) -> str:
        return self.entry.path

    @property
    def begun(self) -> bool:
        """The step was recorded before, so that there may be a session to resume."""
        return self.entry.step is not None

    def questions(self) -> list[dict[str, Any]]:
        return self.journal.questions(self.entry)

    def remember(self, session_id: str | None, **seat: Any) -> None:
        """Record the agent's session before it can fail."""
        self.session_id, self.seat = session_id, {**self.seat, **seat}
        self.journal.write(self.entry, "running", session_id=session_id, seat=self.seat)
        self.entry.step = {**(self.entry.step or {}), "status": "running", "seat": self.seat, "session_id": session_id}


def run_agent_step(call: AgentCall, human: bool) -> Signal:
    settled = _settled(call)
    if settled is not None:
        return settled
    try:
        turn = call.journal.host.turns(call)
    except Released as script_exit:
        raise call.journal.leave(script_exit) from None
    if turn.what == "waiting":
        raise _wait(call)
    if turn.what in ("ask", "broken") and human:
        call.journal.host.leave()
        # options of the script take precedence
        patience = {name: value for name, value in call.patience.items() if value is not None}
        fields = {"context": turn.context or None, **turn.fields, **patience}
        if "also" in fields:
            fields["also"] = [{**question, **patience} for question in fields["also"]]
        raise call.journal.ask(
            call.branch, call.entry, turn.text, turn.kind or "escalation", reason=turn.reason,
            seat={**call.seat, "by_signal": True}, session_id=call.session_id, desk=call.desk, **fields,
        )  # fmt: skip
    return signal_of(turn)


def _settled(call: AgentCall) -> Signal | None:
    """The signal that ends the call, if the answer to the agent's own signal does."""
    asked = call.questions()
    if not call.entry.waiting or not asked or not call.seat.get("by_signal"):
        return None
    group = [q for q in asked if q["group"] and q["group"] == asked[-1]["group"]] or asked[-1:]
    ends = [(q, outcome(q["kind"], verdict)) for q in group if (verdict := (q["response"] or {}).get("verdict"))]
    no = next((q for q, comes_to in ends if comes_to == "cancelled"), None)
    if no is not None:
        why = no["response"].get("text") or refusal(no["responded_by"], no["text"])
        return Signal(status="REJECTED", reason=why, by=no["responded_by"])
    if len(ends) == len(group) and all(comes_to == "done" for _, comes_to in ends):
        q = ends[-1][0]
        return Signal(status="DONE", summary=q["text"], message=q["response"].get("text") or "", by=q["responded_by"])
    return None


def _wait(call: AgentCall) -> BaseException:
    """The agent asked through a tool, and its session has ended: the question is open already."""
    journal = call.journal
    journal.host.leave()
    journal.write(call.entry, "waiting", session_id=call.session_id, seat={**call.seat, "by_signal": False})
    return call.branch.suspend("person")


def signal_of(turn: Turn) -> Signal:
    """The outcome as the script sees it. All statuses that mean success become DONE."""
    if turn.what == "done":
        return Signal({**turn.context, "status": "DONE", "summary": turn.text})
    if turn.what == "failed":
        return Signal({**turn.context, "status": "FAILED", "reason": turn.text})
    if turn.what == "broken":
        return Signal({**turn.context, "status": "ERROR", "reason": turn.text})
    if turn.what == "ask":
        return Signal({**turn.context, **turn.fields, "status": _asks(turn), "reason": turn.text})
    return Signal({"message": turn.text, **turn.context, "status": turn.status})


def _asks(turn: Turn) -> str:
    """NEEDS_HUMAN for every kind that asks for information; otherwise the kind's own status."""
    words = KINDS[turn.kind].signals
    return "NEEDS_HUMAN" if turn.kind in ("input", "escalation") else words[0]


__all__ = ["AgentCall", "Host", "Released", "Turn", "run_agent_step", "signal_of"]

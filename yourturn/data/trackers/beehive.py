"""beehive: .bh/backlog.json, one task per line. A question stands on its task, and so does the answer."""

from __future__ import annotations

from typing import Any

from ...core.model import APPROVED, DEFERRED, DONE, FAILED, READY
from .record import SHARED, Item, Record

STATES = {
    "open": READY, "in_progress": READY, "blocked": READY, "awaiting_input": READY, "closed": DONE, "deferred": DEFERRED,
    "failed": FAILED,
}  # fmt: skip


def item(r: Record) -> Item:
    state = r.choice("state", tuple(STATES))
    if state is None:
        r.wrong("state", "is missing")
    if state in ("in_progress", "blocked"):
        r.left["state"] = state
    updated = r.moment("updatedAt", keep=True)
    details, needs = r.text("details"), r.words("dependencies")
    args: dict[str, Any] = {
        "state": STATES.get(state or "", READY), "complexity": r.shared("size", SHARED["complexity"]),
        "type": r.shared("type", SHARED["type"]), "session_id": r.name("sessionId"), "summary": r.text("summary"),
        "acceptance": r.text("acceptance"), "created_at": r.moment("createdAt"), "ended_at": r.moment("closedAt") or updated,
        "notes": [{"author": f"agent:{r.tracker}", "text": details, "at": updated}] if details.strip() else [],
        "questions": _questions(r, state, updated),
    }  # fmt: skip
    if state == "failed":
        args["reason"] = args["summary"]
    if state == "blocked":
        args["blocked"] = True
    return r.item(args, r.text("parent") or None, needs)


def _questions(r: Record, state: str | None, updated: int | None) -> list[dict[str, Any]]:
    text, context = r.text("question"), r.text("questionContext")
    response, at = r.text("humanResponse"), r.moment("humanRespondedAt")
    asked: dict[str, Any] = {"kind": "input", "author": f"agent:{r.tracker}", "context": {"text": context} if context else None}
    asked |= {"text": text} if text.strip() else {}
    if state == "awaiting_input":
        if response:
            r.left["humanResponse"] = response
            r.warnings.append("has an answer and still awaits input: it is asked again here")
        return [{**asked, "at": updated}] if updated else [asked]
    if not text.strip():
        r.left |= {"humanResponse": response} if response else {}
        return []
    if response.strip():
        return [{**asked, "by": f"human:{r.tracker}", "verdict": APPROVED, "response": response, "closed_at": at}]
    return [{**asked, "by": "system", "why": "not asked any more"}]

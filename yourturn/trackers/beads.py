"""beads: issues.jsonl, one issue per line. `blocks` and `parent-child` become needs and parents; other ties are kept."""

from __future__ import annotations

from typing import Any

from ..core.model import CANCELLED, DEFERRED, DONE, READY
from .record import SHARED, Item, Record, moment, person

STATUSES = {
    "open": READY, "in_progress": READY, "blocked": READY, "hooked": READY, "pinned": DEFERRED, "deferred": DEFERRED,
    "closed": DONE, "tombstone": CANCELLED,
}  # fmt: skip


def item(r: Record) -> Item:
    status = r.choice("status", tuple(STATUSES))
    if status is None:
        r.wrong("status", "is missing")
    elif status not in ("open", "closed", "deferred"):
        r.left["status"] = status
    parent, needs = _ties(r)
    until = r.moment("defer_until", keep=True)
    text = r.text("notes")
    written = [{"author": f"agent:{r.tracker}", "text": text}] if text.strip() else []
    state = STATUSES.get(status or "", READY)
    args: dict[str, Any] = {
        "state": DEFERRED if until and state == READY else state, "wake_at": until if state in (READY, DEFERRED) else None,
        "type": r.known("issue_type", SHARED["type"]), "acceptance": r.text("acceptance_criteria"),
        "reason": r.text("close_reason"), "notes": written + _comments(r), "created_by": r.somebody("created_by"),
        "created_at": r.moment("created_at"), "ended_at": r.moment("closed_at"),
    }  # fmt: skip
    if status == "blocked":
        args["blocked"] = True
    return r.item(args, parent, needs)


def _ties(r: Record) -> tuple[str | None, list[str]]:
    needs: list[str] = []
    parents: list[str] = []
    kept = []
    for tie in r.take("dependencies", list, "a list") or []:
        other = tie.get("depends_on_id") if isinstance(tie, dict) else None
        if not isinstance(other, str) or not other:
            r.wrong("dependencies", "must be objects with depends_on_id and type")
        elif tie.get("type", "blocks") == "blocks":
            needs.append(other)
        elif tie["type"] == "parent-child" and not parents:
            parents.append(other)
        else:
            kept.append(tie)
    if kept:
        r.left["dependencies"] = kept
    return (parents[0] if parents else None), list(dict.fromkeys(needs))


def _comments(r: Record) -> list[dict[str, Any]]:
    found = []
    for comment in r.take("comments", list, "a list") or []:
        text = comment.get("text") if isinstance(comment, dict) else None
        if not isinstance(text, str):
            r.wrong("comments", "must be objects with author and text")
        elif text.strip():
            at = comment.get("created_at")
            by = person(str(comment.get("author") or ""), r.tracker)
            found.append({"author": by, "text": text, "at": moment(at) if isinstance(at, str) else None})
    return found

"""beads: issues.jsonl, one issue per line. Blocking dependencies become needs and parents; others are kept in `extra`.

beads also has records that are not work: agents, messages, convoys, and wisps, which are deleted after a run. They are imported
as deferred tasks without a date, so that nothing is lost and agents cannot claim them; a person can wake one. A molecule contains
its steps, which are work, so it becomes an epic.
"""

from __future__ import annotations

from typing import Any

from ...core.fields import TEXT_LIMIT
from ...core.model import CANCELLED, DEFERRED, DONE, ENDED, READY
from .record import SHARED, Item, Record, moment, person

STATUSES = {
    "open": READY, "in_progress": READY, "blocked": READY, "hooked": READY, "pinned": DEFERRED, "deferred": DEFERRED,
    "closed": DONE, "tombstone": CANCELLED,
}  # fmt: skip
#: Types of records that are not work.
ASIDE = (
    "message", "agent", "role", "rig", "convoy", "gate", "slot", "event", "merge-request", "formula", "config", "advice",
    "runbook",
)  # fmt: skip
#: Flags of records that are not work.
MARKS = {"ephemeral": "wisp", "wisp": "wisp", "is_template": "template"}
#: Dependencies that keep an issue from being ready.
BLOCKING = ("blocks", "conditional-blocks", "waits-for")


def item(r: Record) -> Item:
    status = r.choice("status", tuple(STATUSES))
    if status is None:
        r.wrong("status", "is missing")
    elif status not in ("open", "closed", "deferred"):
        r.left["status"] = status
    parent, needs = _dependencies(r)
    until = r.moment("defer_until", keep=True)
    text = r.text("notes")
    written = [{"author": f"agent:{r.tracker}", "text": text}] if text.strip() else []
    state = STATUSES.get(status or "", READY)
    type = r.shared("issue_type", SHARED["type"])
    issue_type = str(r.left.get("issue_type", ""))
    args: dict[str, Any] = {
        "state": DEFERRED if until and state == READY else state, "wake_at": until if state in (READY, DEFERRED) else None,
        "type": "epic" if issue_type == "molecule" and state not in ENDED else type, "acceptance": r.text("acceptance_criteria"),
        "reason": r.text("close_reason"), "notes": written + _comments(r), "created_by": r.actor("created_by"),
        "created_at": r.moment("created_at"), "ended_at": r.moment("closed_at"),
    }  # fmt: skip
    if status == "blocked":
        args["blocked"] = True
    _design(r)
    marked = next((word for mark, word in MARKS.items() if r.left.get(mark) is True), "")
    aside = issue_type if issue_type in ASIDE else "wisp" if "-wisp-" in str(r.left.get("id", "")) else marked
    if aside and state not in ENDED:
        why = f"a record of {r.tracker} ({aside}), not work"
        args |= {"state": DEFERRED, "wake_at": None, "reason": why, "blocked": False, "aside": aside}
    return r.item(args, parent, needs)


def _design(r: Record) -> None:
    """The design is part of what is to be done, so it stands below the description."""
    design, about = r.left.get("design"), r.left.get("description", "")
    if not isinstance(design, str) or not design.strip() or not isinstance(about, str):
        return
    whole = f"{about}\n\n## Design\n\n{design}".lstrip("\n")
    if len(whole) > TEXT_LIMIT:
        r.warnings.append("its design is too long to stand below the description: it is in extra")
        return
    r.left["description"] = whole
    del r.left["design"]


def _dependencies(r: Record) -> tuple[str | None, list[str]]:
    needs: list[str] = []
    parents: list[str] = []
    kept = []
    for dependency in r.take("dependencies", list, "a list") or []:
        other = dependency.get("depends_on_id") if isinstance(dependency, dict) else None
        if not isinstance(other, str) or not other:
            r.wrong("dependencies", "must be objects with depends_on_id and type")
            continue
        relation = dependency.get("type", BLOCKING[0])
        if relation in BLOCKING:
            needs.append(other)
        if relation == "parent-child" and not parents:
            parents.append(other)
        elif relation != BLOCKING[0]:
            kept.append(dependency)
    if kept:
        r.left["dependencies"] = kept
    return (parents[0] if parents else None), list(dict.fromkeys(needs))


def _comments(r: Record) -> list[dict[str, Any]]:
    notes = []
    for comment in r.take("comments", list, "a list") or []:
        text = comment.get("text") if isinstance(comment, dict) else None
        if not isinstance(text, str):
            r.wrong("comments", "must be objects with author and text")
        elif text.strip():
            at = comment.get("created_at")
            by = person(str(comment.get("author") or ""), r.tracker)
            notes.append({"author": by, "text": text, "at": moment(at) if isinstance(at, str) else None})
    return notes

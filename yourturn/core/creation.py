"""Creates tasks: new ones, and imports from another tracker with their history."""

from __future__ import annotations

from typing import Any

from .canonical_json import dumps
from .decision_builder import Draft
from .guards import right_size
from .journal import write
from .model import BLOCKED, CREATED, DEFERRED, ENDED, FAILED, READY, Note
from .outcomes import open_question, to_ready
from .questions import as_closed, make
from .task_fields import of_new_task


def create(d: Draft) -> None:
    _new_task(d)
    a = d.args
    to_ready(d)
    if a.get("draft") or d.settings["vetting"] or right_size(d):
        d.put(state=CREATED)
    if a.get("program"):
        write(d)
    if a.get("awaiting"):
        open_question(d, {"kind": a["awaiting"], "text": a.get("question"), "reviewer": a.get("reviewer")})


def _new_task(d: Draft) -> None:
    a, project = d.args, d.case.project
    number = project.next_number
    d.put(
        id=0, project_id=project.id, key=f"{project.key}-{number}", state=READY, return_state=None, outcome=None,
        parent_id=d.case.parent.id if d.case.parent else None, retry_count=0,
        session_id=None, workflow=a.get("workflow"), summary="", failure=None, reason="",
        external_id=a.get("external_id"), holder=None, claimed_by=None, epoch=0, claim_hash=None, lease=None,
        lease_expires_at=None, wake_at=None, due_at=None, event_count=0, event_head="", version=0,
        created_by=d.action.who.name, created_at=d.now, updated_at=d.now, ended_at=None, extra=None,
        host=None, seat=None, journal=0, **of_new_task(a),
    )  # fmt: skip
    if d.get("max_retries") is None:
        d.put(max_retries=d.settings["max_retries"])
    d.needs_added += [(0, other) for other in a.get("depends_on", ())]
    if d.case.parent:
        d.needs_added.append((d.case.parent.id, 0))
        d.touch.append(d.case.parent.id)


def import_(d: Draft) -> None:
    """A task as another tracker had it. `waits`: it depends on an open task, imported already or later in the same import."""
    _new_task(d)
    a = d.args
    created_at = min(a.get("created_at") or d.now, d.now)
    d.put(
        created_by=a.get("created_by") or d.action.who.name, created_at=created_at, summary=a.get("summary", ""),
        session_id=a.get("session_id"), extra=dumps(a["extra"]) if a.get("extra") else None,
    )  # fmt: skip
    d.data["created_at"] = created_at
    d.needs_added += [(other, 0) for other in a.get("dependents", ())]
    d.touch += a.get("dependents", ())
    d.notes += [Note(n["author"], n["text"], min(n.get("at") or created_at, d.now)) for n in a.get("notes", ())]
    to_ready(d)
    if a.get("waits"):
        d.put(state=BLOCKED)
    if d.settings["vetting"]:
        d.put(state=CREATED)
    if a["state"] == DEFERRED:
        was = CREATED if d.state == CREATED else READY
        d.put(state=DEFERRED, return_state=was, wake_at=a.get("wake_at"), reason=a.get("reason", ""))
    elif a["state"] in ENDED:
        ended_at = min(a.get("ended_at") or d.now, d.now)
        d.put(state=a["state"], ended_at=ended_at, reason=a.get("reason", ""))
        d.put(failure="error" if a["state"] == FAILED else None)
    for past in a.get("questions", ()):
        _asked_before(d, past, created_at)


def _asked_before(d: Draft, past: dict[str, Any], created_at: int) -> None:
    """A question from another tracker: closed there, or still open here."""
    asked_at = min(past.get("at") or created_at, d.now)
    if "by" not in past:
        open_question(d, past, by=past.get("author"), at=asked_at if "at" in past else None)
        return
    q = make(d, past, past.get("author") or d.action.who.name, tool=False)._replace(asked_at=asked_at)
    closed = as_closed(q, past, max(asked_at, min(past.get("closed_at") or d.now, d.now)))
    d.opened.append(closed)
    d.questions.append(closed)

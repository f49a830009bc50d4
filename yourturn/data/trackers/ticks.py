"""ticks: one JSON file per tick, in .tick/issues.

A tick waits for a person while it is open and `awaiting` something; `manual` is the old word for awaiting work. ticks clears a
verdict when it is processed, so a remaining one is history: it becomes an answered question. A remaining `awaiting` on a closed
tick becomes an unanswered question.

`after` is a preferred order that blocks nothing. This desk has no such order, so it is reported and kept in `extra`.

`notes` is one text. A line that begins with a date begins a note. `[human]` and `(from: name)` mark notes of people; the others
are of agents.
"""

from __future__ import annotations

import re
from typing import Any

from ...core.model import APPROVED, CANCELLED, DEFERRED, DONE, READY, VERDICTS
from ...core.rules import KINDS, outcome
from .record import SHARED, Item, Record, moment, person

_NOTE = re.compile(r"(?:(\d{4}-\d\d-\d\d \d\d:\d\d)(?::\d\d)? - )?(\[human\]|\(from: ([^)\n]{1,100})\))?[ ]?")
KINDS_THERE = tuple(kind for kind in KINDS if kind not in ("permission", "recovery"))


def item(r: Record) -> Item:
    status = r.choice("status", ("open", "in_progress", "closed"))
    awaiting, verdict = r.choice("awaiting", KINDS_THERE), r.choice("verdict", VERDICTS)
    requires = r.choice("requires", SHARED["requires"])
    awaiting = awaiting or ("work" if r.flag("manual") else None)
    if status is None:
        r.wrong("status", "is missing")
    if status == "in_progress":
        r.left["status"] = status
    closed, until = status == "closed", r.moment("defer_until", keep=True)
    kind = awaiting or requires or "approval"
    ended = CANCELLED if verdict and verdict != APPROVED and outcome(kind, verdict) == CANCELLED else DONE
    args: dict[str, Any] = {
        "state": ended if closed else DEFERRED if until else READY,
        "type": r.shared("type", SHARED["type"]), "requires": requires, "acceptance": r.text("acceptance_criteria"),
        "reason": r.text("closed_reason"),
        "notes": written(r.text("notes"), r.tracker), "wake_at": None if closed or awaiting else until,
        "created_by": r.actor("created_by"), "created_at": r.moment("created_at"), "ended_at": r.moment("closed_at"),
    }  # fmt: skip
    args["questions"] = _questions(r, kind, awaiting, verdict, closed, args)
    if awaiting and not closed:
        args["state"] = READY
    if not closed and isinstance(r.left.get("after"), list):
        names = ", ".join(map(str, r.left["after"]))
        r.warnings.append(f"should come after {names}, which is only preferred: kept in its extra fields, it does not wait")
    return r.item(args, r.text("parent") or None, r.words("blocked_by"))


def _questions(
    r: Record, kind: str, awaiting: str | None, verdict: str | None, closed: bool, args: dict[str, Any]
) -> list[dict[str, Any]]:
    notes: list[dict[str, Any]] = args["notes"]
    last = notes[-1] if notes else None
    people = [note for note in notes if note["author"].startswith("human:")]
    agents = [note for note in notes if note["author"].startswith("agent:")]
    updated = r.moment("updated_at", keep=True)
    if awaiting and not closed:  # waits for a person
        if verdict:
            r.left["verdict"] = verdict
            r.warnings.append(f"was {verdict} and still awaits {awaiting}: it is asked again here")
        asked = agents[-1] if agents and last is agents[-1] else None
        words = {"text": asked["text"]} if asked else {}
        at = (asked or {}).get("at") or updated
        return [{"kind": kind, "author": f"agent:{r.tracker}", **words, **({"at": at} if at else {})}]
    if verdict and outcome(kind, verdict) != "refused":
        by = people[-1]["author"] if people else f"human:{r.tracker}"
        response = last["text"] if last and people and last is people[-1] else ""
        return [{
            "kind": kind, "author": f"agent:{r.tracker}", "by": by, "verdict": verdict, "response": response,
            "closed_at": args["ended_at"] if closed else None,
        }]  # fmt: skip
    if awaiting:
        why = "closed without an answer"
        return [{"kind": kind, "author": f"agent:{r.tracker}", "by": "system", "closed_at": args["ended_at"], "why": why}]
    return []


def written(text: str, tracker: str) -> list[dict[str, Any]]:
    """The notes of one text, each with who and when."""
    notes: list[dict[str, Any]] = []
    for line in text.splitlines():
        mark = _NOTE.match(line)
        assert mark is not None
        date, marked, who = mark.groups()
        if date or marked or not notes:
            author = f"agent:{tracker}" if not marked else person(who or "", tracker) if who != "human" else f"human:{tracker}"
            notes.append({"author": author, "text": line[mark.end() :], "at": moment(date) if date else None})
        else:
            notes[-1]["text"] += "\n" + line
    return [{**note, "text": note["text"].strip()} for note in notes if note["text"].strip()]

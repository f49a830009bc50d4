"""One task in full, and what else a move moved."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.task_fields import TASK_FIELDS
from .commands import next_steps
from .labels import WORDS, as_text
from .lists import old_id, state_of
from .questions import question, result
from .runs import steps
from .terminal import ago, bold, cells, clock, columns, left, one_line, safe, width
from .terminal import quoted as with_bar


def task(
    t: dict[str, Any], holds_up: list[str] | None = None, effects: dict[str, list[dict[str, Any]]] | None = None,
    hint: Iterable[str] = (),
) -> list[str]:  # fmt: skip
    """One task in full. `effects`: where each answer to its open questions would lead. `hint`: what is to know before the end."""
    title, right = f"{bold(t['key'])}  {bold(one_line(t['title']))}", f"{state_of(t)}, priority {t['priority']}"
    gap = max(3, min(width(), 90) - cells(t["key"]) - 2 - cells(one_line(t["title"])) - cells(right))
    lines = [f"{title}{' ' * gap}{right}"]
    facts = [
        t["type"] if t["type"] != "task" else "",
        t["complexity"] if t["complexity"] != "medium" else "",
        f"old id {old}" if (old := old_id(t)) else "",
        f"branch {safe(t['branch'])}" if t["branch"] else "",
        tries(t),
        f"part of {t['parent']}" if t["parent"] else "",
        f"waits for {', '.join(t['blocked_by'])}" if t["blocked_by"] else "",
        f"holds up {', '.join(holds_up)}" if holds_up and (not t["ended_at"] or t["failure"]) else "",
        f"requires {t['requires']}" if t["requires"] else "",
        f"role {t['role']}" if t["role"] else "",
        f"put aside until {clock(t['wake_at'])}" if t["wake_at"] else "",
        *[f"{field.label.lower()} {safe(as_text(t[name]))}" for name, field in TASK_FIELDS.items() if field.label and t[name]],
    ]
    row = ""
    for fact in filter(None, facts):
        if row and cells(row) + cells(fact) + 3 > min(width(), 100):
            lines.append(row)
            row = ""
        row += f"   {fact}" if row else f"  {fact}"
    lines += [row] if row else []
    if t["claim"]:
        lines.append(
            f"  {safe(t['claim']['worker'])} {'holds' if t['awaiting'] else 'works on'} it, "
            f"{left(t['claim']['expires_at'])} on the lease (epoch {t['claim']['epoch']})"
        )
    for name in ("description", "acceptance", "summary"):
        if t[name].strip():
            lines += [
                "",
                *(["  " + name.capitalize()] if name != "description" else []),
                *("  " + line for line in safe(t[name]).splitlines()),
            ]
    if t["workflow"]:
        lines += ["", f"  {safe(t['workflow'])}", *steps(t, "  ")]
    if t["failure"] or t["reason"]:
        lines += ["", "  " + ": ".join(word for word in (t["failure"] or "", one_line(t["reason"])) if word)]
    for q in t["questions"]:
        if q["status"] == "pending":
            lines += ["", *question(q)]
    earlier = [["  " + q["id"], one_line(q["text"]), result(q)] for q in reversed(t["questions"]) if q["status"] != "pending"]
    if earlier:
        left_out = [f"  … {len(earlier) - 6} older: turn show {t['key']} --json"] if len(earlier) > 6 else []
        lines += ["", "  Earlier", *columns(earlier[:6], last=1), *left_out]
    if t["notes"]:
        lines += ["", "  Notes"]
        for note in t["notes"]:
            words = safe(note["text"]).splitlines() or [""]
            lines.append(f"  {safe(note['author'])}, {ago(note['at'])}")
            lines += with_bar(words, "  ") if note["author"].startswith("agent:") else [f"    {line}" for line in words]
    return [*lines, "", *hint, *next_steps(t, effects)]


def followed(reply: dict[str, Any]) -> list[str]:
    """The other tasks that a move moved: 'PROJ-2 and PROJ-3 are ready now.', 'PROJ-5 waits for a person now: Q7.'"""
    groups: dict[str, list[dict[str, Any]]] = {}
    for one in reply.get("follow_ups", ()):
        groups.setdefault(one["to"], []).append(one)
    lines = []
    for state, rows in groups.items():
        keys, many = [one["task"] for one in rows[:8]], len(rows) > 1
        last = f"{len(rows) - 8} more" if len(rows) > 8 else keys.pop()
        some = " and ".join(filter(None, (", ".join(keys), last)))
        asked = ", ".join(name for one in rows[:8] for name in one["questions"])
        words = f"wait{'' if many else 's'} for a person" if asked else f"{'are' if many else 'is'} {WORDS[state]}"
        lines.append(f"{some} {words} now{': ' if asked else ''}{asked}.")
    return lines


def tries(t: dict[str, Any]) -> str:
    """'try 2 of 3'; '' at the first."""
    used, most = t["retry_count"], t["max_retries"]
    if used < most:
        return f"try {used + 1} of {most}" if used else ""
    return "its only try is used" if most == 1 else f"all {most} tries are used"

"""`turn` without a command: whose turn is it?"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from ..core.permissions import is_mine
from . import parser
from .parser import connect
from .parser import show as out


def overview(a: Namespace) -> int:
    from .. import display

    with connect(a) as desk:
        questions = list(desk.waiting(project=a.project))
        others = [q for q in questions if not is_mine(desk.who, q["reviewer"])]
        groups = display.inbox_groups(q for q in questions if is_mine(desk.who, q["reviewer"]))
        order = [q["id"] for group in groups.values() for q in group]
        waiting = desk.inbox(project=a.project, mine=True, limit=200) if a.json else desk.inbox(only=order[:10])
        counts = desk.counts(project=a.project, workable=not a.json)
        waits = desk.waits(a.project, within=f"{display.SOON // 1_000_000}s")
        untaken = desk.unattended(a.project) if a.json else None
        worker = parser.unattended(a, desk)

    def lines() -> list[str]:
        from ..display import terminal

        agents = [*_others(others), *worker, _agents(counts)]
        if not order:
            return ["It's not your turn. Nothing waits for you.", *agents, 'Next: turn create "…" | turn list']
        rows = terminal.columns([row[:-1] for row in display.inbox_rows(waiting)], last=5)
        total = waits["mine"]
        more = [f"  {len(waiting)} of {total:,} shown; more: turn inbox --mine"] if len(waiting) < total else []
        return [terminal.bold(_head(waits)), "", *rows, *more, *agents, display.hint(f"turn show {order[0]}")]

    return out(a, {"waiting": waiting, "states": counts, "count": waits["mine"], "waits": waits, "unattended": untaken}, lines)


def _head(waits: dict[str, int]) -> str:
    from ..display import SOON

    total, soon = waits["mine"], waits["soon"]
    head = f"{total:,} {'question waits' if total == 1 else 'questions wait'} for you"
    if soon:
        head += f", {soon:,} {'times' if soon == 1 else 'time'} out within {SOON // 60_000_000} min"
    return head


def _others(questions: list[dict[str, Any]]) -> list[str]:
    """What waits for other people."""
    from ..display.terminal import safe

    if not questions:
        return []
    names = sorted({safe(q["reviewer"] or "a person") for q in questions})
    people = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if names[3:] else "")
    return [f"{len(questions):,} {'waits' if len(questions) == 1 else 'wait'} for {people}: turn inbox"]


def _agents(counts: dict[str, int]) -> str:
    working, ready = counts.get("working", 0), counts.get("ready", 0)
    agents = f"{working or 'No'} {'agents are' if working > 1 else 'agent is'} working"
    return f"{agents}, {ready:,} {'task is' if ready == 1 else 'tasks are'} ready."

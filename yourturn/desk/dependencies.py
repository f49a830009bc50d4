"""A task and its neighbours: what it waits for, and what waits for it."""

from __future__ import annotations

from typing import Any

from ..db.reads import Reader


def around(r: Reader, task: int, steps: int, most: int) -> dict[str, Any]:
    """Up along what is waited for, down along what waits: never sideways, so that a sibling's other needs stay out."""
    up, down, edges = {task}, {task}, set[tuple[int, int]]()
    known, more = {task}, False
    for _ in range(steps):
        if not up and not down:
            break
        found = r.neighbours(up | down)
        over = sorted({needs for one, needs in found if one in up} - known)
        under = sorted({one for one, needs in found if needs in down} - known)
        room = most - len(known)
        kept = [*over, *(one for one in under if one not in over)][:room]
        more = more or len({*over, *under}) > room
        known |= set(kept)
        edges |= {(one, needs) for one, needs in found if one in known and needs in known}
        up, down = set(over) & set(kept), set(under) & set(kept)
    if len(known) > 1:
        edges |= {(one, needs) for one, needs in r.neighbours(known) if one in known and needs in known}
    tasks = r.tasks(ids=sorted(known), limit=len(known))
    keys = {t.id: t.key for t in tasks}
    return {
        "task": keys[task],
        "tasks": [{"key": t.key, "title": t.title, "state": t.state} for t in tasks],
        "edges": sorted([keys[one], keys[needs]] for one, needs in edges),
        "more": more,
    }

"""Dependency graph around a task."""

from __future__ import annotations

from typing import Any

from ..db.reads import Reader


def around(r: Reader, task: int, steps: int, most: int) -> dict[str, Any]:
    """Up along dependencies and down along dependents, never sideways: other needs of a dependent are left out."""
    up, down, edges = {task}, {task}, set[tuple[int, int]]()
    included, more = {task}, False
    for _ in range(steps):
        if not up and not down:
            break
        near = r.neighbours(up | down)
        over = sorted({needs for waiter, needs in near if waiter in up} - included)
        under = sorted({waiter for waiter, needs in near if needs in down} - included)
        room = most - len(included)
        kept = [*over, *(other for other in under if other not in over)][:room]
        more = more or len({*over, *under}) > room
        included |= set(kept)
        edges |= {(waiter, needs) for waiter, needs in near if waiter in included and needs in included}
        up, down = set(over) & set(kept), set(under) & set(kept)
    if len(included) > 1:
        edges |= {(waiter, needs) for waiter, needs in r.neighbours(included) if waiter in included and needs in included}
    tasks = r.tasks(ids=sorted(included), limit=len(included))
    keys = {t.id: t.key for t in tasks}
    return {
        "task": keys[task],
        "tasks": [{"key": t.key, "title": t.title, "state": t.state} for t in tasks],
        "edges": sorted([keys[waiter], keys[needs]] for waiter, needs in edges),
        "more": more,
    }

"""Numbers about questions: how many, how fast, how often nobody answered."""

from __future__ import annotations

from typing import Any

from .core.model import ANSWERED, DAY, PENDING, SECOND, TIMEOUT, WITHDRAWN
from .core.words import iso

_FATES = (PENDING, ANSWERED, TIMEOUT, WITHDRAWN)


def summed(tasks: dict[str, int], asked: list[Any], now: int, days: int) -> dict[str, Any]:
    """`asked`: task, kind, status, asked at, responded at."""
    since = now - days * DAY
    kinds: dict[str, dict[str, Any]] = {}
    waits: dict[str, list[float]] = {}
    per_task: dict[int, int] = {}
    by_day: dict[str, dict[str, int]] = {}
    oldest = None
    for task, kind, status, at, responded in asked:
        row = kinds.setdefault(kind, dict.fromkeys(_FATES, 0))
        row[status] += 1
        if status == PENDING:
            oldest = max(oldest or 0.0, (now - at) / SECOND)
        if at < since:
            continue
        per_task[task] = per_task.get(task, 0) + 1
        day = by_day.setdefault(iso(at)[:10], {"asked": 0, "answered": 0, "timeout": 0})
        day["asked"] += 1
        if status == ANSWERED:
            waits.setdefault(kind, []).append((responded - at) / SECOND)
            day["answered"] += 1
        if status == TIMEOUT:
            day["timeout"] += 1
    for kind, row in kinds.items():
        closed = row[ANSWERED] + row[TIMEOUT]
        row["timeout_rate"] = round(row[TIMEOUT] / closed, 4) if closed else None
        row["answer_seconds"] = _times(waits.get(kind, []))
    totals = {fate: sum(row[fate] for row in kinds.values()) for fate in _FATES}
    counts = sorted(per_task.values())
    return {
        "days": days,
        "tasks": tasks,
        "questions": totals,
        "kinds": kinds,
        "answer_seconds": _times([one for some in waits.values() for one in some]),
        "questions_per_task": {
            "mean": round(sum(counts) / len(counts), 3) if counts else None, "most": counts[-1] if counts else 0,
            "tasks": len(counts),
        },
        "oldest_pending": oldest,
        "by_day": [{"day": day, **row} for day, row in sorted(by_day.items())],
    }  # fmt: skip


def _times(found: list[float]) -> dict[str, Any]:
    found = sorted(found)
    if not found:
        return {"count": 0, "mean": None, "median": None, "p90": None, "longest": None}
    return {
        "count": len(found), "mean": round(sum(found) / len(found), 3), "median": found[len(found) // 2],
        "p90": found[min(len(found) - 1, len(found) * 9 // 10)], "longest": found[-1],
    }  # fmt: skip

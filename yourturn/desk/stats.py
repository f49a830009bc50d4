"""Statistics of questions: counts, response times, timeouts, and the length of the queue over time.

They cover the last days and, for comparison, the period of the same length before. A question counts in the period in which it
was closed; an open one always counts.
"""

from __future__ import annotations

from bisect import bisect_right
from statistics import median
from typing import Any

from ..core.model import ANSWERED, DAY, PENDING, SECOND, TIMEOUT, WITHDRAWN
from ..core.time_format import iso

_FATES = (PENDING, ANSWERED, TIMEOUT, WITHDRAWN)
#: Maximum number of closed questions, and number of points of the queue's curve.
MOST, MOMENTS = 200_000, 96


def summed(tasks: dict[str, int], waiting: dict[str, int], asked: list[Any], now: int, days: int) -> dict[str, Any]:
    """`waiting`: the counts of the inbox. `asked`: rows of Reader.asked_since for twice the days."""
    since = now - days * DAY
    here = [row for row in asked if row[2] == PENDING or row[4] >= since]
    kinds: dict[str, dict[str, Any]] = {}
    waits: dict[str, list[float]] = {}
    per_task: dict[int, int] = {}
    by_day: dict[str, dict[str, int]] = {}
    for task, kind, status, at, responded, blocking in here:
        row = kinds.setdefault(kind, dict.fromkeys((*_FATES, "blocking"), 0))
        row[status] += 1
        row["blocking"] += status == PENDING and bool(blocking)
        if status == ANSWERED:
            waits.setdefault(kind, []).append((responded - at) / SECOND)
        if at < since:
            continue
        per_task[task] = per_task.get(task, 0) + 1
        day = by_day.setdefault(iso(at)[:10], {"asked": 0, "answered": 0, "timeout": 0})
        day["asked"] += 1
        if status in (ANSWERED, TIMEOUT):
            day[status] += 1
    for kind, row in kinds.items():
        row["timeout_rate"] = _rate(row)
        row["answer_seconds"] = _times(waits.get(kind, []))
    totals = {fate: sum(row[fate] for row in kinds.values()) for fate in _FATES}
    counts = sorted(per_task.values())
    return {
        "days": days,
        "tasks": tasks,
        "waiting": waiting,
        "questions": totals,
        "timeout_rate": _rate(totals),
        "kinds": kinds,
        "answer_seconds": _times([seconds for row in waits.values() for seconds in row]),
        "questions_per_task": {
            "mean": round(sum(counts) / len(counts), 3) if counts else None, "most": counts[-1] if counts else 0,
            "tasks": len(counts), "spread": _spread(counts),
        },
        "oldest_pending": max(((now - row[3]) / SECOND for row in asked if row[2] == PENDING), default=None),
        "oldest_blocking": max(((now - row[3]) / SECOND for row in asked if row[2] == PENDING and row[5]), default=None),
        "by_day": [{"day": day, **row} for day, row in sorted(by_day.items())],
        "queue": _queue(asked, since, now),
        "peak": _peak(asked, since, now),
        "before": {
            "answer_seconds": _times([(row[4] - row[3]) / SECOND for row in asked if row[2] == ANSWERED and row[4] < since]),
            "queue": [waiting for _, waiting in _moments(asked, since - days * DAY, since)],
        },
    }  # fmt: skip


def _rate(row: dict[str, int]) -> float | None:
    closed = row[ANSWERED] + row[TIMEOUT]
    return round(row[TIMEOUT] / closed, 4) if closed else None


def _spread(counts: list[int]) -> list[int]:
    """Number of tasks with 1, 2, 3, 4, and 5 or more questions."""
    return [sum(count == n for count in counts) for n in range(1, 5)] + [sum(count >= 5 for count in counts)]


def _queue(asked: list[Any], since: int, now: int) -> list[dict[str, Any]]:
    return [{"at": iso(at), "waiting": waiting} for at, waiting in _moments(asked, since, now)]


def _peak(asked: list[Any], since: int, until: int) -> int:
    """The maximum length of the queue, which is reached when a question is asked, or at the beginning."""
    began, ended = sorted(row[3] for row in asked), sorted(row[4] for row in asked if row[4] is not None)
    moments = [since, *began[bisect_right(began, since) : bisect_right(began, until)]]
    return max(bisect_right(began, at) - bisect_right(ended, at) for at in moments)


def _moments(asked: list[Any], since: int, until: int) -> list[tuple[int, int]]:
    """(time, length of the queue) at equal distances."""
    began = sorted(row[3] for row in asked)
    ended = sorted(row[4] for row in asked if row[4] is not None)
    moments = []
    for step in range(MOMENTS + 1):
        at = since + (until - since) * step // MOMENTS
        moments.append((at, bisect_right(began, at) - bisect_right(ended, at)))
    return moments


def _times(seconds: list[float]) -> dict[str, Any]:
    seconds = sorted(seconds)
    if not seconds:
        return {"count": 0, "mean": None, "median": None, "p90": None, "longest": None}
    return {
        "count": len(seconds), "mean": round(sum(seconds) / len(seconds), 3), "median": round(median(seconds), 3),
        "p90": seconds[min(len(seconds) - 1, len(seconds) * 9 // 10)], "longest": seconds[-1],
    }  # fmt: skip

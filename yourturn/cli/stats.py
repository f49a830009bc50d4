"""`turn stats`: how many questions were asked and how fast they were answered."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from .parser import connect
from .parser import show as out


def stats_args(p: Any) -> None:
    p.add_argument("--days", type=_days, default=30, metavar="N", help="how many days to count (30)")


def _days(text: str) -> int:
    from argparse import ArgumentTypeError

    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:5]) <= 3650:
        raise ArgumentTypeError(f"invalid number of days {text[:20]!a}: a whole number from 1 to 3650 is expected")
    return int(text)


def stats(a: Namespace) -> int:
    with connect(a) as desk:
        numbers = desk.stats(days=a.days)
    return out(a, numbers, lambda: _lines(numbers))


#: The columns of the table of kinds, the most important first.
IMPORTANCE = (4, 3, 2, 1, 5)


def _lines(numbers: dict[str, Any]) -> list[str]:
    from ..display.terminal import bold

    per_task, before = numbers["questions_per_task"], numbers["before"]["answer_seconds"]["median"]
    oldest, mean = numbers["oldest_pending"], per_task["mean"]
    median = numbers["answer_seconds"]["median"]
    head = [
        ["Waiting now", str(numbers["waiting"]["all"]), f"oldest {_time(oldest)}" if oldest else ""],
        ["Median answer", _time(median), f"{_time(before)} in the period before" if before is not None else ""],
        ["Timed out", _percent(numbers["timeout_rate"]), _count(numbers["questions"]["timeout"], "question")],
        ["Questions per task", "-" if mean is None else f"{mean:.1f}", f"{_count(per_task['tasks'], 'task')} with questions"],
    ]
    return [
        bold(f"The last {numbers['days']} days" if numbers["days"] > 1 else "The last day"),
        *_fit(head, [1, 2]),
        "",
        *(_fit(_table(numbers["kinds"]), IMPORTANCE) if numbers["kinds"] else ["  No questions."]),
        "Next: turn inbox",
    ]


def _table(kinds: dict[str, dict[str, Any]]) -> list[list[str]]:
    rows = [["  kind", "waiting", "answered", "timed out", "median", "slowest tenth"]]
    for kind, row in sorted(kinds.items()):
        times = row["answer_seconds"]
        counts = [str(row["pending"]), str(row["answered"]), _percent(row["timeout_rate"])]
        rows.append([f"  {kind}", *counts, _time(times["median"]), _time(times["p90"])])
    return rows


def _fit(rows: list[list[str]], importance: Sequence[int]) -> list[str]:
    """Drops the least important columns that do not fit: a number is never cut."""
    from ..display.terminal import columns, width

    for count in range(len(importance), 0, -1):
        lines = columns([[row[0], *(row[i] for i in sorted(importance[:count]))] for row in rows])
        if max(map(len, lines)) <= width():
            break
    return lines


def _count(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{round(100 * rate)} %"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"

"""Numbers on the command line."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from .parser import connect
from .parser import show as out


def stats_args(p: Any) -> None:
    p.add_argument("--days", type=_days, default=30, metavar="N", help="of the last so many days (30)")


def _days(text: str) -> int:
    from argparse import ArgumentTypeError

    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:5]) <= 3650:
        raise ArgumentTypeError("a whole number from 1 to 3650 is wanted")
    return int(text)


def stats(a: Namespace) -> int:
    with connect(a) as desk:
        found = desk.stats(days=a.days)
    return out(a, found, lambda: _lines(found))


#: The columns of the table behind the kind, the most telling first.
WORTH = (4, 3, 2, 1, 5)


def _lines(found: dict[str, Any]) -> list[str]:
    from ..display.terminal import bold

    per_task, before = found["questions_per_task"], found["before"]["answer_seconds"]["median"]
    oldest, mean = found["oldest_pending"], per_task["mean"]
    head = [
        ["Waiting now", str(found["waiting"]["all"]), f"oldest {_time(oldest)}" if oldest else ""],
        ["Median answer", _time(found["answer_seconds"]["median"]), f"{_time(before)} before" if before is not None else ""],
        ["Timed out", _share(found["timeout_rate"]), _many(found["questions"]["timeout"], "question")],
        ["Questions per task", "-" if mean is None else f"{mean:.1f}", f"{_many(per_task['tasks'], 'task')} asked"],
    ]
    return [
        bold(f"The last {found['days']} days" if found["days"] > 1 else "The last day"),
        *_fitting(head, [1, 2]),
        "",
        *(_fitting(_table(found["kinds"]), WORTH) if found["kinds"] else ["  Nothing was asked."]),
        "Next: turn inbox",
    ]


def _table(kinds: dict[str, dict[str, Any]]) -> list[list[str]]:
    rows = [["  kind", "waiting", "answered", "timed out", "median", "slowest tenth"]]
    for kind, row in sorted(kinds.items()):
        times = row["answer_seconds"]
        counts = [str(row["pending"]), str(row["answered"]), _share(row["timeout_rate"])]
        rows.append([f"  {kind}", *counts, _time(times["median"]), _time(times["p90"])])
    return rows


def _fitting(rows: list[list[str]], worth: Sequence[int]) -> list[str]:
    """As many columns as fit, the most telling first: a number is never cut."""
    from ..display.terminal import columns, width

    for many in range(len(worth), 0, -1):
        lines = columns([[row[0], *(row[at] for at in sorted(worth[:many]))] for row in rows])
        if max(map(len, lines)) <= width():
            break
    return lines


def _many(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _share(rate: float | None) -> str:
    return "-" if rate is None else f"{round(100 * rate)} %"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"

"""Numbers on the command line."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from .parse import connect
from .parse import show as out


def stats_args(p: Any) -> None:
    p.add_argument("--days", type=int, default=30, metavar="N", help="of the last so many days (30)")


def stats(a: Namespace) -> int:
    from ..core.errors import Usage

    if not 1 <= a.days <= 3650:
        raise Usage("--days must be between 1 and 3650")
    with connect(a) as desk:
        found = desk.stats(days=a.days)
    return out(a, found, lambda: _lines(found))


def _lines(found: dict[str, Any]) -> list[str]:
    from ..screen import bold, columns

    waiting, oldest = found["questions"]["pending"], found["oldest_pending"]
    mean, median = found["questions_per_task"]["mean"], found["answer_seconds"]["median"]
    head = [
        ["Waiting now", str(waiting), f"oldest {_time(oldest)}" if oldest else ""],
        ["Median answer", _time(median), f"{_time(found['before']['answer_seconds']['median'])} before"],
        ["Timed out", _share(found["timeout_rate"]), f"{found['questions']['timeout']} questions"],
        ["Questions per task", "-" if mean is None else f"{mean:.1f}", f"{found['questions_per_task']['tasks']} tasks asked"],
    ]
    rows = [
        [f"  {kind}", str(row["pending"]), str(row["answered"]), _share(row["timeout_rate"]),
         _time(row["answer_seconds"]["median"]), _time(row["answer_seconds"]["p90"])]
        for kind, row in sorted(found["kinds"].items())
    ]  # fmt: skip
    table = [["  kind", "waiting", "answered", "timed out", "median", "slowest tenth"], *rows]
    return [
        bold(f"The last {found['days']} days" if found["days"] > 1 else "The last day"),
        *columns(head),
        *(["", *columns(table)] if rows else []),
        "Next: turn inbox",
    ]


def _share(rate: float | None) -> str:
    return "-" if rate is None else f"{round(100 * rate)} %"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"

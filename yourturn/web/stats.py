"""The statistics page: four numbers, and the plots behind them."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.errors import Invalid
from . import charts, labels, times
from .inbox_summary import cached
from .request import Page, PageRequest, PageResult, address

#: By its name in the address: days, label, and the label of the time before.
RANGES = {"day": (1, "Day", "yesterday"), "week": (7, "Week", "last week"), "month": (30, "Month", "the month before")}


class Tile(NamedTuple):
    name: str
    value: str
    unit: str
    more: str
    tone: str = ""


def show(request: PageRequest) -> PageResult:
    client = request.client
    name, project = request.query.get("range", "week"), request.query.get("project", "").strip().upper()[:40]
    if name not in RANGES:
        raise Invalid(f"There is no range {name[:40]!a}", hint=f"Choose one of: {', '.join(RANGES)}.")
    days, _, before = RANGES[name]
    stats: dict[str, Any] = cached(request, ("stats", project, days), lambda: client.stats(project or None, days=days))
    kinds = stats["kinds"]
    return Page(
        "stats.html",
        {
            "here": "stats",
            "range": name,
            "ranges": [(key, row[1], _url(key, project)) for key, row in RANGES.items()],
            "before": before,
            "project": project,
            "projects": [(p["key"], _url(name, p["key"])) for p in client.projects()],
            "all": _url(name, ""),
            "tiles": tiles(stats),
            "queue": charts.queue(stats["queue"], stats["before"]["queue"], days, stats["peak"]),
            "answers": charts.answers(kinds),
            "timeouts": charts.timeouts(kinds),
            "per_task": charts.per_task(stats["questions_per_task"]["spread"]),
            "scale": [(charts.position(seconds), text) for seconds, text in charts.SCALE],
            "alert": round(100 * charts.ALERT / charts.highest_rate(kinds), 1),
            "days": days,
            "tasks": stats["questions_per_task"]["tasks"],
            "now": stats["waiting"]["all"],
            "any": any(stats["questions"].values()) or stats["waiting"]["all"],
        },
    )


def _url(name: str, project: str) -> str:
    return address("/stats", {"range": name if name != "week" else "", "project": project})


def tiles(stats: dict[str, Any]) -> list[Tile]:
    waiting, median = stats["waiting"]["all"], stats["answer_seconds"]["median"]
    oldest = f"oldest {times.elapsed(stats['oldest_pending'])}" if stats["oldest_pending"] else "It's not your turn"
    rate, mean = stats["timeout_rate"], stats["questions_per_task"]["mean"]
    value, unit = times.number_and_unit(median) if median is not None else ("–", "")
    alerts = [
        f"{kind.capitalize()} is over {round(100 * charts.ALERT)} %"
        for kind, row in stats["kinds"].items()
        if (row["timeout_rate"] or 0) > charts.ALERT
    ]
    timed_out, percent = ("–", "") if rate is None else (str(round(100 * rate)), "%")
    done = labels.plural(stats["tasks"].get("done", 0), "task")
    return [
        Tile("Waiting now", str(waiting), "", oldest),
        Tile("Median answer", value, unit, *_compared(median, stats["before"]["answer_seconds"]["median"])),
        Tile("Timed out", timed_out, percent, *((alerts[0], "bad") if alerts else ("of what was closed", ""))),
        Tile("Questions per task", "–" if mean is None else f"{mean:.1f}", "", f"{done} done"),
    ]


def _compared(now: float | None, before: float | None) -> tuple[str, str]:
    """The difference to the time before, and its tone."""
    if now is None:
        return "nothing answered yet", ""
    if before is None:
        return "nothing to compare with", ""
    difference = abs(now - before)
    if difference < max(1.0, before * 0.05):
        return "as before", ""
    duration = times.rough_duration(difference)
    return (f"{duration} faster", "good") if now < before else (f"{duration} slower", "")

"""Statistics: four numbers, and the plots behind them."""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import urlencode

from ..core.errors import Invalid
from . import charts, labels, view_models
from .inbox import remembered
from .request import Page, Shown, Visit

#: A word in the address, days, and how it is called.
RANGES = {"day": (1, "Day", "yesterday"), "week": (7, "Week", "last week"), "month": (30, "Month", "the month before")}


class Tile(NamedTuple):
    name: str
    value: str
    unit: str
    more: str
    tone: str = ""


def show(visit: Visit) -> Shown:
    client = visit.client
    name, project = visit.query.get("range", "week"), visit.query.get("project", "").strip().upper()[:40]
    if name not in RANGES:
        raise Invalid(f"There is no range {name[:40]!a}", hint=f"Choose one of: {', '.join(RANGES)}.")
    days, _, before = RANGES[name]
    found: dict[str, Any] = remembered(visit, ("stats", project, days), lambda: client.stats(project or None, days=days))
    kinds = found["kinds"]
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
            "tiles": tiles(found),
            "queue": charts.queue(found["queue"], found["before"]["queue"], days, found["peak"]),
            "answers": charts.answers(kinds),
            "timeouts": charts.timeouts(kinds),
            "per_task": charts.per_task(found["questions_per_task"]["spread"]),
            "scale": [(charts.along(at), text) for at, text in charts.SCALE],
            "alert": round(100 * charts.ALERT / charts.longest(kinds), 1),
            "days": days,
            "tasks": found["questions_per_task"]["tasks"],
            "now": found["waiting"]["all"],
            "any": any(found["questions"].values()) or found["waiting"]["all"],
        },
    )


def _url(name: str, project: str) -> str:
    asked = {key: value for key, value in (("range", name if name != "week" else ""), ("project", project)) if value}
    return f"/stats?{urlencode(asked)}" if asked else "/stats"


def tiles(found: dict[str, Any]) -> list[Tile]:
    waiting, median = found["waiting"]["all"], found["answer_seconds"]["median"]
    oldest = f"oldest {view_models.short(found['oldest_pending'])}" if found["oldest_pending"] else "It's not your turn"
    rate, mean = found["timeout_rate"], found["questions_per_task"]["mean"]
    value, unit = view_models.parted(median) if median is not None else ("–", "")
    bad = [
        f"{kind.capitalize()} is over {round(100 * charts.ALERT)} %"
        for kind, row in found["kinds"].items()
        if (row["timeout_rate"] or 0) > charts.ALERT
    ]
    done = found["tasks"].get("done", 0)
    return [
        Tile("Waiting now", str(waiting), "", oldest),
        Tile("Median answer", value, unit, *_compared(median, found["before"]["answer_seconds"]["median"])),
        Tile(
            "Timed out",
            "–" if rate is None else str(round(100 * rate)),
            "" if rate is None else "%",
            bad[0] if bad else "of what was closed",
            "bad" if bad else "",
        ),
        Tile("Questions per task", "–" if mean is None else f"{mean:.1f}", "", f"{labels.plural(done, 'task')} done"),
    ]


def _compared(now: float | None, before: float | None) -> tuple[str, str]:
    if now is None:
        return "nothing answered yet", ""
    if before is None:
        return "nothing to compare with", ""
    apart = abs(now - before)
    if apart < max(1.0, before * 0.05):
        return "as before", ""
    return (f"{view_models.about(apart)} faster", "good") if now < before else (f"{view_models.about(apart)} slower", "")

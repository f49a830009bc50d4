"""The activity page: the event log in words, newest first."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..client import Client
from ..core.errors import Invalid
from . import times
from .event_text import EventView, event_view, merge_steps
from .request import Page, PageRequest, PageResult, address, is_number

#: Events on one page.
PAGE = 60


class ActivityFilter(NamedTuple):
    project: str = ""
    task: str = ""
    actor: str = ""
    before: str = ""

    def url(self, **changes: Any) -> str:
        return address("/activity", self._replace(**{"before": "", **changes})._asdict())


def parse_filter(query: dict[str, str]) -> ActivityFilter:
    before = query.get("before", "")
    if before and not is_number(before):
        raise Invalid("before must be the number of an event")
    project, task, actor = (query.get(name, "").strip() for name in ("project", "task", "actor"))
    return ActivityFilter(project.upper()[:40], task[:60], actor[:120], before)


def show(request: PageRequest) -> PageResult:
    client, wanted = request.client, parse_filter(request.query)
    filters: dict[str, Any] = {}
    if wanted.project:
        filters["project"] = wanted.project
    if wanted.actor:
        filters["actor"] = _actor(client, wanted.actor)
    if wanted.before:
        filters["before"] = int(wanted.before)
    events = client.history(wanted.task or None, limit=PAGE + 1, **filters)[::-1]
    more, events = len(events) > PAGE, events[:PAGE]
    now = times.desk_time(client)
    days: list[tuple[str, list[EventView]]] = []
    for event in merge_steps(events):
        day = times.past_day(event["at"], now)
        if not days or days[-1][0] != day:
            days.append((day, []))
        days[-1][1].append(event_view(event, now))
    active = (("project", wanted.project), ("task", wanted.task), ("actor", wanted.actor))
    return Page(
        "activity.html",
        {
            "here": "activity",
            "wanted": wanted,
            "days": days,
            "chips": [(label, wanted.url(**{name: ""})) for name, label in active if label],
            "projects": [p["key"] for p in client.projects()],
            "older": wanted.url(before=events[-1]["seq"]) if more else "",
            "newest": wanted.url() if wanted.before else "",
        },
    )


def _actor(client: Client, name: str) -> str:
    """The actor of a name without its type: a person if there is one of that name, else an agent."""
    if ":" in name or name == "system":
        return name
    people = {user["name"] for user in client.users()} if client.who.is_person else set()
    return f"human:{name}" if name in people or name == client.who.name.partition(":")[2] else f"agent:{name}"

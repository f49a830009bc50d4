"""Activity: the event log in words, the newest first."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import urlencode

from ..core.errors import Invalid
from . import view_models
from .event_text import Told, gathered, told
from .request import Page, Shown, Visit

PAGE = 60


class Wish(NamedTuple):
    project: str = ""
    task: str = ""
    actor: str = ""
    before: str = ""

    def url(self, **other: Any) -> str:
        asked = {name: str(value) for name, value in self._replace(**{"before": "", **other})._asdict().items() if value}
        return f"/activity?{urlencode(asked)}" if asked else "/activity"


def show(visit: Visit) -> Shown:
    client, q = visit.client, visit.query
    wish = Wish(
        q.get("project", "").strip().upper()[:40],
        q.get("task", "").strip()[:60],
        q.get("actor", "").strip()[:120],
        q.get("before", ""),
    )
    if wish.before and not (wish.before.isascii() and wish.before.isdigit() and len(wish.before) < 19):
        raise Invalid("before must be the number of an event")
    filters: dict[str, Any] = {}
    if wish.project:
        filters["project"] = wish.project
    if wish.actor:
        filters["actor"] = wish.actor if ":" in wish.actor or wish.actor == "system" else _named(client, wish.actor)
    if wish.before:
        filters["before"] = int(wish.before)
    found = client.history(wish.task or None, limit=PAGE + 1, **filters)[::-1]
    more, found = len(found) > PAGE, found[:PAGE]
    now = view_models.now_of(client)
    days: list[tuple[str, list[Told]]] = []
    for event in gathered(found):
        day = _day(event["at"], now)
        if not days or days[-1][0] != day:
            days.append((day, []))
        days[-1][1].append(told(event, now))
    chips = [
        (words, wish.url(**{name: ""}))
        for name, words in (("project", wish.project), ("task", wish.task), ("actor", wish.actor))
        if words
    ]
    return Page(
        "activity.html",
        {
            "here": "activity",
            "wish": wish,
            "days": days,
            "chips": chips,
            "projects": [p["key"] for p in client.projects()],
            "older": wish.url(before=found[-1]["seq"]) if more else "",
            "newest": wish.url() if wish.before else "",
        },
    )


def _named(client: Any, name: str) -> str:
    """ana is a person, if there is one of that name; else an agent."""
    people = {user["name"] for user in client.users()} if client.who.is_person else set()
    return f"human:{name}" if name in people or name == client.who.name.partition(":")[2] else f"agent:{name}"


def _day(moment: str, now: int) -> str:
    then = datetime.fromisoformat(moment).astimezone()
    today = datetime.fromtimestamp(now / 1_000_000).astimezone()
    days = (today.date() - then.date()).days
    if days < 2:
        return ("Today", "Yesterday")[max(0, days)]
    return f"{then:%A}, {then.day} {then:%B}" + (f" {then.year}" if then.year != today.year else "")

"""Tasks: a board of lanes, a list with filters, and a form for a new one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..client import Client
from ..core import permissions
from ..core.errors import Invalid, YourturnError
from ..core.model import STATES
from ..core.task_fields import COMPLEXITIES, NEW, REQUIRES, TASK_FIELDS, TYPES
from . import inbox_summary, times, view_models
from .request import Page, PageRequest, PageResult, Redirect, address, idempotency_key

#: The lanes of the board, in their order; the rest lies below in a fold.
LANES = ("ready", "blocked", "working", "human", "review", "done")
REST = ("created", "deferred", "failed", "cancelled")
#: Cards in a lane, rows of a list.
CARDS, PAGE = 6, 50
#: So many of the newest tasks that are done are looked at for those that ended last.
RECENT = 50
PRIORITIES = {"0": "0, at once", "1": "1, soon", "2": "2, normal", "3": "3, later", "4": "4, some day"}


class Card(NamedTuple):
    key: str
    href: str
    title: str
    priority: int
    state: view_models.Tag
    ask: str  #: what a person is asked
    who: view_models.ActorView | None
    fact: str
    since: str
    time: times.Countdown | None
    when: times.Moment
    waits: str


class Lane(NamedTuple):
    name: str
    tag: view_models.Tag
    many: int
    cards: list[Card]
    more: int
    href: str
    empty: str


class Wish(NamedTuple):
    """What of the tasks is shown."""

    view: str = "board"
    project: str = ""
    state: str = ""
    priority: str = ""
    type: str = ""
    search: str = ""
    after: str = ""

    def url(self, **other: Any) -> str:
        new = self._replace(**{"after": "", **other})
        return address("/tasks", {**new._asdict(), "view": new.view if new.view != "board" else ""})


def wish_of(query: Mapping[str, str]) -> Wish:
    given = {name: query.get(name, "").strip()[:200] for name in Wish._fields}
    listed = given["view"] == "list" or any(given[name] for name in ("state", "priority", "type", "search", "after"))
    found = Wish(**{**given, "view": "list" if listed else "board", "project": given["project"].upper()})
    for name, words in (("state", (*STATES, "open")), ("priority", PRIORITIES), ("type", TYPES)):
        value = getattr(found, name)
        if value and value not in words:
            raise Invalid(f"There is no {name} {value[:40]!a}", hint=f"Choose one of: {', '.join(words)}.")
    return found


def card(t: Mapping[str, Any], now: int) -> Card:
    waiting = next((q for q in t["questions"] if q["status"] == "pending" and q["blocking"]), None)
    when = t["ended_at"] or t["updated_at"]
    ask = f"{view_models.kind(waiting).label}: {waiting['text']}" if waiting else ""
    return Card(
        t["key"],
        f"/tasks/{t['key']}",
        t["title"],
        t["priority"],
        view_models.state(t["state"]),
        ask,
        view_models.working_agent(t) if t["state"] == "working" else None,
        "" if ask else fact(t, now),
        times.elapsed_since(t["updated_at"], now) if t["claim"] else times.ago(when, now),
        times.countdown(waiting, now) if waiting else None,
        times.moment(when, now),
        times.elapsed_since(waiting["asked_at"], now) if waiting else "",
    )


def fact(t: Mapping[str, Any], now: int) -> str:
    """The one thing about a task that matters in the state that it is in, beside the time."""
    if t["blocked_by"]:
        rest = len(t["blocked_by"]) - 1
        return f"waits for {t['blocked_by'][0]}" + (f" and {rest} more" if rest else "")
    if t["wake_at"]:
        return f"until {times.future_day(t['wake_at'], now)}"
    if t["ended_at"]:
        return str(t["reason"] or "")
    return f"for {t['role']}" if t["role"] and not t["claim"] else ""


def _asking(request: PageRequest, project: str, now: int) -> list[Card]:
    """The lane of people: what runs out first stands first, as in the inbox."""
    order = inbox_summary.summarize(request, inbox_summary.InboxFilter(whose="all", project=project), now).order
    asking = dict.fromkeys(q["task"] for _, q in order if q["blocking"] and q["id"] != q["task"])
    return [card(request.client.show(key), now) for key in list(asking)[:CARDS]]


def show(request: PageRequest) -> PageResult:
    wish = wish_of(request.query)
    client = request.client
    common = {
        "here": "tasks",
        "wish": wish,
        "may": permissions.may(client.who, "create"),
        "projects": [p["key"] for p in client.projects()],
    }
    return _list(client, wish, common) if wish.view == "list" else _board(request, wish, common)


EMPTY = {
    "ready": "Nothing is ready.",
    "blocked": "Nothing waits for other tasks.",
    "working": "No agent is working.",
    "human": "It's not your turn.",
    "review": "Nothing to accept.",
    "done": "Nothing is done yet.",
}


def _board(request: PageRequest, wish: Wish, common: dict[str, Any]) -> PageResult:
    client, project = request.client, wish.project or None
    counts, now = client.counts(project), times.desk_time(client)
    lanes = []
    for name in LANES:
        count = counts.get(name, 0)
        if not count:
            cards = []
        elif name == "human":
            cards = _asking(request, wish.project, now)
        else:
            found = client.ready(project=project, limit=CARDS) if name == "ready" else []
            over = name == "done"
            found = found or client.list(state=name, project=project, limit=RECENT if over else CARDS, newest=over)
            if over:
                found = sorted(found, key=lambda t: str(t["ended_at"]), reverse=True)[:CARDS]
            cards = [card(t, now) for t in found]
        lanes.append(Lane(name, view_models.state(name), count, cards, count - len(cards), wish.url(state=name), EMPTY[name]))
    rest = [
        Lane(name, view_models.state(name), counts[name], [], counts[name], wish.url(state=name), "")
        for name in REST
        if counts.get(name)
    ]
    known = {"lanes": lanes, "rest": rest, "bare": not any(counts.values()), "unattended": client.unattended(project)}
    return Page("board.html", {**common, **known})


def _list(client: Client, wish: Wish, common: dict[str, Any]) -> PageResult:
    filters: dict[str, Any] = {name: value for name in ("type", "search") if (value := getattr(wish, name))}
    if wish.priority:
        filters["priority"] = int(wish.priority)
    found = client.list(
        state=wish.state or None, project=wish.project or None, after=wish.after or None, newest=True, limit=PAGE + 1, **filters
    )
    more, found = len(found) > PAGE, found[:PAGE]
    now, counts = times.desk_time(client), client.counts(wish.project or None)
    menu = [
        ("State", [(view_models.state(s).label, wish.url(state=s), counts[s], wish.state == s) for s in STATES if counts.get(s)]),
        ("Priority", [(words, wish.url(priority=p), "", wish.priority == p) for p, words in PRIORITIES.items()]),
        ("Type", [(t.capitalize(), wish.url(type=t), "", wish.type == t) for t in TYPES]),
    ]
    words = {
        "state": view_models.state(wish.state).label if wish.state in STATES else "Open",
        "priority": f"Priority {wish.priority}",
        "type": wish.type.capitalize(),
        "search": f"“{wish.search}”",
    }
    chips = [(words[name], wish.url(**{name: "", "view": "list"})) for name in words if getattr(wish, name)]
    return Page(
        "tasks.html",
        {
            **common,
            "cards": [card(t, now) for t in found],
            "menu": menu,
            "chips": chips,
            "first": wish.url() if wish.after else "",
            "more": wish.url(after=found[-1]["key"]) if more else "",
        },
    )


# --- a new one --------------------------------------------------------------------------------------------------------

#: What the form sends.
FIELDS = ("project", "depends_on", *NEW)
#: Lines of the form that show a plain text: field -> label.
PLAIN = {name: field.label for name, field in TASK_FIELDS.items() if field.label}


def new(request: PageRequest) -> PageResult:
    given = {name: request.query.get(name, "")[:300] for name in ("project", "title")}
    return _form(request, {"priority": "2", "type": "task", "complexity": "medium", **{k: v for k, v in given.items() if v}})


def _form(request: PageRequest, given: dict[str, str], wrong: str = "", hint: str = "", status: int = 200) -> PageResult:
    return Page(
        "new_task.html",
        {
            "here": "tasks",
            "given": {**dict.fromkeys(FIELDS, ""), **given},
            "wrong": wrong,
            "hint": hint,
            "key": idempotency_key(),
            "projects": request.client.projects(),
            "types": TYPES,
            "sizes": COMPLEXITIES,
            "gates": REQUIRES,
            "priorities": PRIORITIES,
            "plain": PLAIN,
            "worker": any(w["running"] for w in request.client.workers()) or request.client.counts().get("working", 0),
        },
        status,
    )


def create(request: PageRequest) -> PageResult:
    given = {name: request.field(name) for name in FIELDS}
    args: dict[str, Any] = {name: value for name, value in given.items() if value and name != "title"}
    args["depends_on"] = [word for word in re.split(r"[,\s]+", given["depends_on"]) if word]
    try:
        task = request.client.create(given["title"], key=request.key, draft=bool(request.field("draft")) or None, **args)
    except YourturnError as error:
        return _form(request, given, f"{error}.", error.hint, error.http_status)
    return Redirect(f"/tasks/{task['key']}")

"""Pages of tasks: the board, the filtered list, and the form for a new task."""

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

#: Lanes of the board, in their order, and states that are folded below it.
LANES = ("ready", "blocked", "working", "human", "review", "done")
REST = ("created", "deferred", "failed", "cancelled")
#: Cards of a lane, rows of a page of the list.
CARDS, PAGE = 6, 50
#: Number of the newest done tasks that are read to find those that ended last.
RECENT = 50
PRIORITIES = {"0": "0, at once", "1": "1, soon", "2": "2, normal", "3": "3, later", "4": "4, some day"}


class Card(NamedTuple):
    key: str
    href: str
    title: str
    priority: int
    state: view_models.Tag
    ask: str  #: the open question
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


class BoardFilter(NamedTuple):
    """The view and the filters, from the address of the page."""

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


def read_filter(query: Mapping[str, str]) -> BoardFilter:
    values = {name: query.get(name, "").strip()[:200] for name in BoardFilter._fields}
    listed = values["view"] == "list" or any(values[name] for name in ("state", "priority", "type", "search", "after"))
    wanted = BoardFilter(**{**values, "view": "list" if listed else "board", "project": values["project"].upper()})
    for name, words in (("state", (*STATES, "open")), ("priority", PRIORITIES), ("type", TYPES)):
        value = getattr(wanted, name)
        if value and value not in words:
            raise Invalid(f"There is no {name} {value[:40]!a}", hint=f"Choose one of: {', '.join(words)}.")
    return wanted


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
    """The most relevant fact about a task in its state."""
    if t["blocked_by"]:
        rest = len(t["blocked_by"]) - 1
        return f"waits for {t['blocked_by'][0]}" + (f" and {rest} more" if rest else "")
    if t["wake_at"]:
        return f"until {times.future_day(t['wake_at'], now)}"
    if t["ended_at"]:
        return str(t["reason"] or "")
    return f"for {t['role']}" if t["role"] and not t["claim"] else ""


def _asking(request: PageRequest, project: str, now: int) -> list[Card]:
    """The cards of the `human` lane, in the order of the inbox: the earliest timeout first."""
    order = inbox_summary.summarize(request, inbox_summary.InboxFilter(whose="all", project=project), now).order
    asking = dict.fromkeys(q["task"] for _, q in order if q["blocking"] and q["id"] != q["task"])
    return [card(request.client.show(key), now) for key in list(asking)[:CARDS]]


def show(request: PageRequest) -> PageResult:
    filter_ = read_filter(request.query)
    client = request.client
    common = {
        "here": "tasks",
        "filter": filter_,
        "may": permissions.may(client.who, "create"),
        "projects": [p["key"] for p in client.projects()],
    }
    return _list(client, filter_, common) if filter_.view == "list" else _board(request, filter_, common)


EMPTY = {
    "ready": "Nothing is ready.",
    "blocked": "Nothing waits for other tasks.",
    "working": "No agent is working.",
    "human": "It's not your turn.",
    "review": "Nothing to accept.",
    "done": "Nothing is done yet.",
}


def _board(request: PageRequest, filter_: BoardFilter, common: dict[str, Any]) -> PageResult:
    client, project = request.client, filter_.project or None
    counts, now = client.counts(project), times.desk_time(client)
    lanes = []
    for name in LANES:
        count = counts.get(name, 0)
        if not count:
            cards = []
        elif name == "human":
            cards = _asking(request, filter_.project, now)
        else:
            tasks = client.ready(project=project, limit=CARDS) if name == "ready" else []
            is_done = name == "done"
            tasks = tasks or client.list(state=name, project=project, limit=RECENT if is_done else CARDS, newest=is_done)
            if is_done:
                tasks = sorted(tasks, key=lambda t: str(t["ended_at"]), reverse=True)[:CARDS]
            cards = [card(t, now) for t in tasks]
        more, href = count - len(cards), filter_.url(state=name)
        lanes.append(Lane(name, view_models.state(name), count, cards, more, href, EMPTY[name]))
    rest = [
        Lane(name, view_models.state(name), counts[name], [], counts[name], filter_.url(state=name), "")
        for name in REST
        if counts.get(name)
    ]
    board = {"lanes": lanes, "rest": rest, "bare": not any(counts.values()), "unattended": client.unattended(project)}
    return Page("board.html", {**common, **board})


def _list(client: Client, filter_: BoardFilter, common: dict[str, Any]) -> PageResult:
    filters: dict[str, Any] = {name: value for name in ("type", "search") if (value := getattr(filter_, name))}
    if filter_.priority:
        filters["priority"] = int(filter_.priority)
    filters |= {"state": filter_.state or None, "project": filter_.project or None, "after": filter_.after or None}
    tasks = client.list(newest=True, limit=PAGE + 1, **filters)
    more, tasks = len(tasks) > PAGE, tasks[:PAGE]
    now, counts = times.desk_time(client), client.counts(filter_.project or None)
    states = [s for s in STATES if counts.get(s)]
    menu = [
        ("State", [(view_models.state(s).label, filter_.url(state=s), counts[s], filter_.state == s) for s in states]),
        ("Priority", [(words, filter_.url(priority=p), "", filter_.priority == p) for p, words in PRIORITIES.items()]),
        ("Type", [(t.capitalize(), filter_.url(type=t), "", filter_.type == t) for t in TYPES]),
    ]
    words = {
        "state": view_models.state(filter_.state).label if filter_.state in STATES else "Open",
        "priority": f"Priority {filter_.priority}",
        "type": filter_.type.capitalize(),
        "search": f"“{filter_.search}”",
    }
    chips = [(words[name], filter_.url(**{name: "", "view": "list"})) for name in words if getattr(filter_, name)]
    return Page(
        "tasks.html",
        {
            **common,
            "cards": [card(t, now) for t in tasks],
            "menu": menu,
            "chips": chips,
            "first": filter_.url() if filter_.after else "",
            "more": filter_.url(after=tasks[-1]["key"]) if more else "",
        },
    )


# --- a new task -------------------------------------------------------------------------------------------------------

#: Fields of the form.
FIELDS = ("project", "depends_on", *NEW)
#: Fields that the form shows as a line of text, with their labels.
PLAIN = {name: field.label for name, field in TASK_FIELDS.items() if field.label}


def new(request: PageRequest) -> PageResult:
    values = {name: request.query.get(name, "")[:300] for name in ("project", "title")}
    return _form(request, {"priority": "2", "type": "task", "complexity": "medium", **{k: v for k, v in values.items() if v}})


def _form(request: PageRequest, values: dict[str, str], wrong: str = "", hint: str = "", status: int = 200) -> PageResult:
    return Page(
        "new_task.html",
        {
            "here": "tasks",
            "values": {**dict.fromkeys(FIELDS, ""), **values},
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
    values = {name: request.field(name) for name in FIELDS}
    args: dict[str, Any] = {name: value for name, value in values.items() if value and name != "title"}
    args["depends_on"] = [word for word in re.split(r"[,\s]+", values["depends_on"]) if word]
    try:
        task = request.client.create(values["title"], key=request.key, draft=bool(request.field("draft")) or None, **args)
    except YourturnError as error:
        return _form(request, values, f"{error}.", error.hint, error.http_status)
    return Redirect(f"/tasks/{task['key']}")

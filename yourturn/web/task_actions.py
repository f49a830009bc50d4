"""The moves of a task as buttons. Which of them somebody may make, the law says; here are only their words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from ..core.errors import Changed, NotFound, YourturnError
from ..core.model import PENDING
from ..display import followed, person
from . import labels, page_version
from .request import Page, PageRequest, PageResult, Redirect, idempotency_key


class Words(NamedTuple):
    verb: str
    effect: str
    style: str = ""  #: go, end
    asks: str = ""  #: what is asked for before it is made; without it, the button makes it at once
    field: str = "reason"
    needs: bool = False
    sure: str = ""  #: the button that makes it
    over: tuple[str, ...] = ()  #: not offered beside these


#: In the order in which they stand.
WORDS: dict[str, Words] = {
    "vet": Words("Vet", "agents may take it", "go"),
    "hand_back": Words("Hand back to agents", "its open questions are taken off the desk"),
    "resolve": Words("Mark as done…", "you settle it yourself", asks="What was done? (optional)", sure="Mark {key} as done"),
    "wake": Words("Wake", "it goes on", "go"),
    "reopen": Words("Reopen…", "agents may take it again", asks="Why? (optional)", sure="Reopen {key}"),
    "rewind": Words("Run again", "the script goes on from where it was"),
    "release": Words(
        "Take it from {worker}…", "another can take it; costs a try", asks="Why? (optional)", sure="Take {key} from {worker}"
    ),
    "defer": Words(
        "Put aside…",
        "until a date, or until somebody wakes it",
        asks="Until when? (optional, like 2d or 2027-01-07)",
        field="until",
        sure="Put {key} aside",
    ),
    "close": Words("Close as done…", "whatever its state", asks="Why? (optional)", sure="Close {key} as done", over=("resolve",)),
    "stop": Words("Stop as stuck…", "ends {key} as failed", "end", asks="Why? (optional)", sure="Stop {key}"),
    "cancel": Words("Cancel task…", "ends {key}", "end", asks="Why? (optional)", sure="Cancel task {key}"),
}


class Move(NamedTuple):
    name: str
    verb: str
    effect: str
    style: str
    href: str
    asks: str


def moves(request: PageRequest, task: Mapping[str, Any]) -> list[Move]:
    may = request.client.moves(task["key"]) if request.client.who.is_person else []
    return [
        Move(name, _fill(w.verb, task), _fill(w.effect, task), w.style, f"/tasks/{task['key']}/{name}", w.asks)
        for name, w in WORDS.items()
        if name in may and not any(other in may for other in w.over)
    ]


def _fill(text: str, task: Mapping[str, Any]) -> str:
    worker = person(task["claim"]["worker"]) if task["claim"] else "its worker"
    return text.replace("{key}", task["key"]).replace("{worker}", worker)


def asking(name: str) -> Callable[[PageRequest], PageResult]:
    """The page that asks before a move is made: who stops, and what no longer waits."""

    def show(request: PageRequest) -> PageResult:
        task = _task(request)
        if name not in request.client.moves(task["key"]):
            return Redirect(f"/tasks/{task['key']}")
        return Page("move.html", _context(request, name, task))

    return show


def _context(request: PageRequest, name: str, task: Mapping[str, Any], wrong: str = "") -> dict[str, Any]:
    w = WORDS[name]
    waits = request.client.holds_up(task["key"])
    facts = []
    if w.style == "end" or name in ("resolve", "close"):
        if task["claim"]:
            facts.append(f"{person(task['claim']['worker'])} stops.")
        open_ = sum(q["status"] == "pending" for q in task["questions"])
        if open_:
            facts.append(f"{labels.plural(open_, 'open question')} {'is' if open_ == 1 else 'are'} taken off the desk.")
        if waits and name != "stop":
            facts.append(f"{', '.join(waits[:6])} no longer wait{'s' * (len(waits) == 1)} for it.")
        if waits and name == "stop":
            facts.append(f"{', '.join(waits[:6])} wait{'s' * (len(waits) == 1)} for it; a person is asked how to go on.")
    return {
        "here": "tasks",
        "task": task,
        "name": name,
        "verb": _fill(w.verb, task).rstrip("…"),
        "effect": _fill(w.effect, task),
        "asks": w.asks,
        "field": w.field,
        "needs": w.needs,
        "sure": _fill(w.sure or w.verb, task),
        "ends": w.style == "end",
        "facts": facts,
        "wrong": wrong,
        "key": idempotency_key(),
        "as_of": page_version.mark(task),
        "given": request.field(w.field),
    }


def making(name: str) -> Callable[[PageRequest], PageResult]:
    def make(request: PageRequest) -> PageResult:
        task = _task(request)
        w = WORDS[name]
        given = request.field(w.field).strip() if w.asks else ""
        if w.needs and not given:
            return Page("move.html", _context(request, name, task, "Say what should change."), 422)
        more = {w.field: given} if given else {}
        try:
            reply = page_version.move(
                request, task["key"], lambda client: getattr(client, name)(task["key"], key=request.key, **more)
            )
        except Changed as error:
            told = {"title": error.message, "text": f"{error.reason}. Nothing was done.".lstrip(". "), "hint": error.hint}
            return Page("notice.html", {"here": "tasks", **told, "back": f"/tasks/{task['key']}"}, error.http_status)
        return Redirect(f"/tasks/{task['key']}?did={name}{also(reply)}")

    return make


def _task(request: PageRequest) -> dict[str, Any]:
    found = request.client.show(request.path_params["key"])
    if "key" not in found:
        raise NotFound(f"There is no task {request.path_params['key'][:60]}", hint="A question is at /questions/…")
    return found


DID = {
    "vet": "Vetted.",
    "hand_back": "Handed back to agents.",
    "resolve": "{key} is done.",
    "wake": "Woken.",
    "reopen": "Reopened.",
    "rewind": "The run goes on.",
    "release": "Given back.",
    "defer": "Put aside.",
    "close": "Closed as done.",
    "stop": "Stopped.",
    "cancel": "Cancelled.",
    "note": "Noted.",
}


def did(request: PageRequest, key: str) -> str:
    told = DID.get(request.query.get("did", ""), "").replace("{key}", key)
    return " ".join([told, *moved_with(request)]) if told else ""


def also(reply: Mapping[str, Any]) -> str:
    """For the address of the page after a move: the other tasks that it moved."""
    keys = [str(one["task"]) for one in reply.get("follow_ups", ())]
    return f"&also={','.join(keys[:MOST])}" if keys else ""


MOST = 12  #: other tasks that are told of


def moved_with(request: PageRequest) -> list[str]:
    """Of these tasks, how they stand now."""
    rows = []
    for key in request.query.get("also", "").split(",")[:MOST] if request.query.get("also") else ():
        with suppress(YourturnError):
            found = request.client.show(key)
            asked = [q["id"] for q in found["questions"] if q["status"] == PENDING and q["blocking"]]
            rows.append({"task": found["key"], "to": found["state"], "questions": asked})
    return followed({"follow_ups": rows})

"""Moves of a task as buttons: their texts, the page that confirms one, and its request. core/ decides which are allowed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from ..core.errors import Changed, NotFound, YourturnError
from ..core.model import PENDING
from ..display import followed, person
from . import labels, page_version
from .request import Page, PageRequest, PageResult, Redirect, idempotency_key


class ActionText(NamedTuple):
    verb: str
    effect: str
    style: str = ""  #: go, end
    asks: str = ""  #: the field of the page that confirms the move; without it, the button makes the move at once
    field: str = "reason"
    needs: bool = False
    sure: str = ""  #: the button of that page
    over: tuple[str, ...] = ()  #: moves that hide this one if they are allowed


#: By verb, in the order of the buttons.
ACTIONS: dict[str, ActionText] = {
    "vet": ActionText("Vet", "agents may take it", "go"),
    "hand_back": ActionText("Hand back to agents", "its open questions are cancelled"),
    "resolve": ActionText(
        "Mark as done…", "you settle it yourself", asks="What was done? (optional)", sure="Mark {key} as done"
    ),
    "wake": ActionText("Wake", "it goes on", "go"),
    "reopen": ActionText("Reopen…", "agents may take it again", asks="Why? (optional)", sure="Reopen {key}"),
    "rewind": ActionText("Run again", "the script goes on from where it was"),
    "release": ActionText(
        "Take it from {worker}…", "another can take it; costs a try", asks="Why? (optional)", sure="Take {key} from {worker}"
    ),
    "defer": ActionText(
        "Put aside…",
        "until a date, or until a person wakes it",
        asks="Until when? (optional, like 2d or 2027-01-07)",
        field="until",
        sure="Put {key} aside",
    ),
    "close": ActionText(
        "Close as done…", "whatever its state", asks="Why? (optional)", sure="Close {key} as done", over=("resolve",)
    ),
    "stop": ActionText("Stop as stuck…", "ends {key} as failed", "end", asks="Why? (optional)", sure="Stop {key}"),
    "cancel": ActionText("Cancel task…", "ends {key}", "end", asks="Why? (optional)", sure="Cancel task {key}"),
}


class TaskAction(NamedTuple):
    name: str
    verb: str
    effect: str
    style: str
    href: str
    asks: str


def task_actions(request: PageRequest, task: Mapping[str, Any]) -> list[TaskAction]:
    allowed = request.client.moves(task["key"]) if request.client.who.is_person else []
    return [
        TaskAction(name, _fill(w.verb, task), _fill(w.effect, task), w.style, f"/tasks/{task['key']}/{name}", w.asks)
        for name, w in ACTIONS.items()
        if name in allowed and not any(other in allowed for other in w.over)
    ]


def _fill(text: str, task: Mapping[str, Any]) -> str:
    worker = person(task["claim"]["worker"]) if task["claim"] else "its worker"
    return text.replace("{key}", task["key"]).replace("{worker}", worker)


def confirm_page(name: str) -> Callable[[PageRequest], PageResult]:
    """The handler of the page that confirms a move: it names the worker that stops and the tasks that no longer wait."""

    def show(request: PageRequest) -> PageResult:
        task = _task(request)
        if name not in request.client.moves(task["key"]):
            return Redirect(f"/tasks/{task['key']}")
        return Page("move.html", _context(request, name, task))

    return show


def _context(request: PageRequest, name: str, task: Mapping[str, Any], wrong: str = "") -> dict[str, Any]:
    w = ACTIONS[name]
    waits = request.client.holds_up(task["key"])
    facts = []
    if w.style == "end" or name in ("resolve", "close"):
        if task["claim"]:
            facts.append(f"{person(task['claim']['worker'])} stops.")
        open_ = sum(q["status"] == "pending" for q in task["questions"])
        if open_:
            facts.append(f"{labels.plural(open_, 'open question')} {'is' if open_ == 1 else 'are'} cancelled.")
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
        "text": request.field(w.field),
    }


def make_move(name: str) -> Callable[[PageRequest], PageResult]:
    """The handler of the request that makes a move."""

    def make(request: PageRequest) -> PageResult:
        task = _task(request)
        w = ACTIONS[name]
        text = request.field(w.field).strip() if w.asks else ""
        if w.needs and not text:
            return Page("move.html", _context(request, name, task, "Write what should change."), 422)
        more = {w.field: text} if text else {}
        try:
            reply = page_version.move(
                request, task["key"], lambda client: getattr(client, name)(task["key"], key=request.key, **more)
            )
        except Changed as error:
            notice = {"title": error.message, "text": f"{error.reason}. Nothing was done.".lstrip(". "), "hint": error.hint}
            return Page("notice.html", {"here": "tasks", **notice, "back": f"/tasks/{task['key']}"}, error.http_status)
        return Redirect(f"/tasks/{task['key']}?did={name}{also(reply)}")

    return make


def _task(request: PageRequest) -> dict[str, Any]:
    task = request.client.show(request.path_params["key"])
    if "key" not in task:
        raise NotFound(f"There is no task {request.path_params['key'][:60]}", hint="A question is at /questions/…")
    return task


DONE_TEXTS = {
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


def done_text(request: PageRequest, key: str) -> str:
    """The message after a move, with the other tasks that it moved."""
    text = DONE_TEXTS.get(request.query.get("did", ""), "").replace("{key}", key)
    return " ".join([text, *moved_with(request)]) if text else ""


def also(reply: Mapping[str, Any]) -> str:
    """The query parameter of the page after a move: the keys of the other tasks that it moved."""
    keys = [str(row["task"]) for row in reply.get("follow_ups", ())]
    return f"&also={','.join(keys[:MAX_KEYS])}" if keys else ""


MAX_KEYS = 12  #: other tasks that the message names


def moved_with(request: PageRequest) -> list[str]:
    """The current states of the tasks that a move has moved, as texts."""
    rows = []
    for key in request.query.get("also", "").split(",")[:MAX_KEYS] if request.query.get("also") else ():
        with suppress(YourturnError):
            task = request.client.show(key)
            asked = [q["id"] for q in task["questions"] if q["status"] == PENDING and q["blocking"]]
            rows.append({"task": task["key"], "to": task["state"], "questions": asked})
    return followed({"follow_ups": rows})

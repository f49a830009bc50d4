"""Tasks, questions and what is around them. Each handler says one thing to the client and shows what came of it."""

from __future__ import annotations

from inspect import signature
from typing import Any, NamedTuple

from ..client import Client
from ..core import fields as f
from ..core.actions import VERBS
from ..core.errors import Invalid, NotFound
from ..core.model import PENDING
from ..core.references import QUESTION
from ..core.task_fields import UPDATES
from . import jobs
from .request import CLAIM, Answer, Call, page
from .route_table import ALIASES

# --- tasks ------------------------------------------------------------------------------------------------------------

#: Filters of the list of tasks.
TASK_FILTERS = (
    "state",
    "awaiting",
    "epic",
    "parent",
    "project",
    "role",
    "label",
    "type",
    "priority",
    "requires",
    "search",
    "ready",
)
CREATE = tuple(name for name in VERBS["create"].args if name not in ("program",))


def list_tasks(call: Call) -> Answer:
    call.only(*TASK_FILTERS, "cursor", "limit", "workspace_id")
    limit = call.limit()
    plain = {
        name: call.text(name) for name in ("state", "epic", "parent", "project", "role", "label", "type", "requires", "search")
    }
    filters: dict[str, Any] = {name: value for name, value in plain.items() if value is not None}
    if "awaiting" in call.query:
        filters["awaiting"] = call.query["awaiting"] if call.query["awaiting"] not in ("", "true") else True
    if "priority" in call.query:
        filters["priority"] = call.number("priority", 0, 4, 2)
    if call.query.get("ready") in ("", "1", "true", "yes"):
        filters["workable"] = True
    found = call.client.list(after=call.text("cursor"), limit=limit, **filters)
    return Answer(page(found, limit, "tasks", "key"))


def create_task(call: Call) -> Answer:
    body = call.body(*CREATE)
    title = body.pop("title", None)
    if title is None:
        raise Invalid("A task needs a title")
    needs = _names(body.pop("depends_on", []), "depends_on")
    for name in ("parent", "project"):
        if name in body and not isinstance(body[name], str):
            raise Invalid(f"{name} must be text")
    made = call.client.create(title, depends_on=needs, key=call.key, **body)
    return Answer(made, 201, (("Location", f"/api/tasks/{made['key']}"),))


def show_task(call: Call) -> Answer:
    return Answer(_task(call))


def _task(call: Call) -> dict[str, Any]:
    """A task, not a question: their names differ, and so do their routes."""
    found = call.client.show(call.path["key"])
    if "key" not in found:
        raise NotFound(f"There is no task {call.path['key'][:60]}", hint="A question is at /api/questions/…")
    return found


def task_events(call: Call) -> Answer:
    call.only("cursor", "limit")
    limit = call.limit()
    found = call.client.history(_task(call)["key"], after=call.number("cursor", 0, 2**62, 0), limit=limit)
    return Answer(page(found, limit, "events", "seq"))


def task_output(call: Call) -> Answer:
    call.only("cursor", "limit")
    limit = call.limit()
    found = call.client.output(_task(call)["key"], after=call.number("cursor", 0, 2**62, 0), limit=limit)
    return Answer(page(found, limit, "lines", "id"))


# --- every verb -------------------------------------------------------------------------------------------------------


class Deed(NamedTuple):
    """How a verb is said: the client's method, the names of what it takes, and under which the claim's token goes."""

    method: str
    takes: tuple[str, ...] = ()
    claim: str = ""
    shows: str = "task"  #: task, question or both (a task and a claim)


def _deed(verb: str, method: str = "", shows: str = "task", more: tuple[str, ...] = ()) -> Deed:
    """Everything that the verb takes and the client's method can be told; a field that a task gets is one here, too."""
    params = signature(getattr(Client, method or verb)).parameters
    anything = any(p.kind is p.VAR_KEYWORD for p in params.values())
    known = UPDATES if verb == "update" else VERBS[verb].args
    names = [name for name in known if (anything or name in params) and name not in ("claim", "secret")]
    names += [name for name in ("worker",) if name in params and name not in names]
    claim = next((name for name in ("proof", "claim") if name in params and "claim" in VERBS[verb].args), "")
    return Deed(method or verb, (*names, *more), claim, shows)


_OTHER_NAMES = {"dep_add": "depend", "dep_remove": "undepend", "step": "record"}
_SHOWS = {"claim": "both", **dict.fromkeys(("ask", "answer", "withdraw", "use", "assign"), "question")}
_MORE = {"use": ("action",), "dep_add": ("needs",), "dep_remove": ("needs",)}

#: A task's verb in the path, how it is said.
DEEDS: dict[str, Deed] = {
    verb: _deed(verb, _OTHER_NAMES.get(verb, ""), _SHOWS.get(verb, "task"), _MORE.get(verb, ()))
    for verb in (
        "vet", "claim", "heartbeat", "release", "park", "complete", "fail", "decompose", "ask", "flag", "answer", "approve", "reject",
        "withdraw", "use", "assign", "hand_back", "resolve", "accept", "stop", "cancel", "close", "defer", "wake", "reopen", "note",
        "update", "dep_add", "dep_remove", "step", "rewind",
    )
}  # fmt: skip

#: What a method wants as text; everything else is checked where the verb is said.
_TEXTS = ("reason", "text", "summary", "details", "reviewer", "by", "digest", "worker", "claim", "verdict", "failure", "kind")
_NEEDED = {
    "claim": ("worker",), "decompose": ("children",), "ask": ("text",), "flag": ("text",), "use": ("by",), "assign": ("reviewer",),
    "note": ("text",), "dep_add": ("needs",), "dep_remove": ("needs",),
}  # fmt: skip


def act(call: Call) -> Answer:
    action = ALIASES.get(call.path["action"], call.path["action"]).replace("-", "_")
    deed = DEEDS.get(action)
    if deed is None:
        raise NotFound(f"There is no action {action[:40]!a}", hint=f"There is: {', '.join(DEEDS)}.")
    return Answer(said(call, action, call.path["key"], of="task"))


def said(call: Call, action: str, named: str, of: str = "question") -> Any:
    """Say a verb with what stands in the body. A question was compared with If-Match before."""
    deed = DEEDS[action]
    body = call.body(*deed.takes, *(["claim"] if deed.claim else []))
    if deed.claim and CLAIM in call.headers:
        body.setdefault("claim", call.headers[CLAIM])
    for name in _TEXTS:
        if name in body and not isinstance(body[name], str):
            raise Invalid(f"{name} must be text")
    for name in _NEEDED.get(action, ()):
        if name not in body:
            raise Invalid(f"{action} needs {'an' if name[0] in 'aeiou' else 'a'} {name}")
    for name in ("steps", "children", "options", "issues", "also"):
        if name in body and not isinstance(body[name], list):
            raise Invalid(f"{name} must be a list")
    if action == "answer" and not body.keys() & {"value", "text", "verdict", "signal"}:
        raise Invalid("An answer needs a value, a text or a verdict")
    if action == "answer" and body.keys() <= {"text", "restart"} and not body["text"].strip():
        raise Invalid("text must not be empty", hint="The question is still open.")
    if action == "update" and not body.keys() - {"claim"}:
        raise Invalid("Nothing to update was given", hint=f"Give one of: {', '.join(deed.takes)}.")
    if "until" in body and not isinstance(body["until"], str):
        raise Invalid("until must be a time", hint="Like 2d or 2026-12-24T18:00Z.")
    if "to" in body:
        body["to"] = str(body["to"])
    args: list[Any] = _names(body.pop("needs"), "needs") if "needs" in body else []
    if action == "step":
        args, named = [], {"task": named, "token": body.pop("claim", "")}  # type: ignore[assignment]
    elif "claim" in body:
        body[deed.claim] = body.pop("claim")
    key, client = named, call.expecting() if of == "task" else call.client
    found = getattr(client, deed.method)(named, *args, key=call.key, **body)
    return call.client.show(key) if found is None else found


def _names(value: Any, field: str) -> list[str]:
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise Invalid(f"{field} must be keys of tasks")
    return found


def claim_next(call: Call) -> Answer:
    """The next task and a claim on it; null where there is nothing to do."""
    body = call.body("worker", "project", "epic", "role", "host", "lease")
    for name in ("worker", "project", "epic", "role", "host"):
        if name in body and not isinstance(body[name], str):
            raise Invalid(f"{name} must be text")
    if "worker" not in body:
        raise Invalid("claim needs a worker")
    return Answer(call.client.claim_next(body.pop("worker"), key=call.key, **body))


# --- questions --------------------------------------------------------------------------------------------------------


def list_questions(call: Call) -> Answer:
    call.only("status", "kind", "project", "reviewer", "urgency", "task", "mine", "cursor", "limit", "workspace_id")
    limit = call.limit()
    status = call.text("status") or PENDING
    if status not in ("pending", "answered", "timeout", "cancelled", "all"):
        raise Invalid(f"There is no status {status[:40]!a}", hint="Choose one of: pending, answered, timeout, cancelled, all.")
    filters = {name: call.text(name) for name in ("reviewer", "urgency") if call.text(name) is not None}
    found = call.client.inbox(
        status=status, kind=call.text("kind"), project=call.text("project"), task=call.text("task"), after=call.text("cursor"),
        limit=limit, mine=_flag(call, "mine"), **filters,
    )  # fmt: skip
    return Answer(page(found, limit, "questions", "id"))


def _flag(call: Call, name: str) -> bool:
    given = call.query.get(name)
    return given is not None and bool(f.flag(name, given or "yes"))


def task_questions(call: Call) -> Answer:
    return Answer({"questions": _task(call)["questions"], "next_cursor": None})


def ask_about(call: Call) -> Answer:
    made = said(call, "ask", call.path["key"], of="task")
    return Answer(made, 201, (("Location", f"/api/questions/{made['id']}"),))


def show_question(call: Call) -> Answer:
    return Answer(question(call))


def question(call: Call) -> dict[str, Any]:
    """A question by its id; a task's key stands for its one open question."""
    named = call.path["id"]
    found = call.client.show(named)
    if "key" not in found:
        return found
    waiting = call.client.inbox(task=found["key"])
    if len(waiting) != 1:
        raise NotFound(f"{found['key']} has {len(waiting)} open questions", hint="A question is named like Q17.")
    return waiting[0]


def answer_question(call: Call) -> Answer:
    """In our words, or as a job's question is answered: then it is told whether the job goes on."""
    body = call.body(anything=True)
    if QUESTION.fullmatch(call.path["id"]) and "response" not in body and "if-match" not in call.headers:
        return Answer(said(call, "answer", call.path["id"]))
    before = question(call)
    call.unchanged(before)
    if "response" in body:
        return jobs.answer(call, before)
    return Answer(said(call, "answer", before["id"]))


def question_answers(call: Call) -> Answer:
    found = question(call)
    ways = call.client.effects(found["id"]).get(found["id"], [])
    return Answer({"answers": [{**way, "command": way["command"].format(q=found["id"])} for way in ways]})


def cancel_question(call: Call) -> Answer:
    before = question(call)
    call.unchanged(before)
    return Answer({**said(call, "withdraw", before["id"]), "success": True})


def assign_question(call: Call) -> Answer:
    before = question(call)
    call.unchanged(before)
    return Answer(said(call, "assign", before["id"]))


# --- around -----------------------------------------------------------------------------------------------------------


def me(call: Call) -> Answer:
    from ..core.permissions import GRANTS

    who = call.client.who
    found = {"actor": who.name, "role": who.role, "may": sorted(GRANTS[who.role]), "workspace": call.client.desk.workspace_name}
    return Answer({**found, "scopes": None if who.scopes is None else sorted(who.scopes)})


def projects(call: Call) -> Answer:
    return Answer({"projects": call.client.projects()})


def workers(call: Call) -> Answer:
    call.only("project", "workspace_id")
    return Answer({"workers": call.client.workers(), "unattended": call.client.unattended(call.text("project"))})


def stats(call: Call) -> Answer:
    call.only("project", "days", "workspace_id")
    return Answer(call.client.stats(call.text("project"), days=call.number("days", 1, 3650, 30)))

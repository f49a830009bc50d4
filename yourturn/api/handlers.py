"""Handlers of tasks, questions and administration: each calls one method of the client and returns its reply."""

from __future__ import annotations

from inspect import signature
from typing import Any, NamedTuple

from ..client import Client
from ..core import fields as f
from ..core.actions import VERBS
from ..core.errors import Invalid, NotFound
from ..core.model import PENDING
from ..core.permissions import GRANTS, NEEDS
from ..core.references import QUESTION
from ..core.rules import ADMIN_VERBS
from ..core.task_fields import TASK_FIELDS, UPDATES
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
    tasks = call.client.list(after=call.text("cursor"), limit=limit, **filters)
    return Answer(page(tasks, limit, "tasks", "key"))


def create_task(call: Call) -> Answer:
    body = call.body(*CREATE)
    title = body.pop("title", None)
    if title is None:
        raise Invalid("A task needs a title")
    needs = _names(body.pop("depends_on", []), "depends_on")
    for name in ("parent", "project"):
        if name in body and not isinstance(body[name], str):
            raise Invalid(f"{name} must be text")
    task = call.client.create(title, depends_on=needs, key=call.key, **body)
    return Answer(task, 201, (("Location", f"/api/tasks/{task['key']}"),))


def show_task(call: Call) -> Answer:
    return Answer(_task(call))


def _task(call: Call) -> dict[str, Any]:
    """The task of the path. A question has another route."""
    task = call.client.show(call.path["key"])
    if "key" not in task:
        raise NotFound(f"There is no task {call.path['key'][:60]}", hint="A question is at /api/questions/…")
    return task


def task_events(call: Call) -> Answer:
    call.only("cursor", "limit")
    limit = call.limit()
    events = call.client.history(_task(call)["key"], after=call.number("cursor", 0, 2**62, 0), limit=limit)
    return Answer(page(events, limit, "events", "seq"))


def task_output(call: Call) -> Answer:
    call.only("cursor", "limit")
    limit = call.limit()
    lines = call.client.output(_task(call)["key"], after=call.number("cursor", 0, 2**62, 0), limit=limit)
    return Answer(page(lines, limit, "lines", "id"))


# --- every verb -------------------------------------------------------------------------------------------------------


class VerbRoute(NamedTuple):
    """How a verb in a path is called: the client's method, the fields of the body, and the parameter of the claim's token."""

    method: str
    takes: dict[str, f.Checker[Any]]
    needs: tuple[str, ...]
    claim: str = ""


def _route(verb: str) -> VerbRoute:
    """A body has what both the verb and the client's method take; where the method takes any field, all that the verb takes."""
    row = VERBS[verb]
    method = row.method or verb
    own = signature(getattr(Client, method)).parameters
    parameters = list(own.values())[2:]  # without self and the task
    names = {p.name for p in parameters}
    is_open = any(p.kind is p.VAR_KEYWORD for p in parameters)
    args = {name: check for name in UPDATES if (check := TASK_FIELDS[name].check)} if verb == "update" else row.args
    takes = {name: check for name, check in args.items() if (is_open or name in names) and name not in ("claim", "secret")}
    takes |= {name: check for name, check in _ALSO.items() if name in names and name not in takes}
    claim = next((name for name in ("proof", "claim") if name in own and "claim" in row.args), "")
    needs = tuple(p.name for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL))
    return VerbRoute(method, takes, needs, claim)


#: Parameters of methods that the verb calls otherwise.
_ALSO = {"worker": f.name, "action": f.anything}

#: By the name in the path: every verb about an existing task that people or agents may use.
VERB_ROUTES: dict[str, VerbRoute] = {
    verb: _route(verb) for verb in VERBS if NEEDS[verb] != "system" and verb not in ADMIN_VERBS and verb not in ("create", "import")
}


def act(call: Call) -> Answer:
    action = ALIASES.get(call.path["action"], call.path["action"]).replace("-", "_")
    if action not in VERB_ROUTES:
        raise NotFound(f"There is no action {action[:40]!a}", hint=f"There is: {', '.join(VERB_ROUTES)}.")
    return Answer(call_verb(call, action, call.path["key"], subject="task"))


def call_verb(call: Call, action: str, named: str, subject: str = "question") -> Any:
    """Call a verb with the fields of the body. The caller compares a question with If-Match."""
    route = VERB_ROUTES[action]
    body = call.body(*route.takes, *(["claim"] if route.claim else []))
    if route.claim and CLAIM in call.headers:
        body.setdefault("claim", call.headers[CLAIM])
    _check_body(action, route, body)
    args: list[Any] = _names(body.pop("needs"), "needs") if "needs" in body else []
    target: Any = named
    if action == "step":
        target = {"task": named, "token": body.pop("claim", "")}
    elif "claim" in body:
        body[route.claim] = body.pop("claim")
    client = call.expecting() if subject == "task" else call.client
    reply = getattr(client, route.method)(target, *args, key=call.key, **body)
    return call.client.show(named) if reply is None else reply


def _check_body(action: str, route: VerbRoute, body: dict[str, Any]) -> None:
    """What the client would convert before the verb's own checks."""
    for name, value in body.items():
        schema = route.takes[name].schema if name in route.takes else {"type": "string"}
        if name == "until" and not isinstance(value, str):
            raise Invalid("until must be a time", hint="Like 2d or 2026-12-24T18:00Z.")
        if schema.get("type") == "string" and name != "to" and not isinstance(value, str):
            raise Invalid(f"{name} must be text")
        if schema.get("type") == "array" and name not in ("labels", "needs") and not isinstance(value, list):
            raise Invalid(f"{name} must be a list")
    for name in route.needs:
        if name not in body:
            raise Invalid(f"{action} needs {'an' if name[0] in 'aeiou' else 'a'} {name}")
    if action == "answer" and not body.keys() & {"value", "text", "verdict", "signal"}:
        raise Invalid("An answer needs a value, a text or a verdict")
    if action == "answer" and body.keys() <= {"text", "restart"} and not body["text"].strip():
        raise Invalid("text must not be empty", hint="The question is still open.")
    if action == "update" and not body.keys() - {"claim"}:
        raise Invalid("Nothing to update was given", hint=f"Give one of: {', '.join(route.takes)}.")
    if "to" in body:
        body["to"] = str(body["to"])


def _names(value: Any, field: str) -> list[str]:
    keys = [value] if isinstance(value, str) else value
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise Invalid(f"{field} must be keys of tasks")
    return keys


def claim_next(call: Call) -> Answer:
    """Claim the next task; null if there is none."""
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
    questions = call.client.inbox(
        status=status, kind=call.text("kind"), project=call.text("project"), task=call.text("task"), after=call.text("cursor"),
        limit=limit, mine=_flag(call, "mine"), reviewer=call.text("reviewer"), urgency=call.text("urgency"),
    )  # fmt: skip
    return Answer(page(questions, limit, "questions", "id"))


def _flag(call: Call, name: str) -> bool:
    given = call.query.get(name)
    return given is not None and bool(f.flag(name, given or "yes"))


def task_questions(call: Call) -> Answer:
    return Answer({"questions": _task(call)["questions"], "next_cursor": None})


def ask_about(call: Call) -> Answer:
    asked = call_verb(call, "ask", call.path["key"], subject="task")
    return Answer(asked, 201, (("Location", f"/api/questions/{asked['id']}"),))


def show_question(call: Call) -> Answer:
    return Answer(question(call))


def question(call: Call) -> dict[str, Any]:
    """A question by its id; a task's key stands for its one open question."""
    reply = call.client.show(call.path["id"])
    if "key" not in reply:
        return reply
    waiting = call.client.inbox(task=reply["key"])
    if len(waiting) != 1:
        raise NotFound(f"{reply['key']} has {len(waiting)} open questions", hint="A question is named like Q17.")
    return waiting[0]


def answer_question(call: Call) -> Answer:
    """An answer as the verb takes it, or in the form of the job API, whose reply says whether the job is resumed."""
    body = call.body(anything=True)
    if QUESTION.fullmatch(call.path["id"]) and "response" not in body and "if-match" not in call.headers:
        return Answer(call_verb(call, "answer", call.path["id"]))
    before = question(call)
    call.unchanged(before)
    if "response" in body:
        return jobs.answer(call, before)
    return Answer(call_verb(call, "answer", before["id"]))


def question_answers(call: Call) -> Answer:
    name = question(call)["id"]
    ways = call.client.effects(name).get(name, [])
    return Answer({"answers": [{**way, "command": way["command"].format(q=name)} for way in ways]})


def cancel_question(call: Call) -> Answer:
    before = question(call)
    call.unchanged(before)
    return Answer({**call_verb(call, "withdraw", before["id"]), "success": True})


def assign_question(call: Call) -> Answer:
    before = question(call)
    call.unchanged(before)
    return Answer(call_verb(call, "assign", before["id"]))


# --- around -----------------------------------------------------------------------------------------------------------


def me(call: Call) -> Answer:
    who = call.client.who
    account = {"actor": who.name, "role": who.role, "may": sorted(GRANTS[who.role]), "workspace": call.client.desk.workspace_name}
    return Answer({**account, "scopes": None if who.scopes is None else sorted(who.scopes)})


def projects(call: Call) -> Answer:
    return Answer({"projects": call.client.projects()})


def workers(call: Call) -> Answer:
    call.only("project", "workspace_id")
    return Answer({"workers": call.client.workers(), "unattended": call.client.unattended(call.text("project"))})


def stats(call: Call) -> Answer:
    call.only("project", "days", "workspace_id")
    return Answer(call.client.stats(call.text("project"), days=call.number("days", 1, 3650, 30)))

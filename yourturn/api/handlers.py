"""Handlers of tasks, questions and administration. Each calls one method of the client and returns its reply."""

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
from .request import CLAIM, ApiRequest, ApiResponse, page
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


def list_tasks(request: ApiRequest) -> ApiResponse:
    request.check_query(*TASK_FILTERS, "cursor", "limit", "workspace_id")
    limit = request.limit()
    texts = {
        name: request.text(name) for name in ("state", "epic", "parent", "project", "role", "label", "type", "requires", "search")
    }
    filters: dict[str, Any] = {name: value for name, value in texts.items() if value is not None}
    if "awaiting" in request.query:
        filters["awaiting"] = request.query["awaiting"] if request.query["awaiting"] not in ("", "true") else True
    if "priority" in request.query:
        filters["priority"] = request.number("priority", 0, 4, 2)
    if request.query.get("ready") in ("", "1", "true", "yes"):
        filters["workable"] = True
    tasks = request.client.list(after=request.text("cursor"), limit=limit, **filters)
    return ApiResponse(page(tasks, limit, "tasks", "key"))


def create_task(request: ApiRequest) -> ApiResponse:
    body = request.body(*CREATE)
    title = body.pop("title", None)
    if title is None:
        raise Invalid("A task needs a title")
    needs = _names(body.pop("depends_on", []), "depends_on")
    for name in ("parent", "project"):
        if name in body and not isinstance(body[name], str):
            raise Invalid(f"{name} must be text")
    task = request.client.create(title, depends_on=needs, key=request.key, **body)
    return ApiResponse(task, 201, (("Location", f"/api/tasks/{task['key']}"),))


def show_task(request: ApiRequest) -> ApiResponse:
    return ApiResponse(_task(request))


def _task(request: ApiRequest) -> dict[str, Any]:
    """The task of the path; a question has another route."""
    task = request.client.show(request.path["key"])
    if "key" not in task:
        raise NotFound(f"There is no task {request.path['key'][:60]}", hint="A question is at /api/questions/…")
    return task


def task_events(request: ApiRequest) -> ApiResponse:
    request.check_query("cursor", "limit")
    limit = request.limit()
    events = request.client.history(_task(request)["key"], after=request.number("cursor", 0, 2**62, 0), limit=limit)
    return ApiResponse(page(events, limit, "events", "seq"))


def task_output(request: ApiRequest) -> ApiResponse:
    request.check_query("cursor", "limit")
    limit = request.limit()
    lines = request.client.output(_task(request)["key"], after=request.number("cursor", 0, 2**62, 0), limit=limit)
    return ApiResponse(page(lines, limit, "lines", "id"))


# --- every verb -------------------------------------------------------------------------------------------------------


class VerbRoute(NamedTuple):
    """How to call a verb: the client's method, the fields of the body, and the parameter that takes the token of the claim."""

    method: str
    takes: dict[str, f.Checker[Any]]
    needs: tuple[str, ...]
    claim: str = ""


def _route(verb: str) -> VerbRoute:
    """A body takes the fields that both the verb and the client's method take; all of the verb if the method takes any field."""
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


#: Parameters of methods whose arguments of the verb have another name.
_ALSO = {"worker": f.name, "action": f.anything}

#: By the name in the path: the verbs about an existing task that people or agents may use.
VERB_ROUTES: dict[str, VerbRoute] = {
    verb: _route(verb) for verb in VERBS if NEEDS[verb] != "system" and verb not in ADMIN_VERBS and verb not in ("create", "import")
}


def act(request: ApiRequest) -> ApiResponse:
    action = ALIASES.get(request.path["action"], request.path["action"]).replace("-", "_")
    if action not in VERB_ROUTES:
        raise NotFound(f"There is no action {action[:40]!a}", hint=f"There is: {', '.join(VERB_ROUTES)}.")
    return ApiResponse(call_verb(request, action, request.path["key"], subject="task"))


def call_verb(request: ApiRequest, action: str, name: str, subject: str = "question") -> Any:
    """Call a verb on a task or question with the fields of the body. For a question, the caller checks If-Match."""
    route = VERB_ROUTES[action]
    body = request.body(*route.takes, *(["claim"] if route.claim else []))
    if route.claim and CLAIM in request.headers:
        body.setdefault("claim", request.headers[CLAIM])
    _check_body(action, route, body)
    args: list[Any] = _names(body.pop("needs"), "needs") if "needs" in body else []
    target: Any = name
    if action == "step":
        target = {"task": name, "token": body.pop("claim", "")}
    elif "claim" in body:
        body[route.claim] = body.pop("claim")
    client = request.client_at_version() if subject == "task" else request.client
    reply = getattr(client, route.method)(target, *args, key=request.key, **body)
    return request.client.show(name) if reply is None else reply


def _check_body(action: str, route: VerbRoute, body: dict[str, Any]) -> None:
    """Refuse values that the client would convert before the verb checks them."""
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


def claim_next(request: ApiRequest) -> ApiResponse:
    """Claim the next task; null if there is none."""
    body = request.body("worker", "project", "epic", "role", "host", "lease")
    for name in ("worker", "project", "epic", "role", "host"):
        if name in body and not isinstance(body[name], str):
            raise Invalid(f"{name} must be text")
    if "worker" not in body:
        raise Invalid("claim needs a worker")
    return ApiResponse(request.client.claim_next(body.pop("worker"), key=request.key, **body))


# --- questions --------------------------------------------------------------------------------------------------------


def list_questions(request: ApiRequest) -> ApiResponse:
    request.check_query("status", "kind", "project", "reviewer", "urgency", "task", "mine", "cursor", "limit", "workspace_id")
    limit = request.limit()
    status = request.text("status") or PENDING
    if status not in ("pending", "answered", "timeout", "cancelled", "all"):
        raise Invalid(f"There is no status {status[:40]!a}", hint="Choose one of: pending, answered, timeout, cancelled, all.")
    questions = request.client.inbox(
        status=status, kind=request.text("kind"), project=request.text("project"), task=request.text("task"), after=request.text("cursor"),
        limit=limit, mine=_flag(request, "mine"), reviewer=request.text("reviewer"), urgency=request.text("urgency"),
    )  # fmt: skip
    return ApiResponse(page(questions, limit, "questions", "id"))


def _flag(request: ApiRequest, name: str) -> bool:
    value = request.query.get(name)
    return value is not None and bool(f.flag(name, value or "yes"))


def task_questions(request: ApiRequest) -> ApiResponse:
    return ApiResponse({"questions": _task(request)["questions"], "next_cursor": None})


def ask_about(request: ApiRequest) -> ApiResponse:
    question = call_verb(request, "ask", request.path["key"], subject="task")
    return ApiResponse(question, 201, (("Location", f"/api/questions/{question['id']}"),))


def show_question(request: ApiRequest) -> ApiResponse:
    return ApiResponse(question(request))


def question(request: ApiRequest) -> dict[str, Any]:
    """The question with this id; the key of a task stands for its only open question."""
    reply = request.client.show(request.path["id"])
    if "key" not in reply:
        return reply
    questions = request.client.inbox(task=reply["key"])
    if len(questions) != 1:
        raise NotFound(f"{reply['key']} has {len(questions)} open questions", hint="A question is named like Q17.")
    return questions[0]


def answer_question(request: ApiRequest) -> ApiResponse:
    """Answer with the fields of the verb, or in the form of the job API, whose reply reports whether the job was resumed."""
    body = request.body(anything=True)
    if QUESTION.fullmatch(request.path["id"]) and "response" not in body and "if-match" not in request.headers:
        return ApiResponse(call_verb(request, "answer", request.path["id"]))
    before = question(request)
    request.check_unchanged(before)
    if "response" in body:
        return jobs.answer(request, before)
    return ApiResponse(call_verb(request, "answer", before["id"]))


def question_answers(request: ApiRequest) -> ApiResponse:
    name = question(request)["id"]
    ways = request.client.effects(name).get(name, [])
    return ApiResponse({"answers": [{**way, "command": way["command"].format(q=name)} for way in ways]})


def cancel_question(request: ApiRequest) -> ApiResponse:
    before = question(request)
    request.check_unchanged(before)
    return ApiResponse({**call_verb(request, "withdraw", before["id"]), "success": True})


def assign_question(request: ApiRequest) -> ApiResponse:
    before = question(request)
    request.check_unchanged(before)
    return ApiResponse(call_verb(request, "assign", before["id"]))


# --- administration ---------------------------------------------------------------------------------------------------


def me(request: ApiRequest) -> ApiResponse:
    who = request.client.who
    account = {"actor": who.name, "role": who.role, "may": sorted(GRANTS[who.role]), "workspace": request.client.desk.workspace_name}
    return ApiResponse({**account, "scopes": None if who.scopes is None else sorted(who.scopes)})


def projects(request: ApiRequest) -> ApiResponse:
    return ApiResponse({"projects": request.client.projects()})


def workers(request: ApiRequest) -> ApiResponse:
    request.check_query("project", "workspace_id")
    return ApiResponse({"workers": request.client.workers(), "unattended": request.client.unattended(request.text("project"))})


def stats(request: ApiRequest) -> ApiResponse:
    request.check_query("project", "days", "workspace_id")
    return ApiResponse(request.client.stats(request.text("project"), days=request.number("days", 1, 3650, 30)))

"""The job API, in camelCase: a job is a task. For programs written for jobs, typed questions and their events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..core.answers import ANSWERS
from ..core.errors import Invalid, NotFound
from ..core.model import ANSWERED, ENDED, HUMAN, PENDING
from ..core.rules import KINDS, goes_on
from .request import CLAIM, ApiRequest, ApiResponse, camel

#: By type: the kind of the question, and whether it blocks the job.
TYPES: dict[str, tuple[str, bool]] = {
    "blocking": ("input", True),
    "non_blocking": ("input", False),
    "approval": ("permission", True),
    "error_recovery": ("recovery", True),
}
#: The status of a job, by the state of its task. In `human` it depends on the question (status_of).
STATUS = {
    "created": "pending", "ready": "pending", "blocked": "pending", "deferred": "pending", "working": "running",
    "review": "waiting_for_approval", "done": "completed", "failed": "failed", "cancelled": "cancelled",
}  # fmt: skip
#: Actions whose event can close a question with an answer; a late answer reopens the task.
_ANSWER_ACTIONS = ("answer", "reopen")
RESPONSE_TYPES = ("text", "choice", "boolean", "approval")
_BODY = (
    "question", "type", "response_type", "options", "context", "timeout_minutes", "default_response", "metadata", "claim",
)  # fmt: skip


def type_of(kind: str, blocking: bool) -> str:
    if not blocking:
        return "non_blocking"
    if kind == "recovery":
        return "error_recovery"
    return "approval" if KINDS[kind].response_type == "approval" else "blocking"


#: The filters of the inbox for each type.
FILTERS: dict[str, dict[str, Any]] = {
    "non_blocking": {"blocking": False},
    **{
        name: {"blocking": True, "kind": [kind for kind in KINDS if type_of(kind, True) == name]}
        for name in TYPES
        if name != "non_blocking"
    },
}


def status_of(state: str, awaiting: str | None) -> str:
    """The status depends on the kind of the question for which the task waits."""
    if state != HUMAN:
        return STATUS[state]
    return "waiting_for_approval" if awaiting and KINDS[awaiting].response_type == "approval" else "waiting_for_input"


def _context_and_options(q: dict[str, Any]) -> tuple[Any, list[Any]]:
    """Context and options. The options of a question that is no choice are stored in its context (see ask)."""
    context, options = q.get("context"), q.get("options") or []
    if not options and isinstance(context, dict) and isinstance(context.get("options"), list):
        options = context["options"]
        context = {name: value for name, value in context.items() if name != "options"} or None
    return context, options


def question(q: dict[str, Any], workspace: str) -> dict[str, Any]:
    response = q["response"]
    context, options = _context_and_options(q)
    return {
        "id": q["id"],
        "jobId": q["task"],
        "workspaceId": workspace,
        "projectId": q["task"].rpartition("-")[0],
        "type": type_of(q["kind"], q["blocking"]),
        "question": q["text"],
        "context": context,
        "status": q["status"],
        "responseType": q["response_type"],
        "options": options,
        "response": None if response is None else response_json(response),
        "respondedBy": q["responded_by"],
        "respondedAt": q["responded_at"],
        "timeoutAt": q["timeout_at"],
        "defaultResponse": None if q["default"] is None else {"type": q["response_type"], "value": q["default"]},
        "metadata": q["metadata"],
        "createdAt": q["asked_at"],
    }


def response_json(response: dict[str, Any]) -> dict[str, Any]:
    """A rejection without a value has the value false."""
    value = response["value"]
    if value is None:
        value = response["verdict"] == "approved" if response["type"] in ("approval", "boolean") else response["text"]
    answer = {"type": response["type"], "value": value}
    return {**answer, "text": response["text"]} if response.get("text") else answer


# --- routes -----------------------------------------------------------------------------------------------------------


def job(request: ApiRequest) -> ApiResponse:
    task = _job(request)
    return ApiResponse(
        {"id": task["key"], "status": status_of(task["state"], task["awaiting"]), "projectId": task["key"].rpartition("-")[0]}
    )


def _job(request: ApiRequest) -> dict[str, Any]:
    _check_workspace(request)
    task = request.client.show(request.path["id"])
    if "key" not in task:
        raise NotFound(f"There is no job {request.path['id'][:60]}")
    return task


def _check_workspace(request: ApiRequest) -> None:
    """Refuse the name of any other workspace."""
    workspace = request.query.get("workspace_id")
    if workspace is not None and workspace != request.client.desk.workspace_name:
        raise NotFound(f"There is no workspace {workspace[:60]!a}")


def _check_names(names: Iterable[str], allowed: tuple[str, ...]) -> None:
    """Refuse other names than these, with an error in camelCase."""
    for name in names:
        if name not in allowed:
            raise Invalid(f"{camel(name)[:60]!a} is not known here", hint=f"Known: {', '.join(map(camel, allowed))}.")


def ask(request: ApiRequest) -> ApiResponse:
    _check_workspace(request)
    job = request.path["id"]
    body = request.body(anything=True)
    _check_names(body, _BODY)
    for name in ("question", "type", "response_type"):
        if not isinstance(body.get(name), str):
            raise Invalid(f"{camel(name)} must be given, as text")
    if body["type"] not in TYPES:
        raise Invalid(f"There is no type {body['type'][:40]!a}", hint=f"Choose one of: {', '.join(TYPES)}.")
    if body["response_type"] not in RESPONSE_TYPES:
        raise Invalid(
            f"There is no responseType {body['response_type'][:40]!a}", hint=f"Choose one of: {', '.join(RESPONSE_TYPES)}."
        )
    kind, blocking = TYPES[body["type"]]
    if not body["question"].strip():
        raise Invalid("question must not be empty")
    if (kind, body["response_type"]) not in ANSWERS:
        forms = [form for form in RESPONSE_TYPES if (kind, form) in ANSWERS]
        raise Invalid(
            f"A question of type {body['type']} takes no responseType {body['response_type']}",
            hint=f"Choose one of: {', '.join(forms)}.",
        )
    fields: dict[str, Any] = {"response_type": body["response_type"], "blocking": blocking}
    context, options = body.get("context"), body.get("options", [])
    if not isinstance(options, list):
        raise Invalid("options must be a list")
    if options and body["response_type"] != "choice":  # they only inform the person
        context, options = {**(context if isinstance(context, dict) else {}), "options": options}, []
    minutes = body.get("timeout_minutes")
    if minutes is not None:
        if isinstance(minutes, bool) or not isinstance(minutes, (int, float)):
            raise Invalid("timeoutMinutes must be a number")
        fields["timeout"] = minutes * 60
    default = body.get("default_response")
    if default is not None:
        if not isinstance(default, dict) or "value" not in default:
            raise Invalid("defaultResponse needs a value")
        fields["default"] = default["value"]
    elif not blocking:
        raise Invalid("A question of type non_blocking needs a defaultResponse", hint="The job goes on with it.")
    if not isinstance(body.get("claim", ""), str):
        raise Invalid("claim must be text", hint="It is the token of the job's claim.")
    fields |= {name: body[name] for name in ("metadata", "claim") if name in body}
    fields.setdefault("claim", request.headers.get(CLAIM))
    created = request.client.ask(job, body["question"], kind, options, context=context, key=request.key, **fields)
    return ApiResponse(
        {"questionId": created["id"], "timeoutAt": created["timeout_at"]}, 201, (("Location", f"/api/questions/{created['id']}"),)
    )


def job_questions(request: ApiRequest) -> ApiResponse:
    task = _job(request)
    return ApiResponse({"questions": [question(q, request.client.desk.workspace_name) for q in task["questions"]]})


def pending(request: ApiRequest) -> ApiResponse:
    _check_names(request.query, ("workspace_id", "type", "project_id", "limit", "cursor"))
    _check_workspace(request)
    wanted_type = request.text("type")
    if wanted_type is not None and wanted_type not in TYPES:
        raise Invalid(f"There is no type {wanted_type[:40]!a}", hint=f"Choose one of: {', '.join(TYPES)}.")
    limit = request.limit()
    filters = FILTERS[wanted_type] if wanted_type else {}
    questions = request.client.inbox(project=request.text("project_id"), after=request.text("cursor"), limit=limit, **filters)
    items = [question(q, request.client.desk.workspace_name) for q in questions]
    return ApiResponse({"questions": items, "nextCursor": questions[-1]["id"] if len(questions) == limit else None})


def answer(request: ApiRequest, before: dict[str, Any]) -> ApiResponse:
    body = request.body("response", "restart")
    response = body["response"]
    if not isinstance(response, dict) or response.get("value") is None or not isinstance(response.get("text", ""), str):
        raise Invalid("response needs a value", hint='Like {"response": {"type": "text", "value": "Use JWT"}}.')
    if response.get("type", before["response_type"]) != before["response_type"]:
        raise Invalid(f"{before['id']} takes a response of type {before['response_type']}", hint="The question is still open.")
    restart = body.get("restart", False)
    closed = request.client.answer(before["id"], response["value"], response.get("text", ""), restart=restart, key=request.key)
    resumed = _resumed(request, before, late=bool(restart) and before["status"] != PENDING)
    ended = {"jobStatus": STATUS[closed["task_state"]]} if closed["task_state"] in ENDED else {}
    return ApiResponse({"success": True, "jobResumed": resumed, **ended})


def _resumed(request: ApiRequest, before: dict[str, Any], late: bool) -> bool:
    """Whether this answer resumed the job, according to its event: a repeated request gets the same reply."""
    for event in reversed(request.client.history(before["task"], limit=100)):
        data, mine = event["data"], event["actor"] == request.client.who.name and event["action"] in _ANSWER_ACTIONS
        own = any(q["id"] == before["id"] and q["status"] == ANSWERED for q in data.get("closed", ()))
        if mine if late else own:
            return goes_on(data["from"], data["to"])
    return False


# --- events -----------------------------------------------------------------------------------------------------------


def frames(event: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and data of the job events that an event of the log stands for."""
    data, job = event["data"], event["task"]
    if job is None:
        return
    for q in data.get("opened", ()):
        context, options = _context_and_options(q)
        yield "question_asked", {
            "type": "question_asked", "questionId": q["id"], "jobId": job,
            "question": {
                "question": q["text"], "type": type_of(q["kind"], bool(q["blocking"])), "responseType": q["response_type"],
                "options": options, "context": context, "timeoutAt": q.get("timeout_at"),
            },
        }  # fmt: skip
    for q in data.get("closed", ()):
        name = {"answered": "question_answered", "timeout": "question_timeout", "cancelled": "question_cancelled"}.get(
            q["status"]
        )
        if name is not None:
            response = q.get("response")
            answer = response_json(response) if response else None
            closed = {"type": name, "questionId": q["id"], "jobId": job, "response": answer}
            yield name, {**closed, "respondedBy": q.get("responded_by"), "reason": q.get("close_reason")}
    if "to" not in data:
        return
    asked = next((q["kind"] for q in data.get("opened", ()) if q["blocking"]), None)
    awaiting = data.get("awaiting") or {"from": None, "to": asked}
    status = status_of(data["to"], awaiting["to"])
    if data["from"] != data["to"] or ("awaiting" in data and status != status_of(data["from"], awaiting["from"])):
        yield "status", {"type": "status", "jobId": job, "status": status, "state": data["to"]}

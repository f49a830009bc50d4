"""OpenAPI document, generated from the table of routes and the tables of the core."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

from ..core import permissions
from ..core.actions import URGENCIES, VERBS
from ..core.errors import every_error
from ..core.fields import project_key
from ..core.model import STATES
from ..core.questions import RESPONSE_TYPES
from ..core.rules import KINDS, REASONS, TIMEOUT_POLICIES
from ..core.task_fields import TASK_FIELDS
from ..version import __version__
from . import examples, jobs, rpc
from .handlers import VERB_ROUTES
from .request import DEFAULT_LIMIT, MAX_LIMIT, ApiRequest, ApiResponse
from .route_table import ALIASES, Row, rows

Schema = dict[str, Any]


def show(request: ApiRequest) -> ApiResponse:
    return ApiResponse(document())


# --- schemas ----------------------------------------------------------------------------------------------------------


def _s(kind: str, **more: Any) -> Schema:
    return {"type": kind, **more}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


_text, _whole, _flag, _any = _s("string"), _s("integer"), _s("boolean"), Schema()
_time = _s("string", format="date-time")
_list_of_text = _s("array", items=_text)
_object = _s("object")


def _words(*words: str) -> Schema:
    return _s("string", enum=list(words))


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _record(required: dict[str, Schema], **optional: Schema) -> Schema:
    return _s("object", properties={**required, **optional}, required=list(required))


def _page(name: str, of: str) -> Schema:
    cursor = {
        "anyOf": [_text, _whole, {"type": "null"}],
        "description": "Send it as `cursor` for the next page; null at the end.",
    }
    return _record({name: _s("array", items=_ref(of)), "next_cursor": cursor})


#: Fields of a request that no verb has, or that accept more values than the verb.
_ALSO: dict[str, Schema] = {"epic": _text, "worker": _text, "claim": _text, "journal": _whole, "on_timeout": _words(*TIMEOUT_POLICIES)}


def _body(names: Iterable[str], required: tuple[str, ...] = (), verb: str = "", **own: Schema) -> Schema:
    """Schema of a body. `verb` has the schemas of the fields that are its arguments."""
    takes = {} if not verb else VERBS[verb].args if verb == "create" else VERB_ROUTES[verb].takes
    fields = {name: own.get(name) or _ALSO.get(name) or (takes[name].schema if name in takes else _any) for name in names}
    return _s("object", properties=fields, additionalProperties=False, **({"required": list(required)} if required else {}))


def _schemas() -> dict[str, Schema]:
    question = _record(
        {
            "id": _text, "task": _text, "kind": _words(*KINDS), "blocking": _flag, "text": _text, "context": _any,
            "reason": _or_null(_text), "response_type": _words(*RESPONSE_TYPES), "options": _s("array", items=_ref("Option")),
            "multi": _flag, "allow_other": _flag, "group": _or_null(_text), "urgency": _words(*URGENCIES), "default": _any,
            "timeout_at": _or_null(_time), "on_timeout": _words(*TIMEOUT_POLICIES), "reviewer": _or_null(_text),
            "confidence": _or_null(_s("number")), "action": _any, "digest": _or_null(_text), "metadata": _any,
            "status": _words("pending", "answered", "timeout", "cancelled"), "response": _or_null(_ref("Response")),
            "asked_by": _text, "asked_at": _time, "responded_by": _or_null(_text), "responded_at": _or_null(_time),
        }
    )  # fmt: skip
    shown_fields = {name: field.shown for name, field in TASK_FIELDS.items() if field.shown is not None}
    task = _record(shown_fields, follow_ups=_s("array", items=_ref("FollowUp")))
    claim = _record({"task": _text, "worker": _text, "epoch": _whole, "token": _text, "expires_at": _time})
    claimed = _record({"task": _ref("Task"), "claim": claim})
    response = _record({"type": _words(*jobs.RESPONSE_TYPES), "value": {"type": ["string", "boolean", "number"]}}, text=_text)
    shown = _record({"type": _text, "value": _any}, text=_text)
    job_question = _record(
        {
            "id": _text, "jobId": _text, "workspaceId": _text, "projectId": _text, "type": _words(*jobs.TYPES), "question": _text,
            "context": _any, "status": _words("pending", "answered", "timeout", "cancelled"), "responseType": _words(*RESPONSE_TYPES),
            "options": _s("array", items=_ref("Option")), "response": _or_null(shown), "respondedBy": _or_null(_text),
            "respondedAt": _or_null(_time), "timeoutAt": _or_null(_time), "defaultResponse": _or_null(shown), "metadata": _any,
            "createdAt": _time,
        }
    )  # fmt: skip
    option = _record({"label": _text}, id=_text, value={"type": ["string", "boolean", "number"]}, description=_text)
    codes = sorted({error.code for error in every_error()} | {"usage"})
    status = _words("pending", "running", "waiting_for_input", "waiting_for_approval", "completed", "failed", "cancelled")
    return {
        "Error": _record({"error": _record({"code": _words(*codes), "message": _text, "hint": _text})}),
        "Option": option,
        "Response": _record({"type": _text, "value": _any, "text": _or_null(_text), "verdict": _or_null(_text)}),
        "Question": question,
        "Task": task,
        "FollowUp": _record({"task": _text, "from": _words(*STATES), "to": _words(*STATES), "questions": _list_of_text}),
        "Tasks": _page("tasks", "Task"),
        "Questions": _page("questions", "Question"),
        "Event": _record({"seq": _whole, "at": _time, "actor": _text, "action": _text, "task": _or_null(_text), "data": _object}),
        "Events": _page("events", "Event"),
        "Lines": _record({"lines": _s("array", items=_object), "next_cursor": _or_null(_whole)}),
        "NewTask": _body(tuple(n for n in VERBS["create"].args if n != "program"), ("title",), "create"),
        "NewQuestion": _body((*VERB_ROUTES["ask"].takes, "claim"), ("text",), "ask", reason=_words(*REASONS)),
        "Claimed": _or_null(claimed),
        "Moved": {"anyOf": [_ref("Task"), _ref("Question"), claimed]},
        "NextClaim": _body(("worker", "project", "epic", "role", "host", "lease"), ("worker",), "create", host=_text),
        "NewAnswer": {
            "anyOf": [
                _body(VERB_ROUTES["answer"].takes, verb="answer"),
                _s("object", properties={"response": response, "restart": _flag}, required=["response"], additionalProperties=False),
            ]
        },
        "Answered": {"anyOf": [_ref("Question"), _record({"success": _flag, "jobResumed": _flag}, jobStatus=status)]},
        "Answers": _record({"answers": _s("array", items=_object)}),
        "Cancel": _body((*VERB_ROUTES["withdraw"].takes, "claim"), verb="withdraw"),
        "Assign": _body(VERB_ROUTES["assign"].takes, ("reviewer",), "assign"),
        "Job": _record({"id": _text, "status": status, "projectId": _text}),
        "JobQuestion": job_question,
        "JobQuestions": _record({"questions": _s("array", items=_ref("JobQuestion"))}, nextCursor=_or_null(_text)),
        "JobAsked": _record({"questionId": _text, "timeoutAt": _or_null(_time)}),
        "NewJobQuestion": _s(
            "object",
            properties={
                "question": _text, "type": _words(*jobs.TYPES), "responseType": _words(*jobs.RESPONSE_TYPES),
                "options": _s("array", items=option), "context": _object, "timeoutMinutes": _s("number"), "defaultResponse": response,
                "metadata": _object, "claim": _s("string", description="The token of the job's claim, which stays valid."),
            },
            required=["question", "type", "responseType"], additionalProperties=False,
        ),
        "Cursor": _record({"cursor": _text}),
        "Projects": _record({"projects": _s("array", items=_object)}),
        "Workers": _record({"workers": _s("array", items=_ref("Worker")), "unattended": _or_null(_record({"task": _text, "ready": _whole, "workers": _whole, "start": _text}))}),
        "Worker": _record(
            {
                "name": _text, "actor": _text, "host": _text, "agents": _list_of_text, "project": _or_null(_text), "epic": _or_null(_text),
                "role": _or_null(_text), "runs": _flag, "parallel": _whole, "running": _flag, "tasks": _list_of_text, "started_at": _time,
                "seen_at": _time,
            }
        ),
        "Me": _record({"actor": _text, "role": _text, "may": _list_of_text, "workspace": _text, "scopes": _or_null(_list_of_text)}),
        "Stats": _record({"days": _whole, "tasks": _object, "waiting": _object, "questions": _object, "peak": _whole, "kinds": _object, "answer_seconds": _object}),
        "Method": _s(
            "object", additionalProperties=False,
            properties={"args": _s("array"), "fields": _object, "project": project_key.schema, "version": _whole},
        ),
        "Result": _record({"result": _any}),
        "Document": _object,
    }  # fmt: skip


# --- operations -------------------------------------------------------------------------------------------------------

_ERRORS = {
    "400": "The request is malformed.", "401": "The credential is missing or invalid.", "403": "Your role or scopes do not allow this.",
    "404": "Not found.", "405": "The path does not support this method.",
    "409": "The current state does not allow this, or another request was faster.",
    "412": "The task or question has changed since If-Match.", "413": "The request is too large.", "422": "A value is invalid.",
    "429": "Too many requests. Retry-After says when to retry.", "503": "The database is unavailable. Nothing was changed.",
}  # fmt: skip
_QUERY: dict[str, Schema] = {
    "limit": _s("integer", minimum=1, maximum=MAX_LIMIT, default=DEFAULT_LIMIT), "days": _s("integer", minimum=1, maximum=3650, default=30),
    "priority": _s("integer", minimum=0, maximum=4), "status": _words("pending", "answered", "timeout", "cancelled", "all"),
    "type": _text, "seconds": _s("number", minimum=0, maximum=30), "format": _words("log"), "urgency": _words(*URGENCIES),
    "ready": _flag, "mine": _flag,
}  # fmt: skip
_ABOUT = {
    "cursor": "`next_cursor` of the previous page.", "only": "Names of events, separated by commas; `beat`: one after every 15 seconds of silence.",
    "format": "`log`: only the events of the log themselves, all named log.", "after": "The id of the last event that you have.",
    "awaiting": "Kinds of questions, separated by commas; empty for any.", "state": "States, separated by commas; `open` stands for all that are not ended.",
    "mine": "Only questions that are unassigned, or assigned to you or a role of yours.",
    "project": "The key of a project.", "workspaceId": "Your workspace; any other is not found.", "kind": "Kinds, separated by commas.",
}  # fmt: skip


def _json(name: str, example: Any = None) -> Schema:
    media: Schema = {"schema": _ref(name)}
    if example is not None:
        media["example"] = example
    return {"application/json": media}


def _operation(row: Row) -> list[tuple[str, str, Schema]]:
    """(path, method, operation): one for each verb or method that the path can name."""
    if "{action}" in row.path:
        return [(row.path.replace("{action}", name), "post", _describe(row, name)) for name in (*VERB_ROUTES, *ALIASES)]
    if "{method}" in row.path:
        return [(row.path.replace("{method}", name), "post", _describe(row, name)) for name in rpc.methods()]
    return [(row.path, row.method.lower(), _describe(row, ""))]


def _describe(row: Row, what: str) -> Schema:
    verb = ALIASES.get(what, what)
    operation = row.operation_for({"action": what, "method": what})
    need = permissions.NEEDS[operation]
    scopes = ", ".join(f"`{scope}`" for scope, within in permissions.SCOPES.items() if operation in within)
    name = f"{row.method} {row.path}".replace("{action}", what).replace("{method}", what)
    operation_object: Schema = {
        "operationId": re.sub(r"\W+", "_", name).strip("_").lower(),
        "summary": VERBS[verb].about if "{action}" in row.path else row.about,
        "description": "Open to all." if need == "open" else f"Needs the permission `{need}`; a token with scopes needs one of: {scopes}.",
        "tags": [row.path.split("/")[2] if row.path.startswith("/api/") else "server"],
        "parameters": _parameters(row),
        "responses": _responses(row, what, need),
        "security": [] if need == "open" else [{"token": []}, {"session": []}],
    }
    if row.method == "POST":
        operation_object["requestBody"] = _request(row, verb)
    return operation_object


def _request(row: Row, what: str) -> Schema:
    example = examples.REQUESTS.get(what if "{action}" in row.path else f"{row.method} {row.path}")
    if "{action}" in row.path:
        route = VERB_ROUTES[what]
        own = {"reason": _words(*REASONS)} if what in ("ask", "flag") else {"to": {"type": ["string", "integer"]}}
        schema = _body((*route.takes, *(["claim"] if route.claim else [])), (), what, **own)
        content: Schema = {"application/json": {"schema": schema, "example": example or {}}}
    else:
        content = _json(row.body, example if example is not None else {})
    return {"content": content, "required": False}


def _parameters(row: Row) -> list[Schema]:
    parameters: list[Schema] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": _s("string", minLength=1),
            "example": "PROJ-1" if name == "key" else "Q1",
        }
        for name in re.findall(r"{(\w+)}", row.path)
        if name not in ("action", "method")
    ]
    for name in row.query:
        about = {"description": _ABOUT[name]} if name in _ABOUT else {}
        parameters.append({"name": name, "in": "query", "schema": _QUERY.get(name, _text), **about})
    if row.method == "POST":
        parameters.append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "schema": _s("string", minLength=1, maxLength=200),
                "description": "A repeated request with the same key has no second effect.",
            }
        )
        if "/{" in row.path:
            parameters.append(
                {"name": "If-Match", "in": "header", "schema": _text, "description": "The expected ETag: 412 if it has changed."}
            )
    elif row.stream is None:
        parameters.append(
            {"name": "If-None-Match", "in": "header", "schema": _text, "description": "The ETag that you have: 304 if it is current."}
        )
    else:
        parameters.append({"name": "Last-Event-ID", "in": "header", "schema": _text})
    return parameters


def _responses(row: Row, what: str, need: str) -> Schema:
    example = examples.RESPONSES.get(f"{row.method} {row.path}")
    if row.path == "/api/events":
        content: Schema = {"text/event-stream": {"schema": _text, "example": examples.STREAM}}
    elif row.response_schema == "text":
        content = {"text/plain": {"schema": _text}}
    else:
        content = _json(row.response_schema, example)
    responses: Schema = {str(row.status): {"description": row.about, "content": content}}
    if row.method == "GET" and row.stream is None:
        responses["304"] = {"description": "Not modified."}
    for status, words in _ERRORS.items():
        if need != "open" or status in ("400", "405", "422", "503"):
            responses[status] = {"description": words, "content": _json("Error")}
    return responses


@cache
def document() -> Schema:
    paths: dict[str, Schema] = {}
    for row in rows():
        for path, method, operation in _operation(row):
            paths.setdefault(path, {})[method] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Yourturn",
            "version": __version__,
            "description": "The desk between coding agents and people. Fields may be sent in snake_case or camelCase; responses are in "
            "snake_case, except those of the job API, which are in camelCase.",
        },
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "A token of `turn token create`."},
                "session": {"type": "apiKey", "in": "cookie", "name": "yourturn", "description": "The session of a browser; changes also need X-CSRF-Token."},
            },
        },
    }  # fmt: skip

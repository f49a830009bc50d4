"""Questions of jobs, in camelCase: a job is a task. For programs that know jobs, questions with a type, and their events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..core.answers import ANSWERS
from ..core.errors import Invalid, NotFound
from ..core.model import ANSWERED, ENDED, HUMAN, PENDING
from ..core.rules import KINDS, goes_on
from .request import CLAIM, Answer, Call, camel

#: type -> kind, and does it hold the job up?
TYPES: dict[str, tuple[str, bool]] = {
    "blocking": ("input", True),
    "non_blocking": ("input", False),
    "approval": ("permission", True),
    "error_recovery": ("recovery", True),
}
#: What a job's status is called, by the state of its task.
STATUS = {
    "created": "pending", "ready": "pending", "blocked": "pending", "deferred": "pending", "working": "running",
    "review": "waiting_for_approval", "done": "completed", "failed": "failed", "cancelled": "cancelled",
}  # fmt: skip
#: Events of an answer: a late one may have started the job again.
_ANSWERS = ("answer", "reopen")
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
    """A job that waits for a person says for what."""
    if state != HUMAN:
        return STATUS[state]
    return "waiting_for_approval" if awaiting and KINDS[awaiting].response_type == "approval" else "waiting_for_input"


def _as_sent(q: dict[str, Any]) -> tuple[Any, list[Any]]:
    """Context and options. What a yes or no was asked with for the reader's sake lies in its context."""
    context, options = q.get("context"), q.get("options") or []
    if not options and isinstance(context, dict) and isinstance(context.get("options"), list):
        options = context["options"]
        context = {name: value for name, value in context.items() if name != "options"} or None
    return context, options


def question(q: dict[str, Any], workspace: str) -> dict[str, Any]:
    response = q["response"]
    context, options = _as_sent(q)
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
        "response": None if response is None else answered(response),
        "respondedBy": q["responded_by"],
        "respondedAt": q["responded_at"],
        "timeoutAt": q["timeout_at"],
        "defaultResponse": None if q["default"] is None else {"type": q["response_type"], "value": q["default"]},
        "metadata": q["metadata"],
        "createdAt": q["asked_at"],
    }


def answered(response: dict[str, Any]) -> dict[str, Any]:
    """A rejection without a value is a no."""
    value = response["value"]
    if value is None:
        value = response["verdict"] == "approved" if response["type"] in ("approval", "boolean") else response["text"]
    found = {"type": response["type"], "value": value}
    return {**found, "text": response["text"]} if response.get("text") else found


# --- routes -----------------------------------------------------------------------------------------------------------


def job(call: Call) -> Answer:
    task = _job(call)
    return Answer(
        {"id": task["key"], "status": status_of(task["state"], task["awaiting"]), "projectId": task["key"].rpartition("-")[0]}
    )


def _job(call: Call) -> dict[str, Any]:
    _here(call)
    found = call.client.show(call.path["id"])
    if "key" not in found:
        raise NotFound(f"There is no job {call.path['id'][:60]}")
    return found


def _here(call: Call) -> None:
    """A workspace that is not theirs is none."""
    wanted = call.query.get("workspace_id")
    if wanted is not None and wanted != call.client.desk.workspace_name:
        raise NotFound(f"There is no workspace {wanted[:60]!a}")


def _only(given: Iterable[str], known: tuple[str, ...]) -> None:
    """These and no others, in the words of this API."""
    for name in given:
        if name not in known:
            raise Invalid(f"{camel(name)[:60]!a} is not known here", hint=f"Known: {', '.join(map(camel, known))}.")


def asked(call: Call) -> Answer:
    _here(call)
    job = call.path["id"]
    body = call.body(anything=True)
    _only(body, _BODY)
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
    if options and body["response_type"] != "choice":  # what they say is for the reader; the answer is yes, no or words
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
    fields.setdefault("claim", call.headers.get(CLAIM))
    made = call.client.ask(job, body["question"], kind, options, context=context, key=call.key, **fields)
    return Answer(
        {"questionId": made["id"], "timeoutAt": made["timeout_at"]}, 201, (("Location", f"/api/questions/{made['id']}"),)
    )


def of_job(call: Call) -> Answer:
    task = _job(call)
    return Answer({"questions": [question(q, call.client.desk.workspace_name) for q in task["questions"]]})


def pending(call: Call) -> Answer:
    _only(call.query, ("workspace_id", "type", "project_id", "limit", "cursor"))
    _here(call)
    wanted = call.text("type")
    if wanted is not None and wanted not in TYPES:
        raise Invalid(f"There is no type {wanted[:40]!a}", hint=f"Choose one of: {', '.join(TYPES)}.")
    limit = call.limit()
    filters = FILTERS[wanted] if wanted else {}
    found = call.client.inbox(project=call.text("project_id"), after=call.text("cursor"), limit=limit, **filters)
    shown = [question(q, call.client.desk.workspace_name) for q in found]
    return Answer({"questions": shown, "nextCursor": found[-1]["id"] if len(found) == limit else None})


def answer(call: Call, before: dict[str, Any]) -> Answer:
    body = call.body("response", "restart")
    given = body["response"]
    if not isinstance(given, dict) or given.get("value") is None or not isinstance(given.get("text", ""), str):
        raise Invalid("response needs a value", hint='Like {"response": {"type": "text", "value": "Use JWT"}}.')
    if given.get("type", before["response_type"]) != before["response_type"]:
        raise Invalid(f"{before['id']} takes a response of type {before['response_type']}", hint="The question is still open.")
    restart = body.get("restart", False)
    said = call.client.answer(before["id"], given["value"], given.get("text", ""), restart=restart, key=call.key)
    resumed = _resumed(call, before, late=bool(restart) and before["status"] != PENDING)
    ended = {"jobStatus": STATUS[said["task_state"]]} if said["task_state"] in ENDED else {}
    return Answer({"success": True, "jobResumed": resumed, **ended})


def _resumed(call: Call, before: dict[str, Any], late: bool) -> bool:
    """Did the job go on because of this answer? The event of the answer says what its commit did; said twice, it is the same."""
    for event in reversed(call.client.history(before["task"], limit=100)):
        data, mine = event["data"], event["actor"] == call.client.who.name and event["action"] in _ANSWERS
        own = any(q["id"] == before["id"] and q["status"] == ANSWERED for q in data.get("closed", ()))
        if mine if late else own:
            return goes_on(data["from"], data["to"])
    return False


# --- events -----------------------------------------------------------------------------------------------------------


def frames(event: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What an event of the log means for a job: (name, data)."""
    data, job = event["data"], event["task"]
    if job is None:
        return
    for q in data.get("opened", ()):
        context, options = _as_sent(q)
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
            found = {"type": name, "questionId": q["id"], "jobId": job, "response": answered(response) if response else None}
            yield name, {**found, "respondedBy": q.get("responded_by"), "reason": q.get("close_reason")}
    if "to" not in data:
        return
    asks = data.get("awaiting") or {"from": None, "to": next((q["kind"] for q in data.get("opened", ()) if q["blocking"]), None)}
    status = status_of(data["to"], asks["to"])
    if data["from"] != data["to"] or ("awaiting" in data and status != status_of(data["from"], asks["from"])):
        yield "status", {"type": "status", "jobId": job, "status": status, "state": data["to"]}

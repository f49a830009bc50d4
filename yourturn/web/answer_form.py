"""The answer form of a question: reads it, sends the answer, and shows what happened to an answer that came too late."""

from __future__ import annotations

from typing import Any

from ..client import Client
from ..core.answers import VERDICT_FORMS, way
from ..core.canonical_json import loads
from ..core.errors import AlreadyClosed, Changed, IllegalMove, Invalid, KeyReused, NotAllowed, NotFound, YourturnError
from ..core.model import ENDED, PENDING
from ..display import person
from . import evidence, labels, page_version, times
from .question import neighbours, outcome_text, page
from .question_view import EMPTY_DRAFT, AnswerDraft, Question, approver_hint, article, find_question, only_approvers
from .request import Json, Page, PageRequest, PageResult, Redirect, idempotency_key
from .task_actions import also

_STILL_OPEN = "The question is still open."
#: Moves of the task that the page of a question offers beside its answers.
_MOVES = {"cancel": "Cancel {key}", "hand_back": "Hand {key} back to agents"}


def read_form(request: PageRequest, q: Question) -> tuple[dict[str, Any], AnswerDraft]:
    """The answer, and the form's contents in case it has to be shown again."""
    verdict, _, option = request.field("say").partition(" ")
    text, value = request.field("text").strip(), request.field("value").strip()
    picked, other = request.fields("option"), request.field("other").strip()
    draft = AnswerDraft(frozenset(picked), other, value, text)
    if not verdict and q["response_type"] not in VERDICT_FORMS:
        verdict = "approved"  # Enter in a field submits the form without a button
    answer: dict[str, Any] = {"verdict": verdict, "text": text}
    if verdict not in ("approved", "rejected", "cancel"):
        raise Invalid("Say yes or no", hint=_STILL_OPEN)
    if verdict != "approved":
        answer["text"] = text or other
    elif request.field("action"):
        answer["value"] = loads(request.field("action"), "The action")
    elif q["response_type"] == "choice":
        answer["value"] = _chosen(q, [option] if option else picked, other)
    elif q["response_type"] == "boolean":
        answer["value"], answer["verdict"] = (option, None) if option else (None, "approved")
    elif q["response_type"] in ("text", "number"):
        answer["value"] = value
        if not value:
            raise Invalid("Write an answer first", hint=_STILL_OPEN)
    return answer, draft


def _chosen(q: Question, picked: list[str], other: str) -> Any:
    values = []
    for choice in picked:
        if choice == "other" and q["allow_other"] and other:
            values.append(other)
        elif choice.isascii() and choice.isdigit() and int(choice[:6]) < len(q["options"]):
            values.append(q["options"][int(choice)]["value"])
    if not values:
        names = ", ".join(str(o["label"]) for o in q["options"])
        raise Invalid(f"Choose {'some' if q['multi'] else 'one'} of: {names}", hint=_STILL_OPEN)
    return values if q["multi"] or len(values) > 1 else values[0]


def send_answer(client: Client, q: Question, answer: dict[str, Any], key: str | None) -> dict[str, Any]:
    return client.answer(q["id"], answer.get("value"), answer.get("text", ""), answer["verdict"], key=key)


def answer(request: PageRequest) -> PageResult:
    q = find_question(request.client, request.path_params["id"])
    draft, answer = EMPTY_DRAFT, dict[str, Any]()
    try:
        answer, draft = read_form(request, q)
        if q["status"] == PENDING:
            _require_reason(q, answer)
        if answer["verdict"] == "cancel":
            text, key = answer["text"], request.key
            reply = page_version.move(request, q["task"], lambda client: client.cancel(q["task"], text, key=key))
        else:
            reply = send_answer(request.client, q, answer, request.key)
    except YourturnError as error:
        return _not_sent(request, q, answer, draft, error)
    return _sent(request, q, reply)


def hand_back(request: PageRequest) -> PageResult:
    q = find_question(request.client, request.path_params["id"])
    try:
        reply = page_version.move(request, q["task"], lambda client: client.hand_back(q["task"], key=request.key))
    except YourturnError as error:
        return _not_sent(request, q, {"verdict": "hand_back"}, EMPTY_DRAFT, error)
    return _sent(request, q, reply)


def _require_reason(q: Question, answer: dict[str, Any]) -> None:
    if answer["verdict"] != "rejected" or answer["text"]:
        return
    no = way(q["kind"], q["response_type"], False)
    if no is not None and no.why_needed and not labels.script_name(q):
        why = no.why.format(who=labels.actor_name(q["asked_by"])).rstrip("?")
        raise Invalid(f"{why}? Say it in a few words", hint=_STILL_OPEN)


def _sent(request: PageRequest, q: Question, reply: dict[str, Any]) -> PageResult:
    """For a browser a redirect, without further reads; for a script the outcome."""
    if request.wants_json:
        around = neighbours(request, q["id"], times.desk_time(request.client))
        after = next(iter(request.client.inbox(only=[q["id"]])), None)
        outcome = outcome_text(request, after or q, reply)
        result = labels.result_text(after, request.client.who.name) if after and after["status"] != PENDING else outcome
        return Json({"sent": outcome, "result": result, "next": around.after, "waiting": around.mine, "also": also(reply)})
    if request.field("quick"):
        return Redirect(f"/inbox?sent={q['id']}{also(reply)}")
    return Redirect(f"/questions/{q['id']}?sent=1{also(reply)}")


def _not_sent(request: PageRequest, q: Question, answer: dict[str, Any], draft: AnswerDraft, error: YourturnError) -> PageResult:
    """The page about a late answer, or the question again with the form's contents and the error."""
    if isinstance(error, (AlreadyClosed, KeyReused, IllegalMove)):
        return _too_late(request, q, answer)
    if isinstance(error, Changed) and find_question(request.client, q["id"])["status"] != PENDING:
        return _too_late(request, q, answer)
    if isinstance(error, NotFound):
        raise error
    if isinstance(error, NotAllowed) and "approvers" in error.reason:
        error = NotAllowed(only_approvers(q), hint=approver_hint(request.client))
    if request.wants_json or error.http_status >= 500:
        raise error from None
    message = str(error) if isinstance(error, Changed) else error.message
    wrong = f"{message}. {error.hint}".replace(f"{q['id']} takes", "Choose").strip()
    return page(request, q["id"], times.desk_time(request.client), draft._replace(wrong=wrong), error.http_status)


# --- late answers -----------------------------------------------------------------------------------------------------


def _too_late(request: PageRequest, q: Question, answer: dict[str, Any]) -> PageResult:
    client, now = request.client, times.desk_time(request.client)
    closed = find_question(client, q["id"])
    state = client.show(q["task"])["state"]
    yours = _answer_text(closed, answer)
    earlier = _earlier_answer(closed, now, state, client.who.name)
    if request.wants_json:
        return Json({"late": earlier, "yours": yours}, 409)
    context = {
        "here": "inbox", "q": article(client, closed, now, "page"), "earlier": earlier, "yours": yours,
        "asker": labels.actor_name(q["asked_by"]), "ended": state in ENDED,
        "restart": state in ENDED and "restart" in client.moves(q["id"]),
        "key": idempotency_key(), "around": neighbours(request, q["id"], now), "note": f"Late answer to {q['id']}: {yours}",
    }  # fmt: skip
    return Page("late.html", context, 409)


def _answer_text(q: Question, answer: dict[str, Any]) -> str:
    """The answer in the words of its buttons and options."""
    verdict, value, text = answer["verdict"], answer.get("value"), answer.get("text", "")
    if verdict in _MOVES:
        first = _MOVES[verdict].format(key=q["task"])
    elif isinstance(value, dict):
        first = evidence.as_text(value)
    else:
        first = labels.answer_label(q, value) if value is not None else ""
    if not first:
        button = way(q["kind"], q["response_type"], verdict == "approved")
        first = button.label.rstrip("…") if button is not None else "No"
    return "\n".join(filter(None, (first, text)))


def _earlier_answer(q: Question, now: int, state: str, me: str) -> dict[str, str]:
    """How the question was closed before this answer: its actor or cause (lead), the outcome (rest), and the time."""
    if q["status"] == PENDING:
        return {"lead": f"{q['task']} does not wait any more:", "rest": f"it is {state}", "at": "", "iso": "", "ago": ""}
    at = {"at": times.clock(q["responded_at"]), "iso": q["responded_at"], "ago": times.ago(q["responded_at"], now)}
    result = labels.result_text(q, me).rstrip(".")
    if q["status"] == "timeout":
        return {"lead": "The time was over:", "rest": result, **at}
    if q["status"] == "cancelled":
        return {"lead": f"{q['id']} is not asked any more:", "rest": result, **at}
    name, value = person(q["responded_by"] or "system"), (q["response"] or {}).get("value")
    if value in (None, True) or isinstance(value, dict):
        rest = result.removeprefix(f"{name} ")
    else:
        rest = f"“{labels.answer_label(q, value)}”"
    return {"lead": "You answered this before:" if q["responded_by"] == me else f"{name} was faster:", "rest": rest, **at}


def late_sentence(request: PageRequest, number: str) -> str:
    """What closed the question before this answer, in one sentence."""
    q = find_question(request.client, number)
    earlier = _earlier_answer(q, times.desk_time(request.client), "", request.client.who.name)
    return f"{earlier['lead']} {earlier['rest']}" + (f", {earlier['ago']}." if earlier["ago"] else ".")


def late(request: PageRequest) -> PageResult:
    """Keeps a late answer as a note, or restarts the task with it."""
    q = find_question(request.client, request.path_params["id"])
    text = request.field("note").strip()
    if request.field("do") == "restart":
        words = text.removeprefix(f"Late answer to {q['id']}: ")
        request.client.answer(q["id"], text=words, restart=True, key=request.key)
        return Redirect(f"/questions/{q['id']}?kept=restart")
    if text:
        request.client.note(q["task"], text, key=request.key)
    return Redirect(f"/questions/{q['id']}?kept=note")

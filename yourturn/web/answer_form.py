"""Answers: what a form says, saying it, and what is told to whoever was too late."""

from __future__ import annotations

from typing import Any

from ..client import Client
from ..core.answers import way
from ..core.canonical_json import loads
from ..core.errors import AlreadyClosed, Changed, IllegalMove, Invalid, KeyReused, NotAllowed, NotFound, YourturnError
from ..core.model import ENDED, PENDING
from ..display import person
from . import evidence, inbox, labels, page_version, view_models
from .question import neighbours, page, words_sent
from .question_view import NOTHING, Asked, Draft, ask_whom, find, made
from .request import Data, Go, Page, Shown, Visit
from .task_actions import also


def read(visit: Visit, q: Asked) -> tuple[dict[str, Any], Draft]:
    """What the form says, as an answer; and as a draft, should it have to be shown again."""
    verdict, _, short = visit.field("say").partition(" ")
    text, value = visit.field("text").strip(), visit.field("value").strip()
    picked, other = visit.fields("option"), visit.field("other").strip()
    draft = Draft(frozenset(picked), other, value, text)
    given: dict[str, Any] = {"verdict": verdict or "approved", "text": text}
    if given["verdict"] not in ("approved", "rejected", "cancel"):
        raise Invalid("Say yes or no", hint="The question is still open.")
    if given["verdict"] != "approved":
        if other and not text:
            given["text"] = other
        return given, draft
    if visit.field("action"):
        given["value"] = loads(visit.field("action"), "The action")
    elif q["response_type"] == "choice":
        given["value"] = _chosen(q, [short] if short else picked, other)
    elif q["response_type"] == "boolean":
        given["value"], given["verdict"] = (short, None) if short else (None, "approved")
    elif q["response_type"] in ("text", "number"):
        given["value"], given["text"] = value or None, text
        if not value:
            raise Invalid("Write an answer first", hint="The question is still open.")
    return given, draft


def _chosen(q: Asked, picked: list[str], other: str) -> Any:
    found = []
    for one in picked:
        if one == "other" and q["allow_other"] and other:
            found.append(other)
        elif one.isascii() and one.isdigit() and int(one[:6]) < len(q["options"]):
            found.append(q["options"][int(one)]["value"])
    if not found:
        names = ", ".join(str(o["label"]) for o in q["options"])
        raise Invalid(f"Choose {'some' if q['multi'] else 'one'} of: {names}", hint="The question is still open.")
    return found if q["multi"] else found[0]


def say(client: Client, q: Asked, given: dict[str, Any], key: str | None) -> dict[str, Any]:
    """Answer, in the words of the client."""
    return client.answer(q["id"], given.get("value"), given.get("text", ""), given["verdict"], key=key)


def answer(visit: Visit) -> Shown:
    q = find(visit.client, visit.path["id"])
    draft, given = NOTHING, dict[str, Any]()
    try:
        given, draft = read(visit, q)
        if q["status"] == PENDING:
            _asks_why(q, given, visit)
        if given["verdict"] == "cancel":
            reply = page_version.move(visit, q["task"], lambda client: client.cancel(q["task"], given["text"], key=visit.key))
        else:
            reply = say(visit.client, q, given, visit.key)
    except YourturnError as error:
        return _not_sent(visit, q, given, draft, error)
    return _sent(visit, q, reply)


def hand_back(visit: Visit) -> Shown:
    q = find(visit.client, visit.path["id"])
    try:
        reply = page_version.move(visit, q["task"], lambda client: client.hand_back(q["task"], key=visit.key))
    except YourturnError as error:
        return _not_sent(visit, q, {"verdict": "hand_back"}, NOTHING, error)
    return _sent(visit, q, reply)


def _not_sent(visit: Visit, q: Asked, given: dict[str, Any], draft: Draft, error: YourturnError) -> Shown:
    """Too late, or refused: then the question is still open, and what was written is still there."""
    if isinstance(error, (AlreadyClosed, KeyReused, IllegalMove)):
        return _too_late(visit, q, given)
    if isinstance(error, Changed) and find(visit.client, q["id"])["status"] != PENDING:
        return _too_late(visit, q, given)
    if isinstance(error, NotFound):
        raise error
    if isinstance(error, NotAllowed) and "approvers" in error.reason:
        error = NotAllowed(
            f"Only approvers can {'allow' if q['kind'] == 'permission' else 'answer'} this", hint=ask_whom(visit.client).strip()
        )
    if visit.wants_data or error.http_status >= 500:
        raise error from None
    told = str(error) if isinstance(error, Changed) else error.message
    wrong = f"{told}. {error.hint}".replace(f"{q['id']} takes", "Choose").strip()
    return page(visit, q["id"], view_models.now_of(visit.client), draft._replace(wrong=wrong), error.http_status)


def _asks_why(q: Asked, given: dict[str, Any], visit: Visit) -> None:
    if given["verdict"] != "rejected" or given["text"]:
        return
    no = way(q["kind"], q["response_type"], False)
    if no is not None and no.why_needed and not labels.script(q):
        why = no.why.format(who=labels.name(q["asked_by"])).rstrip("?")
        raise Invalid(f"{why}? Say it in a few words", hint="The question is still open.")


def _sent(visit: Visit, q: Asked, reply: dict[str, Any]) -> Shown:
    now = view_models.now_of(visit.client)
    around = neighbours(visit, q["id"], now)
    after = next(iter(visit.client.inbox(only=[q["id"]])), None)
    told = words_sent(visit, after or q, reply)
    if visit.wants_data:
        result = labels.result(after, visit.client.who.name) if after and after["status"] != PENDING else told
        return Data({"sent": told, "result": result, "next": around.after, "waiting": around.mine, "also": also(reply)})
    if visit.field("quick"):
        return Go(f"/inbox?sent={q['id']}{also(reply)}")
    return Go(f"/questions/{q['id']}?sent=1{also(reply)}")


#: What a question's page does to the task instead of an answer.
_MOVES = {"cancel": "Cancel {key}", "hand_back": "Hand {key} back to agents"}


# --- too late ---------------------------------------------------------------------------------------------------------


def _too_late(visit: Visit, q: Asked, given: dict[str, Any]) -> Shown:
    now = view_models.now_of(visit.client)
    found = find(visit.client, q["id"])
    task = visit.client.show(q["task"])
    mine = _in_words(found, given)
    who = person(found["responded_by"] or "system")
    told = _faster(found, who, now, task["state"], visit.client.who.name)
    if visit.wants_data:
        return Data({"late": told, "yours": mine}, 409)
    shown = made(visit.client, found, now, "page")
    by = labels.name(q["asked_by"])
    context = {
        "here": "inbox", "q": shown, "told": told, "mine": mine, "by": by, "ended": task["state"] in ENDED,
        "restart": task["state"] in ENDED and "restart" in visit.client.moves(q["id"]),
        "key": inbox.new_key(), "around": neighbours(visit, q["id"], now), "note": f"Late answer to {q['id']}: {mine}",
    }  # fmt: skip
    return Page("late.html", context, 409)


def _in_words(q: Asked, given: dict[str, Any]) -> str:
    if given["verdict"] in _MOVES:
        return "\n".join(filter(None, (_MOVES[given["verdict"]].format(key=q["task"]), given.get("text", ""))))
    value = given.get("value")
    first = labels.label(q, value) if value is not None and not isinstance(value, dict) else ""
    if value is not None and isinstance(value, dict):
        first = evidence.as_text(value)
    if not first:
        said = way(q["kind"], q["response_type"], given["verdict"] == "approved")
        first = said.label.rstrip("…") if said is not None else "No"
    return "\n".join(filter(None, (first, given.get("text", ""))))


def _faster(q: Asked, who: str, now: int, state: str, me: str) -> dict[str, str]:
    """Who, what and when; and how it stands now."""
    if q["status"] == PENDING:
        return {"lead": f"{q['task']} does not wait any more:", "rest": f"it is {state}", "at": "", "iso": "", "ago": ""}
    at = {"at": view_models.clock(q["responded_at"]), "iso": q["responded_at"], "ago": view_models.ago(q["responded_at"], now)}
    if q["status"] == "timeout":
        return {"lead": "The time was over:", "rest": labels.result(q, me).rstrip("."), **at}
    if q["status"] == "cancelled":
        return {"lead": f"{q['id']} is not asked any more:", "rest": labels.result(q, me).rstrip("."), **at}
    response = q["response"] or {}
    value = response.get("value")
    what = (
        f"“{labels.label(q, value)}”"
        if value not in (None, True) and not isinstance(value, dict)
        else labels.result(q, me).removeprefix(f"{who} ")
    )
    lead = "You answered this before:" if q["responded_by"] == me else f"{who} was faster:"
    return {"lead": lead, "rest": what.rstrip("."), **at}


def faster(visit: Visit, named: str) -> str:
    """The same in one sentence."""
    q = find(visit.client, named)
    told = _faster(q, person(q["responded_by"] or "system"), view_models.now_of(visit.client), "", visit.client.who.name)
    return " ".join(filter(None, (told["lead"], told["rest"]))) + (f", {told['ago']}." if told["ago"] else ".")


def late(visit: Visit) -> Shown:
    q = find(visit.client, visit.path["id"])
    text = visit.field("note").strip()
    if visit.field("do") == "restart":
        words = text.removeprefix(f"Late answer to {q['id']}: ")
        visit.client.answer(q["id"], text=words, restart=True, key=visit.key)
        return Go(f"/questions/{q['id']}?kept=restart")
    if text:
        visit.client.note(q["task"], text, key=visit.key)
    return Go(f"/questions/{q['id']}?kept=note")

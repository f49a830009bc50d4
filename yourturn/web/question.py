"""The pages of a question: the page itself, its fragments for open pages, and the confirmation before an answer ends its task."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..client import Client
from ..core.model import ENDED, HUMAN, PENDING, WITHDRAWN
from ..core.permissions import GRANTS, is_mine
from ..display import continuing_actor, followed
from . import labels, layout, times, view_models
from .inbox_summary import InboxFilter, summarize
from .question_view import EMPTY_DRAFT, AnswerDraft, Question, article, find_question
from .request import Fragment, Page, PageRequest, PageResult, Redirect, idempotency_key
from .task_actions import moved_with


def show(request: PageRequest) -> PageResult:
    """The page; with ?as=article, pane, sheet, row or toast a fragment for an open page."""
    named, form = request.path_params["id"], request.query.get("as", "")
    if form in ("article", "pane", "sheet"):
        return _article(request, named, form)
    if form in ("row", "toast"):
        return _row(request, named, form)
    return page(request, named, times.desk_time(request.client))


def _context(request: PageRequest) -> dict[str, Any]:
    return {"csrf": request.csrf, "may": "human" in GRANTS[request.client.who.role]}


def _article(request: PageRequest, named: str, form: str) -> Fragment:
    q, now = find_question(request.client, named), times.desk_time(request.client)
    sent = _sent_text(request, q)
    following = neighbours(request, q["id"], now).after if sent else ""
    view = article(request.client, q, now, "page" if form == "article" else form, sent=sent, next=following)
    return Fragment(layout.render_macro("article.html", "article", view, **_context(request)))


def _row(request: PageRequest, named: str, form: str) -> Fragment:
    client = request.client
    q = find_question(client, named)
    effects = client.effects(q["id"]).get(q["id"], ())
    now, run = times.desk_time(client), labels.script_name(q)
    row = view_models.inbox_row(q, now, client.who.name, run, idempotency_key(), effects)
    if row.result:
        row = row._replace(result=row.result + view_models.timeout_outcome(q, client.show(q["task"])))
    urgencies = client.preferences().get("notify") if client.who.is_person else None
    context = _context(request) | {
        "mine": is_mine(client.who, q["reviewer"]),
        "loud": q["blocking"] and (urgencies is None or q["urgency"] in urgencies),
    }
    return Fragment(layout.render_macro(f"{form}.html", form, row, **context))


def page(request: PageRequest, named: str, now: int, draft: AnswerDraft = EMPTY_DRAFT, status: int = 200, **more: Any) -> Page:
    q = find_question(request.client, named)
    around = neighbours(request, q["id"], now)
    sent = _sent_text(request, q)
    if "kept" in request.query:
        restarted = request.query["kept"] == "restart"
        sent = f"{q['task']} begins again, with your words." if restarted else f"Kept as a note on {q['task']}."
    view = article(request.client, q, now, "page", draft, sent, around.after)
    context = {"here": "inbox", "q": view, "around": around, "ending": None, "waiting": around.mine, **more}
    return Page("question.html", context, status)


class Around(NamedTuple):
    """A question's place in the inbox, and the questions beside it."""

    place: int
    total: int
    before: str
    after: str
    mine: int


def neighbours(request: PageRequest, number: str, now: int) -> Around:
    summary = summarize(request, InboxFilter(), now)
    numbers = [q["id"] for _, q in summary.order]
    if number not in numbers:
        return Around(0, len(numbers), "", numbers[0] if numbers else "", summary.mine)
    at = numbers.index(number)
    after = numbers[at + 1] if at + 1 < len(numbers) else ""
    return Around(at + 1, len(numbers), numbers[at - 1] if at else "", after, summary.mine)


def _sent_text(request: PageRequest, q: Question) -> str:
    return f"Sent. {outcome_text(request, q)}" if "sent" in request.query and q["status"] != PENDING else ""


def outcome_text(request: PageRequest, q: Question, reply: dict[str, Any] | None = None) -> str:
    """What an answer did: 'coder goes on with API-31.', and what happened to other tasks."""
    others = moved_with(request) if reply is None else followed(reply)
    return " ".join([_outcome(request.client, q), *others])


def _outcome(client: Client, q: Question) -> str:
    task = client.show(q["task"])
    key, state = task["key"], task["state"]
    if state == HUMAN:
        numbers = [o["id"] for o in task["questions"] if o["status"] == PENDING and o["blocking"]]
        return f"{key} still waits for {' and '.join(numbers[:3])}."
    if state in ENDED:
        return f"{key} is {state}."
    run = labels.script_name(task)
    name = run or continuing_actor(q)
    if q["status"] == WITHDRAWN or name == "an agent":
        return f"Agents take {key} again."
    return f"{name} goes on with {key}." if q["blocking"] else f"{name} is notified."


def cancel(request: PageRequest) -> PageResult:
    """The confirmation before an answer ends its task: which agent stops, and which tasks no longer wait."""
    client = request.client
    q = find_question(client, request.path_params["id"])
    if q["status"] != PENDING:
        return Redirect(f"/questions/{q['id']}")
    ending = {
        "verdict": "cancel" if q["kind"] == "work" else "rejected",
        "who": labels.actor_name(q["asked_by"]),
        "branch": bool(client.show(q["task"])["branch"]),
        "holds_up": client.holds_up(q["task"]),
        "key": q["task"],
    }
    return page(request, q["id"], times.desk_time(client), ending=ending)

"""A question's pages: the page itself, pieces of it for pages that are open, and what is asked before a task is ended."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..client import Client
from ..core.model import ENDED, HUMAN, PENDING, WITHDRAWN
from ..core.permissions import GRANTS, is_mine
from ..display import followed
from . import inbox, labels, layout, view_models
from .question_view import NOTHING, Asked, Draft, find, made
from .request import Go, Page, Part, Shown, Visit
from .task_actions import moved_with


def show(visit: Visit) -> Shown:
    """?as=article, pane, sheet, row or toast: a piece for a page that is open."""
    named, part = visit.path["id"], visit.query.get("as", "")
    now = view_models.now_of(visit.client)
    context = {"csrf": visit.csrf, "may": "human" in GRANTS[visit.client.who.role]}
    if part in ("article", "pane", "sheet"):
        q = find(visit.client, named)
        told = f"Sent. {words_sent(visit, q)}" if "sent" in visit.query and q["status"] != PENDING else ""
        place = "page" if part == "article" else part
        found = made(visit.client, q, now, place, sent=told, next=neighbours(visit, q["id"], now).after if told else "")
        return Part(layout.part("article.html", "article", found, **context))
    if part in ("row", "toast"):
        q = find(visit.client, named)
        effects = visit.client.effects(q["id"]).get(q["id"], ())
        row = view_models.row(q, now, visit.client.who.name, labels.script(q), inbox.new_key(), effects)
        if row.result:
            row = row._replace(result=row.result + view_models.fate(q, visit.client.show(q["task"])))
        macro = "row" if part == "row" else "toast"
        wished = visit.client.preferences().get("notify") if visit.client.who.is_person else None
        loud = q["blocking"] and (wished is None or q["urgency"] in wished)
        return Part(layout.part(f"{macro}.html", macro, row, **context, mine=is_mine(visit.client.who, q["reviewer"]), loud=loud))
    return page(visit, named, now)


def page(visit: Visit, named: str, now: int, draft: Draft = NOTHING, status: int = 200, **more: Any) -> Page:
    q = find(visit.client, named)
    around = neighbours(visit, q["id"], now)
    sent = f"Sent. {words_sent(visit, q)}" if "sent" in visit.query and q["status"] != PENDING else ""
    if "kept" in visit.query:
        begun = visit.query["kept"] == "restart"
        sent = f"{q['task']} begins again, with your words." if begun else f"Kept as a note on {q['task']}."
    found = made(visit.client, q, now, "page", draft, sent, around.after)
    return Page(
        "question.html", {"here": "inbox", "q": found, "around": around, "ending": None, "waiting": around.mine, **more}, status
    )


class Around(NamedTuple):
    place: int
    total: int
    before: str
    after: str
    mine: int


def neighbours(visit: Visit, named: str, now: int) -> Around:
    """Where a question stands in the inbox, and who stands beside it."""
    found = inbox.survey(visit, inbox.Wish(), now)
    ids = [q["id"] for _, q in found.order]
    if named not in ids:
        return Around(0, len(ids), "", ids[0] if ids else "", found.mine)
    at = ids.index(named)
    return Around(at + 1, len(ids), ids[at - 1] if at else "", ids[at + 1] if at + 1 < len(ids) else "", found.mine)


def words_sent(visit: Visit, q: Asked, reply: dict[str, Any] | None = None) -> str:
    """What came of an answer: 'coder goes on with API-31.', and of other tasks with it."""
    more = moved_with(visit) if reply is None else followed(reply)
    return " ".join([_came_of(visit.client, q), *more])


def _came_of(client: Client, q: Asked) -> str:
    task = client.show(q["task"])
    key, state = task["key"], task["state"]
    if state == HUMAN:
        waits = [o["id"] for o in task["questions"] if o["status"] == PENDING and o["blocking"]]
        return f"{key} still waits for {' and '.join(waits[:3])}."
    if state in ENDED:
        return f"{key} is {state}."
    run = labels.script(task)
    if q["status"] == WITHDRAWN or not (run or view_models.who(q["asked_by"]).agent):  # no agent of its own goes on with it
        return f"Agents take {key} again."
    who = run or labels.name(q["asked_by"])
    return f"{who} hears of it." if not q["blocking"] else f"{who} goes on with {key}."


def cancel(visit: Visit) -> Shown:
    """Before a task is ended by an answer: who stops, and what no longer waits."""
    q = find(visit.client, visit.path["id"])
    if q["status"] != PENDING:
        return Go(f"/questions/{q['id']}")
    task = visit.client.show(q["task"])
    holds = visit.client.holds_up(q["task"])
    ends = "cancel" if q["kind"] == "work" else "rejected"
    ending = {"say": ends, "who": labels.name(q["asked_by"]), "branch": bool(task["branch"]), "holds_up": holds, "key": q["task"]}
    return page(visit, q["id"], view_models.now_of(visit.client), ending=ending)

"""The inbox page: open questions in the order in which they should be answered, one of them in a pane; and its live counts."""

from __future__ import annotations

from ..client import Client
from ..core.errors import NotFound
from ..core.model import PENDING
from ..core.permissions import GRANTS
from . import labels, times, view_models
from .inbox_summary import KINDS, URGENCY, InboxFilter, Row, Summary, parse_filter, summarize, waiting_count, waiting_rows
from .question import outcome_text
from .question_view import find_question, pane
from .request import Json, Page, PageRequest, PageResult, idempotency_key

#: Questions on one page.
PAGE = 25
#: Questions whose state an open page may ask for at once.
MAX_SHOWN = 200
ABOUT = {"Running out": "answer these first", "Work is waiting": "most unblocked first", "No hurry": "answers are welcome"}


def show(request: PageRequest) -> PageResult:
    client, wanted = request.client, parse_filter(request.query)
    may_answer = "human" in GRANTS[client.who.role]
    if not may_answer:  # no question is theirs
        wanted = wanted._replace(whose="all")
    now = times.desk_time(client)
    summary = summarize(request, wanted, now)
    total = len(summary.order)
    groups = _groups(client, summary.order[wanted.start : wanted.start + PAGE], now)
    first = groups[0][2][0].id if groups else ""
    at = wanted.at or first
    ends, chips = min(total, wanted.start + PAGE), _chips(wanted)
    return Page(
        "inbox.html",
        {
            "here": "inbox", "wanted": wanted, "summary": summary, "groups": groups, "at": at,
            "pane": pane(client, at, now) if at else None, "sent": _sent_text(request),
            "waiting": waiting_count(request) if wanted.search else summary.mine,
            "filters": _filters(summary, wanted), "chips": chips, "start": wanted.start, "ends": ends, "total": total,
            "more": wanted.url(start=wanted.start + PAGE) if ends < total else "",
            "less": wanted.url(start=max(0, wanted.start - PAGE)) if wanted.start else "",
            "working": client.counts().get("working", 0) if not total else 0, "may": may_answer,
            "unattended": client.unattended() if not total and not chips else None,
        },
    )  # fmt: skip


def _groups(client: Client, order: list[tuple[str, Row]], now: int) -> list[tuple[str, str, list[view_models.InboxRow]]]:
    """The groups of one page with their rows, read in full."""
    questions = {q["id"]: q for q in client.inbox(only=[q["id"] for _, q in order])}
    effects = client.effects(*questions)
    groups: list[tuple[str, str, list[view_models.InboxRow]]] = []
    for name, summarized in order:
        q = questions.get(summarized["id"])
        if q is None:
            continue
        if not groups or groups[-1][0] != name:
            groups.append((name, ABOUT[name], []))
        run = labels.script_name(q)
        row = view_models.inbox_row(q, now, client.who.name, run, idempotency_key(), effects.get(q["id"], ()))
        groups[-1][2].append(row)
    return groups


def _sent_text(request: PageRequest) -> str:
    """After an answer from a row: what it did."""
    named = request.query.get("sent", "")[:60]
    if not named:
        return ""
    try:
        q = find_question(request.client, named)
    except NotFound:
        return "Sent."
    return f"Sent. {outcome_text(request, q)}" if q["status"] != PENDING else "Sent."


def _filters(summary: Summary, wanted: InboxFilter) -> list[tuple[str, list[tuple[str, str, int, bool]]]]:
    """The filter menu: headings with their lines (label, address, count, selected)."""
    kinds = [(k.capitalize(), wanted.url(kind=k), n, wanted.kind == k) for k in KINDS if (n := summary.kinds.get(k))]
    projects = [(p, wanted.url(project=p), n, wanted.project == p) for p, n in summary.projects.items()]
    urgencies = [
        (label, wanted.url(urgency=name), n, wanted.urgency == name)
        for name, label in URGENCY.items()
        if (n := summary.urgencies[name])
    ]
    return [("Kind", kinds), ("Project", projects), ("Urgency", urgencies)]


def _chips(wanted: InboxFilter) -> list[tuple[str, str]]:
    """The active filters: label, and the address without it."""
    active = {
        "kind": wanted.kind.capitalize(),
        "project": wanted.project,
        "urgency": URGENCY.get(wanted.urgency, ""),
        "search": f"“{wanted.search}”" if wanted.search else "",
    }
    return [(label, wanted.url(**{name: ""})) for name, label in active.items() if label]


def counts(request: PageRequest) -> PageResult:
    """For an open page: how many questions wait, the server's version and time; and of the questions that the page shows as
    open, which are closed by now and the deadlines of the others."""
    now = times.desk_time(request.client)
    summary = summarize(request, InboxFilter(), now)
    shown = list(dict.fromkeys(filter(None, request.query.get("shown", "").split(","))))[:MAX_SHOWN]
    rows = waiting_rows(request) if shown else []
    deadlines = {q["id"]: times.milliseconds(times.deadline(q)) for q in rows}
    return Json(
        {
            "mine": summary.mine, "all": summary.all, "boot": request.server_version, "desk": request.client.desk.identity(),
            "now": now // 1000, "closed": [number for number in shown if number not in deadlines],
            "until": {number: deadlines[number] for number in shown if deadlines.get(number)},
        }
    )  # fmt: skip

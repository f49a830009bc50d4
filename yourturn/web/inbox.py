"""The inbox: what waits, in the order in which it should be answered; and answers to several at once.

The whole list is read from above, without its words: groups, counts and places come from that. Only the questions of one
page are read in full, so ten thousand that wait cost little more than ten.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import urlencode

from ..client import Client
from ..core.errors import AlreadyClosed, IllegalMove, Invalid, YourturnError
from ..core.model import PENDING
from ..core.permissions import GRANTS, is_mine
from ..core.time_format import iso
from ..display import GROUPS, SOON, grouped
from . import labels, view_models
from .request import Data, Page, Shown, Visit

#: Questions on one page; and at most so many answers at once.
PAGE, BATCH = 25, 50
#: Questions that a page may ask about at once.
SHOWN = 200
#: Seconds for which what was worked out holds, if nothing happens.
FRESH = 2.0
ABOUT = {"Running out": "answer these first", "Work is waiting": "most unblocked first", "No hurry": "answers are welcome"}
URGENCY = {"soon": "Running out", "work": "Work is waiting", "later": "No hurry"}
SORTS = ("permission", "approval", "review", "content", "checkpoint", "choice", "question", "recovery", "escalation", "work")
Row = dict[str, Any]


def remembered(visit: Visit, name: tuple[Any, ...], make: Callable[[], Any]) -> Any:
    """What was worked out before, as long as nothing has happened since; and never for long, because time passes too."""
    memory, desk = visit.site.memory, visit.client.desk
    key = (desk.workspace_name, *name)
    cursor, now = desk.cursor(), time.monotonic()
    before = memory.get(key)
    if before is not None and before[0] == cursor and now - before[1] < FRESH:
        return before[2]
    found = make()
    if len(memory) > 200:
        memory.clear()
    memory[key] = (cursor, now, found)
    return found


def waiting_for(visit: Visit) -> int:
    return survey(visit, Wish(), view_models.now_of(visit.client)).mine


class Wish(NamedTuple):
    """What of the inbox is shown."""

    whose: str = "mine"
    kind: str = ""
    project: str = ""
    urgency: str = ""
    search: str = ""
    start: int = 0
    at: str = ""  #: the question in the pane

    def url(self, **other: Any) -> str:
        new = self._replace(**{"start": 0, "at": "", **other})
        known = {
            "whose": new.whose if new.whose != "mine" else "",
            **{n: getattr(new, n) for n in ("kind", "project", "urgency")},
        }
        asked = {n: str(v) for n, v in {**known, "search": new.search, "start": new.start or "", "at": new.at}.items() if v}
        return f"/inbox?{urlencode(asked)}" if asked else "/inbox"


def wish_of(query: dict[str, str]) -> Wish:
    start = query.get("start", "")
    if start and not (start.isascii() and start.isdigit() and len(start) < 8):
        raise Invalid("start must be a number")
    found = Wish(
        "all" if query.get("whose") == "all" else "mine", query.get("kind", ""), query.get("project", "").upper(),
        query.get("urgency", ""), query.get("search", "").strip()[:200], int(start or 0), query.get("at", "")[:60],
    )  # fmt: skip
    if found.kind and found.kind not in SORTS:
        raise Invalid(f"There is no kind {found.kind[:40]!a}", hint=f"Choose one of: {', '.join(SORTS)}.")
    if found.urgency and found.urgency not in URGENCY:
        raise Invalid(f"There is no urgency {found.urgency[:40]!a}", hint=f"Choose one of: {', '.join(URGENCY)}.")
    return found


class Survey(NamedTuple):
    """What waits, from above."""

    mine: int
    all: int
    others: dict[str, int]  #: for whom else, how many
    kinds: dict[str, int]
    projects: dict[str, int]
    urgencies: dict[str, int]
    order: list[tuple[str, Row]]  #: group and question, of what is wished for


def survey(visit: Visit, wish: Wish, now: int) -> Survey:
    client, asked = visit.client, wish._replace(start=0, at="")
    found: Survey = remembered(visit, ("survey", client.who, asked), lambda: _survey(visit, asked, now))
    return found


def _survey(visit: Visit, wish: Wish, now: int) -> Survey:
    client = visit.client
    rows: list[Row] = remembered(visit, ("waiting", wish.search), lambda: client.waiting(search=wish.search or None))
    ours = {q["reviewer"]: is_mine(client.who, q["reviewer"]) for q in rows}
    mine = [q for q in rows if ours[q["reviewer"]]]
    others: dict[str, int] = {}
    for q in rows if len(mine) < len(rows) else ():
        if not ours[q["reviewer"]]:
            whom = q["reviewer"] or "people who answer"
            others[whom] = others.get(whom, 0) + 1
    here = mine if wish.whose == "mine" else rows
    groups = grouped(here, iso(now + SOON))
    order = [(name, q) for name in GROUPS for q in groups[name]]
    kinds: dict[str, int] = {}
    projects: dict[str, int] = {}
    for q in here:
        sort = view_models.question_sort(q)
        kinds[sort] = kinds.get(sort, 0) + 1
        projects[q["project"]] = projects.get(q["project"], 0) + 1
    wanted = [
        (name, q)
        for name, q in order
        if (not wish.kind or view_models.question_sort(q) == wish.kind)
        and (not wish.project or q["project"] == wish.project)
        and (not wish.urgency or name == URGENCY[wish.urgency])
    ]
    urgencies = {short: len(groups[name]) for short, name in URGENCY.items()}
    return Survey(len(mine), len(rows), others, kinds, dict(sorted(projects.items())), urgencies, wanted)


def new_key() -> str:
    return f"web-{os.urandom(9).hex()}"


def show(visit: Visit) -> Shown:
    from .question import words_sent
    from .question_view import find, pane

    client, wish = visit.client, wish_of(visit.query)
    if not _may(client):  # nothing is theirs to answer: they look at all
        wish = wish._replace(whose="all")
    now = view_models.now_of(client)
    found = survey(visit, wish, now)
    slice_ = found.order[wish.start : wish.start + PAGE]
    asked = {q["id"]: q for q in client.inbox(only=[q["id"] for _, q in slice_])}
    effects = client.effects(*asked)
    groups: list[tuple[str, str, list[view_models.Row]]] = []
    for name, short in slice_:
        q = asked.get(short["id"])
        if q is None:
            continue
        if not groups or groups[-1][0] != name:
            groups.append((name, ABOUT[name], []))
        groups[-1][2].append(view_models.row(q, now, client.who.name, labels.script(q), new_key(), effects.get(q["id"], ())))
    ids = [row.id for _, _, rows in groups for row in rows]
    at = wish.at or (ids[0] if ids else "")
    shown = pane(visit, at, now) if at else None
    sent = ""
    if visit.query.get("sent"):
        answered = pane(visit, visit.query["sent"][:60], now)
        sent = f"Sent. {words_sent(visit, find(client, answered.id))}" if answered and answered.over else "Sent."
    ends = min(len(found.order), wish.start + PAGE)
    return Page(
        "inbox.html",
        {
            "here": "inbox", "wish": wish, "survey": found, "groups": groups, "at": at, "pane": shown, "sent": sent,
            "waiting": waiting_for(visit) if wish.search else found.mine, "filters": _filters(found, wish), "chips": _chips(wish),
            "start": wish.start, "ends": ends, "total": len(found.order),
            "more": wish.url(start=wish.start + PAGE) if ends < len(found.order) else "",
            "less": wish.url(start=max(0, wish.start - PAGE)) if wish.start else "",
            "working": client.counts().get("working", 0) if not found.order else 0, "may": _may(client),
            "unattended": client.unattended() if not found.order and not _chips(wish) else None,
        },
    )  # fmt: skip


def _may(client: Client) -> bool:
    return "human" in GRANTS[client.who.role]


def _filters(found: Survey, wish: Wish) -> list[tuple[str, list[tuple[str, str, int, bool]]]]:
    """Heading, and its lines: words, address, how many, is it on."""
    kinds = [(s.capitalize(), wish.url(kind=s), n, wish.kind == s) for s in SORTS if (n := found.kinds.get(s))]
    projects = [(p, wish.url(project=p), n, wish.project == p) for p, n in found.projects.items()]
    urgency = [(name, wish.url(urgency=s), found.urgencies[s], wish.urgency == s) for s, name in URGENCY.items()]
    return [("Kind", kinds), ("Project", projects), ("Urgency", [u for u in urgency if u[2]])]


def _chips(wish: Wish) -> list[tuple[str, str]]:
    found = []
    if wish.kind:
        found.append((wish.kind.capitalize(), wish.url(kind="")))
    if wish.project:
        found.append((wish.project, wish.url(project="")))
    if wish.urgency:
        found.append((URGENCY[wish.urgency], wish.url(urgency="")))
    if wish.search:
        found.append((f"“{wish.search}”", wish.url(search="")))
    return found


def counts(visit: Visit) -> Shown:
    """For a page that is open: how many wait, what time it is, is it still the same server; and, of the questions that the
    page shows as open, which are closed by now, and until when the others wait."""
    now = view_models.now_of(visit.client)
    found = survey(visit, Wish(), now)
    shown = list(dict.fromkeys(filter(None, visit.query.get("shown", "").split(","))))[:SHOWN]
    rows: list[Row] = remembered(visit, ("waiting", ""), visit.client.waiting) if shown else []
    ends = {q["id"]: view_models.millis(view_models.deadline(q)) for q in rows}
    return Data(
        {
            "mine": found.mine, "all": found.all, "boot": visit.boot, "desk": visit.client.desk.identity(), "now": now // 1000,
            "closed": [one for one in shown if one not in ends], "until": {one: ends[one] for one in shown if ends.get(one)},
        }
    )  # fmt: skip


# --- several at once --------------------------------------------------------------------------------------------------


class Planned(NamedTuple):
    id: str
    task: str
    text: str
    kind: view_models.Kind
    say: str
    then: str
    action: Any
    key: str


def _planned(visit: Visit, ids: list[str]) -> tuple[list[Planned], list[tuple[str, str, str]]]:
    """What will be said to each; and who has to be asked alone, with the reason."""
    from .evidence import action

    plan: list[Planned] = []
    alone: list[tuple[str, str, str]] = []
    ids = list(dict.fromkeys(ids))
    if len(ids) > BATCH:
        raise Invalid(f"At most {BATCH} answers at once", reason=f"{len(ids)} were selected")
    effects = visit.client.effects(*ids)
    for q in visit.client.inbox(only=ids):
        run = labels.script(q)
        say = labels.batch_verb(q, effects.get(q["id"], ()), run)
        if q["status"] != "pending":
            alone.append((q["id"], q["text"], labels.result(q, visit.client.who.name)))
        elif say is None:
            alone.append((q["id"], q["text"], "It needs words or a choice."))
        else:
            it = action(q["action"], q["digest"]) if q["action"] is not None else None
            plan.append(Planned(q["id"], q["task"], q["text"], view_models.kind(q), say.verb, say.effect, it, new_key()))
    return plan, alone


def preview(visit: Visit) -> Shown:
    plan, alone = _planned(visit, [i[:60] for i in visit.fields("pick")])
    return Page("batch.html", {"here": "inbox", "plan": plan, "alone": alone, "done": None, "sum": _sum(plan)})


def _sum(plan: list[Planned]) -> str:
    done = sum(p.then.endswith(" is done") for p in plan)
    on = len(plan) - done
    parts = [
        f"{labels.plural(done, 'task')} {'is' if done == 1 else 'are'} done" if done else "",
        f"{on} go{'es' * (on == 1)} on" if on else "",
    ]
    return ", ".join(filter(None, parts))


def send(visit: Visit) -> Shown:
    """Each on its own: who was slower than somebody else is told, and the others still count."""
    from .answer_form import faster, say
    from .question_view import find

    done: list[tuple[str, str, str, bool]] = []
    for pair in visit.fields("send")[:BATCH]:
        number, _, key = pair.partition(" ")
        found: Row | None = None
        try:
            found = find(visit.client, number[:60])
            said = labels.batch_verb(found, visit.client.effects(found["id"]).get(found["id"], ()), labels.script(found))
            if said is None and found["status"] == PENDING:
                raise Invalid("It needs words or a choice")
            say(visit.client, found, {"verdict": "approved"}, key[:200] or None)
            told = f"{said.verb}: {said.effect}." if said else labels.result(found, visit.client.who.name)  # sent before
            done.append((number, found["text"], told, True))
        except (AlreadyClosed, IllegalMove):
            done.append((number, found["text"] if found else "", faster(visit, number), False))
        except YourturnError as error:
            done.append((number, "", f"{error}.", False))
    return Page("batch.html", {"here": "inbox", "plan": [], "alone": [], "done": done, "sum": ""})

"""Summary of the inbox: groups, counts and the order of all open questions, without their texts.

Only the questions of one page are read in full, so an inbox of ten thousand costs little more than one of ten.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from ..core.errors import Invalid
from ..core.permissions import is_mine
from ..core.time_format import iso
from ..display import GROUPS, SOON, grouped
from . import times, view_models
from .request import PageRequest, address, is_number

#: Seconds for which a computed value holds if nothing happens, because time passes too.
CACHE_SECONDS = 2.0
MAX_CACHED = 200
URGENCY = {"soon": "Running out", "work": "Work is waiting", "later": "No hurry"}
KINDS = ("permission", "approval", "review", "content", "checkpoint", "choice", "question", "recovery", "escalation", "work")
Row = dict[str, Any]


def cached(request: PageRequest, name: tuple[Any, ...], compute: Callable[[], Any]) -> Any:
    """A value that holds until the next event of the log, at most CACHE_SECONDS."""
    cache, desk = request.state.cache, request.client.desk
    key = (desk.workspace_name, *name)
    cursor, now = desk.cursor(), time.monotonic()
    entry = cache.get(key)
    if entry is not None and entry[0] == cursor and now - entry[1] < CACHE_SECONDS:
        return entry[2]
    value = compute()
    if len(cache) > MAX_CACHED:
        cache.clear()
    cache[key] = (cursor, now, value)
    return value


class InboxFilter(NamedTuple):
    """Which questions the inbox shows."""

    whose: str = "mine"
    kind: str = ""
    project: str = ""
    urgency: str = ""
    search: str = ""
    start: int = 0
    at: str = ""  #: the question in the pane

    def url(self, **changes: Any) -> str:
        new = self._replace(**{"start": 0, "at": "", **changes})
        return address("/inbox", {**new._asdict(), "whose": new.whose if new.whose != "mine" else ""})


def parse_filter(query: dict[str, str]) -> InboxFilter:
    start = query.get("start", "")
    if start and not is_number(start):
        raise Invalid("start must be a number")
    result = InboxFilter(
        "all" if query.get("whose") == "all" else "mine", query.get("kind", ""), query.get("project", "").upper(),
        query.get("urgency", ""), query.get("search", "").strip()[:200], int(start or 0), query.get("at", "")[:60],
    )  # fmt: skip
    if result.kind and result.kind not in KINDS:
        raise Invalid(f"There is no kind {result.kind[:40]!a}", hint=f"Choose one of: {', '.join(KINDS)}.")
    if result.urgency and result.urgency not in URGENCY:
        raise Invalid(f"There is no urgency {result.urgency[:40]!a}", hint=f"Choose one of: {', '.join(URGENCY)}.")
    return result


class Summary(NamedTuple):
    mine: int
    all: int
    others: dict[str, int]  #: questions per other reviewer
    kinds: dict[str, int]
    projects: dict[str, int]
    urgencies: dict[str, int]
    order: list[tuple[str, Row]]  #: group and question, of those that the filter selects


def waiting_rows(request: PageRequest, search: str = "") -> list[Row]:
    rows: list[Row] = cached(request, ("waiting", search), lambda: request.client.waiting(search=search or None))
    return rows


def waiting_count(request: PageRequest) -> int:
    return summarize(request, InboxFilter(), times.desk_time(request.client)).mine


def summarize(request: PageRequest, wanted: InboxFilter, now: int) -> Summary:
    wanted = wanted._replace(start=0, at="")
    name = ("summary", request.client.who, wanted)
    result: Summary = cached(request, name, lambda: _summarize(request, wanted, now))
    return result


def _summarize(request: PageRequest, wanted: InboxFilter, now: int) -> Summary:
    rows = waiting_rows(request, wanted.search)
    ours = {q["reviewer"]: is_mine(request.client.who, q["reviewer"]) for q in rows}
    mine = [q for q in rows if ours[q["reviewer"]]]
    others = Counter(q["reviewer"] or "people who answer" for q in rows if not ours[q["reviewer"]])
    listed = mine if wanted.whose == "mine" else rows
    groups = grouped(listed, iso(now + SOON))
    order = [
        (group, q)
        for group in GROUPS
        for q in groups[group]
        if (not wanted.kind or view_models.kind_name(q) == wanted.kind)
        and (not wanted.project or q["project"] == wanted.project)
        and (not wanted.urgency or group == URGENCY[wanted.urgency])
    ]
    kinds = Counter(map(view_models.kind_name, listed))
    projects = Counter(q["project"] for q in listed)
    urgencies = {name: len(groups[group]) for name, group in URGENCY.items()}
    return Summary(len(mine), len(rows), others, kinds, dict(sorted(projects.items())), urgencies, order)

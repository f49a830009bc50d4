"""Read-only methods: lists, the inbox, counts, statistics, events and previews of answers."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator
from typing import Any, Unpack

from ..core.errors import Invalid, NotFound
from ..core.fields import duration
from ..core.model import PENDING
from ..db.reads import Reader
from . import serialize
from .filters import EventFilters, NextFilters, QuestionFilters, ReadyFilters, TaskFilters
from .refs import ClientBase, Named, not_served


class QueryMethods(ClientBase):
    def list(
        self,
        *,
        state: str | Iterable[str] | None = None,
        awaiting: bool | str | Iterable[str] | None = None,
        epic: Named | None = None,
        parent: Named | None = None,
        expiring: str | int | None = None,
        project: str | None = None,
        after: Named | None = None,
        limit: int = 500,
        whole: bool = False,
        **filters: Unpack[TaskFilters],
    ) -> builtins.list[dict[str, Any]]:
        """Tasks with their open questions; with `whole`, with their whole history, as in `show`."""
        kinds = None if awaiting is None or awaiting is False else () if awaiting is True else _kinds(awaiting)
        within = self._task(epic) if epic is not None else None
        above = self._task(parent) if parent is not None else None
        follows = self._task(after) if after is not None else None
        where = self._within(project)

        def look(r: Reader) -> builtins.list[dict[str, Any]]:
            return self._encode(
                r,
                r.tasks(
                    states=_states(state), awaiting=kinds, epic=within, parent=above, after=follows, limit=limit,
                    project=where, expiring=None if expiring is None else r.now + duration(expiring, "expiring"), **filters,
                ),
                whole=whole,
            )  # fmt: skip

        return self.desk.read(look)

    def ready(self, **filters: Unpack[ReadyFilters]) -> builtins.list[dict[str, Any]]:
        """Tasks that can be claimed now, in the order of `claim_next`."""
        return self.list(workable=True, **filters)

    def next(self, epic: Named | None = None, **filters: Unpack[NextFilters]) -> dict[str, Any] | None:
        """The first ready task that is not a run."""
        tasks = self.ready(epic=epic, limit=1, runs=False, **filters)
        return tasks[0] if tasks else None

    def holds_up(self, named: Named) -> builtins.list[str]:
        """The keys of open tasks that wait for this one."""
        task = self._task(named)
        return self.desk.read(lambda r: r.holds_up([task])).get(task, [])

    def moves(self, named: Named) -> builtins.list[str]:
        """The verbs that the actor may use on a task now, without further arguments. Of a closed question: `restart`, if a
        late answer of the actor would restart its task."""
        from ..core.available_actions import moves, restarts

        number = self._question(named)
        if number is not None:

            def look(r: Reader) -> builtins.list[str]:
                q = r.question(number)[0]
                return ["restart"] if q.status != PENDING and restarts(r.case(q.task_id), q, self.who, r.now) else []

            return self.desk.read(look)
        task = self._task(named)
        return self.desk.read(lambda r: moves(r.case(task), self.who, r.now))

    def effects(self, *questions: Named) -> dict[str, builtins.list[dict[str, Any]]]:
        """The possible answers to each open question, with the state that each leads to now. Closed questions are left out."""
        from ..core.previews import effects

        numbers = [number for ref in questions if (number := self._question(ref)) is not None]
        tasks = [self._task(ref) for ref in questions if self._question(ref) is None]

        def look(r: Reader) -> dict[str, builtins.list[dict[str, Any]]]:
            asked = r.inbox(only=numbers, status="all", limit=len(numbers)) if numbers else []
            if len(asked) < len(set(numbers)):
                missing = min(set(numbers) - {item.question.id for item in asked})
                raise NotFound(f"There is no question Q{missing}", hint="See what is open with: turn inbox")
            asked += [item for task in tasks for item in r.inbox(task=task)]
            replies = {}
            for item in asked:
                if item.question.status != PENDING:
                    continue
                case = r.case(item.question.task_id)
                replies[item.question.name] = [serialize.effect(effect) for effect in effects(case, item.question, r.now)]
            return replies

        return self.desk.read(look)

    def lands(self, question: Named, value: Any = None, text: str = "", verdict: str | None = None) -> str:
        """The state of the task after this answer. Raises what `answer` would raise; changes nothing."""
        from ..core.previews import lands

        about = self._about(question)

        def look(r: Reader) -> str:
            case = r.case(about["task"], about.get("question_id"))
            return lands(case, r.now, about.get("question_id"), value=value, text=text, verdict=verdict)

        return self.desk.read(look)

    def graph(self, named: Named, *, steps: int = 2, most: int = 24) -> dict[str, Any]:
        """The dependencies around a task, up to so many `steps` away: `tasks`, and `edges` as pairs of keys (waiting, needed).

        Returns at most `most` tasks, the nearest first; `more` is true if there are others."""
        from ..desk.dependencies import around

        task = self._task(named)
        return self.desk.read(lambda r: around(r, task, steps, most))

    def counts(self, project: str | None = None, *, workable: bool = False) -> dict[str, int]:
        """Numbers of tasks by state. `workable`: count only those ready tasks that `ready` lists."""
        where = self._within(project)
        return self.desk.read(lambda r: r.counts(where, workable))

    def stats(self, project: str | None = None, *, days: int = 30) -> dict[str, Any]:
        """Statistics of the last so many days: numbers of tasks and questions, answer times, timeouts."""
        from ..core.permissions import addressed
        from ..desk.stats import MOST, summed

        where, mine = self._within(project), addressed(self.who)
        span = 2 * days * 86_400_000_000  # with the period before, for comparison

        def look(r: Reader) -> dict[str, Any]:
            waits = dict(zip(("all", "mine"), r.waits(where, mine, 0), strict=False))
            return summed(r.counts(where), waits, r.asked_since(where, r.now - span, MOST), r.now, days)

        return self.desk.read(look)

    def totals(self) -> builtins.list[dict[str, Any]]:
        """Numbers and total waiting times of all closed questions, by `kind` and `status`.

        A closed question never changes, so those closed more than a few minutes ago are counted once and cached.
        """
        totals, workspace = self.desk.store.totals, self.desk.workspace

        def look(r: Reader) -> tuple[int, Any, Any]:
            until, before = totals.get(workspace, (-1, {}))
            edge = max(until, r.now - _SETTLED)
            settled = _summed(before, r.closed(until, edge))
            return edge, settled, _summed(settled, r.closed(edge, 2**62))

        edge, settled, sums = self.desk.read_stored(look)
        totals[workspace] = (edge, settled)
        return [
            {"kind": kind, "status": status, "count": count, "seconds": micros / 1_000_000}
            for (kind, status), (count, micros) in sorted(sums.items())
        ]

    def inbox(
        self,
        *,
        kind: str | Iterable[str] | None = None,
        project: str | None = None,
        task: Named | None = None,
        status: str = "pending",
        after: Named | None = None,
        limit: int = 500,
        only: Iterable[str] | None = None,
        mine: bool = False,
        **filters: Unpack[QuestionFilters],
    ) -> builtins.list[dict[str, Any]]:
        """Questions of the inbox, the most urgent first. `only`: those with these ids. `mine`: without a reviewer, or sent to the
        actor or one of its roles; empty for an actor that may not answer."""
        if only is not None:
            return self._these(builtins.list(only))
        reviewers: Iterable[str] | None = None
        if mine:
            from ..core.permissions import addressed

            reviewers = addressed(self.who)
            if reviewers is None:
                return []
        kinds = _kinds(kind) if kind is not None else []
        number = self._task(task) if task is not None else None
        where = self._within(project) if number is None or project else None
        asked = self._question(after) if after is not None else None
        if after is not None and asked is None:
            asked = self._about(after).get("question_id")
            if asked is None:
                raise Invalid(f"{str(after)[:40]!a} is not a question to continue after", hint="Give the id of the last one: Q17")

        def look(r: Reader) -> builtins.list[dict[str, Any]]:
            questions = r.inbox(
                kinds=kinds, project=where, task=number, status=status, after=asked, limit=limit, mine=reviewers, **filters
            )
            return [serialize.asked(question) for question in questions]

        return self.desk.read(look)

    def _these(self, ids: builtins.list[str]) -> builtins.list[dict[str, Any]]:
        """The questions with these ids, in that order; missing ones are left out."""
        numbers = [number for ref in ids if (number := self._question(ref)) is not None]

        def look(r: Reader) -> dict[int, dict[str, Any]]:
            asked = r.inbox(only=numbers, status="all", limit=len(numbers)) if numbers else []
            return {item.question.id: serialize.asked(item) for item in asked}

        questions = self.desk.read(look)
        return [questions[number] for number in numbers if number in questions]

    def waits(self, project: str | None = None, *, within: str | int = "10m") -> dict[str, int]:
        """Numbers of open questions: `all`; `mine`, as in `inbox`; and `soon`, of mine, those that time out `within` so long."""
        from ..core.permissions import addressed

        where, mine, span = self._within(project), addressed(self.who), duration(within, "within")
        numbers = self.desk.read(lambda r: r.waits(where, mine, r.now + span))
        return dict(zip(("all", "mine", "soon"), numbers, strict=True))

    def waiting(self, *, project: str | None = None, search: str | None = None) -> builtins.list[dict[str, Any]]:
        """All open questions without their texts, so that a list of thousands stays small."""
        where = self._within(project)
        return self.desk.read(lambda r: serialize.waiting(r.waiting(where, search)))

    def tree(self, root: Named | None = None, *, project: str | None = None, limit: int = 5000) -> builtins.list[dict[str, Any]]:
        """Tasks as a tree: each with its `children`. Returns the roots."""
        if root is None:
            tasks = self.list(project=project, limit=limit)
        else:
            top = self._task(root)
            tasks = self.desk.read(lambda r: self._encode(r, [r.task(top), *r.tasks(epic=top, limit=limit)], whole=False))
        nodes = {task["key"]: {**task, "children": builtins.list[Any]()} for task in tasks}
        for node in nodes.values():
            if node["parent"] in nodes:
                nodes[node["parent"]]["children"].append(node)
        if root is not None:
            return [nodes[tasks[0]["key"]]]
        return [node for node in nodes.values() if node["parent"] not in nodes]

    def history(
        self, named: Named | None = None, *, limit: int = 500, after: int | None = None, **filters: Unpack[EventFilters]
    ) -> builtins.list[dict[str, Any]]:
        """Events of one task, or of all."""
        task = self._about(named)["task"] if named is not None else None
        if filters.get("project"):
            filters["project"] = self._within(filters["project"])
        return self.desk.read_stored(
            lambda r: serialize.events(r.log.events(task=task, limit=limit, after=after, **filters), r.keys)
        )

    log = history

    def events(self, after: str | None = None, *, limit: int = 500) -> dict[str, Any]:
        """The events after a cursor, each with its own cursor, and the `cursor` from which to continue."""
        rows, cursor = self.desk.events(after or self.desk.cursor(), limit)
        events = serialize.events([event for _, event in rows], self._keys)
        return {"events": [{**e, "cursor": c} for e, (c, _) in zip(events, rows, strict=True)], "cursor": cursor}

    @not_served
    def watch(self, after: str | None = None, seconds: float | None = None) -> Iterator[dict[str, Any]]:
        """New events as they are recorded. Each has a `cursor`, from which a later watch continues."""
        for cursor, event in self.desk.watch(after, seconds):
            yield {**serialize.events([event], self._keys)[0], "cursor": cursor}

    def _keys(self, numbers: set[int]) -> dict[int, str]:
        return self.desk.read_stored(lambda r: r.keys(numbers))

    def desk_cursor(self) -> str:
        """The cursor at the end of the event log: the `after` of a later watch."""
        return self.desk.cursor()

    def now(self) -> str:
        """The time by the clock of the database."""
        return str(serialize.time(self.desk.read(lambda r: r.now)))

    @not_served
    def sleep_until_due(self, seconds: float) -> None:
        """Sleep until the next due move or a change; at most so long."""
        now, next_due = self.desk.read(lambda r: (r.now, r.next_due()))
        if next_due is not None:
            seconds = min(seconds, max(0.05, (next_due - now) / 1_000_000))
        self.desk.wait(seconds)

    def reconcile(self) -> dict[str, int]:
        return self.desk.reconcile()


#: Microseconds after which every transaction that closed a question has ended.
_SETTLED = 10 * 60_000_000


def _summed(before: dict[Any, tuple[int, int]], rows: Iterable[Any]) -> dict[Any, tuple[int, int]]:
    sums = dict(before)
    for kind, status, count, micros in rows:
        old = sums.get((kind, status), (0, 0))
        sums[kind, status] = (old[0] + int(count), old[1] + int(micros))
    return sums


def _listed(words: str | Iterable[str]) -> builtins.list[str]:
    return [w.strip() for w in words.split(",") if w.strip()] if isinstance(words, str) else list(words)


def _kinds(words: Any) -> builtins.list[str]:
    from ..core.rules import KINDS

    kinds = _listed(words)
    for word in kinds:
        if word not in KINDS:
            raise Invalid(f"There is no kind {word[:40]!a}", hint=f"Choose from: {', '.join(KINDS)}.")
    return kinds


def _states(words: str | Iterable[str] | None) -> builtins.list[str]:
    if not words:
        return []
    from ..core.rules import STATE_WORDS

    states: builtins.list[str] = []
    for word in _listed(words):
        if word not in STATE_WORDS:
            raise Invalid(f"There is no state {word[:40]!a}", hint=f"Choose from: {', '.join(STATE_WORDS)}.")
        states += STATE_WORDS[word]
    return builtins.list(dict.fromkeys(states))

"""Reads: lists of tasks and questions, and their counts. Filters become SQL here; every list is paged."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..core.model import Case, Program, Question, Step, Task
from .backend import DESCENDANTS, OF_PROJECT, Queries, Store
from .case_loader import CaseLoader
from .details import Details, RunJournal, TaskReader, listed
from .event_log import EventLog, FollowUp, MovedTask
from .sql_loader import ENDED_STATES, QUESTION, TASK, WORKABLE

_QUESTION = len(Question._fields)
OURS = "FROM tasks t JOIN projects p ON p.id = t.project_id WHERE p.workspace_id = :workspace"
_RANK = "CASE q.urgency WHEN 'high' THEN 0 WHEN 'normal' THEN 1 ELSE 2 END"


class Asked(NamedTuple):
    """A question, and the fields of its task that an inbox shows."""

    question: Question
    key: str
    title: str
    waiting: int  #: number of tasks that wait for its task
    workflow: str | None  #: the script if its task is a run


class Reader:
    """Reads one workspace in one transaction. `moved`: see TaskReader."""

    def __init__(self, store: Store, run: Any, workspace: int, moved: MovedTask | None = None) -> None:
        self.store = store
        self.run = run
        self.workspace = workspace
        self.now = 0
        self.queries = Queries(store, run, workspace)
        self.rows, self._named = self.queries.rows, self.queries.named
        self.log = EventLog(self.queries)
        self.single = TaskReader(self.queries, moved)

    # --- one task or question ---------------------------------------------------------------------------------------

    def task(self, number: int) -> Task:
        return self.single.task(number)

    def question(self, number: int) -> tuple[Question, str]:
        """A question, and the key of its task."""
        return self.single.question(number)

    def details(self, tasks: list[Task], whole: bool = True) -> dict[int, Details]:
        return self.single.details(tasks, whole)

    def reply(self, number: int, question: int | None, at: int) -> tuple[Task, Details]:
        return self.single.reply(number, question, at)

    def follow_ups(self, number: int, at: int) -> tuple[FollowUp, ...]:
        return self.single.follow_ups(number, at)

    def steps(self, task: int, journal: int) -> list[Step]:
        return self.single.steps(task, journal)

    def program(self, task: int) -> Program | None:
        return self.single.program(task)

    def journal(self, task: int) -> RunJournal:
        return self.single.journal(task)

    def next_due(self) -> int | None:
        """The time of the next due move."""
        rows = self.rows(
            "SELECT t.due_at FROM tasks t JOIN projects p ON p.id = +t.project_id WHERE t.due_at IS NOT NULL "
            "AND p.workspace_id = :workspace ORDER BY t.due_at LIMIT 1"
        )
        return int(rows[0][0]) if rows else None

    # --- tasks ------------------------------------------------------------------------------------------------------

    def tasks(
        self,
        *,
        states: Iterable[str] = (),
        project: str | None = None,
        epic: int | None = None,
        parent: int | None = None,
        awaiting: Iterable[str] | None = None,
        expiring: int | None = None,
        workable: bool = False,
        runs: bool = True,
        only_runs: bool = False,
        worker: str | None = None,
        role: str | None = None,
        label: str | None = None,
        type: str | None = None,
        priority: int | None = None,
        requires: str | None = None,
        search: str | None = None,
        ids: Iterable[int] | None = None,
        after: int | None = None,
        newest: bool = False,
        limit: int = 500,
    ) -> list[Task]:
        ordered = workable and ids is None  # by the index on states; with ids the primary key is faster
        if ordered and project is None:
            return self._merged(locals())
        where, args = ["p.workspace_id = :workspace"], dict[str, Any]()

        def only(clause: str, **named: Any) -> None:
            where.append(clause)
            args.update(named)

        if project is not None:
            only(OF_PROJECT if ordered or states else f"+{OF_PROJECT}", project=project)
        if states:
            only(f"t.state IN ({_words(states)})" + " AND t.state <> 'done'" * ("done" not in states))
        if epic is not None:
            only(f"t.parent_id IN ({DESCENDANTS})".format_map(self.store.words), epic=epic)
        if parent is not None:
            only("t.parent_id = :parent", parent=parent)
        if awaiting is not None:
            kinds = f" AND q.kind IN ({_words(awaiting)})" if awaiting else ""
            only("t.state IN ('human', 'review')")
            only(f"EXISTS (SELECT 1 FROM questions q WHERE q.task_id = t.id AND q.status = 'pending' AND q.blocking = 1{kinds})")
        if expiring is not None:
            only("t.due_at <= :expiring AND t.lease_expires_at <= :expiring", expiring=expiring)
        if workable:
            only(WORKABLE)
        if not runs:
            only("t.workflow IS NULL")
        if only_runs:
            only("t.workflow IS NOT NULL")
        if worker is not None:
            only("t.due_at IS NOT NULL AND t.holder = :worker", worker=worker)
        if role is not None:
            only("(t.role IS NULL OR t.role = :role)", role=role)
        if label is not None:
            only("t.labels LIKE :label ESCAPE '!'", label=f"%{_like(json.dumps(label))}%")
        for name, value in (("type", type), ("priority", priority), ("requires", requires)):
            if value is not None:
                only(f"t.{name} = :{name}", **{name: value})
        if search is not None:
            words = "lower(t.title || ' ' || t.description || ' ' || t.key || ' ' || coalesce(t.external_id, ''))"
            only(f"({words} LIKE :search ESCAPE '!' OR lower(coalesce(t.external_id, '')) = :old)", **_search(search))
        if ids is not None:
            only(f"t.id {self.store.words['these']}", ids=listed(ids))
        if after is not None:
            only("t.id < :after" if newest else _AFTER[workable], after=after)
        order = "t.id DESC" if newest else "t.priority, t.created_at, t.id" if workable else "t.id"
        index = self.store.words["by_state"] if ordered else ""
        rows = self.rows(
            f"SELECT {TASK} FROM tasks t {index} JOIN projects p ON p.id = {'' if ordered or states else '+'}t.project_id "
            f"WHERE {' AND '.join(where)} ORDER BY {order} LIMIT :limit",
            limit=limit,
            **args,
        )
        return [Task._make(row) for row in rows]

    def _merged(self, filters: dict[str, Any]) -> list[Task]:
        """Workable tasks of all projects: the index has the order within a project, so the first pages are merged."""
        filters = {name: value for name, value in filters.items() if name not in ("self", "project", "ordered")}
        tasks = [task for key in self.project_keys() for task in self.tasks(project=key, **filters)]
        return sorted(tasks, key=lambda t: (t.priority, t.created_at, t.id))[: filters["limit"]]

    def case(self, number: int, question: int | None = None) -> Case:
        """The case of a task, without a lock, and with the named question if it is closed."""
        return CaseLoader(self.store, self.run, self.workspace).unlocked(self._named("task", id=number)[0], question)

    def neighbours(self, ids: Iterable[int]) -> list[tuple[int, int]]:
        """Dependencies (task, needs) in which one of these tasks takes part."""
        numbers, these = listed(ids), self.store.words["these"]
        rows = self.rows(
            f"SELECT d.task_id, d.needs_id FROM deps d WHERE d.task_id {these} "
            f"UNION SELECT d.task_id, d.needs_id FROM deps d WHERE d.needs_id {these}",
            ids=numbers,
        )
        return [(row[0], row[1]) for row in rows]

    def keys(self, numbers: Iterable[int]) -> dict[int, str]:
        """id -> key."""
        return dict(self.rows(f"SELECT id, key FROM tasks WHERE id {self.store.words['these']}", ids=listed(numbers)))

    def holds_up(self, ids: Iterable[int]) -> dict[int, list[str]]:
        """The keys of the open tasks that wait for each of these."""
        numbers = listed(ids)
        waiting: dict[int, list[str]] = {}
        if numbers:
            for needs, key in self.rows(
                f"SELECT d.needs_id, t.key FROM deps d JOIN tasks t ON t.id = d.task_id "
                f"WHERE d.needs_id {self.store.words['these']} AND t.state NOT IN ({ENDED_STATES}) ORDER BY d.needs_id, t.id",
                ids=numbers,
            ):
                waiting.setdefault(needs, []).append(key)
        return waiting

    def counts(self, project: str | None = None, workable: bool = False) -> dict[str, int]:
        """Number of tasks by state. `done` is in no index: it is the rest. `workable`: only ready tasks that are work."""
        ours = f"{OURS} {'AND p.key = :project' * bool(project)}"
        args = {"project": project} if project else {}
        counts = dict(self.rows(f"SELECT t.state, count(*) {ours} AND t.state <> 'done' GROUP BY t.state", **args))
        if workable and "ready" in counts:
            counts["ready"] = self.count_ready(project)
        done = self.rows(f"SELECT count(*) {ours}", **args)[0][0] - sum(counts.values())
        return {**counts, "done": done} if done else counts

    # --- questions --------------------------------------------------------------------------------------------------

    def inbox(
        self,
        *,
        project: str | None = None,
        kinds: Iterable[str] = (),
        reviewer: str | None = None,
        urgency: str | None = None,
        blocking: bool | None = None,
        mine: Iterable[str] | None = None,
        status: str = "pending",
        task: int | None = None,
        only: Iterable[int] | None = None,
        after: int | None = None,
        limit: int = 500,
    ) -> list[Asked]:
        """`mine`: only unassigned questions, and those assigned to one of these."""
        where, args = ["q.workspace_id = :workspace"], dict[str, Any]()
        if mine is not None:
            clause, args = _assigned_to(mine)
            where.append(clause)
        if blocking is not None:
            where.append(f"q.blocking = {int(blocking)}")
        if only is not None:
            where.append(f"q.id {self.store.words['these']}")
            args["ids"] = listed(only)
        if status != "all":
            where.append(f"q.status = '{status}'" if status == "pending" else "q.status = :status")
            args.update({"status": status} if status != "pending" else {})
        if project is not None:
            where.append("p.key = :project")
            args["project"] = project
        if kinds:
            where.append(f"q.kind IN ({_words(kinds)})")
        for name, value in (("reviewer", reviewer), ("urgency", urgency), ("task_id", task)):
            if value is not None:
                where.append(f"q.{name} = :{name}")
                args[name] = value
        if after is not None:
            inner = _RANK.replace("q.", "z.")
            where.append(
                f"({_RANK}, q.id) > (SELECT {inner}, z.id FROM questions z WHERE z.workspace_id = :workspace AND z.id = :after)"
            )
            args["after"] = after
        rows = self.rows(
            f"SELECT {QUESTION}, t.key, t.title, (SELECT count(*) FROM deps d JOIN tasks o ON o.id = d.task_id "
            f"WHERE d.needs_id = t.id AND o.state NOT IN ({ENDED_STATES})), t.workflow "
            f"FROM questions q JOIN tasks t ON t.id = q.task_id JOIN projects p ON p.id = t.project_id "
            f"WHERE {' AND '.join(where)} ORDER BY {_RANK}, q.id LIMIT :limit",
            limit=limit,
            **args,
        )
        return [Asked(Question._make(row[:_QUESTION]), *row[_QUESTION:]) for row in rows]

    def waits(self, project: str | None, mine: Iterable[str] | None, soon: int) -> tuple[int, int, int]:
        """Number of open questions: all; unassigned ones and those assigned to one of `mine`; and of these, those that time out
        before `soon`."""
        ours, args = _assigned_to(mine) if mine is not None else ("1 = 0", dict[str, Any]())
        within = " AND p.key = :project" if project else ""
        args |= {"project": project} if project else {}
        late = f"{ours} AND q.on_timeout <> 'keep' AND q.timeout_at < :soon"
        rows = self.rows(
            f"SELECT count(*), count(CASE WHEN {ours} THEN 1 END), count(CASE WHEN {late} THEN 1 END) FROM questions q "
            "JOIN tasks t ON t.id = q.task_id JOIN projects p ON p.id = t.project_id "
            f"WHERE q.workspace_id = :workspace AND q.status = 'pending'{within}",
            soon=soon,
            **args,
        )
        return rows[0][0], rows[0][1], rows[0][2]

    def waiting(self, project: str | None = None, search: str | None = None) -> list[Any]:
        """All open questions without their texts: id, task, project, kind, response_type, blocking, urgency, timeout_at,
        on_timeout, reviewer, asked_by, number of tasks that wait for its task."""
        where, args = ["q.workspace_id = :workspace AND q.status = 'pending'"], dict[str, Any]()
        if project is not None:
            where.append("p.key = :project")
            args["project"] = project
        if search is not None:
            words = (
                "lower(q.text || ' ' || t.title || ' ' || t.key || ' ' || q.asked_by || ' Q' || q.id || ' ' "
                "|| coalesce(t.external_id, ''))"
            )
            where.append(f"({words} LIKE :search ESCAPE '!' OR lower(coalesce(t.external_id, '')) = :old)")
            args |= _search(search)
        return self.rows(
            "SELECT q.id, t.key, p.key, q.kind, q.response_type, q.blocking, q.urgency, q.timeout_at, q.on_timeout, q.reviewer, "
            "q.asked_by, (SELECT count(*) FROM deps d JOIN tasks o ON o.id = d.task_id "
            f"WHERE d.needs_id = t.id AND o.state NOT IN ({ENDED_STATES})) "
            "FROM questions q JOIN tasks t ON t.id = q.task_id JOIN projects p ON p.id = t.project_id "
            f"WHERE {' AND '.join(where)} ORDER BY {_RANK}, q.id",
            **args,
        )

    def asked_since(self, project: str | None, since: int, most: int) -> list[Any]:
        """Questions that were open at some time since then; of closed ones the newest. Columns: task, kind, status, asked_at,
        responded_at, blocking."""
        ours = " AND p.key = :project" if project else ""
        asked = (
            "SELECT q.task_id, q.kind, q.status, q.asked_at, q.responded_at, q.blocking "
            "FROM questions q JOIN tasks t ON t.id = q.task_id "
            f"JOIN projects p ON p.id = t.project_id WHERE q.workspace_id = :workspace{ours} AND "
        )
        args = {"project": project} if project else {}
        closed = f"{asked} q.responded_at >= :since ORDER BY q.responded_at DESC LIMIT :most"
        return self.rows(f"{asked} q.status = 'pending'", **args) + self.rows(closed, since=since, most=most, **args)

    def closed(self, after: int, until: int) -> list[Any]:
        """Questions closed in a period, by kind and status: their number, and the sum of their waiting times."""
        return self.rows(
            "SELECT q.kind, q.status, count(*), CAST(sum(q.responded_at - q.asked_at) AS {big}) FROM questions q "
            "WHERE q.workspace_id = :workspace AND q.responded_at > :after AND q.responded_at <= :until GROUP BY q.kind, q.status"
            .format_map(self.store.words),
            after=after,
            until=until,
        )  # fmt: skip

    # --- projects and people ----------------------------------------------------------------------------------------

    def project_keys(self) -> list[str]:
        return [row[0] for row in self._named("project_keys")]

    def projects(self) -> list[Any]:
        return self._named("projects")

    def users(self) -> list[Any]:
        return self._named("users")

    def tokens(self) -> list[Any]:
        return self._named("tokens")

    # --- workers ----------------------------------------------------------------------------------------------------

    def workers(self, since: int) -> list[Any]:
        return self._named("workers", since=since)

    def held(self) -> list[Any]:
        """Claims: actor, worker, key of the task."""
        return self._named("held")

    def worked_on(self, project: str | None, since: int) -> bool:
        """True if a task is claimed by anything but a worker that was seen since then."""
        return bool(self._named("worked_on", project=project, since=since))

    def count_ready(self, project: str | None) -> int:
        return int(self._named("count_ready", project=project)[0][0])

    # --- people -----------------------------------------------------------------------------------------------------

    def sessions(self) -> list[Any]:
        return self._named("logins", now=self.now)

    def prefs(self, actor: str) -> Any:
        rows = self._named("prefs", actor=actor)
        return json.loads(rows[0][0]) if rows else {}


_AFTER = {
    False: "t.id > :after",
    True: "(t.priority, t.created_at, t.id) > (SELECT z.priority, z.created_at, z.id FROM tasks z WHERE z.id = :after)",
}


def _assigned_to(names: Iterable[str]) -> tuple[str, dict[str, Any]]:
    """Condition: the question is unassigned, or assigned to one of these."""
    args = {f"mine{at}": name for at, name in enumerate(sorted(names))}
    return f"(q.reviewer IS NULL OR q.reviewer IN ({', '.join(f':{name}' for name in args)}))", args


def _words(words: Iterable[str]) -> str:
    """A list of SQL literals. Only for words that the caller has checked against a table."""
    names = list(words)
    assert all(name.replace("_", "").isalnum() for name in names)
    return ", ".join(f"'{name}'" for name in names)


def _search(text: str) -> dict[str, str]:
    """Arguments of a search: part of a text, or an old id as it is printed, like ticks:k7q."""
    return {"search": f"%{_like(text.lower())}%", "old": text.lower().partition(":")[2] or ":"}


def _like(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")

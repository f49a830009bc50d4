"""Event log: reads events in an order that never skips one that commits late."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ..core.errors import Invalid
from ..core.model import Event, Note, Question, Step, Task
from .backend import Queries

_EVENT = "e.seq, e.task_id, t.key, e.n, e.at, e.actor, e.action, e.data, e.prev, e.hash"


class FollowUp(NamedTuple):
    """A move of another task in the same commit: its states before and after, and the questions that it opened."""

    task: str
    was: str | None
    state: str
    questions: tuple[str, ...] = ()


def follow_ups(moves: Iterable[tuple[str, str | None, str, list[str]]]) -> tuple[FollowUp, ...]:
    """One per task that has changed, from moves (key, from, to, opened questions)."""
    by_task: dict[str, FollowUp] = {}
    for key, was, state, opened in moves:
        before = by_task.get(key, FollowUp(key, was, ""))
        by_task[key] = before._replace(state=state, questions=(*before.questions, *opened))
    return tuple(f for f in by_task.values() if f.state != f.was or f.questions)


class MovedTask(NamedTuple):
    """A task after the moves of a transaction, and what they made."""

    task: Task
    alone: bool  #: it has no neighbours, whose moves could have changed its row since
    questions: list[Question]  #: the open ones, and those that the moves were about or closed
    notes: list[Note]
    steps: list[Step]
    follow_ups: tuple[FollowUp, ...] = ()


class EventLog:
    """The events of one workspace, read in one transaction."""

    def __init__(self, queries: Queries) -> None:
        self.queries = queries

    def events(
        self,
        *,
        task: int | None = None,
        project: str | None = None,
        actor: str | None = None,
        action: str | None = None,
        after: int | None = None,
        before: int | None = None,
        limit: int = 500,
    ) -> list[Event]:
        """The newest `limit` events, oldest first; or the newest before `before`; or those that follow `after`."""
        where, args = ["e.workspace_id = :workspace"], dict[str, Any]()
        for clause, name, value in (
            ("e.task_id = :task", "task", task),
            ("p.key = :project", "project", project),
            ("e.actor = :actor", "actor", actor),
            ("e.action = :action", "action", action),
            ("e.seq > :after", "after", after),
            ("e.seq < :before", "before", before),
        ):
            if value is not None:
                where.append(clause)
                args[name] = value
        order = "ASC" if after is not None else "DESC"
        rows = self.queries.rows(
            f"SELECT {_EVENT} FROM events e LEFT JOIN tasks t ON t.id = e.task_id LEFT JOIN projects p ON p.id = t.project_id "
            f"WHERE {' AND '.join(where)} ORDER BY e.seq {order} LIMIT :limit",
            limit=limit,
            **args,
        )
        events = [Event._make(row) for row in rows]
        return events if after is not None else events[::-1]

    def horizon(self) -> str:
        return str(self.queries.named("horizon")[0][0])

    def end(self) -> str:
        """The cursor behind all transactions that have finished."""
        high = self.horizon()
        below = self.queries.store.words["cast_high"]
        newest = self.queries.rows(
            f"SELECT max(e.seq) FROM events e WHERE e.workspace_id = :workspace AND e.xid < {below}", high=high
        )[0][0]
        return f"0.{high}.{newest or 0}"

    def after(self, after: str | None, limit: int) -> tuple[list[tuple[str, Event]], str]:
        """Events after a cursor, each with its own, and the cursor to continue from.

        A cursor is low.high.seq: the events of the transactions low … high have been read up to number seq. Numbers are assigned
        in the order of writing, but become visible in the order of committing. So the log is read in slices of transactions
        that have all finished; inside a slice, the order of writing is the order of cause. A transaction that waited for
        another's row can be older than that one, but then both finished before the slice was cut. When a slice is empty, the
        next one begins where it ended.
        """
        low, high, seq = _parse_cursor(after) if after else ("0", self.horizon(), 0)
        while True:
            rows = self.queries.named("events_after", low=low, high=high, seq=seq, limit=limit)
            if rows:
                events = [(f"{low}.{high}.{row[0]}", Event._make(row)) for row in rows]
                return events, events[-1][0]
            edge = self.horizon()
            if edge == high:
                return [], f"{low}.{high}.{seq}"
            low, high, seq = high, edge, 0

    def chain(self, seq: int, limit: int = 5000) -> list[Event]:
        return [Event._make(row) for row in self.queries.named("chain", seq=seq, limit=limit)]

    def heads(self, after: int, limit: int = 5000) -> list[Any]:
        return self.queries.named("heads", after=after, limit=limit)

    def workspace_head(self) -> tuple[str, int, str]:
        name, n, hash = self.queries.named("workspace_head")[0]
        return name, n, hash


def _parse_cursor(cursor: str) -> tuple[str, str, int]:
    parts = cursor.split(".")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() and len(part) < 20 for part in parts):
        raise Invalid(f"Invalid cursor {cursor[:40]!a}", hint="Use the cursor of an event.")
    return parts[0], parts[1], int(parts[2])

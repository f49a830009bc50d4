"""The interface of a database: `Store`.

A dialect (sqlite.py, postgres.py) implements connecting, transactions and waiting, and fills in a few words (`words`). The
SQL is the same for both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

from ..core import settings
from ..core.errors import Busy
from . import sql_loader
from .case_cache import CaseCache

#: One project by its key, so that the planner can use the indexes that begin with it.
OF_PROJECT = "t.project_id = (SELECT x.id FROM projects x WHERE x.workspace_id = :workspace AND x.key = :project)"
PROJECT_COLUMNS = ", p.workspace_id, p.key, p.name, p.next_number, p.settings, w.settings, w.fenced_at"
JOIN_PROJECT = " JOIN projects p ON p.id = t.project_id JOIN workspaces w ON w.id = p.workspace_id"

#: Bits: 1 if the task has open questions, 2 if it has neighbours. (With EXISTS, PostgreSQL hashes the whole table for one task.)
RELATED = (
    "CASE WHEN (SELECT 1 FROM questions q WHERE q.task_id = t.id AND q.responded_at IS NULL LIMIT 1) = 1 "
    "THEN 1 ELSE 0 END + "
    "CASE WHEN t.parent_id IS NOT NULL OR (SELECT 1 FROM deps d WHERE d.task_id = t.id LIMIT 1) = 1 "
    "OR (SELECT 1 FROM deps d WHERE d.needs_id = t.id LIMIT 1) = 1 "
    "OR (SELECT 1 FROM tasks k WHERE k.parent_id = t.id LIMIT 1) = 1 "
    "THEN 2 ELSE 0 END"
)

#: An epic and everything below it that can itself be a parent.
DESCENDANTS = (
    "WITH RECURSIVE under (id) AS (SELECT {cast_epic} UNION SELECT k.id FROM tasks k JOIN under ON k.parent_id = under.id) "
    "SELECT id FROM under"
)


class Conflict(Busy):
    """The transaction lost a race and left nothing behind. The desk runs it again."""

    def __init__(self, why: str = "") -> None:
        super().__init__("Another change was faster", reason=why, hint="Nothing was changed. Try again.")


class Store:
    dialect = ""
    url = ""
    words: dict[str, str] = {}
    triggers: frozenset[str] = frozenset()  #: triggers that guard the rows
    poll_interval = 1.0  #: seconds between two polls of a watcher that is not notified
    batch_inserts = True  #: several events are inserted in one statement

    def __init__(self) -> None:
        self.query = sql_loader.queries(self.words)
        self.case_cache = CaseCache()
        self.picks: dict[tuple[bool, ...], str] = {}  #: queries for the next task, see CaseLoader.pick
        self._settings: dict[tuple[str, str], dict[str, Any]] = {}
        self.totals: dict[int, Any] = {}  #: counts of closed questions, which cannot change; see client/queries.py

    def begin(self, what: str = "", *, write: bool = True) -> AbstractContextManager[Any]:
        """One transaction. `what` names the change, for failpoints."""
        raise NotImplementedError

    def reading(self) -> AbstractContextManager[Any]:
        """No transaction: each statement, or batch of statements, has its own snapshot."""
        raise NotImplementedError

    def script(self, run: Any, statements: list[str]) -> None:
        raise NotImplementedError

    def tables(self, run: Any) -> set[str]:
        raise NotImplementedError

    def stream(self, run: Any, body: str) -> Iterable[Any]:
        """The rows of a query, a few at a time."""
        raise NotImplementedError

    def copy(self, path: str) -> bool:
        """Write a consistent, checked copy of the database to a file; False if the database is not a file."""
        return False

    def lock_all(self, run: Any, tables: list[str]) -> None:
        """Block other writers until this transaction ends. On SQLite writers queue anyway."""

    def clear(self, run: Any, tables: list[str]) -> bool:
        """Delete all rows without blocking readers; False where dropping the tables does not block them either."""
        return False

    def renumber(self, run: Any, numbered: list[tuple[str, str]]) -> None:
        """Set the sequences behind the highest number of each table."""

    def lock_graph(self, run: Any, workspace: int) -> None:
        """Serialize writers of dependencies: two at once could close a cycle that neither sees."""

    def lock_version(self, run: Any, task: int, version: int) -> None:
        """Lock a row whose case was remembered. Raises Conflict if its version has changed. PostgreSQL only."""

    def lock_key(self, run: Any, workspace: int, key: str) -> None:
        """Serialize requests with the same idempotency key: the second waits for the first one's reply."""

    def wait(self, seconds: float) -> bool:
        """Sleep until something may have changed, at most so many seconds. False if the time is over."""
        raise NotImplementedError

    def check(self) -> list[str]:
        """Problems that the database itself reports."""
        raise NotImplementedError

    def held_back(self, seconds: float = 60.0) -> list[str]:
        """Transactions that have been open for so many seconds and hold readers of the event log back."""
        return []

    def _missing_triggers(self, existing: Iterable[str]) -> list[str]:
        return [f"the trigger {name}, which guards the rows, is missing" for name in sorted(self.triggers.difference(existing))]

    def close(self) -> None:
        raise NotImplementedError

    def settings(self, project: str, workspace: str) -> dict[str, Any]:
        """The project's settings over the workspace's over the defaults."""
        merged = self._settings.get((project, workspace))
        if merged is None:
            merged = settings.defaults() | json.loads(workspace) | json.loads(project)
            self._settings[project, workspace] = merged
        return merged


class Queries:
    """Runs queries about one workspace in one transaction."""

    def __init__(self, store: Store, run: Any, workspace: int) -> None:
        self.store = store
        self.run = run
        self.workspace = workspace

    def rows(self, text: str, **args: Any) -> list[Any]:
        rows: list[Any] = self.run(text, {"workspace": self.workspace, **args}).fetchall()
        return rows

    def named(self, name: str, **args: Any) -> list[Any]:
        """The rows of a query in queries.sql."""
        return self.rows(self.store.query[name], **args)

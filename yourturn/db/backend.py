"""A database, as far as the desk knows one.

A dialect is how to connect, how to begin, how to wait for news, and a few words (`words`); the SQL is the same for all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

from ..core import settings
from ..core.errors import Busy
from . import sql_loader
from .case_cache import CaseCache

#: One project, so that the planner can use the indexes that begin with it; and what there is to know about it.
OF_PROJECT = "t.project_id = (SELECT x.id FROM projects x WHERE x.workspace_id = :workspace AND x.key = :project)"
HOME = ", p.workspace_id, p.key, p.name, p.next_number, p.settings, w.settings, w.fenced_at"
FROM_HOME = " JOIN projects p ON p.id = t.project_id JOIN workspaces w ON w.id = p.workspace_id"

#: What else there is to read of a task: 1 if it has open questions, 2 if it has neighbours. (An EXISTS here made PostgreSQL
#: read all tasks into a hash table, to ask it about one.)
NEAR = (
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


class Again(Busy):
    """The transaction lost a race and left nothing behind: it is run again. A read that lost one reports it."""

    def __init__(self, why: str = "") -> None:
        super().__init__("Somebody else was faster", reason=why, hint="Nothing was changed. Try again.")


class Store:
    dialect = ""
    url = ""
    words: dict[str, str] = {}
    pulse = 1.0
    batch_inserts = True  #: several rows are inserted in one statement

    def __init__(self) -> None:
        self.query = sql_loader.queries(self.words)
        self.case_cache = CaseCache()
        self.picks: dict[tuple[bool, ...], str] = {}  #: what asks for the next task, see tx.pick
        self._settings: dict[tuple[str, str], dict[str, Any]] = {}
        self.totals: dict[int, Any] = {}  #: what was counted before and cannot change, by workspace; see client/queries.py

    def begin(self, what: str = "", *, write: bool = True) -> AbstractContextManager[Any]:
        """One transaction. `what` names the change that is made in it, for failpoints."""
        raise NotImplementedError

    def reading(self) -> AbstractContextManager[Any]:
        raise NotImplementedError

    def script(self, run: Any, statements: list[str]) -> None:
        raise NotImplementedError

    def tables(self, run: Any) -> set[str]:
        raise NotImplementedError

    def stream(self, run: Any, body: str) -> Iterable[Any]:
        """The rows of a query, a few at a time."""
        raise NotImplementedError

    def copy(self, path: str) -> bool:
        """A consistent copy of the whole database in one file, checked; False where a database is no file."""
        return False

    def lock_all(self, run: Any, tables: list[str]) -> None:
        """Nobody else writes until this transaction ends; where writers queue anyway, that is so already."""

    def clear(self, run: Any, tables: list[str]) -> bool:
        """Take all rows away, and leave readers what they are reading; False where dropping the tables does that as well."""
        return False

    def renumber(self, run: Any, numbered: list[tuple[str, str]]) -> None:
        """Rows were written with their numbers: the next ones go on behind them."""

    def lock_graph(self, run: Any, workspace: int) -> None:
        """Two new dependencies could close a circle that neither sees: concurrent writers queue here."""

    def lock_version(self, run: Any, task: int, version: int) -> None:
        """Lock a row that was remembered, not read; Again if its version is another. For concurrent writers only."""

    def lock_key(self, run: Any, workspace: int, key: str) -> None:
        """Two requests with one idempotency key: the second waits here for the first one's reply."""

    def wait(self, seconds: float) -> bool:
        raise NotImplementedError

    def check(self) -> list[str]:
        """What the database itself finds wrong."""
        raise NotImplementedError

    def held_back(self, seconds: float = 60.0) -> list[str]:
        """Which transactions, open for so long, keep readers of the event log from going on."""
        return []

    def _unguarded(self, triggers: Iterable[str]) -> list[str]:
        gone = set(re.findall(r"CREATE TRIGGER (\w+)", self.words["append_only"] + self.words["checks"])) - set(triggers)
        return [f"the trigger {name}, which guards the rows, is missing" for name in sorted(gone)]

    def close(self) -> None:
        raise NotImplementedError

    def settings(self, project: str, workspace: str) -> dict[str, Any]:
        """The project's word over the workspace's over the defaults."""
        known = self._settings.get((project, workspace))
        if known is None:
            known = settings.defaults() | json.loads(workspace) | json.loads(project)
            self._settings[project, workspace] = known
        return known


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

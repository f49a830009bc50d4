"""SQLite: the embedded desk. One file, no server.

Write-ahead log with full sync: an acknowledged move survives a power cut. Every write begins IMMEDIATE, so writers queue
instead of failing in the middle. Each thread has its own connection.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from json import JSONDecodeError
from types import TracebackType
from typing import Any

from ..core.errors import BadDatabase, Busy, NoDesk, ReadOnly, StoreTrouble
from .backend import RELATED, Conflict, Store
from .per_thread import PerThread

_APPEND_ONLY = """
;;
CREATE TRIGGER events_fixed BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END
;;
CREATE TRIGGER events_kept BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END
;;
CREATE TRIGGER events_new BEFORE INSERT ON events
WHEN EXISTS (SELECT 1 FROM events WHERE seq = NEW.seq)
  OR EXISTS (SELECT 1 FROM events WHERE task_id = NEW.task_id AND n = NEW.n)
  OR EXISTS (SELECT 1 FROM events WHERE NEW.task_id IS NULL AND task_id IS NULL AND workspace_id = NEW.workspace_id AND n = NEW.n)
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END
;;
"""

#: The last two are raised for rows of a damaged file.
_ERRORS = (sqlite3.Error, UnicodeDecodeError, JSONDecodeError)


class _Local(threading.local):
    """State of one thread. Forks are detected by a hook, not by getpid() before each read."""

    fork = -1
    connection: sqlite3.Connection


_forks = 0


def _forked() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_forked)


class SqliteStore(Store):
    dialect = "sqlite"
    triggers = frozenset({"events_fixed", "events_kept", "events_new"})
    words = {
        "id": "INTEGER PRIMARY KEY",
        "big": "INTEGER",
        "real": "REAL",
        "strict": "STRICT",
        "xid": "INTEGER",
        "this_xid": "0",
        "slot": "0",
        "before": "",
        "after": "",
        "admin_slot": "0",
        "append_only": _APPEND_ONLY,
        "checks": "",
        "now": "0",
        "moment": "0",
        "related": RELATED,
        "related_picked": RELATED,
        "materialized": "",
        "new_id": "NULL",
        "these": "IN (SELECT value FROM json_each('[' || :ids || ']'))",
        "lock": "",
        "lock_task": "",
        "lock_project": "",
        "skip_locked": "",
        "by_state": "INDEXED BY tasks_state",
        "xid_index": "",
        "drop_xid_index": "DROP INDEX events_xid;",
        "of_workspace": "REFERENCES workspaces (id)",
        "of_task": "REFERENCES tasks (id)",
        "drop_references": "",
        "take_numbers": "SELECT coalesce(max(id), 0) + 1 FROM questions WHERE workspace_id = :workspace",
        "cast_from": ":from",
        "cast_epic": ":epic",
        "cast_low": "CAST(:low AS INTEGER)",
        "cast_high": "CAST(:high AS INTEGER)",
        "horizon": "'1'",
        "bytewise": "",
        "drop_functions": "",
    }
    #: Seconds between two polls of the file while waiting: without inotify, and with it.
    poll_interval, watched_interval = 0.015, 0.5
    batch_inserts = False  # several rows in one statement cost SQLite more

    def __init__(self, path: str, *, create: bool = False, busy: float = 5.0) -> None:
        super().__init__()
        self.path = path
        self.url = path
        self._busy = busy
        self._create = create
        self._local = _Local()
        self._per_thread = PerThread()
        self._fork = _forks
        self.queue = threading.Lock()  # threads queue here: SQLite's own busy handler sleeps and wakes up late
        if sqlite3.sqlite_version_info < (3, 37):
            raise StoreTrouble(f"SQLite {sqlite3.sqlite_version} is too old", reason="3.37 or newer is needed")
        if path != ":memory:" and not create and not os.path.exists(path):  # noqa: PTH110
            raise NoDesk(f"There is no desk at {path}", hint="Make one with: turn init")
        if os.path.isdir(path):  # noqa: PTH112
            raise BadDatabase(f"{path} is a folder, not a database")

    def connection(self) -> sqlite3.Connection:
        local = self._local
        if local.fork != _forks:
            if self._fork != _forks:  # a lock that was held at the fork has no owner here
                self._fork, self.queue = _forks, threading.Lock()
            with _translating(self.path):
                local.connection = self._connect()
            local.fork = _forks
        return local.connection

    def _connect(self) -> sqlite3.Connection:
        """The connection of an ended thread, or a new one."""
        taken: sqlite3.Connection | None = self._per_thread.take_over("connection")
        if taken is not None:
            if taken.in_transaction:
                taken.execute("ROLLBACK")
            return taken
        db = sqlite3.connect(self.path, timeout=self._busy, isolation_level=None, check_same_thread=False, cached_statements=256)
        try:
            db.create_function("lower", 1, str.lower, deterministic=True)  # SQLite's own knows only ASCII
            db.execute("PRAGMA page_size = 2048")  # of a new file: a move writes few small rows on many pages
            db.execute("PRAGMA wal_autocheckpoint = 4000")
            db.execute("PRAGMA foreign_keys = ON")
            db.execute("PRAGMA recursive_triggers = ON")
            db.execute("PRAGMA synchronous = FULL")
            if db.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                self._try_wal(db)
        except BaseException:
            db.close()
            raise
        self._per_thread.add(db, "connection")
        return db

    def _try_wal(self, db: sqlite3.Connection) -> None:
        """Switch to WAL, unless the file belongs to another program. SQLite does not wait for this lock, so this retries."""
        tables = self.tables(db.execute)
        if "schema_version" not in tables and (tables or not self._create):
            return
        ends = time.monotonic() + self._busy
        while True:
            try:
                db.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if "readonly" in str(error) or "unable to open" in str(error):
                    return
                if "locked" not in str(error) or time.monotonic() > ends:
                    raise
                time.sleep(0.01)

    def begin(self, what: str = "", *, write: bool = True) -> _Transaction:
        return _Transaction(self, "BEGIN IMMEDIATE" if write else "BEGIN")

    def reading(self) -> _Read:
        return _Read(self)

    def script(self, run: Any, statements: list[str]) -> None:
        for statement in statements:
            run(statement)

    def stream(self, run: Any, body: str) -> Iterator[Any]:
        yield from run(body)

    def copy(self, path: str) -> bool:
        from urllib.parse import quote  # 2.5 ms that only copies need

        with _translating(self.path):
            self.connection().execute("VACUUM INTO ?", (path,))
        with _translating(path), closing(sqlite3.connect(f"file:{quote(path)}?mode=ro&immutable=1", uri=True)) as db:
            problems = [str(row[0]) for row in db.execute("PRAGMA integrity_check(5)") if row[0] != "ok"]
            problems += [f"{row[0]} refers to a missing row" for row in db.execute("PRAGMA foreign_key_check")]
        if problems:
            raise BadDatabase(f"The copy of {self.path} is damaged", reason="; ".join(problems), hint="See: turn doctor")
        return True

    def tables(self, run: Any) -> set[str]:
        return {row[0] for row in run("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()}

    def wait(self, seconds: float) -> bool:
        """Wait until another connection commits: then `PRAGMA data_version` changes.

        With inotify it is read after a write to the log, and then often, because the commit follows soon.
        """
        local = self._local
        db, watch = self.connection(), self._file_watch(local)
        with _translating(self.path):
            last, deadline, pause = getattr(local, "data_version", None), time.monotonic() + seconds, 0.0
            while True:
                version = db.execute("PRAGMA data_version").fetchone()[0]
                if version != last:
                    local.data_version = version
                    return True
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                if not watch.works:
                    time.sleep(min(self.poll_interval, left))
                elif pause:
                    time.sleep(min(pause, left))
                    pause = pause * 1.5 if pause < 0.1 else 0.0
                elif watch.wait(min(self.watched_interval, left)):
                    pause = 0.0005

    def _file_watch(self, local: Any) -> Any:
        watch = getattr(local, "file_watch", None)
        if watch is None:
            from .file_watch import FileWatch  # ctypes: 4 ms that only watchers need

            watch = local.file_watch = FileWatch(f"{self.path}-wal")
            self._per_thread.add(watch)
        return watch

    def check(self) -> list[str]:
        with self.reading() as run:
            problems = self._missing_triggers(row[0] for row in run("SELECT name FROM sqlite_master WHERE type = 'trigger'"))
            problems += [str(row[0]) for row in run("PRAGMA integrity_check(20)") if row[0] != "ok"]
            problems += [f"{row[0]} row {row[1]} refers to a missing row of {row[2]}" for row in run("PRAGMA foreign_key_check")]
        return problems

    def close(self) -> None:
        self._per_thread.close()
        self._local = _Local()


class _Transaction:
    """A transaction on the thread's connection: commits at the end of `with`, or rolls back after an error."""

    __slots__ = ("begin", "queued", "run", "store")

    def __init__(self, store: SqliteStore, begin: str) -> None:
        self.store = store
        self.begin = begin
        self.queued = False

    def __enter__(self) -> _Run:
        self.run = run = _Run(self.store.connection())
        if self.begin.endswith("IMMEDIATE"):
            self.queued = self.store.queue.acquire(timeout=self.store._busy)
        try:
            run.execute(self.begin)
        except BaseException as error:
            self._leave_queue()
            if isinstance(error, _ERRORS):
                raise _translated(self.store.path, error) from error
            raise
        return run

    def _leave_queue(self) -> None:
        if self.queued:
            self.queued = False
            self.store.queue.release()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        try:
            self._end(error)
        finally:
            self._leave_queue()

    def _end(self, error: BaseException | None) -> None:
        if error is None:
            try:
                self.run.execute("COMMIT")
            except _ERRORS as trouble:
                self._rollback()
                raise _translated(self.store.path, trouble) from trouble
        else:
            self._rollback()
            if isinstance(error, _ERRORS) and not isinstance(error, sqlite3.IntegrityError):
                raise _translated(self.store.path, error) from error

    def _rollback(self) -> None:
        if self.run.db.in_transaction:
            self.run.execute("ROLLBACK")


class _Read:
    """Reads without a transaction: each statement sees the state of its own moment."""

    __slots__ = ("store",)

    def __init__(self, store: SqliteStore) -> None:
        self.store = store

    def __enter__(self) -> _Run:
        return _Run(self.store.connection())

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if error is not None and isinstance(error, _ERRORS) and not isinstance(error, sqlite3.IntegrityError):
            raise _translated(self.store.path, error) from error


class _Run:
    """The interface of connection.Connection: SQLite executes every statement at once."""

    __slots__ = ("db", "execute")

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.execute = db.execute

    def __call__(self, text: str, args: Any = None) -> sqlite3.Cursor:
        return self.execute(text, args or ())

    def later(self, text: str, args: Any = None) -> None:
        self(text, args)

    def must(self, text: str, args: Any = None) -> None:
        if self(text, args).rowcount != 1:
            raise Conflict

    def many(self, *queries: tuple[str, Any]) -> list[list[Any]]:
        return [self(text, args).fetchall() for text, args in queries]

    def flush(self) -> None:
        pass


@contextmanager
def _translating(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.IntegrityError:
        raise
    except _ERRORS as error:
        raise _translated(path, error) from error


def _translated(path: str, error: Exception) -> Exception:
    """The error of the family in core/errors.py for an error of sqlite3."""
    words = str(error)
    if isinstance(error, ValueError) or "malformed" in words or "Could not decode" in words:
        hint = "See how far it goes with: turn doctor --strict, and restore a backup."
        return BadDatabase(f"{path} is damaged", reason=words, hint=hint)
    if "locked" in words or "busy" in words:
        return Busy(f"{path} is locked", reason="another program holds it", hint="Nothing was changed. Try again.")
    if "readonly" in words:
        return ReadOnly(f"{path} cannot be written", reason=words, hint="Nothing was changed.")
    if "not a database" in words:
        return BadDatabase(f"{path} is not a Yourturn database", reason=words)
    if "unable to open" in words:
        return BadDatabase(f"{path} cannot be opened", reason=words, hint="Check that the folder exists and is writable.")
    full = "full" in words or "disk I/O" in words
    return StoreTrouble(f"{path}: {words}", hint="Nothing was changed." + " Is the disk full?" * full)

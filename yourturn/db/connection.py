"""One connection to PostgreSQL: statements are sent in batches, in psycopg's pipeline mode.

*Batches.* In pipeline mode a statement is sent at once and its result is read later. So a statement costs no round trip until
a result is needed; then `flush` leaves the mode, which reads all results: one round trip. (Pipeline.sync() is no alternative: it
does not send the rest of a batch that is larger than the socket's buffer, and then blocks for ever; psycopg 3.3.8.)

    run(text, args)      send, flush, and return the cursor
    run.many(…)          send several queries, flush, and return their rows
    run.later(text, …)   send; the result is read with the next flush
    run.must(text, …)    the same, and the transaction fails with Conflict unless exactly one row changes

A move is two batches: BEGIN with the query that locks and reads the task, then all writes with COMMIT. A move of a case that
this process remembers (case_cache.py) has nothing to read and is one batch. A new statement of a move should be sent with
`later`, or in the same `many` as another query: then it costs its execution and no round trip.

*Errors.* The server skips everything behind the first error of a batch, the COMMIT included. `must` uses that: PostgreSQL
checks the number of changed rows itself (_EXACTLY_ONE divides by it), because checking `rowcount` here would need a round
trip of its own between the writes and the COMMIT; docs/benchmarks.md has what that costs. Division by zero
becomes Conflict, like a deadlock.

*Prepared statements* are psycopg's own. It forgets all of them after a ROLLBACK, so a transaction that has written nothing
ends with COMMIT. After an error psycopg may count a statement as prepared that the server has skipped; the ROLLBACK corrects
that. After an error outside of a transaction the connection is closed.

*Poolers.* A pooler in transaction mode (PgBouncer) gives each transaction another server process. It is detected by the
process id: pg_backend_pid() differs from the one in the server's greeting. Then statements are not prepared, and the
parameters of the session become parameters of each transaction.
"""

from __future__ import annotations

import re
import select
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import lru_cache
from operator import itemgetter
from typing import Any

import psycopg
from psycopg import pq
from psycopg.adapt import Dumper

#: A statement is prepared at its third execution on one connection; the least recently used ones are dropped.
_PREPARE_AFTER, _PREPARED = 2, 200

#: Acknowledged commits are on disk, whatever the server's default; a stronger one is kept. Plans of prepared statements are made
#: while a desk may be small and used when it is large, so all of them use indexes, and none uses JIT or parallel workers.
_CONFIGURE = """
set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') THEN 'on'
                                      ELSE current_setting('synchronous_commit') END, {local}),
set_config('enable_seqscan', 'off', {local}),
set_config('jit', 'off', {local}),
set_config('max_parallel_workers_per_gather', '0', {local}),
set_config('plan_cache_mode', 'force_generic_plan', {local})
"""

#: A parameter `:name`, but not the type in `value::type`.
_PARAMETER = re.compile(r"(?<!:):([a-z_]\w*)")
_EXACTLY_ONE = "WITH changed AS ({} RETURNING 1) SELECT 1 / count(*) FROM changed"
_READS = ("SELECT", "WITH", "DECLARE", "FETCH", "CLOSE", "LOCK", "COMMIT")

#: Listeners hold this advisory lock shared. If a writer can take it exclusively, there are none, and it skips NOTIFY.
_LISTENING = "7258003, 0"
_NOTIFY = (
    "SELECT pg_notify('yourturn', '') WHERE NOT CASE WHEN "
    f"pg_try_advisory_lock({_LISTENING}) THEN pg_advisory_unlock({_LISTENING}) ELSE false END"
)


class _Number(Dumper):
    """Sends numbers without a type: the server takes the column's, and each text is prepared only once."""

    def dump(self, value: Any) -> bytes:
        return b"%d" % value


class _Float(Dumper):
    def dump(self, value: Any) -> bytes:
        return repr(float(value)).encode()


def connect(address: str, seconds: int) -> psycopg.Connection[Any]:
    """A connection where every statement is a transaction unless BEGIN was sent; fails after so many seconds."""
    db = psycopg.connect(
        address, autocommit=True, connect_timeout=seconds, client_encoding="utf8", cursor_factory=psycopg.RawCursor
    )
    for kind in (int, bool):
        db.adapters.register_dumper(kind, _Number)
    db.adapters.register_dumper(float, _Float)
    return db


def is_pooled(db: psycopg.Connection[Any]) -> bool:
    """True if a pooler is between us and the server."""
    row = db.execute("SELECT pg_backend_pid()").fetchone()
    return row is None or row[0] != db.info.backend_pid


class Connection:
    """Runs the statements of a transaction (`run`)."""

    __slots__ = ("_begin", "_pipeline", "_quiet", "begun", "db", "ending", "pooled", "wrote")

    def __init__(self, db: psycopg.Connection[Any]) -> None:
        self.db = db
        configure = _CONFIGURE.format(local=f"pg_backend_pid() <> {int(db.info.backend_pid)}")
        row = db.execute(f"SELECT pg_backend_pid(), {configure}").fetchone()
        self.pooled = row is None or row[0] != db.info.backend_pid
        db.prepare_threshold, db.prepared_max = None if self.pooled else _PREPARE_AFTER, _PREPARED
        self._pipeline: AbstractContextManager[Any] | None = None
        self._quiet = db.cursor()  #: for statements whose result is not needed
        self.begun = self.wrote = False  #: BEGIN, and a write, were sent
        self.ending = False  #: COMMIT was sent
        self._begin = ""

    # --- statements -------------------------------------------------------------------------------------------------

    def __call__(self, text: str, args: Any = None) -> psycopg.Cursor[Any]:
        """Send this and read all results."""
        cursor = self.db.cursor()
        self._send(cursor, text, args)
        self.flush()
        return cursor

    def later(self, text: str, args: Any = None) -> None:
        """Send this; its result is read with the next one."""
        self._send(self._quiet, text, args)

    def must(self, text: str, args: Any = None) -> None:
        """Send this; the transaction fails with Conflict unless exactly one row changes."""
        self.wrote = True
        self._send(self._quiet, _EXACTLY_ONE.format(text), args)

    def many(self, *queries: tuple[str, Any]) -> list[list[Any]]:
        """The rows of several queries in one round trip, each with a snapshot of its own."""
        cursors = [self.db.cursor() for _ in queries]
        for cursor, (text, args) in zip(cursors, queries, strict=True):
            self._send(cursor, text, args)
        self.flush()
        return [cursor.fetchall() for cursor in cursors]

    def flush(self) -> None:
        """Read all results; raise the first error."""
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            try:
                pipeline.__exit__(None, None, None)
            except psycopg.errors.PipelineAborted as error:  # behind an error; that one is its context
                raise error.__context__ if isinstance(error.__context__, psycopg.Error) else error from None

    def _send(self, cursor: psycopg.Cursor[Any], text: str, args: Any) -> None:
        if self._pipeline is None:
            self._pipeline = self.db.pipeline()
            self._pipeline.__enter__()
        if not self.begun:
            self.begun = True
            if self._begin:
                self._quiet.execute(self._begin)
            if self.pooled:
                self._quiet.execute(f"SELECT {_CONFIGURE.format(local='true')}")
        self.wrote = self.wrote or not text.startswith(_READS)
        if args:
            text, values = _numbered(text)
            cursor.execute(text, values(args))
        else:
            cursor.execute(text)

    # --- transactions -----------------------------------------------------------------------------------------------

    def start(self, begin: str) -> None:
        """Begin a transaction with the next statement; with "", every batch is one of its own."""
        self._begin = begin
        self.begun = self.wrote = self.ending = False

    def commit(self, notify: bool) -> None:
        """Commit, then notify listeners if something was written. NOTIFY inside a transaction would serialize all commits."""
        if self.begun and self._begin:
            self.ending = True
            self.later("COMMIT")
            if notify and self.wrote:
                self.later(_NOTIFY)
        self.flush()

    def rollback(self, failed: bool) -> None:
        """Roll back and discard unread results. `failed`: a statement has failed."""
        with suppress(psycopg.Error):
            self.flush()
        with suppress(psycopg.Error):
            if self.db.info.transaction_status == pq.TransactionStatus.INTRANS and not self.wrote:
                self.db.commit()
            else:
                self.db.rollback()
        if failed and not self._begin:
            self.close()

    # --- life -------------------------------------------------------------------------------------------------------

    def is_alive(self) -> bool:
        """False if the server has closed the connection: there is something to read on an idle one."""
        return not self.db.closed and not _readable(self.db, 0)

    def close(self) -> None:
        self.db.close()


class Listener:
    """A separate connection that waits for NOTIFY. Through a pooler no notification arrives."""

    def __init__(self, db: psycopg.Connection[Any]) -> None:
        self.db = db
        self.pooled = is_pooled(db)
        if not self.pooled:
            db.execute("LISTEN yourturn")
            db.execute(f"SELECT pg_advisory_lock_shared({_LISTENING})")

    @property
    def closed(self) -> bool:
        return self.db.closed

    def wait(self, seconds: float) -> bool:
        """True if a notification arrived in time. Pending notifications are coalesced."""
        return _readable(self.db, seconds) and bool(list(self.db.notifies(timeout=0)))

    def close(self) -> None:
        self.db.close()


def _readable(db: psycopg.Connection[Any], seconds: float) -> bool:
    poll = select.poll()
    poll.register(db.fileno(), select.POLLIN)
    return bool(poll.poll(seconds * 1000))


@lru_cache(1024)
def _numbered(text: str) -> tuple[str, Callable[[Any], Sequence[Any]]]:
    """The text with $1, $2, …, and a function that takes their values from a dictionary."""
    names = list(dict.fromkeys(_PARAMETER.findall(text)))
    values = itemgetter(*names) if len(names) > 1 else lambda args: [args[name] for name in names]
    return _PARAMETER.sub(lambda match: f"${names.index(match[1]) + 1}", text), values

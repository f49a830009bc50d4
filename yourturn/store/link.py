"""One connection to PostgreSQL, and what has been said on it but not sent.

Statements are kept in a queue and sent as one string, with whatever is asked next or with the COMMIT. Values are written into
the string as literals: there is one function for that, and two facts about the session (UTF-8, and backslashes are plain
characters) that make doubling quotes enough. A text that comes again is PREPAREd, once per connection, and then EXECUTEd.
"""

from __future__ import annotations

import re
import select
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any

import psycopg
from psycopg import errors as pg
from psycopg.adapt import Transformer

_PARAMETER = re.compile(r"(?<!:):([a-z_]\w*)")
#: A text that was said so often on one connection is prepared there; at most so many are.
_OFTEN, _PREPARED = 3, 200


#: Whoever listens holds this lock, shared. Who can get it alone, for a moment, has nobody to tell.
LISTENING = "7258003, 0"
_TELL = (
    f"SELECT pg_notify('yourturn', '') WHERE NOT CASE WHEN pg_try_advisory_lock({LISTENING}) "
    f"THEN pg_advisory_unlock({LISTENING}) ELSE false END"
)


class Link:
    """One connection, and what has been said on it but not sent."""

    __slots__ = ("begun", "count", "db", "ending", "loader", "names", "poll", "queue", "seen")

    def __init__(self, db: Any) -> None:
        self.db = db
        self.loader = Transformer(db)
        self.queue: list[str] = []
        self.names: dict[str, str] = {}
        self.seen: dict[str, int] = {}
        self.count = 0
        self.poll = select.poll()
        self.poll.register(db.fileno(), select.POLLIN)
        self.begun = self.ending = False

    def __call__(self, text: str, args: Any = None) -> Answer:
        """Say this and whatever waits, now."""
        self._say(text, args)
        return self.flush()

    def later(self, text: str, args: Any = None) -> None:
        """Say this with what comes next."""
        self._say(text, args)

    def must(self, text: str, args: Any = None) -> None:
        """Later; and the whole transaction fails with Again unless exactly one row changes."""
        self.later(f"WITH moved AS ({text} RETURNING 1) SELECT 1 / count(*) FROM moved", args)

    def many(self, *asked: tuple[str, Any]) -> list[list[Any]]:
        """Several questions in one go, answered in order, each with a snapshot of its own."""
        for text, args in asked:
            self._say(text, args)
        script = self._script()
        cursor = self.db.cursor()
        try:
            cursor.execute(script)
        except psycopg.Error:
            self.names.clear()  # one of them may not have been prepared
            raise
        found = []
        for at in range(-len(asked), 0):
            cursor.set_result(at)
            found.append(cursor.fetchall())
        return found

    def flush(self) -> Answer:
        """Send what was said; the answer to the last of it. One call to the C library, half of what a cursor costs."""
        if not self.queue:
            return _NOTHING
        result = self.db.pgconn.exec_(self._script().encode())
        if result.status == psycopg.pq.ExecStatus.FATAL_ERROR:
            self.names.clear()
            raise _error(result)
        return Answer(result, self.loader)

    def _script(self) -> str:
        """Everything that waits, as one text; from here on it is said."""
        script, self.queue, self.begun = ";".join(self.queue), [], True
        if "\x00" in script:
            raise ValueError("PostgreSQL keeps no NUL characters")
        return script

    def commit(self, tell: bool) -> None:
        """Make it last; and, once it is committed, wake whoever listens."""
        if self.begun or len(self.queue) > 1:
            self.queue.append("COMMIT")
            if tell:
                self._say(_TELL, {})
            self.ending = True
            self.flush()

    def undo(self) -> None:
        self.queue = []
        if self.begun and not self.db.closed:
            with suppress(psycopg.Error):
                self.db.pgconn.exec_(b"ROLLBACK" if self.names else b"ROLLBACK; DEALLOCATE ALL")
            if self.db.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                self.db.close()

    def alive(self) -> bool:
        """Something to read on a connection that has asked nothing is its end."""
        return not self.db.closed and not self.poll.poll(0)

    def _say(self, text: str, args: Any) -> None:
        pieces, names, distinct, body = _shape(text)
        if not names and not text.startswith("SELECT"):
            self.queue.append(text)
            return
        name = self.names.get(text) or self._prepared(text, body)
        if name is None:
            values = [*(_literal(args[name]) for name in names), ""]
            self.queue.append("".join(part for pair in zip(pieces, values, strict=True) for part in pair))
        elif names:
            self.queue.append(f"EXECUTE {name}({','.join([_literal(args[name]) for name in distinct])})")
        else:
            self.queue.append(f"EXECUTE {name}")

    def _prepared(self, text: str, body: str) -> str | None:
        often = self.seen.get(text, 0) + 1
        self.seen[text] = often
        if len(self.seen) > 1000:
            self.seen.clear()
        if often < _OFTEN or len(self.names) >= _PREPARED:
            return None
        self.count += 1
        name = self.names[text] = f"yt{self.count}"
        self.queue.insert(int(self.queue[:1] != [] and self.queue[0].startswith("BEGIN")), f"PREPARE {name} AS {body}")
        return name


class Answer:
    """What the database answered; a cursor, as far as we need one."""

    __slots__ = ("at", "result", "rows")

    def __init__(self, result: Any, loader: Any) -> None:
        self.result = result
        self.at = 0
        self.rows: list[Any] = []
        if result is not None and result.status == psycopg.pq.ExecStatus.TUPLES_OK:
            loader.set_pgresult(result)
            self.rows = loader.load_rows(0, result.ntuples, tuple)

    def fetchall(self) -> list[Any]:
        found, self.at = self.rows[self.at :], len(self.rows)
        return found

    def fetchone(self) -> Any:
        self.at += 1
        return self.rows[self.at - 1] if self.at <= len(self.rows) else None

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fetchall())

    @property
    def rowcount(self) -> int:
        return int(self.result.command_tuples or 0)

    @property
    def description(self) -> list[tuple[str]]:
        return [(self.result.fname(at).decode(),) for at in range(self.result.nfields)]


_NOTHING = Answer(None, None)


def _error(result: Any) -> psycopg.Error:
    state = result.error_field(psycopg.pq.DiagnosticField.SQLSTATE)
    words = result.get_error_message()
    return pg.lookup(state.decode())(words) if state else psycopg.OperationalError(words)


@lru_cache(1024)
def _shape(text: str) -> tuple[list[str], list[str], list[str], str]:
    """The text between the parameters, their names, each name once, and the text with $1, $2, …"""
    parts = _PARAMETER.split(text)
    pieces, names = parts[::2], parts[1::2]
    distinct = list(dict.fromkeys(names))
    return pieces, names, distinct, _PARAMETER.sub(lambda found: f"${distinct.index(found[1]) + 1}", text)


def _literal(value: Any) -> str:
    """A value as SQL text. Quotes are doubled, and backslashes are plain characters (standard_conforming_strings)."""
    kind = type(value)
    if kind is str:
        return f"'{value.replace(_QUOTE, _QUOTES)}'" if _QUOTE in value else f"'{value}'"
    if value is None:
        return "NULL"
    if kind is int or kind is bool:
        return str(int(value)) if value >= 0 else f"({value})"
    if kind is float:
        return f"'{value!r}'"
    if isinstance(value, (str, int, float)):
        return _literal(next(plain(value) for plain in (str, int, float) if isinstance(value, plain)))
    raise TypeError(f"{kind.__name__} is no value for SQL")


_QUOTE, _QUOTES = "'", "''"

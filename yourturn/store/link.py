"""One connection to PostgreSQL, and what has been said on it but not sent.

Statements are kept in a queue and sent together, with whatever is asked next or with the COMMIT: several in libpq's pipeline
mode, one in one call. A text that comes again is prepared, once per connection; from then on only its name and its values are
sent. What was not said often enough for that is sent as one string, with the values as literals, so that the server plans it
for these: there is one function for that, and two facts about the session (UTF-8, and backslashes are plain characters) that
make doubling quotes enough.

What a move writes to different tables, up to its event, is one statement: each write is a WITH of the event's INSERT, which
divides by nothing if one of them did not change its row. A move that is nothing but that one statement needs no BEGIN and no
COMMIT, and the answer to the event says whether anybody listens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any, TypeAlias

from .base import PARAMETER
from .driver import errors as pg
from .driver import pq
from .line import Line, Loader, Sent, error

#: What was said: a text, and whether it must change exactly one row. Several are one statement.
Said: TypeAlias = tuple[tuple[str, bool], ...]
Shape: TypeAlias = tuple[list[str], list[tuple[int, str]], list[tuple[int, str]], str]

_WRITE = re.compile(r"(?:INSERT INTO|UPDATE) (\w+)")
_CHANGE = re.compile(r"\b(?:INSERT INTO|DELETE FROM|UPDATE\s+\w+(?:\s+AS\s+\w+)?\s+SET)\b")
#: A text that was said so often on one connection is prepared there; at most so many are.
_OFTEN, _PREPARED = 3, 200

#: Where the INSERT of an event says that what it tells of has happened.
SURE = "/*sure*/"
#: Whoever listens holds this lock, shared. Who can get it alone, for a moment, has nobody to tell.
LISTENING = "7258003, 0"
_HEARD = f"NOT CASE WHEN pg_try_advisory_lock({LISTENING}) THEN pg_advisory_unlock({LISTENING}) ELSE false END"
_TELL = f"SELECT pg_notify('yourturn', '') WHERE {_HEARD}"
_FAILED = pq.ExecStatus.FATAL_ERROR
_LOST = (pg.DivisionByZero, pg.UniqueViolation, pg.DeadlockDetected)


class Link:
    """One connection, and what has been said on it but not sent."""

    __slots__ = ("begin", "begun", "count", "db", "ending", "loader", "names", "queue", "seen", "wrote")

    def __init__(self, db: Line) -> None:
        self.db = db
        self.loader = Loader()
        self.begin = ""
        self.queue: list[tuple[str, Any, bool]] = []
        self.names: dict[Said, bytes] = {}
        self.seen: dict[Said, int] = {}
        self.count = 0
        self.begun = self.ending = self.wrote = False

    def __call__(self, text: str, args: Any = None) -> Answer:
        """Say this and whatever waits, now."""
        self.queue.append((text, args, False))
        return self.flush()

    def later(self, text: str, args: Any = None) -> None:
        """Say this with what comes next."""
        self.queue.append((text, args, False))

    def must(self, text: str, args: Any = None) -> None:
        """Later; and the whole transaction fails with Again unless exactly one row changes."""
        self.queue.append((text, args, True))

    def many(self, *asked: tuple[str, Any]) -> list[list[Any]]:
        """Several questions in one go, answered in order, each with a snapshot of its own."""
        self.queue += [(text, args, False) for text, args in asked]
        found = self._sent([*self._opening(), *self._said()])
        return [Answer(result, self.loader).rows for result in found[-len(asked) :]]

    def flush(self) -> Answer:
        """Send what was said; the answer to the last of it."""
        if not self.queue:
            return _NOTHING
        return Answer(self._sent([*self._opening(), *self._said()])[-1], self.loader)

    def _opening(self) -> list[Sent]:
        opening: list[Sent] = [] if self.begun or not self.begin else [(self.begin.encode(), None)]
        self.begun = True
        return opening

    def _said(self) -> list[Sent]:
        """Everything that waits; from here on it is said."""
        queue, self.queue = self.queue, []
        said = []
        for texts, args in _sentences(queue):
            said.append(self._say(texts, args))
            self.wrote = self.wrote or any(_changes(text) for text, _ in texts)
        return said

    def commit(self, tell: bool) -> None:
        """Make it last; and, once it is committed, wake whoever listens, if there is anything to see."""
        if not self.begun and not self.queue:
            return
        self.ending = True
        asked = tell and bool(self.queue) and SURE in self.queue[-1][0]
        if asked:
            self.queue[-1] = _heard(*self.queue[-1])
        said = self._said()
        if asked and len(said) == 1 and not self.begun:
            self.begun = True
            answers = self._sent(said)
        else:
            ending: list[Sent] = [(b"COMMIT", None)]
            if tell and self.wrote and not asked:
                ending.append(self._say(((_TELL, False),), ({},)))
            answers = self._sent([*self._opening(), *said, *ending])[:-1]
        if asked and answers[-1].get_value(0, 0) == b"t":
            self._sent([(b"NOTIFY yourturn", None)])

    def _sent(self, script: list[Sent]) -> list[Any]:
        """The answer to each. At the first error, nothing behind it is done."""
        conn = self.db.pgconn
        if len(script) > 1:
            found = self.db.pipe(script)
        else:
            ((words, values),) = script
            found = [conn.exec_(words) if values is None else conn.exec_prepared(words, values)]
        for result in found:
            if result.status == _FAILED:
                raise self._failed(result)
        return found

    def _failed(self, result: Any) -> Any:
        trouble = error(result)
        if not isinstance(trouble, _LOST):
            self.names.clear()
        return trouble

    def undo(self) -> None:
        self.queue = []
        if self.begun and not self.db.closed:
            idle = self.db.pgconn.transaction_status == pq.TransactionStatus.IDLE
            script = [*(["ROLLBACK"] * (not idle)), *(["DEALLOCATE ALL"] * (not self.names))]
            with suppress(pg.Error):
                if script:
                    self.db.pgconn.exec_(";".join(script).encode())
            if self.db.pgconn.transaction_status != pq.TransactionStatus.IDLE:
                self.db.close()

    def alive(self) -> bool:
        """Something to read on a connection that has asked nothing is its end."""
        return not self.db.closed and not self.db.readable()

    def _say(self, texts: Said, args: tuple[Any, ...]) -> Sent:
        pieces, named, distinct, body = _shape(texts)
        if not named and not body.startswith("SELECT"):
            return body.encode(), None
        name = self.names.get(texts) or self._prepared(texts, body)
        if name is not None:
            return name, [None if (v := args[at][key]) is None else _value(v) for at, key in distinct]
        said = [*(_literal(args[at][key]) for at, key in named), ""]
        return _plain("".join(part for pair in zip(pieces, said, strict=True) for part in pair)).encode(), None

    def _prepared(self, texts: Said, body: str) -> bytes | None:
        often = self.seen.get(texts, 0) + 1
        self.seen[texts] = often
        if len(self.seen) > 1000:
            self.seen.clear()
        if often < _OFTEN or len(self.names) >= _PREPARED:
            return None
        self.count += 1
        name = f"yt{self.count}".encode()
        result = self.db.pgconn.prepare(name, body.encode())
        if result.status == _FAILED:
            raise self._failed(result)
        self.names[texts] = name
        return name


def _plain(text: str) -> str:
    if "\x00" in text:
        raise ValueError("PostgreSQL keeps no NUL characters")
    return text


def _sentences(queue: list[tuple[str, Any, bool]]) -> Iterator[tuple[Said, tuple[Any, ...]]]:
    """What was said, statement by statement: writes to different tables and the event behind them are one."""
    waiting: dict[str, tuple[str, Any, bool]] = {}
    for item in queue:
        table = _written(item[0])
        if table is None or table in waiting:
            yield from map(_alone, waiting.values())
            waiting = {}
        if table is None:
            yield _alone(item)
        else:
            waiting[table] = item
            if table == "events" and SURE in item[0]:
                yield _together(waiting.values())
                waiting = {}
    yield from map(_alone, waiting.values())


@lru_cache(1024)
def _asks(event: str) -> str:
    return f"{event} RETURNING {_HEARD}"


def _heard(event: str, args: Any, must: bool) -> tuple[str, Any, bool]:
    """The event; and it says whether anybody listens."""
    return _asks(event), args, must


def _alone(item: tuple[str, Any, bool]) -> tuple[Said, tuple[Any, ...]]:
    return ((item[0], item[2]),), (item[1],)


def _together(items: Iterable[tuple[str, Any, bool]]) -> tuple[Said, tuple[Any, ...]]:
    return tuple([(text, must) for text, _, must in items]), tuple([args for _, args, _ in items])


@lru_cache(1024)
def _changes(text: str) -> bool:
    return not text.lstrip().startswith(("SELECT", "WITH")) or _CHANGE.search(text) is not None


@lru_cache(1024)
def _written(text: str) -> str | None:
    found = _WRITE.match(text)
    return found[1] if found else None


class Answer:
    """What the database answered; a cursor, as far as we need one."""

    __slots__ = ("at", "result", "rows")

    def __init__(self, result: Any, loader: Any) -> None:
        self.result = result
        self.at = 0
        self.rows: list[Any] = []
        if result is not None and result.status == pq.ExecStatus.TUPLES_OK:
            self.rows = loader.rows(result)

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


@lru_cache(1024)
def _shape(said: Said) -> Shape:
    """The text between the parameters, these as (statement, name), each of them once, and the text with $1, $2, …"""
    (last, must), before = said[-1], said[:-1]
    if must:
        texts = [f"WITH moved AS ({last} RETURNING 1) SELECT 1 / count(*) FROM moved"]
    else:
        # in this order their rows are locked: the task first, as everywhere
        checked = sorted(at for at, (_, must) in enumerate(before) if must)
        checked.sort(key=lambda at: not before[at][0].startswith("UPDATE tasks "))
        moved = [f" / coalesce((SELECT 1 FROM m{at}), 0)" for at in checked]
        texts = [f"{', ' if at else 'WITH '}m{at} AS ({text}{' RETURNING 1' * must})" for at, (text, must) in enumerate(before)]
        texts.append(" " * bool(before) + last.replace(SURE, "".join(moved), 1))
    pieces, names = [""], []
    for at, text in enumerate(texts):
        first, *rest = PARAMETER.split(text)
        pieces[-1] += first
        pieces += rest[1::2]
        names += [(at, name) for name in rest[::2]]
    distinct = list(dict.fromkeys(names))
    places = [*(f"${distinct.index(name) + 1}" for name in names), ""]
    return pieces, names, distinct, "".join(part for pair in zip(pieces, places, strict=True) for part in pair)


def _value(value: Any) -> bytes:
    """A value as it is sent with a name."""
    kind = type(value)
    if kind is str:
        return _plain(value).encode()
    if kind is int or kind is bool:
        return b"%d" % value
    if kind is float:
        return repr(value).encode()
    return _value(_simply(value))


def _simply(value: Any) -> str | int | float:
    for plain in (str, int, float):
        if isinstance(value, plain):
            return plain(value)
    raise TypeError(f"{type(value).__name__} is no value for SQL")


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
    return _literal(_simply(value))


_QUOTE, _QUOTES = "'", "''"

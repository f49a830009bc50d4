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
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from .backend import PARAMETER
from .driver import errors as pg
from .driver import pq
from .line import Line, Loader, Sent, error

#: What was said: a text, and whether it must change exactly one row. Several are one statement.
Said: TypeAlias = tuple[tuple[str, bool], ...]
#: The values of one statement, as its text names them.
Values: TypeAlias = Callable[[Any], tuple[Any, ...]]

_WRITE = re.compile(r"(?:INSERT INTO|UPDATE) (\w+)")
_CHANGE = re.compile(r"\b(?:INSERT INTO|DELETE FROM|UPDATE\s+\w+(?:\s+AS\s+\w+)?\s+SET)\b")
#: A text that was said so often on one connection is prepared there; at most so many are.
_OFTEN, _PREPARED = 3, 200
#: How a queue of at most so many texts comes apart is remembered.
_FEW = 16

_MOVED = "tasks, moved"

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

    __slots__ = ("begin", "begun", "count", "db", "early", "ending", "loader", "names", "queue", "seen", "under_way", "wrote")

    def __init__(self, db: Line) -> None:
        self.db = db
        self.loader = Loader()
        self.begin = ""
        self.queue: list[tuple[str, Any, bool]] = []
        self.names: dict[Said, bytes] = {}
        self.seen: dict[Said, int] = {}
        self.count = 0
        self.begun = self.ending = self.wrote = self.under_way = False
        self.early = _NOTHING

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

    def ahead(self, text: str, args: Any) -> None:
        """Say this now, as the first of a transaction, and go on: the answer comes later."""
        self.queue.append((text, args, False))
        said = self._said()
        self.db.send([*self._opening(), *said])
        self.under_way = True

    def came(self) -> Answer:
        """What was said ahead is answered."""
        if self.under_way:
            self.under_way = False
            self.early = Answer(self._good(self.db.received())[-1], self.loader)
        return self.early

    def flush(self) -> Answer:
        """Send what was said; the answer to the last of it."""
        if not self.queue:
            return _NOTHING
        return Answer(self._sent([*self._opening(), *self._said()])[-1], self.loader)

    def _opening(self) -> list[Sent]:
        opening = [] if self.begun or not self.begin else [self._word(self.begin)]
        self.begun = True
        return opening

    def _said(self) -> list[Sent]:
        """Everything that waits; from here on it is said."""
        if self.under_way:
            self.came()
        queue, self.queue = self.queue, []
        if not queue:
            return []
        said = []
        parts = _sentences if len(queue) <= _FEW else _sentences.__wrapped__
        for at, sentence in parts(tuple([(text, must) for text, _, must in queue])):
            said.append(self._say(sentence, [item[1] for item in queue[at : at + len(sentence.texts)]]))
            self.wrote = self.wrote or sentence.changes
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
            ending = [self._word("COMMIT")]
            if tell and self.wrote and not asked:
                ending.append(self._say(_sentence(((_TELL, False),)), [{}]))
            answers = self._sent([*self._opening(), *said, *ending])[:-1]
        if asked and answers[-1].get_value(0, 0) == b"t":
            self._sent([(b"NOTIFY yourturn", None)])

    def _sent(self, script: list[Sent]) -> list[Any]:
        """The answer to each. At the first error, nothing behind it is done."""
        if len(script) > 1:
            found = self.db.pipe(script)
        else:
            ((words, values),) = script
            found = [self.db.pgconn.exec_(words) if values is None else self.db.ask(words, values)]
        return self._good(found)

    def _good(self, found: list[Any]) -> list[Any]:
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
        with suppress(pg.Error):
            self.came()
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

    def _word(self, word: str) -> Sent:
        """BEGIN or COMMIT; who looks at what is sent still reads it in the name of what was prepared."""
        texts = ((word, False),)
        name = self.names.get(texts) or self._prepared(texts, word, word.split()[0])
        return (word.encode(), None) if name is None else (name, [])

    def _say(self, sentence: Sentence, args: list[Any]) -> Sent:
        if not sentence.named and not sentence.body.startswith("SELECT"):
            return sentence.body.encode(), None
        name = self.names.get(sentence.texts) or self._prepared(sentence.texts, sentence.body)
        if name is not None:
            return name, _values([value for at, values in sentence.values for value in values(args[at])])
        said = [*(_literal(args[at][key]) for at, key in sentence.named), ""]
        return _plain("".join(part for pair in zip(sentence.pieces, said, strict=True) for part in pair)).encode(), None

    def _prepared(self, texts: Said, body: str, name: str = "yt") -> bytes | None:
        often = self.seen.get(texts, 0) + 1
        self.seen[texts] = often
        if len(self.seen) > 1000:
            self.seen.clear()
        if often < _OFTEN or len(self.names) >= _PREPARED:
            return None
        self.count += 1
        called = f"{name}{self.count}".encode()
        result = self.db.pgconn.prepare(called, body.encode())
        if result.status == _FAILED:
            raise self._failed(result)
        self.names[texts] = called
        return called


def _plain(text: str) -> str:
    if "\x00" in text:
        raise ValueError("PostgreSQL keeps no NUL characters")
    return text


@lru_cache(1024)
def _sentences(queue: Said) -> list[tuple[int, Sentence]]:
    """What was said, and where each statement begins: writes to different tables and the event behind them are one."""
    found: list[tuple[int, Sentence]] = []
    first, tables = 0, set[str]()

    def alone(until: int) -> None:
        found.extend((at, _sentence((queue[at],))) for at in range(first, until))

    for at, (text, must) in enumerate(queue):
        table = _written(text)
        if must and text.startswith("UPDATE tasks "):
            table = _MOVED if "tasks" not in tables else "tasks"  # of several tasks, each once: see tx.write
        if table is None or (table in tables and table != _MOVED) or (table == "tasks" and _MOVED in tables):
            alone(at)
            first, tables = at, set()
        if table is None:
            alone(at + 1)
            first = at + 1
        else:
            tables.add(table)
            if table == "events" and SURE in text:
                found.append((first, _sentence(queue[first : at + 1])))
                first, tables = at + 1, set()
    alone(len(queue))
    return found


@lru_cache(1024)
def _asks(event: str) -> str:
    return f"{event} RETURNING {_HEARD}"


def _heard(event: str, args: Any, must: bool) -> tuple[str, Any, bool]:
    """The event; and it says whether anybody listens."""
    return _asks(event), args, must


def _changes(text: str) -> bool:
    return not text.lstrip().startswith(("SELECT", "WITH")) or _CHANGE.search(text) is not None


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


class Sentence(NamedTuple):
    """One statement, made of one text or of several."""

    texts: Said
    pieces: list[str]  #: the text between the parameters
    named: list[tuple[int, str]]  #: these: of which text, and what they are called
    values: list[tuple[int, Values]]  #: of each text, the values that are sent, in the order of their numbers
    body: str  #: with $1, $2, …
    changes: bool


@lru_cache(1024)
def _sentence(said: Said) -> Sentence:
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
    pieces, named = [""], []
    for at, text in enumerate(texts):
        first, *rest = PARAMETER.split(text)
        pieces[-1] += first
        pieces += rest[1::2]
        named += [(at, name) for name in rest[::2]]
    distinct = list(dict.fromkeys(named))
    places = [*(f"${distinct.index(name) + 1}" for name in named), ""]
    body = "".join(part for pair in zip(pieces, places, strict=True) for part in pair)
    values = [(at, _picked([name for _, name in names])) for at, names in groupby(distinct, key=itemgetter(0))]
    return Sentence(said, pieces, named, values, body, any(_changes(text) for text, _ in said))


def _picked(names: list[str]) -> Values:
    if len(names) == 1:
        return lambda args: (args[names[0]],)
    return itemgetter(*names)


def _values(given: list[Any]) -> list[bytes | None]:
    """Values as they are sent with a name."""
    sent = [
        None if v is None else v.encode() if v.__class__ is str else b"%d" % v if v.__class__ is int else _value(v) for v in given
    ]
    if b"\x00" in b"".join(filter(None, sent)):
        raise ValueError("PostgreSQL keeps no NUL characters")
    return sent


def _value(value: Any) -> bytes:
    """One of a rarer kind."""
    plain = _simply(value)
    if isinstance(plain, str):
        return plain.encode()
    return repr(plain).encode() if isinstance(plain, float) else b"%d" % plain


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

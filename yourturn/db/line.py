"""A line to the PostgreSQL server: one connection, with as little between us and libpq as there can be.

Only psycopg.pq is used for it, which is soon there (driver.py). If a line does not come about, psycopg itself is asked for
one: it tries the addresses of a host one after the other, and says what is wrong.

Who goes to sleep until the answer comes wakes late, and finds its caches full of other people's things: with a server on the
same machine, that is a third of a move. So who is alone stays awake for as long as an answer usually takes (Vigil). Threads
that could run meanwhile make that wrong, and so do other processes that want the processor: whoever lost it while it was
awake sleeps through the next answers, and through more of them the next time.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable
from typing import Any, TypeAlias

from .driver import errors, pq

_EVENTS = {pq.PollingStatus.READING: select.POLLIN, pq.PollingStatus.WRITING: select.POLLOUT}
_BAD = pq.ConnStatus.BAD
_FAILED, _SYNCED = pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.PIPELINE_SYNC

#: The name of something prepared and its values; or a text, and None.
Sent: TypeAlias = tuple[bytes, list[bytes | None] | None]


class Vigil:
    """Whether to stay awake until the answer comes; one for all lines of a process."""

    #: Seconds: of staying awake at most; and so much of them for somebody else are too much.
    longest, lost = 0.002, 0.0002
    least, most = 8, 1024  #: answers to sleep through, at a time

    def __init__(self, cores: int, threads: Callable[[], int] = threading.active_count) -> None:
        self.cores, self.threads = cores, threads
        self.asleep = 0  #: answers to sleep through, from now on
        self.tired = self.least

    def begun(self) -> bool:
        if self.asleep:
            self.asleep -= 1
            return False
        return self.cores > 1 and self.threads() == 1  # the server may need the only one

    def over(self, seconds: float, ours: float) -> None:
        """It was so long, and of that so much was ours."""
        if seconds - ours > self.lost:
            self.tired = min(2 * self.tired, self.most)
            self.asleep = self.tired
        elif self.tired > self.least:
            self.tired //= 2


#: Where cores cannot be given away, nobody stays awake.
vigil = Vigil(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") and hasattr(os, "sched_yield") else 1)


class Line:
    """An open connection; every statement is a transaction unless it says BEGIN."""

    __slots__ = ("_kept", "_poll", "pgconn")

    def __init__(self, pgconn: Any, kept: Any = None) -> None:
        self.pgconn = pgconn
        pgconn.nonblocking = 1
        self._kept = kept
        self._poll = select.poll()
        self._poll.register(pgconn.socket, select.POLLIN)

    @property
    def closed(self) -> bool:
        return bool(self.pgconn.status == _BAD)

    def close(self) -> None:
        self.pgconn.finish()

    def readable(self, seconds: float = 0.0) -> bool:
        """Something came, or the end of the line."""
        return bool(self._poll.poll(seconds * 1000))

    def execute(self, script: str) -> Any:
        """The answer to the last statement of a script. (Who waits in get_result instead lets no other thread run.)"""
        found = self.pgconn.exec_(script.encode())
        if found.status == _FAILED:
            raise error(found)
        return found

    def ask(self, name: bytes, values: list[bytes | None]) -> Any:
        """The answer to one statement that is prepared."""
        if not vigil.begun():
            return self.pgconn.exec_prepared(name, values)
        try:
            return self._asked(self.pgconn, name, values)
        except BaseException:
            self.close()  # nobody knows what is still under way
            raise

    def _asked(self, pgconn: Any, name: bytes, values: list[bytes | None]) -> Any:
        pgconn.send_query_prepared(name, values)
        self._flush(pgconn)
        self._await(pgconn, True)
        found = None
        while (result := pgconn.get_result()) is not None:
            found = result
        if found is None:
            raise errors.OperationalError(pgconn.get_error_message())
        return found

    def _await(self, pgconn: Any, awake: bool) -> None:
        """Until an answer is there."""
        if awake:
            begun, ours = time.perf_counter(), time.thread_time()
            ends, now = begun + vigil.longest, begun
            while pgconn.is_busy() and (now := time.perf_counter()) < ends:
                os.sched_yield()  # whoever else wants this core has it at once
                pgconn.consume_input()
            vigil.over(now - begun, time.thread_time() - ours)
        while pgconn.is_busy():
            self._poll.poll()
            pgconn.consume_input()

    def pipe(self, script: list[Sent]) -> list[Any]:
        """Several statements in one go, in one transaction unless they say COMMIT; nothing is done behind an error."""
        self.send(script)
        return self.received()

    def send(self, script: list[Sent]) -> None:
        """The first half of that: the server works, and we do something else."""
        try:
            self._send(self.pgconn, script)
        except BaseException:
            self.close()  # nobody knows what is still under way
            raise

    def received(self) -> list[Any]:
        try:
            return self._received(self.pgconn)
        except BaseException:
            self.close()
            raise

    def _send(self, pgconn: Any, script: list[Sent]) -> None:
        pgconn.enter_pipeline_mode()
        for words, values in script:
            if values is None:
                pgconn.send_query_params(words, None)
            else:
                pgconn.send_query_prepared(words, values)
        pgconn.pipeline_sync()
        self._flush(pgconn)

    def _flush(self, pgconn: Any) -> None:
        while pgconn.flush():  # more than the socket takes at once: who only wrote would wait for who only writes
            self._poll.modify(pgconn.socket, select.POLLIN | select.POLLOUT)
            if self._poll.poll()[0][1] & select.POLLIN:
                pgconn.consume_input()
            self._poll.modify(pgconn.socket, select.POLLIN)

    def _received(self, pgconn: Any) -> list[Any]:
        found: list[Any] = []
        awake = vigil.begun()
        while not found or found[-1].status != _SYNCED:
            if pgconn.is_busy():
                self._await(pgconn, awake)
            if (result := pgconn.get_result()) is not None:
                found.append(result)
            elif pgconn.status == _BAD:
                raise errors.OperationalError(pgconn.get_error_message())
        found.pop()
        pgconn.exit_pipeline_mode()
        return found

    def heard(self, seconds: float) -> bool:
        """Whether somebody has told us something; wait so long for it. All that has come is one thing."""
        ends = time.monotonic() + seconds
        while self.pgconn.notifies() is None:
            if not self.readable(max(0.0, ends - time.monotonic())):
                return False
            self.pgconn.consume_input()
        while self.pgconn.notifies() is not None:
            pass
        return True


def error(result: Any) -> Any:
    """What a statement failed with."""
    state = result.error_field(pq.DiagnosticField.SQLSTATE)
    words = result.get_error_message()
    return errors.lookup(state.decode())(words) if state else errors.OperationalError(words)


# --- a line comes about ---------------------------------------------------------------------------------------------------


def connect(address: str, seconds: int) -> Line:
    """Give up after so many seconds."""
    known = {option.keyword: option.val for option in pq.Conninfo.parse(address.encode()) if option.val is not None}
    known |= {b"client_encoding": b"utf8", b"connect_timeout": b"%d" % seconds}
    quoted = {name: value.replace(b"\\", b"\\\\").replace(b"'", b"\\'") for name, value in known.items()}
    address = b" ".join(b"%s='%s'" % pair for pair in quoted.items()).decode()
    pgconn = pq.PGconn.connect_start(address.encode())
    try:
        if _connected(pgconn, time.monotonic() + seconds):
            return Line(pgconn)
    except TimeoutError:
        if not _several(pgconn.host.decode(), known):
            raise errors.ConnectionTimeout("connection timeout expired") from None
    pgconn.finish()
    import psycopg

    whole = psycopg.connect(address, autocommit=True)
    return Line(whole.pgconn, whole)


def _connected(pgconn: Any, ends: float) -> bool:
    while pgconn.status != _BAD:
        status = pgconn.connect_poll()
        if status not in _EVENTS:
            return bool(status == pq.PollingStatus.OK)
        poll = select.poll()
        poll.register(pgconn.socket, _EVENTS[status])
        if not poll.poll(max(0.0, ends - time.monotonic()) * 1000):
            raise TimeoutError
    return False


def _several(host: str, known: dict[bytes, bytes]) -> bool:
    """Whether there may be an address that answers behind one that does not."""
    if any(b"," in known.get(name, b"") for name in (b"host", b"hostaddr")):
        return True
    if host.startswith("/") or b"hostaddr" in known:
        return False
    import socket

    try:
        return len(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)) > 1
    except OSError:
        return False


# --- values ---------------------------------------------------------------------------------------------------------------

#: The numbers of PostgreSQL's types, as far as our columns have them; all else is text.
_INTEGERS, _FLOATS, _BOOLEAN, _ANY = (20, 21, 23, 26), (700, 701), 16, 0
_MAKE: dict[int, Any] = dict.fromkeys(_INTEGERS, int) | dict.fromkeys(_FLOATS, float) | {_BOOLEAN: b"t".__eq__}


class Loader:
    """Makes Python values of answers. psycopg does it fastest, but has to be loaded for it: that pays for many values."""

    __slots__ = ("_made",)
    left = 20_000  #: values, of all loaders of this process, until psycopg makes them

    def __init__(self) -> None:
        self._made: Any = None

    def rows(self, result: Any) -> list[Any]:
        if self._made is None:
            count = result.ntuples * result.nfields
            if count <= Loader.left:
                Loader.left -= count
                return _rows(result)
            Loader.left, self._made = 0, _transformer()
        self._made.set_pgresult(result)
        found: list[Any] = self._made.load_rows(0, result.ntuples, tuple)
        return found


def _rows(result: Any) -> list[Any]:
    value = result.get_value
    columns = [(at, _MAKE.get(result.ftype(at), bytes.decode)) for at in range(result.nfields)]
    return [
        tuple([None if (one := value(row, at)) is None else make(one) for at, make in columns]) for row in range(result.ntuples)
    ]


def _transformer() -> Any:
    from psycopg.adapt import AdaptersMap, Transformer
    from psycopg.types.bool import BoolLoader
    from psycopg.types.numeric import FloatLoader, IntLoader
    from psycopg.types.string import TextLoader

    known = AdaptersMap()
    for oids, loader in (((_ANY,), TextLoader), ((_BOOLEAN,), BoolLoader), (_INTEGERS, IntLoader), (_FLOATS, FloatLoader)):
        for oid in oids:
            known.register_loader(oid, loader)
    return Transformer(known)

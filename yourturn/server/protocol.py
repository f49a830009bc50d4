"""HTTP on a connection, as uvicorn speaks it, with two short cuts for small requests.

*In one piece.* An answer whose length is known leaves with its head. Sent in two, who asked wakes up for a head without a
body, and again.

*At once.* A task of the event loop costs as much as a small look at the desk, and most requests are over before they have
waited for anything. So one of the API is begun as soon as it is there, without a task; it gets one when it waits.
"""

from __future__ import annotations

import types
from collections.abc import Coroutine, Generator, Iterable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

#: What is begun at once when all of it is there, unless it is a stream, which lives in a task.
API, STREAMS = "/api/", frozenset({"/api/events", "/api/changes"})
#: Bytes of a body that are waited for before anybody looks at them.
SMALL = 16_384


class Whole:
    """A connection that keeps a head until its body, if it says that there is one. Streams say nothing of their length."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._head = b""
        self._write = connection.write
        for name in ("is_closing", "get_extra_info", "pause_reading", "resume_reading", "set_protocol", "abort"):
            setattr(self, name, getattr(connection, name))

    def write(self, data: bytes) -> None:
        if self._head:
            data, self._head = self._head + data, b""
        elif data.startswith(b"HTTP/1.1 ") and b"\r\ncontent-length: " in data:
            self._head = data
            return
        self._write(data)

    def close(self) -> None:
        if self._head:
            self.write(b"")
        self._connection.close()


class Protocol(HttpToolsProtocol):
    _waiting: tuple[Any, Any] | None = None  #: what is begun when the rest of it is there

    def connection_made(self, transport: Any) -> None:
        super().connection_made(Whole(transport))  # type: ignore[arg-type]

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        path = cycle.scope["path"]
        if not path.startswith(API) or path in STREAMS or cycle.waiting_for_100_continue or _large(cycle.scope["headers"]):
            super()._start_asgi_task(cycle, app)
        elif cycle.more_body:
            self._waiting = cycle, app
        else:
            self._begin(cycle, app)

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        if self._waiting is not None and len(self._waiting[0].body) > SMALL:
            waiting, self._waiting = self._waiting, None
            super()._start_asgi_task(*waiting)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            self._begin(*waiting)

    def _begin(self, cycle: Any, app: Any) -> None:
        running = cycle.run_asgi(app)
        try:
            waits_for = running.send(None)
        except StopIteration:
            return
        task = self.loop.create_task(_rest(running, waits_for))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)


def _large(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Is so much announced that somebody may refuse it before it is there?"""
    return any(name == b"content-length" and (len(value) > 5 or int(value) > SMALL) for name, value in headers)


@types.coroutine
def _rest(running: Coroutine[Any, Any, None], waits_for: Any) -> Generator[Any, Any, None]:
    """What was begun, from where it waits."""
    while True:
        wrong: BaseException | None = None
        try:
            yield waits_for
        except BaseException as error:
            wrong = error
        try:
            waits_for = running.send(None) if wrong is None else running.throw(wrong)
        except StopIteration:
            return

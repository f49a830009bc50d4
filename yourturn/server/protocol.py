"""HTTP on a connection, as uvicorn speaks it, with two short cuts for small requests.

*In one piece.* An answer that is all there is said in one message (`WHOLE`, http/gate.py), and leaves so. Sent in two, who
asked wakes up for a head without a body, and again.

*At once.* A task of the event loop costs as much as a small look at the desk, and most requests are over before they have
waited for anything. So one of the API is begun as soon as it is there, without a task; it gets one when it waits.
"""

from __future__ import annotations

import types
from collections.abc import Coroutine, Generator, Iterable
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from ..http.gate import WHOLE

#: What is begun at once when all of it is there, unless it is a stream, which lives in a task.
API, STREAMS = "/api/", frozenset({"/api/events", "/api/changes"})
#: Bytes of a body that are waited for before anybody looks at them.
SMALL = 16_384


class Cycle(RequestResponseCycle):
    """A request and its answer, which may be said in one message."""

    async def send(self, message: Any) -> None:
        if message["type"] != WHOLE:
            await super().send(message)
            return
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        head = _head(message["status"], message["headers"], self.keep_alive)
        self.response_started = self.response_complete = True
        self.transport.write(head + message["body"])
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


def _head(status: int, headers: list[tuple[bytes, bytes]], keep: bool) -> bytes:
    said = [STATUS_LINE[status]]
    for name, value in headers if keep else (*headers, (b"connection", b"close")):
        said += (name, b": ", value, b"\r\n")
    said.append(b"\r\n")
    head = b"".join(said)
    lines = (len(said) - 2) // 4 + 2
    if head.count(b"\n") != lines or head.count(b"\r") != lines:
        raise RuntimeError("A header has more than one line")
    return head


class Protocol(HttpToolsProtocol):
    _waiting: tuple[Any, Any] | None = None  #: what is begun when the rest of it is there
    _first = True  #: of what came together, one is begun at once: others come in between

    def data_received(self, data: bytes) -> None:
        self._first = True
        super().data_received(data)

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        cycle.__class__ = Cycle
        cycle.scope[WHOLE] = True
        path = cycle.scope["path"]
        if not path.startswith(API) or path in STREAMS or cycle.waiting_for_100_continue or _large(cycle.scope["headers"]):
            super()._start_asgi_task(cycle, app)
        elif cycle.more_body:
            self._waiting = cycle, app
        else:  # it waited behind others: who has just been answered is not kept from ending by it
            self.loop.call_soon(self._begin, cycle, app)

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        if self._waiting is not None and len(self._waiting[0].body) > SMALL:
            waiting, self._waiting = self._waiting, None
            super()._start_asgi_task(*waiting)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            if self._first:
                self._first = False
                self._begin(*waiting)
            else:
                self.loop.call_soon(self._begin, *waiting)

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

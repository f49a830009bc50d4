"""Requests as they come over a line: in pieces, several at once, large, given up. And answers: in one piece, in order."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import closing

import pytest

from tests.api.test_hurry import writer
from yourturn.api.route_table import rows
from yourturn.server import protocol
from yourturn.server.protocol import _head, _rest


class Line:
    """A connection, byte by byte."""

    def __init__(self, site) -> None:
        self.socket = socket.create_connection(("127.0.0.1", site.port), 20)
        self._token = site.token("admin")
        self._rest = b""

    def said(self, method: str, path: str, body: str = "", more: str = "") -> bytes:
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self._token}\r\n{more}"
        return f"{head}Content-Type: application/json\r\nContent-Length: {len(body.encode())}\r\n\r\n{body}".encode()

    def send(self, *words: str) -> None:
        self.socket.sendall(self.said(*words))

    def reply(self) -> tuple[int, dict[str, object]]:
        while b"\r\n\r\n" not in self._rest:
            self._rest += self._more()
        head, _, rest = self._rest.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        while len(rest) < length:
            rest += self._more()
        self._rest = rest[length:]
        return int(head[9:12]), json.loads(rest[:length])

    def _more(self) -> bytes:
        more = self.socket.recv(65536)
        assert more, "the server has gone"
        return more

    def close(self) -> None:
        self.socket.close()


@pytest.fixture
def line(sqlite_site):
    with closing(Line(sqlite_site)) as found:
        yield found


def created(title: str) -> tuple[str, str, str]:
    return "POST", "/api/tasks", json.dumps({"title": title})


def test_a_request_that_comes_in_pieces(line):
    sent = line.said(*created("In pieces"))
    for at in range(0, len(sent), 40):
        line.socket.sendall(sent[at : at + 40])
    assert line.reply()[1]["title"] == "In pieces"


def test_several_at_once_are_answered_in_order(line):
    line.socket.sendall(b"".join(line.said(*created(f"Number {n}")) for n in range(5)))
    assert [line.reply()[1]["title"] for _ in range(5)] == [f"Number {n}" for n in range(5)]


def test_others_come_in_between(line, sqlite_site, monkeypatch):
    """Who sends a hundred at once has one of them answered in each turn of the event loop."""
    turns: list[int] = []
    begin, count = protocol.Protocol._begin, [0]

    def begun(self, cycle, app) -> None:
        count[0] += 1
        self.loop.call_soon(lambda: turns.append(count[0]))
        begin(self, cycle, app)

    monkeypatch.setattr(protocol.Protocol, "_begin", begun)
    line.socket.sendall(line.said("GET", "/api/tasks/NONE-1") * 100)
    assert {line.reply()[0] for _ in range(100)} == {404}
    assert len(set(turns)) > 50


def test_several_at_once_also_behind_one_that_waits(line, sqlite_site):
    """It waits for another writer, in a thread; who comes after it does so here too."""
    with closing(writer(sqlite_site.address)) as other:
        many = line.said("GET", "/api/tasks/NONE-1") * 300
        line.socket.sendall(line.said(*created("First")) + many + line.said(*created("Last")))
        with pytest.raises(TimeoutError):
            line.socket.settimeout(0.2)
            line.reply()
        line.socket.settimeout(20)
        other.execute("ROLLBACK")
    assert line.reply()[1]["title"] == "First"
    assert {line.reply()[0] for _ in range(300)} == {404}
    assert line.reply()[1]["title"] == "Last"


def test_a_large_body_is_read_while_it_comes(line):
    assert protocol.SMALL < 100_000
    line.send("POST", "/api/tasks", json.dumps({"title": "Large", "description": "x" * 100_000}))
    assert len(line.reply()[1]["description"]) == 100_000
    line.send(*created("And then a small one"))
    assert line.reply()[0] == 201


def test_who_announces_too_much_is_told_before_they_send_it(line):
    sent = line.said("POST", "/api/tasks").replace(b"Content-Length: 0", b"Content-Length: 2000000")
    line.socket.sendall(sent + b"x" * (2 * protocol.SMALL))
    assert line.reply()[0] == 413


def test_who_waits_for_a_go_ahead_gets_it(line):
    sent = line.said(*created("May I?"), "Expect: 100-continue\r\n")
    head, _, body = sent.partition(b"\r\n\r\n")
    line.socket.sendall(head + b"\r\n\r\n")
    assert line.socket.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
    line.socket.sendall(body)
    assert line.reply()[1]["title"] == "May I?"


def test_who_goes_in_the_middle_leaves_nothing(line, sqlite_site):
    with closing(Line(sqlite_site)) as other:
        other.socket.sendall(other.said(*created("Never said"))[:-5])
    line.send("GET", "/api/tasks?search=Never")
    assert line.reply() == (200, {"tasks": [], "next_cursor": None})


def test_nothing_is_sent_for_a_head(line):
    line.socket.sendall(line.said("HEAD", "/api/me") + line.said("GET", "/api/me"))
    line._rest = line._more()
    head, _, line._rest = line._rest.partition(b"\r\n\r\n")
    assert b"content-length: " in head
    assert line.reply()[0] == 200


def test_a_header_has_one_line():
    said = [(b"content-type", b"text/plain"), (b"allow", b"GET")]
    assert _head(404, said, True) == b"HTTP/1.1 404 Not Found\r\ncontent-type: text/plain\r\nallow: GET\r\n\r\n"
    assert _head(200, [], False) == b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n"
    for odd in (b"a\r\nset-cookie: x", b"a\nb", b"a\rb", b"\r\n\r\n<script>"):
        for header in ((b"location", odd), (odd, b"x")):
            with pytest.raises(RuntimeError, match="more than one line"):
                _head(200, [*said, header], True)


def test_who_says_so_is_let_go_after_the_answer(line):
    line.socket.sendall(line.said("GET", "/api/me", "", "Connection: close\r\n"))
    assert line.reply()[0] == 200
    assert line.socket.recv(1) == b""


def test_another_server_gets_an_answer_in_two_messages(sqlite_site):
    said: list[dict[str, object]] = []

    async def send(message: dict[str, object]) -> None:
        said.append(message)

    scope = {"type": "http", "method": "GET", "path": "/healthz", "query_string": b"", "headers": [(b"host", b"localhost")]}
    asyncio.run(sqlite_site.app(scope, None, send))
    assert [message["type"] for message in said] == ["http.response.start", "http.response.body"]
    assert said[0]["status"] == 200 and (b"x-frame-options", b"DENY") in said[0]["headers"] and said[1]["body"]


def test_streams_live_in_tasks():
    assert {row.path for row in rows() if row.stream is not None} == protocol.STREAMS


def test_what_was_begun_goes_on_in_a_task():
    async def run() -> None:
        loop = asyncio.get_running_loop()
        one, two = loop.create_future(), loop.create_future()
        seen: list[object] = []

        async def work() -> None:
            seen.append(await one)
            try:
                await two
            except ValueError as error:
                seen.append(error)
            try:
                while True:
                    await asyncio.sleep(0)
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise

        begun = work()
        task = loop.create_task(_rest(begun, begun.send(None)))
        await asyncio.sleep(0)
        one.set_result(1)
        wrong = ValueError()
        two.set_exception(wrong)
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 20)
        assert seen == [1, wrong, "cancelled"]

    asyncio.run(run())

"""HTTP/1.1 on a connection: fragmented, pipelined, large and aborted requests; responses in order."""

from __future__ import annotations

import asyncio
import json
import socket
import sqlite3
from contextlib import closing

import pytest
from starlette.responses import Response

from yourturn.server import limits


def open_writer(address: str) -> sqlite3.Connection:
    """A connection of another process that holds SQLite's write lock."""
    other = sqlite3.connect(address, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    return other


class Connection:
    """A raw connection to the server."""

    def __init__(self, site) -> None:
        self.socket = socket.create_connection(("127.0.0.1", site.port), 20)
        self._token = site.token("admin")
        self._rest = b""

    def encode(self, method: str, path: str, body: str = "", more: str = "") -> bytes:
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self._token}\r\n{more}"
        return f"{head}Content-Type: application/json\r\nContent-Length: {len(body.encode())}\r\n\r\n{body}".encode()

    def send(self, *words: str) -> None:
        self.socket.sendall(self.encode(*words))

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
        assert more, "the server closed the connection"
        return more

    def close(self) -> None:
        self.socket.close()


@pytest.fixture
def line(sqlite_site):
    with closing(Connection(sqlite_site)) as connection:
        yield connection


def created(title: str) -> tuple[str, str, str]:
    return "POST", "/api/tasks", json.dumps({"title": title})


def test_a_fragmented_request(line):
    sent = line.encode(*created("In pieces"))
    for at in range(0, len(sent), 40):
        line.socket.sendall(sent[at : at + 40])
    assert line.reply()[1]["title"] == "In pieces"


def test_pipelined_requests_are_answered_in_order(line):
    line.socket.sendall(b"".join(line.encode(*created(f"Number {n}")) for n in range(5)))
    assert [line.reply()[1]["title"] for _ in range(5)] == [f"Number {n}" for n in range(5)]


def test_pipelined_requests_behind_one_that_waits_for_a_lock(line, sqlite_site):
    with closing(open_writer(sqlite_site.address)) as other:
        many = line.encode("GET", "/api/tasks/NONE-1") * 300
        line.socket.sendall(line.encode(*created("First")) + many + line.encode(*created("Last")))
        with pytest.raises(TimeoutError):
            line.socket.settimeout(0.2)
            line.reply()
        line.socket.settimeout(20)
        other.execute("ROLLBACK")
    assert line.reply()[1]["title"] == "First"
    assert {line.reply()[0] for _ in range(300)} == {404}
    assert line.reply()[1]["title"] == "Last"


def test_expect_100_continue(line):
    sent = line.encode(*created("May I?"), "Expect: 100-continue\r\n")
    head, _, body = sent.partition(b"\r\n\r\n")
    line.socket.sendall(head + b"\r\n\r\n")
    assert line.socket.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
    line.socket.sendall(body)
    assert line.reply()[1]["title"] == "May I?"


def test_an_aborted_body_changes_nothing(line, sqlite_site):
    with closing(Connection(sqlite_site)) as other:
        other.socket.sendall(other.encode(*created("Never sent"))[:-5])
    line.send("GET", "/api/tasks?search=Never")
    assert line.reply() == (200, {"tasks": [], "next_cursor": None})


def test_a_head_request_gets_no_body(line):
    line.socket.sendall(line.encode("HEAD", "/api/me") + line.encode("GET", "/api/me"))
    line._rest = line._more()
    head, _, line._rest = line._rest.partition(b"\r\n\r\n")
    assert b"content-length: " in head
    assert line.reply()[0] == 200


def test_connection_close(line):
    line.socket.sendall(line.encode("GET", "/api/me", "", "Connection: close\r\n"))
    assert line.reply()[0] == 200
    assert line.socket.recv(1) == b""


def test_a_large_body(line):
    line.send("POST", "/api/tasks", json.dumps({"title": "Large", "description": "x" * 100_000}))
    assert len(line.reply()[1]["description"]) == 100_000
    line.send(*created("And then a small one"))
    assert line.reply()[0] == 201


def test_content_length_above_the_limit_is_refused_before_the_body(line):
    sent = line.encode("POST", "/api/tasks").replace(b"Content-Length: 0", b"Content-Length: 2000000")
    line.socket.sendall(sent + b"x" * 32_000)
    assert line.reply()[0] == 413


def test_a_chunked_body(line):
    text = json.dumps({"title": "In chunks"}).encode()
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (text[:7], text[7:])) + b"0\r\n\r\n"
    head = line.encode("POST", "/api/tasks").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    line.socket.sendall(head + chunks)
    assert line.reply()[1]["title"] == "In chunks"


def test_a_chunked_body_above_the_limit(line):
    head = line.encode("POST", "/api/tasks").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    part = b"%x\r\n%s\r\n" % (100_000, b"x" * 100_000)
    line.socket.sendall(head + part * (limits.MAX_BODY // 100_000 + 1))
    assert line.reply()[0] == 413


@pytest.mark.parametrize("value", ["a\r\nset-cookie: x", "a\nb", "\r\n\r\n<script>"])
def test_a_header_cannot_contain_a_line_break(sqlite_site, line, monkeypatch, value):
    """uvicorn refuses such a header; the connection ends without a byte of it."""
    from yourturn.api import endpoint

    monkeypatch.setattr(endpoint, "_rendered", lambda response, request: Response(b"{}", headers={"location": value}))
    line.send("GET", "/api/me")
    received = b""
    while more := line.socket.recv(65536):
        received += more
    assert b"set-cookie" not in received and b"<script>" not in received


def test_app_is_plain_asgi(sqlite_site):
    messages: list[dict[str, object]] = []

    async def send(message: dict[str, object]) -> None:
        messages.append(message)

    scope = {"type": "http", "method": "GET", "path": "/healthz", "query_string": b"", "headers": [(b"host", b"localhost")]}
    asyncio.run(sqlite_site.app(scope, None, send))
    assert [message["type"] for message in messages] == ["http.response.start", "http.response.body"]
    assert messages[0]["status"] == 200 and (b"x-frame-options", b"DENY") in messages[0]["headers"] and messages[1]["body"]

"""What may stand between a client and a server: a proxy that lets requests through, or loses them, or their replies.

    between.then("lose", "create")        the server acts; the next reply to `create` is lost with its connection
    between.then("drop", "list", 2)       the next two requests for `list` are cut off before the server hears of them
    between.then(503, "create")           answered with 503 in the proxy's own words; the server hears nothing
    between.then("502", "create")         the server acts; the reply is 502 in the proxy's own words

Methods are those of the client; `""` stands for any request.
"""

from __future__ import annotations

import http.client
import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

EVERY = 1_000_000


class Between:
    def __init__(self, port: int) -> None:
        self.target = port
        self.heard: list[tuple[str, str]] = []  #: method, and what became of it
        self._rules: list[list[Any]] = []
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        between = self

        class Handler(_Handler):
            at = between

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()

    def then(self, what: str | int, *methods: str, times: int = 1, headers: dict[str, str] | None = None) -> None:
        with self._lock:
            self._rules += [[method, what, times, headers or {}] for method in methods or ("",)]

    def clear(self) -> None:
        with self._lock:
            self._rules.clear()

    def fate(self, method: str) -> tuple[str | int, dict[str, str]]:
        with self._lock:
            for rule in self._rules:
                if rule[2] and rule[0] in ("", method):
                    rule[2] -= 1
                    self.heard.append((method, str(rule[1])))
                    return rule[1], rule[3]
            self.heard.append((method, ""))
            return "", {}

    def count(self, method: str) -> int:
        return sum(name == method for name, _ in self.heard)

    def end(self) -> None:
        """Ends all connections, as a server does with those that say nothing for too long."""
        for sock in list(self._open):
            sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class _Handler(BaseHTTPRequestHandler):
    at: Between
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.at._open.add(self.connection)

    def finish(self) -> None:
        self.at._open.discard(self.connection)
        if self.connection.fileno() >= 0:
            super().finish()

    def _pass(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        method = self.path.partition("?")[0].removeprefix("/api/desk/").removeprefix("/api/")
        what, headers = self.at.fate(method)
        if what == "drop":
            self._reset()
        elif isinstance(what, int):
            self._answer(what, {"Content-Type": "text/html", **headers}, b"<h1>not now</h1>")
        else:
            status, named, body = self._forward(data)
            if what == "lose":
                self._reset()
            elif what == "502":
                self._answer(502, {"Content-Type": "text/html"}, b"<h1>bad gateway</h1>")
            elif what == "cut":
                self._answer(status, named, body, len(body) // 2)
                self._reset()
            else:
                self._answer(status, named, body)

    do_GET = do_POST = _pass

    def _forward(self, data: bytes) -> tuple[int, dict[str, str], bytes]:
        line = http.client.HTTPConnection("127.0.0.1", self.at.target, timeout=60)
        try:
            given = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
            line.request(self.command, self.path, data or None, {**given, "Host": f"127.0.0.1:{self.at.target}"})
            found = line.getresponse()
            kept = ("content-type", "retry-after", "etag")
            return found.status, {n: v for n, v in found.getheaders() if n.lower() in kept}, found.read()
        finally:
            line.close()

    def _answer(self, status: int, headers: dict[str, str], body: bytes, sent: int | None = None) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[:sent])

    def _reset(self) -> None:
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def log_message(self, *_: Any) -> None:
        pass

"""A minimal HTTP client, so that the benchmarks measure the server and not the client."""

from __future__ import annotations

import json
import socket
from typing import Any


class HttpConnection:
    """One persistent connection. Responses need a Content-Length."""

    def __init__(self, port: int, token: str = "") -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        credential = f"Authorization: Bearer {token}\r\n" if token else ""
        self._head = f"Host: 127.0.0.1:{port}\r\n{credential}Content-Type: application/json\r\nContent-Length: "
        self._rest = b""

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        sent = b"" if body is None else json.dumps(body).encode()
        self.socket.sendall(f"{method} {path} HTTP/1.1\r\n{self._head}{len(sent)}\r\n\r\n".encode() + sent)
        data = self._rest
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += self._more()
        head = data[:end].lower()
        at = head.find(b"content-length:")
        assert at >= 0, head
        until = end + 4 + int(head[at + 15 :].split(b"\r\n", 1)[0])
        while len(data) < until:
            data += self._more()
        self._rest = data[until:]
        return int(head[9:12]), data[end + 4 : until]

    def json(self, method: str, path: str, body: Any = None, status: int = 200) -> Any:
        actual, raw = self.request(method, path, body)
        assert actual == status, (method, path, actual, raw[:300])
        return json.loads(raw)

    def _more(self) -> bytes:
        more = self.socket.recv(65536)
        assert more, "the server has closed the connection"
        return more

    def close(self) -> None:
        self.socket.close()

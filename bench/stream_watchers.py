"""Many watchers of one server in one process: `python -m bench.stream_watchers PORT TOKEN COUNT`.

All watchers request the same events from the same moment, so all must receive the same bytes. The bytes of the first are parsed;
those of the others are compared with them, byte for byte. So a missing, repeated or reordered event is detected, and a thousand
watchers cost little more than their bytes.

Prints `ready` when all are connected. After a line `N` on stdin it runs until all watchers have received N answers, and prints
their order, and the time and content of each piece.
"""

from __future__ import annotations

import json
import select
import selectors
import socket
import sys
import time
from bisect import bisect_right

_MARK = b"event: question_answered\n"
_PATIENCE = 60.0


class Watcher:
    def __init__(self, port: int, token: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self.socket.sendall(
            f"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
        )
        self.raw = b""  #: not parsed yet
        self.text = b""  #: parsed, and beyond the bytes of the first watcher
        self.offset = 0  #: number of equal bytes
        self.begun = False  #: the response headers have been read

    def take(self, data: bytes) -> None:
        self.raw += data
        if not self.begun:
            end = self.raw.find(b"\r\n\r\n")
            if end < 0:
                return
            assert self.raw.startswith(b"HTTP/1.1 200"), self.raw[:300]
            self.raw, self.begun = self.raw[end + 4 :], True
        parts = []
        while (end := self.raw.find(b"\r\n")) >= 0:  # chunk by chunk
            size = int(self.raw[:end], 16)
            if len(self.raw) < end + 2 + size + 2:
                break
            part = self.raw[end + 2 : end + 2 + size]
            if not part.startswith((b"retry:", b": still here")):
                parts.append(part)
            self.raw = self.raw[end + 2 + size + 2 :]
        self.text += b"".join(parts)


class WatcherPool:
    def __init__(self, port: int, token: str, count: int) -> None:
        self.selector = selectors.DefaultSelector()
        self.watchers = []
        for _ in range(count):
            watcher = Watcher(port, token)
            watcher.socket.setblocking(False)
            self.selector.register(watcher.socket, selectors.EVENT_READ, watcher)
            self.watchers.append(watcher)
        self.measure = bytearray()
        self.seen: list[str] = []  #: questions, in the order of their answers
        self.ends: list[int] = []  #: where each of them ends in what all are sent
        self.arrivals: list[tuple[float, int, int]] = []  #: when, the first answer that it told of, and behind the last
        self._parsed = 0
        self._ahead: set[Watcher] = set()  #: of the first one

    def turn(self, seconds: float) -> None:
        for key, _ in self.selector.select(seconds):
            watcher: Watcher = key.data
            try:
                data = watcher.socket.recv(1 << 20)
            except BlockingIOError:
                continue
            assert data, "a watcher was disconnected"
            watcher.take(data)
            if watcher is self.watchers[0]:
                self.measure += watcher.text
                watcher.text = b""
                self._parse()
                self._arrived(watcher, len(self.measure))
                for other in list(self._ahead):
                    self._compare(other)
            else:
                self._compare(watcher)

    def _parse(self) -> None:
        while (end := self.measure.find(b"\n\n", self._parsed)) >= 0:
            if (at := self.measure.find(_MARK, self._parsed, end)) >= 0:
                data = json.loads(self.measure[at + len(_MARK) + len(b"data: ") : end])
                self.seen.append(data["questionId"])
                self.ends.append(end + 2)
            self._parsed = end + 2

    def _compare(self, watcher: Watcher) -> None:
        size = min(len(watcher.text), len(self.measure) - watcher.offset)
        if size:
            assert self.measure[watcher.offset : watcher.offset + size] == watcher.text[:size], (
                "two watchers received different bytes"
            )
            watcher.text = watcher.text[size:]
            self._arrived(watcher, watcher.offset + size)
        (self._ahead.add if watcher.text else self._ahead.discard)(watcher)

    def _arrived(self, watcher: Watcher, offset: int) -> None:
        first, behind = bisect_right(self.ends, watcher.offset), bisect_right(self.ends, offset)
        watcher.offset = offset
        if behind > first:
            self.arrivals.append((time.monotonic(), first, behind))

    def all_know(self, count: int) -> bool:
        return len(self.seen) >= count and all(w.offset >= self.ends[count - 1] for w in self.watchers)


def main(port: int, token: str, count: int) -> None:
    pool = WatcherPool(port, token, count)
    while not all(w.begun for w in pool.watchers):
        pool.turn(1)
    print("ready", flush=True)
    asked = 0
    while not asked:
        if select.select([sys.stdin], [], [], 0)[0]:
            asked = int(sys.stdin.readline())
        pool.turn(0.05)
    ends = time.monotonic() + _PATIENCE
    while not pool.all_know(asked) and time.monotonic() < ends:
        pool.turn(0.2)
    told = sum(len(pool.ends) <= bisect_right(pool.ends, w.offset) for w in pool.watchers)
    print(json.dumps({"seen": pool.seen, "told": told, "arrivals": pool.arrivals}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))

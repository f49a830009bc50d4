"""A clock and a ledger outside the database, shared by all processes of a section.

The clock is eight bytes of a file that all processes map: the section's main process winds it, so no test sleeps to see a lease
end. The ledger is a file that is only appended to, one write per line, so what a killed process has written stays and is
never torn: it is the view of an outside observer. A line is written before an effect, and after each reply of the desk.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from pathlib import Path
from typing import Any

SECOND = 1_000_000


class SharedClock:
    """Microseconds since 1970, the same for all who open the file."""

    def __init__(self, path: str, start: int | None = None) -> None:
        self.path = path
        if start is not None:
            Path(path).write_bytes(struct.pack("q", start))
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), 8)
        self._cell = memoryview(self._map).cast("q")

    def __call__(self) -> int:
        return self._cell[0]

    def advance(self, seconds: float) -> int:
        self._cell[0] += round(seconds * SECOND)
        return self._cell[0]


class Ledger:
    """An append-only file of JSON lines."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def __call__(self, what: str, **said: Any) -> None:
        os.write(self._fd, json.dumps({"what": what, **said}).encode() + b"\n")

    def close(self) -> None:
        os.close(self._fd)


def lines(path: str) -> list[dict[str, Any]]:
    """What was written, in the order of writing; a last line that is not whole was never written."""
    text = Path(path).read_text() if Path(path).exists() else ""
    return [json.loads(line) for line in text.split("\n")[:-1]]

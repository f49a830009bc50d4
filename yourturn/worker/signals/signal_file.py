"""The signal file of a turn: what the agent wrote during the turn, read once.

The agent can put anything at the path, so it is read only if it is a regular file, without blocking, and up to the longest
signal.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from .outcomes import LIMIT


class SignalFile:
    def __init__(self, path: Path, *, new: bool = False) -> None:
        """`new`: an existing file counts, too."""
        self.path = path
        self._before = None if new else self.mark()

    def read(self, *, keep: bool = False) -> bytes | None:
        """The content, if the file was written since; else None."""
        if self.mark() == self._before:
            return None
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return None
            with os.fdopen(handle, "rb", closefd=False) as file:
                data = file.read(LIMIT + 1)
        except OSError:
            return None
        finally:
            os.close(handle)
        if not keep:
            self.remove()
        return data

    def remove(self) -> None:
        with suppress(OSError):
            self.path.unlink()

    def mark(self) -> tuple[int, int] | None:
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size

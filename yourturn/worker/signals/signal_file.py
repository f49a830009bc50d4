"""The signal file of one turn: what an agent wrote during it, read once.

The agent can put anything there, so it is only opened if it is a file, without waiting, and never read further than a signal
can be long.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from .outcomes import LIMIT


class SignalFile:
    def __init__(self, path: Path, *, new: bool = False) -> None:
        """`new`: what lies there already counts, too."""
        self.path = path
        self._before = None if new else self.mark()

    def read(self, *, keep: bool = False) -> bytes | None:
        """What was written since; None if nothing was."""
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
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size

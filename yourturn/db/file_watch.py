"""Watches files for writes with inotify.

Python has no interface to inotify, so the C library is called through ctypes. On other systems than Linux, or where the
kernel's limits are used up, `works` is false and the caller polls. A write is only a hint: it is not yet a commit, and a missed
one is found by polling.
"""

from __future__ import annotations

import ctypes
import os
import select
import sys

_MODIFIED = 0x2


class FileWatch:
    """Watches files until it is closed. `works` is false where inotify is not available."""

    def __init__(self, *paths: str) -> None:
        self._fd = -1
        if sys.platform != "linux":
            return
        try:
            c = ctypes.CDLL(None, use_errno=True)
            self._fd = c.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
            watches = [c.inotify_add_watch(self._fd, os.fsencode(path), _MODIFIED) for path in paths]
        except (OSError, AttributeError):
            watches = []
        if self._fd >= 0 and (not watches or min(watches) < 0):
            self.close()

    @property
    def works(self) -> bool:
        return self._fd >= 0

    def wait(self, seconds: float) -> bool:
        """True if a file was written in time."""
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        if not poll.poll(max(0, round(seconds * 1000))):
            return False
        try:
            while os.read(self._fd, 4096):
                pass
        except BlockingIOError:
            pass
        return True

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

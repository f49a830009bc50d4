"""Watches files for writes with inotify.

Python has no interface to inotify, so the C library is called through ctypes. On other systems than Linux, or where the
kernel's limits are used up, `works` is false and the caller polls. Only a hint either way: a write that is noticed
is not yet a commit, and one that is not noticed is found by looking.
"""

from __future__ import annotations

import ctypes
import os
import select
import sys

_MODIFIED = 0x2


class FileWatch:
    """The files named, watched until closed. `works` is false where that cannot be had."""

    def __init__(self, *paths: str) -> None:
        self._fd = -1
        if sys.platform != "linux":
            return
        try:
            c = ctypes.CDLL(None, use_errno=True)
            self._fd = c.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
            seen = [c.inotify_add_watch(self._fd, os.fsencode(path), _MODIFIED) for path in paths]
        except (OSError, AttributeError):
            seen = []
        if self._fd >= 0 and (not seen or min(seen) < 0):
            self.close()

    @property
    def works(self) -> bool:
        return self._fd >= 0

    def wait(self, seconds: float) -> bool:
        """Was something written, before the time was over?"""
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

"""Resources of one thread each: the next thread takes them over when their thread has ended.

A server may use a new thread for each request, and so does every run of a workflow. Without this, each would open a connection
and leave it open.
"""

from __future__ import annotations

import os
import threading
from typing import Any


class PerThread:
    def __init__(self) -> None:
        self._kept: list[tuple[int, threading.Thread, Any, Any]] = []
        self._lock = threading.Lock()

    def add(self, resource: Any, kind: Any = None) -> None:
        """Register a resource of this thread. One without a `kind` is closed when its thread has ended, not taken over."""
        pid = os.getpid()
        with self._lock:
            # after a fork, the parent's resources are not ours to close
            ended = [
                one for one in self._kept
                if one[0] == pid and (getattr(one[2], "closed", False) or (one[3] is None and not one[1].is_alive()))
            ]  # fmt: skip
            self._kept = [one for one in self._kept if one not in ended] + [(pid, threading.current_thread(), resource, kind)]
        for one in ended:
            one[2].close()

    def take_over(self, kind: Any) -> Any:
        """A resource of this kind whose thread has ended, or None. It now belongs to the calling thread."""
        pid = os.getpid()
        with self._lock:
            for at, (owner, thread, resource, own_kind) in enumerate(self._kept):
                if own_kind == kind and owner == pid and not thread.is_alive():
                    self._kept[at] = (pid, threading.current_thread(), resource, kind)
                    return resource
        return None

    def close(self) -> None:
        while self._kept:
            self._kept.pop()[2].close()

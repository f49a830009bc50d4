"""Resources of one thread each: the next thread takes them over when their thread has ended.

A server may use a new thread for each request, and so does every run of a workflow. Without this, each would open a connection
and leave it open.
"""

from __future__ import annotations

import os
import threading
from typing import Any, NamedTuple


class _Entry(NamedTuple):
    pid: int
    thread: threading.Thread
    resource: Any
    kind: Any


class PerThread:
    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self._lock = threading.Lock()

    def add(self, resource: Any, kind: Any = None) -> None:
        """Register a resource of this thread. One without a `kind` is closed when its thread has ended, not taken over."""
        pid = os.getpid()
        with self._lock:
            # after a fork, the parent's resources are not ours to close
            ended = [e for e in self._entries if e.pid == pid and _is_closed_or_left(e)]
            self._entries = [e for e in self._entries if e not in ended]
            self._entries.append(_Entry(pid, threading.current_thread(), resource, kind))
        for entry in ended:
            entry.resource.close()

    def take_over(self, kind: Any) -> Any:
        """A resource of this kind whose thread has ended, or None. It now belongs to the calling thread."""
        pid = os.getpid()
        with self._lock:
            for at, entry in enumerate(self._entries):
                if entry.kind == kind and entry.pid == pid and not entry.thread.is_alive():
                    self._entries[at] = entry._replace(thread=threading.current_thread())
                    return entry.resource
        return None

    def close(self) -> None:
        while self._entries:
            self._entries.pop().resource.close()


def _is_closed_or_left(entry: _Entry) -> bool:
    return getattr(entry.resource, "closed", False) or (entry.kind is None and not entry.thread.is_alive())

"""What belongs to one thread each: when its thread has ended, the next thread takes it over; when the store is closed, it is too.

A server may use a new thread for each request, and every run of a workflow is one: without this each of them would open a
connection, and leave it open.
"""

from __future__ import annotations

import os
import threading
from typing import Any


class PerThread:
    def __init__(self) -> None:
        self._kept: list[tuple[int, threading.Thread, Any, Any]] = []
        self._lock = threading.Lock()

    def add(self, thing: Any, kind: Any = None) -> None:
        """`kind`: what a later thread asks for to take it over; things without one are closed instead."""
        pid = os.getpid()
        with self._lock:
            # what a fork brought along is the parent's: it is not for us to close
            ended = [
                one for one in self._kept
                if one[0] == pid and (getattr(one[2], "closed", False) or (one[3] is None and not one[1].is_alive()))
            ]  # fmt: skip
            self._kept = [one for one in self._kept if one not in ended] + [(pid, threading.current_thread(), thing, kind)]
        for one in ended:
            one[2].close()

    def take_over(self, kind: Any) -> Any:
        """A thing of this kind whose thread has ended, or None. From now on it belongs to the calling thread."""
        pid = os.getpid()
        with self._lock:
            for at, (owner, thread, thing, own_kind) in enumerate(self._kept):
                if own_kind == kind and owner == pid and not thread.is_alive():
                    self._kept[at] = (pid, threading.current_thread(), thing, kind)
                    return thing
        return None

    def close(self) -> None:
        while self._kept:
            self._kept.pop()[2].close()

"""What belongs to one thread each: closed when its thread has ended, or the store is closed.

A server may ask from a new thread each time; without this every one of them would leave a connection open.
"""

from __future__ import annotations

import os
import threading
from typing import Any


class PerThread:
    def __init__(self) -> None:
        self._kept: list[tuple[int, threading.Thread, Any]] = []
        self._lock = threading.Lock()

    def add(self, thing: Any) -> None:
        pid = os.getpid()
        with self._lock:
            # what a fork brought along is the parent's: it is not for us to close
            ended = [one for one in self._kept if one[0] == pid and (not one[1].is_alive() or getattr(one[2], "closed", False))]
            self._kept = [one for one in self._kept if one not in ended] + [(pid, threading.current_thread(), thing)]
        for _, _, old in ended:
            old.close()

    def close(self) -> None:
        while self._kept:
            self._kept.pop()[2].close()

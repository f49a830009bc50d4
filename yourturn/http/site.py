"""One running server: its desks, where it is, who watches, and what it does by itself."""

from __future__ import annotations

import os
import re
import socket
import threading
import time
from typing import Any

from ..core.errors import YourturnError
from ..desk import rate_limits
from .auth import Place
from .desks import Desks
from .errors import log
from .hub import Hub, Words

#: Seconds between two looks at what is due: at least, and at most.
SOON, LATE = 1.0, 30.0
#: When this server began, and on which machine. Processes that it forks say the same.
BOOT = f"{re.sub('[^A-Za-z0-9-]', '-', socket.gethostname())[:40]}.{time.time_ns() // 1_000_000:x}{os.getpid():x}"


class Site:
    def __init__(self, desks: Desks, here: Place, words: Words | None = None) -> None:
        self.desks = desks
        self.here = here
        self._words = words
        self._hubs: dict[str, Hub] = {}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.closing = False
        self.boot = BOOT
        self.memory: dict[Any, Any] = {}  #: what a surface has worked out and may use again

    def hub(self, workspace: str) -> Hub:
        found = self._hubs.get(workspace)
        if found is None:
            found = self._hubs[workspace] = Hub(self.desks.desk(workspace), self._words)
        return found

    @property
    def watchers(self) -> int:
        return sum(hub.count for hub in self._hubs.values())

    # --- clockwork --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Leases, timeouts and dates, in the background. Any number of processes may do this at once."""
        self._thread = threading.Thread(target=self._clockwork, name="yourturn-clockwork", daemon=True)
        self._thread.start()

    def _clockwork(self) -> None:
        swept = 0
        while not self._stop.is_set():
            pause = LATE
            try:
                for name in self.desks.workspaces():
                    client = self.desks.client(workspace=name)
                    client.reconcile()
                    if swept % 100 == 0:
                        rate_limits.sweep(client.desk)
                    now, due = client.desk.read(lambda r: (r.now, r.next_due()))
                    pause = min(pause, LATE if due is None else (due - now) / 1_000_000)
                swept += 1
            except YourturnError as error:
                log.warning("clockwork: %s", error)
            except Exception as bug:
                log.error("clockwork: a bug", exc_info=bug)
            self._sleep(pause)

    def _sleep(self, seconds: float) -> None:
        """Until something is due, or something changed that may be due sooner; never less than a moment."""
        ends = time.monotonic() + seconds
        self._stop.wait(SOON)
        while not self._stop.is_set() and (left := ends - time.monotonic()) > 0:
            try:
                if self.desks.store.wait(min(left, SOON)):
                    return
            except YourturnError:
                self._stop.wait(SOON)

    def quiet(self) -> None:
        """No more streams: who watches is let go. In the event loop."""
        self.closing = True
        self._stop.set()
        for hub in self._hubs.values():
            hub.close()

    def close(self) -> None:
        self._stop.set()
        for hub in self._hubs.values():
            hub.join()
        if self._thread is not None:
            self._thread.join(10)
        self.desks.close()

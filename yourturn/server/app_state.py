"""What the parts of a running server share: the desk pool, its address, the event broadcasts; and the reconcile thread."""

from __future__ import annotations

import os
import re
import socket
import threading
import time
from typing import Any

from ..core.errors import YourturnError
from ..desk import rate_limits
from .address import ServerAddress
from .broadcast import EventBroadcast, Renderer
from .desk_pool import DeskPool
from .errors import log

#: Seconds between two passes of the reconcile thread: at least, and at most.
MIN_PAUSE, MAX_PAUSE = 1.0, 30.0
#: Names this start of the server: host and time. Forked worker processes inherit it.
BOOT_ID = f"{re.sub('[^A-Za-z0-9-]', '-', socket.gethostname())[:40]}.{time.time_ns() // 1_000_000:x}{os.getpid():x}"


class AppState:
    def __init__(self, pool: DeskPool, address: ServerAddress, renderer: Renderer | None = None) -> None:
        self.pool = pool
        self.address = address
        self._renderer = renderer
        self._broadcasts: dict[str, EventBroadcast] = {}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.closing = False
        self.boot_id = BOOT_ID
        self.cache: dict[Any, Any] = {}  #: results that a surface computed and may reuse

    def broadcast(self, workspace: str) -> EventBroadcast:
        broadcast = self._broadcasts.get(workspace)
        if broadcast is None:
            broadcast = self._broadcasts[workspace] = EventBroadcast(self.pool.desk(workspace), self._renderer)
        return broadcast

    @property
    def watchers(self) -> int:
        return sum(broadcast.count for broadcast in self._broadcasts.values())

    # --- reconciling ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts the thread that applies expired leases, timeouts and dates. Several processes may run it at once."""
        self._thread = threading.Thread(target=self._reconcile, name="yourturn-reconcile", daemon=True)
        self._thread.start()

    def _reconcile(self) -> None:
        passes = 0
        while not self._stop.is_set():
            pause = MAX_PAUSE
            try:
                for workspace in self.pool.workspaces():
                    client = self.pool.client(workspace=workspace)
                    client.reconcile()
                    if passes % 100 == 0:
                        rate_limits.sweep(client.desk)
                    now, due = client.desk.read(lambda r: (r.now, r.next_due()))
                    pause = min(pause, MAX_PAUSE if due is None else (due - now) / 1_000_000)
                passes += 1
            except YourturnError as error:
                log.warning("reconcile: %s", error)
            except Exception as bug:
                log.error("reconcile: a bug", exc_info=bug)
            self._wait(pause)

    def _wait(self, seconds: float) -> None:
        """Waits until something is due or the database changed, which may make something due earlier."""
        ends = time.monotonic() + seconds
        self._stop.wait(MIN_PAUSE)
        while not self._stop.is_set() and (left := ends - time.monotonic()) > 0:
            try:
                if self.pool.store.wait(min(left, MIN_PAUSE)):
                    return
            except YourturnError:
                self._stop.wait(MIN_PAUSE)

    # --- stopping ---------------------------------------------------------------------------------------------------

    def end_streams(self) -> None:
        """Ends all event streams and accepts no new ones. Called in the event loop."""
        self.closing = True
        self._stop.set()
        for broadcast in self._broadcasts.values():
            broadcast.close()

    def close(self) -> None:
        self._stop.set()
        for broadcast in self._broadcasts.values():
            broadcast.join()
        if self._thread is not None:
            self._thread.join(10)
        self.pool.close()

"""The worker's row in the registry: written at its start, renewed with its heartbeats, removed at its end.

The row only informs people, so errors with it stop no work.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..core.errors import YourturnError
from ..desk.worker_registry import RENEW

if TYPE_CHECKING:
    from ..client import Client


class Registration:
    def __init__(self, desk: Client, name: str, interval: float, **takes: Any) -> None:
        self._desk, self._name, self._takes = desk, name, takes
        self._every = max(1, round(RENEW / 1_000_000 / interval))  #: heartbeats between two renewals
        self._heartbeats = 0

    def begin(self) -> None:
        with suppress(YourturnError):
            self._desk.register_worker(self._name, **self._takes)

    def renew(self) -> None:
        """Called with each heartbeat. Registers again if the row is gone, after a restore or a long network failure."""
        self._heartbeats += 1
        if self._heartbeats % self._every:
            return
        with suppress(YourturnError):
            if not self._desk.renew_worker(self._name):
                self.begin()

    def end(self) -> None:
        with suppress(YourturnError):
            self._desk.remove_worker(self._name)

"""The row that says that this worker runs: written when it starts, renewed beside its heartbeats, removed when it ends.

Nothing depends on it but what people are told, so trouble with it stops no work.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..core.errors import YourturnError
from ..desk.worker_registry import RENEW

if TYPE_CHECKING:
    from ..client import Client


class Presence:
    def __init__(self, desk: Client, name: str, beat: float, **takes: Any) -> None:
        self._desk, self._name, self._takes = desk, name, takes
        self._every = max(1, round(RENEW / 1_000_000 / beat))  #: beats between two renewals
        self._beats = 0

    def begin(self) -> None:
        with suppress(YourturnError):
            self._desk.register_worker(self._name, **self._takes)

    def beat(self) -> None:
        """After a restore, or a long time without a network, its row may be gone."""
        self._beats += 1
        if self._beats % self._every:
            return
        with suppress(YourturnError):
            if not self._desk.renew_worker(self._name):
                self.begin()

    def end(self) -> None:
        with suppress(YourturnError):
            self._desk.remove_worker(self._name)

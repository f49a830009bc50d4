"""A fake clock, and a desk that exists as long as the test."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from ..client import Client
from ..config import connect, init


class FakeClock:
    """Microseconds since 1970. The time changes only by `advance`.

    >>> clock = FakeClock()
    >>> clock.advance(hours=25)
    """

    def __init__(self, start: int | None = None) -> None:
        self.micros = start if start is not None else time.time_ns() // 1000

    def __call__(self) -> int:
        return self.micros

    def advance(self, **units: float) -> int:
        """advance(minutes=5), advance(days=2): the keywords of timedelta."""
        self.micros += round(timedelta(**units).total_seconds() * 1_000_000)
        return self.micros


@contextmanager
def temporary_desk(
    db: str | None = None, *, as_: str = "human:ana", key: str = "PROJ", clock: FakeClock | None = None
) -> Iterator[Client]:
    """A new desk, in SQLite in a temporary folder unless you name a database; removed afterwards.

    >>> with temporary_desk() as desk:
    ...     desk.create("Add login")["key"]
    'PROJ-1'
    """
    with tempfile.TemporaryDirectory(prefix="yourturn-") as folder:
        address = db or os.path.join(folder, "yourturn.db")  # noqa: PTH118
        init(address, key, None, {"USER": "ana"})[0].close()
        client = connect(address, as_=as_, project=key, clock=clock, env={})
        try:
            yield client
        finally:
            client.close()

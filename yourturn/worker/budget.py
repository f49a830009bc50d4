"""Limits of what a worker may spend: tasks, turns of agents, time, tokens, money. A worker that has spent one ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Budget:
    tasks: int | None = None
    iterations: int | None = None
    seconds: float | None = None
    tokens: int | None = None
    cost: float | None = None
    clock: Callable[[], float] = time.monotonic
    spent: dict[str, float] = field(default_factory=lambda: {"tasks": 0, "iterations": 0, "tokens": 0, "cost": 0.0})

    def __post_init__(self) -> None:
        self._began = self.clock()
        self._lock = threading.Lock()

    def spend(self, **what: float) -> None:
        with self._lock:
            for name, amount in what.items():
                self.spent[name] += amount

    def over(self, taking: bool = True) -> str:
        """The limit that is reached, in words, or ''. Without `taking` the limit on tasks does not count: the last may end."""
        for name, words in _WORDS.items():
            if name == "tasks" and not taking:
                continue
            limit, spent = getattr(self, name), self.spent[name]
            if limit is not None and spent >= limit:
                return words.format(spent=spent, limit=limit, dear=dollars(spent), most=dollars(limit))
        return self.late() and f"the time is over ({self.seconds:g} s)"

    def late(self) -> str:
        """The limit on time also ends running sessions."""
        return "late" if self.seconds is not None and self.clock() - self._began >= self.seconds else ""

    def left(self) -> float | None:
        return None if self.seconds is None else max(0.0, self.seconds - (self.clock() - self._began))


_WORDS = {
    "tasks": "it was to take {limit:g} and no more",
    "iterations": "agents had {limit:g} turns",
    "tokens": "{spent:,.0f} of {limit:,.0f} tokens are spent",
    "cost": "{dear} of {most} are spent",
}


def dollars(amount: float) -> str:
    """$2.50, or $0.0042 for small amounts."""
    return f"${amount:.2f}" if amount >= 0.1 or amount == 0 else f"${amount:.4f}"

"""A measured figure, and how two things are compared that take turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

#: Does one thing and says how many commits that were.
Step = Callable[[], int]


class Figure(NamedTuple):
    database: str
    what: str
    value: str  #: with its unit
    ratio: str = ""  #: to what it was compared with, and how far single pairs were from it
    bound: str = ""
    held: bool | None = None  #: None where nothing was promised
    compared: str = ""

    @property
    def verdict(self) -> str:
        return "" if self.held is None else "holds" if self.held else "missed"


class Pairs(NamedTuple):
    """Ratios of neighbouring slices."""

    ratios: tuple[float, ...]
    best: float  #: the fastest slice of the one to the fastest of the other: both undisturbed

    @property
    def median(self) -> float:
        return statistics.median(self.ratios)

    def scaled(self, factor: float) -> Pairs:
        return Pairs(tuple(ratio * factor for ratio in self.ratios), self.best * factor)

    def percent(self) -> str:
        return f"{self.median:.0%} ({min(self.ratios):.0%}–{max(self.ratios):.0%}; best {self.best:.0%})"

    def times(self) -> str:
        return f"{self.median:.2f} × ({min(self.ratios):.2f}–{max(self.ratios):.2f}; best {self.best:.2f})"


class Rates(NamedTuple):
    """Rates of things that took turns: one list per name, one number per round."""

    found: dict[str, list[float]]

    def median(self, name: str) -> float:
        return statistics.median(self.found[name])

    def pairs(self, ours: str, other: str) -> Pairs:
        a, b = self.found[ours], self.found[other]
        return Pairs(tuple(x / y for x, y in zip(a, b, strict=True)), max(a) / max(b))


def rate(step: Step, seconds: float) -> float:
    """Commits per second in one slice."""
    count, begun = 0, time.perf_counter()
    ends = begun + seconds
    while (now := time.perf_counter()) < ends or not count:
        count += step()
    return count / (now - begun)


def take_turns(slices: dict[str, Callable[[], float]], rounds: int) -> Rates:
    """Each in turn, `rounds` times; every other round backwards, so that neither always goes first. The first warms up."""
    found: dict[str, list[float]] = {name: [] for name in slices}
    for number in range(rounds + 1):
        for name in list(slices)[:: -1 if number % 2 else 1]:
            measured = slices[name]()
            if number:
                found[name].append(measured)
    return Rates(found)

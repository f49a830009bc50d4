"""Measured figures, and the comparison of two programs that alternate."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

#: Does one piece of work and returns its number of commits.
Step = Callable[[], int]


class Figure(NamedTuple):
    database: str
    what: str
    value: str  #: with its unit
    ratio: str = ""  #: to the compared program, with the range of the pairs
    bound: str = ""
    held: bool | None = None  #: None without a bound
    compared: str = ""

    @property
    def verdict(self) -> str:
        return "" if self.held is None else "holds" if self.held else "missed"


class Pairs(NamedTuple):
    """Ratios of neighbouring slices."""

    ratios: tuple[float, ...]
    best: float  #: the fastest slice of each

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
    """Rates of alternating programs: one list per name, one number per round."""

    by_name: dict[str, list[float]]

    def median(self, name: str) -> float:
        return statistics.median(self.by_name[name])

    def pairs(self, ours: str, other: str) -> Pairs:
        a, b = self.by_name[ours], self.by_name[other]
        return Pairs(tuple(x / y for x, y in zip(a, b, strict=True)), max(a) / max(b))


def rate(step: Step, seconds: float) -> float:
    """Commits per second in one slice."""
    count, begun = 0, time.perf_counter()
    ends = begun + seconds
    while (now := time.perf_counter()) < ends or not count:
        count += step()
    return count / (now - begun)


def take_turns(slices: dict[str, Callable[[], float]], rounds: int) -> Rates:
    """Run all slices in turn, `rounds` times, every other round in reverse order. The first round only warms up."""
    by_name: dict[str, list[float]] = {name: [] for name in slices}
    for number in range(rounds + 1):
        for name in list(slices)[:: -1 if number % 2 else 1]:
            measured = slices[name]()
            if number:
                by_name[name].append(measured)
    return Rates(by_name)

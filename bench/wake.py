"""(d) How soon a watcher hears of a commit, and what waiting costs.

A process watches; another one creates tasks, at random moments so that no rhythm helps. The time is measured from when the
writer was told that its task is committed until the watcher has the event in its hands; it is below zero when the watcher
was faster than the reply. Between the commits the same process wakes another one through a pipe: so long this machine takes
just now to let a process run. Then one watches where nothing happens: the CPU that its process uses.
"""

from __future__ import annotations

import random
import statistics
import time

from .crew import Crew
from .figure import Figure
from .place import NAMES, Place, open_desk

_SOON = {"sqlite": 20.0, "postgres": 5.0}
_IDLE = 0.01


def run(place: Place) -> list[Figure]:
    found: list[Figure] = []
    for dialect in place.dialects:
        found += [_woken(place, dialect), _idle(place, dialect)]
    return found


def _woken(place: Place, dialect: str) -> Figure:
    count = 30 if place.quick else 400
    address = place.new_desk(dialect)
    acknowledged: dict[int, float] = {}
    bare = []
    with Crew("watch", address) as crew, Crew("echo", address) as echo, open_desk(address, "agent:coder") as writer:
        crew.wait(), echo.wait()
        crew.start(after=writer.desk.cursor(), count=count)
        crew.answers()
        for _ in range(count):
            time.sleep(random.uniform(0.005, 0.03))
            rung = time.monotonic()
            bare.append((echo.go()[0]["at"] - rung) * 1000)
            time.sleep(random.uniform(0.005, 0.03))
            task = writer.do("create", title="Something new", project="PROJ").task
            acknowledged[task] = time.monotonic()
        seen = dict(crew.answers()[0]["seen"])
    took = sorted((seen[task] - at) * 1000 for task, at in acknowledged.items())
    (median, late), (pipe, late_pipe) = _told(took), _told(sorted(bare))
    soon = _SOON[dialect]
    return Figure(
        NAMES[dialect], f"a watcher wakes, {count} times", f"median {median:.1f} ms, 95 % within {late:.1f} ms", "",
        f"within {soon:.0f} ms", late <= soon,
        f"slowest {took[-1]:.1f} ms; a process woken through a pipe: median {pipe:.1f} ms, 95 % within {late_pipe:.1f} ms",
    )  # fmt: skip


def _told(took: list[float]) -> tuple[float, float]:
    return statistics.median(took), took[int(len(took) * 0.95)]


def _idle(place: Place, dialect: str) -> Figure:
    seconds = 2 if place.quick else 20
    with Crew("idle", place.new_desk(dialect)) as crew:
        crew.wait()
        said = crew.go(seconds=seconds)[0]
    part = said["cpu"] / said["wall"]
    return Figure(
        NAMES[dialect], f"an idle watcher, {seconds} s", f"{part:.2%} of a core", "", f"< {_IDLE:.0%}", part < _IDLE,
        "CPU time of the watching process",
    )  # fmt: skip

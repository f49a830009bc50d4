"""(d) How soon a watcher receives a commit, and the cost of waiting.

A process watches; another one creates tasks, at random moments. The time counts from the reply to the writer until the watcher
has the event; it is negative if the watcher was faster than the reply. Between the commits the same process wakes another one
through a pipe, to measure how soon this machine lets a process run. Then the CPU time of a watcher on an unchanged desk.
"""

from __future__ import annotations

import random
import statistics
import time

from .environment import NAMES, Environment, open_desk
from .figure import Figure
from .process_pool import ProcessPool

_SOON = {"sqlite": 20.0, "postgres": 5.0}
_IDLE = 0.01


def run(environment: Environment) -> list[Figure]:
    figures: list[Figure] = []
    for dialect in environment.dialects:
        figures += [_wake_up(environment, dialect), _idle(environment, dialect)]
    return figures


def _wake_up(environment: Environment, dialect: str) -> Figure:
    count = 30 if environment.quick else 400
    address = environment.new_desk(dialect)
    acknowledged: dict[int, float] = {}
    bare = []
    with ProcessPool("watch", address) as pool, ProcessPool("echo", address) as echo, open_desk(address, "agent:coder") as writer:
        pool.wait()
        echo.wait()
        pool.start(after=writer.desk.cursor(), count=count)
        pool.answers()
        for _ in range(count):
            time.sleep(random.uniform(0.005, 0.03))
            rung = time.monotonic()
            bare.append((echo.go()[0]["at"] - rung) * 1000)
            time.sleep(random.uniform(0.005, 0.03))
            task = writer.do("create", title="Something new", project="PROJ").task
            acknowledged[task] = time.monotonic()
        seen = dict(pool.answers()[0]["seen"])
    took = sorted((seen[task] - at) * 1000 for task, at in acknowledged.items())
    (median, late), (pipe, late_pipe) = _quantiles(took), _quantiles(sorted(bare))
    soon = _SOON[dialect]
    return Figure(
        NAMES[dialect], f"a watcher wakes, {count} times", f"median {median:.1f} ms, 95 % within {late:.1f} ms", "",
        f"within {soon:.0f} ms", late <= soon,
        f"slowest {took[-1]:.1f} ms; a process woken through a pipe: median {pipe:.1f} ms, 95 % within {late_pipe:.1f} ms",
    )  # fmt: skip


def _quantiles(took: list[float]) -> tuple[float, float]:
    return statistics.median(took), took[int(len(took) * 0.95)]


def _idle(environment: Environment, dialect: str) -> Figure:
    seconds = 2 if environment.quick else 20
    with ProcessPool("idle", environment.new_desk(dialect)) as pool:
        pool.wait()
        reply = pool.go(seconds=seconds)[0]
    part = reply["cpu"] / reply["wall"]
    return Figure(
        NAMES[dialect], f"an idle watcher, {seconds} s", f"{part:.2%} of a core", "", f"< {_IDLE:.0%}", part < _IDLE,
        "CPU time of the watching process",
    )  # fmt: skip

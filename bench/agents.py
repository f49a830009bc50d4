"""(f) What the worker costs: a task whose agent does nothing, from its claim to the next, against the agent alone.

The agent is `/bin/sh -c` with one `echo` that says COMPLETE. Alone it is started on its leash, listened to and ended, as the
worker does it; what the worker adds is the claim, the folder, the brief, the seat that is remembered before the start, the
look at the desk afterwards, the log and the completion. There is no repository: what git takes is git's. They take turns.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

from yourturn.worker.agents import exec_agent, make
from yourturn.worker.agents.base import Run
from yourturn.worker.agents.process import perform
from yourturn.worker.progress import Progress
from yourturn.worker.worker import Worker

from .figure import Figure
from .place import NAMES, Place, open_desk

TASKS = 20
LIMIT = 30.0
AGENT = exec_agent("echo '<promise>COMPLETE</promise>'", "coder")


def alone(folder: Path, count: int) -> float:
    """Milliseconds per run of the agent by itself."""
    begun = time.perf_counter()
    for _ in range(count):
        run = Run("PROJ-1", AGENT, "The brief.\n", str(folder), dict(os.environ), log=str(folder / "alone.log"))
        assert "COMPLETE" in perform(make(AGENT), run).text
    return (time.perf_counter() - begun) * 1000 / count


def worked(address: str, folder: Path, count: int) -> float:
    """Milliseconds per task of a worker that has `count` of them to do."""
    with open_desk(address) as desk, Path(os.devnull).open("w") as out:
        for n in range(count):
            desk.create(f"Task number {n}")
        worker = Worker(
            desk, {"coder": AGENT}, Progress(out), address, root=folder, logs=folder / "logs", default="coder", drain=True
        )
        begun = time.perf_counter()
        worker.run()
        took = (time.perf_counter() - begun) * 1000
        assert [result.what for _, result in worker.results] == ["done"] * count, worker.results
    return took / count


def run(place: Place) -> list[Figure]:
    rounds, count = (1, 3) if place.quick else (7, TASKS)
    found = []
    for dialect in place.dialects:
        address = place.new_desk(dialect)
        bare, whole = [], []
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            for n in range(rounds + 1):
                one, other = alone(Path(folder), count), worked(address, Path(folder), count)
                if n:
                    bare.append(one)
                    whole.append(other)
        over = [b - a for a, b in zip(bare, whole, strict=True)]
        median = statistics.median(over)
        spread = f"{min(over):.1f}–{max(over):.1f}"
        found.append(
            Figure(
                NAMES[dialect], f"the worker, {rounds} × {count} tasks", f"{median:.1f} ms each ({spread})", "",
                f"< {LIMIT:.0f} ms", median < LIMIT, f"the agent alone {statistics.median(bare):.1f} ms",
            )
        )  # fmt: skip
    return found

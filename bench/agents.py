"""(f) The worker's overhead: a task whose agent does nothing, from one claim to the next, against the agent alone.

The agent is `/bin/sh -c` with one `echo` of COMPLETE. The agent alone is started and read by the worker's own process code. The
worker adds the claim, the folder, the brief, the record of the session, the check of the desk afterwards, the log and the
completion. There is no git repository. Both alternate.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

from yourturn.worker.agents import exec_agent, make
from yourturn.worker.agents.base import AgentRun
from yourturn.worker.agents.process import perform
from yourturn.worker.progress import ProgressDisplay
from yourturn.worker.worker import Worker

from .environment import NAMES, Environment, open_desk
from .figure import Figure

TASKS = 20
LIMIT = 30.0
AGENT = exec_agent("echo '<promise>COMPLETE</promise>'", "coder")


def alone(folder: Path, count: int) -> float:
    """Milliseconds per run of the agent by itself."""
    begun = time.perf_counter()
    for _ in range(count):
        run = AgentRun("PROJ-1", AGENT, "The brief.\n", str(folder), dict(os.environ), log=str(folder / "alone.log"))
        assert "COMPLETE" in perform(make(AGENT), run).text
    return (time.perf_counter() - begun) * 1000 / count


def worked(address: str, folder: Path, count: int) -> float:
    """Milliseconds per task of a worker that has `count` of them to do."""
    with open_desk(address) as desk, Path(os.devnull).open("w") as out:
        for n in range(count):
            desk.create(f"Task number {n}")
        worker = Worker(
            desk, {"coder": AGENT}, ProgressDisplay(out), address, root=folder, logs=folder / "logs", default="coder", drain=True
        )
        begun = time.perf_counter()
        worker.run()
        took = (time.perf_counter() - begun) * 1000
        assert [result.what for _, result in worker.results] == ["done"] * count, worker.results
    return took / count


def run(environment: Environment) -> list[Figure]:
    rounds, count = (1, 3) if environment.quick else (7, TASKS)
    figures = []
    for dialect in environment.dialects:
        address = environment.new_desk(dialect)
        bare, whole = [], []
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            for n in range(rounds + 1):
                agent_ms, worker_ms = alone(Path(folder), count), worked(address, Path(folder), count)
                if n:
                    bare.append(agent_ms)
                    whole.append(worker_ms)
        over = [b - a for a, b in zip(bare, whole, strict=True)]
        median = statistics.median(over)
        spread = f"{min(over):.1f}–{max(over):.1f}"
        figures.append(
            Figure(
                NAMES[dialect], f"the worker, {rounds} × {count} tasks", f"{median:.1f} ms each ({spread})", "",
                f"< {LIMIT:.0f} ms", median < LIMIT, f"the agent alone {statistics.median(bare):.1f} ms",
            )
        )  # fmt: skip
    return figures

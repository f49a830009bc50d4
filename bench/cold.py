"""What a cold command costs: `turn ready --json` on a desk with 1000 tasks, in CPU time, against the floor of the
same interpreter importing sqlite3 and json. Agents and hooks call `turn` all day; this number is what they pay.

    python bench/cold.py [RUNS]

Runs take turns, so that a busy moment hits all alike; the median counts. Exits 1 when the ratio is above 4.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from yourturn.config import init

TASKS = 1000
LIMIT = 4.0

Command = list[str]


def cpu(command: Command, env: dict[str, str]) -> float:
    """User and system seconds of one child."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def measure(commands: dict[str, Command], env: dict[str, str], runs: int) -> dict[str, float]:
    """Median milliseconds of each, the runs interleaved; the first round only warms the caches."""
    spent: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(runs + 1):
        for name, command in commands.items():
            seconds = cpu(command, env)
            if turn:
                spent[name].append(seconds * 1000)
    return {name: statistics.median(found) for name, found in spent.items()}


def fill(db: str) -> None:
    """The worst case: everything is ready, so everything that the command shows has to be read and written out."""
    desk = init(db, "PROJ", None, {"USER": "ana"})[0]
    with desk:
        for n in range(TASKS):
            desk.create(f"Task number {n}", priority=n % 5, description="What there is to do, in a few words. " * 3)


def main(argv: list[str]) -> int:
    runs = int(argv[0]) if argv else 15
    turn = Path(sys.executable).parent / "turn"
    if not turn.exists():
        print(f"There is no {turn}: run make setup first.", file=sys.stderr)
        return 2
    python = [sys.executable, "-c"]
    commands = {
        "floor": [*python, "import sqlite3, json"],
        "turn": [str(turn), "ready", "--json"],
        "bare": [*python, "pass"],
        "argparse": [*python, "import argparse"],
    }
    if importlib.util.find_spec("click"):
        commands["click"] = [*python, "import click"]
    with tempfile.TemporaryDirectory(prefix="yourturn-bench-") as folder:
        db = str(Path(folder) / "yourturn.db")
        print(f"Filling a desk with {TASKS} tasks …", flush=True)
        fill(db)
        env = {name: value for name, value in os.environ.items() if not name.startswith("YOURTURN_")}
        found = measure(commands, {**env, "YOURTURN_DB": db}, runs)
    ratio = found["turn"] / found["floor"]
    print(f"Python {sys.version.split()[0]}, CPU time, median of {runs} interleaved runs")
    print(f"  turn ready --json            {found['turn']:7.1f} ms")
    print(f"  python: import sqlite3, json {found['floor']:7.1f} ms")
    print(f"  ratio                        {ratio:7.2f}    (at most {LIMIT})")
    print(f"  import argparse alone        {found['argparse'] - found['bare']:7.1f} ms over an empty program")
    if "click" in found:
        print(f"  import click alone           {found['click'] - found['bare']:7.1f} ms over an empty program")
    return 0 if ratio <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""(e) What a cold command costs: `turn ready --json` on a desk with 1000 tasks, in CPU time, against the floor of the
same interpreter importing sqlite3 and json. Agents and hooks call `turn` all day; this number is what they pay.

Runs take turns, so that a busy moment hits all alike; the median counts.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

from yourturn.config import init

from .figure import Figure
from .place import Place

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


def run(place: Place) -> list[Figure]:
    runs = 3 if place.quick else 15
    turn = Path(sys.executable).parent / "turn"
    if not turn.exists():
        raise SystemExit(f"There is no {turn}: run make setup first.")
    python = [sys.executable, "-c"]
    commands = {
        "floor": [*python, "import sqlite3, json"],
        "turn": [str(turn), "ready", "--json"],
        "bare": [*python, "pass"],
        "argparse": [*python, "import argparse"],
    }
    if importlib.util.find_spec("click"):
        commands["click"] = [*python, "import click"]
    db = place.new("sqlite")
    fill(db)
    env = {name: value for name, value in os.environ.items() if not name.startswith("YOURTURN_")}
    found = measure(commands, {**env, "YOURTURN_DB": db}, runs)
    ratio = found["turn"] / found["floor"]
    figures = [
        Figure(
            "SQLite", f"`turn ready --json`, {TASKS} tasks", f"{found['turn']:.1f} ms of CPU", f"{ratio:.2f} ×",
            f"≤ {LIMIT:.0f} ×", ratio <= LIMIT, f"python: import sqlite3, json, {found['floor']:.1f} ms",
        )
    ]  # fmt: skip
    for name in ("argparse", "click"):
        if name in found:
            over = f"{found[name] - found['bare']:.1f} ms of CPU"
            figures.append(Figure("", f"import {name} alone", over, compared="over an empty program"))
    return figures

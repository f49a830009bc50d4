"""(e) CPU time of a cold command, for agents and hooks that call `turn` all day.

On SQLite: `turn ready --json` on a desk with 1000 tasks, and `turn hook claude` before a tool call, against the same interpreter
importing sqlite3 and json. On PostgreSQL: `turn ready --json` on an empty desk, against importing psycopg and connecting.

Runs alternate, so that load hits all of them alike; the median counts.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

from yourturn.config import init

from .environment import Environment
from .figure import Figure

TASKS = 1000
LIMIT, CONNECTED = 4.0, 1.3

Command = list[str]


#: A tool call that needs permission; the first run asks, the others find its question.
CALL = {
    "session_id": "s", "tool_use_id": "c", "cwd": "/shop", "hook_event_name": "PreToolUse", "tool_name": "Bash",
    "tool_input": {"command": "git push"},
}  # fmt: skip


def cpu(command: Command, env: dict[str, str]) -> float:
    """User and system seconds of one child."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=env, input=json.dumps(CALL).encode(), stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def measure(commands: dict[str, Command], env: dict[str, str], runs: int) -> dict[str, float]:
    """Median milliseconds of each command; the runs alternate, and the first round only warms the caches."""
    spent: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(runs + 1):
        for name, command in commands.items():
            seconds = cpu(command, env)
            if turn:
                spent[name].append(seconds * 1000)
    return {name: statistics.median(times) for name, times in spent.items()}


def fill(db: str) -> None:
    """The worst case: all tasks are ready, so all of them are read and printed."""
    desk = init(db, "PROJ", None, {"USER": "ana"})[0]
    with desk:
        for n in range(TASKS):
            desk.create(f"Task number {n}", priority=n % 5, description="What there is to do, in a few words. " * 3)


def run(environment: Environment) -> list[Figure]:
    runs = 3 if environment.quick else 15
    turn = Path(sys.executable).parent / "turn"
    if not turn.exists():
        raise SystemExit(f"There is no {turn}: run make setup first.")
    python = [sys.executable, "-c"]
    commands = {
        "floor": [*python, "import sqlite3, json"],
        "turn": [str(turn), "ready", "--json"],
        "hook": [str(turn), "hook", "claude"],
        "bare": [*python, "pass"],
        "argparse": [*python, "import argparse"],
    }
    if importlib.util.find_spec("click"):
        commands["click"] = [*python, "import click"]
    db = environment.new("sqlite")
    fill(db)
    unset = ("YOURTURN_", "PYTHONDONTWRITEBYTECODE")  # the first round writes the bytecode
    env = {name: value for name, value in os.environ.items() if not name.startswith(unset)}
    env |= {"YOURTURN_DB": db, "YOURTURN_TASK": "PROJ-1", "YOURTURN_GATED": '["Bash"]', "YOURTURN_ASK_WAIT": "0"}
    medians = measure(commands, env, runs)
    floor = f"python: import sqlite3, json, {medians['floor']:.1f} ms"
    figures = []
    shown = {"turn": f"`turn ready --json`, {TASKS} tasks", "hook": "`turn hook claude`, a call that waits for a person"}
    for name, what in shown.items():
        ratio = medians[name] / medians["floor"]
        cost, limit = f"{medians[name]:.1f} ms of CPU", f"≤ {LIMIT:.0f} ×"
        figures.append(Figure("SQLite", what, cost, f"{ratio:.2f} ×", limit, ratio <= LIMIT, floor))
    if "postgres" in environment.dialects:
        figures.append(_connected(environment, str(turn), env, runs))
    for name in ("argparse", "click"):
        if name in medians:
            over = f"{medians[name] - medians['bare']:.1f} ms of CPU"
            figures.append(Figure("", f"import {name} alone", over, compared="over an empty program"))
    return figures


def _connected(environment: Environment, turn: str, env: dict[str, str], runs: int) -> Figure:
    address = environment.new_desk("postgres")
    commands = {
        "floor": [sys.executable, "-c", f"import psycopg; psycopg.connect({address!r}).close()"],
        "turn": [turn, "ready", "--json"],
    }
    medians = measure(commands, env | {"YOURTURN_DB": address}, runs)
    ratio = medians["turn"] / medians["floor"]
    return Figure(
        "PostgreSQL", "`turn ready --json`", f"{medians['turn']:.1f} ms of CPU", f"{ratio:.2f} ×", f"≤ {CONNECTED} ×",
        ratio <= CONNECTED, f"python: import psycopg and connect, {medians['floor']:.1f} ms",
    )  # fmt: skip

"""(g) Workflows: the cost of a waiting run, how soon it continues, and the cost of its journal.

Many runs wait for a person; each is only rows. An idle worker is measured without them and with all of them. A fresh process,
from the start of Python, answers the question of a random run, claims it and reaches the next line of its script. An idle worker
is notified by the answer's commit; the time from the reply to the answer until the script's next line counts. Then the journal:
the replay of a thousand steps, and the cost of a recorded step against bare commits.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from . import bare, runner
from .environment import NAMES, Environment, open_desk
from .figure import Figure, take_turns
from .fill import Bulk, waiting_runs
from .process_pool import ProcessPool

SMALL, LARGE, QUICK = 10_000, 1_000_000, 2_000
_STEPS = 1_000
_FRESH, _SOON, _REPLAY, _SAME = 200.0, 50.0, 50.0, 1.5
_MEMORY = 1.0  #: MB, for all waiting runs
_ROOT = Path(__file__).parent.parent


def run(environment: Environment) -> list[Figure]:
    figures: list[Figure] = []
    for dialect in environment.dialects:
        figures += _waiting(environment, dialect) + _journal(environment, dialect)
    return figures


def _folder(environment: Environment, name: str) -> Path:
    folder = environment.folder / name
    folder.mkdir(exist_ok=True)
    (folder / runner.FILE).write_text(runner.SCRIPT)
    return folder


# --- waiting runs -------------------------------------------------------------------------------------------------------


def _waiting(environment: Environment, dialect: str) -> list[Figure]:
    few, many, times = (QUICK // 10, QUICK, 3) if environment.quick else (SMALL, LARGE, 25)
    folder = _folder(environment, f"runs-{dialect}")
    desks = {}
    for count in (few, many):
        desks[count] = environment.new_desk(dialect)
        took = waiting_runs(desks[count], count, folder)
        environment.report(f"{NAMES[dialect]}: {count:,} waiting runs, filled in {took:.0f} s")
    keys = {count: _keys(address) for count, address in desks.items()}
    figures = [_memory(environment, dialect, few, desks[few], folder)]
    spent: dict[int, list[dict[str, float]]] = {count: [] for count in desks}
    for number in range(times + 1):  # they alternate, and the first round warms the caches
        for count, address in desks.items():
            one = _fresh(address, keys[count].pop(random.randrange(len(keys[count]))), folder)
            if number:
                spent[count].append(one)
    figures += [_resumed(dialect, few, spent[few], _floor(desks[few], times)), _same(dialect, few, many, spent)]
    figures.append(_woken(dialect, few, desks[few], keys[few], folder, 10 if environment.quick else 200))
    return figures


def _keys(address: str) -> list[str]:
    bulk = Bulk(address)
    keys = [row["key"] for row in bulk.rows("SELECT key FROM tasks WHERE state = 'human'")]
    bulk.close()
    return keys


def _memory(environment: Environment, dialect: str, count: int, full: str, folder: Path) -> Figure:
    """The memory of an idle worker."""
    memory = []
    for address in (environment.new_desk(dialect), full):
        with ProcessPool("runner", address) as pool:
            pool.wait()
            memory.append(pool.go(folder=str(folder), idle=2.0)[0]["rss"] / 2**20)
    empty, with_them = memory
    over = with_them - empty
    return Figure(
        NAMES[dialect], f"an idle worker, {count:,} runs wait", f"{with_them:.1f} MB", "",
        f"none per run (< {_MEMORY:.0f} MB more)", over < _MEMORY, f"without any, {empty:.1f} MB",
    )  # fmt: skip


def _fresh(address: str, key: str, folder: Path) -> dict[str, float]:
    """Milliseconds of a fresh process, by phase."""
    begun = time.monotonic()
    command = [sys.executable, "-m", "bench.runner", address, key, str(folder)]
    times = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, cwd=_ROOT).stdout)
    at = [begun, *(times[name] for name in ("begun", "connected", "answered", "reached"))]
    parts = [(later - before) * 1000 for before, later in pairwise(at)]
    return {**dict(zip(("start", "connect", "answer", "resume"), parts, strict=True)), "all": (at[-1] - at[0]) * 1000}


def _floor(address: str, times: int) -> str:
    """The time of a fresh process that only imports psycopg and connects."""
    if "://" not in address:
        return ""
    took = []
    for _ in range(times):
        begun = time.monotonic()
        subprocess.run([sys.executable, "-c", f"import psycopg; psycopg.connect({address!r})"], check=True)
        took.append((time.monotonic() - begun) * 1000)
    return f"; only `import psycopg` and connect, {statistics.median(took):.0f} ms"


def _medians(spent: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(one[name] for one in spent) for name in spent[0]}


def _resumed(dialect: str, count: int, spent: list[dict[str, float]], floor: str) -> Figure:
    m = _medians(spent)
    return Figure(
        NAMES[dialect], f"a fresh process answers and resumes one of {count:,}", f"{m['all']:.0f} ms", "", f"< {_FRESH:.0f} ms",
        m["all"] < _FRESH,
        f"Python's start {m['start']:.0f}, import and connect {m['connect']:.0f}, answer {m['answer']:.1f}, "
        f"claim and replay {m['resume']:.1f} ms; fastest {min(one['all'] for one in spent):.0f} ms{floor}",
    )  # fmt: skip


def _same(dialect: str, few: int, many: int, spent: dict[int, list[dict[str, float]]]) -> Figure:
    """Without the start of Python, which would hide a difference."""
    small, large = (statistics.median(one["answer"] + one["resume"] for one in spent[count]) for count in (few, many))
    whole = _medians(spent[many])["all"]
    ratio = large / small
    return Figure(
        NAMES[dialect], f"answer and resume, among {many:,}", f"{large:.1f} ms", f"{ratio:.2f} ×", f"same (≤ {_SAME} ×)",
        ratio <= _SAME,
        f"among {few:,}, {small:.1f} ms; with the start of Python {whole:.0f} ms",
    )  # fmt: skip


def _woken(dialect: str, count: int, address: str, keys: list[str], folder: Path, times: int) -> Figure:
    took = []
    with _at_work(address, folder) as reached, open_desk(address) as ana:
        for number, key in enumerate(random.sample(keys, times + 3)):
            time.sleep(random.uniform(0.05, 0.15))
            ana.approve(key)
            acknowledged = time.monotonic()
            took.append((reached(number) - acknowledged) * 1000)
    took = sorted(took[3:])
    median = statistics.median(took)
    return Figure(
        NAMES[dialect], f"answer → the script's next line, {times} times, {count:,} wait",
        f"median {median:.1f} ms, 95 % within {took[int(len(took) * 0.95)]:.1f} ms", "", f"median < {_SOON:.0f} ms",
        median < _SOON, "`turn work`, idle, notified by the commit",
    )  # fmt: skip


@contextmanager
def _at_work(address: str, folder: Path) -> Iterator[Callable[[int], float]]:
    """A real worker. Yields a function that returns the time at which its scripts reached the n-th line after a pause."""
    reached_file = folder / "lines"
    reached_file.touch()
    env = {name: value for name, value in os.environ.items() if not name.startswith("YOURTURN_")}
    env |= {"YOURTURN_DB": address, "BENCH_LINES": str(reached_file), "PYTHONPATH": str(_ROOT)}
    command = [str(Path(sys.executable).parent / "turn"), "work", "--exec", "true"]
    worker = subprocess.Popen(command, env=env, cwd=folder, stdout=subprocess.DEVNULL)

    def reached(number: int) -> float:
        ends = time.monotonic() + 60
        while len(lines := reached_file.read_text().split("\n")) < number + 2:
            if worker.poll() is not None or time.monotonic() > ends:
                raise RuntimeError("the worker does not resume a run")
            time.sleep(0.001)
        return float(lines[number])

    try:
        yield reached
    finally:
        worker.terminate()
        worker.wait(30)
        reached_file.unlink()


# --- the journal ----------------------------------------------------------------------------------------------------------


def _journal(environment: Environment, dialect: str) -> list[Figure]:
    steps, times, rounds = (100, 5, 1) if environment.quick else (_STEPS, 40, 9)
    address, folder = environment.new_desk(dialect), _folder(environment, f"journal-{dialect}")
    update = bare.update(address)

    def recorded() -> float:
        begun = time.perf_counter()
        runner.begin(desk, folder, steps // 5)
        return steps // 5 / (time.perf_counter() - begun)

    def commits() -> float:
        begun = time.perf_counter()
        count = sum(update() for _ in range(steps // 5))
        return count / (time.perf_counter() - begun)

    with open_desk(address) as desk:
        key = runner.begin(desk, folder, steps)
        replay, whole = [], []
        for number in range(times + 3):
            desk.approve(key)
            begun = time.monotonic()
            claimed = _replayed(desk, folder)
            if number >= 3:
                replay.append((runner.lines[-1] - claimed) * 1000)
                whole.append((runner.lines[-1] - begun) * 1000)
        rates = take_turns({"ours": recorded, "bare": commits}, rounds)
    median, pairs = statistics.median(replay), rates.pairs("ours", "bare")
    return [
        Figure(
            NAMES[dialect], f"replay {steps:,} steps", f"{median:.1f} ms", "", f"< {_REPLAY:.0f} ms", median < _REPLAY,
            f"fastest {min(replay):.1f} ms; with the claim {statistics.median(whole):.1f} ms",
        ),
        Figure(
            NAMES[dialect], "record a step", f"{rates.median('ours'):,.0f} steps/s", pairs.percent(),
            compared=f"bare commits that update one row, {rates.median('bare'):,.0f}/s",
        ),
    ]  # fmt: skip


def _replayed(desk: object, folder: Path) -> float:
    """Claim the run and execute it until it waits again. Returns the time of the claim."""
    from yourturn.flow.engine import Engine

    got = desk.claim_next("bench", runs=True)  # type: ignore[attr-defined]
    claimed = time.monotonic()
    assert Engine(desk, got, runner.Host(), folder).go().what == "waiting"  # type: ignore[arg-type]
    return claimed

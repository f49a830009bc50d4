"""Profiler: where the time of a move goes.

    python -m bench.profile sqlite|postgres [--api | --queue] [--lives 200] [--statements] [--functions]

For each move of a task's life (cycle.py), or with --queue of a worker's turn (workers.py): wall and CPU time, statements, round
trips to the server, and bytes of the write-ahead log. The first row is a bare commit, measured between the moves. Times and
counts are measured in separate runs. `wall` is the median, `quiet` the fastest tenth, which a busy machine disturbs less.
--statements lists all statements of the moves with their quiet times, --functions the functions of Python. CPU is the time of
this process, without the server.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from . import bare
from .cycle import ClientLife, DeskLife, TaskLife, two
from .environment import DIALECTS, opened
from .figure import Step
from .fill import fill
from .workers import QueueTurn

#: A page of SQLite's log, with its header.
_FRAME = 4096 + 24
KINDS: dict[str, type[TaskLife]] = {"desk": DeskLife, "api": ClientLife, "queue": QueueTurn}


def named(life: TaskLife) -> list[str]:
    return [f"{n}. {verb}" for n, verb in enumerate(life.names, 1)]


class Counter:
    """Statements, round trips and log bytes so far. Statements in one string are timed as one."""

    def __init__(self) -> None:
        self.trips = 0
        self.texts: list[tuple[str, float]] = []
        self.read_log: Callable[[], int] = lambda: 0

    @contextmanager
    def watching(self, address: str, life: TaskLife) -> Iterator[None]:
        with self._postgres(address) if address.startswith("postgresql:") else self._sqlite(address, life):
            yield

    @contextmanager
    def _sqlite(self, path: str, life: TaskLife) -> Iterator[None]:
        store: Any = life.ana.desk.store
        db = store.connection()
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

        def traced(text: str) -> None:
            if not text.startswith("--") and (not self.texts or self.texts[-1][0] != text):  # a trigger reports it twice
                self.texts.append((text, time.perf_counter()))

        db.set_trace_callback(traced)
        log = Path(path + "-wal")
        self.read_log = lambda: log.stat().st_size if log.exists() else 0
        try:
            yield
        finally:
            db.set_trace_callback(None)
            db.execute("PRAGMA wal_autocheckpoint = 1000")

    @contextmanager
    def _postgres(self, address: str) -> Iterator[None]:
        import psycopg

        from yourturn.db.connection import Connection

        aside = psycopg.connect(address, autocommit=True)
        send, flush = Connection._send, Connection.flush

        def sent(connection: Connection, cursor: Any, text: str, args: Any) -> None:
            self.texts.append((f"{text} {args or ''}", time.perf_counter()))
            send(connection, cursor, text, args)

        def flushed(connection: Connection) -> None:
            self.trips += 1
            flush(connection)

        def read_log() -> int:
            row = aside.execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
            return int(row[0]) if row else 0

        self.read_log = read_log
        Connection._send = sent  # type: ignore[method-assign]
        Connection.flush = flushed  # type: ignore[method-assign]
        try:
            yield
        finally:
            Connection._send = send  # type: ignore[method-assign]
            Connection.flush = flush  # type: ignore[method-assign]
            aside.close()


class Spent(NamedTuple):
    """Microseconds."""

    wall: float
    quiet: float
    cpu: float


BARE = "a bare commit"


def timed(life: TaskLife, lives: int, step: Step) -> dict[str, Spent]:
    times_by_move: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for _ in range(lives):
        for name, (_verb, move) in zip(named(life), life.moves(), strict=True):
            for what, do in ((name, move), (BARE, step)):
                wall, cpu = time.perf_counter(), time.process_time()
                do()
                times_by_move[what].append((time.perf_counter() - wall, time.process_time() - cpu))
    return {name: _spent(pairs) for name, pairs in times_by_move.items()}


def _spent(pairs: list[tuple[float, float]]) -> Spent:
    walls = [wall for wall, _ in pairs]
    return Spent(statistics.median(walls) * 1e6, _quiet(walls), statistics.fmean(cpu for _, cpu in pairs) * 1e6)


def _quiet(seconds: list[float]) -> float:
    return sorted(seconds)[len(seconds) // 10] * 1e6


def counted(life: TaskLife, address: str, lives: int) -> tuple[dict[str, tuple[float, float, float]], dict[str, list[list[Any]]]]:
    """By move: statements, trips and log bytes (means); and the statements of each run with their times."""
    counter = Counter()
    sums: dict[str, list[float]] = {name: [0, 0, 0] for name in named(life)}
    statements_by_move: dict[str, list[list[Any]]] = {name: [] for name in named(life)}
    with counter.watching(address, life):
        for _ in range(lives):
            for name, (_verb, move) in zip(named(life), life.moves(), strict=True):
                counter.texts, trips, log = [], counter.trips, counter.read_log()
                move()
                ends = [at for _, at in counter.texts[1:]] + [time.perf_counter()]
                statements_by_move[name].append([(text, end - at) for (text, at), end in zip(counter.texts, ends, strict=True)])
                for i, value in enumerate((len(counter.texts), counter.trips - trips, counter.read_log() - log)):
                    sums[name][i] += value
    return {name: (a / lives, b / lives, c / lives) for name, (a, b, c) in sums.items()}, statements_by_move


def report(dialect: str, lives: int, kind: str, statements: bool, functions: bool) -> None:
    with opened() as environment:
        address, other = environment.new_desk(dialect), environment.new(dialect)
        with two(address) as (ana, coder):
            life = KINDS[kind](ana, coder)
            if kind == "queue":
                fill(address, ready=3 * lives + 200)
            step = bare.update(other)
            timed(life, 20, step)
            times = timed(life, lives, step)
            base = times.pop(BARE)
            counts, statements_by_move = counted(life, address, min(lives, 50))
            profiler = cProfile.Profile()
            if functions:
                profiler.enable()
                timed(life, lives, step)
                profiler.disable()
    print(f"{'':<14}{'wall µs':>9}{'quiet µs':>10}{'CPU µs':>9}{'statements':>12}{'trips':>8}{'log bytes':>11}{'pages':>7}")
    print(_line(BARE, base))
    for name in named(life):
        print(_line(name, times[name], counts[name], dialect))
    whole = Spent(*map(sum, zip(*times.values(), strict=True)))
    print(_line("all", whole, tuple(map(sum, zip(*counts.values(), strict=True))), dialect))
    quiet = f"{len(life.names) * base.quiet / whole.quiet:.0%} when quiet"
    print(f"as many bare commits take {len(life.names) * base.wall / whole.wall:.0%} of this time, {quiet}")
    if statements:
        _statements(statements_by_move)
    if functions:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(30)


def _line(name: str, spent: Spent, counts: tuple[float, ...] = (), dialect: str = "") -> str:
    line = f"{name:<14}{spent.wall:>9.0f}{spent.quiet:>10.0f}{spent.cpu:>9.0f}"
    if counts:
        line += f"{counts[0]:>12.1f}{counts[1]:>8.1f}{counts[2]:>11.0f}"
    return line + (f"{counts[2] / _FRAME:>7.1f}" if dialect == "sqlite" else "")


def _statements(statements_by_move: dict[str, list[list[Any]]]) -> None:
    """A statement's time ends when the next one begins, so the Python code between them is included."""
    for name, runs in statements_by_move.items():
        print(f"\n{name}")
        usual = [run for run in runs if len(run) == len(runs[-1])]
        for i, (text, _) in enumerate(usual[-1]):
            took = _quiet([run[i][1] for run in usual])
            print(f"  {took:>7.0f} µs  {' '.join(text.split())[:110]}")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description=__doc__.partition("\n")[0])
    parser.add_argument("dialect", choices=DIALECTS)
    parser.add_argument("--api", dest="kind", action="store_const", const="api", default="desk", help="with full replies")
    parser.add_argument("--queue", dest="kind", action="store_const", const="queue", help="claim the next, complete it")
    parser.add_argument("--lives", type=int, default=200)
    parser.add_argument("--statements", action="store_true")
    parser.add_argument("--functions", action="store_true")
    a = parser.parse_args(argv)
    report(a.dialect, a.lives, a.kind, a.statements, a.functions)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

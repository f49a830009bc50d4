"""(b) Claim and complete, by 1, 4 and 16 processes, from a queue of some thousand ready tasks.

A worker completes a task and claims the next in one commit (`claim_next(…, completing=claim)`), so each claim is on disk before
the work begins. The peer is procrastinate on PostgreSQL; on SQLite, as many processes that make bare commits (two per task, for
claim and completion). Only completions while all processes work count, and the database is checked for them. All process pools
are started once and alternate; before each slice the queue is refilled, outside the measured time, and both PostgreSQL queues are
vacuumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

from yourturn.core.actions import say

from . import peer_queue
from .cycle import TaskLife
from .environment import NAMES, Environment
from .figure import Figure, Rates, take_turns
from .fill import Bulk, fill
from .process_pool import ProcessPool, run_together

_COUNTS = (1, 4, 16)
_NO_LOSS, _TIMES = 0.95, 1.5


class QueueTurn(TaskLife):
    """A worker's two moves."""

    names = ("claim_next", "complete")

    def moves(self) -> Iterator[tuple[str, Callable[[], None]]]:
        desk = self.coder.desk
        claimed: list[Any] = []

        def complete() -> None:
            (done,) = claimed
            desk.do(say("complete", desk.who, task=done.task, claim=done.claim.token, summary="It is there"))

        yield "claim_next", lambda: claimed.append(desk.claim_next("w1", project="PROJ"))
        yield "complete", complete


class Queue:
    """A queue that has `depth` jobs at the begin of each slice."""

    def __init__(self, address: str, depth: int, left: str, done: str, more: Callable[[str, int], object]) -> None:
        self.address, self.depth, self.left, self.done, self.more = address, depth, left, done, more
        self.bare = Bulk(address)
        self.busy = 0

    def slice(self, pool: ProcessPool, seconds: float) -> float:
        """Completions per second."""
        lacking = self.depth - self.bare.number(self.left)
        if lacking > 1:
            self.more(self.address, lacking)
        if self.bare.postgres:
            self.bare.db.execute("VACUUM ANALYZE")
        before = self.bare.number(self.done)
        rate, answers = run_together(pool, seconds)
        self.busy += sum(a.get("busy", 0) for a in answers)
        assert self.bare.number(self.done) - before >= rate * seconds - len(answers), "some completions were not committed"
        return rate


def run(environment: Environment) -> list[Figure]:
    figures: list[Figure] = []
    for dialect in environment.dialects:
        figures += (_sqlite if dialect == "sqlite" else _postgres)(environment)
    return figures


def _size(environment: Environment) -> tuple[float, int, int, tuple[int, ...]]:
    return (0.3, 2, 1000, (1, 2)) if environment.quick else (1.0, 14, 5000, _COUNTS)


def _desk(environment: Environment, dialect: str, depth: int) -> Queue:
    count = "SELECT count(*) FROM tasks WHERE state = "
    return Queue(environment.new_desk(dialect), depth, f"{count}'ready'", f"{count}'done'", lambda a, n: fill(a, ready=n))


def _sqlite(environment: Environment) -> list[Figure]:
    seconds, rounds, depth, counts = _size(environment)
    queue, other = _desk(environment, "sqlite", depth), environment.new("sqlite")
    with ExitStack() as stack:
        slices: dict[str, Callable[[], float]] = {}
        for count in counts:
            ours = stack.enter_context(ProcessPool("work", queue.address, count))
            bare = stack.enter_context(ProcessPool("commit", other, count))
            ours.wait()
            bare.wait()
            slices[f"ours {count}"] = partial(queue.slice, ours, seconds)
            slices[f"bare {count}"] = partial(_commits, bare, seconds)
        rates = take_turns(_adjacent(slices), rounds)
    figures = []
    for count in counts:
        pairs = rates.pairs(f"ours {count}", f"bare {count}").scaled(2)
        figures.append(
            Figure(
                "SQLite", _label(count), f"{rates.median(f'ours {count}'):,.0f} tasks/s", pairs.percent(), "≥ 30%",
                pairs.median >= 0.3, f"as many processes with bare commits, {rates.median(f'bare {count}'):,.0f}/s; 2 per task",
            )
        )  # fmt: skip
    return [*figures, _no_loss("sqlite", rates, counts, queue.busy)]


def _commits(pool: ProcessPool, seconds: float) -> float:
    return run_together(pool, seconds)[0]


def _postgres(environment: Environment) -> list[Figure]:
    seconds, rounds, depth, counts = _size(environment)
    queue = _desk(environment, "postgres", depth)
    has_peer = peer_queue.installed()
    if not has_peer:
        environment.report("procrastinate is not installed: make bench does it")
    theirs: Queue | None = None
    if has_peer:
        address = environment.new("postgres")
        peer_queue.install(address)
        count = "SELECT count(*) FROM procrastinate_jobs WHERE status = "
        theirs = Queue(address, depth, f"{count}'todo'", f"{count}'succeeded'", peer_queue.fill)
    with ExitStack() as stack:
        slices: dict[str, Callable[[], float]] = {}
        for number in counts:
            ours = stack.enter_context(ProcessPool("work", queue.address, number))
            ours.wait()
            slices[f"ours {number}"] = partial(queue.slice, ours, seconds)
            if theirs:
                pool = stack.enter_context(ProcessPool("peer_queue", theirs.address, number))
                pool.wait()
                slices[f"peer {number}"] = partial(theirs.slice, pool, seconds)
        rates = take_turns(_adjacent(slices) if theirs else slices, rounds)
    figures = []
    for number in counts:
        value = f"{rates.median(f'ours {number}'):,.0f} tasks/s"
        if theirs is None:
            figures.append(Figure("PostgreSQL", _label(number), value))
            continue
        pairs = rates.pairs(f"ours {number}", f"peer {number}")
        compared = f"procrastinate, {rates.median(f'peer {number}'):,.0f} jobs/s"
        bound, held = f"≥ {_TIMES} ×", pairs.median >= _TIMES
        figures.append(Figure("PostgreSQL", _label(number), value, pairs.times(), bound, held, compared))
    return [*figures, _no_loss("postgres", rates, counts, queue.busy)]


def _adjacent(slices: dict[str, Callable[[], float]]) -> dict[str, Callable[[], float]]:
    """Put the compared slices next to each other: ours and theirs, theirs and ours, ours and theirs."""
    pairs = zip(*[iter(slices.items())] * 2, strict=True)
    return dict(one for at, pair in enumerate(pairs) for one in pair[:: -1 if at % 2 else 1])


def _label(count: int) -> str:
    return f"{count} worker{'s' * (count > 1)}"


def _no_loss(dialect: str, rates: Rates, counts: tuple[int, ...], busy: int) -> Figure:
    few, many = counts[-2:]
    pairs = rates.pairs(f"ours {many}", f"ours {few}")
    value = f"{rates.median(f'ours {many}'):,.0f} tasks/s" + (f", {busy} moves gave up waiting" if busy else "")
    return Figure(
        NAMES[dialect], f"{many} workers against {few}", value, pairs.percent(), f"no loss (≥ {_NO_LOSS:.0%})",
        pairs.median >= _NO_LOSS, f"{few} workers, {rates.median(f'ours {few}'):,.0f} tasks/s",
    )  # fmt: skip

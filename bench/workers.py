"""(b) Claim and complete, by 1, 4 and 16 processes, from a queue of some thousand ready tasks.

A worker hands in a task and takes the next in one commit (`claim_next(…, completing=claim)`), and each task's claim is on disk
before the work on it begins. On PostgreSQL against procrastinate, on SQLite against as many processes that make bare commits
(two for a task: it is claimed and completed). What counts is what is completed while all are at work; that so much is committed
is looked up in the database. All crews are started once and take turns; before each slice the queue is filled
up again, outside the measured time, and both PostgreSQL queues are vacuumed alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

from yourturn.core.actions import say

from . import peer
from .crew import Crew, rush
from .cycle import Life
from .figure import Figure, Rates, take_turns
from .fill import Bulk, fill
from .place import NAMES, Place

_COUNTS = (1, 4, 16)
_NO_LOSS, _TIMES = 0.95, 1.5


class Turn(Life):
    """What a worker does, move by move."""

    names = ("claim_next", "complete")

    def moves(self) -> Iterator[tuple[str, Callable[[], None]]]:
        desk = self.coder.desk
        got: list[Any] = []

        def complete() -> None:
            (done,) = got
            desk.do(say("complete", desk.who, task=done.task, claim=done.claim.token, summary="It is there"))

        yield "claim_next", lambda: got.append(desk.claim_next("w1", project="PROJ"))
        yield "complete", complete


class Queue:
    """A queue with `depth` jobs in it at the begin of each slice."""

    def __init__(self, address: str, depth: int, left: str, done: str, more: Callable[[str, int], object]) -> None:
        self.address, self.depth, self.left, self.done, self.more = address, depth, left, done, more
        self.bare = Bulk(address)
        self.busy = 0

    def slice(self, crew: Crew, seconds: float) -> float:
        """Completions per second."""
        lacking = self.depth - self.bare.number(self.left)
        if lacking > 1:
            self.more(self.address, lacking)
        if self.bare.postgres:
            self.bare.db.execute("VACUUM ANALYZE")
        before = self.bare.number(self.done)
        rate, answers = rush(crew, seconds)
        self.busy += sum(a.get("busy", 0) for a in answers)
        assert self.bare.number(self.done) - before >= rate * seconds - len(answers), "more was counted than is done"
        return rate


def run(place: Place) -> list[Figure]:
    found: list[Figure] = []
    for dialect in place.dialects:
        found += (_sqlite if dialect == "sqlite" else _postgres)(place)
    return found


def _size(place: Place) -> tuple[float, int, int, tuple[int, ...]]:
    return (0.3, 2, 1000, (1, 2)) if place.quick else (1.0, 14, 5000, _COUNTS)


def _desk(place: Place, dialect: str, depth: int) -> Queue:
    count = "SELECT count(*) FROM tasks WHERE state = "
    return Queue(place.new_desk(dialect), depth, f"{count}'ready'", f"{count}'done'", lambda a, n: fill(a, ready=n))


def _sqlite(place: Place) -> list[Figure]:
    seconds, rounds, depth, counts = _size(place)
    queue, other = _desk(place, "sqlite", depth), place.new("sqlite")
    with ExitStack() as stack:
        slices: dict[str, Callable[[], float]] = {}
        for count in counts:
            ours = stack.enter_context(Crew("work", queue.address, count))
            bare = stack.enter_context(Crew("commit", other, count))
            ours.wait(), bare.wait()
            slices[f"ours {count}"] = partial(queue.slice, ours, seconds)
            slices[f"bare {count}"] = partial(_commits, bare, seconds)
        rates = take_turns(_beside(slices), rounds)
    found = []
    for count in counts:
        pairs = rates.pairs(f"ours {count}", f"bare {count}").scaled(2)
        found.append(
            Figure(
                "SQLite", _who(count), f"{rates.median(f'ours {count}'):,.0f} tasks/s", pairs.percent(), "≥ 30%",
                pairs.median >= 0.3, f"as many processes with bare commits, {rates.median(f'bare {count}'):,.0f}/s; 2 per task",
            )
        )  # fmt: skip
    return [*found, _no_loss("sqlite", rates, counts, queue.busy)]


def _commits(crew: Crew, seconds: float) -> float:
    return rush(crew, seconds)[0]


def _postgres(place: Place) -> list[Figure]:
    seconds, rounds, depth, counts = _size(place)
    queue = _desk(place, "postgres", depth)
    there = peer.here()
    if not there:
        place.say("procrastinate is not installed: make bench does it")
    theirs: Queue | None = None
    if there:
        address = place.new("postgres")
        peer.install(address)
        count = "SELECT count(*) FROM procrastinate_jobs WHERE status = "
        theirs = Queue(address, depth, f"{count}'todo'", f"{count}'succeeded'", peer.fill)
    with ExitStack() as stack:
        slices: dict[str, Callable[[], float]] = {}
        for number in counts:
            ours = stack.enter_context(Crew("work", queue.address, number))
            ours.wait()
            slices[f"ours {number}"] = partial(queue.slice, ours, seconds)
            if theirs:
                crew = stack.enter_context(Crew("peer", theirs.address, number))
                crew.wait()
                slices[f"peer {number}"] = partial(theirs.slice, crew, seconds)
        rates = take_turns(_beside(slices) if theirs else slices, rounds)
    found = []
    for number in counts:
        value = f"{rates.median(f'ours {number}'):,.0f} tasks/s"
        if theirs is None:
            found.append(Figure("PostgreSQL", _who(number), value))
            continue
        pairs = rates.pairs(f"ours {number}", f"peer {number}")
        compared = f"procrastinate, {rates.median(f'peer {number}'):,.0f} jobs/s"
        found.append(Figure("PostgreSQL", _who(number), value, pairs.times(), f"≥ {_TIMES} ×", pairs.median >= _TIMES, compared))
    return [*found, _no_loss("postgres", rates, counts, queue.busy)]


def _beside(slices: dict[str, Callable[[], float]]) -> dict[str, Callable[[], float]]:
    """What is compared stands side by side: ours and theirs, theirs and ours, ours and theirs. So do our few and our many."""
    pairs = zip(*[iter(slices.items())] * 2, strict=True)
    return dict(one for at, pair in enumerate(pairs) for one in pair[:: -1 if at % 2 else 1])


def _who(count: int) -> str:
    return f"{count} worker{'s' * (count > 1)}"


def _no_loss(dialect: str, rates: Rates, counts: tuple[int, ...], busy: int) -> Figure:
    few, many = counts[-2:]
    pairs = rates.pairs(f"ours {many}", f"ours {few}")
    value = f"{rates.median(f'ours {many}'):,.0f} tasks/s" + (f", {busy} moves gave up waiting" if busy else "")
    return Figure(
        NAMES[dialect], f"{many} workers against {few}", value, pairs.percent(), f"no loss (≥ {_NO_LOSS:.0%})",
        pairs.median >= _NO_LOSS, f"{few} workers, {rates.median(f'ours {few}'):,.0f} tasks/s",
    )  # fmt: skip

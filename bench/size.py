"""(c) The influence of the desk's size.

The first page of the inbox and of `ready` (50 items each, with all details) among a million tasks, 100,000 of which wait for an
answer. And the cost of single moves with `Desk.do`, on a desk of a thousand tasks and on one of a million, in turn: a random
ready task (or the next one) is claimed, a question about it is asked and answered, and the task is ready again.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from yourturn.client import Client
from yourturn.core.actions import say

from .cycle import two
from .environment import NAMES, Environment
from .figure import Figure
from .fill import Bulk, fill

SMALL, LARGE, QUICK = 1_000, 1_000_000, 100_000
_PAGE = 50
_FIRST_PAGE = 5.0
_FLAT = 1.5

Spent = dict[str, list[float]]


def run(environment: Environment) -> list[Figure]:
    figures: list[Figure] = []
    for dialect in environment.dialects:
        figures += _measured(environment, dialect)
    return figures


def _measured(environment: Environment, dialect: str) -> list[Figure]:
    many, times = (QUICK, 60) if environment.quick else (LARGE, 400)
    small, large = (environment.new_desk(dialect) for _ in range(2))
    _fill(small, SMALL)
    took = _fill(large, many)
    environment.report(f"{NAMES[dialect]}: {many:,} tasks, {many // 10:,} open questions, filled in {took:.0f} s")
    with two(small) as few, two(large) as lot:
        figures = [
            _page(dialect, f"the first page of {name}", getattr(lot[0], name), times // 4, many) for name in ("inbox", "ready")
        ]
        desks = {SMALL: (*few, _ready(small)), many: (*lot, _ready(large))}
        spent: dict[int, Spent] = {size: defaultdict(list) for size in desks}
        for number in range(times + 20):
            for size, (ana, coder, ready) in desks.items():
                for verb, seconds in _moves(ana, coder, random.choice(ready) if number % 2 else None):
                    if number >= 20:
                        spent[size][verb].append(seconds)
    return figures + [_flat(dialect, verb, spent[SMALL][verb], spent[many][verb], many) for verb in spent[SMALL]]


def _fill(address: str, count: int) -> float:
    return fill(address, ready=count * 3 // 10, human=count // 10, done=count * 6 // 10)


def _ready(address: str) -> list[int]:
    bulk = Bulk(address)
    ids = [row["id"] for row in bulk.rows("SELECT id FROM tasks WHERE state = 'ready'")]
    bulk.close()
    return ids


def _page(dialect: str, what: str, look: Callable[..., list[Any]], times: int, many: int) -> Figure:
    spent = []
    for number in range(times + 5):
        begun = time.perf_counter()
        assert len(look(limit=_PAGE)) == _PAGE
        if number >= 5:
            spent.append((time.perf_counter() - begun) * 1000)
    median = statistics.median(spent)
    return Figure(
        NAMES[dialect], f"{what}, {_PAGE} of {many:,} tasks", f"{median:.1f} ms", "", f"< {_FIRST_PAGE:.0f} ms",
        median < _FIRST_PAGE, f"fastest {min(spent):.1f}, 95 % within {sorted(spent)[int(len(spent) * 0.95)]:.1f} ms",
    )  # fmt: skip


def _moves(ana: Client, coder: Client, task: int | None) -> Iterator[tuple[str, float]]:
    begun = time.perf_counter()
    if task is None:
        verb, done = "claim the next", coder.desk.claim_next("w1", project="PROJ")
    else:
        action = say("claim", coder.who, task=task, worker="w1", secret=os.urandom(16).hex())
        verb, done = "claim", coder.desk.do(action)
    yield verb, time.perf_counter() - begun
    begun = time.perf_counter()
    done = ana.desk.do(say("ask", ana.who, task=done.task, text="Sessions or tokens?"))
    yield "ask", time.perf_counter() - begun
    begun = time.perf_counter()
    ana.desk.do(say("answer", ana.who, task=done.task, question_id=done.question, value="sessions"))
    yield "answer", time.perf_counter() - begun


def _flat(dialect: str, verb: str, few: list[float], lot: list[float], many: int) -> Figure:
    small, large = (statistics.median(spent) * 1000 for spent in (few, lot))
    quiet = [f"{sorted(spent)[len(spent) // 10] * 1000:.2f}" for spent in (lot, few)]
    ratio = large / small
    return Figure(
        NAMES[dialect], f"{verb}, among {many:,} tasks", f"{large:.2f} ms", f"{ratio:.2f} ×", f"flat (≤ {_FLAT} ×)",
        ratio <= _FLAT, f"among {SMALL:,}, {small:.2f} ms; the quietest tenth within {quiet[0]} against {quiet[1]} ms",
    )  # fmt: skip

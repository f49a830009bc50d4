"""One process of a pool: python -m bench.pool_process KIND ADDRESS NAME. Orders and answers are lines of JSON."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from .environment import open_desk

Answer = dict[str, Any]
PoolProcess = Callable[[str, str], Iterator[Answer]]


def orders() -> Iterator[dict[str, Any]]:
    """Reports that the process is ready, then yields the orders."""
    _send({})
    for line in sys.stdin:
        yield json.loads(line)


def counts(order: dict[str, Any]) -> bool:
    """Whether the measured time runs: all processes work before it begins, and none stops before it ends."""
    return bool(order["opens"] <= time.monotonic() < order["closes"])


def _send(answer: Answer) -> None:
    print(json.dumps(answer), flush=True)


def work(address: str, name: str) -> Iterator[Answer]:
    """Complete a task and claim the next, with `Desk.claim_next`; counts those in the measured time."""
    from yourturn.core.actions import say
    from yourturn.core.errors import Busy

    with open_desk(address, "agent:coder") as client:
        desk = client.desk
        desk.cursor()
        for order in orders():
            count = busy = 0
            held = None
            while time.monotonic() < order["closes"]:
                first = held and say("complete", desk.who, task=held.task, claim=held.claim.token, summary="It is there")
                try:
                    held = desk.claim_next(name, project="PROJ", first=first)
                    if held is None:
                        break
                    count += first is not None and counts(order)
                except Busy:
                    busy += 1
            if held is not None:
                desk.do(say("complete", desk.who, task=held.task, claim=held.claim.token, summary="It is there"))
            yield {"count": count, "busy": busy}


def commit(address: str, name: str) -> Iterator[Answer]:
    """Bare commits."""
    from . import bare

    step = bare.update(address)
    for order in orders():
        count = 0
        while time.monotonic() < order["closes"]:
            count += step() * counts(order)
        yield {"count": count}


def peer_queue(address: str, name: str) -> Iterator[Answer]:
    from . import peer_queue as module

    yield from module.work(address, orders)


def echo(address: str, name: str) -> Iterator[Answer]:
    """The time when the process was woken: the lower limit for a watcher."""
    for _ in orders():
        yield {"at": time.monotonic()}


def watch(address: str, name: str) -> Iterator[Answer]:
    """Watch until `count` events have come: the task of each, and the time of arrival."""
    with open_desk(address) as client:
        desk = client.desk
        for order in orders():
            seen = []
            _send({})
            for _, event in desk.watch(order["after"]):
                seen.append((event.task_id, time.monotonic()))
                if len(seen) == order["count"]:
                    break
            yield {"seen": seen}


def idle(address: str, name: str) -> Iterator[Answer]:
    """Watch an unchanged desk: the CPU seconds that it costs."""
    with open_desk(address) as client:
        desk = client.desk
        list(desk.watch(seconds=0.2))
        for order in orders():
            begun, cpu = time.monotonic(), time.process_time()
            for _ in desk.watch(seconds=order["seconds"]):
                pass
            yield {"cpu": time.process_time() - cpu, "wall": time.monotonic() - begun}


def runner(address: str, name: str) -> Iterator[Answer]:
    """The memory of an idle worker of runs."""
    from pathlib import Path

    from . import runner as module

    with open_desk(address, "agent:coder") as client:
        for order in orders():
            folder = Path(order["folder"])
            ends = time.monotonic() + order["idle"]
            while time.monotonic() < ends:
                assert module.take(client, folder) is None
                client.desk.wait(0.25)
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            yield {"rss": pages * os.sysconf("SC_PAGE_SIZE")}


KINDS: dict[str, PoolProcess] = {process.__name__: process for process in (work, commit, peer_queue, echo, watch, idle, runner)}


def main(kind: str, address: str, name: str) -> None:
    for answer in KINDS[kind](address, name):
        _send(answer)


if __name__ == "__main__":
    main(*sys.argv[1:])

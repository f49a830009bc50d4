"""One process of a crew: python -m bench.hand KIND ADDRESS NAME. Orders come as lines of JSON, and so do the answers."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from .place import open_desk

Answer = dict[str, Any]
Hand = Callable[[str, str], Iterator[Answer]]


def orders() -> Iterator[dict[str, Any]]:
    """Says that it is ready, then every order, until there are no more."""
    _say({})
    for line in sys.stdin:
        yield json.loads(line)


def counts(order: dict[str, Any]) -> bool:
    """Is it the time that counts? All are at work before it begins, and none has ended before it is over."""
    return bool(order["opens"] <= time.monotonic() < order["closes"])


def _say(answer: Answer) -> None:
    print(json.dumps(answer), flush=True)


def work(address: str, name: str) -> Iterator[Answer]:
    """Complete a task and claim the next, through the door, until the time is over; how often in the time that counts."""
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


def peer(address: str, name: str) -> Iterator[Answer]:
    from . import peer as module

    yield from module.work(address, orders)


def echo(address: str, name: str) -> Iterator[Answer]:
    """When it was woken: what no watcher can beat."""
    for _ in orders():
        yield {"at": time.monotonic()}


def watch(address: str, name: str) -> Iterator[Answer]:
    """Watch until `count` events came: which task, and when it was heard of."""
    with open_desk(address) as client:
        desk = client.desk
        for order in orders():
            seen = []
            _say({})
            for _, event in desk.watch(order["after"]):
                seen.append((event.task_id, time.monotonic()))
                if len(seen) == order["count"]:
                    break
            yield {"seen": seen}


def idle(address: str, name: str) -> Iterator[Answer]:
    """Watch where nothing happens: the CPU seconds that it costs."""
    with open_desk(address) as client:
        desk = client.desk
        list(desk.watch(seconds=0.2))
        for order in orders():
            begun, cpu = time.monotonic(), time.process_time()
            for _ in desk.watch(seconds=order["seconds"]):
                pass
            yield {"cpu": time.process_time() - cpu, "wall": time.monotonic() - begun}


def runner(address: str, name: str) -> Iterator[Answer]:
    """A worker of runs that has nothing to do: what it weighs."""
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


HANDS: dict[str, Hand] = {hand.__name__: hand for hand in (work, commit, peer, echo, watch, idle, runner)}


def main(kind: str, address: str, name: str) -> None:
    for answer in HANDS[kind](address, name):
        _say(answer)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""(h) The desk over HTTP: create, answer and poll; answers as fast as they go; and many who watch while others answer.

*Round trips*: a task that waits for an approval is created, approved and polled, three requests. awaithumans does the same with
its own three, on SQLite too, with the same client. *Answers*: eight connections answer questions that wait, against a bare
Starlette endpoint that makes one bare commit per request. *Watchers*: ten thousand questions wait, a thousand connections watch
everything, and people answer at a steady rate. The time of an answer counts from the moment at which it was due, not from when
a connection was free to send it; an event's, from that same moment until a watcher has it.
"""

from __future__ import annotations

import json
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from . import peer_http
from .figure import Figure, rate, take_turns
from .fill import fill
from .place import NAMES, Place, open_desk
from .wire import Wire

_TRIPS, _SHARE = 5.0, 0.25  #: times the peer's round trips; share of a bare endpoint's answers
_ANSWER, _EVENT, _MEMORY = 150.0, 1000.0, 300.0  #: ms in which 99 % are through, and MB
_ROOT = Path(__file__).parent.parent


def run(place: Place) -> list[Figure]:
    found: list[Figure] = []
    if "sqlite" in place.dialects:
        found += [*_trips(place), _answers(place)]
    for dialect in place.dialects:
        found += _watched(place, dialect)
    return found


@contextmanager
def served(address: str) -> Iterator[tuple[int, str, int]]:
    """A server of its own: port, an admin's token, process."""
    with open_desk(address) as desk:
        token = str(desk.create_token("bench", "admin")["token"])
    command = [sys.executable, "-m", "yourturn.cli.main", "serve", "--port", "0", "--json", "--db", address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=_ROOT) as process:
        try:
            assert process.stdout
            said = json.loads(process.stdout.readline())
            yield int(said["url"].rpartition(":")[2]), token, process.pid
        finally:
            process.terminate()
            process.wait(30)


def memory(pid: int) -> float:
    """Megabytes of a process and its children."""
    pids = [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
    lines = (line for one in pids for line in Path(f"/proc/{one}/status").read_text().splitlines())
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


# --- round trips ------------------------------------------------------------------------------------------------------


def _trip(wire: Wire) -> int:
    made = wire.json("POST", "/api/tasks", {"title": "Approve?", "awaiting": "approval"}, 201)
    question = made["questions"][0]["id"]
    wire.json("POST", f"/api/questions/{question}/answer", {"verdict": "approved"})
    assert wire.json("GET", f"/api/questions/{question}")["status"] == "answered"
    return 1


def together(steps: list[Callable[[], int]], seconds: float) -> float:
    """What several do at the same time, in a second."""
    found: list[float] = []
    threads = [threading.Thread(target=lambda step=step: found.append(rate(step, seconds))) for step in steps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(steps)
    return sum(found)


def _trips(place: Place) -> list[Figure]:
    if not peer_http.here():
        place.say("awaithumans is not installed: no comparison")
        return []
    seconds, rounds = (0.2, 2) if place.quick else (1.5, 7)
    found = []
    with (
        served(place.new_desk("sqlite")) as (port, token, pid),
        peer_http.served(place.folder / "peer") as (other, theirs, their_pid),
    ):
        for clients in (1, 8):
            ours = [Wire(port, token) for _ in range(clients)]
            them = [Wire(other, theirs) for _ in range(clients)]
            rates = take_turns(
                {
                    "ours": lambda ours=ours: together([lambda w=w: _trip(w) for w in ours], seconds),
                    "theirs": lambda them=them: together([lambda w=w: peer_http.trip(w) for w in them], seconds),
                },
                rounds,
            )
            pairs = rates.pairs("ours", "theirs")
            one = f"{clients} clients" if clients > 1 else "1 client"
            found.append(
                Figure(
                    NAMES["sqlite"], f"create, answer and poll, {one}", f"{rates.median('ours'):,.0f} round trips/s",
                    pairs.times(), f"≥ {_TRIPS:.0f} ×", pairs.median >= _TRIPS,
                    f"awaithumans {peer_http.VERSION}, {rates.median('theirs'):,.0f}/s; "
                    f"memory {memory(pid):.0f} MB against {memory(their_pid):.0f}",
                )
            )  # fmt: skip
            for wire in ours + them:
                wire.close()
    return found


# --- answers ----------------------------------------------------------------------------------------------------------


def _questions(address: str) -> list[str]:
    with open_desk(address) as desk:
        found: list[str] = []
        while page := desk.inbox(limit=1000, after=found[-1] if found else None):
            found += [q["id"] for q in page]
    return found


def _answers(place: Place) -> Figure:
    seconds, rounds = (0.2, 2) if place.quick else (1.0, 11)
    address = place.new_desk("sqlite")
    fill(address, human=2_000 if place.quick else 30_000)
    waiting = iter(_questions(address))
    with served(address) as (port, token, _), _bare(place) as bare:
        ours = [Wire(port, token) for _ in range(8)]
        plain = [Wire(bare) for _ in range(8)]

        def answer(wire: Wire) -> int:
            wire.json("POST", f"/api/questions/{next(waiting)}/answer", {"value": "this"})
            return 1

        def commit(wire: Wire) -> int:
            wire.json("POST", "/answer", {"value": "this"})
            return 1

        rates = take_turns(
            {
                "ours": lambda: together([lambda w=w: answer(w) for w in ours], seconds),
                "bare": lambda: together([lambda w=w: commit(w) for w in plain], seconds),
            },
            rounds,
        )
    pairs = rates.pairs("ours", "bare")
    return Figure(
        NAMES["sqlite"], "answers, 8 connections", f"{rates.median('ours'):,.0f}/s", pairs.percent(), f"≥ {_SHARE:.0%}",
        pairs.median >= _SHARE, f"a bare Starlette endpoint with one bare commit, {rates.median('bare'):,.0f}/s",
    )  # fmt: skip


@contextmanager
def _bare(place: Place) -> Iterator[int]:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])
    path = place.new("sqlite")
    with subprocess.Popen([sys.executable, "-m", "bench.bare_http", str(port), path], cwd=_ROOT) as process:
        try:
            wait_for(port)
            yield port
        finally:
            process.terminate()
            process.wait(30)


def wait_for(port: int, seconds: float = 60) -> None:
    ends = time.monotonic() + seconds
    while True:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        assert time.monotonic() < ends, "it does not start"
        time.sleep(0.05)


# --- watchers ---------------------------------------------------------------------------------------------------------


def _watched(place: Place, dialect: str) -> list[Figure]:
    waiting, watchers, each, seconds = (500, 20, 50, 2) if place.quick else (10_000, 1_000, 200, 60)
    address = place.new_desk(dialect)
    fill(address, human=waiting + each * seconds)
    asked = _questions(address)[: each * seconds]
    with served(address) as (port, token, pid):
        crowds = [_crowd(port, token, watchers // 2) for _ in range(2)]
        for crowd in crowds:
            assert crowd.stdout and crowd.stdout.readline() == "ready\n"
        due, took = _answered(port, token, asked, each)
        megabytes = memory(pid)
        found = []
        for crowd in crowds:
            assert crowd.stdin and crowd.stdout
            crowd.stdin.write(f"{len(asked)}\n")
            crowd.stdin.flush()
        for crowd in crowds:
            assert crowd.stdout
            found.append(json.loads(crowd.stdout.readline()))
            crowd.wait(30)
    once = all(sorted(one["seen"]) == sorted(asked) for one in found) and len({tuple(one["seen"]) for one in found}) == 1
    told = sum(one["told"] for one in found)
    late = _delays(found, due)
    slowest, event = _percentile(took, 0.99), _percentile(late, 0.99)
    load = f"{waiting:,} questions wait, {watchers:,} watch"
    name = NAMES[dialect]
    return [
        Figure(
            name, f"{each} answers a second for {seconds} s; {load}", f"99 % within {slowest:.0f} ms", "", f"< {_ANSWER:.0f} ms",
            slowest < _ANSWER, f"median {statistics.median(took):.1f} ms, slowest {max(took):.0f} ms",
        ),
        Figure(
            name, "a watcher has the event", f"99 % within {event:.0f} ms", "", f"< {_EVENT:.0f} ms", event < _EVENT,
            f"median {statistics.median(late):.0f} ms, slowest {max(late):.0f} ms",
        ),
        Figure(
            name, "every watcher saw every answer once, in one order", f"{told:,} of {watchers:,}", "", "all",
            once and told == watchers, f"{len(asked):,} answers",
        ),
        Figure(name, "the server's memory", f"{megabytes:.0f} MB", "", f"< {_MEMORY:.0f} MB", megabytes < _MEMORY),
    ]  # fmt: skip


def _crowd(port: int, token: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.streams", str(port), token, str(count)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT)


def _answered(port: int, token: str, asked: list[str], each: int) -> tuple[dict[str, float], list[float]]:
    """When each answer was due, and milliseconds until it was there."""
    begun = time.monotonic() + 0.5
    due = {question: begun + number / each for number, question in enumerate(asked)}
    left, took, wrong = iter(asked), [], []

    def person() -> None:
        wire = Wire(port, token)
        try:
            for question in left:
                time.sleep(max(0.0, due[question] - time.monotonic()))
                wire.json("POST", f"/api/questions/{question}/answer", {"value": "this"})
                took.append((time.monotonic() - due[question]) * 1000)
        except Exception as error:
            wrong.append(error)
        wire.close()

    people = [threading.Thread(target=person) for _ in range(32)]
    for thread in people:
        thread.start()
    for thread in people:
        thread.join()
    assert not wrong, wrong[0]
    return due, took


def _delays(found: list[dict[str, Any]], due: dict[str, float]) -> list[float]:
    """Milliseconds, for each piece that a watcher got: those of the answer in it that waited longest."""
    return [(at - due[one["seen"][first]]) * 1000 for one in found for at, first, _ in one["arrivals"]]


def _percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]

"""(h) The desk over HTTP: round trips, answers, and watchers.

*Round trips*: a task that waits for an approval is created, approved and polled, in three requests. awaithumans does the same in
three requests, also on SQLite, with the same client. *Answers*: eight connections answer open questions, against a bare Starlette
endpoint with one bare commit per request. *Watchers*: ten thousand questions are open, a thousand connections watch all events,
and people answer at a steady rate. The time of an answer counts from the moment when it was due, not from when a connection was
free to send it; the time of an event from the same moment until a watcher has received it.
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
from .environment import NAMES, Environment, open_desk
from .figure import Figure, rate, take_turns
from .fill import fill
from .http_connection import HttpConnection

_TRIPS, _SHARE = 5.0, 0.25  #: times the peer's round trips; share of the bare endpoint's requests
_ANSWER, _EVENT, _MEMORY = 150.0, 1000.0, 300.0  #: limits: ms for 99 %, and MB
_ROOT = Path(__file__).parent.parent


def run(environment: Environment) -> list[Figure]:
    figures: list[Figure] = []
    if "sqlite" in environment.dialects:
        figures += [*_trips(environment), _answers(environment)]
    for dialect in environment.dialects:
        figures += _watched(environment, dialect)
    return figures


@contextmanager
def served(address: str) -> Iterator[tuple[int, str, int]]:
    """Start a server. Yields its port, an admin's token and the process id."""
    with open_desk(address) as desk:
        token = str(desk.create_token("bench", "admin")["token"])
    command = [sys.executable, "-m", "yourturn.cli.main", "serve", "--port", "0", "--json", "--db", address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=_ROOT) as process:
        try:
            assert process.stdout
            ready = json.loads(process.stdout.readline())
            yield int(ready["url"].rpartition(":")[2]), token, process.pid
        finally:
            process.terminate()
            process.wait(30)


def memory(pid: int) -> float:
    """Megabytes of a process and its children."""
    pids = [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
    lines = (line for one in pids for line in Path(f"/proc/{one}/status").read_text().splitlines())
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


# --- round trips ------------------------------------------------------------------------------------------------------


def _trip(connection: HttpConnection) -> int:
    made = connection.json("POST", "/api/tasks", {"title": "Approve?", "awaiting": "approval"}, 201)
    question = made["questions"][0]["id"]
    connection.json("POST", f"/api/questions/{question}/answer", {"verdict": "approved"})
    assert connection.json("GET", f"/api/questions/{question}")["status"] == "answered"
    return 1


def run_parallel(steps: list[Callable[[], int]], seconds: float) -> float:
    """The summed rates of steps that run in parallel threads."""
    rates: list[float] = []
    threads = [threading.Thread(target=lambda step=step: rates.append(rate(step, seconds))) for step in steps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(rates) == len(steps)
    return sum(rates)


def _trips(environment: Environment) -> list[Figure]:
    if not peer_http.installed():
        environment.report("awaithumans is not installed: no comparison")
        return []
    seconds, rounds = (0.2, 2) if environment.quick else (1.5, 7)
    figures = []
    with (
        served(environment.new_desk("sqlite")) as (port, token, pid),
        peer_http.served(environment.folder / "peer") as (other, theirs, their_pid),
    ):
        for clients in (1, 8):
            ours = [HttpConnection(port, token) for _ in range(clients)]
            them = [HttpConnection(other, theirs) for _ in range(clients)]
            rates = take_turns(
                {
                    "ours": lambda ours=ours: run_parallel([lambda w=w: _trip(w) for w in ours], seconds),
                    "theirs": lambda them=them: run_parallel([lambda w=w: peer_http.round_trip(w) for w in them], seconds),
                },
                rounds,
            )
            pairs = rates.pairs("ours", "theirs")
            one = f"{clients} clients" if clients > 1 else "1 client"
            figures.append(
                Figure(
                    NAMES["sqlite"], f"create, answer and poll, {one}", f"{rates.median('ours'):,.0f} round trips/s",
                    pairs.times(), f"≥ {_TRIPS:.0f} ×", pairs.median >= _TRIPS,
                    f"awaithumans {peer_http.VERSION}, {rates.median('theirs'):,.0f}/s; "
                    f"memory {memory(pid):.0f} MB against {memory(their_pid):.0f}",
                )
            )  # fmt: skip
            for connection in ours + them:
                connection.close()
    return figures


# --- answers ----------------------------------------------------------------------------------------------------------


def _questions(address: str) -> list[str]:
    with open_desk(address) as desk:
        questions: list[str] = []
        while page := desk.inbox(limit=1000, after=questions[-1] if questions else None):
            questions += [q["id"] for q in page]
    return questions


def _answers(environment: Environment) -> Figure:
    seconds, rounds = (0.2, 2) if environment.quick else (1.0, 11)
    address = environment.new_desk("sqlite")
    fill(address, human=2_000 if environment.quick else 30_000)
    waiting = iter(_questions(address))
    with served(address) as (port, token, _), _bare(environment) as bare:
        ours = [HttpConnection(port, token) for _ in range(8)]
        plain = [HttpConnection(bare) for _ in range(8)]

        def answer(connection: HttpConnection) -> int:
            connection.json("POST", f"/api/questions/{next(waiting)}/answer", {"value": "this"})
            return 1

        def commit(connection: HttpConnection) -> int:
            connection.json("POST", "/answer", {"value": "this"})
            return 1

        rates = take_turns(
            {
                "ours": lambda: run_parallel([lambda w=w: answer(w) for w in ours], seconds),
                "bare": lambda: run_parallel([lambda w=w: commit(w) for w in plain], seconds),
            },
            rounds,
        )
    pairs = rates.pairs("ours", "bare")
    return Figure(
        NAMES["sqlite"], "answers, 8 connections", f"{rates.median('ours'):,.0f}/s", pairs.percent(), f"≥ {_SHARE:.0%}",
        pairs.median >= _SHARE, f"a bare Starlette endpoint with one bare commit, {rates.median('bare'):,.0f}/s",
    )  # fmt: skip


@contextmanager
def _bare(environment: Environment) -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    path = environment.new("sqlite")
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
        assert time.monotonic() < ends, "the server does not start"
        time.sleep(0.05)


# --- watchers ---------------------------------------------------------------------------------------------------------


def _watched(environment: Environment, dialect: str) -> list[Figure]:
    waiting, watchers, each, seconds = (500, 20, 50, 2) if environment.quick else (10_000, 1_000, 200, 60)
    address = environment.new_desk(dialect)
    fill(address, human=waiting + each * seconds)
    asked = _questions(address)[: each * seconds]
    with served(address) as (port, token, pid):
        pools = [_crowd(port, token, watchers // 2) for _ in range(2)]
        for pool in pools:
            assert pool.stdout and pool.stdout.readline() == "ready\n"
        due, took = _answered(port, token, asked, each)
        megabytes = memory(pid)
        results = []
        for pool in pools:
            assert pool.stdin and pool.stdout
            pool.stdin.write(f"{len(asked)}\n")
            pool.stdin.flush()
        for pool in pools:
            assert pool.stdout
            results.append(json.loads(pool.stdout.readline()))
            pool.wait(30)
    once = all(sorted(one["seen"]) == sorted(asked) for one in results) and len({tuple(one["seen"]) for one in results}) == 1
    complete = sum(one["told"] for one in results)
    late = _delays(results, due)
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
            name, "every watcher saw every answer once, in one order", f"{complete:,} of {watchers:,}", "", "all",
            once and complete == watchers, f"{len(asked):,} answers",
        ),
        Figure(name, "the server's memory", f"{megabytes:.0f} MB", "", f"< {_MEMORY:.0f} MB", megabytes < _MEMORY),
    ]  # fmt: skip


def _crowd(port: int, token: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.stream_watchers", str(port), token, str(count)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT)


def _answered(port: int, token: str, asked: list[str], each: int) -> tuple[dict[str, float], list[float]]:
    """The due time of each answer, and milliseconds until each was confirmed."""
    begun = time.monotonic() + 0.5
    due = {question: begun + number / each for number, question in enumerate(asked)}
    left, took, wrong = iter(asked), [], []

    def person() -> None:
        connection = HttpConnection(port, token)
        try:
            for question in left:
                time.sleep(max(0.0, due[question] - time.monotonic()))
                connection.json("POST", f"/api/questions/{question}/answer", {"value": "this"})
                took.append((time.monotonic() - due[question]) * 1000)
        except Exception as error:
            wrong.append(error)
        connection.close()

    people = [threading.Thread(target=person) for _ in range(32)]
    for thread in people:
        thread.start()
    for thread in people:
        thread.join()
    assert not wrong, wrong[0]
    return due, took


def _delays(results: list[dict[str, Any]], due: dict[str, float]) -> list[float]:
    """Milliseconds for each piece of the stream, from the due time of the oldest answer in it."""
    return [(at - due[one["seen"][first]]) * 1000 for one in results for at, first, _ in one["arrivals"]]


def _percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]

"""Section `stale_workers`: workers that are stopped during a task and continue after they have lost their claim.

Every late write × every situation is a process of its own. All of them claim, all are stopped, the clock is wound, others do
what the situation says, and then all are woken and say what they wanted to say. Every one must be told `claim_lost`, and no
row of the database may have changed.
"""

from __future__ import annotations

import random
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.core.states import said
from yourturn.client import Client
from yourturn.config import init
from yourturn.core.errors import YourturnError

from . import Place, Tally
from .ledger import SharedClock, lines
from .processes import Processes
from .roles import LEASE, Stage

WRITES: dict[str, Callable[[Client, str, Any], Any]] = {
    "complete": lambda client, task, claim: client.complete(claim, "late"),
    "ask": lambda client, task, claim: client.ask(task, "late?", claim=claim),
    "heartbeat": lambda client, task, claim: client.heartbeat(claim),
    "decompose": lambda client, task, claim: client.decompose(claim, ["late"]),
    "release": lambda client, task, claim: client.release(claim, "late"),
    "step": lambda client, task, claim: client.record(claim, [said("1")]),
    "rewind": lambda client, task, claim: client.rewind(task, 1, claim=claim),
    "park": lambda client, task, claim: client.park(claim),
    "fail": lambda client, task, claim: client.fail(claim, "late"),
    "flag": lambda client, task, claim: client.flag(task, "late!", claim=claim),
    "update": lambda client, task, claim: client.update(task, title="late", claim=claim),
}
FEW = ["complete", "ask", "heartbeat", "decompose", "release"]  #: for the short form


def stale_worker(address: str, folder: str, task: str, write: str) -> None:
    """Claims, works until it may finish, says one thing, writes down the reply."""
    stage = Stage(address, folder)
    client = stage.client("agent:coder")
    claim = client.claim(task, f"stale_worker-{task}", lease=f"{LEASE}s")["claim"]
    stage.ledger("claimed", task=task)
    while not stage.over():
        time.sleep(0.002)
    try:
        WRITES[write](client, task, claim)
        stage.ledger("said", task=task, reply="accepted")
    except YourturnError as error:
        stage.ledger("said", task=task, reply=error.code)


# --- what has happened meanwhile: each is given (people, the other agent, the key), and the lease is over ----------------


def taken_over(ana: Client, other: Client, key: str) -> Any:
    return other.claim(key, "w2", lease="1d")


def _asked(ana: Client, other: Client, key: str) -> None:
    claim = taken_over(ana, other, key)
    other.ask(key, "Which?", claim=claim)
    other.park(claim)


def _failed(ana: Client, other: Client, key: str) -> None:
    other.fail(taken_over(ana, other, key), "cannot")


def _reopened(ana: Client, other: Client, key: str) -> None:
    _failed(ana, other, key)
    ana.reopen(key)


def _deferred(ana: Client, other: Client, key: str) -> None:
    other.park(taken_over(ana, other, key), "9d")


SITUATIONS: dict[str, Callable[[Client, Client, str], Any]] = {
    "expired": lambda ana, other, key: None,
    "taken over": taken_over,
    "asked and parked": _asked,
    "completed by another": lambda ana, other, key: other.complete(taken_over(ana, other, key), "in time"),
    "cancelled": lambda ana, other, key: ana.cancel(key),
    "failed": _failed,
    "reopened": _reopened,
    "deferred": _deferred,
    "decomposed": lambda ana, other, key: other.decompose(taken_over(ana, other, key), ["a", "b"]),
    "handed to a person": lambda ana, other, key: ana.flag(key, "Stop there"),
}


def run(place: Place) -> Tally:
    tally = Tally()
    luck = random.Random(f"stale_workers {place.dialect} {place.seed}")
    writes = list(WRITES) if place.scale >= 0.05 else FEW
    cells = [(write, situation) for write in writes for situation in SITUATIONS] * max(1, round(4 * place.scale))
    luck.shuffle(cells)
    with tempfile.TemporaryDirectory(prefix="yourturn-stale-") as folder, Processes(Path(folder) / "processes") as processes:
        address = place.new_db()
        init(address, "PROJ", None, {"USER": "ana"})[0].close()
        for start in range(0, len(cells), 30):
            room = Path(folder) / str(start)
            room.mkdir()
            found = _haunt(address, room, processes, cells[start : start + 30])
            tally.violations += [f"{what} (stale_workers, {place.dialect}, seed {place.seed})" for what in found]
            tally.runs += len(cells[start : start + 30])
        tally.violations += processes.troubles()
    return tally


def _haunt(address: str, room: Path, processes: Processes, cells: list[tuple[str, str]]) -> list[str]:
    clock = SharedClock(f"{room}/clock", time.time_ns() // 1000)
    stage = Stage(address, str(room))
    with stage.client("human:ana") as ana, stage.client("agent:other") as other:
        keys = [ana.create(f"{write} when {situation}", max_retries=9)["key"] for write, situation in cells]
        writes = zip(keys, [cell[0] for cell in cells], strict=True)
        children = [processes.start("stale_workers:stale_worker", address, str(room), key, write) for key, write in writes]
        ends = time.monotonic() + 60
        while len(lines(stage.ledger.path)) < len(cells) and time.monotonic() < ends:
            time.sleep(0.005)
        for child in children:
            processes.signal(child, signal.SIGSTOP)
        clock.advance(LEASE + 1)
        wrong = []
        for key, (_, situation) in zip(keys, cells, strict=True):
            try:
                SITUATIONS[situation](ana, other, key)
            except YourturnError as error:
                wrong.append(f"a task whose lease is over should be anybody's, and could not be {situation}: {error}")
        before, shown = _rows(ana), {key: ana.show(key) for key in keys}
        stage.raise_flag("over")
        for child in children:
            processes.signal(child, signal.SIGCONT)
        for child in children:
            processes.wait(child)
        replies = {line["task"]: line["reply"] for line in lines(stage.ledger.path) if line["what"] == "said"}
        if _rows(ana) != before:
            wrong.append("late writes should change no row, and some did")
        for key, (write, situation) in zip(keys, cells, strict=True):
            if replies.get(key) != "claim_lost":
                wrong.append(f"a late {write} of a task that was {situation} should be claim_lost, and was: {replies.get(key)}")
            if ana.show(key) != shown[key]:
                wrong.append(f"a late {write} of a task that was {situation} should change nothing, and {key} is another now")
    return wrong


def _rows(client: Client) -> dict[str, list[str]]:
    tables = ("tasks", "questions", "notes", "deps", "events", "replies", "projects", "workspaces")
    with client.desk.store.reading() as run:
        return {table: sorted(map(repr, run(f"SELECT * FROM {table}").fetchall())) for table in tables}

"""Section `reconcilers`: several processes apply the same due transitions at once, and some of them are killed.

First a desk with many due transitions: leases of killed workers, questions that timed out, dates that have come, finished work to
accept. Two or four reconcilers start at the same moment, and some are killed. Every task's history must then be the one that a
single reconciler writes on an equal desk: each due move exactly once.

Then a load whose workers are killed all the time, with four reconcilers in a loop: no epoch expires twice, no question times out
twice, and an exhausted task leads to one question.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections import Counter
from pathlib import Path

from yourturn.client import Client
from yourturn.config import init
from yourturn.core.model import Event

from . import Place, Tally
from .ledger import SharedClock, lines
from .load import CAST, Load
from .post_crash_checks import everything, health, judge
from .processes import Processes
from .roles import LEASE, Stage

Told = dict[str, list[tuple[str, str, str]]]


# --- roles ------------------------------------------------------------------------------------------------------------


def holder(address: str, folder: str, keys: list[str], ask: list[str]) -> None:
    """Claims, asks, and is killed."""
    stage = Stage(address, folder)
    client = stage.client("agent:coder")
    for key in keys:
        claim = client.claim(key, "w1", lease=f"{LEASE}s")
        if key in ask:
            client.ask(key, "Which?", claim=claim, timeout="10m", default="so")
    stage.ledger("held")
    time.sleep(600)


def once(address: str, folder: str) -> None:
    """Reconciles at a signal."""
    stage = Stage(address, folder)
    client = stage.client("human:ana")
    stage.ledger("ready")
    while not stage.over():
        time.sleep(0.001)
    stage.ledger("reconciled", **client.reconcile())


def restless(address: str, folder: str, name: str, seed: int) -> None:
    """Reconciles until it is over."""
    stage = Stage(address, folder)
    client = stage.client(f"human:{name}")
    while not stage.over():
        if client.reconcile()["failed"]:
            stage.ledger("could not")
        time.sleep(0.005)


# --- debts ------------------------------------------------------------------------------------------------------------


def _indebted(address: str, room: Path, processes: Processes, size: int, start: int) -> Stage:
    """A desk on which a move of every kind is owed `size` times."""
    room.mkdir()
    init(address, "PROJ", None, {"USER": "ana"})[0].close()
    clock = SharedClock(f"{room}/clock", start)
    stage = Stage(address, str(room))
    with stage.client("human:ana") as ana, stage.client("agent:coder") as coder:
        ana.set("review", "2h")
        held, asked = [], []
        for i in range(size):
            held += [ana.create(f"{i} expires")["key"], ana.create(f"{i} is exhausted", max_retries=1)["key"]]
            asked.append(ana.create(f"{i} expires and times out")["key"])
            for how in ("default", "fail", "remind", "defer", "escalate", "stuck"):
                key = ana.create(f"{i} times out: {how}")["key"]
                ana.create(f"{i} waits for {how}", depends_on=[key])
                coder.ask(key, "?", timeout="10m", on_timeout=how, **({"default": "so"} if how == "default" else {}))
            coder.park(coder.claim(ana.create(f"{i} wakes")["key"], "w2"), "1h")
            epic = ana.create(f"{i} has parts", type="epic")["key"]
            for parent in (None, epic):
                key = ana.create(f"{i} is accepted, within {parent and 'the whole'}", parent=parent)["key"]
                coder.complete(coder.claim(key, "w3"), "done")
        child = processes.start("reconcilers:holder", address, str(room), held + asked, asked)
        _until(stage, "held", 1)
        processes.kill(child)
        clock.advance(3 * 3600)
    return stage


def _until(stage: Stage, what: str, count: int) -> None:
    ends = time.monotonic() + 60
    while sum(line["what"] == what for line in lines(stage.ledger.path)) < count:
        if time.monotonic() > ends:
            raise TimeoutError(f"waited for {count} × {what}")
        time.sleep(0.002)


def _told(client: Client) -> Told:
    """title -> what happened to it, without names and numbers that depend on who came first."""
    titles = {task["key"]: task["title"] for task in client.list(limit=10_000)}
    found: Told = {}
    for event in everything(client):
        data = json.loads(event.data)
        found.setdefault(titles.get(event.task or "", ""), []).append((event.action, event.actor, str(data.get("to"))))
    return found


def _at_once(
    place: Place, folder: Path, processes: Processes, many: int, deaths: int, size: int, luck: random.Random
) -> list[str]:
    start = time.time_ns() // 1000
    alone = _indebted(place.new_db(), folder / "alone", processes, size, start)
    with alone.client("human:ana") as client:
        owed = client.reconcile()["moved"]
        expected = _told(client)
    stage = _indebted(place.new_db(), folder / "many", processes, size, start)
    children = [processes.start("reconcilers:once", stage.address, stage.folder) for _ in range(many)]
    _until(stage, "ready", many)
    stage.raise_flag("over")
    for child in luck.sample(children, deaths):
        time.sleep(luck.random() * 0.05)
        processes.kill(child)
    for child in children:
        processes.wait(child)
    said = [line for line in lines(stage.ledger.path) if line["what"] == "reconciled"]
    wrong = [f"a reconciler should manage everything, and could not: {line}" for line in said if line["failed"]]
    with stage.client("human:ana") as client:
        left = client.reconcile()
        if left["moved"] or left["failed"]:
            wrong.append(f"reconcilers should leave nothing, and the next one found {left}")
        if not deaths and sum(line["moved"] for line in said) > owed:
            wrong.append(f"{owed} tasks were owed a move, and {many} reconcilers say that they moved {said}")
        told = _told(client)
        wrong += health(client)
    for title in expected.keys() | told.keys():
        if told.get(title) != expected.get(title):
            both = f"{told.get(title)}, alone: {expected.get(title)}"
            wrong.append(f"{many} reconcilers should do what one does, and {title!r}: {both}")
    return wrong


# --- while workers die ------------------------------------------------------------------------------------------------


def _crowded(place: Place, folder: Path, processes: Processes, kills: int) -> list[str]:
    folder.mkdir()
    cast = [*CAST, *[("reconcilers:restless", "r")] * 4]
    load = Load(place, folder, processes, cast)
    load.fire(processes.kills + kills)
    ended = load.drain()
    load.leave()
    wrong, _ = judge(load.stage, ended, load.stops)
    with load.stage.client("human:ana") as client:
        wrong += _paid_once(everything(client))
    if any(line["what"] == "could not" for line in lines(load.stage.ledger.path)):
        wrong.append("a reconciler should manage everything, and could not")
    return wrong


def _paid_once(events: list[Event]) -> list[str]:
    made: Counter[str] = Counter()
    epochs: dict[str, int] = {}
    asked: dict[str, str] = {}
    for event in events:
        data, key = json.loads(event.data), event.task or ""
        if event.action == "claim":
            epochs[key] = data["set"]["epoch"]
        if event.action == "expire":
            made[f"{key} expired in epoch {epochs[key]}"] += 1
        for q in data.get("closed", ()):
            if q["status"] == "timeout":
                made[f"Q{q['id']} of {key} timed out"] += 1
            asked = {task: number for task, number in asked.items() if number != q["id"] or q["status"] == "pending"}
        for q in data.get("opened", ()):
            if q.get("reason") == "retry_exhausted" and key in asked:
                made[f"a person was asked about the tries of {key} while Q{asked[key]} was open"] += 2
            if q.get("reason") == "retry_exhausted":
                asked[key] = q["id"]
    return [f"an owed move should be made once, and {what} {count} times" for what, count in made.items() if count > 1]


def run(place: Place) -> Tally:
    tally = Tally()
    luck = random.Random(f"reconcilers {place.dialect} {place.seed}")
    with tempfile.TemporaryDirectory(prefix="yourturn-reconcilers-") as name, Processes(Path(name) / "processes") as processes:
        for number in range(max(2, round(20 * place.scale))):
            many, deaths = ((2, 0), (4, 2), (4, 0), (2, 1))[number % 4]
            size = 3 if place.scale < 0.1 else 8
            room = Path(name) / str(number)
            room.mkdir()
            found = _at_once(place, room, processes, many, deaths, size, luck)
            tally.violations += [f"{what} (reconcilers, {place.dialect}, seed {place.seed}, round {number})" for what in found]
            tally.runs += 1
        if place.scale >= 0.05:
            found = _crowded(place, Path(name) / "load", processes, round(100 * place.scale))
            tally.violations += [f"{what} (reconcilers, {place.dialect}, seed {place.seed})" for what in found]
            tally.runs += 1
        tally.kills = processes.kills
        tally.violations += processes.troubles()
    return tally

"""Section `failpoints`: a process is killed at each point of each change; the change is complete or absent.

For every operation the scene is first played to its end with the points recorded: that says what the whole effect is. Then it
is set again for each point, and the actor, a process of its own, is killed there with SIGKILL. Before the commit nothing may
have changed at all; after it, everything must be as in the play that was not disturbed; and what the actor had been told is
in its ledger. Said again, with the same idempotency key where the verb takes one, the move has one effect in all.
"""

from __future__ import annotations

import json
import random
import signal
import tempfile
from pathlib import Path
from typing import Any

from tests.core.states import Bench
from yourturn import strict
from yourturn.client import Client
from yourturn.config import connect, init
from yourturn.core.errors import YourturnError
from yourturn.db.failpoints import POINTS
from yourturn.health import doctor
from yourturn.testing import FakeClock

from . import Place, Tally
from .operations import FOUNDING, OPERATIONS, Facts, Operation, company
from .process_pool import ProcessPool

#: How many plays are given on one desk, so that looking at all of it stays cheap.
_PLAYS = 24
_LATE = ("after-commit", "after-reply")
ALL_POINTS = 0.1
_START = 1_790_000_000_000_000


_UNSHOWN = (
    "SELECT id, password FROM users ORDER BY id", "SELECT id, ended_at FROM logins ORDER BY id",
    "SELECT id, used_at FROM links ORDER BY id", "SELECT actor, body FROM prefs ORDER BY actor",
)  # fmt: skip


class Stage:
    """A desk, and who plays on it."""

    def __init__(self, address: str, pool: ProcessPool, folder: Path) -> None:
        init(address, "PROJ", None, {"USER": "ana"})[0].close()
        self.address, self.pool = address, pool
        self.clock = FakeClock(_START)
        self.desk, self.agent = self._open("human:ana"), self._open("agent:coder")
        self.bench = Bench(self.desk, self.agent, self.clock)
        self.ledger, self.diary = folder / "ledger", folder / "diary"
        self.plays = 0

    def _open(self, who: str) -> Client:
        return connect(self.address, as_=who, project="PROJ", clock=self.clock, env={})

    def set(self, operation: Operation, crowded: bool) -> Facts:
        self.plays += 1
        if operation.minutes:  # no other time limit may expire
            for task in self.desk.list(state=("working", "human")):
                self.desk.cancel(task)
        facts = operation.bring(self.bench)
        if crowded:
            company(self.bench, facts)
        self.clock.advance(minutes=operation.minutes)
        return facts

    def play(self, number: int, facts: Facts, fault: str, key: str | None) -> tuple[int, list[dict[str, Any]]]:
        """How the actor ended, and what it had been told."""
        for file in (self.ledger, self.diary):
            file.unlink(missing_ok=True)
        ended = self.pool(
            address=self.address, operation=number, facts=facts, fault=fault, key=key, at=self.clock(), ledger=str(self.ledger)
        )
        told = self.ledger.read_text().splitlines() if self.ledger.exists() else []
        return ended, [json.loads(line) for line in told]

    def recorded(self) -> list[str]:
        return self.diary.read_text().splitlines() if self.diary.exists() else []

    def dump(self) -> tuple[str, int]:
        """All that the API shows, what it keeps to itself about people, and how long the log is."""
        with strict.as_written(self.desk) as seen:
            shown = [seen.list(limit=10_000, whole=True), seen.inbox(limit=10_000), seen.users(), seen.tokens(), seen.projects()]
            shown += [[list(row) for row in seen.desk.reader.run(text).fetchall()] for text in _UNSHOWN]
            newest = seen.history(limit=1)
        return json.dumps(shown), newest[0]["seq"] if newest else 0

    def told_since(self, seq: int, facts: Facts) -> list[tuple[Any, ...]]:
        """The events since then, with tasks named by their part in the scene."""
        parts = {str(facts[name]): name for name in ("task", "needs", "epic") if name in facts}
        found = []
        for event in self.desk.history(after=seq, limit=10_000):
            part = parts.setdefault(str(event["task"]), f"another {len(parts)}")
            found.append((event["action"], part, event["data"].get("from"), event["data"].get("to")))
        return found

    def sick(self) -> list[str]:
        found = strict.examine(self.desk)
        found += [f"doctor: {line['check']}: {line['words']}" for line in doctor.examine(self.desk) if line["status"] == "bad"]
        return found

    def close(self) -> None:
        self.desk.close()
        self.agent.close()


def run(place: Place) -> Tally:
    """Scale 1 kills every operation at every point alone, and twice in company. Below 1 each point once, in company; below
    ALL_POINTS each operation at one point only, another one for the next operation."""
    tally, chance = Tally(), random.Random(place.seed)
    rounds = [True, False, True] * round(place.scale) if place.scale >= 1 else [True]
    with tempfile.TemporaryDirectory(prefix="yourturn-failpoints-") as folder, ProcessPool() as pool:
        stage: Stage | None = None
        for crowded in rounds:
            for number in chance.sample(numbers(place), len(numbers(place))):
                if stage is None or stage.plays > _PLAYS:
                    if stage is not None:
                        tally.violations += [f"before operation {number} (seed {place.seed}): {words}" for words in stage.sick()]
                        stage.close()
                    stage = Stage(place.new_db(), pool, Path(folder))
                _every_point(stage, number, crowded, tally, place)
            _founding(place, pool, Path(folder), tally)
            _restoring(place, pool, Path(folder), tally)
        if stage is not None:
            tally.violations += [f"at the end (seed {place.seed}): {words}" for words in stage.sick()]
            stage.close()
    return tally


def numbers(place: Place) -> range:
    """The operations to kill. The short form takes all on SQLite, and a third of them on PostgreSQL."""
    return range(0, len(OPERATIONS), 3 if place.dialect == "postgres" and place.scale < ALL_POINTS else 1)


def points(place: Place, number: int) -> tuple[str, ...]:
    """At which points the operation of that number is killed."""
    return POINTS if place.scale >= ALL_POINTS else (POINTS[(number + place.seed) % len(POINTS)],)


def _every_point(stage: Stage, number: int, crowded: bool, tally: Tally, place: Place) -> None:
    operation = OPERATIONS[number]

    def wrong(words: str) -> None:
        tally.violations.append(f"{operation.verb} (operation {number}, seed {place.seed}): {words}")

    facts = stage.set(operation, crowded)
    _, before = stage.dump()
    ended, told = stage.play(number, facts, f"record:{stage.diary}", None)
    tally.runs += 1
    if ended != 0 or len(told) != 1 or "ok" not in told[0]:
        wrong(f"undisturbed, it should succeed, and ended with {ended}: {told}")
        return
    missing = [point for point in POINTS if f"{operation.change}:{point}" not in stage.recorded()]
    if missing:
        wrong(f"it should pass every failpoint, and does not pass {', '.join(missing)}")
    whole = stage.told_since(before, facts)
    for point in points(place, number):
        tally.runs += 1
        _one_point(stage, number, crowded, point, whole, tally, wrong)
        if place.scale >= 1:  # damage stays: the short form checks each desk once, at its end
            for words in stage.sick():
                wrong(f"killed at {point}: {words}")


def _one_point(stage: Stage, number: int, crowded: bool, point: str, whole: Any, tally: Tally, wrong: Any) -> None:
    operation = OPERATIONS[number]
    facts = stage.set(operation, crowded)
    key = f"k{stage.plays}" if operation.keyed else None
    shown, seq = stage.dump()
    ended, told = stage.play(number, facts, f"{operation.change}:{point}", key)
    if ended != -signal.SIGKILL:
        wrong(f"it should be killed at {point}, and ended with {ended}: {told}")
        return
    tally.kills += 1
    after, last = stage.dump()
    if bool(told) != (point == "after-reply"):
        wrong(f"killed at {point}, it was told {told}")
    if point in _LATE and (after == shown or stage.told_since(seq, facts) != whole):
        wrong(f"killed at {point}, it should be wholly there, and there is {stage.told_since(seq, facts)} instead of {whole}")
    if point not in _LATE and (after != shown or last != seq):
        wrong(f"killed at {point}, nothing should have changed, and there is {stage.told_since(seq, facts)}")
    if point not in _LATE or key is not None:
        _again(stage, number, facts, key, seq, told, whole, lambda words: wrong(f"killed at {point}, and said again: {words}"))


def _again(stage: Stage, number: int, facts: Facts, key: str | None, seq: int, told: Any, whole: Any, wrong: Any) -> None:
    again, said = stage.play(number, facts, "record:/dev/null", key)
    if again != 0 or "ok" not in said[0]:
        wrong(f"it should succeed, and ended with {again}: {said}")
    elif stage.told_since(seq, facts) != whole:
        wrong(f"it should have one effect in all, and there is {stage.told_since(seq, facts)} instead of {whole}")
    elif told and not _same(told[0]["ok"], said[0]["ok"]):
        wrong(f"it should give the same reply with the same key: {told[0]['ok']}, and then {said[0]['ok']}")


def _same(first: Any, second: Any) -> bool:
    """The same task, question and epoch: a claim's token is not kept, so it is made anew."""
    for name in ("key", "id", "task"):
        if isinstance(first, dict) and name in first:
            return _same(first[name], second[name])
    return bool(first == second)


def _founding(place: Place, pool: ProcessPool, folder: Path, tally: Tally) -> None:
    """A desk that was half made is finished by saying it again."""
    for number, change in enumerate(FOUNDING):
        for point in points(place, number):
            address, ledger = place.new_db(), folder / "ledger"
            ledger.unlink(missing_ok=True)
            tally.runs += 1

            def wrong(words: str, change: str = change, point: str = point) -> None:
                tally.violations.append(f"init killed at {change}:{point} (seed {place.seed}): {words}")

            fault = f"{change}:{point}"
            ended = pool(address=address, operation="init", facts={}, fault=fault, key=None, at=0, ledger=str(ledger))
            if ended != -signal.SIGKILL:
                wrong(f"it should be killed, and ended with {ended}: {ledger.read_text() if ledger.exists() else ''}")
                continue
            tally.kills += 1
            if ledger.exists() != (point == "after-reply"):
                wrong("its reply is in the ledger, or is missing there")
            if point == "after-reply":
                _well(address, wrong)
            try:
                init(address, "PROJ", None, {"USER": "ana"})[0].close()
            except YourturnError as error:
                wrong(f"said again, it should finish, and failed: {error}")
                continue
            _well(address, wrong)


def _restoring(place: Place, pool: ProcessPool, folder: Path, tally: Tally) -> None:
    """The old desk or the new one, whole; and nothing that was handed out before counts on the new one."""
    file, ledger, address = folder / "desk.jsonl", folder / "ledger", place.new_db()
    init(address, "PROJ", None, {"USER": "ana"})[0].close()
    with connect(address, as_="human:ana", env={}) as desk:
        token = desk.claim(desk.create("From the backup"), "w1")["claim"]["token"]
        desk.export(str(file))
    for point in points(place, len(FOUNDING)):
        target = place.new_db()
        init(target, "PROJ", None, {"USER": "ana"})[0].close()
        ledger.unlink(missing_ok=True)
        tally.runs += 1

        def wrong(words: str, point: str = point) -> None:
            tally.violations.append(f"restore killed at {point} (seed {place.seed}): {words}")

        def order(fault: str, target: str = target) -> int:
            facts = {"file": str(file)}
            return pool(address=target, operation="restore", facts=facts, fault=fault, key=None, at=0, ledger=str(ledger))

        with connect(target, as_="human:ana", env={}) as desk:
            desk.create("Was here")
            if order(f"restore:{point}") != -signal.SIGKILL:
                wrong("it should be killed, and was not")
                continue
            tally.kills += 1
            if ledger.exists() != (point == "after-reply"):
                wrong("its reply is in the ledger, or is missing there")
            there = [task["title"] for task in desk.list()]
            if there != (["From the backup"] if point in _LATE else ["Was here"]):
                wrong(f"there is {there}")
            if point not in _LATE and order("record:/dev/null") != 0:
                wrong("said again, it should succeed")
        with connect(target, as_="human:ana", env={}) as desk:
            if (task := desk.show("PROJ-1"))["title"] != "From the backup" or task["claim"]:
                wrong(f"there should be what was in the backup, unclaimed, and there is {task}")
            try:
                desk.heartbeat(token)
                wrong("a claim from before still counts")
            except YourturnError:
                pass
        _well(target, wrong)
        for aside in folder.glob("*.before-restore.*"):
            aside.unlink()


def _well(address: str, wrong: Any) -> None:
    with connect(address, as_="human:ana", env={}) as desk:
        if [project["key"] for project in desk.projects()] != ["PROJ"]:
            wrong(f"there should be one project, and there are {desk.projects()}")
        desk.create("It works")
        for words in strict.examine(desk) + [line["words"] for line in doctor.examine(desk) if line["status"] == "bad"]:
            wrong(words)

"""What each process of a load does: agents, people, a user of the `turn` command, and the creator of tasks.

Each reply of the desk is written to the ledger at once, with a mark that only this reply has. An agent writes to the ledger
before and after an outside effect, with the end of its lease as it knows it. All roles use the shared clock, except the user of
the command, which has only the database's clock; here it is behind the shared one.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from yourturn.client import Client
from yourturn.config import connect
from yourturn.core.errors import Busy, ClaimLost, Precondition, StoreTrouble, YourturnError

from .ledger import SECOND, Ledger, SharedClock, lines

LEASE = 60  #: seconds, by the shared clock
OPEN_AT_ONCE = 60
TURN = str(Path(sys.executable).parent / "turn")
#: Errors that a person may get when another actor, or a time limit, was faster.
LATE = {"already_answered", "illegal_move", "precondition", "not_found", "invalid"}


class Stage:
    """Where a load plays: a database, and a folder with the clock, the ledger and the flags."""

    def __init__(self, address: str, folder: str) -> None:
        self.address, self.folder = address, folder
        self.clock = SharedClock(f"{folder}/clock")
        self.ledger = Ledger(f"{folder}/ledger")

    def client(self, who: str) -> Client:
        return connect(self.address, as_=who, project="PROJ", clock=self.clock, env={})

    def over(self) -> bool:
        return os.path.exists(f"{self.folder}/over")

    def troubled(self) -> bool:
        """Is the database expected to fail now and then?"""
        return os.path.exists(f"{self.folder}/troubled")

    def enough(self) -> bool:
        return os.path.exists(f"{self.folder}/enough")

    def raise_flag(self, name: str) -> None:
        Path(self.folder, name).touch()


def micros(stamp: str) -> int:
    moment = datetime.fromisoformat(stamp)
    return int(moment.timestamp()) * SECOND + moment.microsecond


# --- agents -----------------------------------------------------------------------------------------------------------


class Agent:
    """Claims, acts outside, says how it went; never looks whether its lease has ended."""

    def __init__(self, stage: Stage, name: str, seed: int) -> None:
        self.stage, self.name = stage, name
        self.luck = random.Random(seed)
        self.client = stage.client("agent:coder")
        self.task, self.epoch, self.until = "", 0, 0

    def live(self) -> None:
        while not self.stage.over():
            got = tolerant(self.stage, lambda: self.client.claim_next(self.name, lease=f"{LEASE}s"))
            if got is None:
                time.sleep(0.01)
                continue
            claim = got["claim"]
            self.task, self.epoch, self.until = claim["task"], claim["epoch"], micros(claim["expires_at"])
            self.write("claimed")
            self.work(claim)

    def work(self, claim: dict[str, Any]) -> None:
        self.write("begin")
        if self.luck.random() < 0.3:
            time.sleep(self.luck.random() * 0.004)
        if self.luck.random() < 0.3 and not self.beat(claim):
            self.write("end")
            return
        self.write("end")
        self.finish(claim, self.luck.random())

    def finish(self, claim: dict[str, Any], dice: float) -> None:
        mark = f"{self.task}/{self.epoch}/{self.name}"
        client, task = self.client, self.task
        if dice < 0.15:
            asked = self.say("ask", lambda: client.ask(task, mark, claim=claim, **self.manner()), mark)
            if asked is not None:
                self.say("park", lambda: client.park(claim))
        elif dice < 0.20:
            self.say("ask", lambda: client.ask(task, mark, claim=claim, blocking=False, default="as usual"), mark)
            self.say("complete", lambda: client.complete(claim, mark), mark)
        elif dice < 0.25:
            self.say("release", lambda: client.release(claim, mark), mark)
        elif dice < 0.28:
            self.say("park", lambda: client.park(claim, "40s"))
        elif dice < 0.30:
            self.say("decompose", lambda: client.decompose(claim, [f"{mark} a", f"{mark} b"]))
        elif dice < 0.32:
            self.say("fail", lambda: client.fail(claim, mark), mark)
        else:
            self.say("complete", lambda: client.complete(claim, mark, key=mark), mark)

    def manner(self) -> dict[str, Any]:
        choice, soon = {"options": ["jwt", "sessions"]}, {"timeout": "5m", "default": "so"}
        return self.luck.choice([{}, choice, soon, {"kind": "checkpoint"}, {"kind": "escalation"}])

    def beat(self, claim: dict[str, Any]) -> bool:
        asked_at = self.stage.clock()
        if self.say("heartbeat", lambda: self.client.heartbeat(claim)) is None:
            return False
        self.until = max(self.until, asked_at + LEASE * SECOND)
        return True

    def say(self, verb: str, move: Callable[[], Any], mark: str = "") -> Any:
        """What the desk replied, or None when the claim is lost. Written down either way."""
        at = self.stage.clock()
        try:
            found = patient(move)
        except (ClaimLost, Precondition) as error:
            if isinstance(error, Precondition) and "open children" not in str(error):  # a child had ended and was reopened
                raise
            self.write("refused", verb=verb, said=at, mark=mark, code=error.code)
            return None
        except StoreTrouble as error:
            if not self.stage.troubled():
                raise
            self.write("unknown", verb=verb, said=at, mark=mark, code=error.code)
            return None  # it may have been done or not: the task is left to the next worker after the lease
        extra = {"question": found["id"]} if verb == "ask" else {}
        self.write("done", verb=verb, said=at, mark=mark, **extra)
        return found

    def write(self, what: str, **more: Any) -> None:
        place = {"task": self.task, "epoch": self.epoch, "worker": self.name, "at": self.stage.clock(), "until": self.until}
        self.stage.ledger(what, **place, **more)


def tolerant(stage: Stage, move: Callable[[], Any]) -> Any:
    """What the desk replied; None in trouble, where trouble is expected."""
    try:
        return patient(move)
    except StoreTrouble as error:
        if not stage.troubled():
            raise
        stage.ledger("trouble", code=error.code, said=str(error), hint=error.hint)
        return None


def patient(move: Callable[[], Any]) -> Any:
    """A busy database says so; then it is asked again."""
    for _ in range(20):
        try:
            return move()
        except Busy:
            time.sleep(0.01)
    return move()


def agent(address: str, folder: str, name: str, seed: int) -> None:
    Agent(Stage(address, folder), name, seed).live()


# --- people -----------------------------------------------------------------------------------------------------------


def person(address: str, folder: str, name: str, seed: int) -> None:
    """Answers what waits; sees to what failed, and to what was reopened."""
    stage = Stage(address, folder)
    luck = random.Random(seed)
    client = stage.client(f"human:{name}")
    while not stage.over():
        waiting = tolerant(stage, lambda: client.inbox(limit=8)) or []
        luck.shuffle(waiting)
        for item in waiting:
            _judge(stage, client, luck, item, f"{item['id']}/{name}/{luck.randrange(10**9)}")
        for task in tolerant(stage, lambda: client.list(state="failed", limit=4)) or ():
            move = client.reopen if luck.random() < 0.3 else client.cancel
            _tried(stage, lambda key=task["key"], move=move: move(key))
        for task in tolerant(stage, lambda: client.list(state="created", limit=4)) or ():
            _tried(stage, lambda key=task["key"]: client.vet(key))
        if not waiting:
            time.sleep(0.01)


def _judge(stage: Stage, client: Client, luck: random.Random, item: dict[str, Any], mark: str) -> None:
    number = item["id"]
    if luck.random() < 0.1:
        verb, move = "reject", lambda: client.reject(number, mark)
    elif item["response_type"] == "approval":
        verb, move = "approve", lambda: client.approve(number, mark)
    elif item["options"]:
        verb, move = "answer", lambda: client.answer(number, luck.choice(item["options"]), mark)
    else:
        verb, move = "answer", lambda: client.answer(number, mark)
    if _tried(stage, move) is not None:
        stage.ledger("answered", question=number, task=item["task"], verb=verb, mark=mark)


def _tried(stage: Stage, move: Callable[[], Any]) -> Any:
    """What the desk replied; None if another actor, or a time limit, was faster."""
    try:
        return tolerant(stage, move)
    except YourturnError as error:
        if error.code not in LATE:
            raise
        return None


def typist(address: str, folder: str, name: str, seed: int) -> None:
    """A person with the real command, one process per line."""
    stage = Stage(address, folder)
    env = {"PATH": os.environ["PATH"], "HOME": folder, "USER": name, "YOURTURN_DB": address}

    def turn(*words: str) -> tuple[int, Any]:
        done = subprocess.run([TURN, *words, "--json"], env=env, cwd=folder, capture_output=True, text=True, timeout=60)
        assert "Traceback" not in done.stderr and done.returncode in (0, 1, 4, 6), (words, done)
        said = json.loads(done.stdout or done.stderr)
        assert done.returncode != 1 or (stage.troubled() and said["error"]["code"] == "store"), (words, done)
        return done.returncode, said

    while not stage.over():
        code, waiting = turn("inbox", "--limit", "4")
        for item in waiting if code == 0 else ():
            if item["response_type"] != "text" or not item["id"].startswith("Q"):
                continue
            mark = f"{item['id']}/{name}/{seed}"
            if turn("respond", item["id"], mark)[0] == 0:
                stage.ledger("answered", question=item["id"], task=item["task"], verb="answer", mark=mark)
        time.sleep(0.2)


# --- work -------------------------------------------------------------------------------------------------------------


def boss(address: str, folder: str, name: str, seed: int) -> None:
    """Brings work while there is little. Each task has a number and an idempotency key: a successor repeats the last one."""
    stage = Stage(address, folder)
    client = stage.client("human:ana")
    known = [line for line in lines(f"{folder}/ledger") if line["what"] == "created"]
    number = len(known)
    keys = [line["task"] for line in known[-40:]]
    while not stage.enough():
        counts = tolerant(stage, client.counts)
        if counts is None or sum(counts.get(state, 0) for state in ("ready", "blocked", "working", "human")) >= OPEN_AT_ONCE:
            time.sleep(0.02)
            continue
        luck = random.Random(number)
        fields: dict[str, Any] = {"priority": luck.randrange(5), "max_retries": luck.choice((2, 5, 100))}
        if keys and luck.random() < 0.25:
            fields["depends_on"] = sorted(set(luck.choices(keys[-5:], k=2)))
        if luck.random() < 0.1:
            fields["requires"] = "approval"
        if luck.random() < 0.03:
            fields["awaiting"] = "work"
        made = tolerant(stage, lambda n=number, fields=fields: client.create(f"Task {n}", key=f"task-{n}", **fields))
        if made is None:
            continue
        stage.ledger("created", number=number, task=made["key"])
        keys.append(made["key"])
        number += 1

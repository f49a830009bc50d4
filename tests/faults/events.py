"""Section `events`: readers that are killed follow eight writers that are killed; then the log is tampered with.

A reader writes down what it has seen and its cursor in one line, and goes on from the last line when it is born again. What
all its lives have seen together must be the whole log, each event once, and in an order that respects causes:

- a chain in the order of its numbers;
- across tasks, nothing before what it needs: a task is claimed or unblocked after what it waited for has ended, and born
  after what it waits for was born;
- a change that was acknowledged before another one started comes before it, in whichever processes the two ran.

One process holds transactions open between the writers, so that commits and numbers come in different orders.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from yourturn.client import Client
from yourturn.config import init
from yourturn.core.errors import YourturnError
from yourturn.core.model import Event
from yourturn.health import audit

from . import Place, Tally, tampering
from .ledger import SharedClock, lines
from .post_crash_checks import everything
from .processes import Processes
from .roles import Stage, patient

WRITERS = 8
RESOLVED = {"done", "cancelled"}


# --- roles ------------------------------------------------------------------------------------------------------------


class Writer:
    """Writes on tasks that all share, and on families of its own; each reply with the time that it took."""

    def __init__(self, stage: Stage, name: str, seed: int) -> None:
        self.stage, self.name, self.count = stage, name, 0
        self.luck = random.Random(seed)
        self.client = stage.client(f"human:{name}")

    def live(self) -> None:
        while not self.stage.enough():
            self.luck.choice((self.shared, self.shared, self.chain, self.family))()

    def say(self, move: Callable[[str], Any]) -> Any:
        self.count += 1
        mark = f"<{self.name}.{self.count}>"
        began = time.monotonic_ns()
        try:
            found = patient(lambda: move(mark))
        except YourturnError as error:
            if error.exit_code == 4:
                return None
            raise
        self.stage.ledger("acked", mark=mark, began=began, ended=time.monotonic_ns())
        return found

    def shared(self) -> None:
        key = f"PROJ-{self.luck.randint(1, 3)}"
        self.say(lambda mark: self.client.note(key, mark))

    def chain(self) -> None:
        """B waits for A: when A is done, the same commit frees B, and a worker claims B."""
        first = self.say(lambda mark: self.client.create(mark))
        second = self.say(lambda mark: self.client.create(mark, depends_on=[first]))
        self.say(lambda mark: self.client.close(first["key"], mark))
        claim = patient(lambda: self.client.claim(second["key"], self.name))
        self.say(lambda mark: self.client.complete(claim, mark))

    def family(self) -> None:
        epic = self.say(lambda mark: self.client.create(mark, type="epic"))
        children = [self.say(lambda mark: self.client.create(mark, parent=epic)) for _ in range(2)]
        for child in children:
            self.say(lambda mark, child=child: self.client.close(child["key"], mark))


def writer(address: str, folder: str, name: str, seed: int) -> None:
    Writer(Stage(address, folder), name, seed).live()


def reader(address: str, folder: str, name: str, watches: bool) -> None:
    """Goes on from its last line. One write per line: what is seen and where to go on are never apart."""
    stage = Stage(address, folder)
    client = stage.client("human:ana")
    path = f"{folder}/read-{name}"
    if os.path.exists(path):
        whole = Path(path).read_bytes()
        os.truncate(path, whole.rfind(b"\n") + 1)
    before = lines(path)
    cursor = before[-1]["cursor"] if before else "0.0.0"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    luck = random.Random(f"{name} {len(before)}")
    while True:
        over = stage.over()
        seen = 0
        for page, after in _pages(client, cursor, luck, watches and not over):
            line = {"cursor": after, "events": [list(event) for event in page]}
            os.write(fd, json.dumps(line).encode() + b"\n")
            seen += len(page)
            cursor = after
        if over and not seen:
            return


def _pages(client: Client, cursor: str, luck: random.Random, watches: bool) -> Iterator[tuple[list[Event], str]]:
    if watches:
        for after, event in client.desk.watch(cursor, 0.3):
            yield [event], after
        return
    while True:
        found, cursor = client.desk.events(cursor, luck.choice((1, 3, 50)))
        if not found:
            return
        yield [event for _, event in found], cursor


def dawdler(address: str, folder: str) -> None:
    """Opens a transaction that writes, lets it lie, and ends it either way."""
    stage = Stage(address, folder)
    store = stage.client("human:ana").desk.store
    luck = random.Random(1)
    while not stage.enough():
        try:
            with store.begin() as run:
                if store.dialect == "postgres":
                    run("SELECT pg_current_xact_id()")
                    time.sleep(luck.random() * 0.1)
                if luck.random() < 0.5:
                    raise InterruptedError
        except InterruptedError:
            pass
        time.sleep(0.01)


# --- the section ------------------------------------------------------------------------------------------------------


def run(place: Place) -> Tally:
    tally = Tally()
    luck = random.Random(f"events {place.dialect} {place.seed}")
    with tempfile.TemporaryDirectory(prefix="yourturn-events-") as name, Processes(Path(name) / "processes") as processes:
        found, tally.runs = _follow(place, Path(name), processes, luck, max(8, round(250 * place.scale)))
        tally.kills = processes.kills
        found += processes.troubles()
    tried, missed = tampering.run(place, luck)
    tally.runs += tried
    tally.violations = [f"{what} (events, {place.dialect}, seed {place.seed})" for what in found + missed]
    return tally


def _follow(place: Place, folder: Path, processes: Processes, luck: random.Random, kills: int) -> tuple[list[str], int]:
    address = place.new_db()
    client, _ = init(address, "PROJ", None, {"USER": "ana"})
    with client:
        for _ in range(3):
            client.create("Everybody's")
    SharedClock(f"{folder}/clock", time.time_ns() // 1000)
    stage = Stage(address, str(folder))
    cast: dict[int, tuple[Any, ...]] = {}
    born = 0

    def enter(role: str, *args: Any) -> None:
        nonlocal born
        born += 1
        last = [f"w{born}", luck.randrange(2**32)] if role == "writer" else args
        cast[processes.start(f"events:{role}", address, str(folder), *last)] = (role, *args)

    for part in [("writer",)] * WRITERS + [("reader", "pages", False), ("reader", "watches", True), ("dawdler",)]:
        enter(*part)
    while processes.kills < kills:
        time.sleep(0.01)
        if os.path.getsize(stage.ledger.path) < 1500 * processes.kills:
            continue
        role = luck.choice(("reader", "writer", "writer"))
        child = luck.choice([child for child, part in cast.items() if part[0] == role])
        processes.kill(child)
        enter(*cast.pop(child))
    stage.raise_flag("enough")
    for child in [child for child, part in cast.items() if part[0] != "reader"]:
        processes.wait(child)
        del cast[child]
    stage.raise_flag("over")
    for child in cast:
        processes.wait(child)
    with stage.client("human:ana") as client:
        whole = everything(client)
        wrong = [f"the history should verify, and does not: {p}" for p in audit.verify(client)["problems"][:3]]
        stored = client.desk.read_stored(lambda r: [e.seq for e in r.log.chain(-1, 10**6)])
        if sorted(e.seq for e in whole) != stored:
            wrong.append(f"a new reader should see all {len(stored)} events, and saw {len(whole)}")
    acked = {line["mark"]: line for line in lines(stage.ledger.path) if line["what"] == "acked"}
    for name in ("pages", "watches"):
        seen = [Event(*event) for line in lines(f"{folder}/read-{name}") for event in line["events"]]
        wrong += [f"the reader that {name}: {what}" for what in _in_order(seen, stored, acked)]
    return wrong, len(whole)


def _in_order(seen: list[Event], stored: list[int], acked: dict[str, Any]) -> Iterator[str]:
    numbers = [event.seq for event in seen]
    if len(set(numbers)) != len(numbers):
        yield f"each event should be seen once, and {len(numbers) - len(set(numbers))} were seen again"
    if set(numbers) != set(stored):
        yield f"every event should be seen, and {len(set(stored) - set(numbers))} of {len(stored)} were not"
    last: dict[int | None, int] = {}
    state: dict[int, str] = {}
    needs: dict[int, set[int]] = {}
    marks = 0
    newest = 0
    for event in seen:
        if event.n != last.get(event.task_id, 0) + 1:
            yield f"a chain should be seen in order, and {event.task} event {event.n} came after {last.get(event.task_id, 0)}"
        last[event.task_id] = event.n
        if event.task_id is None:
            continue
        data = json.loads(event.data)
        for task, other in data.get("needs_added", ()):
            needs.setdefault(task or event.task_id, set()).add(other or event.task_id)
            if ((task or event.task_id) not in state and task) or (other and other not in state):
                yield f"a cause should be seen first, and {event.task} was born before what it belongs to"
        open_needs = [n for n in needs.get(event.task_id, ()) if state.get(n) not in RESOLVED]
        if event.action in ("claim", "unblock", "parent") and open_needs:
            yield f"a cause should be seen first, and {event.action} of {event.task} came before what it waited for had ended"
        state[event.task_id] = data["to"]
        mark = _mark(event, data)
        if mark in acked:
            marks += 1
            if acked[mark]["ended"] < newest:
                yield f"what was acknowledged first should be seen first, and {mark} ({event.task} {event.action}) was not"
            newest = max(newest, acked[mark]["began"])
    if marks != len(acked):
        yield f"all {len(acked)} acknowledged moves should be seen, and {marks} were"


def _mark(event: Event, data: dict[str, Any]) -> str:
    """What only this move has said; a move that says nothing has none."""
    if event.action == "note":
        return str(data["notes"][0]["text"])
    where = {"create": "title", "close": "reason", "complete": "summary"}.get(event.action)
    return str(data["set"][where]) if where else ""

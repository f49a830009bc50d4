"""Section `load`: eight agents, people and a boss at one desk, killed and stopped at random, until everything has ended.

A killed process is replaced by one with another name. A stopped one sleeps while the clock is wound past every lease, and goes
on as if nothing had happened: what it then says is late. At the end the kills stop, and the rest of the work is
done; then aftermath.py compares what the ledger knows with what the desk says.
"""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from pathlib import Path

from yourturn.config import init

from . import Place, Tally
from .ledger import SharedClock
from .post_crash_checks import judge
from .processes import Processes
from .roles import LEASE, Stage

#: role of the processes, and how its names begin
CAST = [*[("roles:agent", "w")] * 8, *[("roles:person", "p")] * 2, ("roles:boss", "b"), ("roles:typist", "t")]
WORK_PER_KILL = 5000  #: bytes of the ledger, about thirty lines
PATIENCE = 120.0  #: seconds for the rest of the work, after the last kill


class Load:
    def __init__(self, place: Place, folder: Path, processes: Processes, cast: list[tuple[str, str]] = CAST) -> None:
        self.luck = random.Random(f"load {place.dialect} {place.seed}")
        self.address = place.new_db()
        self.processes = processes
        init(self.address, "PROJ", None, {"USER": "ana"})[0].close()
        SharedClock(f"{folder}/clock", time.time_ns() // 1000)
        self.stage = Stage(self.address, str(folder))
        self.born = 0
        self.cast: dict[int, tuple[str, str]] = {}  #: process -> role, name
        self.stops = 0
        for role, name in cast:
            self.enter(role, name)

    def enter(self, role: str, name: str) -> None:
        self.born += 1
        child = self.processes.start(role, self.address, self.stage.folder, f"{name}{self.born}", self.luck.randrange(2**32))
        self.cast[child] = role, name

    def tick(self) -> None:
        time.sleep(0.01)
        self.stage.clock.advance(0.5)

    def kill_one(self) -> None:
        child = self.luck.choice(list(self.cast))
        self.processes.kill(child)
        self.enter(*self.cast.pop(child))

    def stop_one(self) -> None:
        """Asleep past its lease, while others go on."""
        child = self.luck.choice([child for child, (role, _) in self.cast.items() if role == "roles:agent"])
        self.processes.signal(child, signal.SIGSTOP)
        self.stage.clock.advance(LEASE + 1)
        time.sleep(0.03)
        self.processes.signal(child, signal.SIGCONT)
        self.stops += 1

    def fire(self, kills: int) -> None:
        """Kill as fast as the load still gets something done in between."""
        while self.processes.kills < kills:
            self.tick()
            if os.path.getsize(self.stage.ledger.path) < WORK_PER_KILL * self.processes.kills:
                continue
            self.kill_one()
            if self.luck.random() < 0.2:
                self.stop_one()

    def drain(self) -> bool:
        """Let the living finish. False when something does not end."""
        self.stage.raise_flag("enough")
        ends = time.monotonic() + PATIENCE
        with self.stage.client("human:ana") as client:
            while set(client.counts()) - {"done", "cancelled"}:
                if time.monotonic() > ends:
                    return False
                for _ in range(10):
                    self.tick()
        return True

    def leave(self) -> None:
        self.stage.raise_flag("over")
        for child in self.cast:
            self.processes.wait(child)


def run(place: Place) -> Tally:
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="yourturn-load-") as name, Processes(Path(name) / "processes") as processes:
        load = Load(place, Path(name), processes)
        load.fire(max(12, round(550 * place.scale)))
        ended = load.drain()
        load.leave()
        tally.kills = processes.kills
        found, tally.runs = judge(load.stage, ended, load.stops)
        tally.violations = [f"{what} (load, {place.dialect}, seed {place.seed})" for what in processes.troubles() + found]
    return tally

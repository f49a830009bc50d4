"""Section `backup`: backups while four processes write, and restores of them.

A writer says aloud what was acknowledged. A backup that begins after that has it. What was restored keeps every promise
that a desk makes, and refuses every claim that the writers still hold.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, chdir, contextmanager, suppress
from pathlib import Path

from yourturn.client import Client
from yourturn.config import connect, init, restore
from yourturn.core.errors import ClaimLost
from yourturn.health.audit import verify
from yourturn.health.doctor import examine

from . import Place, Tally

WRITERS, BACKUPS = 4, 60
#: What each writer does from one backup to the next: the desk grows with the backups and does not run away from them.
STINT = 8
NAMES = ("desk.backup", "desk.jsonl", "desk.jsonl.gz")
ENV = {"USER": "ana"}
#: Epochs beyond this were handed out after a restore.
FENCED = 10**12


def run(place: Place) -> Tally:
    tally, chance = Tally(), random.Random(place.seed)
    address = place.new_db()
    init(address, "PROJ", None, ENV)[0].close()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="yourturn-backups-")))
        heard = stack.enter_context(_writers(address))
        desk = stack.enter_context(connect(address, as_="human:ana", env={}))
        for number in range(max(2, round(BACKUPS * place.scale))):
            heard.tell(STINT)
            heard.more(WRITERS)
            known = list(heard)
            file = str(folder / chance.choice(NAMES))
            desk.backup(file)
            said = f"backup {number} (seed {place.seed}, {place.dialect}, {Path(file).suffix})"
            tally.violations += [f"{said}: {what}" for what in _examined(place, file, known)]
            tally.runs += 1
        tally.violations += [f"{what} (seed {place.seed}, {place.dialect})" for what in _replaced(place, address, folder, heard)]
        tally.runs += 1
        if not heard.alive():
            tally.violations.append(f"A writer died while backups were made (seed {place.seed}): {heard.words()}")
    return tally


def _replaced(place: Place, address: str, folder: Path, heard: _Heard) -> Iterator[str]:
    """A restore in the midst of it: what was acknowledged on the old desk is in the file that is kept, all of it."""
    with chdir(folder), connect(address, as_="human:ana", env={}) as desk:
        desk.backup("before.backup")
        heard.tell(STINT)
        found = restore("before.backup", address, force=True, env=ENV)
        heard.tell(STINT)
        heard.more(WRITERS)
        bad = [check["words"] for check in examine(desk) if check["status"] == "bad"]
        if bad:
            yield f"A desk that was restored while others wrote is not sound: {'; '.join(bad)}"
        old = place.new_db()
        restore(found["aside"], old, env=ENV)
    with connect(old, as_="human:ana", env={}) as kept:
        lost = {key for key, token in heard if int(token.split(".")[1]) < FENCED} - {task["key"] for task in _all(kept)}
    if lost:
        yield f"Acknowledged before a restore replaced the desk, and not in the file that was kept: {', '.join(sorted(lost)[:5])}"


def _examined(place: Place, file: str, known: list[tuple[str, str]]) -> Iterator[str]:
    target = place.new_db()
    found = restore(file, target, env=ENV)
    with connect(target, as_="human:ana", env={}) as new:
        tasks = {task["key"]: task for task in _all(new)}
        lost = sorted({key for key, _ in known} - tasks.keys())
        if lost:
            yield f"acknowledged before it began, and not in it: {', '.join(lost[:5])}"
        claimed = [key for key, task in tasks.items() if task["claim"]]
        if claimed:
            yield f"a restore voids claims, and {', '.join(claimed[:5])} still has one"
        bad = [check for check in examine(new, strict=True) if check["status"] == "bad"]
        if bad or not verify(new)["ok"]:
            yield f"not sound: {'; '.join(check['words'] for check in bad)}"
        if found["tasks"] != len(tasks):
            yield f"{found['tasks']} tasks were restored, and {len(tasks)} are there"
        for key, token in known[-20:]:
            try:
                new.complete(token)
            except ClaimLost:
                continue
            except Exception as error:
                yield f"a claim on {key} from before was not refused as lost: {error}"
            else:
                yield f"a claim on {key} from before was accepted"


def _all(desk: Client) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    while page := desk.list(limit=500, after=found[-1]["key"] if found else None):  # type: ignore[arg-type]
        found += page
    return found


class _Heard(list[tuple[str, str]]):
    """(key, claim's token) of everything that was acknowledged so far."""

    def __init__(self) -> None:
        super().__init__()
        self.changed = threading.Event()
        self.processes: list[subprocess.Popen[str]] = []

    def alive(self) -> bool:
        return all(process.poll() is None for process in self.processes)

    def words(self) -> str:
        return " ".join(p.stderr.read()[-300:] for p in self.processes if p.poll() is not None and p.stderr)

    def tell(self, times: int) -> None:
        for process in self.processes:
            with suppress(BrokenPipeError):  # it died: `alive` says so
                assert process.stdin is not None
                process.stdin.write("go\n" * times)
                process.stdin.flush()

    def more(self, count: int) -> None:
        """Wait until so many more were acknowledged."""
        wanted = len(self) + count
        while len(self) < wanted and self.alive():
            self.changed.wait(0.2)
            self.changed.clear()

    def listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            key, token = line.split()
            self.append((key, token))
            self.changed.set()


@contextmanager
def _writers(address: str) -> Iterator[_Heard]:
    heard = _Heard()
    threads = []
    for n in range(WRITERS):
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.task_writer", address, str(n)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parent.parent.parent,
        )
        heard.processes.append(process)
        threads.append(threading.Thread(target=heard.listen, args=(process,)))
        threads[-1].start()
    try:
        yield heard
    finally:
        for process in heard.processes:
            process.kill()
            process.wait()
        for thread in threads:
            thread.join()
        for process in heard.processes:
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()

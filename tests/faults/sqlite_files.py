"""Faults of an SQLite file: locked, full disk, flipped bytes, read-only, all processes killed at once.

The disk is full in three ways: the process may not write more (RLIMIT_FSIZE), SQLite may not take more pages
(max_page_count), and, where the system allows it, a file system of a megabyte that only the one process sees. Then there
is room again, and the same is said once more.
"""

from __future__ import annotations

import ctypes
import io
import json
import os
import random
import resource
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from yourturn.client import Client
from yourturn.config import connect, init
from yourturn.core.errors import StoreTrouble

from . import Place, Tally
from .ledger import Ledger, lines
from .post_crash_checks import health
from .processes import Processes
from .retrying_writers import RetryingWriter, check

_NEW_MOUNTS, _PRIVATE = 0x00020000, 0x44000


def _desk(address: str) -> Client:
    return connect(address, as_="human:ana", project="PROJ", env={})


def _new(address: str, tasks: int = 0) -> None:
    client, _ = init(address, "PROJ", None, {"USER": "ana"})
    with client:
        for number in range(tasks):
            key = client.create(f"Task {number}", description="x" * 700, labels=["a", "b"])["key"]
            if number % 3 == 0:
                client.ask(key, "Which?", options=["this", "that"])
            elif number % 3 == 1:
                client.note(key, "hm")
                client.complete(client.claim(key, "w"), "done")
        client.desk.store.connection().execute("PRAGMA wal_checkpoint(TRUNCATE)")  # type: ignore[attr-defined]


def _turn(*words: str) -> tuple[int, str, str]:
    """What the command would say, without starting Python anew."""
    from yourturn.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(list(words))
        except SystemExit as stop:
            code = int(stop.code or 0)
    return code, out.getvalue(), err.getvalue()


# --- locked -------------------------------------------------------------------------------------------------------------


def locker(address: str, folder: str) -> None:
    """Holds the file in the middle of a write."""
    db = sqlite3.connect(address, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    db.execute("UPDATE tasks SET title = 'half'")
    Ledger(f"{folder}/ledger")("locked")
    time.sleep(600)


def locked_out(address: str, folder: str) -> None:
    os.environ["YOURTURN_BUSY"] = "0.05"
    ledger = Ledger(f"{folder}/ledger")
    for words in (["create", "B"], ["note", "PROJ-1", "x"], ["claim", "PROJ-1", "--worker-id", "w"], ["cancel", "PROJ-1"]):
        code, _, err = _turn(*words, "--db", address, "--as", "human:ana", "--json")
        ledger("refused", words=words, code=code, said=json.loads(err)["error"])
    code, out, _ = _turn("show", "PROJ-1", "--db", address, "--json")
    ledger("read", code=code, title=json.loads(out)["title"])


def _locked(place: Place, folder: Path, tally: Tally, luck: random.Random) -> list[str]:
    found = []
    address = place.new_db()
    _new(address, 3)
    with _desk(address) as client, Processes(folder / "processes") as processes:
        before = client.list(whole=True), client.history()
        for number in range(max(1, round(10 * place.scale))):
            room = folder / str(number)
            room.mkdir()
            holder = processes.start("sqlite_files:locker", address, str(room))
            while not lines(f"{room}/ledger"):
                time.sleep(0.005)
            processes.wait(processes.start("sqlite_files:locked_out", address, str(room)))
            processes.kill(holder)
            for line in lines(f"{room}/ledger"):
                if line["what"] == "refused" and (line["code"] != 1 or line["said"]["code"] != "busy"):
                    found.append(f"a locked file should be told as such, and was: {line}")
                if line["what"] == "refused" and "Nothing was changed" not in line["said"]["hint"]:
                    found.append(f"who is locked out should hear that nothing was changed, and heard: {line['said']}")
                if line["what"] == "read" and (line["code"], line["title"]) != (0, "Task 0"):
                    found.append(f"reading should go on while somebody writes, and shows: {line}")
            if (client.list(whole=True), client.history()) != before:
                found.append("what was refused, and what a killed writer left half done, should change nothing, and did")
            tally.runs += 1
        found += health(client) + processes.troubles()
        tally.kills += processes.kills
    return found


# --- full ---------------------------------------------------------------------------------------------------------------


class Filler(RetryingWriter):
    """Writes until there is no room, says it twice more, gets room, and goes on."""

    def __init__(self, address: str, folder: str, name: str, give_room: Callable[[], None]) -> None:
        super().__init__(address, folder, name)
        self.give_room = give_room
        self.refused = 0

    def insist(self, verb: str, mark: str, move: Callable[[str], Any]) -> Any:
        def told(key: str) -> Any:
            try:
                return move(key)
            except StoreTrouble:
                self.refused += 1
                if self.refused == 3:
                    self.give_room()
                raise

        return super().insist(verb, mark, told)

    def fill(self, most: int = 400) -> None:
        number = 0
        while self.refused < 3 and number < most:
            self.round(number)
            number += 1
        self.round(number)
        self.ledger("filled", refused=self.refused)


def short_file(address: str, folder: str) -> None:
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    filler = Filler(address, folder, "f", lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard)))
    filler.desk()
    most = max(os.path.getsize(address), os.path.getsize(f"{address}-wal")) + 100_000
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    filler.fill()


def few_pages(address: str, folder: str) -> None:
    filler = Filler(address, folder, "p", lambda: pages(10**9))

    def pages(most: int) -> None:
        filler.desk().desk.store.connection().execute(f"PRAGMA max_page_count = {most}")  # type: ignore[attr-defined]

    pages(os.path.getsize(address) // 4096 + 8)
    filler.fill()


def small_disk(address: str, folder: str) -> None:
    """A file system of its own, which ends with the process; what is on it is judged here."""
    libc = ctypes.CDLL(None, use_errno=True)
    disk = f"{folder}/disk"
    os.mkdir(disk)
    ledger = Ledger(f"{folder}/ledger")
    if libc.unshare(_NEW_MOUNTS) or libc.mount(b"none", b"/", None, _PRIVATE, None):
        ledger("filled", refused=3, skipped="no mounts here")
        return
    if libc.mount(b"tmpfs", disk.encode(), b"tmpfs", 0, b"size=1536k"):
        ledger("filled", refused=3, skipped="no mounts here")
        return
    address = f"{disk}/yourturn.db"
    _new(address)
    ballast = Path(f"{disk}/ballast")
    ballast.write_bytes(b"x" * 700_000)
    Filler(address, folder, "d", ballast.unlink).fill()
    with _desk(address) as client:
        for what in [*check(client, folder), *health(client)]:
            ledger("wrong", said=what)


def _full(place: Place, folder: Path, tally: Tally, luck: random.Random) -> list[str]:
    found = []
    ways = ("short_file", "few_pages", "small_disk") * max(1, round(3 * place.scale))
    with Processes(folder / "processes") as processes:
        for number, how in enumerate(ways):
            room = folder / str(number)
            room.mkdir()
            address = place.new_db()
            _new(address)
            processes.wait(processes.start(f"sqlite_files:{how}", address, str(room)))
            written = lines(f"{room}/ledger")
            found += [line["said"] for line in written if line["what"] == "wrong"]
            end = [line for line in written if line["what"] == "filled"]
            if not end or end[0]["refused"] < 3:
                found.append(f"{how}: the disk should have been full, and was not: {end}")
            for line in written:
                if line["what"] == "trouble" and "full" not in line["said"] + line["hint"]:
                    found.append(f"a full disk should be told as such, and was: {line['said']} {line['hint']}")
            with _desk(address) as client:
                found += [*(check(client, str(room)) if how != "small_disk" else ()), *health(client)]
            tally.runs += 1
        return found + processes.troubles()


# --- flipped ------------------------------------------------------------------------------------------------------------

READS = (["list"], ["show", "PROJ-1"], ["show", "Q1"], ["inbox"], ["log"], ["tree"])
WRITES = (
    ["create", "B"], ["note", "PROJ-1", "x"], ["respond", "Q1", "this"], ["next", "--claim", "--worker-id", "w"],
    ["cancel", "PROJ-4"], ["complete", "PROJ-3", "--worker-id", "w"], ["reconcile"], ["init", "--key", "PROJ"],
)  # fmt: skip
DOCTORS = (["doctor", "--strict"], ["audit", "verify"])


def victim(address: str, folder: str) -> None:
    """Says everything about a damaged file, and writes down what it hears."""
    ledger = Ledger(f"{folder}/ledger")
    os.environ["YOURTURN_BUSY"] = "0.2"
    for sort, several in (("read", READS), ("doctor", DOCTORS), ("write", WRITES), ("read again", READS)):
        for words in several:
            code, out, err = _turn(*words, "--db", address, "--as", "human:ana", "--json")
            ledger(sort, words=words, code=code, out=out if sort == "read" else "", err=err[-500:])


def _flipped(place: Place, folder: Path, tally: Tally, luck: random.Random) -> list[str]:
    found = []
    whole = place.new_db()
    _new(whole, 24)
    size = os.path.getsize(whole)
    with Processes(folder / "processes") as processes:
        truth = _said(processes, folder / "truth", whole, shutil.copy)
        if any(line["code"] for line in truth if line["what"] in ("read", "doctor")):
            found.append(f"an undamaged file should be read, and was not: {truth}")
        for number in range(max(12, round(400 * place.scale))):
            spots = [(luck.randrange(size), luck.randrange(1, 256)) for _ in range(luck.choice((1, 1, 4, 64)))]

            def damage(source: str, target: str, spots: list[tuple[int, int]] = spots) -> None:
                content = bytearray(Path(source).read_bytes())
                for offset, bits in spots:
                    content[offset] ^= bits
                Path(target).write_bytes(content)

            said = _said(processes, folder / str(number), whole, damage)
            found += [f"{what}; flipped: {spots[:4]}" for what in _clear(truth, said)]
            shutil.rmtree(folder / str(number))
            tally.runs += 1
        return found + processes.troubles()


def _said(processes: Processes, room: Path, whole: str, damage: Callable[[str, str], Any]) -> list[dict[str, Any]]:
    room.mkdir()
    address = f"{room}/yourturn.db"
    damage(whole, address)
    code = processes.wait(processes.start("sqlite_files:victim", address, str(room)))
    return [*lines(f"{room}/ledger"), {"what": "end", "code": code}]


def _clear(truth: list[dict[str, Any]], said: list[dict[str, Any]]) -> list[str]:
    """Never a crash or a traceback; and what is shown wrongly is named by a doctor."""
    found = []
    named = any(line["code"] for line in said if line["what"] == "doctor")
    if said[-1]["code"] < 0:
        found.append(f"a damaged file should crash nobody, and signal {-said[-1]['code']} came after {said[-2:-1]}")
    for line in said[:-1]:
        lost = "bug in turn" in line["err"] and not (named and "turn doctor" in line["err"])
        if lost or "Traceback" in line["err"] or line["code"] not in (0, 1, 3, 4, 6):
            found.append(f"damage should be told in clear words, and {line['words']} said ({line['code']}): {line['err'][-300:]}")
    shown = {json.dumps(line["words"]): line for line in said if line["what"] == "read"}
    wrong = [
        line["words"] for line in truth
        if line["what"] == "read" and shown.get(json.dumps(line["words"]), line)["code"] == 0
        and shown.get(json.dumps(line["words"]), line)["out"] != line["out"]
    ]  # fmt: skip
    if wrong and not named:
        found.append(f"what is shown wrongly should be named by a doctor, and {wrong} was not")
    return found


# --- killed -------------------------------------------------------------------------------------------------------------


def _all_die(place: Place, folder: Path, tally: Tally, luck: random.Random) -> list[str]:
    """All processes with the file open are killed: the write-ahead log stays, and the next process reads all of it."""
    found = []
    address = place.new_db()
    _new(address)
    left_behind = 0
    with Processes(folder / "processes") as processes:
        for number in range(max(4, round(60 * place.scale))):
            names = [f"c{number}-{i}" for i in range(3)]
            children = [processes.start("retrying_writers:retrying_writer", address, str(folder), name, 10**6) for name in names]
            before = len(lines(f"{folder}/ledger"))
            while len(lines(f"{folder}/ledger")) < before + 5:
                time.sleep(0.005)
            time.sleep(luck.random() * 0.05)
            for child in children:
                processes.kill(child)
            left_behind += os.path.exists(f"{address}-wal") and os.path.getsize(f"{address}-wal") > 0
            if luck.random() < 0.5:
                Path(f"{address}-shm").unlink(missing_ok=True)
            tally.runs += 1
            with _desk(address) as client:
                found += [*check(client, str(folder)), *(health(client) if number % 5 == 0 else ())]
        if not left_behind:
            found.append("nobody left a write-ahead log behind: this run shows nothing")
        with _desk(address) as client:
            found += health(client)
        tally.kills += processes.kills
        return found + processes.troubles()


# --- read-only ----------------------------------------------------------------------------------------------------------


def without_a_user(address: str, folder: str) -> None:
    """With the rights that anybody has."""
    ledger = Ledger(f"{folder}/ledger")
    _turn("list", "--db", address, "--json")  # loads what is needed, while it may
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    for words in (["create", "B"], ["list"]):
        code, _out, err = _turn(*words, "--db", address, "--as", "human:ana", "--json")
        ledger("said", words=words, code=code, err=json.loads(err)["error"] if err else {})


def _read_only(place: Place, folder: Path, tally: Tally, luck: random.Random) -> list[str]:
    found = []
    folder.chmod(0o777)
    for up in folder.parents[:1]:
        up.chmod(0o755)
    address = str(folder / "desk" / "yourturn.db")
    _new(address, 3)
    before = Path(address).read_bytes()
    with Processes(folder / "processes") as processes:
        Path(address).chmod(0o444)
        Path(address).parent.chmod(0o555)
        try:
            processes.wait(processes.start("sqlite_files:without_a_user", address, str(folder)))
        finally:
            Path(address).parent.chmod(0o755)
        found += processes.troubles()
    said = {line["words"][0]: line for line in lines(f"{folder}/ledger")}
    if said["create"]["code"] != 1 or not said["create"]["err"].get("message"):
        found.append(f"a file that may only be read should be told as such, and was: {said['create']}")
    if Path(address).read_bytes() != before:
        found.append("a file that may only be read should stay as it is, and did not")
    tally.runs += 1
    return found


TRIALS = (_locked, _full, _flipped, _all_die, _read_only)


def run(place: Place) -> Tally:
    tally = Tally()
    luck = random.Random(f"files {place.seed}")
    with tempfile.TemporaryDirectory(prefix="yourturn-files-") as name:
        for trial in TRIALS:
            room = Path(name) / trial.__name__
            room.mkdir()
            for what in trial(place, room, tally, luck):
                tally.violations.append(f"{what} ({trial.__name__.strip('_').replace('_', ' ')}, seed {place.seed})")
    return tally



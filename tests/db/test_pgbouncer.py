"""A desk behind PgBouncer in transaction pooling mode: each transaction may run on another server process.

Runs where the program `pgbouncer` is installed (Debian: apt-get install pgbouncer). docs/deploy.md has what is different.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import threading
import uuid
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from yourturn.config import connect, init

PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
SERVERS = 2  #: server processes of the pool: fewer than clients, so that transactions change places

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="pgbouncer is not installed: apt-get install pgbouncer")

INI = """
[databases]
desk = host={host} dbname={database} user={user}
[pgbouncer]
unix_socket_dir = {folder}
listen_addr =
listen_port = 6432
auth_type = any
pool_mode = transaction
default_pool_size = {servers}
"""


@pytest.fixture(scope="module")
def addresses(postgres_server, tmp_path_factory):
    """The addresses of one desk: through PgBouncer, and directly."""
    server, database = conninfo_to_dict(postgres_server), f"p_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {database}")
    direct = f"postgresql://{server['user']}:@/{database}?host={quote(server['host'])}"
    init(direct, "PROJ", None, {"USER": "ana"})[0].close()
    folder = Path(server["host"]) / database  # root gives its rights away to the user of the server, who can read this folder
    folder.mkdir()
    owner = pwd.getpwuid(os.stat(server["host"]).st_uid).pw_name
    shutil.chown(folder, owner)
    (folder / "pgbouncer.ini").write_text(INI.format(**server | {"database": database, "folder": folder, "servers": SERVERS}))
    as_owner = ["-u", owner] if os.getuid() == 0 else []
    pooler = subprocess.Popen([PROGRAM, *as_owner, str(folder / "pgbouncer.ini")], stderr=subprocess.PIPE, text=True)
    try:
        log = []
        while "process up" not in (log or [""])[-1]:
            log.append(pooler.stderr.readline())
            assert log[-1], "".join(log)
        threading.Thread(target=pooler.stderr.read, daemon=True).start()
        yield f"postgresql://{server['user']}@/desk?host={quote(str(folder))}&port=6432", direct
    finally:
        pooler.terminate()
        pooler.wait(10)


@pytest.fixture
def open_desk(addresses):
    opened = []

    def make(as_="human:ana", pooled=True):
        opened.append(connect(addresses[not pooled], as_=as_, project="PROJ", env={}))
        return opened[-1]

    yield make
    for desk in opened:
        desk.close()


def test_a_pooler_is_recognized(open_desk):
    for pooled in (True, False):
        desk = open_desk(pooled=pooled)
        with desk.desk.store.reading() as run:
            assert run.pooled is pooled
            assert run.db.prepare_threshold == (None if pooled else 2)
        desk.desk.wait(0.01)  # listens, where notifications arrive
        with desk.desk.store.reading() as run:
            listeners = run("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 7258003").fetchone()[0]
        assert listeners == int(not pooled)


def test_a_task_goes_from_creation_to_its_end(open_desk):
    desk, agent = open_desk(), open_desk("agent:coder")
    for number in range(8):  # a statement is prepared when it comes for the third time
        key = desk.create(f"Task {number}")["key"]
        claim = agent.claim(key, "w1")["claim"]
        question = agent.ask(key, "JWT or sessions?", claim=claim["token"])
        agent.park(claim)
        desk.respond(question["id"], "JWT")
        claim = agent.claim(key, "w1")["claim"]
        agent.complete(claim, summary="built")
        assert desk.show(key)["state"] == "done"


def test_each_transaction_has_the_settings_of_a_desk(open_desk):
    desk = open_desk()
    with desk.desk.store.begin() as run:
        assert run("SELECT current_setting('synchronous_commit'), current_setting('enable_seqscan')").fetchone() == ("on", "off")


def test_two_workers_never_get_the_same_task(open_desk):
    """Six workers share two server processes, and each statement of a batch runs on the same one."""
    desk = open_desk()
    keys = {desk.create(f"Shared {number}")["key"] for number in range(24)}
    claimed: list[str] = []

    def work(number):
        agent = open_desk(f"agent:w{number}")
        while (taken := agent.claim_next(f"w{number}")) is not None:
            claimed.append(taken["task"]["key"])
            agent.complete(taken["claim"], summary="built")

    workers = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
    assert sorted(claimed) == sorted(keys)


@pytest.mark.parametrize("writes_pooled", [True, False])
@pytest.mark.parametrize("watches_pooled", [True, False])
def test_a_watcher_sees_events(open_desk, writes_pooled, watches_pooled):
    """NOTIFY does not arrive through a pooler: a pooled watcher polls. A direct one is notified of pooled writes, too."""
    desk, watcher = open_desk(pooled=writes_pooled), open_desk("human:ben", pooled=watches_pooled)
    key, texts = desk.create("Watched")["key"], []
    cursor, waiting = watcher.desk.cursor(), threading.Event()

    def watch():
        waiting.set()
        for event in watcher.watch(cursor, 10):
            texts.extend(note["text"] for note in event["data"].get("notes", ()))
            if len(texts) == 3:
                return

    thread = threading.Thread(target=watch)
    thread.start()
    waiting.wait(10)
    for number in range(3):
        desk.note(key, f"note {number}")
    thread.join(10)
    assert texts == ["note 0", "note 1", "note 2"]

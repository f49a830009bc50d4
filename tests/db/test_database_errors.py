"""Errors of the database become clear errors of a known kind, and nothing is changed."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import threading
from pathlib import Path

import pytest

from yourturn.client import Client
from yourturn.config import connect, init, open_store
from yourturn.core.errors import BadDatabase, Busy, NoDesk, ReadOnly, StoreTrouble, Usage, YourturnError
from yourturn.db import schema
from yourturn.db.backend import Conflict
from yourturn.db.sqlite import SqliteStore
from yourturn.desk.desk import Desk
from yourturn.health import doctor
from yourturn.testing import temporary_desk

from .processes import crowd, oks, raw


@pytest.fixture
def path(new_db) -> Path:
    """A desk in a file, with one task."""
    found = new_db("sqlite")
    client, _ = init(found, "PROJ", None, {"USER": "ana"})
    client.create("A")
    client.close()
    return Path(found)


def _open(path):
    return connect(str(path), as_="human:ana", env={})


# --- not a desk --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"hello", b"SQLite format 3\x00", b"\x00" * 5000, b"{" * 100_000, os.urandom(4096)])
def test_a_file_that_is_no_desk(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(BadDatabase):
        _open(path)
    assert path.read_bytes() == content
    assert sorted(os.listdir(tmp_path)) == ["notes.txt"], "nothing is left beside it"


def test_a_folder_is_no_desk(tmp_path):
    with pytest.raises(BadDatabase, match="is a folder"):
        _open(tmp_path)
    with pytest.raises(BadDatabase, match="is a folder"):
        init(str(tmp_path), "PROJ", None, {"USER": "ana"})
    assert os.listdir(tmp_path) == []


def test_a_path_that_leads_nowhere(tmp_path):
    for path in (tmp_path / "none.db", tmp_path / "none" / "none.db"):
        with pytest.raises(NoDesk) as error:
            _open(path)
        assert "turn init" in error.value.hint
    assert os.listdir(tmp_path) == []


def test_a_file_in_the_way_of_the_folder(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreTrouble):
        init(str(tmp_path / "file" / "yourturn.db"), "PROJ", None, {"USER": "ana"})
    assert (tmp_path / "file").read_text() == "x"


def test_another_programs_database_is_left_as_it_is(tmp_path):
    path = tmp_path / "theirs.db"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE bookmarks (url TEXT)")
    db.commit()
    db.close()
    before = path.read_bytes()
    with pytest.raises(BadDatabase, match="another program"):
        _open(path)
    with pytest.raises(BadDatabase, match="another program"):
        init(str(path), "PROJ", None, {"USER": "ana"})
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["theirs.db"]


@pytest.mark.parametrize("address", ["mysql://x/y", "http://127.0.0.1:1/", "file:x?mode=ro://"])
def test_an_address_that_is_no_database(address):
    with pytest.raises(Usage):
        open_store(address)


# --- locked, read-only ---------------------------------------------------------------------------------------------------


def test_a_locked_database(path):
    store = SqliteStore(str(path), busy=0.05)
    from yourturn.core.model import Who

    client = Client(Desk(store, Who("human:ana", "admin", direct=True)), "PROJ")
    holder = sqlite3.connect(path, isolation_level=None)
    try:
        holder.execute("BEGIN EXCLUSIVE")
        for move in (lambda: client.create("B"), lambda: client.note("PROJ-1", "x"), lambda: client.claim("PROJ-1", "w1")):
            with pytest.raises(Busy, match="is locked") as error:
                move()
            assert error.value.exit_code == 1 and "Nothing was changed" in error.value.hint
        assert client.show("PROJ-1")["state"] == "ready", "reading goes on"
        holder.execute("ROLLBACK")
        assert client.create("B")["key"] == "PROJ-2"
        assert len(client.history()) == 3
    finally:
        holder.close()
        store.close()


def test_a_writer_waits_for_its_turn(path):
    holder = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.2, lambda: holder.execute("ROLLBACK"))
    with _open(path) as desk:
        timer.start()
        assert desk.create("B")["key"] == "PROJ-2"
    timer.join()
    holder.close()


@pytest.mark.parametrize("dialect", ["postgres"])
def test_a_locked_table(dialect, address, open_desk):
    desk = open_desk()
    desk.create("A")
    with desk.desk.store.begin() as run:
        run("SET LOCAL lock_timeout = '50ms'")
        with raw(address) as holder:
            holder("BEGIN")
            holder("LOCK TABLE tasks IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(Busy), desk.desk.store._translating():
                run("SELECT 1 FROM tasks")
            holder("ROLLBACK")


@pytest.mark.parametrize("dialect", ["postgres"])
def test_read_that_deadlocks_may_be_retried(dialect, address, desk, open_desk):
    """Another session locks one table after the other; a read holds one and waits for the other. (SQLite's reads never wait.)"""
    desk.create("A")
    other_desk = open_desk("human:bob")  # one that does not remember the task
    with raw(address) as run:
        run("BEGIN")
        run("LOCK TABLE projects IN ACCESS EXCLUSIVE MODE")
        said: list[object] = []

        def look() -> None:
            try:
                said.append(other_desk.desk.find("PROJ-1"))
            except YourturnError as error:
                said.append(error)

        thread = threading.Thread(target=look)
        thread.start()
        with raw(address) as other:
            while thread.is_alive() and not other.one("SELECT count(*) FROM pg_locks WHERE NOT granted"):
                pass
        try:
            run("LOCK TABLE tasks IN ACCESS EXCLUSIVE MODE")
        except run.deadlocks:
            pass
        run("ROLLBACK")
        thread.join(30)
    assert len(said) == 1
    assert isinstance(said[0], int) or (isinstance(said[0], Busy) and "Try again" in said[0].hint)


def test_a_read_only_connection(path):
    with _open(path) as desk:
        desk.desk.store.connection().execute("PRAGMA query_only = ON")
        for move in (lambda: desk.create("B"), lambda: desk.cancel("PROJ-1"), lambda: desk.set_user("bob")):
            with pytest.raises(ReadOnly, match="cannot be written"):
                move()
        assert desk.show("PROJ-1")["state"] == "ready"
        assert len(desk.history()) == 2


def test_a_read_only_file():
    """Without root's rights, which allow to write everywhere."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "yourturn.db"
        init(str(path), "PROJ", None, {"USER": "ana"})[0].close()
        before = path.read_bytes()
        path.chmod(0o444)
        Path(folder).chmod(0o555)
        try:
            said = oks(crowd(str(path), ("as_nobody", "", {})))[0]
        finally:
            Path(folder).chmod(0o755)
        assert said[1] in ("read_only", "bad_database"), said
        assert path.read_bytes() == before


@pytest.mark.parametrize("dialect", ["postgres"])
def test_a_read_only_server(address, dialect):
    with connect(f"{address}%20-cdefault_transaction_read_only%3Don", as_="human:ana", env={}) as desk:
        assert desk.list() == []
        with pytest.raises(ReadOnly, match="cannot be written"):
            desk.create("A")
        assert desk.list() == []


# --- damaged -------------------------------------------------------------------------------------------------------------


def _fill(path):
    with _open(path) as desk:
        for number in range(30):
            desk.do("create", title=f"Task {number}", description="x" * 2000, project="PROJ")
        desk.desk.store.connection().execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _try_everything(path):
    """Every way in either works or says what is wrong."""
    said = set()
    for attempt in (
        lambda: _open(path).close(),
        lambda: _look(path, lambda desk: desk.list()),
        lambda: _look(path, lambda desk: desk.history()),
        lambda: _look(path, lambda desk: desk.create("B")),
        lambda: _look(path, lambda desk: desk.claim_next("w1")),
        lambda: said.update(line["status"] for line in _look(path, doctor.examine)),
        lambda: init(str(path), None, None, {"USER": "ana"})[0].close(),
    ):
        try:
            attempt()
        except YourturnError as error:
            assert isinstance(error, StoreTrouble), error
            said.add(error.code)
    return said


def _look(path, look):
    with _open(path) as desk:
        return look(desk)


@pytest.mark.parametrize("keep", [1, 99, 100, 4096, 4097, 20_000, 60_000])
def test_a_truncated_file(path, keep):
    _fill(path)
    content = path.read_bytes()
    assert len(content) > 60_000
    path.write_bytes(content[:keep])
    assert _try_everything(path) & {"bad_database", "store", "bad"}


@pytest.mark.parametrize("where", [0, 18, 100, 4096, 4096 * 3, 4096 * 9, b'"title":"Task 7"'])
def test_flipped_bytes(path, where):
    """In the header, in the first pages' own headers, and in the text of an event, which only the chain notices."""
    _fill(path)
    content = bytearray(path.read_bytes())
    start, bits, length = (where, 0xFF, 64) if isinstance(where, int) else (content.index(where) + 9, 0x01, 4)
    for offset in range(length):
        content[start + offset] ^= bits
    path.write_bytes(content)
    assert _try_everything(path) & {"bad_database", "store", "bad"}


def test_rubbish_in_the_write_ahead_log(path):
    """A torn log loses what was never acknowledged, and nothing else."""
    _fill(path)
    Path(f"{path}-wal").write_bytes(os.urandom(5000))
    with _open(path) as desk:
        assert len(desk.list()) == 31 and desk.create("B")["key"] == "PROJ-32"


def test_a_file_that_vanishes(path):
    with _open(path) as desk:
        assert len(desk.list()) == 1
    shutil.rmtree(path.parent)
    with pytest.raises(NoDesk):
        _open(path)


# --- PostgreSQL that is not there -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    ["postgresql://ana:secret@127.0.0.1:1/x", "postgresql:///x?host=/nonexistent", "postgresql://ana:secret@nowhere.invalid/x"],
)
def test_no_server(address):
    from yourturn.db.postgres import PostgresStore

    store = PostgresStore(address, patience=0.5)
    with pytest.raises(StoreTrouble, match="does not answer") as error:
        schema.check(store)
    assert "secret" not in str(error.value) + error.value.hint + store.url
    store.close()


@pytest.mark.parametrize("dialect", ["postgres"])
def test_a_server_without_a_desk(dialect, new_db, postgres_server):
    with pytest.raises(BadDatabase) as error:
        connect(new_db("postgres"), as_="human:ana", env={})
    assert "turn init" in error.value.hint
    with pytest.raises(StoreTrouble, match="does not answer"):
        connect(postgres_server.replace("/postgres?", "/nothing?"), as_="human:ana", env={})


@pytest.mark.parametrize("dialect", ["postgres"])
def test_a_connection_that_breaks_changes_nothing_and_is_replaced(desk, address, dialect):
    desk.create("A")
    with raw(address) as run, pytest.raises(Conflict), desk.desk.store.begin() as inside:
        inside("UPDATE tasks SET title = 'lost'")
        run(f"SELECT pg_terminate_backend({inside('SELECT pg_backend_pid()').fetchone()[0]})")
        inside("SELECT 1")
    assert desk.show("PROJ-1")["title"] == "A"


@pytest.mark.parametrize("dialect", ["postgres"])
def test_a_connection_that_broke_while_it_rested_is_replaced_unseen(desk, address, dialect):
    desk.create("A")
    for _ in range(2):
        with raw(address) as run:
            others = "pid <> pg_backend_pid() AND backend_type = 'client backend'"
            run(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE {others}")
        assert desk.note("PROJ-1", "still here")["state"] == "ready"
    assert len(desk.show("PROJ-1")["notes"]) == 2


@pytest.mark.parametrize("dialect", ["postgres"])
def test_a_commit_without_a_reply_is_still_a_commit(address, dialect):
    """The connection breaks after the commit, before the notification: the move has happened, and says so."""
    with raw(address) as run:
        run(
            "CREATE FUNCTION pg_notify(text, text) RETURNS boolean LANGUAGE sql AS "
            "$$ SELECT pg_terminate_backend(pg_backend_pid()) $$"
        )
    with connect(f"{address}%2Cpg_catalog", as_="human:ana", env={}) as desk:
        assert desk.create("A")["key"] == "PROJ-1"
        assert [task["title"] for task in desk.list()] == ["A"]


def test_an_old_id_that_is_here_already(desk):
    from yourturn.core.errors import Precondition

    desk.create("A", external_id="tick-7")
    with pytest.raises(Precondition, match="it is here already, as PROJ-1"):
        desk.create("B", external_id="tick-7")
    assert [task["key"] for task in desk.list()] == ["PROJ-1"]


@pytest.mark.parametrize("dialect", ["postgres"])
def test_what_is_acknowledged_is_on_disk(desk, address):
    """Also if the server's default is weaker."""
    weak = f"{address}%20-csynchronous_commit%3Doff"
    with connect(weak, as_="human:ana", project="PROJ", env={}) as client, client.desk.store.begin() as run:
        assert run("SHOW synchronous_commit").fetchone()[0] == "on"


def test_sqlite_syncs_fully(tmp_path):
    with temporary_desk(str(tmp_path / "d.db")) as client, client.desk.store.reading() as run:
        assert run("PRAGMA synchronous").fetchone()[0] == 2
        assert run("PRAGMA journal_mode").fetchone()[0] == "wal"


@pytest.mark.parametrize("bytes_", [b"\xff\xfe", b'{"a', b"\x00\x01"])
def test_a_row_of_random_bytes(path, bytes_):
    """Neither text nor JSON: said as damage, with where to look, also by the command."""
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        db.execute("UPDATE tasks SET labels = CAST(? AS TEXT)", [bytes_])
    db.close()
    with _open(path) as desk, pytest.raises(BadDatabase, match="is damaged") as error:
        desk.list()
    assert "turn doctor --strict" in error.value.hint


def test_a_failing_due_transition_blocks_no_other(desk, agent, clock, address, dialect):
    """A row that the database does not let go of: its own move fails for ever, and everybody else's work goes on."""
    for title in "ABC":
        desk.create(title)
    for key in ("PROJ-1", "PROJ-3"):
        agent.claim(key, "w1")
    with raw(address) as run:
        if dialect == "postgres":
            run("CREATE FUNCTION stuck() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'stuck'; END $$")
            run("CREATE TRIGGER stuck BEFORE UPDATE ON tasks FOR EACH ROW WHEN (NEW.id = 1) EXECUTE FUNCTION stuck()")
        else:
            run("CREATE TRIGGER stuck BEFORE UPDATE ON tasks WHEN NEW.id = 1 BEGIN SELECT RAISE(ABORT, 'stuck'); END")
    clock.advance(hours=2)
    assert desk.reconcile() == {"moved": 1, "failed": 1}
    assert {agent.claim_next(worker)["task"]["key"] for worker in ("w4", "w5")} == {"PROJ-2", "PROJ-3"}
    assert agent.claim_next("w6") is None
    assert desk.show("PROJ-1")["state"] == "working" and len(desk.list()) == 3, "shown as it is"
    assert {line["check"]: line["status"] for line in doctor.examine(desk)}["overdue"] == "warn"

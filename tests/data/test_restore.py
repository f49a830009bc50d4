"""Backup and restore: nothing acknowledged is lost, and nothing handed out before counts."""

from __future__ import annotations

import io
import sqlite3
from pathlib import Path

import pytest

from tests.conftest import DIALECTS
from tests.core.states import everything, said
from tests.db.schemas import old_desk, told
from yourturn.client import Client
from yourturn.config import connect, init, restore
from yourturn.core.errors import BadDatabase, ClaimLost, Invalid, NotAllowed, Precondition
from yourturn.core.model import Who
from yourturn.db import schema
from yourturn.health.audit import verify
from yourturn.health.doctor import examine

from .sample_desk import fill

NAMES = ("desk.backup", "desk.jsonl", "desk.jsonl.gz")
ENV = {"USER": "ana"}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """What a restore moves aside lands in the folder where you are, if the desk is on a server."""
    monkeypatch.chdir(tmp_path)


def open_(address: str, clock=None) -> Client:
    return connect(address, as_="human:ana", clock=clock, env={})


def text(desk: Client) -> str:
    out = io.StringIO()
    desk.export(out)
    return out.getvalue()


def well(desk: Client) -> None:
    assert [c for c in examine(desk, strict=True) if c["status"] != "ok" and c["check"] not in ("overdue", "readers")] == []
    assert verify(desk)["ok"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("there", DIALECTS)
def test_a_restore_brings_everything_back_and_fences_it(desk, clock, new_db, tmp_path, name, there):
    claims, file = fill(desk, clock, held=True), str(tmp_path / name)
    token = desk.create_token("agent-1", "agent")["token"]
    made = desk.backup(file)
    assert made["backup"] == file and made["bytes"] == Path(file).stat().st_size
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == [], "nothing half-made is left"
    agent = desk.as_(Who("agent:coder", "agent", direct=True))
    first, second = claims
    agent.park(claims[first])
    late = agent.claim(first, "w9")["claim"]  # handed out after the backup: this epoch must never come again
    shown = {task["key"]: desk.show(task["key"]) for task in open_everywhere(desk).list()}
    target = new_db(there)
    found = restore(file, target, env=ENV)
    assert found["tasks"] == len(shown) and found["fenced"] == 2 and found["aside"] is None
    with open_(target, clock) as new:
        assert {t["key"] for t in new.list()} == set(shown)
        assert new.desk.credentials.identify(token).name == "agent:agent-1", "tokens are in a backup"
        coder = new.as_(Who("agent:coder", "agent", direct=True))
        for old in (*claims.values(), late["token"]):
            for attempt in (coder.complete, coder.heartbeat, coder.release, coder.park, coder.fail):
                with pytest.raises(ClaimLost):
                    attempt(old)
            with pytest.raises(ClaimLost):
                coder.ask(old.split(".")[0], "As the holder?", claim=old)
        assert new.show(first)["state"] == "ready" and new.show(first)["retry_count"] == 0
        assert new.show(second)["state"] == "human", "its question still waits"
        fresh = coder.claim(first, "w9")["claim"]
        assert fresh["epoch"] > late["epoch"] + 1_000_000
        assert coder.complete(fresh)["state"] in ("done", "review")
        well(new)
    assert desk.show(first)["claim"]["epoch"] == late["epoch"], "the desk that was saved goes on as it was"


@pytest.mark.parametrize("name", NAMES)
def test_a_run_comes_back_with_its_journal_and_goes_on(desk, clock, new_db, dialect, tmp_path, name):
    """The old claim is void, a new claim reads the finished steps, and the step that asked is settled once."""
    coder, file = desk.as_(Who("agent:coder", "agent", direct=True)), str(tmp_path / name)
    program = {"file": "f.py", "body": "run('coder')"}
    held, asks = (desk.create(title, workflow="f.py", program=program)["key"] for title in ("Held", "Asks"))
    claims = {key: coder.claim(key, "w1")["claim"] for key in (held, asks)}
    coder.record(claims[held], [said("1"), said("2", "running", session_id="s1", seat={"base": "0"})])
    coder.rewind(held, 2, spare=True, claim=claims[held])
    coder.record(claims[held], [said("2", "running")])
    coder.flag(asks, "Which?", kind="input", claim=claims[asks], step="1", steps=[said("1", "waiting")], hold=True)
    desk.backup(file)
    coder.record(claims[held], [said("2", result="after the backup")])
    target = new_db(dialect)
    assert restore(file, target, env=ENV)["fenced"] == 2
    with open_(target, clock) as new:
        again = new.as_(Who("agent:coder", "agent", direct=True))
        for attempt in (
            lambda: again.record(claims[held], [said("2")]),
            lambda: again.complete(claims[held], journal=1),
            lambda: again.rewind(held, 1, claim=claims[held]),
            lambda: again.park(claims[asks], steps=[said("1")]),
        ):
            with pytest.raises(ClaimLost):
                attempt()
        assert [new.steps(held, n) == desk.steps(held, n) for n in (0, 1)] == [True, False]
        assert [(s["index"], s["spare"], s["status"]) for s in new.steps(held)] == [
            ("1", False, "completed"), ("2", False, "running"), ("2", True, "running"),
        ]  # fmt: skip
        assert new.program(held) == desk.program(held) and new.show(held)["state"] == "ready"
        assert new.show(asks)["state"] == "human" and new.show(asks)["claim"] is None
        new.answer(asks, "so", signal={"status": "COMPLETE"})
        assert new.steps(asks)[0]["result"] == {"status": "COMPLETE"}
        fresh = again.claim(held, "w2")["claim"]
        again.record(fresh, [said("2", result="again")])
        assert again.complete(fresh, journal=1)["state"] == "done"
        well(new)
    well(desk)


def open_everywhere(desk: Client) -> Client:
    return Client(desk.desk)


def test_an_export_can_be_restored_too(desk, clock, new_db, dialect, tmp_path):
    fill(desk, clock)
    file, target = str(tmp_path / "x.jsonl"), new_db(dialect)
    desk.export(file)
    restore(file, target, env=ENV)
    with open_(target, clock) as new:
        well(new)
        ours, theirs = text(new).split("\n"), text(desk).split("\n")
        assert [line for line in ours if '"table":"tasks"' in line] == [line for line in theirs if '"table":"tasks"' in line]
        last = [line for line in ours if '"table":"events"' in line][-1]
        assert '"action":"restore"' in last and '\\"source\\":\\"x.jsonl\\"' in last


def test_a_desk_with_work_is_replaced_only_by_force_and_is_kept(desk, clock, new_db, dialect, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fill(desk, clock)
    file = str(tmp_path / "desk.backup")
    desk.backup(file)
    target = new_db(dialect)
    init(target, "MINE", None, ENV)[0].close()
    with open_(target) as mine, open_(target) as watching:
        mine.create("Precious")
        mine.create_token("t")
        before = everything(mine)
        with pytest.raises(Precondition, match="it holds 1 task") as error:
            restore(file, target, env=ENV)
        assert "--force" in error.value.hint and everything(mine) == before
        found = restore(file, target, force=True, env=ENV)
        assert {task["key"] for task in watching.list()} >= {"PROJ-1", "WEB-1"}, "whoever has it open sees the new desk"
        watching.create("And goes on", project="PROJ")
        well(watching)
    kept = new_db(dialect)
    restore(found["aside"], kept, env=ENV)
    with open_(kept) as old:
        assert [task["title"] for task in old.list()] == ["Precious"] and [t["name"] for t in old.tokens()] == ["t"]
        well(old)


def test_empty_desk_is_replaced_without_force(desk, clock, new_db, dialect, tmp_path):
    fill(desk, clock)
    desk.backup(str(tmp_path / "b"))
    target = new_db(dialect)
    init(target, "OTHER", None, ENV)[0].close()
    assert restore(str(tmp_path / "b"), target, env=ENV)["aside"] is None
    with open_(target, clock) as new:
        assert [project["key"] for project in new.projects()] == ["PROJ", "WEB"]


def test_a_second_restore_hands_out_other_epochs(desk, clock, new_db, dialect, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    key = desk.create("Work")["key"]
    desk.backup(str(tmp_path / "b"))
    target = new_db(dialect)
    seen = []
    for again in (False, True):
        restore(str(tmp_path / "b"), target, force=again, env=ENV)
        with open_(target) as new:
            seen.append(new.claim(key, "w")["claim"]["epoch"])
    assert seen[0] < seen[1]


def test_only_an_admin_restores(desk, address, tmp_path):
    desk.create("Work")
    desk.backup(str(tmp_path / "b"))
    before = everything(desk)
    for env in ({"YOURTURN_AGENT": "coder"}, {"YOURTURN_TOKEN": desk.create_token("x")["token"]}):
        before = everything(desk)
        with pytest.raises(NotAllowed):
            restore(str(tmp_path / "b"), address, force=True, env=ENV | env)
    with pytest.raises(NotAllowed):
        restore(str(tmp_path / "b"), address, force=True, as_="agent:x", env=ENV)
    desk.set_user("bob", "member")
    before = everything(desk)
    with pytest.raises(NotAllowed):
        restore(str(tmp_path / "b"), address, force=True, as_="human:bob", env=ENV)
    with pytest.raises(NotAllowed):
        restore(str(tmp_path / "b"), str(tmp_path / "new.db"), env={"YOURTURN_AGENT": "coder"})
    assert everything(desk) == before


def test_files_that_are_no_backup(tmp_path, desk, address):
    (tmp_path / "x").write_text("hello")
    (tmp_path / "zero").write_text("")
    for name in ("x", "zero", "missing", "."):
        with pytest.raises(Invalid):
            restore(str(tmp_path / name), address, force=True, env=ENV)
    with sqlite3.connect(tmp_path / "theirs.db") as db:
        db.execute("CREATE TABLE theirs (n)")
    db.close()
    with pytest.raises(BadDatabase, match="another program"):
        restore(str(tmp_path / "theirs.db"), address, force=True, env=ENV)
    desk.backup(str(tmp_path / "b"))
    with pytest.raises(BadDatabase, match="another program"):
        restore(str(tmp_path / "b"), str(tmp_path / "theirs.db"), force=True, env=ENV)


def test_a_damaged_backup_is_refused_and_a_damaged_desk_is_moved_aside(tmp_path, clock):
    address = str(tmp_path / "a" / "yourturn.db")
    init(address, "PROJ", None, ENV)[0].close()
    with open_(address, clock) as desk:
        fill(desk, clock)
        desk.backup(str(tmp_path / "good"))
    damaged = bytearray((tmp_path / "good").read_bytes())
    damaged[40_960 : 40_960 + 4096 * 6] = b"\x07" * 4096 * 6
    (tmp_path / "bad").write_bytes(damaged)
    with pytest.raises(BadDatabase):
        restore(str(tmp_path / "bad"), str(tmp_path / "new.db"), env=ENV)
    Path(address).write_bytes(damaged)
    with pytest.raises(Precondition, match="it is damaged"):
        restore(str(tmp_path / "good"), address, env=ENV)
    assert Path(address).read_bytes() == damaged
    found = restore(str(tmp_path / "good"), address, force=True, env=ENV)
    assert Path(found["aside"]).read_bytes() == damaged
    with open_(address, clock) as desk:
        well(desk)
        assert desk.show("PROJ-1")["title"] == "Waits: work"


def test_a_backup_of_an_older_schema_is_upgraded_on_the_way_in(tmp_path, new_db, dialect):
    file, target = str(tmp_path / "old.db"), new_db(dialect)
    old_desk(file, 1)
    before = Path(file).read_bytes()
    restore(file, target, env=ENV)
    assert Path(file).read_bytes() == before, "the backup itself stays as it is"
    with open_(target, lambda: told(1)["now"]) as new:
        assert schema.version_of(new.desk.store) == schema.VERSION
        assert new.show("PROJ-1")["awaiting"] == "work"
        well(new)


def test_a_desk_of_an_older_schema_can_be_replaced_and_is_kept(desk, clock, new_db, dialect, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fill(desk, clock)
    desk.backup(str(tmp_path / "b"))
    target, again = new_db(dialect), new_db(dialect)
    old_desk(target, 1)
    with pytest.raises(Precondition, match="it holds 26 tasks"):
        restore(str(tmp_path / "b"), target, env=ENV)
    found = restore(str(tmp_path / "b"), target, force=True, env=ENV)
    with open_(target, clock) as new:
        assert new.show("PROJ-1")["title"] == "Waits: work"
        well(new)
    assert restore(found["aside"], again, env=ENV)["tasks"] == 26
    with open_(again, lambda: told(1)["now"]) as old:
        well(old)

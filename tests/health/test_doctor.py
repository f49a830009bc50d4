"""The doctor finds what the desk itself would never write."""

from __future__ import annotations

import pytest

from tests.db.processes import raw
from tests.db.test_event_log import live
from yourturn.db import schema
from yourturn.health import doctor


def _sick(desk):
    return {line["check"]: line for line in doctor.examine(desk) if line["status"] != "ok"}


def test_a_desk_in_use_is_well(desk, agent):
    live(desk, agent)
    lines = doctor.examine(desk)
    assert [line["check"] for line in lines] == [*(check.name for check in doctor.CHECKS), "workers"]
    assert {line["status"] for line in lines} == {"ok"}, lines
    assert all(set(line) == {"check", "status", "words", "hint"} and line["words"] for line in lines)


_DEPS = "INSERT INTO deps (task_id, needs_id) VALUES"
_ASK = (
    "INSERT INTO questions (workspace_id, id, task_id, kind, blocking, text, urgency, response_type, on_timeout, status, "
    "asked_by, asked_at) VALUES (1, 77, {}, 'input', 1, '?', 'normal', 'text', 'keep', 'pending', 'human:ana', 1)"
)
#: kind of damage -> (the check that finds it, how)
DAMAGE = {
    "a claim vanishes": ("working", "UPDATE tasks SET holder = NULL WHERE id = 7"),
    "a claim appears": ("claims", "UPDATE tasks SET holder = 'w', claim_hash = event_head, lease_expires_at = 1 WHERE id = 4"),
    "a question vanishes": ("human", "DELETE FROM questions WHERE id = 2"),
    "a question appears": ("asked", _ASK.format(4)),
    "a question survives": ("ended", _ASK.format(1)),
    "a task is freed": ("ready", "UPDATE tasks SET state = 'ready' WHERE id = 3"),
    "a task is stopped": ("blocked", "UPDATE tasks SET state = 'blocked' WHERE id = 4"),
    "a need appears": ("ready", f"{_DEPS} (5, 4)"),
    "needs vanish": ("blocked", "DELETE FROM deps WHERE task_id = 3"),
    "a circle of two": ("circles", f"{_DEPS} (4, 5), (5, 4)"),
    "a circle of three": ("circles", f"{_DEPS} (4, 5), (5, 8), (8, 4)"),
    "an epoch falls": ("epochs", "UPDATE tasks SET epoch = 0 WHERE id = 6"),
    "an epoch comes again": ("epochs", """UPDATE events SET data = replace(data, '"epoch":2', '"epoch":1') WHERE task_id = 6"""),
    "tries run out": ("retries", "UPDATE tasks SET retry_count = max_retries WHERE id = 4"),
    "a state is changed": ("log", "UPDATE tasks SET state = 'cancelled', ended_at = 1 WHERE id = 4"),
    "an event is changed": ("history", "UPDATE events SET actor = 'human:eve' WHERE task_id = 4"),
    "a task is deleted": ("rows", "DELETE FROM tasks WHERE id = 8"),
    "a project is deleted": ("rows", "DELETE FROM projects"),
    "a note without a task": ("rows", "INSERT INTO notes (task_id, author, text, at) VALUES (999, 'a', 'b', 1)"),
    "a token in clear": ("secrets", "UPDATE tokens SET hash = 'yt_secret'"),
    "a claim in clear": ("secrets", "UPDATE tasks SET claim_hash = 'PROJ-7.1.secret' WHERE id = 7"),
    "a token in the log": ("secrets", "UPDATE events SET data = '{\"token\":\"yt_secret\"}' WHERE action = 'token_create'"),
    "the schema is newer": ("schema", "INSERT INTO schema_version (version, applied_at) VALUES (99, 1)"),
    "rubbish in an event": ("log", "UPDATE events SET data = 'rubbish' WHERE task_id = 4"),
}
_TABLES = ("deps", "notes", "questions", "events", "tokens", "tasks", "projects", "schema_version")


def test_damage_is_found(desk, agent, address):
    live(desk, agent)
    desk.create("G")
    agent.claim("PROJ-7", "w3")
    desk.create("H")
    desk.create_token("ci")
    missed = []
    with raw(address) as run:
        run.unguard()
        if run.postgres:
            for table, name in run(
                "SELECT CAST(conrelid AS regclass), conname FROM pg_constraint "
                "WHERE contype = 'c' AND connamespace = CAST(current_schema() AS regnamespace)"
            ):
                run(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
        assert set(_sick(desk)) == {"database"}, "the guards are gone, and it says so"
        for table in _TABLES:
            run(f"CREATE TABLE {table}_before AS SELECT * FROM {table}")
        for how, (check, sql) in DAMAGE.items():
            run(sql)
            found = _sick(desk)
            if check not in found or not found[check]["hint"]:
                missed.append((how, found))
            for table in _TABLES:
                run(f"DELETE FROM {table}")
                run(f"INSERT INTO {table} SELECT * FROM {table}_before")
            assert set(_sick(desk)) == {"database"}, how
    assert missed == []
    assert {check for check, _ in DAMAGE.values()} | {"database", "readers", "overdue"} == {c.name for c in doctor.CHECKS}


def test_overdue_moves_are_named_with_the_command(desk, agent, clock):
    desk.create("A")
    agent.claim_next("w1")
    assert _sick(desk) == {}
    clock.advance(hours=2)
    sick = _sick(desk)
    assert set(sick) == {"overdue"}
    assert sick["overdue"]["status"] == "warn" and "turn reconcile" in sick["overdue"]["hint"]
    assert "1 task should have moved" in sick["overdue"]["words"]
    desk.reconcile()
    assert _sick(desk) == {}


@pytest.mark.parametrize("dialect", ["postgres"])
def test_a_transaction_that_holds_readers_back_is_named(desk, address, dialect):
    store = desk.desk.store
    assert store.held_back(0) == []
    with raw(address) as run:
        run("SET application_name = 'slowpoke'")
        run("BEGIN")
        run("SELECT pg_current_xact_id()")
        assert "slowpoke" in store.held_back(0)[0]
        assert store.held_back() == [], "a minute is nothing yet"
        run("COMMIT")
    assert store.held_back(0) == []


@pytest.mark.parametrize("table", ["tasks", "events", "questions", "deps", "tokens", "workspaces", "schema_version"])
def test_a_missing_table_is_reported_not_raised(desk, address, table):
    desk.create("A")
    with raw(address) as run:
        if not run.postgres:
            run("PRAGMA foreign_keys = OFF")
        run(f"DROP TABLE {table}" + (" CASCADE" if run.postgres else ""))
    sick = _sick(desk)
    assert sick and all(line["status"] == "bad" for line in sick.values())
    assert any(line["words"].startswith("the check failed") for line in sick.values())


def test_a_long_list_is_cut(desk, address):
    for number in range(8):
        desk.create(f"Task {number}")
    with raw(address) as run:
        run.unguard()
        run("UPDATE events SET actor = 'human:eve' WHERE task_id IS NOT NULL")
    assert _sick(desk)["history"]["words"].endswith("and 3 more")


def test_the_doctor_changes_nothing(desk, agent, clock, address):
    live(desk, agent)
    agent.claim_next("w9")
    clock.advance(days=3)
    with raw(address) as run:
        before = run("SELECT * FROM tasks ORDER BY id"), run("SELECT * FROM events ORDER BY seq")
        doctor.examine(desk)
        assert before == (run("SELECT * FROM tasks ORDER BY id"), run("SELECT * FROM events ORDER BY seq"))
    assert schema.version_of(desk.desk.store) == schema.VERSION

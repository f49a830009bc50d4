"""From every released schema: waiting work survives the upgrade, also one that is killed anywhere in the middle."""

from __future__ import annotations

import pytest

from tests.db.processes import raw
from yourturn.config import connect, init, open_store
from yourturn.core.errors import SchemaMismatch
from yourturn.core.model import Who
from yourturn.db import schema
from yourturn.health.audit import verify
from yourturn.health.doctor import examine
from yourturn.testing import FakeClock

from .killed_upgrades import Upgrader, contents, killed_everywhere, shape
from .schemas import RELEASED, old_desk, rows, told

pytestmark = pytest.mark.processes


def test_every_released_schema_is_kept():
    assert list(range(1, schema.VERSION)) == RELEASED


@pytest.mark.parametrize("version", RELEASED)
def test_an_upgraded_desk_is_like_a_new_one(new_db, dialect, version):
    old, new = new_db(dialect), new_db(dialect)
    old_desk(old, version)
    with Upgrader() as upgrade:
        upgrade(old)
    init(new, "PROJ", None, {"USER": "ana"})[0].close()
    assert shape(old) == shape(new)


@pytest.mark.parametrize("version", RELEASED)
def test_waiting_work_survives(new_db, dialect, version):
    address, held = new_db(dialect), told(version)
    old_desk(address, version)
    with raw(address) as run:
        names = ", ".join(sorted({name for table, row in rows(version) if table == "questions" for name in row}))
        asked = run(f"SELECT {names} FROM questions ORDER BY id")
        chains = run("SELECT task_id, n, data, prev, hash FROM events ORDER BY seq")
        epochs = run("SELECT key, epoch, claim_hash, lease_expires_at FROM tasks ORDER BY id")
    with pytest.raises(SchemaMismatch, match=f"has schema {version}") as error:
        connect(address, env={})
    assert "turn init --upgrade" in error.value.hint
    _, about = init(address, None, None, {"USER": "ana"}, upgrade=True)
    assert about["schema"] == schema.VERSION
    with raw(address) as run:
        assert run(f"SELECT {names} FROM questions ORDER BY id") == asked
        assert run("SELECT task_id, n, data, prev, hash FROM events ORDER BY seq") == chains
        assert run("SELECT key, epoch, claim_hash, lease_expires_at FROM tasks ORDER BY id") == epochs
    clock = FakeClock(held["now"])
    with connect(address, as_="human:ana", clock=clock, env={}) as desk:
        assert [c for c in examine(desk, strict=True) if c["status"] == "bad"] == [] and verify(desk)["ok"]
        assert desk.desk.credentials.identify(held["tokens"]["ci"]).role == "agent"
        coder = desk.as_(Who("agent:coder", "agent", direct=True))
        waiting = desk.inbox()
        assert {q["kind"] for q in waiting} >= {
            "work", "approval", "input", "review", "content", "escalation", "checkpoint", "permission", "recovery",
        }  # fmt: skip
        for question in waiting:
            if question["kind"] == "input" and question["options"]:
                desk.answer(question["id"], "sessions")
            elif question["id"].startswith("Q"):
                desk.approve(question["id"], **({"value": "no"} if question["response_type"] == "boolean" else {}))
        for token in held["claims"].values():
            held_task = coder.heartbeat(token)
            journal = held_task["journal"] if held_task["workflow"] else None
            assert coder.complete(token, journal=journal)["state"] in ("done", "human", "review")
        desk.reconcile()
        assert desk.reconcile() == {"moved": 0, "failed": 0}, "what the new schema owes is paid once"
        assert [c for c in examine(desk, strict=True) if c["status"] == "bad"] == [] and verify(desk)["ok"]


@pytest.mark.parametrize("version", RELEASED)
def test_an_upgrade_that_is_killed_after_a_statement_is_harmless(new_db, dialect, version):
    """After every seventh statement here; after each one in `make torture`, section migrations."""
    kills, wrong = killed_everywhere(lambda: new_db(dialect), version, every=7)
    assert wrong == []
    assert kills >= 1


def test_an_old_program_refuses_what_a_newer_one_upgraded(new_db, dialect):
    address = new_db(dialect)
    old_desk(address, 1)
    with Upgrader() as upgrade:
        upgrade(address)
    before = contents(address)
    store = open_store(address)
    try:
        for refuse in (lambda: schema.check(store, known=1), lambda: schema.create(store, upgrade=True, known=1)):
            with pytest.raises(SchemaMismatch, match=f"has schema {schema.VERSION}, and this program only knows 1") as error:
                refuse()
            assert "pip install --upgrade yourturn" in error.value.hint
    finally:
        store.close()
    assert contents(address) == before


def test_upgraded_desk_shows_due_questions_of_schema_6(new_db, dialect):
    """A ready task that is too large is not shown as work, and a question whose cause is gone closes itself."""
    address = new_db(dialect)
    old_desk(address, 5)
    with raw(address) as run:
        childless = "NOT EXISTS (SELECT 1 FROM tasks c WHERE c.parent_id = t.id)"
        large = run(f"SELECT key FROM tasks t WHERE state = 'ready' AND {childless} ORDER BY id")[0][0]
        run(f"UPDATE tasks SET complexity = 'xlarge' WHERE key = '{large}'")
    init(address, None, None, {"USER": "ana"}, upgrade=True)[0].close()
    with connect(address, as_="human:ana", clock=FakeClock(told(5)["now"]), env={}) as desk:
        assert desk.show(large)["state"] == "created"
        assert {q["reason"] for task in desk.list(state="review") for q in task["questions"]} == {"finished"}

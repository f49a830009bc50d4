"""Each compare-and-swap of the database by itself, with the other guards out of the way."""

from __future__ import annotations

import threading
import time

import pytest

from yourturn.client import Client
from yourturn.core.actions import say
from yourturn.core.canonical_json import digest
from yourturn.core.decide import decide
from yourturn.core.errors import NotFound, Precondition
from yourturn.core.model import SYSTEM
from yourturn.db.backend import Conflict
from yourturn.db.unit_of_work import UnitOfWork
from yourturn.desk.desk import Desk

from .processes import raw


def _tx(desk, run):
    return UnitOfWork(desk.desk.store, run, desk.desk.workspace)


# --- comparing --------------------------------------------------------------------------------------------------------


def test_a_decision_on_an_old_version_is_not_saved(desk, agent, clock):
    """A heartbeat leaves no event, so that no number in its chain can tell either."""
    desk.create("A")
    claim = agent.claim("PROJ-1", "w1")["claim"]
    beat = say("heartbeat", agent.who, task=1, claim=claim["token"])
    store = desk.desk.store
    with store.reading() as run:
        old = _tx(desk, run).case(1)[0]
    clock.advance(minutes=2)
    agent.heartbeat(claim)
    ends = agent.show("PROJ-1")["claim"]["expires_at"]
    with pytest.raises(Conflict), store.begin() as run:
        tx = _tx(desk, run)
        tx.save(decide(old, beat, clock() - 60_000_000))
        tx.write()
    assert agent.show("PROJ-1")["claim"]["expires_at"] == ends


def test_a_question_that_is_not_pending_is_not_closed(desk, agent, clock):
    desk.create("A")
    agent.ask("PROJ-1", "Which?")
    store = desk.desk.store
    answer = say("answer", desk.who, task=1, question_id=1, value="that")
    with pytest.raises(Conflict), store.begin() as run:
        tx = _tx(desk, run)
        decision = decide(tx.case(1)[0], answer, clock())
        run("UPDATE questions SET status = 'cancelled', responded_by = 'system', responded_at = 1 WHERE id = 1")
        tx.save(decision)
        tx.write()
    assert desk.show("Q1")["status"] == "pending", "and all of it is undone"


def test_a_permission_used_by_another_call_is_not_used(desk, agent, clock):
    desk.create("A")
    agent.ask("PROJ-1", "Push?", "permission")
    desk.approve("Q1")
    store = desk.desk.store
    use = say("use", agent.who, task=1, question_id=1, by="s/c1", digest=digest("Push?"))
    with pytest.raises(Conflict), store.begin() as run:
        tx = _tx(desk, run)
        decision = decide(tx.case(1, 1)[0], use, clock())
        run("UPDATE questions SET used_by = 's/c2' WHERE id = 1")
        tx.save(decision)
        tx.write()
    assert desk.show("Q1")["used_by"] is None, "and all of it is undone"


@pytest.mark.parametrize(
    "faster", ["status = 'completed', result = '1', ended_at = 1", "digest = 'another call'"], ids=["completed", "another"]
)
def test_a_step_of_another_writer_is_not_changed(desk, agent, clock, faster):
    desk.create("A", workflow="a.py")
    claim = agent.claim("PROJ-1", "w1")["claim"]
    step = {"path": "1", "name": "run", "status": "running"}
    agent.record(claim, [step])
    store = desk.desk.store
    write = say("step", agent.who, task=1, steps=[{**step, "status": "completed"}], claim=claim["token"])
    with pytest.raises(Conflict), store.begin() as run:
        tx = _tx(desk, run)
        decision = decide(tx.cases.with_steps(tx.case(1)[0], ["000001"]), write, clock())
        run(f"UPDATE steps SET {faster}")
        tx.save(decision)
        tx.write()
    assert desk.steps("PROJ-1")[0]["status"] == "running", "and all of it is undone"


def test_a_transaction_that_loses_a_race_runs_again(desk):
    seen = []

    def look(reader, done):
        seen.append(done.task)
        if len(seen) < 3:
            raise Conflict
        return "told"

    assert desk.desk.do(say("create", desk.who, title="A", project="PROJ"), look) == "told"
    assert len(seen) == 3 and [task["key"] for task in desk.list()] == ["PROJ-1"]


# --- locking ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ["postgres"])
def test_a_worker_does_not_wait_for_anothers_task(desk, open_desk):
    desk.create("A")
    desk.create("B")
    other, found = open_desk("agent:coder"), []
    thread = threading.Thread(target=lambda: found.append(other.claim_next("w1")))
    with desk.desk.store.begin() as run:
        _tx(desk, run).case(1)
        thread.start()
        thread.join(5)
        assert not thread.is_alive(), "it waits for a task that it would not get"
    thread.join()
    assert found[0]["task"]["key"] == "PROJ-2"


@pytest.mark.parametrize("dialect", ["postgres"])
def test_neighbours_are_locked_in_the_order_of_their_numbers(desk, open_desk, address):
    """A transaction that waits for the first lock does not hold the second, so two of them cannot deadlock."""
    desk.create("A")
    desk.create("B")
    other = open_desk()
    thread = threading.Thread(target=lambda: other.create("C", depends_on=["PROJ-2", "PROJ-1"]))
    with raw(address) as run:
        with desk.desk.store.begin() as held:
            _tx(desk, held).case(1)
            thread.start()
            ends = time.monotonic() + 20
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
            while not run.one(waiting):
                assert time.monotonic() < ends, "nobody waits"
                time.sleep(0.01)
            run("SELECT id FROM tasks WHERE id = 2 FOR NO KEY UPDATE NOWAIT")
        thread.join(20)
    assert desk.show("PROJ-3")["state"] == "blocked"


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_a_writer_has_the_desk_to_itself_before_it_looks(desk, address):
    """It begins by taking the lock: who takes it only when it writes has decided on rows that changed meanwhile."""
    with desk.desk.store.begin(), raw(address) as run:
        run("PRAGMA busy_timeout = 0")
        with pytest.raises(Exception, match="locked"):
            run("BEGIN IMMEDIATE")


# --- secrets ----------------------------------------------------------------------------------------------------------


def test_no_secret_is_stored(desk, agent, address):
    desk.create("A")
    claim = agent.claim("PROJ-1", "w1")["claim"]["token"]
    token = desk.create_token("ci")["token"]
    with raw(address) as run:
        stored = repr([run(f"SELECT * FROM {table}") for table in ("tasks", "tokens", "events", "replies")])
    assert claim not in stored and token not in stored and claim.rpartition(".")[2] not in stored


# --- apart ------------------------------------------------------------------------------------------------------------


def test_a_workspace_sees_nothing_of_another(desk, agent, clock):
    desk.create("A", external_id="old-1")
    agent.ask("PROJ-1", "Which?")
    store = desk.desk.store
    with store.begin() as run:
        run(store.query["insert_workspace"], {"name": "other", "at": clock()})
    other = Client(Desk(store, desk.who, workspace="other", clock=clock), "PROJ")
    other.create_project("PROJ")
    mine = other.create("B")
    assert (mine["key"], other.list(), other.inbox()) == ("PROJ-1", [other.show("PROJ-1")], [])
    assert [e["action"] for e in other.history()].count("create") == 1
    for move in (
        lambda: other.do("note", task=1, text="x"),
        lambda: other.do("cancel", task=1),
        lambda: other.do("answer", task=1, question_id=1, value="x"),
        lambda: other.do("answer", task=2, question_id=1, value="x"),
        lambda: other.do("create", title="C", project="PROJ", parent=1),
        lambda: other.show("Q1"),
        lambda: other.show("old-1"),
        lambda: other.desk.find("Q1"),
    ):
        with pytest.raises(NotFound):
            move()
    with pytest.raises(NotFound, match="There is no question Q1"):
        other.do("note", task=2, question_id=1, text="x")
    assert desk.show("PROJ-1")["state"] == "human" and desk.show("Q1")["status"] == "pending"


# --- time -------------------------------------------------------------------------------------------------------------


def test_silence_cannot_be_called_early(desk, agent, clock):
    desk.create("A")
    agent.ask("PROJ-1", "Which?", timeout="10m", on_timeout="fail")
    clock.advance(minutes=9)
    with pytest.raises(Precondition, match="the time is not up"):
        desk.as_(SYSTEM).do("timeout", task=1, question_id=1)
    assert desk.show("Q1")["status"] == "pending"


def test_a_clock_that_is_set_back_decides_nothing_earlier(desk, agent, clock):
    desk.create("A")
    claim = agent.claim("PROJ-1", "w1", lease="10m")["claim"]
    clock.advance(minutes=9)
    desk.note("PROJ-1", "it is late")
    before = desk.show("PROJ-1")
    clock.advance(minutes=-9)
    agent.heartbeat(claim)
    assert desk.show("PROJ-1")["claim"]["expires_at"] > before["claim"]["expires_at"]
    desk.note("PROJ-1", "it is early")
    times = [event["at"] for event in desk.history("PROJ-1")]
    assert times == sorted(times) and desk.show("PROJ-1")["updated_at"] == before["updated_at"]

"""Completing a task and claiming the next in one commit: both happen, or neither."""

from __future__ import annotations

import pytest

from tests.db.processes import raw
from yourturn.core.actions import say
from yourturn.core.errors import ClaimLost
from yourturn.db.connection import Connection
from yourturn.health.doctor import examine


def test_one_commit_completes_and_claims(desk, agent, address):
    for title in "AB":
        desk.create(title)
    first = agent.claim_next("w1")
    with raw(address) as run:
        before = run("SELECT max(seq) FROM events")[0][0]
    second = agent.claim_next("w1", completing=first, summary="A is there")
    assert second["task"]["key"] == "PROJ-2" and second["claim"]["epoch"] == 1
    assert (desk.show("PROJ-1")["state"], desk.show("PROJ-1")["summary"]) == ("done", "A is there")
    assert [e["action"] for e in desk.history(after=before)] == ["complete", "accept", "claim"]
    assert agent.claim_next("w1", completing=second) is None
    assert desk.show("PROJ-2")["state"] == "done"
    assert [c for c in examine(desk, strict=True) if c["status"] == "bad"] == []


def test_a_lost_claim_takes_nothing(desk, agent, clock):
    for title in "AB":
        desk.create(title)
    late = agent.claim_next("w1", lease="1m")
    clock.advance(minutes=2)
    with pytest.raises(ClaimLost):
        agent.claim_next("w1", completing=late)
    assert [t["state"] for t in desk.list()] == ["ready", "ready"]
    assert agent.claim_next("w2")["task"]["key"] == "PROJ-1"


def test_what_is_due_elsewhere_does_not_hold_it_up(desk, agent, clock):
    for title in "ABC":
        desk.create(title)
    agent.claim_next("dead", lease="1m")
    mine = agent.claim_next("w1", lease="1h")
    clock.advance(minutes=2)
    got = agent.claim_next("w1", completing=mine)
    assert (got["task"]["key"], desk.show("PROJ-2")["state"]) == ("PROJ-1", "done")


def test_what_it_unblocks_can_be_the_next(desk, agent):
    desk.create("A")
    desk.create("B", depends_on=["PROJ-1"])
    got = agent.claim_next("w1")
    assert agent.claim_next("w1", completing=got)["task"]["key"] == "PROJ-2"


def test_what_was_given_back_can_be_the_next(desk, agent):
    """It is the older one, so a candidate that was read before it became ready again is out of date."""
    for title in "AB":
        desk.create(title)
    held = agent.desk.claim_next("w1", project="PROJ")
    back = say("release", agent.who, task=held.task, claim=held.claim.token)
    again = agent.desk.claim_next("w1", project="PROJ", first=back)
    assert (again.task, again.claim.epoch) == (held.task, 2)
    assert [t["state"] for t in desk.list()] == ["working", "ready"]
    assert [c for c in examine(desk, strict=True) if c["status"] == "bad"] == []


def test_the_completed_task_was_moved_meanwhile(desk, agent):
    for title in "AB":
        desk.create(title)
    held = agent.claim_next("w1")
    desk.note("PROJ-1", "What the worker remembers is old now")
    assert agent.claim_next("w1", completing=held)["task"]["key"] == "PROJ-2"
    assert [desk.show(key)["state"] for key in ("PROJ-1", "PROJ-2")] == ["done", "working"]


@pytest.mark.parametrize("dialect", ["postgres"])
def test_it_is_two_round_trips(desk, agent, dialect, monkeypatch):
    """The first batch completes the task and picks the next, the second claims that and commits."""
    for title in "ABCDEFGH":
        desk.create(title)
    held, trips, flush = None, [], Connection.flush
    monkeypatch.setattr(Connection, "flush", lambda connection: (trips.append(1), flush(connection))[1])
    for _ in range(4):
        first = held and say("complete", agent.who, task=held.task, claim=held.claim.token)
        trips.clear()
        held = agent.desk.claim_next("w1", project="PROJ", first=first)
    assert len(trips) == 2


@pytest.mark.parametrize("dialect", ["postgres"])
def test_a_move_is_two_round_trips_and_one_if_the_case_is_remembered(desk, open_desk, dialect, monkeypatch):
    desk.create("A")
    other, trips, flush = open_desk("human:bob"), [], Connection.flush
    monkeypatch.setattr(Connection, "flush", lambda connection: (trips.append(1), flush(connection))[1])
    for expected in (2, 1, 1):
        trips.clear()
        other.do("note", task=1, text="hm")
        assert len(trips) == expected

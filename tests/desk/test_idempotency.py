"""One effect per idempotency key: a repeated request gets the first result."""

from __future__ import annotations

import pytest

from tests.db.processes import crowd, oks, raw
from yourturn.core.errors import AlreadyClosed, ClaimLost, KeyReused, YourturnError


def _count(desk):
    return len(desk.history(limit=1000))


def _twice(desk, say, client=None):
    """Say it, say it again: the same answer, and no second event."""
    first = say()
    events = _count(desk)
    again = say()
    assert _count(desk) == events
    return first, again


def test_create(desk):
    first, again = _twice(desk, lambda: desk.create("A", priority=1, key="k1"))
    assert first == again and first["key"] == "PROJ-1"
    assert desk.create("A", priority=1)["key"] == "PROJ-2", "without a key it is another task"


def test_create_with_a_question(desk):
    first, again = _twice(desk, lambda: desk.create("A", awaiting="approval", key="k1"))
    assert first == again and len(desk.inbox()) == 1


def test_update_and_note(desk):
    desk.create("A")
    first, again = _twice(desk, lambda: desk.update("PROJ-1", title="B", key="k1"))
    assert first == again
    first, again = _twice(desk, lambda: desk.note("PROJ-1", "hm", key="k2"))
    assert len(again["notes"]) == 1


def test_claim_gives_the_same_claim(desk, agent):
    """Tokens are not stored, so the claim gets a new one; who lost the reply lost the old one with it."""
    desk.create("A")
    first, again = _twice(desk, lambda: agent.claim("PROJ-1", "w1", key="k1"))
    assert first["claim"]["epoch"] == again["claim"]["epoch"] == 1
    assert first["claim"]["expires_at"] == again["claim"]["expires_at"]
    with pytest.raises(ClaimLost):
        agent.heartbeat(first["claim"])
    assert agent.complete(again["claim"])["state"] == "done"
    with pytest.raises(ClaimLost, match="is over"):
        agent.claim("PROJ-1", "w1", key="k1")


def test_a_claims_token_cannot_be_guessed_from_its_key(desk, agent):
    desk.create("A")
    desk.create("B")
    tokens = [agent.claim(key, "w1", key=f"the same {key}")["claim"]["token"].rsplit(".")[-1] for key in ("PROJ-1", "PROJ-2")]
    assert tokens[0] != tokens[1] and len(tokens[0]) == 32


def test_a_replayed_claim_revives_nothing(desk, agent, clock):
    desk.create("A")
    old = agent.claim("PROJ-1", "w1", key="k1")
    clock.advance(hours=2)
    new = agent.claim("PROJ-1", "w2", key="k2")
    assert (old["claim"]["epoch"], new["claim"]["epoch"]) == (1, 2)
    with pytest.raises(ClaimLost, match="is over"):
        agent.claim("PROJ-1", "w1", key="k1")
    with pytest.raises(ClaimLost):
        agent.complete(old["claim"])
    assert agent.complete(new["claim"])["state"] == "done"


def test_complete(desk, agent):
    desk.create("A")
    got = agent.claim("PROJ-1", "w1")
    first, again = _twice(desk, lambda: agent.complete(got["claim"], "did it", key="k1"))
    assert first == again and again["state"] == "done"


def test_ask_and_flag(desk, agent):
    desk.create("A")
    first, again = _twice(desk, lambda: agent.ask("PROJ-1", "Which?", options=["a", "b"], key="k1"))
    assert first == again and first["id"] == "Q1"
    first, again = _twice(desk, lambda: agent.flag("PROJ-1", "Help", key="k2"))
    assert first == again and len(desk.inbox()) == 2


def test_answer(desk, agent):
    desk.create("A")
    asked = agent.ask("PROJ-1", "Which?")
    first, again = _twice(desk, lambda: desk.answer(asked["id"], "that", key="k1"))
    assert first == again and again["status"] == "answered"
    with pytest.raises(AlreadyClosed):
        desk.answer(asked["id"], "that")


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_approve_and_reject(desk, agent, verb):
    desk.create("A", awaiting="approval")
    first, again = _twice(desk, lambda: getattr(desk, verb)("PROJ-1", "so be it", key="k1"))
    assert first == again and again["state"] == {"approve": "done", "reject": "ready"}[verb]


def test_an_answer_by_the_tasks_key_stays_with_its_question(desk, agent):
    """The second time, the key stands for another question; the idempotency key still means the first."""
    desk.create("A")
    agent.ask("PROJ-1", "Which?")
    first = desk.answer("PROJ-1", "that", key="k1")
    agent.ask("PROJ-1", "And where?")
    again = desk.answer("PROJ-1", "that", key="k1")
    assert (first.pop("task_state"), again.pop("task_state")) == ("ready", "human"), "the first question; the task as it is"
    assert first == again and again["id"] == "Q1"
    assert [q["id"] for q in desk.inbox()] == ["Q2"]


def test_another_request_with_the_same_key_is_refused(desk, agent, open_desk):
    desk.create("A", key="k1")
    desk.create("B")
    agent.ask("PROJ-1", "Which?", key="k2")
    desk.answer("Q1", "that", key="k3")
    bob = open_desk("human:bob")
    events = _count(desk)
    for other in (
        lambda: desk.create("B", key="k1"),
        lambda: desk.create("A", priority=0, key="k1"),
        lambda: desk.note("PROJ-1", "A", key="k1"),
        lambda: agent.ask("PROJ-1", "Where?", key="k2"),
        lambda: agent.ask("PROJ-2", "Which?", key="k2"),
        lambda: desk.answer("Q1", "this", key="k3"),
        lambda: desk.answer("Q1", "that", verdict="rejected", key="k3"),
        lambda: agent.claim("PROJ-2", "w1", key="k2"),
    ):
        with pytest.raises(KeyReused) as error:
            other()
        assert error.value.exit_code == 4
    assert _count(desk) == events
    assert bob.create("A", key="k1")["key"] == "PROJ-3", "somebody else's key is another key"


def test_what_was_refused_may_be_tried_again(desk, agent):
    desk.create("A")
    asked = agent.ask("PROJ-1", "Which?", options=["a", "b"])
    with pytest.raises(YourturnError):
        desk.answer(asked["id"], "c", key="k1")
    assert desk.answer(asked["id"], "a", key="k1")["status"] == "answered"


def test_eight_processes_with_one_key_make_one_claim(desk, address):
    desk.create("A")
    tokens = oks(crowd(address, *[("claim_keyed", "agent:coder", {"task": "PROJ-1", "key": "k1"})] * 8))
    assert len(tokens) == 8 and {token.rsplit(".", 1)[0] for token in tokens} == {"PROJ-1.1"}
    assert [e["action"] for e in desk.history("PROJ-1")] == ["create", "claim"]
    with raw(address) as run:
        assert run.one("SELECT count(*) FROM replies") == 1

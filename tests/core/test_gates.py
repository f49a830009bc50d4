"""Gates stay shut: nobody walks around one, nothing is left where nobody can reach it."""

from __future__ import annotations

import pytest

from yourturn.core.errors import Invalid, NotAllowed, Precondition


@pytest.fixture
def ben(bench, open_desk):
    """A member where approvals are reserved for approvers."""
    bench.desk.set_user("ben", "member")
    bench.desk.set("approvals", "approvers", "PROJ")
    return open_desk("human:ben")


@pytest.mark.parametrize("way", ["approve", "reject", "hand_back", "resolve", "close", "withdraw"])
def test_a_reserved_gate_has_no_back_door(bench, ben, way):
    key = bench.ready(awaiting="approval")
    before = bench.desk.show(key)
    with pytest.raises(NotAllowed, match="only approvers can"):
        getattr(ben, way)(key)
    assert bench.desk.show(key) == before
    getattr(bench.desk, way)(key)
    assert bench.desk.show(key)["awaiting"] is None


@pytest.mark.parametrize("way", ["accept", "reject", "close"])
def test_finished_work_is_a_gate_too(bench, ben, way):
    key = bench.review()
    with pytest.raises(NotAllowed, match="only approvers can"):
        getattr(ben, way)(key)
    getattr(bench.desk, way)(key)
    assert bench.desk.show(key)["state"] in ("done", "ready")


def test_what_is_no_gate_is_open_to_members(bench, ben):
    assert ben.answer(bench.ready(awaiting="input"), "JWT")["status"] == "answered"
    assert ben.close(bench.ready())["state"] == "done"


def test_what_the_system_asked_must_be_answered(bench):
    """Withdrawn, an exhausted task would be ready and yet claimable by nobody."""
    key = bench.working(max_retries=1)
    assert bench.agent.release(bench.claims[key])["state"] == "human"
    with pytest.raises(Precondition, match="answer it, or hand the task back"):
        bench.desk.withdraw(key)
    assert bench.desk.hand_back(key)["retry_count"] == 0
    assert bench.agent.claim(key, "w1")["task"]["state"] == "working"


@pytest.mark.parametrize("aside", ["draft", "defer", "flag"])
def test_a_container_finished_while_put_aside_completes(bench, aside):
    bench.desk.set("review", "auto")
    epic = bench.desk.create("epic", type="epic", draft=aside == "draft")["key"]
    child = bench.ready(parent=epic)
    if aside == "defer":
        bench.desk.defer(epic)
    elif aside == "flag":
        bench.desk.flag(epic, "What now?")
    bench.desk.close(child)
    assert bench.desk.show(epic)["state"] == {"draft": "created", "defer": "deferred", "flag": "human"}[aside]
    {"draft": bench.desk.vet, "defer": bench.desk.wake, "flag": lambda key: bench.desk.answer(key, "go on")}[aside](epic)
    assert bench.desk.show(epic)["state"] == "done"
    assert bench.desk.reopen(epic)["state"] == "ready", "a reopened container waits for new children"


def test_inner_arguments_are_not_for_callers(bench):
    key = bench.ready()
    with pytest.raises(Invalid, match="takes no 'warned'"):
        bench.agent.flag(key, "x", warned=1)
    with pytest.raises(Invalid, match="takes no 'circle'"):
        bench.agent.create("x", circle=[])


def test_names_are_no_paths(bench):
    key = bench.ready()
    for name in ("../../etc", "a/../b", "..", ".hidden", "/abs"):
        with pytest.raises(Invalid, match="must be one word"):
            bench.agent.claim(key, name)
        with pytest.raises(Invalid, match="must be one word"):
            bench.desk.update(key, branch=name)


def test_kind_timeouts_keep_to_the_limits(bench):
    bench.desk.set("max_timeout", "8m", "PROJ")
    asked = bench.agent.ask(bench.ready(), "?", kind="input")
    assert asked["timeout_at"] is not None
    bench.clock.advance(minutes=8, seconds=1)
    assert bench.desk.show(asked["id"])["status"] == "timeout"

"""Gates cannot be bypassed, and no task is left in a state without a way out."""

from __future__ import annotations

import pytest

from yourturn.core.errors import Invalid, NotAllowed, NotFound, Precondition
from yourturn.core.time_format import lasting


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
    """Withdrawing it would make an exhausted task ready, but not claimable."""
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


@pytest.mark.parametrize("kind", ["work", "approval", "review", "content", "checkpoint", "permission"])
def test_a_no_is_never_taken_for_a_yes(bench, kind):
    """However the asker words it, a gate is answered with yes or no, and no means no."""
    for how in ({"options": ["approve", "reject"]}, {"response_type": "text"}, {"response_type": "number"}):
        with pytest.raises(Invalid, match="answered with yes or no"):
            bench.agent.ask(bench.ready(), "May I?", kind=kind, **how)
    key = bench.ready()
    asked = bench.agent.ask(key, "May I?", kind=kind, response_type="boolean")
    if kind == "work":
        with pytest.raises(Precondition):
            bench.desk.answer(asked, "no")
    else:
        assert bench.desk.answer(asked, "no")["response"]["verdict"] == "rejected"
        assert bench.desk.show(key)["state"] == "ready"
    again = bench.agent.ask(bench.ready(), "May I?", kind=kind, response_type="boolean")
    assert bench.desk.answer(again, "yes")["response"]["verdict"] == "approved"


def test_a_container_needs_its_signature_too(bench):
    bench.desk.set("review", "auto")
    epic = bench.desk.create("epic", type="epic", requires="approval")["key"]
    bench.desk.decompose(epic, ["trivial"])
    child = bench.agent.claim_next("w1")
    bench.agent.complete(child["claim"])
    task = bench.desk.show(epic)
    assert (task["state"], task["awaiting"]) == ("human", "approval")
    assert bench.desk.reject(epic, "more tests")["state"] == "human", "asked again at once, for nothing new was done"
    assert bench.desk.approve(epic)["state"] == "done"


def test_a_container_that_is_sent_back_asks_what_is_missing(bench):
    epic = bench.ready(type="epic")
    bench.desk.close(bench.ready(parent=epic))
    task = bench.desk.reject(epic, "no docs")
    assert (task["state"], task["awaiting"]) == ("human", "escalation")
    more = bench.ready(parent=epic)
    bench.desk.answer(epic, "docs are a child now")
    assert bench.desk.show(epic)["state"] == "blocked"
    bench.desk.close(more)
    assert bench.desk.show(epic)["state"] == "review"


@pytest.mark.parametrize("how", ["defer", "remind", "escalate", "keep", "default"])
def test_an_agents_silence_lifts_no_gate(bench, how):
    key = bench.ready(awaiting="approval")
    bench.ask(key, timeout="5m", on_timeout=how, default="x")
    bench.clock.advance(minutes=6)
    bench.desk.reconcile()
    task = bench.desk.show(key)
    assert (task["state"], task["questions"][0]["status"]) == ("human", "pending")


def test_agents_raise_no_limits_when_they_create(bench):
    with pytest.raises(NotAllowed, match="more than 3 tries"):
        bench.agent.create("x", max_retries=100)
    with pytest.raises(NotAllowed, match="only people start workflows"):
        bench.agent.create("x", workflow="x.py")
    with pytest.raises(NotAllowed, match="more than 3 tries"):
        bench.agent.decompose(bench.agent.claim(bench.ready(), "w1"), [{"title": "x", "max_retries": 100}])
    assert [lasting(n * 1_000_000) for n in (86_400, 5_400, 60, 90, 30)] == ["24 h", "90 min", "1 min", "90 s", "30 s"]
    with pytest.raises(Precondition, match="at most 24 h"):
        bench.agent.claim(bench.ready(), "w1", lease="300d")


def test_agents_change_only_what_they_hold(bench):
    key = bench.ready()
    for field in ("title", "description", "branch", "session_id"):
        with pytest.raises(NotAllowed, match="only to what it has claimed"):
            bench.agent.update(key, **{field: "other"})
    got = bench.agent.claim(key, "w1")
    assert bench.agent.update(key, claim=got["claim"], session_id="s-1")["session_id"] == "s-1"


def test_members_cannot_walk_around_a_signature(bench, ben):
    key = bench.ready(requires="approval")
    for way in (lambda: ben.update(key, requires=None), lambda: ben.close(key)):
        with pytest.raises(NotAllowed, match="only approvers can"):
            way()
    done = bench.review()
    ben.flag(done, "Let me just do it", kind="work")
    for q in bench.desk.inbox(task=done):
        with pytest.raises(NotAllowed, match="only approvers can"):
            ben.approve(q)


def test_a_question_of_another_task_is_not_there(bench):
    mine, other = bench.human(), bench.human()
    asked = bench.desk.show(other)["questions"][0]["id"]
    with pytest.raises(NotFound, match=f"{mine} has no question {asked}"):
        bench.desk.do("answer", task=bench.desk._task(mine), question_id=int(asked[1:]), value="x")
    assert bench.desk.show(other)["state"] == "human"


def test_a_read_promises_no_numbers(bench):
    """A due question that is not asked yet is answered by the task's key: its number may be given to another question."""
    key = bench.working(max_retries=1)
    bench.clock.advance(hours=2)
    (owed,) = bench.desk.inbox()
    assert (owed["id"], owed["reason"]) == (key, "retry_exhausted")
    asked = bench.agent.ask(bench.ready(), "May I?", kind="permission")
    assert asked["id"] == "Q1"
    answered = bench.desk.answer(owed, "try again")
    assert (answered["id"], answered["reason"], answered["status"]) == ("Q2", "retry_exhausted", "answered")
    assert bench.desk.show("Q1")["status"] == "pending"


def test_awaiting_is_a_field_that_can_be_set_twice(bench):
    """Said again, nothing happens: no second question, no event."""
    key = bench.ready()
    first = bench.desk.await_person(key, "approval")
    events = len(bench.desk.history(key))
    again = bench.desk.await_person(key, "approval")
    assert (len(again["questions"]), len(bench.desk.history(key))) == (1, events)
    assert again["updated_at"] == first["updated_at"]
    assert _open_kinds(bench.desk.await_person(key, "review")) == ["review"]
    assert _open_kinds(bench.desk.await_person(key, "approval", "Another one?")) == ["approval"]


def _open_kinds(task):
    return [q["kind"] for q in task["questions"] if q["status"] == "pending"]


def test_a_reserved_gate_is_replaced_by_approvers_only(bench, ben):
    """A member's question stands beside the gate instead of it."""
    key = bench.ready()
    bench.desk.await_person(key, "approval")
    assert _open_kinds(ben.await_person(key, "input")) == ["approval", "input"]
    assert _open_kinds(ben.await_person(key, "escalation")) == ["approval", "escalation"]
    assert _open_kinds(bench.desk.await_person(key, "content")) == ["content"]


@pytest.mark.parametrize("kind", ["approval", "review", "content", "work", "checkpoint"])
def test_an_agent_replaces_no_gate_even_its_own(bench, kind):
    key = bench.working()
    bench.agent.ask(key, "Good?", kind, claim=bench.claims[key])
    task = bench.agent.await_person(key, "input", "Which?", claim=bench.claims[key])
    assert _open_kinds(task) == [kind, "input"]

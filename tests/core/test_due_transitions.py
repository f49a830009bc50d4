"""What time alone does: leases, silence, deferrals, delayed acceptance. Read truly, written once."""

from __future__ import annotations

import pytest

from yourturn.core.decide import next_due
from yourturn.core.errors import ClaimLost, Invalid, Precondition
from yourturn.core.rules import ON_TIMEOUT, TIMEOUT_POLICIES

from .states import case, everything, row, state, verbs

MINUTE = 60_000_000


def lose(bench, key, how):
    """One try without a result."""
    claim = bench.agent.claim(key, "w1")["claim"]
    if how == "release":
        bench.agent.release(claim, "no idea")
    else:
        bench.clock.advance(hours=1)
        bench.desk.reconcile()


# --- leases and tries -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["release", "expire"])
def test_every_lost_try_counts_and_the_last_asks_a_person_exactly_once(bench, how):
    key = bench.ready()
    for used in (1, 2):
        lose(bench, key, how)
        assert (state(bench.desk, key), bench.desk.show(key)["retry_count"]) == ("ready", used)
    lose(bench, key, how)
    bench.desk.reconcile()
    task = bench.desk.show(key)
    assert (task["state"], task["retry_count"], task["awaiting"]) == ("human", 3, "escalation")
    asked = [(q["reason"], q["asked_by"], q["timeout_at"]) for q in task["questions"]]
    assert asked == [("retry_exhausted", "system", None)]
    assert "3 times" in task["questions"][0]["text"] and "w1" in task["questions"][0]["text"]
    bench.desk.answer(key, "try with sessions")
    task = bench.desk.show(key)
    assert (task["state"], task["retry_count"], len(task["questions"])) == ("ready", 0, 1)


def test_after_a_reset_the_next_exhaustion_asks_again(bench):
    key = bench.ready(max_retries=1)
    lose(bench, key, "release")
    bench.desk.answer(key, "once more, please")
    lose(bench, key, "expire")
    assert [q["status"] for q in bench.desk.show(key)["questions"]] == ["answered", "pending"]


@pytest.mark.parametrize("reset", ["answer", "hand_back", "reject", "reopen"])
def test_only_people_reset_the_tries(bench, reset):
    key = bench.ready()
    lose(bench, key, "release")
    if reset == "answer":
        bench.ask(key)
        bench.desk.answer(key, "so")
    elif reset == "hand_back":
        bench.ask(key)
        bench.desk.hand_back(key)
    elif reset == "reject":
        bench.agent.complete(bench.agent.claim(key, "w1")["claim"])
        bench.desk.reject(key)
    else:
        bench.desk.close(key)
        bench.desk.reopen(key)
    assert bench.desk.show(key)["retry_count"] == 0


def test_silence_does_not_reset_the_tries_and_parking_costs_none(bench):
    key = bench.ready()
    lose(bench, key, "release")
    bench.ask(key, timeout="10m", default="so")
    bench.clock.advance(minutes=10)
    bench.desk.reconcile()
    assert (state(bench.desk, key), bench.desk.show(key)["retry_count"]) == ("ready", 1)
    bench.agent.park(bench.agent.claim(key, "w1")["claim"])
    assert bench.desk.show(key)["retry_count"] == 1


def test_a_heartbeat_extends_a_lease_by_its_own_length_and_revives_none(bench):
    key = bench.ready()
    claim = bench.agent.claim(key, "w1", lease="90s")["claim"]
    for _ in range(5):
        bench.clock.advance(seconds=89)
        bench.agent.heartbeat(claim)
    assert (state(bench.desk, key), bench.desk.show(key)["retry_count"]) == ("working", 0)
    bench.clock.advance(seconds=90)
    with pytest.raises(ClaimLost):
        bench.agent.heartbeat(claim)
    assert state(bench.desk, key) == "ready"


def test_a_heartbeat_leaves_no_event(bench):
    key = bench.working()
    bench.agent.heartbeat(bench.claims[key])
    assert verbs(bench.desk, key) == ["create", "claim"]


# --- silence ----------------------------------------------------------------------------------------------------------

#: on_timeout -> (state, failure, status of the question)
FALLS = {
    "default": ("working", None, "timeout"),
    "fail": ("failed", "timeout", "timeout"),
    "stuck": ("failed", "stuck", "timeout"),
    "defer": ("deferred", None, "timeout"),
    "remind": ("human", None, "pending"),
    "escalate": ("human", None, "pending"),
    "keep": ("human", None, "pending"),
}


def test_every_row_of_silence_is_tried():
    assert set(FALLS) == set(ON_TIMEOUT) == set(TIMEOUT_POLICIES) - {"accept"}


def test_an_asker_cannot_let_silence_accept(bench):
    with pytest.raises(Invalid, match="on_timeout cannot be 'accept'"):
        bench.ask(bench.working(), timeout="10m", on_timeout="accept")


@pytest.mark.parametrize("how", ON_TIMEOUT)
def test_what_silence_does(bench, how):
    key = bench.working()
    question = bench.ask(key, timeout="10m", on_timeout=how, default="jwt")
    bench.clock.advance(minutes=9, seconds=59)
    assert state(bench.desk, key) == "human"
    bench.clock.advance(seconds=1)
    task, asked = bench.desk.show(key), bench.desk.show(question)
    assert (task["state"], task["failure"], asked["status"]) == FALLS[how]
    if asked["status"] == "timeout":
        assert asked["responded_by"] == "system"
        verdict = (asked["response"] or {"verdict": None})["verdict"]
        assert verdict is None, "silence is never told as a verdict"
    assert (asked["response"] or {}).get("value") == ("jwt" if how == "default" else None)
    bench.desk.reconcile()
    assert bench.desk.show(key)["state"] == FALLS[how][0]


def test_without_a_default_silence_fails_the_task(bench):
    key, question = bench.waiting("working")
    bench.clock.advance(minutes=30)
    task = bench.desk.show(key)
    assert (task["state"], task["failure"], task["claim"]) == ("failed", "timeout", None)
    assert question in task["reason"]


def test_a_default_goes_back_to_where_it_was_even_if_the_session_is_gone(bench):
    key = bench.working()
    bench.ask(key, timeout="24h", default="jwt")
    bench.clock.advance(hours=24)
    assert (state(bench.desk, key), bench.desk.show(key)["retry_count"]) == ("ready", 0)


@pytest.mark.parametrize("how", ["remind", "escalate"])
def test_a_reminder_is_armed_again_once_after_any_time(bench, how):
    key, question = bench.waiting("ready", timeout="10m", on_timeout=how, kind="approval")
    bench.clock.advance(minutes=35)
    bench.desk.reconcile()
    assert verbs(bench.desk, key) == ["create", "ask", "timeout"]
    asked = bench.desk.show(question)
    assert (asked["reviewer"], asked["urgency"]) == (("admin", "high") if how == "escalate" else (None, "normal"))
    assert row(bench.desk, key).due_at == bench.clock() + 5 * MINUTE
    bench.clock.advance(minutes=5)
    bench.desk.reconcile()
    assert verbs(bench.desk, key)[-2:] == ["timeout", "timeout"]
    assert bench.desk.approve(question)["state"] == "done"


def test_a_deferred_question_sleeps_until_a_person_wakes_it(bench):
    key, question = bench.waiting("working", timeout="10m", on_timeout="defer")
    bench.clock.advance(minutes=10)
    bench.desk.reconcile()
    task = bench.desk.show(key)
    assert (task["state"], task["wake_at"], task["claim"]) == ("deferred", None, None)
    assert {q["id"]: q["status"] for q in task["questions"]} == {question: "timeout"}
    bench.clock.advance(days=100)
    assert state(bench.desk, key) == "deferred"
    assert bench.desk.wake(key)["state"] == "ready"


@pytest.mark.parametrize("how", ["fail", "stuck"])
def test_a_workflow_ends_without_resuming_its_script(bench, how):
    key = bench.working(workflow="feature.py")
    bench.ask(key, timeout="10m", on_timeout=how)
    bench.clock.advance(minutes=10)
    assert state(bench.desk, key) == "failed"


# --- deferrals and acceptance -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["created", "ready", "blocked"])
def test_a_deferral_wakes_at_its_date_into_the_state_that_is_true_then(bench, source):
    key = bench.into(source)
    bench.desk.defer(key, "2d", "after the release")
    bench.clock.advance(days=1)
    assert (state(bench.desk, key), bench.desk.show(key)["reason"]) == ("deferred", "after the release")
    bench.clock.advance(days=1)
    assert state(bench.desk, key) == source
    again = bench.ready()
    bench.desk.defer(again)
    bench.add_need(again)
    assert bench.desk.wake(again)["state"] == "blocked"


def test_a_date_in_the_past_is_refused(bench):
    key = bench.ready()
    before = everything(bench.desk)
    with pytest.raises(Precondition, match="the date is in the past"):
        bench.desk.defer(key, "2020-01-01")
    assert everything(bench.desk) == before


def test_parking_until_a_date_sleeps_and_comes_back(bench):
    key = bench.working()
    task = bench.agent.park(bench.claims[key], "30m")
    assert (task["state"], task["claim"], task["retry_count"]) == ("deferred", None, 0)
    bench.clock.advance(minutes=30)
    assert state(bench.desk, key) == "ready"


def test_finished_work_is_accepted_at_once_after_a_delay_or_by_a_person(bench):
    bench.desk.set("review", "auto")
    assert state(bench.desk, bench.review()) == "done"
    bench.desk.set("review", "2h")
    key = bench.review()
    bench.clock.advance(hours=1, minutes=59)
    assert state(bench.desk, key) == "review"
    (asked,) = bench.desk.inbox()
    assert (asked["task"], asked["kind"], asked["reason"], asked["on_timeout"]) == (key, "approval", "finished", "accept")
    bench.clock.advance(minutes=1)
    assert state(bench.desk, key) == "done" and bench.desk.inbox() == []
    closed = bench.desk.show(asked["id"])
    assert (closed["status"], closed["response"], closed["close_reason"]) == ("timeout", None, "no answer: accept")
    bench.desk.set("review", "ask")
    key = bench.review()
    bench.clock.advance(days=300)
    assert state(bench.desk, key) == "review" and row(bench.desk, key).due_at is None
    assert bench.desk.approve(key)["state"] == "done"


def test_a_rejection_stops_the_delay(bench):
    bench.desk.set("review", "2h")
    key = bench.review()
    bench.desk.reject(key, "not yet")
    bench.clock.advance(hours=3)
    assert state(bench.desk, key) == "ready"


# --- true reads -------------------------------------------------------------------------------------------------------


def due_desk(bench):
    """One task for each kind of debt: task -> the state that is true."""
    bench.desk.set("review", "2h")
    expired = bench.working()
    waits = bench.ready(depends_on=[bench.review()])
    silent = bench.waiting("ready", timeout="10m", default="so")[0]
    asleep = bench.ready()
    bench.desk.defer(asleep, "1h")
    held = bench.waiting("working", kind="approval")[0]
    bench.clock.advance(hours=3)
    return {expired: "ready", waits: "ready", silent: "ready", asleep: "ready", held: "human"}


def test_a_read_shows_the_true_state_and_writes_nothing(bench):
    expected = due_desk(bench)
    before = everything(bench.desk)
    for _ in range(2):
        assert {key: state(bench.desk, key) for key in expected} == expected
        assert {task["key"] for task in bench.desk.ready()} == {k for k, s in expected.items() if s == "ready"}
        assert bench.desk.list(state="working") == [] and bench.desk.list(state="deferred") == []
        assert {q["task"] for q in bench.desk.inbox()} == {k for k, s in expected.items() if s == "human"}
    assert everything(bench.desk) == before


def test_reconciling_makes_it_real_and_twice_changes_nothing(bench):
    expected = due_desk(bench)
    seen = {key: bench.desk.show(key) for key in expected}
    counted = bench.desk.reconcile()
    assert counted["moved"] >= len(expected) and counted["failed"] == 0
    after = everything(bench.desk)
    assert {key: row(bench.desk, key).state for key in expected} == expected
    assert {key: bench.desk.show(key) for key in expected} == seen, "the read had promised something else"
    assert bench.desk.reconcile() == {"moved": 0, "failed": 0}
    assert everything(bench.desk) == after
    for key in expected:
        found = case(bench.desk, key)
        assert found.task.due_at == next_due(found.task, list(found.questions))


def test_claim_next_needs_no_reconciler(bench):
    key = bench.working()
    bench.clock.advance(hours=1)
    again = bench.agent.claim_next("w2")
    assert (again["task"]["key"], again["claim"]["epoch"], again["task"]["retry_count"]) == (key, 2, 1)

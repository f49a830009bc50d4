"""Several questions at once, held claims, questions that hold nothing up, and what a question may ask for."""

from __future__ import annotations

import pytest

from yourturn.core.canonical_json import digest
from yourturn.core.errors import ClaimLost, IllegalMove, Invalid, Precondition
from yourturn.core.rules import KINDS

from .states import everything, row, state, verbs

HOUR = 3_600_000_000


def statuses(desk, key):
    return [q["status"] for q in desk.show(key)["questions"]]


# --- several open questions -----------------------------------------------------------------------------------------


def test_a_task_leaves_when_its_last_blocking_question_closes(bench):
    key = bench.ready()
    asked = [bench.ask(key, f"Number {i}?") for i in range(3)]
    for question in asked[:2]:
        bench.desk.answer(question, "so")
        assert state(bench.desk, key) == "human"
    bench.desk.withdraw(asked[2])
    assert state(bench.desk, key) == "ready"


@pytest.mark.parametrize(
    ("answers", "lands"),
    [
        (["approval approved", "input approved"], "ready"),
        (["input approved", "approval approved"], "ready"),
        (["approval approved", "review rejected"], "ready"),
        (["review rejected", "approval approved"], "ready"),
        (["approval approved", "content approved"], "done"),
        (["checkpoint rejected", "work approved"], "ready"),
    ],
)
def test_any_back_beats_done_in_whichever_order(bench, answers, lands):
    key = bench.ready()
    asked = [bench.ask(key, kind=answer.split()[0]) for answer in answers]
    for i, (question, answer) in enumerate(zip(asked, answers, strict=True)):
        verdict = answer.split()[1]
        bench.desk.answer(question, text="words", verdict=verdict)
        assert state(bench.desk, key) == ("human" if i == 0 else lands)


def test_earlier_wait_for_a_person_does_not_count(bench):
    key = bench.ready()
    bench.desk.answer(bench.ask(key), "back to work")
    bench.desk.approve(bench.ask(key, kind="approval"))
    assert state(bench.desk, key) == "done"


def test_a_cancelling_answer_acts_at_once_and_cancels_the_others(bench):
    key = bench.ready()
    first, second = bench.ask(key, kind="approval"), bench.ask(key, kind="input")
    aside = bench.ask(key, blocking=False, default="x")
    task = bench.desk.reject(second, "forget it")
    assert task["state"] == "cancelled"
    found = {q["id"]: q["status"] for q in task["questions"]}
    assert found == {first: "cancelled", second: "answered", aside: "cancelled"}


def test_a_failing_timeout_acts_at_once_and_cancels_the_others(bench):
    key = bench.ready()
    other = bench.ask(key, kind="approval")
    silent = bench.ask(key, timeout="10m", on_timeout="fail")
    bench.clock.advance(minutes=10)
    task = bench.desk.show(key)
    assert (task["state"], task["failure"], task["reason"]) == ("failed", "timeout", f"no answer to {silent} in time")
    assert {q["id"]: q["status"] for q in task["questions"]} == {other: "cancelled", silent: "timeout"}


def test_a_withdrawn_question_leaves_the_others_outcome(bench):
    key = bench.ready()
    gate, other = bench.ask(key, kind="approval"), bench.ask(key)
    bench.desk.approve(gate)
    bench.desk.withdraw(other)
    assert state(bench.desk, key) == "done"


@pytest.mark.parametrize("ending", ["cancel", "close", "resolve", "fail"])
def test_the_questions_of_an_ended_task_are_cancelled_with_that_reason(bench, ending):
    key = bench.ready()
    bench.ask(key), bench.ask(key, kind="approval"), bench.ask(key, blocking=False, default="x")
    getattr(bench.desk, ending)(key)
    assert statuses(bench.desk, key) == ["cancelled"] * 3
    with pytest.raises(Exception, match=f"{key} (is done|was cancelled|failed)"):
        bench.desk.answer("Q1", "late")


def test_a_key_stands_for_the_one_open_question(bench):
    key = bench.ready()
    aside = bench.ask(key, blocking=False, default="x")
    assert bench.desk.answer(key, "to the only one")["id"] == aside
    bench.ask(key, blocking=False, default="x")
    first = bench.ask(key)
    assert bench.desk.answer(key, "to the blocking one")["id"] == first
    bench.ask(key, kind="checkpoint"), bench.ask(key)
    before = everything(bench.desk)
    for move in (bench.desk.answer, bench.desk.withdraw, bench.desk.approve):
        with pytest.raises(Invalid, match=f"{key} has 2 open questions") as error:
            move(key)
        assert "Q4 (checkpoint), Q5 (input)" in error.value.reason
    assert everything(bench.desk) == before


def test_repeated_key_returns_the_answer_even_if_it_closed_other_questions(bench):
    key = bench.ready()
    bench.ask(key, blocking=False, default="x")
    gate = bench.ask(key)
    assert bench.desk.answer(key, text="no", verdict="rejected")["id"] == gate


# --- claims -----------------------------------------------------------------------------------------------------------


def test_a_question_by_the_holder_keeps_the_claim(bench):
    key, question = bench.waiting("working", kind="checkpoint")
    other = bench.ask(key, "And one more?", kind="escalation")
    held = row(bench.desk, key)
    assert (held.state, held.holder, held.retry_count) == ("human", "w1", 0)
    bench.clock.advance(minutes=50)
    bench.agent.heartbeat(bench.claims[key])
    bench.clock.advance(minutes=50)
    with pytest.raises(IllegalMove):
        bench.desk.claim(key, "w2")
    bench.desk.approve(question), bench.desk.answer(other, "so")
    task = bench.desk.show(key)
    assert (task["state"], task["claim"]["worker"], task["claim"]["epoch"]) == ("working", "w1", 1)
    assert bench.agent.complete(bench.claims[key])["state"] == "review"


def test_worker_name_is_proof_for_direct_database_users(bench):
    key = bench.ready()
    bench.desk.claim(key, "me")
    bench.desk.ask(key, "?")
    assert row(bench.desk, key).holder == "me"
    bench.desk.answer(key, "so")
    bench.agent.ask(key, "?", worker="me")
    assert row(bench.desk, key).holder == "me"


@pytest.mark.parametrize("how", ["flag by the holder", "flag", "ask", "person"])
def test_a_flag_or_a_question_by_anyone_else_drops_the_claim_at_once(bench, how):
    key = bench.working()
    if how == "flag by the holder":
        bench.agent.flag(key, "Stuck", claim=bench.claims[key])
    elif how == "flag":
        bench.desk.flag(key, "Wait")
    elif how == "ask":
        bench.agent.ask(key, "I do not hold it")
    else:
        bench.desk.ask(key, "Is this still wanted?")
    after = row(bench.desk, key)
    assert (after.state, after.holder, after.lease_expires_at, after.retry_count) == ("human", None, None, 0)
    with pytest.raises(ClaimLost):
        bench.agent.complete(bench.claims[key])
    bench.desk.approve(key)
    assert state(bench.desk, key) == "ready"


def test_a_question_of_another_actor_drops_a_held_claim_too(bench):
    key, _ = bench.waiting("working")
    bench.desk.ask(key, "And from me?")
    assert row(bench.desk, key).holder is None


def test_a_non_blocking_question_of_another_actor_drops_nothing(bench):
    key = bench.working()
    bench.desk.ask(key, "By the way?", blocking=False, default="x")
    assert (state(bench.desk, key), row(bench.desk, key).holder) == ("working", "w1")


def test_lease_that_expires_during_a_question_drops_only_the_claim(bench):
    key = bench.working()
    question = bench.ask(key, kind="approval")
    before = bench.desk.show(key)
    bench.clock.advance(hours=1)
    after = bench.desk.show(key)
    assert after["claim"] is None and before["claim"] is not None
    same = ("state", "retry_count", "questions", "notes", "awaiting")
    assert {name: after[name] for name in same} == {name: before[name] for name in same}
    with pytest.raises(ClaimLost):
        bench.agent.heartbeat(bench.claims[key])
    bench.desk.reject(question, "again")
    assert (state(bench.desk, key), bench.desk.show(key)["retry_count"]) == ("ready", 0)


def test_parking_drops_a_held_claim_without_costing_a_try(bench):
    key, question = bench.waiting("working")
    task = bench.agent.park(bench.claims[key])
    assert (task["state"], task["claim"], task["retry_count"]) == ("human", None, 0)
    with pytest.raises(ClaimLost):
        bench.agent.heartbeat(bench.claims[key])
    bench.desk.answer(question, "so")
    again = bench.agent.claim_next("w2")
    assert (again["task"]["key"], again["claim"]["epoch"]) == (key, 2)


def test_the_return_state_is_computed_again(bench):
    for source in ("created", "ready"):
        key, question = bench.waiting(source)
        need = bench.add_need(key)
        bench.desk.answer(question, "so")
        assert state(bench.desk, key) == ("created" if source == "created" else "blocked")
        if source == "ready":
            bench.desk.close(need)
            assert state(bench.desk, key) == "ready"
    key, question = bench.waiting("working")
    bench.add_need(key)
    bench.agent.park(bench.claims[key])
    bench.desk.answer(question, "so")
    assert state(bench.desk, key) == "blocked"
    need = bench.ready()
    key = bench.ready(depends_on=[need])
    bench.ask(key)
    bench.desk.close(need)
    assert state(bench.desk, key) == "human"
    bench.desk.answer(key, "so")
    assert state(bench.desk, key) == "ready"


def test_a_done_verdict_waits_for_open_children(bench):
    key = bench.ready()
    child = bench.ready(parent=key)
    question = bench.ask(key, kind="approval")
    before = everything(bench.desk)
    with pytest.raises(Precondition, match=f"open children: {child}"):
        bench.desk.approve(question)
    assert everything(bench.desk) == before
    bench.desk.close(child)
    assert bench.desk.approve(question)["state"] == "done"


# --- questions that hold nothing up -----------------------------------------------------------------------------------


def test_a_non_blocking_question_needs_a_default_and_never_times_out(bench):
    key = bench.working()
    with pytest.raises(Invalid, match="needs a default"):
        bench.ask(key, blocking=False)
    question = bench.ask(key, blocking=False, default="jwt", options=["jwt", "sessions"], timeout="10m")
    asked = bench.desk.show(question)
    assert (asked["default"], asked["timeout_at"], asked["urgency"], asked["blocking"]) == ("jwt", None, "low", False)
    task = bench.desk.show(key)
    assert (task["state"], task["awaiting"], task["claim"]["worker"]) == ("working", None, "w1")
    bench.clock.advance(days=40)
    assert bench.desk.show(question)["status"] == "pending"
    bench.desk.answer(question, "sessions")
    assert bench.desk.show(question)["response"]["value"] == "sessions"
    assert statuses(bench.desk, key)[0] == "answered"


def test_a_late_answer_aside_does_not_touch_state_claim_or_tries(bench):
    key = bench.working()
    bench.agent.release(bench.claims[key])
    bench.claims[key] = bench.agent.claim(key, "w1")["claim"]
    question = bench.ask(key, blocking=False, default="x")
    bench.desk.reject(question, "rather not")
    after = row(bench.desk, key)
    assert (after.state, after.holder, after.retry_count) == ("working", "w1", 1)


# --- what a question may ask for --------------------------------------------------------------------------------------


def test_a_permission_is_bound_to_the_exact_action(bench):
    action = {"tool": "Bash", "args": {"command": "rm -rf build", "b": 1, "a": 2}, "cwd": "/src"}
    key = bench.working()
    asked = bench.desk.show(bench.ask(key, kind="permission", action=action))
    assert asked["action"] == action
    reordered = {"cwd": "/src", "args": {"a": 2, "b": 1, "command": "rm -rf build"}, "tool": "Bash"}
    assert asked["digest"] == digest(action) == digest(reordered) and len(asked["digest"]) == 64
    edited = bench.desk.show(bench.ask(key, kind="permission", action={**action, "cwd": "/"}))
    assert edited["digest"] != asked["digest"]
    bare = bench.desk.show(bench.ask(key, "May I push?", kind="permission"))
    assert bare["digest"] == digest("May I push?")
    assert bench.desk.show(bench.ask(key))["digest"] is None


@pytest.mark.parametrize("kind", KINDS)
def test_only_information_questions_have_a_default(bench, kind):
    key = bench.ready()
    if KINDS[kind].default:
        assert bench.agent.ask(key, "?", kind=kind, default="x")["default"] == "x"
    else:
        with pytest.raises(Invalid, match="silence never approves anything"):
            bench.agent.ask(key, "?", kind=kind, default="yes")
    with pytest.raises(Invalid, match="silence never approves anything"):
        bench.agent.ask(key, "?", kind=kind, response_type="approval", default="yes")
    assert kind in ("input", "recovery") or not KINDS[kind].default


def test_the_time_a_person_gets_comes_from_the_kind(bench):
    promised = {"input": "30m", "permission": "15m", "recovery": "10m"}
    assert {kind: r.timeout for kind, r in KINDS.items() if r.timeout} == promised
    for kind, r in KINDS.items():
        task = bench.desk.flag(bench.ready(), "?", kind=kind)["questions"][0]
        assert task["timeout_at"] is None, "signals and flags wait for ever"
        asked = bench.agent.ask(bench.ready(), "?", kind=kind)
        assert (asked["timeout_at"] is not None) == (r.timeout is not None)
        assert asked["on_timeout"] == r.on_timeout and asked["urgency"] == r.urgency


def test_a_timeout_stays_within_the_limits_of_the_workspace(bench):
    key = bench.ready()
    for timeout, fits in (("5m", True), ("24h", True), ("299s", False), ("24h1s", False)):
        if fits:
            bench.agent.ask(key, "?", timeout=timeout)
        else:
            with pytest.raises(Invalid, match="between 5 min and 24 h"):
                bench.agent.ask(key, "?", timeout=timeout)
    with pytest.raises(Invalid, match="30 days"):
        bench.desk.set("max_timeout", "31d")
    bench.desk.set("max_timeout", "30d")
    bench.desk.set("min_timeout", "1s")
    assert bench.agent.ask(key, "?", timeout="30d") and bench.agent.ask(key, "?", timeout="1s")
    with pytest.raises(Invalid, match="min_timeout cannot be longer"):
        bench.desk.set("min_timeout", "30d", "PROJ"), bench.desk.set("max_timeout", "1d", "PROJ")


def test_flag_always_blocks_the_task_and_needs_a_text(bench):
    key = bench.ready()
    before = everything(bench.desk)
    with pytest.raises(Invalid, match="takes no 'blocking'"):
        bench.agent.flag(key, "?", kind="input", blocking=False, default="x")
    for text in ("", "  \n"):
        with pytest.raises(Invalid, match="must not be empty"):
            bench.agent.flag(key, text)
        with pytest.raises(Invalid, match="must not be empty"):
            bench.agent.ask(key, text)
    assert everything(bench.desk) == before


def test_finished_work_can_be_asked_about_and_waits_again_after_the_answer(bench):
    bench.desk.set("review", "2h")
    key = bench.review()
    question = bench.ask(key, "Which version?")
    bench.clock.advance(minutes=20)
    bench.clock.advance(minutes=3)
    assert row(bench.desk, key).due_at != bench.clock()
    bench.desk.answer(question, "2.0")
    assert (state(bench.desk, key), row(bench.desk, key).due_at) == ("review", bench.clock() + 2 * HOUR)
    bench.clock.advance(hours=2)
    assert state(bench.desk, key) == "done"
    bench.desk.reconcile()
    assert verbs(bench.desk, key)[-1] == "timeout"


def test_hints_are_for_every_surface(bench):
    key = bench.working()
    remote = bench.agent.as_(bench.agent.who._replace(direct=False))
    for fields in ({"response_type": "choice"}, {"blocking": False}):
        with pytest.raises(Invalid) as error:
            remote.ask(key, "Which?", **fields)
        assert error.value.hint and "--" not in error.value.hint
    with pytest.raises(ClaimLost) as error:
        remote.complete(key, "done")
    assert "--worker-id" not in error.value.hint and "token" in error.value.hint
    with pytest.raises(ClaimLost) as error:
        bench.agent.complete(key, "done")
    assert "--worker-id" in error.value.hint

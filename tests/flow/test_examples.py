"""Complete workflows, through every branch."""

from __future__ import annotations

import pytest

from yourturn.flow import config, pause, run, stuck, workflow
from yourturn.testing import approve, done, failed, needs_human, reject, said, silence


def told(s):
    return [c.agent for c in s.calls]


# --- three agents, one after the other ----------------------------------------------------------------------------------


def pipeline(prompt):
    run("designer", prompt)
    run("builder")
    run("checker")


def test_a_run_without_questions(stage):
    lines = {"designer": [done("a plan")], "builder": [done("a feature")], "checker": [done("all green")]}
    s = stage(pipeline, lines).run("Add login")
    assert s.state == "done" and s.summary == "all green" and told(s) == ["designer", "builder", "checker"]
    assert s.calls[0].prompt == "Add login"


def test_the_builder_asks_a_person_within_its_step(stage):
    lines = {"designer": [done()], "builder": [needs_human("Sessions or tokens?"), done("tokens")], "checker": [done()]}
    s = stage(pipeline, lines).run("Add login")
    assert (s.state, s.waiting.kind, s.waiting.agent, s.waiting.text) == ("human", "input", "builder", "Sessions or tokens?")
    assert (s.steps[1]["status"], s.steps[1]["session_id"]) == ("waiting", "builder-1")
    s.answer("Tokens")
    assert s.state == "done" and [(x["index"], x["agent"], x["status"]) for x in s.steps] == [
        ("1", "designer", "completed"), ("2", "builder", "completed"), ("3", "checker", "completed"),
    ]  # fmt: skip
    assert s.calls[2] == ("builder", None, "2", "builder-1", True, "Tokens", "approved")


def test_the_builders_question_times_out(stage):
    lines = {"designer": [done()], "builder": [needs_human("Sessions or tokens?")], "checker": done()}
    s = stage(pipeline, lines, [silence()]).play("Add login")
    assert (s.state, s.failure) == ("failed", "stuck") and told(s) == ["designer", "builder"]


def test_a_person_stops_the_run(stage):
    lines = {"designer": [done()], "builder": [needs_human("Sessions or tokens?")], "checker": done()}
    s = stage(pipeline, lines).run().stop("we buy one")
    assert (s.state, s.failure, s.reason) == ("failed", "stuck", "we buy one")


# --- a gate before production -------------------------------------------------------------------------------------------


@workflow
def gated(prompt):
    run("designer", prompt)
    run("builder")
    if run("checker").status == "FAILED":
        return stuck("red tests")
    ok = pause("Ship it to production?")
    if not ok:
        return stuck(ok.reason)
    return run("shipper", ok.message or None)


LINES = {"designer": done(), "builder": done(), "checker": done("green"), "shipper": done("shipped")}


@pytest.mark.parametrize(("person", "end", "reason"), [
    ([approve("on Monday")], "done", ""),
    ([reject("the copy is wrong")], "failed", "the copy is wrong"),
    ([reject()], "failed", "ana said no to “Ship it to production?”"),
    ([silence()], "failed", "no answer to Q1 in time"),
    ([lambda s: s.signal("CONTINUE", "approved")], "done", ""),
    ([lambda s: s.signal("STOP", reason="another approach")], "failed", "another approach"),
    ([lambda s: s.stop("another approach")], "failed", "another approach"),
    ([lambda s: s.hand_back()], "failed", "handed back"),
])  # fmt: skip
def test_every_way_through_the_gate(stage, person, end, reason):
    s = stage(gated, LINES, person).play("Add login")
    assert (s.state, s.reason) == (end, reason) and s.failure == (None if end == "done" else "stuck")
    assert told(s) == ["designer", "builder", "checker", *(["shipper"] if end == "done" else [])]
    assert [x["agent"] for x in s.steps][:4] == ["designer", "builder", "checker", "_checkpoint"]


def test_what_the_person_says_reaches_the_agent(stage):
    s = stage(gated, LINES, [approve("on Monday")]).play()
    assert s.calls[-1].prompt == "on Monday" and s.summary == "shipped"


def test_red_tests_never_reach_the_gate(stage):
    s = stage(gated, {**LINES, "checker": failed("2 are red")}).run()
    assert s.reason == "red tests" and s.task["questions"] == []


# --- an agent that has to manage alone ----------------------------------------------------------------------------------


def alone(prompt):
    result = run("robot", prompt, human=False)
    if result.status == "NEEDS_HUMAN":
        return stuck(f"it should have managed: {result.reason}")
    return result.summary


def test_loop_succeeds(stage):
    assert stage(alone, {"robot": [done("swept")]}).run("Sweep").summary == "swept"


def test_loop_fails(stage):
    s = stage(alone, {"robot": [needs_human("Where is the broom?")]}).run("Sweep")
    assert (s.state, s.failure, s.reason) == ("failed", "stuck", "it should have managed: Where is the broom?")
    assert s.task["questions"] == []


# --- several phases, and a loop -----------------------------------------------------------------------------------------


def phases(prompt):
    run("designer", prompt)
    plan = pause("Is the plan right?")
    if not plan:
        return stuck(f"Plan rejected: {plan.reason}")
    for _ in range(3):
        run("builder")
        if run("reviewer").status == "APPROVED":
            break
    else:
        return stuck("three rounds were not enough")
    ship = pause("Ship it?")
    if not ship:
        return stuck(f"Not shipped: {ship.reason}")
    return run("shipper")


def lines(*reviews, builders=None):
    return {
        "designer": [done()], "builder": [done(f"round {n + 1}") for n in range(builders or len(reviews))],
        "reviewer": list(reviews), "shipper": [done("shipped")],
    }  # fmt: skip


NO, YES = said("CHANGES_REQUESTED", "rename it"), said("APPROVED")


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_the_loop_ends_when_the_reviewer_is_content(stage, rounds):
    s = stage(phases, lines(*[NO] * (rounds - 1), YES), ["yes", "yes"]).play("Add login")
    assert s.state == "done" and s.summary == "shipped" and told(s) == ["designer", *["builder", "reviewer"] * rounds, "shipper"]


def test_the_loop_gives_up(stage):
    s = stage(phases, {**lines(NO, NO, NO), "shipper": done()}, ["yes"]).play()
    assert s.reason == "three rounds were not enough" and s.failure == "stuck"


def test_the_plan_is_rejected(stage):
    s = stage(phases, {"designer": [done()]}, [reject("too clever")]).play()
    assert (s.state, s.reason) == ("failed", "Plan rejected: too clever")


def test_it_is_not_shipped(stage):
    s = stage(phases, {**lines(YES), "shipper": done()}, [approve(), reject("not on a Friday")]).play()
    assert s.reason == "Not shipped: not on a Friday" and "shipper" not in told(s)


def test_the_reviewer_needs_a_person_in_the_loop(stage):
    s = stage(phases, lines(NO, needs_human("Is this name ours?", "escalation"), YES, builders=2), ["yes", "it is", "yes"]).play()
    sessions = [c.session for c in s.calls if c.agent == "reviewer"]
    assert s.state == "done" and sessions == ["reviewer-1", "reviewer-2", "reviewer-2"]


# --- silence ------------------------------------------------------------------------------------------------------------


def impatient(prompt):
    config(human_timeout=3600, on_timeout="stuck", notify_on_waiting=["desktop", "slack"])
    return pause("Still there?") and "yes"


def patient(prompt):
    config(human_timeout=3600, on_timeout="notify_again")
    return pause("Still there?") and "yes"


def test_timeout_of_an_hour(stage):
    s = stage(impatient).run()
    assert s.advance(minutes=59).state == "human" and s.advance(minutes=1).state == "failed" and s.failure == "stuck"
    s = stage(patient).run().advance(hours=30)
    assert s.state == "human" and s.approve().summary == "yes"

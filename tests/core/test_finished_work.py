"""Finished work opens a question that only a verdict closes; what is not work is never offered."""

from __future__ import annotations

import pytest

from yourturn.core.errors import Invalid, NotAllowed, Precondition
from yourturn.core.model import HOUR, SYSTEM

from .states import everything, number, row, state


def finished(bench, key):
    """The open question about the finished work."""
    (found,) = [q for q in bench.desk.show(key)["questions"] if q["reason"] == "finished" and q["status"] == "pending"]
    return found


@pytest.mark.parametrize(("word", "lands"), [("Yes.", "done"), ("accept", "done"), ("DENY", "ready"), ("0", "ready")])
def test_a_word_of_the_list_accepts_finished_work_or_sends_it_back(bench, word, lands):
    key = bench.review()
    assert bench.desk.answer(key, word)["task_state"] == lands


@pytest.mark.parametrize("word", ["banana", "looks good", "yes please", ["yes"], {"yes": True}])
def test_any_other_word_decides_nothing(bench, word):
    key = bench.review()
    before = everything(bench.desk)
    with pytest.raises(Invalid, match="takes a yes or a no"):
        bench.desk.answer(key, word)
    assert everything(bench.desk) == before


@pytest.mark.parametrize(("verdict", "value"), [("approved", "no"), ("rejected", "yes")])
def test_a_verdict_and_a_value_that_contradict_each_other_decide_nothing(bench, verdict, value):
    key = bench.review()
    before = everything(bench.desk)
    with pytest.raises(Invalid, match="one says yes and the other no"):
        bench.desk.answer(key, value, verdict=verdict)
    assert everything(bench.desk) == before


@pytest.mark.parametrize("value", [None, "no", False])
def test_to_reject_a_question_of_yes_and_no_is_its_no(bench, value):
    key = bench.working()
    question = bench.ask(key, "Is it safe?", response_type="boolean")
    answered = bench.desk.answer(question, value, verdict="rejected")
    assert (answered["response"]["value"], answered["task_state"]) == (False, "working")


@pytest.mark.parametrize("way", ["withdraw", "hand_back", "replace", "agent"])
def test_only_a_verdict_closes_the_question_about_finished_work(bench, way):
    key = bench.review()
    asked = finished(bench, key)["id"]
    if way == "withdraw":
        with pytest.raises(Precondition, match="approve or reject it"):
            bench.desk.withdraw(asked)
    elif way == "agent":
        with pytest.raises((Precondition, NotAllowed)):
            bench.agent.withdraw(asked)
    elif way == "replace":
        bench.desk.flag(key, "Which version?", replace=True)
        assert state(bench.desk, key) == "human"
    else:
        bench.desk.flag(key, "Which version?")
        assert bench.desk.hand_back(key)["state"] == "review"
    assert finished(bench, key)["id"] == asked


def test_silence_accepts_nothing_while_something_else_is_asked(bench):
    bench.desk.set("review", "2h")
    key = bench.review()
    question = bench.ask(key, "Which version?", on_timeout="keep")
    bench.clock.advance(days=3)
    assert bench.desk.reconcile()["moved"] == 0
    assert (state(bench.desk, key), finished(bench, key)["timeout_at"]) == ("human", None)
    bench.desk.answer(question, "2.0")
    assert (state(bench.desk, key), row(bench.desk, key).due_at) == ("review", bench.clock() + 2 * HOUR)


@pytest.mark.parametrize(("policy", "hours"), [("90s", 0.025), ("7d", 168)])
def test_the_time_until_finished_work_is_accepted_is_the_projects_own(bench, policy, hours):
    """The limits min_timeout and max_timeout are for what agents ask."""
    bench.desk.set("review", policy)
    key = bench.review()
    assert state(bench.desk, key) == "review"
    bench.clock.advance(hours=hours)
    assert state(bench.desk, key) == "done"


@pytest.mark.parametrize("review", ["ask", "2h"])
def test_a_child_added_during_another_question_makes_the_work_unfinished(bench, review):
    bench.desk.set("review", review)
    key = bench.review()
    asked = finished(bench, key)["id"]
    question = bench.ask(key, "What is missing?")
    child = bench.ready(parent=key)
    bench.desk.answer(question, "The tests")
    assert state(bench.desk, key) == "blocked"
    assert bench.desk.show(asked)["close_reason"] == f"{key} has open children again"
    bench.clock.advance(hours=3)
    assert bench.desk.reconcile() == {"moved": 0, "failed": 0}
    bench.desk.close(child)
    assert state(bench.desk, key) == "ready"


@pytest.mark.parametrize("fields", [{"type": "epic"}, {"complexity": "xlarge"}])
def test_what_is_not_work_is_never_offered(bench, fields):
    key = bench.desk.create("too much", **fields)["key"]
    before = everything(bench.desk)
    with pytest.raises(Precondition if state(bench.desk, key) == "ready" else Exception, match="Cannot claim"):
        bench.agent.claim(key, "w1")
    assert bench.agent.next() is None
    assert everything(bench.desk) == before


def test_only_a_ready_task_marked_too_large_waits_to_be_split(bench):
    key = bench.ready()
    with pytest.raises(Precondition, match="it is not too large"):
        bench.desk.as_(SYSTEM).do("unvet", task=number(bench.desk, key))
    bench.desk.update(key, complexity="xlarge")
    assert state(bench.desk, key) == "created"
    with pytest.raises(Precondition, match="decompose it first"):
        bench.desk.vet(key)
    bench.desk.decompose(key, ["a", "b"])
    for child in bench.desk.list(parent=key):
        bench.desk.close(child["key"])
    assert state(bench.desk, key) == "ready" and bench.agent.claim(key, "w1")["claim"]


@pytest.mark.parametrize("beside", [False, True])
def test_rejected_container_asks_a_person_what_is_missing(bench, beside):
    key = bench.ready(type="epic")
    bench.desk.decompose(key, ["Part"])
    bench.desk.close("PROJ-2")
    asked = finished(bench, key)["id"]
    other = bench.desk.ask(key, "Beside it?")["id"] if beside else None
    bench.desk.reject(asked, "no tests")
    (missing,) = [q for q in bench.desk.inbox() if q["kind"] == "escalation"]
    assert missing["task"] == key and "no tests" in missing["text"]
    if other:
        bench.desk.answer(other, "fine")
        assert state(bench.desk, key) == "human", "what is missing is still asked"


# --- when it was finished -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("requires", [None, "content"])
def test_finished_work_says_since_when(bench, requires):
    """`ended_at` comes with the sign-off; until then a program can see when the agent was ready."""
    bench.desk.set("review", "ask")
    key = bench.desk.create("A", requires=requires)["key"]
    assert bench.desk.show(key)["completed_at"] is None
    claim = bench.agent.claim(key, "w1")["claim"]
    finished = bench.agent.complete(claim, "Finished")["questions"][-1]["asked_at"]
    bench.clock.advance(hours=1)
    found = [bench.desk.show(key), bench.desk.list()[0], bench.desk.note(key, "Hm")]
    assert [(task["completed_at"], task["ended_at"]) for task in found] == [(finished, None)] * 3
    assert bench.desk.reject(key, "softer")["completed_at"] is None
    bench.agent.complete(bench.agent.claim(key, "w1")["claim"], "Again")
    done = bench.desk.approve(key)
    assert done["completed_at"] == done["ended_at"] is not None

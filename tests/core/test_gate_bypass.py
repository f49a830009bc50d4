"""What an adversary tried: an agent, or an empty answer, that takes a person's gate away."""

from __future__ import annotations

import pytest

from yourturn.core.answers import ANSWERS
from yourturn.core.errors import AlreadyClosed, Invalid, NotAllowed
from yourturn.core.model import Who

from .states import everything, state


@pytest.mark.parametrize("text", [" ", "\n", "  \t"])
def test_blank_text_is_not_a_yes(bench, text):
    for kind in ("permission", "approval", "checkpoint", "work", "input"):
        asked = bench.desk.ask(bench.ready(), "May I?", kind, response_type="boolean" if kind == "input" else None)
        before = everything(bench.desk)
        with pytest.raises(Invalid):
            bench.desk.answer(asked, text=text)
        assert everything(bench.desk) == before, kind


@pytest.mark.parametrize("how", ["fail", "stuck", "default"])
def test_an_agents_question_that_runs_out_leaves_a_persons_gate_alone(bench, how):
    key = bench.ready()
    gate = bench.desk.ask(key, "Sign off", "approval")["id"]
    bench.agent.ask(key, "hm", timeout="5m", on_timeout=how)
    bench.clock.advance(minutes=6)
    bench.desk.reconcile()
    assert (state(bench.desk, key), bench.desk.show(gate)["status"]) == ("human", "pending")
    assert bench.desk.approve(gate)["state"] == "done", "and the yes still counts"


def test_where_a_late_answer_would_lead_is_refused_like_the_answer(bench):
    asked = bench.desk.ask(bench.ready(), "Which?")["id"]
    bench.desk.answer(asked, "this")
    with pytest.raises(AlreadyClosed):
        bench.desk.lands(asked, "that")


def test_no_word_names_two_options(bench):
    for options in (
        [{"id": "no", "label": "Yes, deploy", "value": "deploy"}, {"id": "x", "label": "No", "value": "stop"}],
        ["Yes", "yes"],
    ):
        with pytest.raises(Invalid, match="twice"):
            bench.agent.ask(bench.ready(), "Deploy?", options=options)
    same = [{"id": "a", "label": "no", "value": "deploy"}, {"id": "b", "label": "no", "value": "stop"}]
    asked = bench.agent.ask(bench.ready(), "Deploy?", options=same)
    with pytest.raises(Invalid, match="fits several options"):
        bench.desk.answer(asked, "No")
    assert bench.desk.answer(asked, "b")["response"]["value"] == "stop"


def test_unusual_argument_shapes_are_refused_or_accepted(bench):
    key = bench.working()
    bench.agent.update(key, seat={}, claim=bench.claims[key])
    assert bench.desk.show(key)["seat"] == {}
    bench.agent.decompose(bench.claims[key], [{"title": "c", "depends_on": None}])
    assert state(bench.desk, key) == "blocked"


@pytest.fixture
def reserved(bench):
    """A project whose gates are for approvers, and a member."""
    bench.desk.set("approvals", "approvers")
    bench.member = bench.desk.as_(Who("human:mia", "member"))
    return bench


def test_a_gate_for_approvers_is_not_cancelled_away(reserved):
    key = reserved.ready()
    gate = reserved.desk.ask(key, "Sign off", "approval")["id"]
    with pytest.raises(NotAllowed, match="only approvers can, and human:mia is a member"):
        reserved.member.cancel(key)
    other = reserved.agent.ask(key, "Go on?", "escalation")["id"]
    with pytest.raises(NotAllowed, match="only approvers can"):
        reserved.member.reject(other, "no")
    assert (state(reserved.desk, key), reserved.desk.show(gate)["status"]) == ("human", "pending")
    assert reserved.member.stop(key)["state"] == "failed", "stopping is for everybody: nothing goes on by it"


def test_a_late_answer_does_not_undo_what_an_approver_signed_off(reserved):
    key = reserved.ready()
    asked = reserved.agent.ask(key, "Which?")["id"]
    reserved.member.answer(asked, "this")
    reserved.desk.close(key)
    with pytest.raises(NotAllowed, match="only approvers can"):
        reserved.member.answer(asked, "that", restart=True)
    assert state(reserved.desk, key) == "done"
    reserved.desk.answer(asked, "that", restart=True)
    assert state(reserved.desk, key) == "ready"


def test_only_people_say_which_id_a_task_has_elsewhere(bench):
    with pytest.raises(NotAllowed, match="only people say which id a task has elsewhere"):
        bench.agent.create("Mine", external_id="bd-17")
    assert bench.desk.create("Ours", external_id="bd-17")["external_id"] == "bd-17"


@pytest.mark.parametrize("form", ["approval", "boolean"])
@pytest.mark.parametrize(("verdict", "words"), [("approved", "No."), ("rejected", "yes")])
def test_a_verdict_and_a_word_that_say_the_opposite_are_refused(bench, form, verdict, words):
    asked = bench.desk.ask(bench.ready(), "Good?", "approval", response_type=form)["id"]
    with pytest.raises(Invalid, match="one says yes and the other no"):
        bench.desk.answer(asked, verdict=verdict, text=words)
    assert bench.desk.show(asked)["status"] == "pending"


def test_the_answers_of_a_gate_say_what_they_do(bench):
    labels = [way.label for way in ANSWERS["approval", "boolean"]]
    assert labels == ["Yes, approve and finish", "No, send back"]

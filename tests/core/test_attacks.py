"""What an adversary tried: an agent, or an empty answer, that takes a person's gate away."""

from __future__ import annotations

import pytest

from yourturn.core.errors import AlreadyClosed, Invalid

from .kit import everything, state


@pytest.mark.parametrize("text", [" ", "\n", "  \t"])
def test_blank_words_are_no_yes(bench, text):
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


def test_odd_shapes_are_refused_or_taken(bench):
    key = bench.working()
    bench.agent.update(key, seat={}, claim=bench.claims[key])
    assert bench.desk.show(key)["seat"] == {}
    bench.agent.decompose(bench.claims[key], [{"title": "c", "depends_on": None}])
    assert state(bench.desk, key) == "blocked"

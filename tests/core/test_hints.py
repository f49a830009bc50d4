"""What a hint names can be said: the rules are asked, state by state."""

from __future__ import annotations

import pytest

from yourturn.core.hints import NEXT, NEXT_OF_A_RUN, next_verb, only_asks
from yourturn.core.model import STATES
from yourturn.core.rules import TRANSITIONS

TYPES = ("task", "epic")


def hinted(task):
    asks = only_asks(task["created_by"], ((q["kind"], q["asked_by"]) for q in task["questions"]))
    facts = {"type": task["type"], "complexity": task["complexity"], "has_children": bool(task["children"])}
    return next_verb(task["state"], run=bool(task["workflow"]), asks=asks, **facts)


@pytest.mark.parametrize("run", [False, True], ids=["task", "run"])
@pytest.mark.parametrize("state", STATES)
def test_hinted_verbs_are_allowed_for_a_person(bench, state, run):
    key = bench.into(state, workflow="feature.py" if run else None)
    task = bench.desk.show(key)
    verb = hinted(task)
    assert verb == (NEXT | NEXT_OF_A_RUN if run else NEXT).get(state, "")
    if verb == "claim":
        assert bench.agent.claim(key, "w9")["task"]["state"] == "working"
    elif verb:
        assert verb in bench.desk.moves(key)


@pytest.mark.parametrize("state", ["created", "ready"])
def test_what_is_too_large_is_decomposed_first_and_an_epic_gets_children(bench, state):
    draft = state == "created" or None
    large = bench.desk.create("Large", complexity="xlarge", draft=draft)
    assert hinted(large) == "decompose" and "human" in TRANSITIONS[large["state"], "decompose"].who
    epic = bench.desk.create("Epic", type="epic", draft=draft)
    assert hinted(epic) == ("vet" if draft else "create")
    child = bench.desk.create("Part", parent=large["key"])
    assert hinted(bench.desk.show(large["key"])) != "decompose" and hinted(child) == "claim"


def test_a_task_that_only_carries_a_question_is_closed_not_vetted(bench):
    key = bench.agent.create("Allow deploy", draft=True)["key"]
    assert hinted(bench.desk.show(key)) == "vet", "a draft of an agent's own is work"
    asked = bench.agent.ask(key, "Deploy?", "permission", action={"tool": "deploy"})["id"]
    bench.desk.approve(asked)
    task = bench.desk.show(key)
    assert task["state"] == "created" and hinted(task) == "close" and "close" in bench.desk.moves(key)

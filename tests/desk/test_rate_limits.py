"""Rate limits of agents' questions: per task, per agent, per workspace, on every surface. People have none."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from tests.conftest import TURN
from yourturn.core.errors import Invalid, TooMany
from yourturn.core.model import Who

_LOOSE = {"blocking": False, "default": "x"}


def test_one_task(desk, agent, clock):
    desk.set("question_rate", 3)
    key = desk.create("A")["key"]
    for _ in range(3):
        agent.ask(key, "Which?", **_LOOSE)
    with pytest.raises(TooMany, match="PROJ-1 asks too many questions: at most 3 in 3600 seconds") as error:
        agent.ask(key, "Which?", **_LOOSE)
    assert error.value.retry_after == 1200 and "question_rate" in error.value.hint
    with pytest.raises(TooMany):
        agent.flag(key, "Stuck")
    assert len(desk.show(key)["questions"]) == 3 and desk.show(key)["state"] == "ready", "nothing was asked"
    desk.ask(key, "By a person", **_LOOSE)
    agent.ask(desk.create("B")["key"], "Another task", **_LOOSE)
    clock.advance(seconds=1199)
    with pytest.raises(TooMany) as error:
        agent.ask(key, "Which?", **_LOOSE)
    assert error.value.retry_after == 1
    clock.advance(seconds=1)
    agent.ask(key, "Which?", **_LOOSE)
    with pytest.raises(TooMany):
        agent.ask(key, "Which?", **_LOOSE)


def test_one_agent_with_a_new_task_each_time(desk, agent, open_desk):
    desk.set("question_rate_actor", 5)
    for _ in range(5):
        agent.ask(desk.create("A")["key"], "Which?")
    with pytest.raises(TooMany, match="agent:coder asks too many questions"):
        agent.ask(desk.create("A")["key"], "Which?")
    open_desk("agent:other").ask(desk.create("A")["key"], "Which?")
    assert len(desk.inbox()) == 6


def test_a_workspace(desk, agent, open_desk):
    desk.set("question_rate_workspace", 4)
    for at in range(4):
        desk.as_(Who(f"agent:a{at}", "agent", direct=True)).ask(desk.create("A")["key"], "Which?")
    with pytest.raises(TooMany, match="The agents here ask too many questions"):
        open_desk("agent:new").ask(desk.create("A")["key"], "Which?")
    desk.ask(desk.create("A")["key"], "By a person")


def test_refused_and_repeated_moves_do_not_count(desk, agent):
    desk.set("question_rate", 2)
    key = desk.create("A")["key"]
    for _ in range(3):
        with pytest.raises(Invalid):
            agent.ask(key, "Which?", response_type="choice")
        agent.ask(key, "Which?", key="the same", **_LOOSE)
    agent.ask(key, "Which?", **_LOOSE)
    with pytest.raises(TooMany):
        agent.ask(key, "Which?", **_LOOSE)
    agent.ask(key, "Which?", key="the same", **_LOOSE)
    assert len(desk.show(key)["questions"]) == 2


def test_a_task_that_is_created_with_a_question(desk, agent):
    desk.set("question_rate_actor", 2)
    agent.create("A", awaiting="input")
    agent.create("B", awaiting="input")
    with pytest.raises(TooMany):
        agent.create("C", awaiting="input")
    agent.create("D")
    assert [task["title"] for task in desk.list()] == ["A", "B", "D"], "what cannot be asked leaves no task behind"
    claim = agent.claim(agent.create("E")["key"], "w1")["claim"]
    agent.complete(claim, "finished work is always taken")


def test_an_agent_creates_only_so_many_tasks(desk, agent, open_desk, clock):
    """Finished, failed and released work asks people: an agent cannot go round its limits with tasks of its own."""
    desk.set("task_rate", 3)
    claim = agent.claim(agent.create("A", requires="approval")["key"], "w1")["claim"]
    work = agent.claim(agent.create("B")["key"], "w1")["claim"]
    with pytest.raises(TooMany, match="agent:coder creates too many tasks: at most 3 in 3600 seconds") as error:
        agent.decompose(work, ["C", "D"])
    assert error.value.retry_after == 1200 and "task_rate" in error.value.hint
    agent.create("E")
    with pytest.raises(TooMany):
        agent.create("F")
    assert [task["title"] for task in desk.list()] == ["A", "B", "E"], "all children, or none"
    open_desk("agent:other").create("G")
    desk.create("H")
    agent.complete(claim, "finished work is always taken")
    assert [q["task"] for q in desk.inbox()] == ["PROJ-1"]
    clock.advance(seconds=1200)
    agent.create("I")


def test_the_script_of_a_run_is_a_persons_word(desk, agent):
    desk.set("question_rate", 1)
    key = desk.create("A run", workflow="flow.py")["key"]
    claim = agent.claim(key, "w1")["claim"]
    for at in range(3):
        step = {"path": str(at), "name": "pause", "call": {"n": at}, "status": "waiting"}
        agent.flag(key, "Go on?", None, "checkpoint", claim=claim, steps=[step], step=str(at), hold=True)
    assert len(desk.show(key)["questions"]) == 3


def turn(address, *words, **env):
    more = {"YOURTURN_DB": address, "PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **env}
    return subprocess.run([TURN, *words], env=more, capture_output=True, text=True)


def test_the_command(desk, address):
    desk.set("question_rate", 1)
    key = desk.create("A")["key"]
    ask = ("ask", key, "Which?", "--non-blocking", "--default", "x", "--json")
    assert turn(address, *ask, YOURTURN_AGENT="coder").returncode == 0
    refused = turn(address, *ask, YOURTURN_AGENT="coder")
    assert refused.returncode == 4 and json.loads(refused.stderr)["error"]["code"] == "too_many"
    assert turn(address, "flag", key, "Stuck", YOURTURN_AGENT="coder").returncode == 4
    assert turn(address, *ask).returncode == 0, "a person"

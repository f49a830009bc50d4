"""Tests of the engine: one claim of a run, its writes, and late writers."""

from __future__ import annotations

import builtins
import itertools
import threading
import time
from contextlib import nullcontext

import pytest

from yourturn.core.model import Who
from yourturn.flow import ask, log, now, pause, random, run, step
from yourturn.flow.agent_step import Turn
from yourturn.flow.engine import Engine
from yourturn.flow.results import Released, Suspended
from yourturn.testing import FakeClock, Stage, done, needs_human

WORKER = Who("agent:w", "agent", True)


class Host:
    """The smallest host: agents are a function."""

    def __init__(self, turns=None):
        self.stop = threading.Event()
        self.turns = turns or (lambda call: (_ for _ in ()).throw(AssertionError("no agent should be called")))
        self.left = 0

    def leave(self):
        self.left += 1

    def close(self, what, words):
        return words

    def say(self, text):
        pass

    def fork(self, path, n):
        return nullcontext()

    def join(self, path, n):
        pass


@pytest.fixture
def given(monkeypatch):
    """Something that scripts find without importing it."""

    def give(name, value):
        monkeypatch.setattr(builtins, name, value, raising=False)
        return value

    return give


@pytest.fixture
def take(desk, tmp_path):
    """Write a script, start it, claim it: take(body) -> (key, go)."""

    def make(body, turns=None):
        file = tmp_path / "work.py"
        file.write_text(body)
        key = desk.create("Try", workflow="work.py", program={"file": "work.py", "body": body})["key"]

        def claim():
            got = desk.as_(WORKER).claim(key, "w")
            host = Host(turns)
            return Engine(desk.as_(WORKER), got, host, tmp_path), host

        return key, claim

    return make


def test_runs_are_only_given_to_workers_that_run_scripts(desk, take):
    key, _ = take("def workflow(prompt):\n    pass\n")
    assert desk.as_(WORKER).claim_next("w") is None
    assert desk.as_(WORKER).claim_next("w", runs=True)["task"]["key"] == key


def test_stop_parks_without_costing_a_try(desk, take, given):
    effects = given("effects", [])
    key, claim = take("def workflow(prompt):\n    now()\n    step(effects.append, 1)\n    step(effects.append, 2)\n")
    engine, host = claim()
    host.stop.set()
    assert engine.go().what == "stopped" and effects == [] and host.left == 1
    task = desk.show(key)
    assert (task["state"], task["retry_count"], task["claim"]) == ("ready", 0, None)
    assert claim()[0].go().what == "done" and effects == [1, 2]


def test_stop_writes_the_buffer(desk, take, given):
    """What the script has seen already stays so, also if nothing else was written."""
    key, claim = take('def workflow(prompt):\n    x = random()\n    stopping()\n    return str(x) + str(step(len, ""))\n')
    engine, host = claim()
    given("stopping", host.stop.set)
    assert engine.go().what == "stopped"
    kept = desk.steps(key)[0]["result"]
    given("stopping", lambda: None)
    assert claim()[0].go().words == f"{kept}0"


@pytest.mark.parametrize("branch", [False, True])
def test_a_host_that_stops_in_the_middle_of_a_turn(desk, take, branch):
    body = 'def workflow(prompt):\n    run("a")\n'
    if branch:
        body = 'def workflow(prompt):\n    parallel([lambda: run("a"), lambda: 1])\n'
    stopping = [True]

    def turns(call):
        if stopping:
            stopping.clear()
            raise Suspended("stop")
        return Turn("done", text="fine")

    key, claim = take(body, turns)
    assert claim()[0].go().what == "stopped"
    assert desk.show(key)["retry_count"] == 0 and desk.show(key)["state"] == "ready"
    assert [s["status"] for s in desk.steps(key)] == ["running"] * branch
    assert claim()[0].go().what == "done"


PLAIN = """
def workflow(prompt):
    step(late)
    step(later)
    return "ended"
"""
CAUGHT = """
def workflow(prompt):
    try:
        step(late)
    except:
        pass
    step(later)
    return "ended"
"""
QUIET = """
def workflow(prompt):
    try:
        step(late)
        step(later)
    except:
        pass
    return "ended"
"""


@pytest.mark.parametrize("body", [PLAIN, CAUGHT, QUIET], ids=["plain", "caught", "quiet"])
def test_a_lost_claim_in_the_middle(desk, clock, take, given, body):
    """The late one writes nothing, does nothing more, and ends nothing; the other one's results stand."""
    effects, second = [], []
    key, claim = take(body)
    first, _ = claim()

    def late():
        if effects or second:
            return 2
        second.append(None)
        clock.advance(hours=3)
        second.append(claim()[0].go())
        return 1

    given("late", late)
    given("later", lambda: effects.append(1))
    assert first.go().what == "lost" and second[1].what == "done" and effects == [1]
    task = desk.show(key)
    assert task["state"] == "done" and [s["result"] for s in desk.steps(key)] == [{"value": 2}, {"value": None}]
    assert task["notes"] == []


def test_a_result_that_cannot_be_recorded(desk, take):
    """It is not called again for that."""
    called = []

    def turns(call):
        called.append(call.path)
        return Turn("done", text="ok", context={"huge": "y" * 1_100_000})

    key, claim = take('def workflow(prompt):\n    return run("coder").status\n', turns)
    assert claim()[0].go().words == "ERROR" and called == ["1"]
    assert "cannot be recorded" in desk.steps(key)[0]["result"]["reason"]


def test_a_claim_lost_while_it_waits(desk, clock, take, given):
    key, claim = take('def workflow(prompt):\n    taking()\n    pause("ok?")\n')
    engine, _ = claim()
    given("taking", lambda: clock.advance(hours=3) and desk.as_(WORKER).claim(key, "other"))
    assert engine.go().what == "lost"
    assert desk.show(key)["questions"] == [] and desk.show(key)["claim"]["worker"] == "other"


def test_a_claim_lost_while_an_agent_crashes(desk, clock, take):
    def turns(call):
        clock.advance(hours=3)
        desk.as_(WORKER).claim(key, "other")
        raise Released("the agent crashed")

    key, claim = take('def workflow(prompt):\n    now()\n    run("coder")\n', turns)
    engine, _ = claim()
    assert engine.go().what == "lost"
    assert desk.show(key)["notes"] == [] and desk.show(key)["claim"]["worker"] == "other"


def test_a_person_stops_a_run_that_works(desk, take, given):
    key, claim = take('def workflow(prompt):\n    stopped()\n    step(len, "")\n')
    engine, _ = claim()
    given("stopped", lambda: desk.stop(key, "enough"))
    assert engine.go().what == "lost"
    assert (desk.show(key)["state"], desk.show(key)["reason"]) == ("failed", "enough")


# --- killed at every step -----------------------------------------------------------------------------------------------


def release(prompt):
    log("begins")
    started = now()
    plan = run("architect", prompt)
    fetched = step(len, plan.summary)
    ok = pause("Deploy?")
    name = ask("Which name?")
    built = run("coder", f"{name} {fetched} {random() >= 0} {started.year}")
    return f"{bool(ok)} {built.summary}"


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(1, 9))
def test_crash_at_every_step(stage, at, after):
    """As without a kill: the same end, the same questions, the same journal."""
    lines = {"architect": [done("drawn")], "coder": [needs_human("JWT?"), done("built")]}
    s = stage(release, lines, ["yes", "Zoe", "JWT"]).crash_at(at, after=after).play("Add login")
    assert s.state == "done" and s.summary == "True built"
    assert [q["text"] for q in s.task["questions"]] == ["Deploy?", "Which name?", "JWT?"]
    assert [x["index"] for x in s.steps] == list("12345678") and {x["status"] for x in s.steps} == {"completed"}
    assert s.calls[-1].prompt == "Zoe 5 True 2026"


# --- speed --------------------------------------------------------------------------------------------------------------


def test_replay_of_a_thousand_steps_is_fast():
    """Measured: 10 to 20 ms. The bound is for a machine that does ten other things; what matters is that nothing is written."""
    counter = itertools.count()

    def work(prompt):
        for number in range(1000):
            step(lambda: next(counter)) if number % 10 == 0 else random()
        took.append(time.perf_counter())
        pause("ok?")

    took: list[float] = []
    s = Stage(work, clock=FakeClock()).run()
    s.desk.approve(s.key)
    before = len(s.desk.history(s.key, limit=10_000))
    began = time.perf_counter()
    s.go()
    assert s.state == "done" and len(s.steps) == 1001 and next(counter) == 100
    assert took[-1] - began < 1.0
    assert [e["action"] for e in s.desk.history(s.key, limit=10_000)[before:]] == ["claim", "complete"]

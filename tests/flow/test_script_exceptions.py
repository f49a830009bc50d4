"""Exceptions that end or suspend a script: what a script may catch, and the effect if it catches the others."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress

import pytest

from yourturn.core.errors import Usage
from yourturn.flow import StepFailed, ask, log, now, parallel, pause, random, run, sleep, step, stuck, uuid
from yourturn.flow.engine import SWALLOWED
from yourturn.testing import crashes, done, needs_human

SCRIPT = """
def workflow(prompt):
    run("coder")
    try:
        {first}
    {catch}
        {after}
    run("deployer")
"""


def script(first, catch, after="pass"):
    return SCRIPT.format(first=first, catch=catch, after=after)


def note():
    return f"workflow.py {SWALLOWED}"


@pytest.mark.parametrize("first", ["pause('ok?')", "ask('which?')", "run('asker')", "sleep('1d')"])
def test_except_exception_does_not_catch_a_wait(stage, first):
    agents = {"coder": [done()], "deployer": [done()]} | ({"asker": [needs_human("how?"), done()]} if "asker" in first else {})
    s = stage(script(first, "except Exception:", "raise SystemError('caught')"), agents).run()
    assert s.state in ("human", "deferred")
    (s.answer("yes") if s.waiting else s.advance(days=1))
    assert s.state == "done" and s.notes == []


@pytest.mark.parametrize("catch", ["except BaseException:", "except:", "finally:"])
@pytest.mark.parametrize("first", ["pause('ok?')", "run('asker')", "sleep('1d')"])
def test_caught_suspension_is_detected(stage, first, catch):
    """It gets no further than the next durable call, waits properly, and goes on properly."""
    agents = {"coder": [done()], "deployer": [done()]} | ({"asker": [needs_human("how?"), done()]} if "asker" in first else {})
    s = stage(script(first, catch, "return 'early'" if catch == "finally:" else "pass"), agents, strict=catch != "finally:").run()
    assert s.state in ("human", "deferred") and s.task["claim"] is None
    assert s.calls[0].agent == "coder" and "deployer" not in [c.agent for c in s.calls]
    (s.answer("yes") if s.waiting else s.advance(days=1))
    assert s.state == "done"
    assert s.notes == [note()]


def test_caught_suspension_is_noted_once(stage):
    def work(prompt):
        for _ in range(3):
            with suppress(BaseException):
                pause("ok?")
        return "ended"

    s = stage(work).run()
    assert s.state == "human" and s.notes == [f"work.py {SWALLOWED}"]
    s.approve()
    assert s.state == "human" and len(s.notes) == 1
    assert s.approve().approve().state == "done" and len(s.notes) == 1 and s.summary == "ended"


def test_replaced_suspension_is_detected(stage):
    def work(prompt):
        try:
            pause("ok?")
        except BaseException as error:
            raise ValueError("wrapped") from error

    s = stage(work).run()
    assert s.state == "human" and s.notes == [f"work.py {SWALLOWED}"]
    assert s.approve().state == "done"


def test_finally_runs_with_every_replay_and_its_calls_wait_too(stage):
    runs, cleaned = [], []

    def work(prompt):
        runs.append(1)
        try:
            pause("ok?")
        finally:
            runs.append("finally")
            step(cleaned.append, 1)

    s = stage(work).run()
    assert s.state == "human" and cleaned == [] and s.notes == []
    s.approve()
    assert s.state == "done" and cleaned == [1] and runs == [1, "finally"] * 2
    assert [x["name"] for x in s.steps] == ["pause", "step"]


def test_stuck_in_a_finally_does_not_end_a_run_that_waits(stage):
    def work(prompt):
        ok = None
        try:
            ok = pause("ok?")
        finally:
            if not ok:
                stuck("no yes")

    s = stage(work).run()
    assert s.state == "human" and s.ended.what == "waiting"
    assert s.approve().state == "done"
    s = stage(work).run().reject()
    assert (s.failure, s.reason) == ("stuck", "no yes")


def test_stuck_cannot_be_caught(stage):
    def work(prompt):
        with suppress(BaseException):
            stuck("enough")
        run("coder")

    s = stage(work).run()
    assert (s.state, s.failure, s.reason) == ("failed", "stuck", "enough") and len(s.notes) == 1
    s = stage(lambda prompt: suppress(BaseException).__enter__() or _quiet()).run()
    assert (s.failure, s.reason) == ("stuck", "enough") and len(s.notes) == 1


def _quiet():
    with suppress(BaseException):
        stuck("enough")


def test_a_crashed_agent_cannot_be_caught(stage):
    def work(prompt):
        with suppress(BaseException):
            run("coder")
        run("deployer")

    s = stage(work, {"coder": [crashes("it fell over"), done()], "deployer": [done()]}).run()
    assert s.state == "done" and [(c.agent, c.session, c.resumed) for c in s.calls] == [
        ("coder", "coder-1", False), ("coder", "coder-1", True), ("deployer", "deployer-1", False),
    ]  # fmt: skip
    assert s.notes == ["Given back: it fell over", f"work.py {SWALLOWED}"]


def test_crashes_cost_tries_and_then_a_person_is_asked(stage):
    s = stage(lambda prompt: run("coder"), {"coder": [crashes()] * 3 + [done("at last")]}).run()
    assert s.waiting.kind == "escalation" and s.waiting.question["reason"] == "retry_exhausted" and len(s.calls) == 3
    s.answer("try again")
    assert s.state == "done" and s.summary == "at last" and len({c.session for c in s.calls}) == 1


@pytest.mark.parametrize("end", ["sys.exit(3)", "exit('bye')", "raise SystemExit", "raise GeneratorExit"])
def test_leaving_the_process_fails_the_run(stage, end):
    s = stage(f"import sys\ndef workflow(prompt):\n    {end}\n").run().answer("stop")
    assert (s.state, s.failure) == ("failed", "error") and s.reason.startswith("workflow.py: line 3: ")


def test_an_interrupt_of_the_scripts_own_is_a_failure(stage):
    """Only the worker says that it is time to go."""
    pressed = []

    def work(prompt):
        step(len, "abc")
        pressed.append(1)
        if len(pressed) == 1:
            raise KeyboardInterrupt
        return "went on"

    s = stage(work).run()
    assert pressed == [1] and "KeyboardInterrupt" in s.waiting.text
    assert s.answer("retry").summary == "went on" and s.task["retry_count"] == 0


def test_recursion_error_fails_the_run(stage):
    s = stage("def workflow(prompt):\n    workflow(prompt)\n").run().answer("stop")
    assert s.failure == "error" and "RecursionError" in s.reason and "line 2" in s.reason


def test_an_error_fails_the_run_with_its_line(stage):
    body = 'def helper():\n    return {}["x"]\n\ndef workflow(prompt):\n    run("a")\n    helper()\n'
    s = stage(body, {"a": "ok"}).run().answer("stop")
    assert s.reason == "workflow.py: line 2: KeyError: 'x'" and [x["status"] for x in s.steps] == ["completed"]


def test_a_failed_run_goes_on_where_it_failed(stage):
    body = 'def workflow(prompt):\n    a = run("a")\n    return a.sumary.upper()\n'
    s = stage(body, {"a": [done("ok")]}, strict=False).run().answer("stop")
    assert s.state == "failed"
    s.edit(body.replace("sumary", "summary")).rewind()
    assert s.state == "done" and s.summary == "OK" and len(s.calls) == 1


def test_a_failed_run_goes_back_to_a_step(stage):
    def work(prompt):
        run("a")
        if run("b").status != "DONE":
            stuck("b did not do it")

    s = stage(work, {"a": [done()], "b": [{"status": "FAILED", "reason": "no"}, done()]}, strict=False).run()
    assert s.state == "failed"
    s.rewind(2)
    assert s.state == "done" and [c.agent for c in s.calls] == ["a", "b", "b"] and s.task["journal"] == 1


CALLS = [
    lambda: run("a"), lambda: pause("a"), lambda: ask("a"), lambda: stuck("a"), lambda: step(len, "a"), lambda: sleep(1), now,
    random, uuid, lambda: log("a"), lambda: parallel([]),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_outside_of_a_workflow(call):
    with pytest.raises(Usage, match="outside of a workflow"):
        call()


@pytest.mark.parametrize("call", CALLS)
def test_in_another_thread_and_in_a_step(call):
    from yourturn.testing import Stage

    seen = []

    def elsewhere():
        with pytest.raises(Usage, match="outside of a workflow") as caught:
            call()
        seen.append(caught.value.hint)

    def work(prompt):
        other = threading.Thread(target=elsewhere)
        other.start()
        other.join()
        with pytest.raises(StepFailed, match=r"Usage: .* was called outside of a workflow"):
            step(call)

    s = Stage(work).run()
    assert s.state == "done" and "own thread" in seen[0] and [x["name"] for x in s.steps] == ["step"]


def test_sys_exit_inside_a_step(stage):
    def leave():
        sys.exit("bye")

    s = stage(lambda prompt: step(leave)).run().answer("stop")
    assert (s.state, s.failure) == ("failed", "error") and "SystemExit: bye" in s.reason

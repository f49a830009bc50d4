"""`parallel()`: each branch has its own sequence of calls, and none waits for another."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest

from yourturn.core.errors import Invalid
from yourturn.flow import log, now, parallel, pause, random, run, sleep, step, stuck
from yourturn.testing import crashes, done, needs_human


def indexes(s):
    return [x["index"] for x in s.steps]


def test_results_in_their_order(stage):
    def work(prompt):
        a, b, c = parallel([lambda: run("a").summary, lambda: step(len, "abc"), lambda: None])
        return f"{a} {b} {c}"

    s = stage(work, {"a": "A"}).run()
    assert s.summary == "A 3 None" and indexes(s) == ["1", "1.0.0", "1.1.0"]


def test_branches_run_in_parallel(stage):
    meeting = threading.Barrier(3, timeout=20)

    def agent(told):
        meeting.wait()
        return done()

    s = stage(lambda prompt: parallel([lambda: run("x")] * 3) and None, {"x": agent}).run()
    assert s.state == "done" and len({c.session for c in s.calls}) >= 1


def test_empty_and_invalid_parallel(stage):
    assert stage(lambda prompt: str(parallel([]))).run().summary == "[]"

    def work(prompt):
        with pytest.raises(Invalid, match="needs functions"):
            parallel([run("a")])

    assert stage(work, {"a": "ok"}).run().state == "done"


def test_a_waiting_branch_does_not_stop_the_others(stage):
    done_beside = []

    def work(prompt):
        ok, words = parallel([lambda: pause("ok?"), lambda: step(done_beside.append, 1) or run("coder").summary])
        return f"{bool(ok)} {words}"

    s = stage(work, {"coder": [done("built")]}).run()
    assert s.state == "human" and done_beside == [1] and s.task["claim"] is None
    assert [x["status"] for x in s.steps] == ["running", "waiting", "completed", "completed"]
    s.approve()
    assert s.summary == "True built" and done_beside == [1] and len(s.calls) == 1


def test_several_questions_at_once(stage):
    """It goes on when all are answered, in whatever order."""

    def work(prompt):
        a, b, c = parallel([lambda: pause("A?"), lambda: pause("B?"), lambda: run("coder")])
        return f"{bool(a)} {bool(b)} {c.summary}"

    s = stage(work, {"coder": [needs_human("C?"), done("c")]}).run()
    assert [w.text for w in s.questions] == ["A?", "B?", "C?"] and [w.step for w in s.questions] == ["1.0.0", "1.1.0", "1.2.0"]
    s.answer("go", to="coder")
    assert s.state == "human" and len(s.calls) == 1
    s.approve(to="B?")
    assert s.state == "human"
    s.reject(to="1.0.0")
    assert s.state == "done" and s.summary == "False True c"


def test_nested(stage):
    def work(prompt):
        inner = lambda: parallel([lambda: run("a").summary, lambda: pause("in?") and "yes"])  # noqa: E731
        return str(parallel([inner, lambda: run("b").summary]))

    s = stage(work, {"a": [done("a")], "b": [done("b")]}).run()
    assert s.waiting.step == "1.0.0.1.0"
    assert s.approve().summary == "[['a', 'yes'], 'b']"
    assert indexes(s) == ["1", "1.0.0", "1.0.0.0.0", "1.0.0.1.0", "1.1.0"]


def test_calls_of_a_branch_have_their_own_numbers(stage):
    seen = []

    def branch():
        seen.append((now(), random()))
        log("x")
        pause("ok?")

    s = stage(lambda prompt: parallel([branch, branch]) and None, None, ["yes", "yes"]).play()
    assert s.state == "done" and len(set(seen)) == 2 and len(seen) == 4 and s.said == ["x", "x"]
    assert [i for i in indexes(s) if i.startswith("1.1")] == ["1.1.0", "1.1.1", "1.1.2", "1.1.3"]


def test_an_exception_comes_after_the_others_have_ended(stage):
    ran = []

    def bad():
        raise ValueError("bad branch")

    def work(prompt):
        try:
            parallel([bad, lambda: step(ran.append, 1), lambda: pause("ok?")])
        except ValueError as error:
            return f"caught {error}"

    s = stage(work).run()
    assert s.state == "human" and ran == [1]
    assert s.approve().summary == "caught bad branch" and ran == [1]


def test_an_uncaught_exception_fails_the_run(stage):
    s = stage('def workflow(prompt):\n    parallel([lambda: 1 / 0, lambda: run("a")])\n', {"a": "ok"}).run().answer("stop")
    assert s.reason == "workflow.py: line 2: ZeroDivisionError: division by zero"


def test_a_caught_exception_is_the_same_later(stage):
    def work(prompt):
        with suppress(ZeroDivisionError):
            parallel([lambda: 1 / 0])
        pause("ok?")
        return "fine"

    assert stage(work).run().approve().summary == "fine"


def test_stuck_in_a_branch_ends_the_run_and_its_questions(stage):
    s = stage(lambda prompt: parallel([lambda: pause("ok?"), lambda: stuck("cannot be done")])).run()
    assert (s.failure, s.reason, s.waiting) == ("stuck", "cannot be done", None)
    assert all(q["status"] == "cancelled" for q in s.task["questions"])


def test_caught_stuck_in_a_branch(stage):
    def branch():
        with suppress(BaseException):
            stuck("cannot be done")

    s = stage(lambda prompt: parallel([branch, lambda: None])).run()
    assert (s.failure, s.reason, s.steps[0]["status"]) == ("stuck", "cannot be done", "running")


def test_caught_pause_in_a_branch_still_waits(stage):
    def branch():
        with suppress(BaseException):
            pause("ok?")
        return "over"

    s = stage(lambda prompt: str(parallel([branch, lambda: run("a").summary])), {"a": [done("a")]}).run()
    assert s.state == "human"
    assert s.approve().summary == "['over', 'a']"


def test_sleeping_branch_continues_after_the_answers(stage):
    def work(prompt):
        parallel([lambda: sleep("2d"), lambda: pause("ok?", timeout="9d")])
        return now().isoformat()[:10]

    s = stage(work).run().advance(days=3)
    assert s.state == "human", "the sleeper is over, and the person is not"
    assert s.approve().state == "done" and s.summary == "2026-09-24"
    s = stage(work).run().approve()
    assert s.state == "deferred" and s.advance(days=1).state == "deferred"
    assert s.advance(days=1).state == "done"


def test_earliest_sleep_wakes_the_run(stage):
    woken = []

    def branch(days):
        sleep(f"{days}d")
        step(woken.append, days)

    s = stage(lambda prompt: parallel([lambda: branch(3), lambda: branch(1)]) and None).run()
    assert s.advance(days=1).state == "deferred" and woken == [1]
    assert s.advance(days=2).state == "done" and woken == [1, 3]


def test_crash_in_a_branch_releases_the_run(stage):
    s = stage(lambda prompt: str([x.summary for x in parallel([lambda: run("a"), lambda: run("b")])]),
              {"a": [done("a")], "b": [crashes(), done("b")]}).run()  # fmt: skip
    assert s.summary == "['a', 'b']" and sorted(c.agent for c in s.calls) in (["a", "b", "b"], ["a", "a", "b", "b"])


@pytest.mark.parametrize("step_", ["1", "1.0.0", "1.1.0", "2"])
@pytest.mark.parametrize("after", [False, True])
def test_crash_at_any_step_of_a_branch(stage, step_, after):
    def work(prompt):
        ok, built = parallel([lambda: pause("ok?"), lambda: run("coder").summary])
        return f"{bool(ok)} {built} {step(len, 'abc')}"

    s = stage(work, {"coder": [done("built")]}, ["yes"]).crash_at(step_, after=after).play()
    assert s.summary == "True built 3" and len(s.task["questions"]) == 1


def test_changed_branch(stage):
    body = 'def workflow(prompt):\n    parallel([lambda: pause("ok?"), lambda: run("a")])\n    run("b")\n'
    s = stage(body, {"a": [done()], "b": [done()], "c": [done()]}).run()
    s.edit(body.replace('run("a")', 'run("c")')).approve()
    assert s.waiting.kind == "recovery" and "Step 1.1.0 was run('a'), and now is run('c')" in s.waiting.text
    assert "workflow.py was changed" in s.waiting.text and s.desk.program(s.key)["body"] == body
    s.answer("continue")
    assert s.state == "done" and [c.agent for c in s.calls] == ["a", "c", "b"], "the person's answer was taken over"


def test_added_branch(stage):
    body = 'def workflow(prompt):\n    parallel([lambda: pause("ok?"), lambda: run("a")])\n'
    s = stage(body, {"a": [done()]}).run().edit(body.replace("[lambda", "[lambda: None, lambda")).approve()
    assert "Step 1 was parallel(2), and now is parallel(3)" in s.waiting.text
    s.answer("continue")
    assert s.waiting.text == "ok?", "it is asked by another branch now: asked again"
    assert s.approve().state == "done" and len(s.calls) == 1


@pytest.mark.parametrize("ended", ["stopped", "timed out"])
def test_a_question_that_was_closed_by_the_end_is_asked_again(stage, ended):
    """What the other branches have done is not done again; and a question that a person took back is not asked again."""
    ran = []

    def work(prompt):
        a, b, c = parallel([lambda: pause("A?", timeout="2h"), lambda: step(ran.append, 1), lambda: pause("B?")])
        return f"{bool(a)} {b} {bool(c)} {bool(pause('C?', timeout='2h'))}"

    def end(s):
        s.stop("enough") if ended == "stopped" else s.advance(hours=3)
        assert s.failure == "stuck" and s.waiting is None

    s = stage(work).run()
    s.withdraw("not this one", to="B?")
    end(s)
    s.rewind()
    assert [(w.text, w.step) for w in s.questions] == [("A?", "1.0.0")] and ran == [1]
    end(s)
    s.rewind().approve()
    assert s.waiting.text == "C?"
    end(s)
    s.rewind()
    assert s.waiting.text == "C?" and s.task["journal"] == 0
    assert s.approve().summary == "True None False True" and ran == [1]

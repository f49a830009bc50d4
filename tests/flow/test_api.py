"""The functions of a script; each stage replays the script from its first line whenever it continues."""

from __future__ import annotations

from datetime import timedelta

import pytest

from yourturn import requires_approval
from yourturn.core.errors import Invalid
from yourturn.flow import StepFailed, ask, config, log, now, pause, random, run, sleep, step, stuck, uuid
from yourturn.testing import done, failed, said, silence


def names(stage):
    return [(s["index"], s["name"], s["status"]) for s in stage.steps]


# --- run --------------------------------------------------------------------------------------------------------------


def test_run_returns_the_signal(stage):
    seen = {}

    def work(prompt):
        seen["done"] = run("coder", prompt)
        seen["said"] = run("reviewer", "look", timeout="1h")
        seen["failed"] = run("tester")
        return pause("ok?") and "all good"

    s = stage(work, {"coder": done("built", files=3), "reviewer": said("APPROVED", "fine"), "tester": failed("2 tests are red")})
    s.run("Add login").approve()
    assert (seen["done"].status, seen["done"].summary, seen["done"].files) == ("DONE", "built", 3)
    assert (seen["said"].status, seen["said"].message, seen["said"].reason) == ("APPROVED", "fine", "")
    assert (seen["failed"].status, seen["failed"].reason, seen["failed"].whatever) == ("FAILED", "2 tests are red", None)
    assert seen["said"] == {"status": "APPROVED", "message": "fine"}
    assert [(c.agent, c.prompt, c.resumed) for c in s.calls] == [
        ("coder", "Add login", False), ("reviewer", "look", False), ("tester", None, False),
    ]  # fmt: skip
    assert s.state == "done" and s.summary == "all good"


def test_prompt_can_be_a_number(stage):
    s = stage(lambda prompt: run("coder", 42), {"coder": "built"}).run()
    assert s.calls[0].prompt == "42" and s.summary == "built"


@pytest.mark.parametrize("call", [
    lambda: run(""), lambda: run(None), lambda: run("coder", color="red"), lambda: config(colour="red"),
    lambda: config(human_timeout="soon"), lambda: config(on_timeout="panic"), lambda: sleep("soon"), lambda: sleep(-1),
    lambda: sleep(timedelta(days=-1)), lambda: step("len"), lambda: step(len, {1, 2}), lambda: pause("ok?", colour="red"),
    lambda: ask("which?", kind="nonsense"), lambda: pause(""), lambda: log("\x00"),
    lambda: ask("which?", options=["a"], default="b"),
])  # fmt: skip
def test_invalid_arguments_can_be_caught(stage, call):
    """It may catch them; what it had done before is kept all the same."""
    times = []

    def work(prompt):
        times.append(now())
        with pytest.raises(Invalid):
            call()
        pause("go on?")
        times.append(now())

    s = stage(work).run()
    s.clock.advance(hours=1)
    s.approve()
    assert s.state == "done" and times[0] == times[1] < times[2]


def test_uncaught_invalid_arguments_fail_the_run(stage):
    s = stage('def workflow(prompt):\n    run("")\n').run()
    assert s.waiting.text.startswith("PROJ-1 failed. workflow.py: line 2: Invalid: run() needs the name of an agent\n")
    s.answer("stop")
    assert (s.state, s.failure) == ("failed", "error")
    assert s.reason == "workflow.py: line 2: Invalid: run() needs the name of an agent"


def test_summary_of_a_run(stage):
    def work(prompt):
        run("a")
        run("b")
        step(len, "abc")

    assert stage(work, {"a": "first", "b": "second"}).run().summary == "second"
    assert stage(lambda prompt: None).run().summary == ""
    assert stage(lambda prompt: 17).run().summary == ""
    assert stage(lambda prompt: run("a"), {"a": said("LGTM", "fine")}).run().summary == "fine"


# --- pause and ask ----------------------------------------------------------------------------------------------------


def test_pause_releases_the_claim(stage):
    seen = []

    def work(prompt):
        seen.append(pause("Deploy?"))

    s = stage(work).run()
    assert (s.state, s.waiting.kind, s.waiting.text, s.waiting.agent) == ("human", "checkpoint", "Deploy?", None)
    assert s.task["claim"] is None and s.steps[0]["agent"] == "_checkpoint" and s.steps[0]["status"] == "waiting"
    s.approve("go ahead")
    assert s.state == "done"
    ok = seen[-1]
    assert ok and ok.continue_ is True and (ok.reason, ok.message, ok.by) == ("", "go ahead", "human:ana")


def test_rejected_pause(stage):
    def work(prompt):
        ok = pause("Deploy?")
        assert not ok and ok.continue_ is False and ok.message == "not on a Friday"
        return stuck(ok.reason)

    s = stage(work).run().reject("not on a Friday")
    assert (s.state, s.failure, s.reason) == ("failed", "stuck", "not on a Friday")


@pytest.mark.parametrize(("word", "goes_on"), [("CONTINUE", True), ("STOP", False), ("rejected", False), ("LGTM", True)])
def test_pause_is_settled_by_a_signal(stage, word, goes_on):
    seen = []
    s = stage(lambda prompt: seen.append(pause("Deploy?"))).run().signal(word, "so be it")
    assert s.state == "done" and bool(seen[-1]) is goes_on and seen[-1].message == "so be it"
    assert seen[-1].reason == ("" if goes_on else "so be it")


def test_ask_returns_text(stage):
    seen = []
    s = stage(lambda prompt: seen.append(ask("Which name?"))).run()
    assert (s.waiting.kind, s.waiting.text, s.steps[0]["name"]) == ("input", "Which name?", "ask")
    s.answer("Yourturn")
    assert seen[-1] == "Yourturn" and str(seen[-1]) == "Yourturn" and seen[-1].by == "human:ana"


def test_ask_offers_options(stage):
    seen = []
    s = stage(lambda prompt: seen.append(ask("Which?", ["jwt", "sessions"], urgency="high"))).run()
    assert s.waiting.options == ["jwt", "sessions"] and s.waiting.question["urgency"] == "high"
    with pytest.raises(Invalid):
        s.answer("oauth")
    s.answer("JWT")
    assert seen[-1].value == "jwt" and seen[-1].verdict == "approved"


def test_ask_for_a_number(stage):
    seen = []
    stage(lambda prompt: seen.append(ask("How many?", response_type="number"))).run().answer("3")
    assert seen[-1].value == 3 and seen[-1] == 3


def test_a_rejected_question_has_no_value(stage):
    seen = []
    s = stage(lambda prompt: seen.append(ask("Which?"))).run().reject("none of them")
    assert s.state == "done" and (seen[-1].value, seen[-1].verdict, str(seen[-1])) == (None, "rejected", "none of them")


def test_timeout_answers_with_the_default(stage):
    seen = []

    def work(prompt):
        seen.append(ask("Which?", ["a", "b"], default="b", timeout="2h", on_timeout="default"))

    s = stage(work).run().advance(hours=1)
    assert s.state == "human"
    s.advance(hours=1)
    assert s.state == "done" and seen[-1] == "b" and (seen[-1].verdict, seen[-1].status) == (None, "timeout")


def test_timeout_without_a_default_ends_the_run(stage):
    seen = []
    s = stage(lambda prompt: seen.append(ask("Which?")), person=[silence()]).play()
    assert (s.state, s.failure) == ("failed", "stuck") and seen == [] and "no answer to Q1 in time" in s.reason


def test_the_answer_is_the_same_on_every_replay(stage):
    seen = []

    def work(prompt):
        seen.append((bool(pause("a?")), str(ask("b?"))))
        pause("c?")

    stage(work).run().reject("no").answer("words").approve()
    assert seen == [(False, "words")] * 2


# --- step -------------------------------------------------------------------------------------------------------------


def test_step_is_called_once(stage):
    called = []

    def fetch(url, tries=1):
        called.append((url, tries))
        return {"status": 200, "items": [1, 2.5, None, True, "é"]}

    def work(prompt):
        found = step(fetch, "https://example.org", tries=2)
        pause("go on?")
        assert found == {"status": 200, "items": [1, 2.5, None, True, "é"]}

    s = stage(work).run().approve()
    assert s.state == "done" and called == [("https://example.org", 2)]
    call = {"function": "test_step_is_called_once.fetch", "args": ["https://example.org"], "kwargs": {"tries": 2}}
    assert s.steps[0]["call"] == call


def test_tuple_result_is_a_list(stage):
    seen = []

    def work(prompt):
        seen.append(step(lambda: (1, (2, 3))))
        pause("go on?")

    stage(work).run().approve()
    assert seen == [[1, [2, 3]], [1, [2, 3]]]


def test_failed_step_raises_on_every_replay(stage):
    called, seen = [], []

    def divide(a, b):
        called.append(1)
        return a / b

    def work(prompt):
        try:
            step(divide, 1, 0)
        except StepFailed as error:
            seen.append(str(error))
        pause("go on?")

    assert stage(work).run().approve().state == "done"
    assert called == [1] and seen == ["ZeroDivisionError: division by zero"] * 2


def test_uncaught_step_failure_fails_the_run(stage):
    s = stage("def workflow(prompt):\n    step(int, 'x')\n").run().answer("stop")
    assert s.reason == "workflow.py: line 2: StepFailed: ValueError: invalid literal for int() with base 10: 'x'"


@pytest.mark.parametrize("value", [{1, 2}, b"bytes", object(), float("nan"), {1: "a"}])
def test_a_step_returns_plain_data(stage, value):
    def odd():
        return value

    def work(prompt):
        with pytest.raises(StepFailed, match="plain data"):
            step(odd)
        pause("go on?")

    assert stage(work).run().approve().state == "done"


def test_steps_do_not_nest(stage):
    def inner():
        return run("coder")

    def work(prompt):
        with pytest.raises(StepFailed, match=r"run\(\) was called outside of a workflow"):
            step(inner)

    assert stage(work).run().state == "done"


def test_waiting_for_a_person_is_refused_in_a_step(stage, desk):
    """No question and no step is recorded: the corrected script continues from there."""
    ran = []

    @requires_approval(desk=desk, wait=0.1)
    def deploy(version):
        ran.append(version)

    @requires_approval(desk=desk, wait=0, key="once")
    def looked(version):
        ran.append(version)

    def old(prompt):
        step(len, "abc")
        with pytest.raises(StepFailed, match="StillWaiting"):
            step(looked, "0.9")  # not waited for
        step(deploy, "1.0")

    def new(prompt):
        step(len, "abc")
        with pytest.raises(StepFailed):
            step(looked, "0.9")
        if pause("Deploy 1.0?", kind="approval"):
            step(deploy.__wrapped__, "1.0")

    s = stage(old, strict=False).run()
    assert "deploy waits for a person, and a step cannot. Ask before it: if pause(" in s.waiting.text
    assert len(s.steps) == 2 and ran == [] and {q["kind"] for q in desk.inbox()} == {"permission", "recovery"}
    s.edit(new).answer("retry")
    assert s.waiting.text == "Deploy 1.0?"
    assert s.approve().state == "done" and ran == ["1.0"]


def test_buffered_steps_are_written_before_an_effect(stage):
    """A step may be seen outside, so whatever it was given must not change any more."""
    times, fetched = [], []

    def work(prompt):
        times.append(now().isoformat())
        step(fetched.append, times[-1])
        pause("go on?")

    s = stage(work).crash_at(2)
    s.run()
    s.approve()
    assert len(fetched) == 2 and len(set(fetched)) == 1 and len(set(times)) == 1


# --- time, chance, words ----------------------------------------------------------------------------------------------


def test_now_random_and_uuid_are_the_same_on_replay(stage):
    seen = []

    def work(prompt):
        seen.append((now(), random(), uuid()))
        pause("one?")
        seen.append((now(), random(), uuid()))
        pause("two?")

    s = stage(work).run()
    s.clock.advance(hours=3)
    s.approve().approve()
    first, second = seen[0], seen[2]
    assert seen == [first, first, second, first, second]
    assert first[0] < second[0] and first[1] != second[1] and first[2] != second[2] and 0 <= first[1] < 1 and len(first[2]) == 36


def test_full_buffer_is_written(stage):
    def work(prompt):
        for number in range(250):
            log(number)
        seen.append([len(s.steps), max(len(e["data"].get("steps", ())) for e in s.desk.history(s.key))])
        return "said"

    seen: list[list[int]] = []
    s = stage(work)
    assert s.run().summary == "said" and s.said[::100] == ["0", "100", "200"]
    assert seen == [[200, 100]] and len(s.steps) == 250


def test_log_is_shown_once(stage):
    def work(prompt):
        log("begins", 1)
        pause("go on?")
        log("ends")

    s = stage(work).run().approve()
    assert s.said == ["begins 1", "ends"]
    assert names(s) == [("1", "log", "completed"), ("2", "pause", "completed"), ("3", "log", "completed")]


@pytest.mark.parametrize("length", ["2d", 172800, timedelta(days=2)])
def test_sleep(stage, length):
    times = []

    def work(prompt):
        times.append(now())
        sleep(length)
        times.append(now())

    s = stage(work).run()
    assert (s.state, s.ended.what, s.task["claim"], s.waiting) == ("deferred", "asleep", None, None)
    s.advance(days=1, hours=23)
    assert s.state == "deferred"
    s.advance(hours=1)
    assert s.state == "done" and times[-1] - times[0] == timedelta(days=2)


def test_a_person_wakes_a_sleeping_run(stage):
    s = stage(lambda prompt: sleep("365d")).run()
    s.desk.wake(s.key)
    assert s.proceed().state == "done"


def test_config_sets_the_wait_options(stage):
    def work(prompt):
        config(human_timeout=3600, on_timeout="stuck", notify_on_waiting=["desktop", "slack"])
        pause("one?")
        config(human_timeout=None, notify_on_waiting=None)
        pause("two?")
        pause("three?", timeout="5d")

    s = stage(work).run()
    q = s.waiting.question
    assert q["timeout_at"] == "2026-09-21T15:13:20.000000Z" and q["metadata"] == {"notify": ["desktop", "slack"]}
    s.approve()
    assert s.waiting.timeout_at is None and s.waiting.question["metadata"] is None
    assert s.approve().waiting.timeout_at == "2026-09-26T14:13:20.000000Z"
    assert s.approve().state == "done"


def test_default_timeout_is_a_day(stage):
    s = stage(lambda prompt: pause("Deploy?")).run()
    assert s.advance(hours=23, minutes=59).state == "human"
    assert s.advance(minutes=1).state == "failed"


def test_stuck_with_and_without_return(stage):
    def with_(prompt):
        return stuck("with")

    def without(prompt):
        stuck("without")
        run("nobody")

    for script, reason in ((with_, "with"), (without, "without")):
        s = stage(script).run()
        assert (s.state, s.failure, s.reason) == ("failed", "stuck", reason)
    assert stage(lambda prompt: stuck()).run().reason == "the script gave no reason"


@pytest.mark.parametrize("call", [lambda: pause("Deploy?", seat={"folder": "x"}), lambda: ask("Which?", hold=True)])
def test_question_options_that_a_script_may_not_set(stage, call):
    s = stage(lambda prompt: call(), {}).run("x")
    assert "takes no" in s.waiting.text and s.answer("no").state == "failed"

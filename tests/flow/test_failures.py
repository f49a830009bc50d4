"""Failures: recorded once, reported to a person, and tried again or ended."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from contextlib import suppress
from enum import Enum, IntEnum

import pytest

from yourturn.core.errors import Invalid
from yourturn.flow import StepFailed, parallel, pause, run, step, stuck
from yourturn.flow.engine import SWALLOWED
from yourturn.flow.script_thread import ROUNDS
from yourturn.testing import done

DONE: list[str] = []


@pytest.fixture(autouse=True)
def nothing_done():
    DONE.clear()


def do(what, value=None):
    DONE.append(what)
    return what if value is None else value


# --- results ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["x" * 1_100_000, {"a": ["y" * 1_100_000]}], ids=["text", "data"])
def test_a_result_that_cannot_be_recorded_is_a_recorded_failure(stage, value):
    def work(prompt):
        with pytest.raises(StepFailed, match="cannot be recorded"):
            step(big)
        for n in range(3):
            pause(f"{n}?")

    def big():
        return do("big", value)

    s = stage(work).run().approve().approve().approve()
    assert s.state == "done" and DONE == ["big"] and [x["index"] for x in s.steps] == ["1", "2", "3", "4"]


@pytest.mark.parametrize("words", ["a \x00 b", "lone \ud800", "x" * 2_000_000])
def test_an_error_that_cannot_be_recorded_as_it_is(stage, words):
    def fails():
        DONE.append("once")
        raise ValueError(words)

    def work(prompt):
        with pytest.raises(StepFailed) as caught:
            step(fails)
        pause("Go on?")
        return caught.value.type

    s = stage(work).run().approve()
    assert s.summary == "ValueError" and DONE == ["once"] and len(json.dumps(s.steps[0]["result"])) < 30_000


class Color(str, Enum):  # noqa: UP042
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Odd(dict):
    pass


def test_values_are_the_same_at_first_and_on_replay(stage):
    """Types, and the order of keys."""
    seen = []

    def work(prompt):
        found = step(lambda: {"z": Color.RED, "a": Level.HIGH, "m": Odd(b=(1, True), a=1.0)})
        seen.append([type(found), [type(found[k]) for k in found], type(found["m"]), list(found["m"]), repr(found)])
        pause("Go on?")

    assert stage(work).run().approve().state == "done"
    assert seen[0] == seen[1] and seen[0][1] == [int, dict, str]
    assert seen[0][4] == "{'a': 3, 'm': {'a': 1.0, 'b': [1, True]}, 'z': 'red'}"


def test_signals_are_the_same_at_first_and_on_replay(stage):
    seen = []

    def work(prompt):
        seen.append(list(run("coder")))
        pause("Go on?")

    assert stage(work, {"coder": [done("ok", zebra=1, apple=2)]}).run().approve().state == "done"
    assert seen[0] == seen[1]


def test_an_async_function_is_no_step(stage):
    async def fetch():
        return 1

    def work(prompt):
        with pytest.raises(Invalid, match="fetch is async"):
            step(fetch)
        return str(step(lambda: asyncio.run(fetch())))

    assert stage(work).run().summary == "1"


def test_another_thread_is_not_the_script(stage):
    """Also one that was given the script's context."""
    from yourturn.core.errors import Usage

    def work(prompt):
        with pytest.raises(Usage, match="outside of a workflow"):
            asyncio.run(elsewhere())
        return "ended"

    async def elsewhere():
        await asyncio.to_thread(pause, "Go on?")

    assert stage(work).run().summary == "ended"


# --- interrupts and loops -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_interrupt_in_a_step_is_a_recorded_failure(stage, how):
    def interrupted():
        DONE.append("once")
        raise how

    s = stage(lambda prompt: step(interrupted)).run()
    assert DONE == ["once"] and s.waiting.question["reason"] == "run_failed" and how.__name__ in s.waiting.text
    assert s.answer("retry").state == "human" and DONE == ["once", "once"], "a person said so"


def loop(prompt):
    while True:
        try:
            pause("ok?")
            return "ended"
        except:  # noqa: E722
            continue


def nested(prompt):
    while True:
        try:
            while True:
                try:
                    pause("ok?")
                    return "ended"
                except:  # noqa: E722
                    pass
        except:  # noqa: E722
            pass


def branch(prompt):
    return parallel([lambda: loop(prompt), lambda: step(do, "beside")])[0]


@pytest.mark.parametrize("script", [loop, nested, branch])
def test_loop_that_catches_the_suspension_is_abandoned(stage, script):
    before = threading.active_count()
    s = stage(script).run()
    assert s.state == "human" and s.waiting.text == "ok?" and s.task["claim"] is None
    assert s.notes == [f"{script.__name__}.py {SWALLOWED}"]
    assert threading.active_count() - before <= 2, "what is left of it sits still"
    spent = time.process_time()
    s.approve()
    assert s.state == "done" and s.summary == "ended" and time.process_time() - spent < 5


def gives_up(prompt):
    while True:
        try:
            return stuck("no way")
        except:  # noqa: E722
            continue


def gives_up_in_a_branch(prompt):
    return parallel([lambda: gives_up(prompt), lambda: step(do, "beside")])


@pytest.mark.parametrize("script", [gives_up, gives_up_in_a_branch])
def test_loop_that_catches_stuck_is_abandoned(stage, script):
    s = stage(script).run()
    assert (s.state, s.failure, s.reason) == ("failed", "stuck", "no way")
    assert s.notes == [f"{script.__name__}.py {SWALLOWED}"]


def test_caught_exceptions_are_counted(stage):
    rounds = []

    def work(prompt):
        for _ in range(3 * ROUNDS):
            with suppress(BaseException):
                pause("ok?")
            rounds.append(1)

    s = stage(work).run()
    assert s.state == "human" and len(rounds) == ROUNDS + 1


# --- a failed run asks --------------------------------------------------------------------------------------------------


def fetch(url):
    """Goes wrong the first time."""
    DONE.append(url)
    return deeper(url) if DONE.count(url) == 1 else "fetched"


def deeper(url):
    raise ConnectionError(f"no route to {url}")


def fetching(prompt):
    step(do, "before")
    return step(fetch, "there")


def test_a_failed_run_asks_and_tries_again_from_the_call_that_failed(stage):
    s = stage(fetching).run()
    q = s.waiting.question
    line = fetching.__code__.co_firstlineno + 2
    assert (q["kind"], q["reason"], q["step"], s.state, s.task["claim"]) == ("recovery", "run_failed", "2", "human", None)
    assert s.waiting.text == (
        f"PROJ-1 failed. fetching.py: line {line}: StepFailed: ConnectionError: no route to there\nHow should it go on?"
    )
    assert s.waiting.options == ["retry", "from-1", "from-2", "stop"] and s.waiting.timeout_at is None
    assert [x["id"] for x in s.desk.inbox()] == [q["id"]]
    s.answer("retry")
    assert s.summary == "fetched" and DONE == ["before", "there", "there"], "what was done before is not done again"


def test_repeated_failure_is_counted(stage):
    def work(prompt):
        step(do, "again")
        raise OSError("disk full")

    s = stage(work).run().answer("retry")
    assert s.waiting.text.startswith("PROJ-1 failed again (2 times now). work.py: line ") and DONE == ["again"]


@pytest.mark.parametrize("say", [lambda s: s.answer("stop"), lambda s: s.answer("no"), lambda s: s.reject("not worth it")])
def test_no_ends_the_run_with_its_reason(stage, say):
    s = say(stage(fetching).run())
    assert (s.state, s.failure) == ("failed", "error") and "ConnectionError: no route to there" in s.reason
    assert s.reason.endswith(")") == ("not worth it" in s.reason)


def test_stopped_run_can_be_resumed(stage):
    s = stage("def workflow(prompt):\n    step(len, 'a')\n    oops()\n").run().answer("stop")
    s.edit("def workflow(prompt):\n    step(len, 'a')\n    return 'mended'\n").rewind()
    assert s.summary == "mended"


def test_fixed_script_continues_where_it_failed(stage):
    s = stage("def workflow(prompt):\n    step(len, 'a')\n    oops()\n").run()
    assert s.edit("def workflow(prompt):\n    step(len, 'a')\n    return 'mended'\n").answer("retry").summary == "mended"


def test_back_to_a_step(stage):
    s = stage(fetching).run().answer("from-1")
    assert s.summary == "fetched" and DONE == ["before", "there", "before", "there"]


def test_a_wrapped_failure_is_still_that_steps(stage):
    def work(prompt):
        try:
            return step(fetch, "there")
        except StepFailed as error:
            raise RuntimeError("could not fetch") from error

    s = stage(work).run().answer("retry")
    assert s.summary == "fetched" and DONE == ["there", "there"]


def test_a_branch_that_failed_is_tried_again_and_the_others_are_not(stage):
    def work(prompt):
        return parallel([lambda: step(do, "beside"), lambda: (step(do, "first"), step(fetch, "there"))])[1][1]

    s = stage(work).run()
    assert s.waiting.question["context"]["step"] == "1.1.1"
    s.answer("retry")
    assert s.summary == "fetched" and sorted(DONE) == ["beside", "first", "there", "there"]


def test_stuck_asks_no_question(stage):
    from yourturn.flow import stuck

    s = stage(lambda prompt: stuck("enough")).run()
    assert (s.state, s.failure, s.waiting) == ("failed", "stuck", None)


def test_a_lua_run_asks_too(stage):
    body = 'function workflow(p)\n  local function fails() error("no network") end\n  step(type, 1)\n  return step(fails)\nend\n'
    s = stage(body, file="workflow.lua").run()
    assert s.waiting.question["reason"] == "run_failed" and s.waiting.question["context"]["step"] == "2"
    s.edit(body.replace('error("no network")', 'return "ok"')).answer("retry")
    assert s.summary == "ok"


# --- what is told -------------------------------------------------------------------------------------------------------


def test_a_failure_keeps_its_type_its_place_and_how_it_came_there(stage):
    s = stage(fetching).run()
    result = s.steps[1]["result"]
    place = f"{__file__.rpartition('/')[2]}:{deeper.__code__.co_firstlineno + 1} in deeper"
    assert result["error"] == "ConnectionError: no route to there" and result["type"] == "ConnectionError"
    assert result["place"].endswith(place)
    assert "in fetch" in result["traceback"] and 'raise ConnectionError(f"no route' in result["traceback"]
    assert "yourturn/flow" not in result["traceback"], "our own lines say nothing"
    told = s.waiting.question["context"]
    assert (told["type"], told["place"]) == ("ConnectionError", result["place"])
    assert result["traceback"] in told["traceback"] and "in fetching" in told["traceback"]
    assert s.error == told["traceback"]


def test_error_text_is_bounded(stage):
    def endless(n):
        return endless(n + 1)

    s = stage(lambda prompt: step(endless, 0)).run()
    assert len(s.steps[0]["result"]["traceback"]) < 10_000 and len(s.error) < 20_000


def test_caught_failure_has_type_place_and_traceback(stage):
    seen = []

    def work(prompt):
        try:
            step(deeper, "here")
        except StepFailed as error:
            seen.append((str(error), error.type, error.step, "in deeper" in error.traceback, error.place))
        pause("Go on?")

    assert stage(work).run().approve().state == "done"
    assert seen[0] == seen[1] and seen[0][:4] == ("ConnectionError: no route to here", "ConnectionError", "1", True)


def test_signal_can_be_a_prompt(stage):
    s = stage(lambda prompt: run("reviewer", run("coder")), {"coder": [done("built it")], "reviewer": [done("fine")]}).run()
    assert s.calls[-1].prompt == "built it" and s.state == "done"


def test_failed_step_has_no_check_mark(stage):
    from yourturn.display import runs

    def work(prompt):
        with pytest.raises(StepFailed):
            step(deeper, "here")
        run("coder")
        step(do, "fine")
        pause("Go on?")

    s = stage(work, {"coder": [{"status": "FAILED", "reason": "tests are red"}]}).run()
    lines = runs.steps(s.task)
    assert [line.split()[2] for line in lines] == ["✗", "✗", "✓", "⏸"] and "ConnectionError: no route to here (" in lines[0]

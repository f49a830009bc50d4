"""Doubtful steps after a change of the script: no verdict and no result is assigned to another call."""

from __future__ import annotations

import pytest

from yourturn.flow import log, parallel, pause, sleep, step

DONE: list[str] = []


@pytest.fixture(autouse=True)
def nothing_done():
    DONE.clear()


def do(what):
    DONE.append(what)
    return what


HELP = "from tests.flow.test_changed_calls import do\n\n\n"
ONE = HELP + 'def gate():\n    return pause("Approve?")\n\n\n'
WAYS = {
    "a function": ONE,
    "a constant": HELP + 'TEXT = "Approve?"\n\n\ndef gate():\n    return pause(TEXT)\n\n\n',
    "a loop": HELP + 'def gate():\n    for what in ["Approve"]:\n        return pause(what + "?")\n\n\n',
    "an f-string": HELP + 'WHAT = "Approve"\n\n\ndef gate():\n    return pause(f"{WHAT}?")\n\n\n',
}
OLD = 'def workflow(prompt):\n    step(do, "plan")\n    gate()\n    pause("Release?")\n'
NEW = (
    'def workflow(prompt):\n    step(do, "show migration")\n    if gate():\n        step(do, "migrate")\n'
    '    step(do, "plan")\n    gate()\n    pause("Release?")\n'
)
LUA_OLD = """
local function gate() return pause("Approve?") end
function plan() return "plan" end
function workflow(prompt) step(plan); gate(); pause("Release?") end
"""
LUA_NEW = """
local function gate() return pause("Approve?") end
function plan() return "plan" end
function show() return "show" end
function migrate() return "migrate" end
function workflow(prompt)
  step(show)
  if gate().continue then step(migrate) end
  step(plan); gate(); pause("Release?")
end
"""


def functions(s):
    return [x["call"]["function"] for x in s.steps if x["name"] == "step" and not x["spare"]]


def said(s):
    return [x["result"]["text"] for x in s.steps if x["name"] == "pause" and not x["spare"] and x["result"]]


@pytest.mark.parametrize("way", WAYS)
def test_question_in_a_loop_is_doubtful(stage, way):
    s = stage(WAYS[way] + OLD).run().approve("the plan is fine")
    s.edit(WAYS[way] + NEW).approve("release ok")
    assert s.waiting.kind == "recovery"
    s.answer("continue")
    assert s.waiting.text == "Approve?" and DONE == ["plan", "show migration"], "no migration was approved"
    s.reject("no migration")
    assert s.state == "done" and DONE == ["plan", "show migration"]
    assert said(s) == ["no migration", "the plan is fine", "release ok"]


def test_a_question_that_is_asked_in_a_module(stage, tmp_path):
    file = tmp_path / "flow.py"
    (tmp_path / "gates.py").write_text('def gate(ask):\n    return ask("Approve?")\n')
    body = "from gates import gate as asks\n\n\ndef gate():\n    return asks(pause)\n\n\n"
    file.write_text(HELP + body + OLD)
    s = stage(file).run().approve("the plan is fine")
    file.write_text(HELP + body + NEW)
    s.approve("release ok").answer("continue")
    assert s.waiting.text == "Approve?" and DONE == ["plan", "show migration"]


def test_doubtful_question_in_lua(stage):
    s = stage(LUA_OLD, file="flow.lua").run().approve("the plan is fine")
    s.edit(LUA_NEW).approve("release ok").answer("continue")
    assert s.waiting.text == "Approve?" and functions(s) == ["show"]


def test_question_after_another_effect_is_asked_again(stage):
    def old(prompt):
        step(do, "docs")
        pause("Approve?")
        pause("Release?")

    def new(prompt):
        if step(do, "show table") and pause("Approve?"):
            step(do, "drop table")
        pause("Release?")

    s = stage(old).run().approve("the docs are fine")
    s.edit(new).approve().answer("continue")
    assert s.waiting.text == "Approve?" and DONE == ["docs", "show table"]


def test_a_branch_of_another_parallel_asks_again(stage):
    def old(prompt):
        step(do, "plan")
        parallel([lambda: pause("Approve?"), lambda: step(do, "beside")])
        pause("Release?")

    def new(prompt):
        step(do, "show migration")
        parallel([lambda: pause("Approve?") and step(do, "migrate"), lambda: step(do, "other")])
        step(do, "plan")
        parallel([lambda: pause("Approve?"), lambda: step(do, "beside")])
        pause("Release?")

    s = stage(old).run().approve("the plan is fine")
    s.edit(new).approve().answer("continue")
    assert s.waiting.text == "Approve?" and "migrate" not in DONE


# --- everything fits, and may still be another question's -----------------------------------------------------------------


def two(prompt):
    pause("Approve?")  # the architecture
    pause("Approve?")  # the tests


def shifted(prompt):
    pause("Approve?")  # the tests
    if pause("Approve?"):  # what is new
        step(do, "deploy")


def test_deleted_and_added_checkpoint_is_doubtful(stage):
    s = stage(two).run().approve("architecture")
    s.edit(shifted).approve("tests")
    assert s.waiting.kind == "recovery" and DONE == []
    assert s.waiting.text == (
        "two.py was changed while PROJ-1 waited.\n"
        "Steps 1 and 2 are all pause('Approve?'): an answer may belong to another one of them now. How should it go on?"
    )
    assert s.waiting.options == ["continue", "keep", "retry", "from-1", "stop"]
    s.answer("continue")
    assert s.waiting.text == "Approve?" and s.waiting.step == "1" and DONE == []
    s.approve("tests, again")
    assert s.waiting.text == "Approve?" and s.waiting.step == "2" and DONE == []
    assert s.reject("do not deploy").state == "done" and DONE == []


def test_keep_confirms_all_answers(stage):
    s = stage(two).run().approve("architecture")
    s.edit(shifted).approve("tests").answer("keep")
    assert s.state == "done" and DONE == ["deploy"] and s.task["journal"] == 0
    assert [q["reason"] for q in s.task["questions"]].count("code_changed") == 1


def test_keep_covers_only_one_change(stage):
    s = stage(two).run().approve("architecture")
    s.edit(shifted).approve("tests")

    def again(prompt):
        pause("Approve?")
        pause("Approve?")
        step(do, "deploy")

    s.edit(again).answer("keep")
    assert s.waiting.kind == "recovery" and DONE == []


def test_retry_with_the_old_script_asks_no_further_question(stage):
    s = stage(two).run().approve("architecture")
    s.edit(shifted).approve("tests").edit(two).answer("retry")
    assert s.state == "done" and len(s.task["questions"]) == 3


def test_checkpoint_inserted_before_an_answered_one(stage):
    def old(prompt):
        pause("Approve?")  # the tests
        pause("Release?")

    def new(prompt):
        if pause("Approve?"):  # the migration
            pause("Approve?")  # the tests
        pause("Release?")

    s = stage(old).run().approve("tests")
    s.edit(new).approve("release")
    assert "Steps 1 and 2 are all pause('Approve?')" in s.waiting.text
    s.answer("continue")
    assert s.waiting.text == "Approve?" and s.waiting.step == "1", "the answer has two places: asked again"


@pytest.mark.parametrize("words", ["", "said"])
def test_checkpoint_inserted_before_an_open_one(stage, words):
    def old(prompt):
        step(do, "plan")
        pause("Approve?")  # the plan

    def new(prompt):
        step(do, "plan")
        if pause("Approve?"):  # the migration
            if words:
                log(words)
            if pause("Approve?"):  # the plan
                step(do, "migrate")

    s = stage(old).run()
    s.edit(new).approve("the plan is fine")
    assert f"Steps 2 and {4 if words else 3} are all pause('Approve?')" in s.waiting.text
    s.answer("continue")
    assert s.waiting.text == "Approve?" and s.waiting.step == "2"
    assert s.reject("no migration").state == "done" and DONE == ["plan"]


def test_the_same_question_once_more(stage):
    """Was it written before the one that was answered, or behind it?"""

    def old(prompt):
        step(do, "plan")
        pause("Approve?")
        sleep(60)

    def new(prompt):
        step(do, "plan")
        if pause("Approve?"):
            pause("Approve?")

    s = stage(old).run().approve()
    s.edit(new).advance(minutes=2)
    assert "Steps 2 and 3 are all pause('Approve?')" in s.waiting.text


def test_two_equal_questions_after_the_same_call_are_asked_again(stage):
    def old(prompt):
        step(do, "a")
        pause("Approve?")
        step(do, "b")
        pause("Approve?")
        pause("Release?")

    def new(prompt):
        step(do, "new")
        step(do, "a")
        pause("Approve?")

    s = stage(old).run().approve("a").approve("b")
    s.edit(new).approve().answer("continue")
    assert s.waiting.text == "Approve?" and s.waiting.step == "3"


def test_doubt_is_reported_before_a_branch_has_effects(stage):
    def new(prompt):
        pause("Approve?")
        if pause("Approve?"):
            parallel([lambda: step(do, "deploy"), lambda: step(do, "tell")])

    s = stage(two).run().approve()
    s.edit(new).approve()
    assert s.waiting.kind == "recovery" and DONE == []


def test_equal_questions_after_different_effects_are_distinct(stage):
    def old(prompt):
        for what in ("plan", "build"):
            step(do, what)
            pause("Approve?")

    def new(prompt):
        for what in ("plan", "build"):
            step(do, what)
            pause("Approve?")
        step(do, "ship")

    s = stage(old).run().approve()
    assert s.edit(new).approve().state == "done" and DONE == ["plan", "build", "ship"]


def test_a_comment_is_no_change(stage):
    body = 'def workflow(prompt):\n    pause("Approve?")\n    pause("Approve?")\n    return "ended"\n'
    s = stage(body).run().approve()
    assert s.edit(body.replace("    return", "    # done\n    return ")).approve().summary == "ended"


# --- functions without a name ---------------------------------------------------------------------------------------------


def lines(*calls, end=""):
    """A script that makes these calls, then asks."""
    body = "".join(f"    {call}\n" for call in (*calls, 'pause("Go on?")', *([end] if end else [])))
    return f"from functools import partial\n{HELP}def workflow(prompt):\n{body}"


PLAN, CHARGE = 'x = step(lambda: do("plan"))', 'x = step(lambda: do("CHARGE"))'


def test_result_of_a_lambda_is_not_reused_for_another(stage):
    s = stage(lines(PLAN)).run()
    s.edit(lines(CHARGE, PLAN, end="return x")).approve()
    assert "Step 1 is step(workflow.lambda), a function without a name: it may be another one now." in s.waiting.text
    s.answer("continue")
    assert DONE == ["plan", "CHARGE", "plan"] and s.waiting.text == "Go on?"
    assert s.approve().summary == "plan"


def test_result_of_a_lambda_is_reused_only_in_place(stage):
    s = stage(lines('step(do, "a")', PLAN)).run()
    s.edit(lines('step(do, "b")', CHARGE, end="return x")).approve().answer("continue").approve()
    assert s.summary == "CHARGE" and DONE == ["a", "plan", "b", "CHARGE"]


def test_lambda_is_doubtful_even_if_all_calls_match(stage):
    s = stage(lines(PLAN)).run()
    s.edit(lines(CHARGE, end="return x")).approve()
    assert s.waiting.kind == "recovery" and DONE == ["plan"]
    assert s.answer("continue").approve().summary == "CHARGE"


@pytest.mark.parametrize("word", ["keep", "continue"])
def test_swapped_lambdas_are_doubtful(stage, word):
    a, b, end = 'a = step(lambda: do("alice"))', 'b = step(lambda: do("bob"))', 'return f"{a} {b}"'
    s = stage(lines(a, b, end=end)).run()
    s.edit(lines(b, a, end=end)).approve()
    assert "Steps 1 and 2 are step(workflow.lambda), functions without a name" in s.waiting.text
    s.answer(word)
    if word == "continue":
        assert s.approve().summary == "alice bob" and DONE == ["alice", "bob", "bob", "alice"]
    else:
        assert s.summary == "bob alice" and DONE == ["alice", "bob"], "as the person said"


def test_partial_is_anonymous(stage):
    s = stage(lines('step(partial(do, "plan"))')).run()
    s.edit(lines('step(partial(do, "CHARGE"))')).approve()
    assert s.waiting.kind == "recovery" and "Step 1 is step(partial)" in s.waiting.text


def test_anonymous_functions_in_lua(stage):
    body = 'function workflow(prompt)\n  local x = step(function() return "%s" end)\n  pause("Go on?")\n  return x\nend\n'
    s = stage(body % "plan", file="flow.lua").run()
    s.edit(body % "CHARGE").approve()
    assert "Step 1 is step(function), a function without a name" in s.waiting.text
    assert s.answer("continue").approve().summary == "CHARGE"


def test_keep_after_a_lambda(stage):
    s = stage(lines(PLAN)).run()
    s.edit(lines(PLAN, 'step(do, "more")')).approve()
    assert "Step 2 was pause('Go on?'), and now is step(do, 'more').\nStep 1 is step(workflow.lambda)" in s.waiting.text
    assert s.answer("keep").waiting.text == "Go on?" and DONE == ["plan", "more"]


def test_a_function_with_a_name_is_not_in_doubt(stage):
    s = stage(lines('step(do, "plan")')).run()
    assert s.edit(lines('step(do, "plan")', end='step(do, "more")')).approve().state == "done" and DONE == ["plan", "more"]

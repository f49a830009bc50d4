"""Alignment after a change of the script: calls are matched in order, and no answer is moved to another question."""

from __future__ import annotations

import pytest

from yourturn.flow import ask, log, now, parallel, pause, random, run, step
from yourturn.testing import done

DONE: list[str] = []


@pytest.fixture(autouse=True)
def nothing_done():
    DONE.clear()


def do(what):
    DONE.append(what)
    return f"{what} {len(DONE)}"


def asked(s):
    return [q["text"] for q in s.task["questions"] if q["reason"] is None]


def test_approval_is_not_moved_to_another_checkpoint(stage):
    def old(prompt):
        pause("Approve?")
        pause("Approve?")

    def new(prompt):
        step(do, "plan")
        if pause("Approve?"):
            step(do, "deploy")
        return "ended"

    s = stage(old).run().approve("the architecture is fine")
    s.edit(new).reject("do not deploy")
    assert s.waiting.kind == "recovery"
    s.answer("continue")
    assert s.waiting.text == "Approve?" and DONE == ["plan"], "asked again"
    assert s.reject("no").summary == "ended" and DONE == ["plan"]


def test_approval_is_not_moved_if_the_first_checkpoint_is_deleted(stage):
    """The answer that was kept may be the other one's: from there on it is asked again."""

    def old(prompt):
        step(do, "plan")
        pause("Approve?")
        pause("Approve?")

    def new(prompt):
        step(do, "plan")
        if pause("Approve?"):
            step(do, "deploy")

    s = stage(old).run().approve("the architecture is fine")
    s.edit(new).reject("do not deploy")
    assert s.waiting.kind == "recovery" and s.waiting.step == "3"
    s.answer("continue")
    assert s.waiting.text == "Approve?" and DONE == ["plan"]


def test_answer_with_two_possible_places_is_asked_again(stage):
    def old(prompt):
        step(do, "architecture")
        pause("Approve?")
        step(do, "build")
        pause("Release?")

    def new(prompt):
        step(do, "plan")
        pause("Approve?")
        step(do, "architecture")
        pause("Approve?")
        step(do, "build")
        return str(bool(pause("Release?")))

    s = stage(old).run().approve("of the architecture")
    s.edit(new).approve("of the release").answer("continue")
    assert s.waiting.text == "Approve?" and DONE == ["architecture", "build", "plan"], "asked about the plan"
    s.approve("of the plan")
    said = [x["result"]["text"] for x in s.steps if x["name"] == "pause" and not x["spare"]]
    assert s.summary == "True" and said == ["of the plan", "of the architecture", "of the release"]
    assert DONE == ["architecture", "build", "plan"]


def test_results_are_reused_in_order(stage):
    seen = []

    def old(prompt):
        step(do, "tick")
        step(do, "half")
        step(do, "tick")
        pause("Whole?")

    def new(prompt):
        step(do, "half")
        seen.append(step(do, "tick"))
        return str(bool(pause("Whole?")))

    s = stage(old).run()
    s.edit(new).approve().answer("continue")
    assert s.state == "done" and seen[-1] == "tick 3" and DONE == ["tick", "half", "tick"]


def test_swapped_effects_are_not_repeated(stage):
    def old(prompt):
        step(do, "a")
        step(do, "b")
        pause("Go on?")

    def new(prompt):
        x, y = step(do, "b"), step(do, "a")
        pause("Go on?")
        return f"{x}, {y}"

    s = stage(old).run()
    s.edit(new).approve().answer("continue")
    assert s.waiting.text == "Go on?", "it stood behind b, and stands behind a now: asked again"
    assert s.approve().summary == "b 2, a 1" and DONE == ["a", "b"]


def test_branches_are_aligned_with_their_own(stage):
    def old(prompt):
        parallel([lambda: pause("Ok?"), lambda: pause("Ok?")])
        pause("Both?")

    def new(prompt):
        step(do, "first")
        parallel([lambda: pause("Ok?"), lambda: pause("Ok?")])
        pause("Both?")

    s = stage(old).run()
    one, two = s.questions
    s.approve("the left one", to=one.id).reject("the right one", to=two.id)
    s.edit(new).approve("both").answer("continue")
    assert [w.text for w in s.questions] == ["Ok?", "Ok?"], "two places for each: asked again"


# --- what is the same call ----------------------------------------------------------------------------------------------


def test_log_and_now_do_not_change_a_script(stage):
    times = []

    def old(prompt):
        log("begins")
        step(do, "a")
        times.append(now())
        step(do, "b")
        return str(bool(pause("Go on?")))

    def new(prompt):
        first = now()
        step(do, "a")
        log("between")
        log("and more")
        second = now()
        step(do, "b")
        log("after")
        assert first <= second
        times.append(second)
        return str(bool(pause("Go on?")))

    s = stage(old).run()
    s.clock.advance(hours=1)
    s.edit(new).approve()
    assert s.summary == "True" and DONE == ["a", "b"] and len(s.task["questions"]) == 1, "no question about the script was asked"
    assert times[-1] == times[0], "the same time, though it stands elsewhere"
    assert s.said == ["begins"], "what is passed already says nothing"


def test_inserted_now_is_the_same_on_every_replay(stage):
    seen = []

    def old(prompt):
        step(do, "a")
        pause("One?")
        pause("Two?")

    def new(prompt):
        step(do, "a")
        seen.append(now())
        pause("One?")
        pause("Two?")

    s = stage(old).run().approve()
    s.clock.advance(hours=1)
    s.edit(new).rewind(3)
    s.clock.advance(hours=1)
    s.approve()
    assert s.state == "done" and len(seen) == 2 and len(set(seen)) == 1


@pytest.mark.parametrize("more", [{"timeout": "2d"}, {"urgency": "high"}, {"reviewer": "ana"}, {"on_timeout": "remind"}])
def test_wait_options_do_not_change_a_call(stage, more):
    def old(prompt):
        run("coder")
        ask("Which?")
        return pause("Deploy?").message

    def new(prompt):
        run("coder", **more)
        ask("Which?", **more)
        return pause("Deploy?", **more).message

    s = stage(old, {"coder": [done()]}).run().answer("this")
    assert s.edit(new).approve("go").summary == "go" and len(s.task["questions"]) == 2
    s = stage(old, {"coder": [done()]}).run()
    s.edit(new).answer("this")
    assert s.waiting.text == "Deploy?" and s.waiting.kind == "checkpoint"


def test_random_is_a_call_of_its_own(stage):
    s = stage(lambda p: pause("Go on?")).run()
    s.edit(lambda p: (random(), pause("Go on?"))).approve()
    assert s.waiting.kind == "recovery"


def shown(s, index):
    return next(x for x in s.steps if x["index"] == index)


@pytest.mark.parametrize(("old", "new", "words"), [
    ("step(str, 1)", "step(str, 2)", "Step 1 was step(str, 1), and now is step(str, 2)."),
    ("step(len, 'a')", "step(len, 'a', key=1)", "Step 1 was step(len, 'a'), and now is step(len, 'a', key=1)."),
    ("pause('Ok?')", "pause('Ok?', kind='approval')", "Step 1 was pause('Ok?'), and now is pause('Ok?', kind='approval')."),
    ("step(len, 'x' * 100 + 'a')", "step(len, 'x' * 100 + 'b')", "xxxxa'), and now is …"),
])  # fmt: skip
def test_the_question_shows_what_differs(stage, old, new, words):
    body = "def workflow(prompt):\n    {}\n    pause('Go on?')\n"
    s = stage(body.format(old)).run()
    if "pause" in old:
        s.approve()
    s.edit(body.format(new)).approve()
    assert words in s.waiting.text and s.waiting.question["context"]["expected"] != s.waiting.question["context"]["actual"]


def test_unknown_answer_is_reported_and_asked_again(stage):
    s = stage("def workflow(prompt):\n    step(str, 1)\n    pause('Go on?')\n").run()
    s.edit("def workflow(prompt):\n    step(str, 2)\n    pause('Go on?')\n").approve()
    s.answer("yes, please go on with the new code")
    assert s.waiting.text.startswith("“yes, please go on with the new code” was not understood. Choose one of: continue, retry, ")
    assert s.answer("no").state == "failed"

"""Changed scripts of waiting runs: compatible changes continue, others ask a person; no answer is lost."""

from __future__ import annotations

import itertools

import pytest

from yourturn.flow import now, pause, random, run, step, uuid
from yourturn.testing import done, needs_human

BODY = """
def workflow(prompt):
    run("architect", prompt)
    run("coder")
    ok = pause("Deploy?")
    return run("deployer", ok.message).summary
"""
AGENTS = {"architect": [done("drawn")], "coder": [done("built")], "deployer": [done("out")]}


def agents(**more):
    return {name: list(lines) for name, lines in AGENTS.items()} | more


def told(s):
    return [c.agent for c in s.calls]


def test_compatible_change_asks_no_question(stage):
    new = BODY.replace('return run("deployer"', 'log("now with tests")\n    run("tester")\n    return run("deployer"')
    s = stage(BODY, agents(tester=[done("green")])).run("Add login")
    assert s.desk.program(s.key)["body"] == BODY
    s.edit(new).approve("go")
    assert s.state == "done" and s.summary == "out" and told(s) == ["architect", "coder", "tester", "deployer"]
    assert s.desk.program(s.key)["body"] == new and s.task["journal"] == 0 and len(s.task["questions"]) == 1


def test_a_compatible_change_is_recorded_before_it_waits_again(stage):
    new = BODY.replace("    return", '    pause("Really?")\n    return')
    s = stage(BODY, agents()).run().edit(new).approve("go")
    assert s.waiting.text == "Really?" and s.desk.program(s.key)["body"] == new
    assert s.edit(None).approve().state == "done"


def test_unexecuted_change_is_not_recorded(stage):
    new = BODY.replace('run("coder")', 'run("other")')
    s = stage(BODY, agents()).run().edit(new).approve("go")
    assert s.waiting.kind == "recovery" and s.desk.program(s.key)["body"] == BODY
    s.edit(BODY).answer("retry")
    assert s.state == "done"


def changed(stage, new, more=None, **fields):
    s = stage(BODY, agents(**(more or {})), **fields).run("Add login")
    return s.edit(new).approve("go ahead")


INSERTED = BODY.replace('    run("coder")\n', '    run("tester")\n    run("coder")\n')


def test_an_incompatible_change_asks_and_shows_both_calls(stage):
    s = changed(stage, INSERTED, strict=False)
    w = s.waiting
    assert w.kind == "recovery" and w.text == (
        "workflow.py was changed while PROJ-1 waited.\n"
        "Step 2 was run('coder'), and now is run('tester'). How should it go on?"
    )  # fmt: skip
    assert w.options == ["continue", "retry", "from-1", "from-2", "stop"] and w.timeout_at is None
    assert w.question["context"] == {"expected": "run('coder')", "actual": "run('tester')", "step": "2"}
    assert s.task["questions"][0]["response"]["text"] == "go ahead", "the answer is kept"
    assert s.task["claim"] is None and told(s) == ["architect", "coder"]
    assert s.advance(days=100).waiting.kind == "recovery"


@pytest.mark.parametrize("word", ["continue", "accept-new-code", "Continue"])
def test_continue_reuses_equal_calls(stage, word):
    s = changed(stage, INSERTED, {"tester": [done("green")]}).answer(word)
    assert s.state == "done" and told(s) == ["architect", "coder", "tester", "deployer"], "coder was not run again"
    assert s.calls[-1].prompt == "go ahead", "the kept answer was used"
    assert [(x["index"], x["agent"]) for x in s.steps if not x["spare"]] == [
        ("1", "architect"), ("2", "tester"), ("3", "coder"), ("4", "_checkpoint"), ("5", "deployer"),
    ]  # fmt: skip
    assert s.task["journal"] == 1 and s.desk.program(s.key)["body"] == INSERTED


@pytest.mark.parametrize("calls", [["coder", "coder", "?"], ["coder", "?", "coder"]], ids=["at once", "after a wait"])
def test_superseded_step_is_reused_once(stage, calls):
    lines = [f"    run({name!r})\n" if name != "?" else '    pause("Sure?")\n' for name in ["tester", *calls]]
    new, agents_ = (
        BODY.replace('    run("coder")\n', "".join(lines)),
        {"tester": [done()], "coder": [done("built"), done("again")]},
    )
    s = changed(stage, new, agents_).answer("continue")
    assert s.waiting.text == "Sure?" and told(s)[:3] == ["architect", "coder", "tester"]
    s.approve()
    assert s.waiting.text == "Deploy?", "behind another call: asked again"
    assert s.approve().state == "done" and told(s)[3:] == ["coder", "deployer"]


def test_waiting_agent_is_reused_with_session_and_answer(stage):
    body = 'def workflow(prompt):\n    run("a")\n    return run("coder").summary\n'
    s = stage(body, {"a": [done()], "b": [done()], "coder": [needs_human("JWT?"), done("built")]}).run()
    s.edit(body.replace('run("a")', 'run("b")')).answer("JWT")
    assert s.waiting.kind == "recovery" and s.waiting.step == "1"
    s.answer("continue")
    assert s.state == "done" and s.summary == "built" and told(s) == ["a", "coder", "b", "coder"]
    assert s.calls[-1].session == "coder-1" and s.calls[-1].answer == "JWT" and s.calls[-1].resumed


def test_parallel_is_reused_branch_by_branch(stage):
    old = 'def workflow(prompt):\n    parallel([lambda: run("a"), lambda: run("b")])\n    return pause("Deploy?").message'
    new = old.replace("    parallel", '    run("tester")\n    parallel').replace('run("b")', 'run("b", "more")')
    s = stage(old, {"a": [done()], "b": [done(), needs_human("Which?"), done()], "tester": [done()]}).run()
    s.edit(new).approve("go").answer("continue")
    assert s.waiting.text == "Which?" and told(s).count("a") == 1
    assert [(x["index"], x["status"]) for x in s.steps if not x["spare"]][1:] == [
        ("2", "running"), ("2.0.0", "completed"), ("2.1.0", "waiting"),
    ]  # fmt: skip
    assert s.answer("this").summary == "go"


def test_script_changed_twice(stage):
    """What was taken over once can be taken over again, with the questions that it had in between."""
    body = 'def workflow(prompt):\n    run("a")\n    return run("coder").summary\n'
    lines = {"a": [done()], "b": [done()], "c": [done()], "coder": [needs_human("JWT?"), needs_human("HS256?"), done("built")]}
    s = stage(body, lines).run()
    s.edit(body.replace('run("a")', 'run("b")')).answer("JWT").answer("continue")
    assert s.waiting.text == "HS256?" and told(s) == ["a", "coder", "b", "coder"]
    s.edit(body.replace('run("a")', 'run("c")')).answer("yes")
    assert s.waiting.kind == "recovery"
    s.answer("continue")
    assert s.summary == "built" and told(s) == ["a", "coder", "b", "coder", "c", "coder"]
    assert s.calls[-1].answer == "yes" and {c.session for c in s.calls if c.agent == "coder"} == {"coder-1"}


@pytest.mark.parametrize("word", ["from-2", "from 2", "2", "step 2", "back to step 2", "From 2"])
def test_rewind_to_a_step_drops_later_steps(stage, word):
    s = changed(stage, INSERTED, {"tester": [done()], "coder": [done("built"), done("rebuilt")]}).answer(word)
    assert s.waiting.text == "Deploy?" and told(s) == ["architect", "coder", "tester", "coder"], "asked again: nothing was kept"
    assert s.approve("again").state == "done" and s.calls[-1].prompt == "again"


def test_rewind_to_the_first_step(stage):
    lines = {"tester": [done()], "coder": [done(), done()], "architect": [done(), done()]}
    s = changed(stage, INSERTED, lines).answer("from-1")
    assert s.waiting.text == "Deploy?" and told(s)[2:] == ["architect", "tester", "coder"]


def test_retry_with_the_old_script(stage):
    """The answer to the recovery question is not taken for the answer to the step that it is about."""
    changed_ = BODY.replace('pause("Deploy?")', 'pause("Ship?")').replace("return run", "return ok and run")
    s = stage(BODY, {"architect": "a", "coder": "c", "deployer": "out"}).run().edit(changed_).reject("not today")
    assert s.waiting.kind == "recovery" and s.waiting.step == "3"
    s.edit(BODY).answer("retry")
    assert s.state == "done" and s.calls[-1].prompt == "not today", "the pause got its own answer"


def test_retry_while_nothing_has_changed_asks_again(stage):
    s = changed(stage, INSERTED, strict=False).answer("retry")
    assert s.waiting.kind == "recovery" and s.waiting.id == "Q3"
    assert s.answer("whatever you like").waiting.id == "Q4"


@pytest.mark.parametrize("say", [lambda s: s.answer("stop"), lambda s: s.reject("forget it"), lambda s: s.stop("forget it")])
def test_stop(stage, say):
    s = say(changed(stage, INSERTED, strict=False))
    assert (s.state, s.failure) == ("failed", "stuck") and s.reason in ("stopped by human:ana", "forget it")


def test_resumed_by_command(stage):
    s = changed(stage, INSERTED, {"tester": [done()], "coder": [done(), done()]}).rewind(2)
    assert s.waiting.text == "Deploy?" and s.approve().state == "done"


def test_the_script_ends_earlier(stage):
    s = changed(stage, 'def workflow(prompt):\n    run("architect", prompt)\n', strict=False)
    assert "Step 2 was run('coder'), and now is the end of the script" in s.waiting.text
    assert s.answer("continue").state == "done"


def test_longer_script_after_the_end(stage):
    s = stage('def workflow(prompt):\n    run("a")\n', {"a": [done()], "b": [done()]}, strict=False).run()
    assert s.state == "done"
    with pytest.raises(Exception, match="Cannot"):
        s.rewind()


def test_other_arguments_are_another_call(stage):
    new = BODY.replace('run("architect", prompt)', 'run("architect", prompt + "!")')
    assert "Step 1 was run('architect', 'Add login'), and now is run('architect', 'Add login!')" in changed(
        stage, new, strict=False
    ).waiting.text  # fmt: skip


def test_long_call_is_cut(stage):
    new = BODY.replace("prompt)\n    run", "'x' * 1000)\n    run")
    s = changed(stage, new, strict=False)
    assert len(s.waiting.text) < 300


# --- not the same twice -------------------------------------------------------------------------------------------------


def test_non_deterministic_script_gets_a_hint(stage):
    counter = itertools.count()

    def work(prompt):
        run("coder", f"try {next(counter)}")
        pause("ok?")

    s = stage(work, {"coder": "ok"}).run().approve()
    assert s.waiting.kind == "recovery" and s.waiting.text == (
        "work.py does not call the same every time. Use now(), random(), uuid() and step() for what changes.\n"
        "Step 1 was run('coder', 'try 0'), and now is run('coder', 'try 1'). How should it go on?"
    )  # fmt: skip


def test_now_random_and_uuid_make_a_script_deterministic(stage):
    counter = itertools.count()

    def work(prompt):
        run("coder", f"{step(lambda: next(counter))} {now()} {random()}")
        pause("ok?")

    assert stage(work, {"coder": "ok"}).run().approve().state == "done"


def test_caught_divergence_stops_at_the_next_call(stage):
    counter = itertools.count()

    def work(prompt):
        try:
            run("coder", str(next(counter)))
        except BaseException:
            run("coder", "0")
        pause("ok?")
        run("deployer")

    s = stage(work, {"coder": [done()], "deployer": [done()]}).run().approve()
    assert s.waiting.kind == "recovery" and told(s) == ["coder"]


# --- scripts that cannot be run -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("broken", "words"), [
    ("def workflow(prompt:\n", "workflow.py is not Python\nReason: line 1: '(' was never closed"),
    ("import nothing_of_that_name\n", "workflow.py cannot be loaded\nReason: line 1: ModuleNotFoundError"),
    ("x = 1\n", "workflow.py has no def workflow(prompt)"),
    ("async def workflow(prompt):\n    pass\n", "workflow in workflow.py is async or a generator"),
])  # fmt: skip
def test_unloadable_script_asks_for_recovery(stage, broken, words):
    s = stage(BODY, agents()).run().edit(broken).approve("go")
    assert s.waiting.kind == "recovery" and s.waiting.text.startswith(words) and s.waiting.options == ["retry", "stop"]
    assert s.answer("retry").waiting.kind == "recovery"
    s.edit(BODY).answer("retry")
    assert s.state == "done" and s.calls[-1].prompt == "go" and told(s) == ["architect", "coder", "deployer"]


def test_recorded_source_is_used_without_a_file(stage):
    s = stage(BODY, agents()).run().edit(None).approve("go")
    assert s.state == "done" and s.summary == "out" and told(s) == ["architect", "coder", "deployer"]


def test_missing_file_and_missing_record(stage):
    s = stage(BODY, agents(), strict=False)
    s.run(program=None)
    assert s.desk.program(s.key)["body"] == BODY, "recorded with the first call that is made for real"
    s = stage(BODY, agents(), strict=False).edit(None)
    s.run(program=None)
    assert s.waiting.text.startswith("There is no script workflow.py here") and told(s) == []
    assert s.edit(BODY).answer("retry").waiting.text == "Deploy?"


def test_a_file(stage, tmp_path):
    file = tmp_path / "feature.py"
    file.write_text(BODY)
    s = stage(file, agents(tester=[done()])).run()
    file.write_text(BODY.replace("    return", '    run("tester")\n    return'))
    assert s.approve("go").state == "done" and told(s)[-2:] == ["tester", "deployer"] and s.task["workflow"] == "feature.py"


# --- starting again -----------------------------------------------------------------------------------------------------


def test_reopening_starts_a_new_journal(stage):
    twice = {name: [*lines, *lines] for name, lines in AGENTS.items()}
    s = stage(BODY, twice, strict=False).run("Add login").approve("first")
    assert s.state == "done" and s.task["journal"] == 0
    s.reopen("once more")
    assert s.waiting.text == "Deploy?" and s.task["journal"] == 1 and [x["index"] for x in s.steps] == ["1", "2", "3"]
    s.approve("second")
    assert s.state == "done" and [c.prompt for c in s.calls if c.agent == "deployer"] == ["first", "second"]
    assert [x["call"]["prompt"] for x in s.desk.steps(s.key, journal=0) if x["agent"] == "deployer"] == ["first"]
    assert len({c.session for c in s.calls if c.agent == "coder"}) == 2


def test_random_is_reused_only_in_place(stage):
    """A new uuid() before the old one must not take its value, or what was done with it would be done again."""
    sent = []

    def old(prompt):
        step(len, "a")
        step(sent.append, uuid())
        pause("Go on?")

    def new(prompt):
        fresh = uuid()
        step(len, fresh)
        step(len, "a")
        step(sent.append, uuid())
        return str(bool(pause("Go on?")))

    s = stage(old, {}).run("x")
    s.edit(new).approve()
    s.answer("continue")
    assert s.state == "done" and s.summary == "True" and len(sent) == 1

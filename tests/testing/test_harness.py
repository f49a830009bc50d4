"""The workflow harness: its errors where replies and script do not match, its kinds of scripts, and its cleanup."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from yourturn.core.errors import NotFound
from yourturn.flow import log, parallel, pause, run, sleep, stuck
from yourturn.flow.results import Halted
from yourturn.testing import OffScript, Stage, approve, asks, crashes, done, needs_human, reject, said, silence


def feature(prompt):
    run("coder", prompt)
    ok = pause("Deploy?")
    if not ok:
        return stuck(ok.reason)
    sleep("2d")
    return run("deployer")


def test_play_to_the_end():
    agents = {"coder": [needs_human("JWT or sessions?"), done("built")], "deployer": [done("out")]}
    s = Stage(feature, agents, person=["JWT", approve("ok")]).play("Add login")
    assert s.state == "done" and s.summary == "out" and s.task["title"] == "Add login" and s.task["workflow"] == "feature.py"
    assert s.calls[1].answer == "JWT" and s.clock.micros >= 1_790_000_000_000_000 + 2 * 86_400_000_000


def test_an_unknown_agent_name():
    with pytest.raises(OffScript, match=r"calls run\('coder', 'Add login'\), step 1, .* no agent 'coder'. It has: tester"):
        Stage(feature, {"tester": "x"}).run("Add login")
    with pytest.raises(OffScript, match="It has: none"):
        Stage(feature).run()


def test_missing_reply_of_an_agent():
    with pytest.raises(OffScript, match=r"calls run\('deployer'\), step 4, and 'deployer' has no reply left; 0 used"):
        Stage(feature, {"coder": [done()], "deployer": []}, ["yes"]).play()
    with pytest.raises(OffScript, match=r"calls run\('coder'\), step 1, and 'coder' has no reply left; 1 used\."):
        Stage(lambda p: run("coder"), {"coder": [needs_human("?")]}, ["yes"]).play()


def test_script_cannot_catch_a_missing_reply():
    def work(prompt):
        try:
            run("coder")
        except BaseException:
            return "swallowed"

    s = Stage(work)
    with pytest.raises(OffScript, match="no agent 'coder'"):
        s.run()
    assert s.state == "working" and s.steps[0]["status"] == "running"


def test_unused_replies_are_an_error():
    agents = {"coder": [done(), done("more"), said("LGTM")], "deployer": done()}
    s = Stage(feature, agents).run()
    with pytest.raises(OffScript, match=r"ended \(failed: no\), but coder was called 1 time, and .* are left: DONE: more, LGTM"):
        s.reject("no")
    assert s.state == "failed"
    Stage(feature, agents, strict=False).run().reject("no")


def test_missing_and_unused_replies_of_the_person():
    agents = {"coder": "built", "deployer": "out"}
    with pytest.raises(OffScript, match=r"the person has no reply left for Q1 \(checkpoint, step 2\): Deploy\?"):
        Stage(feature, agents).play()
    with pytest.raises(OffScript, match=r"has ended \(done\), and .* of the person are left: 'and another', reject\('no'\)"):
        Stage(feature, agents, [approve(), "and another", reject("no")]).play()
    with pytest.raises(OffScript, match=r"silence\(\) for a question without a timeout: Q1"):
        Stage(lambda p: pause("ok?", timeout=None), None, [silence()]).play()


def test_answer_without_a_question():
    s = Stage(lambda p: sleep("1d")).run()
    with pytest.raises(OffScript, match="PROJ-1 is 'deferred' and has no question"):
        s.answer("x")
    s = Stage(lambda p: pause("ok?")).run()
    with pytest.raises(OffScript, match="has no question 'Deploy"):
        s.approve(to="Deploy?")


def test_crash_at_a_step_that_is_not_reached():
    with pytest.raises(OffScript, match="step 7, where it should crash, was not reached"):
        Stage(lambda p: log("x")).crash_at(7).run()


def test_single_reply_is_used_every_time():
    def work(prompt):
        for n in range(3):
            run("coder", n)

    assert len(Stage(work, {"coder": done("again"), "unused": done()}).run().calls) == 3


def test_replies_by_prompt():
    """For branches, whose order is not fixed."""

    def work(prompt):
        return str([x.summary for x in parallel([lambda: run("coder", "api"), lambda: run("coder", "page")])])

    s = Stage(work, {"coder": {"api": [done("A")], "page": [done("P")]}}).run()
    assert s.summary == "['A', 'P']"
    with pytest.raises(OffScript, match=r"calls run\('coder', 'page'\), step 1.1.0, and 'coder' has no replies for that prompt"):
        Stage(work, {"coder": {"api": done("A")}}).run()


def test_reply_can_be_a_function():
    def coder(turn):
        return needs_human("JWT?") if turn.answer is None else f"built with {turn.answer}, {turn.session}"

    assert Stage(lambda p: run("coder"), {"coder": coder}, ["JWT"]).play().summary == "built with JWT, coder-1"


def test_error_in_a_reply_function_fails_the_test():
    def coder(turn):
        assert turn.prompt == "something else"

    with pytest.raises(AssertionError, match="something else"):
        Stage(feature, {"coder": coder}).run("Add login")
    with pytest.raises(TypeError, match="17 is no reply"):
        Stage(feature, {"coder": [17]}).run()


def test_kinds_that_an_agent_cannot_signal():
    with pytest.raises(ValueError, match="no signal asks for 'permission'; choose from: work, approval"):
        needs_human("Allow?", kind="permission")


def test_repr_of_replies():
    assert [repr(x) for x in (asks("a?"), crashes(), approve("ok"), reject(), silence())] == [
        "asks('a?')", "crashes('the agent crashed')", "approve('ok')", "reject()", "silence()",
    ]  # fmt: skip


def test_files_functions_modules_and_source(tmp_path, monkeypatch):
    body = "def other(prompt):\n    return 'other ' + prompt\n\n\ndef workflow(prompt):\n    return 'this ' + prompt\n"
    (tmp_path / "flows.py").write_text(body)
    assert Stage(tmp_path / "flows.py").run("x").summary == "this x"
    assert Stage(f"{tmp_path}/flows.py:other").run("x").summary == "other x"
    monkeypatch.chdir(tmp_path)
    s = Stage("flows.py:other").run("x")
    assert s.summary == "other x" and s.task["workflow"] == "flows.py:other"
    assert Stage("flows:other").run("x").summary == "other x"
    assert Stage(body).run("x").summary == "this x"
    assert Stage(body, file="mine.py:other").run("x").summary == "other x"
    s = Stage(lambda prompt: "lambda").run()
    assert s.summary == "lambda" and s.task["workflow"] == "workflow.py" and s.task["title"] == "workflow"
    with pytest.raises(NotFound, match=r"There is no script nowhere\.py"):
        Stage("nowhere.py")


def test_function_without_source():
    names: dict = {}
    exec("from yourturn.flow import pause\ndef f(prompt):\n    return str(bool(pause('ok?')))\n", names)
    s = Stage(names["f"]).run()
    assert s.desk.program(s.key)["body"].startswith("# f\n") and s.approve().summary == "True"


def test_edit_with_another_function():
    def longer(prompt):
        run("coder", prompt)
        ok = pause("Deploy?")
        return run("deployer", ok.message)

    s = Stage(feature, {"coder": "built", "deployer": "out"}).run().edit(longer).approve("soon")
    assert s.state == "done" and s.calls[-1].prompt == "soon"


def test_error_names_the_line_of_the_test():
    def work(prompt):
        raise ValueError("here")

    s = Stage(work).run()
    line = work.__code__.co_firstlineno + 1
    assert f"work.py: line {line}: ValueError: here" in s.waiting.text
    assert s.answer("stop").reason == f"work.py: line {line}: ValueError: here"


def test_two_runs_on_one_stage():
    s = Stage(lambda prompt: str(bool(pause("ok?")))).run("one")
    first = s.key
    s.run("two").reject()
    assert s.summary == "False" and s.desk.show(first)["state"] == "human"


def test_endless_claims_are_an_error():
    def work(prompt):
        raise Halted

    with pytest.raises(OffScript, match="is claimed again and again"):
        Stage(work).run()


def test_temporary_desk_is_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", None)
    s = Stage(lambda prompt: pause("ok?")).run()
    assert os.listdir(tmp_path)
    del s
    gc.collect()
    assert os.listdir(tmp_path) == []
    with Stage(lambda prompt: "x") as s:
        assert s.run().summary == "x"
    assert os.listdir(tmp_path) == []


def test_sleeps_advance_the_clock():
    s = Stage(lambda p: [sleep("30d") for _ in range(12)] and "a year").run()
    assert s.play().summary == "a year" and len(s.steps) == 12


def test_import_does_not_load_the_engine():
    code = "import sys, yourturn.testing; print([m for m in sys.modules if m.startswith('yourturn.flow')])"
    root = Path(__file__).parents[2]
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert process.stdout.strip() == "[]"

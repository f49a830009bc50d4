"""Tests of `turn resume` and `turn watch`: a run continues after a failure, a changed script or an answer."""

from __future__ import annotations

import json
import select
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.conftest import TURN
from tests.fixtures.waiting_runs import AUTH, SCRIPT, Floor, say, step
from yourturn.strict import examine

# --- resume ---------------------------------------------------------------------------------------------------


def test_a_failed_run_goes_on_where_it_was(works: Floor) -> None:
    script = works.crew.folder / "feature.py"
    script.write_text(SCRIPT.replace('run("coder")', "1 / 0"))
    assert works.crew.run("run", "feature.py", "Add login").returncode == 7 and works.crew.turns("PROJ-1") == 1
    seen = works.crew.text("status", "1")
    assert seen.startswith("Run 1: waiting_human\nAgent: -\nReason: PROJ-1 failed. feature.py: line 3: ZeroDivisionError")
    assert "Use 'turn resume 1' to try it again, 'turn stop 1' to end it." in seen
    script.write_text(SCRIPT)
    assert "✓ PROJ-1 is done: all of it" in works.crew.text("resume", "1")
    assert works.crew.turns("PROJ-1") == 2, "what the architect had done was kept"
    assert works.crew("resume", "1", exit=4)["code"] == "illegal_move"


def test_back_to_astep(works: Floor) -> None:
    works.crew.text("run", "feature.py", "Add login")
    works.crew("create", "Plain")
    assert works.crew("resume", "2", exit=4)["message"] == "Cannot resume PROJ-2: it is a task without a script, not a run"
    key = works.escalated()
    assert works.crew("resume", key, "--from", "7", exit=6)["message"].endswith("has no step '7': its steps are 1, 2")
    assert works.crew("resume", key, "--accept-new-code", "--from", "1", exit=2)["code"] == "usage"
    task = works.crew("resume", key, "--from", "2")
    assert (task["state"], task["summary"], task["questions"][0]["status"]) == ("done", "all of it", "cancelled")
    assert works.crew.turns(key) == 1, "only the coder was called"


@pytest.mark.parametrize("flag", ["--accept-new-code", "--from=1"])
def test_changed_code(works: Floor, flag: str) -> None:
    script = works.crew.folder / "feature.py"
    script.write_text('def workflow(prompt):\n    run("architect", prompt)\n    pause("Go?")\n    return "old"\n')
    works.crew.text("run", "feature.py", "Add login", exit=7)
    script.write_text('def workflow(prompt):\n    log("new")\n    run("architect", prompt)\n    return "new"\n')
    works.crew("signal", "1", "--status", "CONTINUE")
    assert "waits for a person, Q2 (recovery)" in works.crew.text("resume", "1", exit=7)
    error = works.crew("resume", "1", exit=2)
    assert error["message"] == "Cannot resume PROJ-1 without an option: feature.py was changed while PROJ-1 waited."
    assert "--accept-new-code" in error["hint"] and "turn stop PROJ-1" in error["hint"]
    task = works.crew("resume", "1", flag)
    assert (task["state"], task["summary"]) == ("done", "new")
    assert works.crew.turns("PROJ-1") == (1 if flag == "--accept-new-code" else 2)


def test_a_verdict_stays_with_its_question(works: Floor) -> None:
    script = works.crew.folder / "feature.py"
    steps = "".join(f'def {name}():\n    return "{name}"\n\n\n' for name in ("plan", "show", "migrate"))
    gate = 'def gate():\n    return pause("Approve?")\n\n\n'
    script.write_text(f'{steps}{gate}def workflow(p):\n    step(plan)\n    gate()\n    pause("Release?")\n')
    works.crew.text("run", "feature.py", "x", exit=7)
    works.crew("approve", "1", "the plan is fine")
    works.crew.text("resume", "1", exit=7)
    works.crew("approve", "1", "release ok")
    new = '    step(show)\n    if gate():\n        step(migrate)\n    step(plan)\n    gate()\n    pause("Release?")\n'
    script.write_text(f"{steps}{gate}def workflow(p):\n{new}")
    works.crew.text("resume", "1", exit=7)
    seen = works.crew.text("resume", "1", "--accept-new-code", exit=7)
    assert "waits for a person, Q4 (checkpoint):\n  Approve?" in seen
    assert [s["call"]["function"] for s in works.desk.steps("PROJ-1") if s["name"] == "step" and not s["spare"]] == ["show"]


def test_step_in_doubt_is_reported_with_the_way_out(works: Floor) -> None:
    script = works.crew.folder / "feature.py"
    script.write_text('def workflow(p):\n    pause("Approve?")\n    pause("Approve?")\n    return "old"\n')
    works.crew.text("run", "feature.py", "x", exit=7)
    works.crew("approve", "1")
    works.crew.text("resume", "1", exit=7)
    script.write_text(script.read_text().replace('"old"', '"new"'))
    works.crew("approve", "1")
    seen = works.crew.text("resume", "1", exit=7)
    assert "Steps 1 and 2 are all pause('Approve?'): an answer may belong to another one of them now." in seen
    assert ", or turn respond Q3 keep; " in works.crew("resume", "1", exit=2)["hint"]
    works.crew("respond", "Q3", "keep")
    assert works.crew("resume", "1")["summary"] == "new"


def test_a_script_that_could_not_be_loaded_is_tried_again(works: Floor) -> None:
    script = works.crew.folder / "feature.py"
    script.write_text('def workflow(prompt):\n    pause("Go?")\n    return "ended"\n')
    works.crew.text("run", "feature.py", "Add login", exit=7)
    works.crew("approve", "1")
    script.write_text("def workflow(prompt:\n")
    assert "feature.py is not Python" in works.crew.text("resume", "1", exit=7)
    assert "Use 'turn resume 1' to try it again, 'turn stop 1' to end it." in works.crew.text("status", "1")
    script.write_text('def workflow(prompt):\n    pause("Go?")\n    return "ended"\n')
    assert works.crew("resume", "1")["summary"] == "ended"


def test_changed_code_asked_on_a_terminal(works: Floor) -> None:
    key = works.changed()
    code, seen = works.types("resume", "1", "--detach", keys="\n")
    assert code == 7 and "How should it go on?" in seen
    code, seen = works.types("resume", "1", "--detach", keys="retry\n")
    assert code == 0 and works.desk.show(key)["state"] == "ready"


def test_resume_applies_a_new_signal(works: Floor) -> None:
    key = works.escalated()
    seen = works.crew.text("resume", "1", exit=7)
    assert f"{key} is still waiting (input, Q1): {AUTH}" in seen
    assert works.crew("resume", "1", "--accept-new-code", exit=4)["code"] == "precondition"
    works.signal(status="NEEDS_HUMAN", reason=AUTH)
    assert "still waiting (input, Q1)" in works.crew.text("resume", "1", exit=7)
    works.signal(status="DONE", summary="OAuth2 with PKCE")
    seen = works.crew.text("resume", "1")
    assert "coder says: DONE: OAuth2 with PKCE" in seen and f"✓ {key} is done: all of it" in seen
    assert works.steps(key)["2"]["summary"] == "OAuth2 with PKCE" and works.crew.turns(key) == 0


def test_resume_judges_nothing(works: Floor) -> None:
    key = works.escalated("The diff is ready", "approval")
    works.signal(status="DONE")
    seen = works.crew.text("resume", "1", exit=7)
    assert "coder says: DONE (Q1 needs a yes or no of a person). Next: turn continue Q1" in seen
    assert works.question(key)["id"] == "Q1"


def test_resume_of_a_ready_sleeping_or_claimed_run(works: Floor) -> None:
    key, claim = works.begun()
    error = works.crew("resume", "1", exit=4)
    assert error["message"].startswith("Cannot resume PROJ-1: it is 'running': w1 works on it; if that worker is gone")
    assert error["hint"] == "Follow it with: turn watch PROJ-1"
    works.agent.park(claim)
    assert works.crew("resume", "1", "--detach")["state"] == "ready"
    assert works.crew("resume", "1")["state"] == "done" and works.crew.turns(key) == 2
    key, claim = works.begun()
    works.agent.park(claim, "2d")
    assert works.crew("resume", "2")["state"] == "done"


def test_run_continues_here_after_help(both: Floor) -> None:
    """From its first line to its last, with a session that really asked."""
    floor = both
    asks = {"status": "NEEDS_HUMAN", "reason": AUTH}
    write = f"mkdir -p $YOURTURN_SIGNALS; printf '%s' '{json.dumps(asks)}' > $YOURTURN_SIGNALS/$YOURTURN_AGENT.json"
    plays = {
        "architect": [{"text": "A plan. <promise>COMPLETE</promise>"}],
        "coder": [{"tool": "Bash", "input": {"command": write}}, {"text": "I wait."}],
    }
    config = ""
    for name, steps in plays.items():
        (floor.crew.place / f"{name}.json").write_text(json.dumps(steps))
        config += f'[agents.{name}]\nadapter = "claude"\nargv = ["{floor.bin}/claude"]\nallowed_tools = ["Bash"]\n'
        config += f'[agents.{name}.env]\nDOUBLE_SCRIPT = "{floor.crew.place}/{name}.json"\n'
    floor.crew.config(config)
    assert f"PROJ-1 waits for a person, Q1 (input):\n  {AUTH}" in floor.crew.text("run", "feature.py", "Add login", exit=7)
    session = floor.desk.steps("PROJ-1")[1]["session_id"]
    seen = floor.crew.text("status", "1")
    assert f"Agent: coder\nSession: {session}\nReason: {AUTH}\n" in seen
    assert seen.endswith("Use 'turn continue 1' to open the Claude session.\n")
    code, shown = floor.types("continue", "1", keys="Use PKCE\n" + say(status="DONE", summary="With PKCE") + "exit\n")
    assert code == 0 and f"session {session}" in shown and "✓ PROJ-1 is done: all of it" in shown
    done = [step["result"]["status"] for step in floor.desk.steps("PROJ-1")]
    assert done == ["DONE", "DONE"] and floor.desk.steps("PROJ-1")[1]["session_id"] == session
    assert examine(floor.desk) == []


# --- watch ----------------------------------------------------------------------------------------------------------


@contextmanager
def watching(floor: Floor, *words: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [TURN, "watch", *words], cwd=floor.crew.folder, env=floor.crew.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=30)


def heard(floor: Floor, process: subprocess.Popen[str], happens: Callable[[], Any]) -> None:
    """Repeats the change until the command prints something: its start cannot be observed."""
    floor.crew.until(lambda: happens() and select.select([process.stdout], [], [], 0.2)[0])


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err, err
    return process.returncode, out


def test_watch_continues_when_the_agent_finished_with_a_person(works: Floor) -> None:
    key = works.escalated()
    with watching(works, "1") as process:
        assert process.stdout is not None and process.stdout.readline() == f"Run {key}: waiting_human\n"
        works.signal(status="DONE", summary="OAuth2 with PKCE")
        code, seen = ended(process)
    assert code == 0, seen
    assert "coder says: DONE: OAuth2 with PKCE" in seen and "Q1: ana: “settled in coder's session”" in seen
    assert seen.count(f"Run {key}: completed\nSummary: all of it") == 1
    assert works.steps(key)["2"]["summary"] == "OAuth2 with PKCE"


def test_watch_continues_after_an_answer_if_no_worker_does(works: Floor) -> None:
    key = works.escalated()
    with watching(works, "1", "--json") as process:
        heard(works, process, lambda: works.desk.note(key, "are you there?"))
        works.desk.respond("Q1", "Use PKCE")
        code, seen = ended(process)
    assert code == 0
    actions = [json.loads(line)["action"] for line in seen.splitlines()]
    actions = [action for action in actions if action != "note"]
    assert actions[0] == "answer" and "claim" in actions and actions[-1] == "complete"
    assert works.crew.turns(key) == 1


def test_watch_leaves_the_run_to_a_faster_worker_and_reports(works: Floor) -> None:
    key = works.escalated()
    with watching(works, "1", "--only-look") as process:
        assert process.stdout is not None
        while process.stdout.readline() != "\n":
            pass
        works.signal(status="DONE")
        works.desk.respond("Q1", "Use PKCE")
        claim = works.agent.claim(key, "w2")["claim"]
        result = {"status": "DONE", "summary": "done by w2"}
        works.agent.record(claim, [step("2", "run", "completed", "coder", {"agent": "coder", "prompt": None}, result=result)])
        works.agent.fail(claim, "no luck", failure="stuck", journal=0)
        code, seen = ended(process)
    assert code == 1
    assert "Q1: ana: “Use PKCE”" in seen and "#2 coder: done by w2" in seen and f"Run {key}: stuck\nReason: no luck" in seen
    assert works.crew.text("watch", "1", exit=1) == "", "what has ended is said at once"


def test_watch_does_not_judge(works: Floor) -> None:
    key = works.escalated("The diff is ready", "approval")
    works.signal(status="DONE")
    with watching(works, "1") as process:
        assert process.stdout is not None
        line = ""
        while "coder says" not in line:
            line = process.stdout.readline()
        assert "Q1 needs a yes or no of a person" in line
        works.desk.stop(key, "enough")
        code, seen = ended(process)
    assert code == 1 and "coder says" not in seen, "it is said once"


def test_watch_everything(works: Floor) -> None:
    with watching(works, "--json") as process:
        heard(works, process, lambda: works.desk.create("One more"))
        assert process.stdout is not None and json.loads(process.stdout.readline())["action"] == "create"

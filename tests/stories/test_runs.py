"""Scripts, with the real command: `turn run` in a terminal, workers beside it that die, people who answer."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.conftest import TURN
from tests.fixtures.command import Turn
from tests.fixtures.worker import Crew
from tests.worker.workshop import ahead
from yourturn.config import connect
from yourturn.strict import examine

FEATURE = """\
def workflow(prompt):
    run("architect", prompt)
    coded = run("coder")
    ok = pause("Approve deployment to production?")
    if not ok:
        return stuck(ok.reason)
    return run("deployer", f"Deploy {coded.summary}")
"""
AGENT = """\
cat > "$CREW/told/$YOURTURN_AGENT.$(ls "$CREW/told" | wc -l)"
echo "$YOURTURN_AGENT $YOURTURN_STEP" >> "$CREW/ledger"
signal() { mkdir -p "$YOURTURN_SIGNALS"; echo "$1" > "$YOURTURN_SIGNALS/$YOURTURN_AGENT.json"; }
if [ -e "$CREW/says/$YOURTURN_AGENT.sh" ]; then . "$CREW/says/$YOURTURN_AGENT.sh"
else signal "{\\"status\\": \\"DONE\\", \\"summary\\": \\"the $YOURTURN_AGENT's part\\"}"; fi
"""


class Flows(Crew):
    def setup(self, script: str = FEATURE) -> None:
        (self.place / "step.sh").write_text(AGENT)
        (self.folder / "feature.py").write_text(script)
        (self.place / "ledger").touch()

    def plays_as(self, name: str, text: str) -> None:
        (self.place / "says" / f"{name}.sh").write_text(text + "\n")

    def later(self) -> None:
        """The lease of the dead worker has expired."""
        self.ahead = getattr(self, "ahead", 0) + 300  # time never goes back
        with connect(self.address, as_="human:ana", project="PROJ", env={}, clock=ahead(self.ahead)) as desk:
            desk.reconcile()

    @property
    def command(self) -> str:
        return f"exec sh '{self.place}/step.sh'"

    def done(self) -> list[str]:
        return (self.place / "ledger").read_text().splitlines()

    def go(self, *words: str, exit: int = 0) -> str:
        """`turn run …`, as a person reads it."""
        return self.text("run", *words, "--exec", self.command, exit=exit)


@pytest.fixture
def flows(turn: Turn, address: str, tmp_path: Path) -> Flows:
    found = Flows(tmp_path, address)
    found.setup()
    return found


@pytest.fixture
def alone(here: Turn, tmp_path: Path) -> Flows:
    """An embedded desk."""
    found = Flows(tmp_path, str(here.folder / ".yourturn" / "yourturn.db"))
    found.setup()
    return found


# --- turn run ---------------------------------------------------------------------------------------------------------


def test_a_feature_from_the_first_line_to_the_last(flows: Flows) -> None:
    flows.plays_as("coder", """\
if [ -e "$CREW/asked" ]; then signal '{"status": "DONE", "summary": "JWT"}'
else touch "$CREW/asked"; signal '{"status": "NEEDS_HUMAN", "reason": "JWT or sessions?"}'; fi""")  # fmt: skip
    shown = re.sub(r"\(\d+s\)", "(…)", flows.go("feature.py", "Add login", exit=7))
    for words in ("feature.py begins: Add login", "step 1: architect begins", "step 1: architect DONE (…): the architect's part",
                  "step 2: coder needs a person", "Q1 (input):", "JWT or sessions?", 'turn respond PROJ-1 "…"'):  # fmt: skip
        assert words in shown
    assert flows.desk.show("PROJ-1")["title"] == "Add login"
    flows("respond", "1", "JWT")
    told = flows("work", "--drain", "--exec", flows.command)
    assert told["results"] == [
        {"task": "PROJ-1", "outcome": "waiting", "words": "waits for a person (checkpoint): Approve deployment to production?"}
    ]
    flows("approve", "1")
    shown = flows.text("work", "--drain", "--exec", flows.command)
    assert "feature.py goes on: Add login" in shown and "step 4: deployer DONE" in shown and "1 done" in shown
    assert flows.done() == ["architect 1", "coder 2", "coder 2", "deployer 4"]
    assert flows.desk.show("PROJ-1")["summary"] == "the deployer's part"
    assert "Deploy JWT" in next((flows.place / "told").glob("deployer.*")).read_text()


def test_exit_codes_and_json(alone: Flows) -> None:
    (alone.folder / "ok.py").write_text('def workflow(prompt):\n    return run("coder", prompt)\n')
    shown = alone.go("ok.py", "Add login")
    assert shown.splitlines()[-1] == "✓ PROJ-1 is done: the coder's part"
    (alone.folder / "no.py").write_text('def workflow(prompt):\n    stuck("no way")\n')
    done = alone.run("run", "no.py")
    assert (done.returncode, "✗ PROJ-2 is stuck: no way" in done.stdout) == (1, True)
    assert alone.desk.show("PROJ-2")["title"] == "no"
    (alone.folder / "bad.py").write_text("def workflow(prompt):\n    return 1 / 0\n")
    done = alone.run("run", "bad.py", "--json")
    assert done.returncode == 7, "it waits for a person who says how it goes on"
    (q,) = json.loads(done.stdout)["questions"]
    assert (q["reason"], q["context"]["error"]) == ("run_failed", "bad.py: line 2: ZeroDivisionError: division by zero")
    assert "bad.py\", line 2, in workflow" in q["context"]["traceback"]
    shown = alone.text("show", "PROJ-3")
    assert "division by zero" in shown and "line 2, in workflow" in shown
    assert "division by zero" in alone.text("log", "PROJ-3") and "Nothing waits for you" not in alone.text()
    shown = alone.text("run", "bad.py", exit=7)
    assert "✗ PROJ-4 waits for a person" in shown and "line 2, in workflow" in shown and "turn respond PROJ-4 retry" in shown
    alone("answer", "PROJ-4", "stop")
    done = alone.run("resume", "4")
    assert (done.returncode, "✗ PROJ-4 is failed: bad.py: line 2: ZeroDivisionError" in done.stdout) == (1, True)
    (alone.folder / "wait.py").write_text('def workflow(prompt):\n    pause("Go?")\n    sleep("2d")\n')
    found = alone("run", "wait.py", "-", exit=7, input="Read from\nstandard input")
    assert (found["title"], found["description"], found["awaiting"]) == ("Read from", "Read from\nstandard input", "checkpoint")
    assert "turn approve PROJ-5" in alone.text("show", "PROJ-5")
    made = alone("run", "wait.py", "Later", "--detach", "--title", "Ahead", "--priority", "1", "--label", "x")
    assert (made["state"], made["title"], made["priority"], made["labels"]) == ("ready", "Ahead", 1, ["x"])


def test_script_that_cannot_run_is_refused_before_a_run_is_created(alone: Flows) -> None:
    (alone.folder / "broken.py").write_text("def workflow(prompt:\n")
    (alone.folder / "empty.py").write_text("x = 1\n")
    assert "no script nowhere.py" in alone("run", "nowhere.py", exit=3)["message"]
    assert alone("run", ".", exit=3)["message"] == "There is no script .: it is a folder"
    assert "broken.py is not Python" in alone("run", "broken.py", exit=6)["message"]
    assert "empty.py has no def workflow(prompt)" in alone("run", "empty.py", exit=6)["message"]
    assert alone("run", "feature.py", exit=5, env={"YOURTURN_AGENT": "coder"})["code"] == "not_allowed"
    assert alone.desk.list() == []


def test_a_script_is_named_from_the_root_wherever_it_is_started(alone: Flows) -> None:
    (alone.folder / ".yourturn").mkdir(exist_ok=True)
    flows = alone.folder / "flows"
    flows.mkdir()
    (flows / "nightly.py").write_text("import helper\n@workflow\ndef nightly(prompt):\n    return helper.word()\n")
    (flows / "helper.py").write_text('def word():\n    return "from a neighbour"\n')
    done = subprocess.run(
        [TURN, "run", "nightly.py:nightly"], cwd=flows, env=alone.env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0 and "from a neighbour" in done.stdout, done.stdout + done.stderr
    assert alone.desk.show("PROJ-1")["workflow"] == "flows/nightly.py:nightly"


def test_a_script_in_a_package_imports_its_neighbours(alone: Flows) -> None:
    (alone.folder / ".yourturn").mkdir(exist_ok=True)
    flows = alone.folder / "flows"
    flows.mkdir()
    (flows / "__init__.py").touch()
    (flows / "helper.py").write_text('WORD = "from a neighbour"\n')
    (flows / "nightly.py").write_text(
        "from flows.helper import WORD as other\nfrom .helper import WORD\nfrom yourturn.flow import workflow\n"
        "@workflow\ndef nightly(prompt):\n    return f'{WORD}, {other}, {prompt!r}'\n"
    )
    for number, name in enumerate(("flows.nightly:nightly", "flows/nightly.py", "flows.nightly"), 1):
        assert alone("run", name)["summary"] == "from a neighbour, from a neighbour, ''", name
        assert alone.desk.show(number)["title"] == "nightly"


def test_agents_of_the_config_are_found_also_when_they_are_added_later(alone: Flows) -> None:
    alone.config(f'[agents.architect]\nadapter = "command"\nargv = ["sh", "{alone.place}/step.sh"]\n')
    (alone.folder / ".agents").mkdir()
    (alone.folder / ".agents" / "coder.md").write_text("You write small functions.\n")
    with alone.worker(agent=False) as worker:
        alone.text("run", "feature.py", "Add login", "--detach")
        asked = alone.waiting("PROJ-1", "escalation")
        assert asked["reason"] == "access_required" and "There is no agent 'coder'" in asked["text"]
        more = f'[agents.NAME]\nadapter = "command"\nargv = ["sh", "{alone.place}/step.sh"]\n'
        alone.config("".join(more.replace("NAME", name) for name in ("architect", "coder", "deployer")))
        alone("respond", "PROJ-1", "Added")
        alone.waiting("PROJ-1", "checkpoint")
        alone("approve", "PROJ-1")
        alone.until(lambda: alone.state("PROJ-1") == "done")
        alone.ended(worker)
    assert "You write small functions." in next((alone.place / "told").glob("coder.*")).read_text()
    assert alone.done() == ["architect 1", "coder 2", "deployer 4"]


def test_ctrl_c_leaves_the_run_to_go_on(alone: Flows) -> None:
    alone.plays_as("coder", 'touch "$CREW/at"; if [ ! -e "$CREW/go" ]; then sleep 60; fi; signal \'{"status": "DONE"}\'')
    line = [TURN, "run", "feature.py", "Add login", "--exec", alone.command]
    process = subprocess.Popen(line, cwd=alone.folder, env=alone.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    alone.until(lambda: (alone.place / "at").exists())
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, "Traceback" in err) == (7, False), out + err
    assert "PROJ-1 is 'ready'" in out
    task = alone.desk.show("PROJ-1")
    assert (task["state"], task["retry_count"], task["claim"]) == ("ready", 0, None)
    (alone.place / "go").touch()
    alone("work", "--drain", "--exec", alone.command)
    alone.waiting("PROJ-1", "checkpoint")
    assert alone.done() == ["architect 1", "coder 2", "coder 2"]


# --- workers that die -------------------------------------------------------------------------------------------------

KILLED = ["claim_next:after-commit", "step:before-commit", "step:after-commit", "flag:before-commit"]


@pytest.mark.parametrize(
    ("dialect", "fault"),
    [*(("sqlite", fault) for fault in KILLED), ("sqlite", "flag:after-commit"), ("postgres", "flag:after-commit")],
)
def test_worker_killed_at_its_writes_is_replaced_by_another(flows: Flows, fault: str) -> None:
    """Before the agent, around its start, and while its question is written down: it is asked once, and answered once."""
    flows.plays_as("coder", """\
if grep -q "JWT it is" "$CREW"/told/coder.*; then signal '{"status": "DONE", "summary": "JWT"}'
else signal '{"status": "NEEDS_HUMAN", "reason": "JWT or sessions?"}'; fi""")  # fmt: skip
    flows("run", "feature.py", "Add login", "--detach")
    killed = flows.run("work", "--drain", "--exec", flows.command, env={"YOURTURN_FAULT": fault})
    assert killed.returncode == -signal.SIGKILL
    flows.later()
    flows("work", "--drain", "--exec", flows.command)
    asked = flows.waiting("PROJ-1", "input")
    assert asked["step"] == "2" and len(flows.desk.show("PROJ-1")["questions"]) == 1
    flows("respond", "1", "JWT it is")
    killed = flows.run("work", "--drain", "--exec", flows.command, env={"YOURTURN_FAULT": fault})
    assert killed.returncode == -signal.SIGKILL
    flows.later()
    flows("work", "--drain", "--exec", flows.command)
    flows.waiting("PROJ-1", "checkpoint")
    flows("approve", "1")
    flows("work", "--drain", "--exec", flows.command)
    task = flows.desk.show("PROJ-1")
    assert (task["state"], [s["status"] for s in task["steps"]]) == ("done", ["completed"] * 4)
    assert [q["status"] for q in task["questions"]] == ["answered", "answered"]
    assert examine(flows.desk) == []


def test_killed_during_the_agent_its_session_goes_on(flows: Flows) -> None:
    """The scripted agent has sessions: the second worker wakes the first one's."""
    flows.plays(
        [{"brief": "brief.txt"}, {"say": "on it"}, {"run": 'touch "$CREW/at"'}, {"sleep": 30}, {"signal": {"status": "DONE"}}]
    )
    (flows.folder / "one.py").write_text('def workflow(prompt):\n    run("coder")\n')
    flows("run", "one.py", "--detach")
    with flows.worker(agent=False) as worker:
        flows.until(lambda: (flows.place / "at").exists())
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait()
    (step,) = flows.desk.steps("PROJ-1")
    assert step["status"] == "running" and step["session_id"] and step["seat"]["agent"] == "coder"
    flows.later()
    flows.plays([{"brief": "brief.txt"}, {"say": "on it"}, {"end": True}, {"end": True}, {"signal": {"status": "DONE"}}])
    flows.work(agent=False)
    (again,) = flows.desk.steps("PROJ-1")
    assert (again["status"], again["session_id"]) == ("completed", step["session_id"])
    assert flows.state("PROJ-1") == "done"


def test_script_without_a_call_does_not_block_the_worker(alone: Flows) -> None:
    (alone.folder / "loop.py").write_text(
        f"def workflow(prompt):\n    open({str(alone.place / 'at')!r}, 'w')\n    while True: pass\n"
    )
    alone("run", "loop.py", "--detach")
    with alone.worker() as worker:
        alone.until(lambda: (alone.place / "at").exists())
        told = alone.ended(worker)
    assert [row["outcome"] for row in told["results"]] == ["stopped"]
    assert alone.desk.show("PROJ-1")["state"] == "ready"


def test_worktrees_of_branches_are_listed_and_cleaned_with_their_run(alone: Flows) -> None:
    alone.repository()
    for name in "ab":
        alone.plays_as(name, f'echo {name} > same.txt; signal \'{{"status": "DONE"}}\'')
    (alone.folder / "both.py").write_text('def workflow(prompt):\n    parallel([lambda: run("a"), lambda: run("b")])\n')
    shown = alone.go("both.py", exit=7)
    assert "step 1.0.0: a begins" in shown and "cannot be merged" in shown
    listed = alone("worktree", "list")
    assert [(row["task"], Path(row["folder"]).name) for row in listed] == [
        ("PROJ-1", "PROJ-1"), ("PROJ-1", "PROJ-1.1.0"), ("PROJ-1", "PROJ-1.1.1"),
    ]  # fmt: skip
    alone("stop", "PROJ-1", "--reason", "Enough")
    assert all(row["removed"] for row in alone("worktree", "clean"))


# --- what people read -------------------------------------------------------------------------------------------------

GATE = """\
function workflow(prompt)
  run("coder", prompt)
  local ok = pause("Deploy?")
  if not ok.continue then return stuck(ok.reason) end
  return "it is live"
end
"""


def _line(shown: str, words: str) -> str:
    return next(line for line in shown.splitlines() if line.strip().startswith(words))


def test_a_question_names_its_script_and_the_effect_of_an_answer(alone: Flows) -> None:
    (alone.folder / "gate.lua").write_text(GATE)
    shown = alone.go("gate.lua", "Add login", exit=7)
    assert "turn approve PROJ-1       gate.lua goes on" in shown and 'turn reject PROJ-1 "why"  gate.lua gets the no' in shown
    assert "asked by gate.lua" in alone.text("show", "1") and "gate.lua" in alone.text("inbox")
    alone.plays_as("coder", """signal '{"status": "NEEDS_HUMAN", "reason": "JWT or sessions?"}'""")
    shown = alone.go("feature.py", exit=7)
    no = "coder's step is REJECTED, and the script goes on"
    assert "coder goes on with it" in _line(shown, "turn respond PROJ-2") and no in shown and no in alone.text("show", "Q2")
    alone.plays_as("coder", """signal '{"status": "APPROVAL_NEEDED", "reason": "Look at it"}'""")
    shown = alone.go("feature.py", exit=7)
    assert "coder's step is DONE" in _line(shown, "turn approve PROJ-3") and "coder receives your text" in shown


def test_a_rejected_run_goes_back_to_its_step_and_a_stopped_one_asks_again(alone: Flows) -> None:
    (alone.folder / "gate.lua").write_text(GATE)
    alone.go("gate.lua", "Add login", exit=7)
    alone("reject", "1", "Not today")
    done = alone.run("resume", "1", "--exec", alone.command)
    assert done.returncode == 1 and done.stdout.endswith("✗ PROJ-1 is stuck: Not today\nNext: turn resume PROJ-1 --from 2\n")
    assert "Deploy?" in alone.text("resume", "1", "--from", "2", exit=7)
    assert "Next: turn resume 1\n" in alone.text("stop", "1", "--reason", "Not now")
    assert "Deploy?" in alone.text("resume", "1", exit=7), "nobody has answered, so it is asked again"
    alone("approve", "1")
    alone("stop", "1", "--reason", "Wait")
    assert "✓ PROJ-1 is done: it is live" in alone.text("resume", "1"), "and an answer is kept"
    assert alone("resume", "1", exit=4) == {
        "code": "illegal_move", "message": "Cannot resume PROJ-1: it is 'done'",
        "hint": "Valid from 'done': reopen (admin). To run it again from its first line: turn reopen PROJ-1",
    }  # fmt: skip


def test_what_failed_for_good_is_done_anew_from_its_step(alone: Flows) -> None:
    (alone.folder / "bad.py").write_text("def workflow(prompt):\n    sleep(1)\n    step(int, 'x')\n")
    shown = alone.text("run", "bad.py", exit=7)
    assert (
        "Next: turn work (goes on then) | turn resume PROJ-1 (goes on at once)" in shown
        and "T" not in shown.split("until ")[1][:12]
    )
    done = alone.run("resume", "1")
    assert "✗ PROJ-1 waits for a person" in done.stdout and "bad.py: line 3: StepFailed: ValueError" in done.stdout
    alone("answer", "PROJ-1", "stop")
    done = alone.run("resume", "1")
    assert "✗ PROJ-1 is failed: bad.py: line 3: StepFailed" in done.stdout
    assert done.stdout.endswith("Next: turn resume PROJ-1 --from 2\n")


def test_a_worker_without_agents_takes_runs(flows: Flows) -> None:
    assert flows("work", "--drain", exit=3)["message"].startswith("There is no agent 'coder'"), "there is nothing to do"
    (flows.folder / "ok.py").write_text('def workflow(prompt):\n    return f"made {prompt}"\n')
    (flows.folder / "calls.py").write_text('def workflow(prompt):\n    return run("coder")\n')
    flows("run", "ok.py", "this", "--detach")
    flows("run", "calls.py", "--detach")
    flows("create", "Plain")
    shown = flows.text("work", "--drain")
    assert "no agent, runs only (PROJ-3 waits for an agent" in shown
    assert flows.desk.show("PROJ-1")["summary"] == "made this" and flows.desk.show("PROJ-3")["state"] == "ready"
    (q,) = flows.desk.inbox()
    assert q["task"] == "PROJ-2" and q["reason"] == "access_required" and "There is no agent 'coder'" in q["text"]


def test_an_agent_that_could_not_be_called_is_called_again(alone: Flows) -> None:
    shown = alone.text("run", "feature.py", exit=7)
    assert "[agents.architect]" in shown and "When that is settled, answer: it is tried again." in shown
    assert (
        "WAITING FOR\nPROJ-1  feature  waiting_human  architect  architect could not be called for step 1 of PROJ-1. …"
        in alone.text("list")
    )
    assert "Reason: architect could not be called for step 1 of PROJ-1.\n  There is no agent 'architect'\n" in alone.text(
        "status", "1"
    )


def test_changed_code_is_no_agents_question(alone: Flows) -> None:
    (alone.folder / "gate.py").write_text('def workflow(prompt):\n    run("coder")\n    pause("Go?")\n')
    alone.go("gate.py", exit=7)
    (alone.folder / "gate.py").write_text('def workflow(prompt):\n    run("tester")\n    pause("Go?")\n')
    alone("approve", "1")
    shown = alone.text("resume", "1", "--exec", alone.command, exit=7)
    assert "turn respond PROJ-1 continue  gate.py goes on" in shown
    assert 'turn reject PROJ-1 "why"      PROJ-1 ends as stuck' in shown
    shown = alone.text("status", "1")
    assert "Agent: -\n" in shown and "Use 'turn resume 1 --accept-new-code' to go on with it." in shown

"""Runs of scripts whose steps are real agents, in real folders."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.worker.workshop import DONE, Doubles, until
from yourturn.core.errors import NotAllowed, Precondition
from yourturn.core.model import Who
from yourturn.strict import examine
from yourturn.worker import script_interrupt
from yourturn.worker.agents import Agent

WHICH = {
    "question": "Which database?",
    "header": "Database",
    "multiSelect": False,
    "options": [{"label": "SQLite"}, {"label": "PG"}],
}
SIGNAL = 'signal() { mkdir -p "$YOURTURN_SIGNALS"; echo "$1" > "$YOURTURN_SIGNALS/$YOURTURN_AGENT.json"; }\n'
#: Every agent plays the file that has its name; what it was told is kept, call by call.
AGENT = (
    SIGNAL
    + """
n=1; while [ -e "$SHOP/$YOURTURN_AGENT.$n.told" ]; do n=$((n + 1)); done
cat > "$SHOP/$YOURTURN_AGENT.$n.told"
echo "$YOURTURN_AGENT $YOURTURN_STEP" >> "$LEDGER"
if [ -e "$SHOP/$YOURTURN_AGENT.$n.sh" ]; then . "$SHOP/$YOURTURN_AGENT.$n.sh"
elif [ -e "$SHOP/$YOURTURN_AGENT.sh" ]; then . "$SHOP/$YOURTURN_AGENT.sh"; else echo '<promise>COMPLETE</promise>'; fi
"""
)


class Flow(Doubles):
    """A workshop for scripts."""

    def begin(self, body: str, prompt: str = "Add login", **fields: Any) -> str:
        """A run of `def workflow(prompt)` with this body."""
        lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
        (self.root / "flow.py").write_text(f"def workflow(prompt):\n{lines}")
        return self.again(prompt, **fields)

    def again(self, prompt: str = "Add login", **fields: Any) -> str:
        body = (self.root / "flow.py").read_text()
        program = {"file": "flow.py", "body": body}
        return str(self.desk.create(prompt, description=prompt, workflow="flow.py", program=program, **fields)["key"])

    def agent(self) -> Agent:
        return self.script(AGENT)

    def plays_as(self, name: str, *turns: str) -> None:
        """Lines of shell for each of its calls; the last is for all later calls."""
        for n, text in enumerate(turns, 1):
            (self.folder / f"{name}.{n}.sh").write_text(text + "\n")
        (self.folder / f"{name}.sh").write_text(turns[-1] + "\n")

    def told(self, name: str, n: int = 1) -> str:
        return (self.folder / f"{name}.{n}.told").read_text()

    def go_on(self, agent: Agent | None = None, **more: Any) -> tuple[str, str]:
        """The results of one claim of the run."""
        agent = agent or self.agent()
        ((_, what),) = self.drain(agent, **{"find": lambda name: replace(agent, name=name), **more})
        return what, self.words

    def drain(self, agent: Agent, **more: Any) -> list[tuple[str, str]]:
        worker = self.worker(agent, **more)
        worker.run()
        self.words = worker.results[-1][1].words if worker.results else ""
        return [(key, result.what) for key, result in worker.results]

    def steps(self, key: str) -> list[tuple[str, str, str]]:  # type: ignore[override]
        return [(s["index"], s["name"], s["status"]) for s in self.desk.steps(key)]

    def result(self, key: str, index: str) -> dict[str, Any]:
        return next(dict(s["result"]) for s in self.desk.steps(key) if s["index"] == index)

    def script_of(self, *steps: Any) -> None:
        (self.folder / "steps.json").write_text(json.dumps(steps))


@pytest.fixture
def shop(address: str, tmp_path: Path) -> Iterator[Flow]:
    found = Flow(tmp_path, address)
    yield found
    assert examine(found.desk) == []
    found.close()


@pytest.fixture
def lone(new_desk: Callable[[str], str], tmp_path: Path) -> Iterator[Flow]:
    """A Flow on SQLite only: these tests do not depend on the database."""
    found = Flow(tmp_path, new_desk("sqlite"))
    yield found
    assert examine(found.desk) == []
    found.close()


# --- a step, its question and its session -----------------------------------------------------------------------------


def test_session_of_a_step_continues_with_the_answer(shop: Flow) -> None:
    shop.repository()
    agent = shop.plays(
        "claude", {"tool": "Bash", "input": {"command": "echo half > half.txt"}},
        {"text": "<promise>INPUT_NEEDED: JWT or sessions?</promise>"},
        {"tool": "Bash", "input": {"command": "cat half.txt > whole.txt"}},
        {"text": '{"status": "completed", "summary": "JWT"}'},
    )  # fmt: skip
    key = shop.begin('said = run("coder", "Write it")\nreturn f"it said {said.summary}"')
    assert shop.go_on(agent) == ("waiting", "waits for a person (input): JWT or sessions?")
    asked, waiting = shop.question(key), shop.show(key)
    assert (asked["asked_by"], asked["step"], asked["journal"], waiting["claim"]) == ("agent:coder", "1", 0, None)
    (step,) = shop.desk.steps(key)
    assert (step["status"], step["agent"], step["session_id"]) == ("waiting", "coder", waiting["session_id"])
    assert step["seat"]["folder"] == waiting["seat"]["folder"] and Path(step["seat"]["signals"]).name == "signals"
    shop.desk.respond(key, "JWT, please")
    assert shop.go_on(agent) == ("done", "it said JWT")
    brief, answer = shop.prompts()
    assert "Write it" in str(brief) and "Add login" in str(brief) and "JWT, please" in str(answer)
    (step,) = shop.desk.steps(key)
    assert (step["status"], step["session_id"], step["result"]["summary"]) == ("completed", waiting["session_id"], "JWT")
    task = shop.show(key)
    assert (task["state"], task["retry_count"], task["summary"]) == ("done", 0, "it said JWT")
    assert shop.git("show", f"{task['branch']}:whole.txt") == "half\n"


def test_step_with_several_questions_waits_for_all_answers(lone: Flow) -> None:
    questions = json.dumps(
        {"status": "NEEDS_HUMAN", "questions": ["Which port?", {"question": "Where?", "options": ["eu", "us"]}]}
    )
    lone.plays_as("coder", f"signal '{questions}'", "echo '<promise>COMPLETE: both</promise>'")
    key = lone.begin('return run("coder").summary')
    assert lone.go_on()[0] == "waiting"
    port, where = lone.show(key)["questions"]
    assert (port["step"], where["step"], port["group"] == where["group"] is not None) == ("1", "1", True)
    assert "your step ends as REJECTED" in lone.told("coder")
    lone.desk.respond(port["id"], "8080")
    lone.desk.answer(where["id"], "eu")
    assert lone.go_on() == ("done", "both")
    assert "8080" in lone.told("coder", 2) and "eu" in lone.told("coder", 2)


@pytest.mark.parametrize(("no", "status"), [(0, "REJECTED"), (1, "REJECTED"), (None, "DONE")])
def test_one_rejection_among_several_questions_rejects_the_step(lone: Flow, no: int | None, status: str) -> None:
    lone.plays_as(
        "coder", "echo '<promise>INPUT_NEEDED: a?</promise> <promise>INPUT_NEEDED: b?</promise>'", 'signal \'{"status": "DONE"}\''
    )
    key = lone.begin('return run("coder").status')
    lone.go_on()
    for n, q in enumerate(lone.show(key)["questions"]):
        lone.desk.reject(q["id"], "no") if n == no else lone.desk.respond(q["id"], "so")
    assert lone.go_on() == ("done", status)


def test_step_is_signed_off_only_by_all_approvals(lone: Flow) -> None:
    lone.plays_as(
        "coder",
        "echo '<promise>APPROVAL_NEEDED: a</promise> <promise>APPROVAL_NEEDED: b</promise>'",
        'signal \'{"status": "FAILED", "reason": "again"}\'',
    )
    key = lone.begin('return run("coder").status')
    lone.go_on()
    first, second = lone.show(key)["questions"]
    lone.desk.reject(first["id"], "not like that")
    lone.desk.approve(second["id"])
    assert lone.go_on() == ("done", "FAILED")


def test_unknown_status_in_json_goes_to_the_script(lone: Flow) -> None:
    lone.plays_as("coder", """echo '{"status": "NEEDS_REVIEW", "summary": "look"}'""")
    lone.begin('said = run("coder")\nreturn f"{said.status} {said.summary}"')
    assert lone.go_on() == ("done", "NEEDS_REVIEW look")


def test_scripted_agent_asks_in_its_step(shop: Flow) -> None:
    script = shop.folder / "script.json"
    script.write_text(json.dumps([{"ask": "Left or right?", "wait": 0}, {"say": "so {answer}"}, {"signal": {"status": "DONE"}}]))
    agent = Agent("coder", "scripted", (str(script),))
    key = shop.begin('run("coder")')
    assert shop.go_on(agent)[0] == "waiting" and shop.question(key)["step"] == "1"
    shop.desk.respond(key, "Left")
    assert shop.go_on(agent)[0] == "done" and len(shop.show(key)["questions"]) == 1


def test_question_by_tool_parks_and_resumes_in_the_same_call(shop: Flow) -> None:
    agent = shop.plays("claude", {"ask": [WHICH]}, {"text": DONE})
    key = shop.begin('run("coder")\nrun("coder", "again")')
    assert shop.go_on(agent)[0] == "waiting"
    asked = shop.question(key)
    assert (asked["step"], asked["text"]) == ("1", "Which database?")
    assert shop.desk.steps(key)[0]["seat"]["parked"]
    shop.desk.answer(asked["id"], "SQLite")
    assert shop.go_on(agent)[0] == "waiting", "the second step asks for itself"
    assert shop.prompts()[1] is None, "a parked session is woken without a prompt"
    assert shop.question(key)["step"] == "2"
    shop.desk.answer(shop.question(key)["id"], "PG")
    assert shop.go_on(agent)[0] == "done"
    sessions = [s["session_id"] for s in shop.desk.steps(key)]
    assert len(set(sessions)) == 2 and shop.show(key)["session_id"] == sessions[1]


def test_agent_without_a_session_gets_the_whole_history(shop: Flow) -> None:
    shop.plays_as("coder", "turn ask $YOURTURN_TASK 'Which port?' --wait 0 > /dev/null; exit 0", f"echo '{DONE}'")
    key = shop.begin('run("architect", prompt)\nrun("coder", "Open a port")\nrun("reviewer")', "Make a server")
    shop.plays_as("architect", 'signal \'{"status": "DONE", "summary": "One process"}\'')
    assert shop.go_on()[0] == "waiting"
    assert shop.question(key)["step"] == "2"
    shop.desk.respond(key, "8080")
    assert shop.go_on()[0] == "done"
    again = shop.told("coder", 2)
    for words in ("Make a server", "One process", "Open a port", "Which port?", "8080"):
        assert words in again
    assert "8080" not in shop.told("reviewer"), "questions of other steps are not its own"
    assert shop.done() == ["architect 1", "coder 2", "coder 2", "reviewer 3"]


def test_answer_during_the_end_of_a_step_continues_at_once(lone: Flow) -> None:
    lone.plays_as("coder", "turn ask $YOURTURN_TASK 'Which port?' > /dev/null; touch $SHOP/asked; wait_for go", f"echo '{DONE}'")
    key = lone.begin('run("coder")')
    with lone.draining(lone.agent()):
        until(lambda: (lone.folder / "asked").exists())
        lone.desk.respond(key, "8080")
        lone.go()
    assert lone.show(key)["state"] == "done" and "8080" in lone.told("coder", 2)
    assert [e["action"] for e in lone.desk.history(key)].count("claim") == 1


def test_unknown_statuses_reach_the_script(shop: Flow) -> None:
    shop.plays_as(
        "reviewer",
        'signal \'{"status": "NEEDS_REVIEW", "reason": "no tests", "files": ["a.py"]}\'',
        'signal \'{"status": "APPROVED"}\'',
    )
    key = shop.begin("""
for n in range(5):
    run("coder")
    review = run("reviewer")
    if review.status == "APPROVED":
        return f"approved in round {n + 1}"
""")  # fmt: skip
    assert shop.go_on() == ("done", "approved in round 2")
    found = shop.result(key, "2")
    assert (found["status"], found["reason"], found["message"], found["files"]) == (
        "NEEDS_REVIEW",
        "no tests",
        "no tests",
        ["a.py"],
    )


def test_script_without_people_gets_the_question(lone: Flow) -> None:
    lone.plays_as("coder", 'signal \'{"status": "NEEDS_HUMAN", "reason": "JWT or sessions?"}\'')
    key = lone.begin('got = run("coder", human=False)\nstuck(f"{got.status}: {got.reason}")')
    assert lone.go_on() == ("stuck", "NEEDS_HUMAN: JWT or sessions?")
    assert lone.show(key)["questions"] == [] and lone.show(key)["failure"] == "stuck"


def test_rejection_of_a_steps_question(lone: Flow) -> None:
    lone.plays_as("coder", 'signal \'{"status": "NEEDS_HUMAN", "reason": "May I drop the table?"}\'')
    key = lone.begin('return run("coder").status')
    lone.go_on()
    lone.desk.reject(key, "Never")
    assert lone.go_on() == ("done", "REJECTED")
    assert lone.result(key, "1")["reason"] == "Never"


def test_step_without_a_signal_asks_a_person(lone: Flow) -> None:
    lone.plays_as("coder", "echo 'I looked around.'", "echo Hm", f"echo '{DONE}'")
    key = lone.begin('run("coder")')
    assert lone.go_on(turns=2)[0] == "waiting"
    assert "coder had 2 turns without a signal." in lone.question(key)["text"]
    lone.desk.respond(key, "Just finish")
    assert lone.go_on()[0] == "done" and "Just finish" in lone.told("coder", 3)


def test_broken_signal_of_a_step_asks_a_person(lone: Flow) -> None:
    lone.plays_as("coder", 'signal "{not json"', f"echo '{DONE}'")
    key = lone.begin('run("coder")')
    assert lone.go_on()[0] == "waiting" and lone.question(key)["reason"] == "protocol_error"
    lone.desk.respond(key, "Once more")
    assert lone.go_on()[0] == "done"


# --- in a step, at the desk -------------------------------------------------------------------------------------------


def test_complete_and_fail_in_a_step_end_the_step_only(shop: Flow) -> None:
    shop.plays_as(
        "coder",
        'turn complete $YOURTURN_TASK --summary "It works" > $SHOP/said',
        "turn fail $YOURTURN_TASK --reason 'It does not' --json > $SHOP/json",
    )
    key = shop.begin('a, b = run("coder"), run("coder")\nreturn f"{a.status} {a.summary}, {b.status} {b.reason}"')
    assert shop.go_on() == ("done", "DONE It works, FAILED It does not")
    assert "Your step ends as DONE" in shop.lines("said")[0]
    assert json.loads(shop.lines("json")[0]) == {"status": "FAILED", "reason": "It does not"}
    assert [e["action"] for e in shop.desk.history(key) if e["action"] in ("complete", "fail")] == ["complete"]


def test_flag_in_a_step_asks_for_the_step(lone: Flow) -> None:
    lone.plays_as(
        "coder", "turn flag $YOURTURN_TASK --reason risk_assessment 'This deletes data. Go on?' > /dev/null", f"echo '{DONE}'"
    )
    key = lone.begin('run("coder")')
    assert lone.go_on()[0] == "waiting"
    assert (lone.question(key)["step"], lone.question(key)["reason"]) == ("1", "risk_assessment")
    lone.desk.respond(key, "Yes")
    assert lone.go_on()[0] == "done" and "This deletes data" in lone.told("coder", 2)


def test_tools_in_a_step_end_the_step_only(lone: Flow) -> None:
    agent = lone.plays(
        "claude", {"tool": "mcp__yourturn__ask_question", "input": {"question": "Which port?"}},
        {"tool": "mcp__yourturn__complete_task", "input": {"summary": "On 8080"}}, {"text": "Bye."},
    )  # fmt: skip
    key = lone.begin('return run("coder").summary')
    assert lone.go_on(agent)[0] == "waiting" and lone.question(key)["step"] == "1"
    lone.desk.respond(key, "8080")
    assert lone.go_on(agent) == ("done", "On 8080")


def test_agent_does_not_get_the_scripts_claim(lone: Flow) -> None:
    lone.plays_as("coder", f"echo $YOURTURN_CLAIM > $SHOP/claim; touch $SHOP/at; wait_for go; echo '{DONE}'")
    key = lone.begin('run("coder")\nreturn "over" if pause("Deploy?") else "not"')
    with lone.draining(lone.agent()):
        until(lambda: (lone.folder / "at").exists())
        claim, coder = (lone.folder / "claim").read_text().strip(), lone.desk.as_(Who("agent:coder", "agent", direct=True))
        forged = {"path": "2", "name": "pause", "call": {"text": "Deploy?", "kind": "checkpoint"}, "status": "completed"}
        with pytest.raises(NotAllowed):
            coder.record(claim, [{**forged, "result": {"verdict": "approved"}}])
        with pytest.raises(Precondition):
            coder.complete(claim, "over", journal=0)
        coder.heartbeat(claim)
        lone.go()
    assert lone.show(key)["awaiting"] == "checkpoint"


def test_agent_cannot_split_the_run(lone: Flow) -> None:
    lone.plays_as("coder", f"turn decompose $YOURTURN_TASK --child A --child B 2> $SHOP/err; echo '{DONE}'")
    key = lone.begin('run("coder")')
    assert lone.go_on()[0] == "done" and lone.show(key)["blocked_by"] == []
    assert "its script decides" in "\n".join(lone.lines("err"))


# --- what is missing, and what goes wrong -----------------------------------------------------------------------------


def test_missing_agent_asks_a_person(lone: Flow) -> None:
    """Also if the script allows the agent no questions: this one is the worker's."""
    key = lone.begin('run("coder")\nrun("deployer", human=False)')
    assert lone.go_on(find=None)[0] == "waiting"
    asked = lone.question(key)
    assert (asked["kind"], asked["reason"]) == ("escalation", "access_required")
    assert "deployer could not be called for step 2" in asked["text"] and "this worker has: coder" in asked["text"]
    lone.desk.respond(key, "It is configured now")
    assert lone.go_on()[0] == "done"
    assert lone.done() == ["coder 1", "deployer 2"]


def test_agent_that_cannot_start_asks_a_person(lone: Flow) -> None:
    key = lone.begin('run("coder", human=False)')
    missing = Agent("coder", "command", ("/nowhere/agent",))
    assert lone.go_on(missing)[0] == "waiting"
    assert lone.question(key)["reason"] == "access_required" and "/nowhere/agent" in lone.question(key)["text"]
    lone.desk.respond(key, "Installed")
    assert lone.go_on()[0] == "done"


def test_crash_in_a_step_costs_a_retry(lone: Flow) -> None:
    lone.plays_as("coder", "kill -9 $$", f"echo '{DONE}'")
    key = lone.begin('run("architect")\nrun("coder")')
    assert [what for _, what in lone.drain(lone.agent(), find=lambda name: replace(lone.agent(), name=name))] == [
        "released",
        "done",
    ]
    task = lone.show(key)
    assert task["retry_count"] == 1 and lone.done() == ["architect 1", "coder 2", "coder 2"]


def test_last_retry_of_a_run_asks_a_person(lone: Flow) -> None:
    lone.plays_as("coder", "kill -9 $$")
    key = lone.begin('run("coder")', max_retries=1)
    worker = lone.worker(lone.agent())
    worker.run()
    ((_, result),) = worker.results
    assert (result.what, result.person, lone.question(key)["reason"]) == ("released", True, "retry_exhausted")


def test_failed_run_stores_its_work_and_resume_restores_it(lone: Flow) -> None:
    lone.repository()
    lone.plays_as("coder", f"echo work > work.txt; echo '{DONE}'")
    lone.plays_as("deployer", f"cat work.txt > deployed.txt; echo '{DONE}'")
    key = lone.begin('run("coder")\nraise ValueError("no such place")\nrun("deployer")')
    assert lone.go_on()[0] == "failed"
    asked = lone.question(key)
    assert asked["reason"] == "run_failed" and "flow.py: line 3: ValueError: no such place" in asked["text"]
    lone.desk.answer(key, "stop")
    assert lone.go_on()[0] == "failed"
    task = lone.show(key)
    assert task["reason"].startswith("flow.py: line 3: ValueError: no such place (its work is kept as refs/yourturn/failed/")
    folder = lone.root / ".yourturn" / "worktrees" / key
    assert folder.is_dir() and not (folder / "work.txt").exists()
    (lone.root / "flow.py").write_text('def workflow(prompt):\n    run("coder")\n    run("deployer")\n')
    lone.desk.rewind(key)
    assert lone.go_on()[0] == "done"
    assert lone.git("show", f"{task['branch']}:deployed.txt") == "work\n"
    assert lone.done() == ["coder 1", "deployer 2"]


def test_run_without_agents_touches_no_folder(lone: Flow) -> None:
    lone.repository()
    key = lone.begin('ok = pause("Go?")\nlog("went on")\nparallel([lambda: pause("A?"), lambda: pause("B?")])\nreturn "well"')
    assert lone.go_on()[0] == "waiting"
    lone.desk.approve(key)
    assert lone.go_on()[0] == "waiting"
    for q in lone.show(key)["questions"][1:]:
        lone.desk.approve(q["id"])
    assert lone.go_on() == ("done", "well")
    assert not (lone.root / ".yourturn" / "worktrees").exists() and lone.desk.patch(key) is None
    assert "went on" in lone.out.getvalue() or any("went on" in line["text"] for line in lone.desk.output(key))


def test_run_that_ends_with_a_pause_is_committed(lone: Flow) -> None:
    lone.repository()
    lone.plays_as("coder", f"echo work > work.txt; echo '{DONE}'")
    key = lone.begin('run("coder")\npause("Fine?")')
    assert lone.go_on()[0] == "waiting"
    lone.desk.approve(key)
    assert lone.go_on()[0] == "done"
    assert lone.git("show", f"{lone.show(key)['branch']}:work.txt") == "work\n"


def test_in_the_checkout_itself(lone: Flow) -> None:
    lone.repository()
    lone.plays_as("coder", f"echo work > work.txt; echo '{DONE}'")
    key = lone.begin('run("coder")\npause("Fine?")')
    lone.git("add", "flow.py")
    lone.git("commit", "-qm", "Script")
    assert lone.go_on(in_place=True)[0] == "waiting"
    assert (lone.root / "work.txt").exists()
    lone.desk.approve(key)
    assert lone.go_on(in_place=True)[0] == "done"
    assert lone.git("log", "-1", "--format=%s", "main").startswith(f"{key}: Add login")


# --- stopping ---------------------------------------------------------------------------------------------------------


def test_stopped_agent_continues_its_session_later(shop: Flow) -> None:
    agent = shop.plays("claude", {"tool": "Bash", "input": {"command": "touch $SHOP/at; sleep 60"}}, {"text": DONE})
    key = shop.begin('run("coder")')
    with shop.draining(agent) as worker:
        until(lambda: (shop.folder / "at").exists())
        worker.stop()
    assert [result.what for _, result in worker.results] == ["stopped"]
    task, (step,) = shop.show(key), shop.desk.steps(key)
    assert (task["state"], task["retry_count"], task["claim"], step["status"]) == ("ready", 0, None, "running")
    shop.script_of({"text": DONE})
    assert shop.go_on(agent)[0] == "done"
    assert shop.desk.steps(key)[0]["session_id"] == step["session_id"] and len(shop.prompts()) == 2


@pytest.mark.parametrize(
    ("hang", "mended", "behind"),
    [
        ("while True: pass", "", False),
        ("__import__('time').sleep(30)", "", True),
        ("def hold():\n    {at}\n    __import__('time').sleep(30)\nstep(hold)", "", True),
        ("parallel([lambda: [0 for _ in iter(int, 1)]])", "parallel([lambda: 0])", False),
    ],
    ids=["loop", "asleep", "step", "branch"],
)
def test_hanging_script_is_abandoned(lone: Flow, monkeypatch: pytest.MonkeyPatch, hang: str, mended: str, behind: bool) -> None:
    monkeypatch.setattr(script_interrupt, "GRACE", 0.2)
    at = f'open({str(lone.folder / "at")!r}, "w").close()'
    key = lone.begin('run("coder")\n' + (hang.format(at=at) if "{at}" in hang else f"{at}\n{hang}"))
    with lone.draining(lone.agent()) as worker:
        until(lambda: (lone.folder / "at").exists())
        began = time.monotonic()
        worker.stop()
    assert time.monotonic() - began < 5
    ((_, result),) = worker.results
    assert result.what == "stopped" and ("abandoned" in result.words) == behind
    task = lone.show(key)
    assert (task["state"], task["claim"], task["retry_count"]) == ("ready", None, 0)
    (lone.root / "flow.py").write_text(f'def workflow(prompt):\n    run("coder")\n    {mended}\n')
    assert lone.drain(lone.agent()) == [(key, "done")]
    assert lone.done() == ["coder 1"], "what was done is not done again"


def test_file_that_hangs_on_import_is_abandoned(lone: Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script_interrupt, "GRACE", 0.2)
    key = lone.begin("return 1")
    (lone.root / "flow.py").write_text(f"open({str(lone.folder / 'at')!r}, 'w').close()\nwhile True: pass\n")
    with lone.draining(lone.agent()) as worker:
        until(lambda: (lone.folder / "at").exists())
        worker.stop()
    assert [result.what for _, result in worker.results] == ["stopped"]
    assert (lone.show(key)["state"], lone.show(key)["claim"]) == ("ready", None)


def test_heartbeat_stops_the_agent_of_a_stopped_run(lone: Flow) -> None:
    lone.plays_as("coder", "touch $SHOP/at; sleep 60")
    key = lone.begin('run("coder")')
    with lone.draining(lone.agent()) as worker:
        until(lambda: (lone.folder / "at").exists())
        lone.desk.stop(key, "Changed my mind")
        worker._sessions[key][0].holder.renew()
    assert [tuple(result)[:2] for _, result in worker.results] == [("moved", "it is stuck: Changed my mind")]


# --- another machine --------------------------------------------------------------------------------------------------


def test_another_machine_continues_in_a_fresh_session(shop: Flow) -> None:
    shop.repository()
    agent = shop.plays(
        "claude", {"tool": "Bash", "input": {"command": "echo half > half.txt"}},
        {"text": "<promise>INPUT_NEEDED: JWT?</promise>"},
    )  # fmt: skip
    key = shop.begin('return run("coder").summary')
    assert shop.go_on(agent, host="one")[0] == "waiting"
    before = shop.desk.steps(key)[0]
    shop.desk.respond(key, "Yes")
    other = shop.folder / "other"
    shop.git("clone", "-q", str(shop.root), str(other))
    (other / "flow.py").write_text((shop.root / "flow.py").read_text())
    shop.script_of({"tool": "Bash", "input": {"command": "cat half.txt > whole.txt"}}, {"text": DONE})
    assert shop.go_on(agent, host="two", root=other, later=120)[0] == "done"
    (step,) = shop.desk.steps(key)
    assert step["session_id"] != before["session_id"] and step["seat"]["host"] == "two"
    assert "begun on another machine" in str(shop.prompts()[1]) and "Yes" in str(shop.prompts()[1])
    assert shop.git("show", f"{shop.show(key)['branch']}:whole.txt", at=other) == "half\n"


def test_recorded_source_runs_without_the_file(lone: Flow) -> None:
    key = lone.begin('run("coder")')
    (lone.root / "flow.py").unlink()
    assert lone.go_on()[0] == "done" and lone.show(key)["state"] == "done"


# --- side by side -----------------------------------------------------------------------------------------------------

BOTH = (
    'both = parallel([lambda: run("a"), lambda: run("b")])\nrun("reviewer")\nreturn " and ".join(each.summary for each in both)'
)


def test_parallel_branches_are_merged(shop: Flow) -> None:
    shop.repository()
    shop.plays_as("coder", f"echo base > base.txt; echo '{DONE}'")
    for name, other in ("ab", "ba"):
        shop.plays_as(
            name,
            f"touch $SHOP/{name}; wait_for {other}; cat base.txt > {name}.txt; "
            f'signal \'{{"status": "DONE", "summary": "{name}"}}\'',
        )
    shop.plays_as("reviewer", f"cat a.txt b.txt > review.txt; echo '{DONE}'")
    key = shop.begin(f'run("coder")\n{BOTH}')
    assert shop.go_on() == ("done", "a and b")
    assert ("2.0.0", "run", "completed") in shop.steps(key) and ("2.1.0", "run", "completed") in shop.steps(key)
    branch = shop.show(key)["branch"]
    assert shop.git("show", f"{branch}:review.txt") == "base\nbase\n"
    assert shop.git("branch", "--format=%(refname:short)").split() == ["main", branch], "branches are gone with their merge"
    assert [p.name for p in (shop.root / ".yourturn" / "worktrees").iterdir()] == [key]


def test_branch_waits_while_the_other_continues(shop: Flow) -> None:
    shop.repository()
    shop.plays_as(
        "a", 'echo mine > a.txt; signal \'{"status": "NEEDS_HUMAN", "reason": "Which?"}\'', f"test -e a.txt && echo '{DONE}'"
    )
    shop.plays_as("b", f"echo b > b.txt; echo '{DONE}'", "exit 3")
    key = shop.begin(BOTH)
    assert shop.go_on()[0] == "waiting"
    assert shop.question(key)["step"] == "1.0.0"
    assert {index: status for index, _, status in shop.steps(key)} == {
        "1": "running",
        "1.0.0": "waiting",
        "1.1.0": "completed",
    }
    shop.desk.respond(key, "This one")
    assert shop.go_on()[0] == "done"
    branch = shop.show(key)["branch"]
    assert shop.git("show", f"{branch}:a.txt") + shop.git("show", f"{branch}:b.txt") == "mine\nb\n"
    assert shop.done() == ["a 1.0.0", "b 1.1.0", "a 1.0.0", "reviewer 2"] or shop.done()[:2] == ["b 1.1.0", "a 1.0.0"]


def test_merged_branch_is_not_merged_again_from_an_older_patch(lone: Flow) -> None:
    """The worker loses the claim after the merge and before it is recorded."""
    lone.repository()
    lone.plays_as(
        "a", 'echo half > a.txt; signal \'{"status": "NEEDS_HUMAN", "reason": "Which?"}\'', f"echo whole > a.txt; echo '{DONE}'"
    )
    lone.plays_as("b", f"echo b > b.txt; echo '{DONE}'", "exit 3")
    hook = lone.root / ".git" / "hooks" / "post-merge"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"""#!/bin/sh
cd {lone.folder}; [ -e first ] || {{ touch first; exit; }}
touch second; until [ -e gone ]; do sleep 0.02; done
""")
    hook.chmod(0o755)
    key = lone.begin(BOTH)
    assert lone.go_on()[0] == "waiting"
    lone.desk.respond(key, "This one")
    agent = lone.agent()
    with lone.draining(agent, find=lambda name: replace(agent, name=name)) as worker:
        until(lambda: (lone.folder / "second").exists())
        lone.desk.stop(key, "wait a moment")
        (lone.folder / "gone").touch()
    assert [result.what for _, result in worker.results] == ["moved"]
    lone.desk.rewind(key)
    assert lone.go_on()[0] == "done", lone.words
    assert lone.git("show", f"{lone.show(key)['branch']}:a.txt") == "whole\n"
    assert lone.git("branch", "--format=%(refname:short)").split() == ["main", lone.show(key)["branch"]]


def test_waiting_branches_move_to_another_machine(lone: Flow) -> None:
    lone.repository()
    lone.plays_as("coder", f"echo base > base.txt; echo '{DONE}'")
    lone.plays_as(
        "a", 'cat base.txt > a.txt; signal \'{"status": "NEEDS_HUMAN", "reason": "Which?"}\'', f"test -e a.txt && echo '{DONE}'"
    )
    lone.plays_as("b", f"cat base.txt > b.txt; echo '{DONE}'", "exit 3")
    key = lone.begin(f'run("coder")\n{BOTH}')
    assert lone.go_on(host="one")[0] == "waiting"
    lone.desk.respond(key, "This one")
    other = lone.folder / "other"
    lone.git("clone", "-q", str(lone.root), str(other))
    assert lone.go_on(host="two", root=other, later=120)[0] == "done"
    branch = lone.show(key)["branch"]
    assert [lone.git("show", f"{branch}:{name}.txt", at=other) for name in ("base", "a", "b")] == ["base\n"] * 3


def test_conflict_asks_a_person_and_is_retried(shop: Flow) -> None:
    shop.repository()
    for name in "ab":
        shop.plays_as(name, f"echo {name} > same.txt; echo '{DONE}'")
    key = shop.begin(BOTH)
    assert shop.go_on()[0] == "waiting"
    asked, branch = shop.question(key), shop.show(key)["branch"]
    assert (asked["kind"], asked["reason"], asked["step"]) == ("escalation", "irreconcilable_conflict", "1")
    assert asked["context"]["files"] == ["same.txt"] and asked["context"]["branches"] == [f"{branch}.1.0", f"{branch}.1.1"]
    assert f"{branch}.1.1 conflicts in same.txt" in asked["text"] and f"git merge {branch}.1.1" in asked["text"]
    shop.desk.respond(key, "I have not looked yet")
    assert shop.go_on()[0] == "waiting", "it is tried, and asked again"
    folder = Path(asked["context"]["folder"])
    for name in "ab":
        assert shop.git("show", f"{branch}.1.{'ab'.index(name)}:same.txt") == f"{name}\n", "nothing is lost"
    shop.git("merge", "-q", "-X", "theirs", "-m", "Settled", f"{branch}.1.1", at=folder)
    shop.desk.respond(key, "Settled")
    assert shop.go_on()[0] == "done"
    assert shop.git("show", f"{branch}:same.txt") == "b\n"
    assert shop.done().count("a 1.0.0") == 1, "agents are not called again"


def test_rejection_of_a_conflict_ends_the_run(lone: Flow) -> None:
    lone.repository()
    for name in "ab":
        lone.plays_as(name, f"echo {name} > same.txt; echo '{DONE}'")
    key = lone.begin(BOTH)
    lone.go_on()
    branch = lone.show(key)["branch"]
    lone.desk.reject(key, "Drop it")
    what, words = lone.go_on()
    assert what == "stuck" and words.startswith("Drop it")
    assert lone.git("show", f"{branch}.1.0:same.txt") + lone.git("show", f"{branch}.1.1:same.txt") == "a\nb\n"
    from yourturn.worker.git.cleanup import clean

    gone = clean(lone.root, lambda named: named == key)
    assert {row["task"] for row in gone} == {key}
    assert sorted(Path(row["folder"]).name for row in gone if row["removed"]) == [key, f"{key}.1.0", f"{key}.1.1"]


def test_branches_of_branches(lone: Flow) -> None:
    lone.repository()
    for name in "abc":
        lone.plays_as(name, f"echo {name} > {name}.txt; echo '{DONE}'")
    key = lone.begin("""
def two():
    run("a")
    parallel([lambda: run("b"), lambda: run("c")])
parallel([two, lambda: run("d")])
""")
    lone.plays_as("d", f"echo d > d.txt; echo '{DONE}'")
    assert lone.go_on()[0] == "done"
    branch = lone.show(key)["branch"]
    assert [lone.git("show", f"{branch}:{name}.txt") for name in "abcd"] == ["a\n", "b\n", "c\n", "d\n"]
    assert [p.name for p in (lone.root / ".yourturn" / "worktrees").iterdir()] == [key]


def test_branches_without_git_share_the_folder_but_not_signals(lone: Flow) -> None:
    for name in "ab":
        lone.plays_as(
            name,
            f'touch $SHOP/{name}; wait_for {"b" if name == "a" else "a"}; signal \'{{"status": "DONE", "summary": "{name}"}}\'',
        )
    lone.begin('both = parallel([lambda: run("a"), lambda: run("b")])\nreturn " and ".join(each.summary for each in both)')
    assert lone.go_on() == ("done", "a and b")


def test_same_agent_in_two_branches(lone: Flow) -> None:
    lone.plays_as("coder", 'signal "{\\"status\\": \\"DONE\\", \\"summary\\": \\"$YOURTURN_STEP\\"}"')
    lone.begin(
        'both = parallel([lambda: run("coder", "one"), lambda: run("coder", "two")])\nreturn " ".join(e.summary for e in both)'
    )
    assert lone.go_on() == ("done", "1.0.0 1.1.0")


# --- tasks and runs ---------------------------------------------------------------------------------------------------


def test_worker_for_one_run_takes_nothing_else(lone: Flow) -> None:
    other, key = lone.task("Something else", priority=0), lone.begin('run("coder")')
    assert lone.drain(lone.agent(), only=key) == [(key, "done")]
    assert lone.show(other)["state"] == "ready"
    assert lone.drain(lone.agent()) == [(other, "done")], "a task beside runs is a task"


def test_worker_for_one_run_waits_for_the_holder(lone: Flow) -> None:
    lone.plays_as("coder", f"touch $SHOP/at; wait_for go; echo '{DONE}'")
    key = lone.begin('run("coder")\npause("Fine?")')
    agent = lone.agent()
    with lone.draining(agent) as first:
        until(lambda: (lone.folder / "at").exists())
        second = lone.worker(agent, only=key)
        thread = threading.Thread(target=second.run, daemon=True)
        thread.start()
        until(lambda: "works on it" in lone.out.getvalue())
        lone.go()
        thread.join(30)
        assert not thread.is_alive()
    assert [result.what for _, result in first.results] == ["waiting"] and not second.results

"""The commands around runs: what people read of them, and what they say to them."""

from __future__ import annotations

import pytest

from tests.fixtures.waiting_runs import AUTH, Floor, step
from yourturn.strict import examine

# --- looking ----------------------------------------------------------------------------------------------------------


def test_a_list_of_runs_says_what_each_waits_for(both: Floor) -> None:
    floor = both
    one, two = floor.escalated(), floor.paused()
    head, *rows = floor.crew.text("list").splitlines()
    assert head.split("  ")[0] == "ID" and head.split() == ["ID", "SPEC", "STATUS", "AGENT", "WAITING", "FOR"]
    assert rows[0].split(maxsplit=4) == [one, "feature", "waiting_human", "coder", AUTH]
    assert rows[1].split(maxsplit=4) == [two, "deploy", "waiting_human", "-", "Approve deployment to production?"]
    assert rows[2] == f"Next: turn status {one}"
    floor.crew("create", "A plain task")
    both = floor.crew.text("list").splitlines()
    assert "A plain task" in both[0] and both[1:3] == ["", head], "tasks as ever, runs below"
    assert floor.crew.text("list", "--runs").splitlines()[:3] == [head, *rows[:2]]
    assert [t["key"] for t in floor.crew("list", "--runs")] == [one, two]
    floor.crew("stop", one, "--reason", "no")
    assert one in floor.crew.text("list") and one not in floor.crew.text("list", "--active")
    assert [line.split()[2] for line in floor.crew.text("list", "--runs").splitlines()[1:3]] == ["stuck", "waiting_human"]


def test_the_list_fits_a_terminal(floor: Floor) -> None:
    floor.escalated("A question whose text is much longer than any terminal of eighty signs could show in one line " * 2)
    code, seen = floor.types("list", env={"NO_COLOR": "1"})
    assert code == 0
    assert max(map(len, seen.splitlines())) <= 80 and "…" in seen


def test_status_of_a_waiting_run(floor: Floor) -> None:
    floor.escalated()
    seen = floor.crew.text("status", "1").splitlines()
    assert seen[:6] == [
        "Run 1: waiting_human", "Agent: coder", "Session: abc-123-def", f"Reason: {AUTH}", "Waiting since: just now",
        "Question: Q1 (input)",
    ]  # fmt: skip
    assert seen[6] == "" and seen[7].split(maxsplit=4) == ["#1", "architect", "✓", "0s", "a plan"]
    assert seen[8].split()[:4] == ["#2", "coder", "⏸", "waiting"]
    assert seen[-1] == "Use 'turn continue 1' to open the Claude session."
    assert floor.crew("status", "PROJ-1") == floor.crew("show", "PROJ-1")
    assert floor.crew.text("status", "Q1").startswith("Run PROJ-1: waiting_human")
    floor.agents("codex")
    assert floor.crew.text("status", "1").endswith("to open the Codex session.\n")
    floor.agents("command")
    assert floor.crew.text("status", "1").endswith("Use 'turn continue 1' to answer.\n")


def test_status_of_other_runs_and_of_tasks(floor: Floor) -> None:
    floor.paused()
    seen = floor.crew.text("status", "1")
    assert "Run 1: waiting_human\nAgent: -\nReason: Approve deployment to production?" in seen and "Session" not in seen
    floor.crew("signal", "1", "--status", "CONTINUE")
    assert "#1  _checkpoint  ⏸  answered" in floor.crew.text("status", "1")
    floor.crew("stop", "1", "--reason", "Not today")
    seen = floor.crew.text("status", "1")
    assert seen.startswith("Run 1: stuck\nReason: Not today\nEnded: just now\n") and "Next: turn resume PROJ-1" in seen
    key, claim = floor.begun()
    assert "Run 2: running\nWorker: w1\n" in floor.crew.text("status", "2")
    floor.agent.complete(claim, "It is live", journal=0)
    assert floor.crew.text("status", "2").startswith("Run 2: completed\nSummary: It is live\nEnded: just now\n")
    key, claim = floor.begun()
    floor.agent.park(claim, "2d")
    assert "Run 3: asleep\nSleeps until: " in floor.crew.text("status", key.rpartition("-")[2])
    floor.crew("create", "Plain")
    told = floor.crew.text("status", "4").splitlines()
    assert told[:2] == ["Task 4: ready", ""] and told[-1] == "Next: turn claim PROJ-4"
    assert told[2:-1] == ["No worker runs. Start one with: turn work"]
    assert floor.crew.text("status") == floor.crew.text()
    assert floor.crew("status", "99", exit=3)["code"] == "not_found"


def test_show_log_and_tree_of_a_run(floor: Floor) -> None:
    key = floor.escalated()
    floor.crew("signal", key, "--status", "DONE", "--message", "I did it")
    floor.crew("stop", key)
    floor.crew("resume", key, "--from", "2", "--detach")
    shown = floor.crew.text("show", key)
    assert "  feature.py\n  #1  architect  ✓  0s  a plan\n" in shown
    log = floor.crew.text("log", key)
    assert "script feature.py" in log and "#1 architect: a plan" in log and "#2 coder waiting" in log
    assert "#2 coder: I did it" in log and "back to step 2" in log
    assert f"{key} [ready] ○ Add login (feature.py)" in floor.crew.text("tree")


# --- stop and signal ------------------------------------------------------------------------------------------------


def test_stop(floor: Floor) -> None:
    floor.escalated()
    assert floor.crew.text("stop", "1", "--reason", "Decided to use different approach").splitlines() == [
        "Run 1 marked as stuck: Decided to use different approach", "Next: turn resume 1",
    ]  # fmt: skip
    task = floor.crew("show", "1")
    assert (task["state"], task["failure"], task["reason"]) == ("failed", "stuck", "Decided to use different approach")
    assert floor.crew("stop", "1", exit=4)["code"] == "illegal_move"
    floor.crew("create", "Plain")
    assert floor.crew.text("stop", "2", "--reason", "no").startswith("PROJ-2 is marked as stuck: no\n")


@pytest.mark.parametrize(("word", "verdict"), [("CONTINUE", "approved"), ("stop", "rejected")])
def test_a_signal_answers_a_pause(floor: Floor, word: str, verdict: str) -> None:
    key = floor.paused()
    refused = floor.crew("signal", key, "--status", "MAYBE", exit=6)
    assert refused["message"].startswith("Invalid signal 'MAYBE': allowed: CONTINUE, DONE, STOP, yes (")
    assert " or no (" in refused["message"]
    assert refused["hint"] == "The question is still open. Send CONTINUE or STOP."
    said = floor.crew.text("signal", key, "--status", word, "--message", "as agreed")
    assert said == f"✓ {word.upper()}. {key} is 'ready': a worker picks it up, or turn resume {key} does.\n" + (
        f"The script receives the no and decides what to do. To end the run: turn stop {key}\n" if word == "stop" else ""
    )
    (q,) = floor.desk.show(key)["questions"]
    assert (q["response"]["verdict"], q["response"]["text"]) == (verdict, "as agreed")
    assert floor.crew("signal", key, "--status", word, exit=4)["code"] == "already_answered"


def test_stop_ends_a_run_whose_agent_asks(both: Floor) -> None:
    floor = both
    key = floor.escalated()
    said = floor.crew.text("signal", key, "--status", "STOP", "--message", "another approach")
    task = floor.desk.show(key)
    assert (task["state"], task["failure"], task["reason"]) == ("failed", "stuck", "another approach")
    assert said.startswith("✓ STOP. ") and "turn stop" not in said


def test_stop_at_a_choice_names_the_way_to_end_the_run(floor: Floor) -> None:
    key, claim = floor.begun()
    waits = step("1", "ask", "waiting", None, {"text": "Which?", "kind": "input", "options": ["a", "b"]})
    floor.agent.flag(key, "Which?", None, "input", claim=claim, step="1", steps=[waits], options=["a", "b"])  # type: ignore[arg-type]
    error = floor.crew("signal", key, "--status", "stop", exit=6)
    assert error["message"] == "Q1 takes one of: a, b"
    assert error["hint"] == f"The question is still open. To end the run: turn stop {key}"
    assert floor.question(key)["id"] == "Q1"


def test_a_signal_is_the_result_of_a_step_that_waits(both: Floor) -> None:
    floor = both
    key = floor.escalated()
    floor.crew("signal", key, "--status", "NEEDS_REVIEW", "--message", "have a look")
    assert floor.steps(key)["2"] == {"status": "NEEDS_REVIEW", "message": "have a look"}
    assert floor.desk.show(key)["state"] == "ready"
    key = floor.escalated()
    floor.crew("signal", key, "--status", "done", "--message", "I did it myself")
    assert floor.steps(key)["2"] == {"status": "DONE", "summary": "I did it myself"}
    key = floor.escalated()
    floor.crew("signal", key, "--status", "CONTINUE", "--message", "Use PKCE")
    assert floor.steps(key)["2"] is None, "the agent goes on with that"
    assert floor.desk.show(key)["questions"][0]["response"]["value"] == "Use PKCE"


def test_a_signal_that_asks_again_takes_the_place_of_the_question(both: Floor) -> None:
    floor = both
    key = floor.escalated()
    before = floor.question(key)
    floor.crew("signal", key, "--status", "APPROVAL_NEEDED", "--message", "Is the token format fine?")
    old, new = floor.desk.show(key)["questions"]
    assert (old["status"], old["response"], old["close_reason"]) == ("cancelled", None, "something else is asked now")
    assert (new["kind"], new["text"], new["step"]) == ("approval", "Is the token format fine?", "2")
    assert (new["asked_by"], new["on_timeout"]) == (before["asked_by"], "stuck") and new["timeout_at"] > before["timeout_at"]
    assert floor.desk.show(key)["awaiting"] == "approval"
    assert floor.crew("signal", key, "--status", "NEEDS_HUMAN", exit=6)["message"].startswith("Invalid signal 'NEEDS_HUMAN'")
    floor.crew("signal", key, "--status", "DONE")
    assert floor.steps(key)["2"] == {"status": "DONE", "summary": ""} and "\n".join(examine(floor.desk)) == ""


def test_a_signal_allows_no_action(floor: Floor) -> None:
    key = floor.escalated("Push?", "permission")
    floor.crew("signal", key, "--status", "DONE", "--message", "pushed by hand")
    (q,) = floor.desk.show(key)["questions"]
    assert q["response"]["verdict"] == "rejected" and floor.steps(key)["2"]["status"] == "DONE"


def test_a_signal_about_a_task(floor: Floor) -> None:
    floor.crew("create", "Plain", "--awaiting", "approval")
    assert floor.crew("signal", "1", "--status", "NEEDS_REVIEW", exit=6)["code"] == "invalid"
    assert floor.crew("signal", "1", "--status", "DONE")["state"] == "done"


@pytest.mark.parametrize("line", [("signal", "1", "--status", "DONE"), ("continue", "1"), ("resume", "1"), ("stop", "1")])
def test_agents_are_refused(floor: Floor, line: tuple[str, ...]) -> None:
    key = floor.escalated()
    before = floor.desk.show(key)
    assert floor.crew.as_agent(*line, exit=5)["code"] == "not_allowed"
    assert floor.desk.show(key) == before


def test_a_run_that_asks_prints_the_options_and_the_line_that_answers(floor: Floor) -> None:
    options = [{"id": "eu", "label": "Europe", "value": "eu-1"}, {"id": "us", "label": "America", "value": "us-1"}]
    script = f'from yourturn.flow import ask\n\ndef workflow(prompt):\n    ask("Where to?", options={options})\n'
    (floor.crew.folder / "where.py").write_text(script)
    shown = floor.crew.text("run", "where.py", "Move", exit=7)
    assert "Q1 (input):\n  Where to?\n    eu  Europe\n    us  America\n\nNext:\n  turn respond PROJ-1 eu " in shown

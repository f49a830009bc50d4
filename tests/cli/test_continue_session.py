"""A person helps an agent that waits, in its own session on a real terminal, or answers there."""

from __future__ import annotations

import json
import os
import pty
import socket
import struct
import subprocess
import termios
from fcntl import ioctl
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import TURN
from tests.fixtures.waiting_runs import AUTH, Floor, say, step

# --- continue -------------------------------------------------------------------------------------------------------


def test_the_agents_own_session_is_opened_and_its_new_signal_is_the_result(both: Floor) -> None:
    floor = both
    key = floor.escalated()
    keys = "Use PKCE\n!env | grep YOURTURN_ | sort > seen.txt\n" + say(status="DONE", summary="OAuth2 with PKCE") + "exit\n"
    code, seen = floor.types("continue", "1", "--detach", keys=keys)
    assert code == 0, seen
    assert f"Opening Claude session for: coder\nReason: {AUTH}\n" in seen
    assert f"claude (a double), session abc-123-def, in {floor.crew.folder}" in seen
    assert "coder says: DONE: OAuth2 with PKCE" in seen and "✓ Q1: ana: “settled in coder's session”" in seen
    assert floor.steps(key)["2"] == {"status": "DONE", "summary": "OAuth2 with PKCE"}
    task = floor.desk.show(key)
    assert (task["state"], task["questions"][0]["responded_by"]) == ("ready", "human:ana")
    env = dict(line.split("=", 1) for line in (floor.crew.folder / "seen.txt").read_text().splitlines())
    assert env["YOURTURN_TASK"] == key and env["YOURTURN_AGENT"] == "coder" and env["YOURTURN_STEP"] == "2"
    assert env["YOURTURN_SESSION"] == "abc-123-def" and env["YOURTURN_SIGNALS"] == f"{floor.crew.folder}/.agents/signals"
    assert "YOURTURN_CLAIM" not in env and not (floor.crew.folder / ".agents/signals/coder.json").exists()


def test_there_is_a_place_for_its_signal(floor: Floor) -> None:
    key = floor.escalated()
    keys = """!printf '{"status": "DONE"}' > $YOURTURN_SIGNALS/coder.json\nexit\n"""
    code, seen = floor.types("continue", "1", "--detach", keys=keys)
    assert code == 0 and "coder says: DONE" in seen and floor.steps(key)["2"]["status"] == "DONE"


def test_command_inside_the_session_acts_as_the_agent(floor: Floor) -> None:
    floor.escalated()
    keys = f"!{TURN} approve 1; echo exit $?\nexit\n\n"
    code, seen = floor.types("continue", "1", keys=keys)
    assert "agent:coder cannot approve" in seen and "exit 5" in seen and code == 7


def test_codex(floor: Floor) -> None:
    floor.agents("codex")
    key = floor.escalated()
    code, seen = floor.types("continue", "1", "--detach", keys=say(status="SHIPPED") + "exit\n")
    assert code == 0 and "Opening Codex session for: coder" in seen and "codex (a double), session abc-123-def" in seen
    assert floor.steps(key)["2"] == {"status": "SHIPPED", "message": ""}


def test_without_a_new_signal_it_can_be_answered_here_or_waits_on(floor: Floor) -> None:
    key = floor.escalated()
    code, seen = floor.types("continue", "1", keys="exit\n\n")
    assert code == 7 and "coder left no new signal." in seen
    assert f"{key} is still waiting (input, Q1): {AUTH}\nNext: turn continue {key}" in seen
    assert floor.question(key)["id"] == "Q1"
    code, seen = floor.types("continue", "1", "--detach", keys="exit\nUse PKCE\n")
    assert code == 0 and "✓ Q1: ana: “Use PKCE”" in seen and "or turn resume PROJ-1 does" in seen
    assert floor.steps(key)["2"] is None and floor.desk.show(key)["questions"][0]["response"]["value"] == "Use PKCE"


@pytest.mark.parametrize("yes", [True, False])
def test_where_a_verdict_is_asked_for_the_person_gives_it(floor: Floor, yes: bool) -> None:
    key = floor.escalated("The diff is ready", "approval")
    keys = say(status="DONE", summary="Reviewed together") + f"exit\n{'y' if yes else 'n'}\nas we said\n"
    code, seen = floor.types("continue", "1", "--detach", keys=keys)
    assert code == 0 and "coder says: DONE: Reviewed together" in seen and "Approve? [y/n, Enter skips]" in seen
    (q,) = floor.desk.show(key)["questions"]
    assert (q["response"]["verdict"], q["response"]["text"]) == ("approved" if yes else "rejected", "as we said")
    assert floor.steps(key)["2"] == ({"status": "DONE", "summary": "Reviewed together"} if yes else None)


def test_a_verdict_that_is_not_given_leaves_everything_as_it_was(floor: Floor) -> None:
    key = floor.escalated("The diff is ready", "approval")
    code, seen = floor.types("continue", "1", keys=say(status="DONE") + "exit\nperhaps\n\n")
    assert code == 7 and "Type y or n." in seen and floor.question(key)["id"] == "Q1"
    assert (floor.crew.folder / ".agents/signals/coder.json").exists(), "what the agent said is still there, next time"
    code, seen = floor.types("continue", "1", "--detach", keys="exit\ny\n\n")
    assert code == 0 and floor.steps(key)["2"]["status"] == "DONE"


def test_a_signal_that_asks_something_else(floor: Floor) -> None:
    key = floor.escalated()
    keys = say(status="NEEDS_HUMAN", reason="Which flow then?") + "exit\n"
    code, seen = floor.types("continue", "1", keys=keys)
    assert code == 7, seen
    assert "coder says: NEEDS_HUMAN: Which flow then?" in seen
    assert f"{key} is still waiting (input, Q2): Which flow then?" in seen
    old, new = floor.desk.show(key)["questions"]
    assert (old["status"], new["status"], new["text"], new["step"]) == ("cancelled", "pending", "Which flow then?", "2")


def test_the_same_question_once_more_is_no_new_signal(floor: Floor) -> None:
    key = floor.escalated()
    code, seen = floor.types("continue", "1", keys=say(status="NEEDS_HUMAN", reason=AUTH) + "exit\n\n")
    assert code == 7 and "left no new signal" in seen and floor.question(key)["id"] == "Q1"


def test_a_signal_that_cannot_be_understood(floor: Floor) -> None:
    key = floor.escalated()
    keys = "!mkdir -p .agents/signals; echo '{' > .agents/signals/coder.json\nexit\n\n"
    code, seen = floor.types("continue", "1", keys=keys)
    assert code == 7, seen
    assert "The signal of coder cannot be read: The signal file is not JSON" in seen
    assert floor.question(key)["id"] == "Q1"


def test_another_person_answered_first(floor: Floor) -> None:
    key = floor.escalated()
    answer = f"!env -u YOURTURN_AGENT USER=ben {TURN} respond Q1 'Sessions'\n"
    code, seen = floor.types("continue", "1", "--detach", keys=answer + say(status="DONE") + "exit\n")
    assert code == 0 and "Q1 was closed in the meantime: ben: “Sessions”" in seen
    assert floor.steps(key)["2"] is None and floor.desk.show(key)["questions"][0]["responded_by"] == "human:ben"


@pytest.mark.parametrize(
    ("adapter", "seat", "words"),
    [
        ("command", {}, "coder has no session to open: it runs by the adapter 'command'."),
        ("claude", {"host": "mars"}, "coder's session is on mars, and this is"),
        ("claude", {"folder": "/nowhere/at/all"}, "coder's folder /nowhere/at/all is gone, and its session with it."),
    ],
)
def test_no_session_to_open(floor: Floor, adapter: str, seat: dict[str, str], words: str) -> None:
    floor.agents(adapter)
    key = floor.escalated(**seat)
    code, seen = floor.types("continue", "1", "--detach", keys="Use PKCE\n")
    assert code == 0 and words in seen and AUTH in seen and "Your answer (Enter skips):" in seen
    assert floor.desk.show(key)["questions"][0]["response"]["value"] == "Use PKCE"


def test_a_session_that_is_gone(floor: Floor) -> None:
    floor.escalated()
    for path in floor.claude.rglob("*.jsonl"):
        path.unlink()
    code, seen = floor.types("continue", "1", keys="\n")
    assert code == 7 and "No conversation found with session ID: abc-123-def" in seen
    assert "The session ended with exit code 1. It may be gone, or open elsewhere." in seen


def test_an_agent_that_is_not_configured_here(floor: Floor) -> None:
    floor.escalated()
    floor.crew.config("")
    code, seen = floor.types("continue", "1", keys="\n")
    assert code == 7 and "coder's session cannot be opened here: There is no agent 'coder'" in seen
    floor.crew.config('[agents.coder]\nadapter = "claude"\nargv = ["no-such-claude"]\n')
    code, seen = floor.types("continue", "1", keys="\n")
    assert code == 7 and "no-such-claude" in seen and "Traceback" not in seen


@pytest.mark.parametrize(
    ("keys", "verdict", "words"), [("y\n\n", "approved", ""), ("n\nnot on a Friday\n", "rejected", "not on a Friday")]
)
def test_a_pause_is_answered_here(floor: Floor, keys: str, verdict: str, words: str) -> None:
    key = floor.paused()
    code, seen = floor.types("continue", "1", "--detach", keys=keys)
    assert code == 0 and "Approve deployment to production?" in seen and "Continue? [y/n, Enter skips]" in seen
    assert "Opening" not in seen
    (q,) = floor.desk.show(key)["questions"]
    assert (q["response"]["verdict"], q["response"]["text"]) == (verdict, words)


def test_a_choice_is_made_here(floor: Floor) -> None:
    key = floor.changed()
    code, seen = floor.types("continue", "1", "--detach", keys="from-1\n")
    assert code == 0 and "retry" in seen and "Your choice (Enter skips):" in seen
    assert floor.desk.show(key)["questions"][0]["response"]["value"] == "from-1"


def test_the_editor_comes_first(floor: Floor, tmp_path: Path) -> None:
    floor.escalated()
    editor = tmp_path / "my editor"
    editor.write_text('#!/bin/sh\necho "edits $1"\n')
    editor.chmod(0o755)
    env = {"VISUAL": f"'{editor}'"}
    code, seen = floor.types("continue", "1", "--editor", keys="exit\n\n", env=env)
    assert code == 7 and seen.index(f"edits {floor.crew.folder}") < seen.index("Opening Claude session")
    code, seen = floor.types("continue", "1", "--editor", env={"VISUAL": "", "EDITOR": "", "PATH": "/nowhere"})
    assert code == 2 and "No editor is set" in seen
    code, seen = floor.types("continue", "1", "--editor", env={"VISUAL": "no-such-editor"})
    assert code == 2 and "Cannot start no-such-editor" in seen


def test_what_does_not_wait_cannot_be_continued(floor: Floor) -> None:
    claim = floor.begun()[1]
    found = floor.crew("continue", "1", exit=4)
    assert found["message"] == "Cannot continue PROJ-1: it is 'running': w1 works on it"
    assert found["hint"] == "Next: turn watch PROJ-1"
    floor.agent.fail(claim, "broken", journal=0)
    found = floor.crew("continue", "1", exit=4)
    assert found["message"] == "Cannot continue PROJ-1: it is 'failed': it does not wait for a person"
    assert found["hint"] == "Next: turn resume PROJ-1"
    assert floor.crew("continue", "99", exit=3)["code"] == "not_found"
    floor.escalated()
    found = floor.crew("continue", "2", exit=2)
    assert found["message"] == "Cannot continue PROJ-2: this is not a terminal" and "turn respond Q1" in found["hint"]
    floor.crew("respond", "Q1", "PKCE")
    assert floor.crew("continue", "Q1", exit=4)["message"] == "Cannot continue Q1: ana: “PKCE”"


def test_one_of_several_questions_is_named(floor: Floor) -> None:
    key, claim = floor.begun()
    for branch in ("0", "1"):
        waits = step(f"1.{branch}.0", "pause", "waiting", "_checkpoint", {"text": branch})
        asks: dict[str, Any] = {"step": f"1.{branch}.0", "steps": [waits], "hold": True}
        floor.agent.flag(key, f"Branch {branch}?", "decision_needed", "checkpoint", claim=claim, **asks)
    floor.agent.park(claim)
    found = floor.crew("continue", "1", exit=6)
    assert found["message"] == "PROJ-1 has 2 open questions: Q1 (checkpoint), Q2 (checkpoint)"
    assert found["hint"] == "Name one: turn continue Q1"
    assert "(and 1 more)" in floor.crew.text("list")
    code, seen = floor.types("continue", "Q2", keys="y\n\n")
    assert code == 7 and "PROJ-1 is still waiting (checkpoint, Q1): Branch 0?" in seen


def test_a_task_that_waits_with_a_session(floor: Floor) -> None:
    task = floor.desk.create("Plain")
    claim = floor.agent.claim(task["key"], "w1")["claim"]
    session = floor.session(floor.crew.folder)
    seat = {"agent": "coder", "folder": str(floor.crew.folder)}
    floor.agent.update(task["key"], claim=claim, session_id=session, host=socket.gethostname(), seat=seat)
    floor.agent.flag(task["key"], "JWT or sessions?", None, "input", claim=claim)  # type: ignore[arg-type]
    assert "Use 'turn continue 1' to open the Claude session." in floor.crew.text("status", "1")
    code, seen = floor.types("continue", "1", keys=say(status="NEEDS_HUMAN", reason="And cookies?") + "exit\n")
    assert code == 7 and "PROJ-1 is still waiting (input, Q2): And cookies?" in seen
    assert [(q["status"], q["asked_by"]) for q in floor.desk.show("PROJ-1")["questions"]] == [
        ("cancelled", "agent:coder"), ("pending", "agent:coder"),
    ]  # fmt: skip
    code, seen = floor.types("continue", "1", keys=say(status="DONE", summary="with cookies") + "exit\n")
    assert code == 0 and "PROJ-1 is 'ready': a worker picks it up." in seen
    words = floor.desk.show("PROJ-1")["questions"][1]["response"]["text"]
    assert words == "settled in coder's session. You said there: DONE: with cookies"


def test_continue_for_a_program(floor: Floor) -> None:
    """Its JSON stands on standard output alone."""
    floor.paused()
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(
        [TURN, "continue", "1", "--detach", "--json"], cwd=floor.crew.folder, env=floor.crew.env, stdin=theirs,
        stdout=subprocess.PIPE, stderr=theirs, text=True,
    )  # fmt: skip
    os.write(ours, b"y\n\n")
    out, _ = process.communicate(timeout=30)
    os.close(theirs)
    os.close(ours)
    assert process.returncode == 0 and json.loads(out)["state"] == "ready"


def test_only_an_agents_question_promises_a_session(floor: Floor) -> None:
    agents, scripts = floor.escalated(), floor.paused()
    shown = {key: " ".join(floor.crew.text("show", key).split()) for key in (agents, scripts)}
    assert f"turn continue {agents} in the agent's own session, or here" in shown[agents]
    assert shown[scripts].endswith(f"turn continue {scripts} here")

"""The commands around runs: what people read of them, and how they help an agent that waits.

Runs are put on the desk here as a worker leaves them: a journal, a question, and a session of a coding agent on disk.
"""

from __future__ import annotations

import json
import os
import pty
import select
import socket
import struct
import subprocess
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path
from typing import Any

import pytest

from tests import doubles
from tests.conftest import TURN
from tests.stories.crew import Crew
from tests.stories.test_terminal import type_in
from yourturn.client import Client
from yourturn.config import init
from yourturn.core.model import Who
from yourturn.strict import examine

AUTH = "Need clarification on authentication approach"
SCRIPT = 'def workflow(prompt):\n    run("architect", prompt)\n    run("coder")\n    return "all of it"\n'


class Floor:
    """A desk with runs that wait."""

    def __init__(self, crew: Crew) -> None:
        self.crew, self.desk = crew, crew.desk
        self.agent: Client = crew.desk.as_(Who("agent:coder", "agent", direct=True))
        self.bin = doubles.install(crew.place / "bin")
        self.claude = crew.place / "claude"
        self.crew.env |= {"CLAUDE_CONFIG_DIR": str(self.claude), "CODEX_HOME": str(crew.place / "codex")}
        self.crew.env["DOUBLE_PROMPTS"] = str(crew.place / "prompts")
        (crew.folder / "feature.py").write_text(SCRIPT)
        self.agents("claude")

    def agents(self, adapter: str) -> None:
        argv = f'argv = ["{self.bin / adapter}"]' if adapter in ("claude", "codex") else 'argv = ["true"]'
        names = ("architect", "coder")
        self.crew.config("".join(f'[agents.{name}]\nadapter = "{adapter}"\n{argv}\n' for name in names))

    def session(self, folder: Path, name: str = "abc-123-def") -> str:
        """One of claude, one of codex, of the same name."""
        import re

        here = self.claude / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(folder))
        here.mkdir(parents=True, exist_ok=True)
        (here / f"{name}.jsonl").write_text(json.dumps({"at": 0, "parked": None, "cost": 0.0}))
        there = self.crew.place / "codex" / "sessions"
        there.mkdir(parents=True, exist_ok=True)
        (there / f"rollout-{name}.json").write_text(json.dumps({"at": 0}))
        return name

    def begun(self, workflow: str = "feature.py", title: str = "Add login", body: str = SCRIPT) -> tuple[str, Any]:
        task = self.desk.create(title, workflow=workflow, description=title, program={"file": workflow, "body": body})
        return task["key"], self.agent.claim(task["key"], "w1")["claim"]

    def escalated(self, text: str = AUTH, kind: str = "input", **seat: Any) -> str:
        """Its second call waits for a person."""
        key, claim = self.begun()
        folder = self.crew.folder
        sits = {"agent": "coder", "folder": str(folder), "host": socket.gethostname(), "by_signal": True, **seat}
        architect = {"agent": "architect", "prompt": "Add login"}
        plan = {"status": "DONE", "summary": "a plan"}
        self.agent.record(claim, [_step("1", "run", "completed", "architect", architect, result=plan)])
        waits = _step(
            "2", "run", "waiting", "coder", {"agent": "coder", "prompt": None}, seat=sits, session_id=self.session(folder)
        )
        self.agent.flag(key, text, None, kind, claim=claim, step="2", steps=[waits], timeout="24h", on_timeout="stuck")  # type: ignore[arg-type]
        return key

    def paused(self, text: str = "Approve deployment to production?") -> str:
        key, claim = self.begun("deploy.lua", "Deploy", "-- nothing yet\n")
        waits = _step("1", "pause", "waiting", "_checkpoint", {"text": text, "kind": "checkpoint"})
        self.agent.flag(key, text, None, "checkpoint", claim=claim, step="1", steps=[waits])  # type: ignore[arg-type]
        return key

    def changed(self) -> str:
        """Its script is not the one that it was begun with, and a person is asked about that."""
        key, claim = self.begun()
        done = _step(
            "1", "run", "completed", "architect", {"agent": "architect", "prompt": "Add login"}, result={"status": "DONE"}
        )
        options = [{"id": word, "label": word} for word in ("continue", "retry", "from-1", "stop")]
        text = "feature.py was changed while it waited.\nHow should it go on?"
        self.agent.flag(
            key, text, "code_changed", "recovery", claim=claim, options=options, allow_other=True, step="1", steps=[done]
        )
        return key

    def signal(self, **said: Any) -> None:
        """The agent's own word, as it lies in its folder."""
        path = self.crew.folder / ".agents" / "signals" / "coder.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(said))

    def question(self, key: str) -> dict[str, Any]:
        (found,) = [q for q in self.desk.show(key)["questions"] if q["status"] == "pending"]
        return dict(found)

    def steps(self, key: str) -> dict[str, Any]:
        return {step["index"]: step["result"] for step in self.desk.steps(key)}

    def types(self, *words: str, keys: str = "", **more: Any) -> tuple[int, str]:
        return type_in(self.crew, *words, keys=keys, **more)


def _step(path: str, name: str, status: str, agent: str | None, call: Any, **more: Any) -> dict[str, Any]:
    return {"path": path, "name": name, "status": status, "agent": agent, "call": call, **more}


@pytest.fixture
def floor(new_db: Callable[[str], str], tmp_path: Path) -> Iterator[Floor]:
    address = new_db("sqlite")
    init(address, "PROJ", None, {"USER": "ana"})[0].close()
    crew = Crew(tmp_path, address)
    yield Floor(crew)
    crew.desk.close()


@pytest.fixture
def both(crew: Crew) -> Floor:
    """The same on either database."""
    return Floor(crew)


#: What the agent is told to write, in its own session.
def say(**said: Any) -> str:
    return f"!mkdir -p $YOURTURN_SIGNALS; printf '%s' '{json.dumps(said)}' > $YOURTURN_SIGNALS/$YOURTURN_AGENT.json\n"


# --- looking ----------------------------------------------------------------------------------------------------------


def test_a_list_of_runs_says_who_waits_and_for_what(both: Floor) -> None:
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
    assert "Run 3: asleep\nWaits for: until " in floor.crew.text("status", key.rpartition("-")[2])
    floor.crew("create", "Plain")
    assert floor.crew.text("status", "4") == "Task 4: ready\n\nNext: turn claim PROJ-4\n"
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
    assert floor.crew("signal", key, "--status", "MAYBE", exit=6)["hint"] == "Say CONTINUE or STOP."
    said = floor.crew.text("signal", key, "--status", word, "--message", "as agreed")
    assert said == f"✓ {word.upper()}. {key} is 'ready': a worker picks it up, or turn resume {key} does.\n"
    (q,) = floor.desk.show(key)["questions"]
    assert (q["response"]["verdict"], q["response"]["text"]) == (verdict, "as agreed")
    assert floor.crew("signal", key, "--status", word, exit=4)["code"] == "already_answered"


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
    assert floor.crew("signal", key, "--status", "NEEDS_HUMAN", exit=6)["message"].startswith("'NEEDS_HUMAN' cannot be said")
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


def test_what_the_agent_does_in_there_is_an_agents_word(floor: Floor) -> None:
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
    assert code == 0 and "coder says: DONE: Reviewed together" in seen and "Approve? [y/n, Enter leaves it open]" in seen
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
    assert "coder's signal cannot be understood: The signal file is not JSON" in seen
    assert floor.question(key)["id"] == "Q1"


def test_somebody_else_was_faster(floor: Floor) -> None:
    key = floor.escalated()
    answer = f"!env -u YOURTURN_AGENT USER=ben {TURN} respond Q1 'Sessions'\n"
    code, seen = floor.types("continue", "1", "--detach", keys=answer + say(status="DONE") + "exit\n")
    assert code == 0 and "Q1 was closed meanwhile: ben: “Sessions”" in seen
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
    assert code == 0 and words in seen and AUTH in seen and "Your answer (Enter leaves it open):" in seen
    assert floor.desk.show(key)["questions"][0]["response"]["value"] == "Use PKCE"


def test_a_session_that_is_gone(floor: Floor) -> None:
    floor.escalated()
    for path in floor.claude.rglob("*.jsonl"):
        path.unlink()
    code, seen = floor.types("continue", "1", keys="\n")
    assert code == 7 and "No conversation found with session ID: abc-123-def" in seen
    assert "The session ended with exit code 1. It may be gone, or open elsewhere." in seen


def test_an_agent_that_nobody_knows_here(floor: Floor) -> None:
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
    assert code == 0 and "Approve deployment to production?" in seen and "Continue? [y/n, Enter leaves it open]" in seen
    assert "Opening" not in seen
    (q,) = floor.desk.show(key)["questions"]
    assert (q["response"]["verdict"], q["response"]["text"]) == (verdict, words)


def test_a_choice_is_made_here(floor: Floor) -> None:
    key = floor.changed()
    code, seen = floor.types("continue", "1", "--detach", keys="from-1\n")
    assert code == 0 and "retry" in seen and "Your choice (Enter leaves it open):" in seen
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
    assert code == 2 and "There is no editor to open" in seen
    code, seen = floor.types("continue", "1", "--editor", env={"VISUAL": "no-such-editor"})
    assert code == 2 and "no-such-editor cannot be started" in seen


def test_what_does_not_wait_cannot_be_continued(floor: Floor) -> None:
    claim = floor.begun()[1]
    found = floor.crew("continue", "1", exit=4)
    assert found["message"] == "Cannot continue PROJ-1: it is 'running': w1 works on it"
    assert found["hint"] == "Next: turn watch PROJ-1"
    floor.agent.fail(claim, "broken", journal=0)
    found = floor.crew("continue", "1", exit=4)
    assert found["message"] == "Cannot continue PROJ-1: it is 'failed': it waits for no person"
    assert found["hint"] == "Next: turn resume PROJ-1"
    assert floor.crew("continue", "99", exit=3)["code"] == "not_found"
    floor.escalated()
    found = floor.crew("continue", "2", exit=2)
    assert found["message"] == "Cannot continue PROJ-2: this is no terminal" and "turn respond Q1" in found["hint"]
    floor.crew("respond", "Q1", "PKCE")
    assert floor.crew("continue", "Q1", exit=4)["message"] == "Cannot continue Q1: ana: “PKCE”"


def test_one_of_several_questions_is_named(floor: Floor) -> None:
    key, claim = floor.begun()
    for branch in ("0", "1"):
        waits = _step(f"1.{branch}.0", "pause", "waiting", "_checkpoint", {"text": branch})
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


# --- resume ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def works(floor: Floor) -> Floor:
    """The same, with agents that are commands and can be called here."""
    argv = json.dumps(["/bin/sh", str(floor.crew.place / "agent.sh")])
    names = ("architect", "coder")
    floor.crew.config("".join(f'[agents.{name}]\nadapter = "command"\nargv = {argv}\n' for name in names))
    return floor


def test_a_failed_run_goes_on_where_it_was(works: Floor) -> None:
    script = works.crew.folder / "feature.py"
    script.write_text(SCRIPT.replace('run("coder")', "1 / 0"))
    assert works.crew.run("run", "feature.py", "Add login").returncode == 1 and works.crew.turns("PROJ-1") == 1
    seen = works.crew.text("status", "1")
    assert seen.startswith("Run 1: failed\nReason: feature.py: line 3: ZeroDivisionError")
    script.write_text(SCRIPT)
    assert "✓ PROJ-1 is done: all of it" in works.crew.text("resume", "1")
    assert works.crew.turns("PROJ-1") == 2, "what the architect had done was kept"
    assert works.crew("resume", "1", exit=4)["code"] == "illegal_move"


def test_back_to_a_step(works: Floor) -> None:
    works.crew.text("run", "feature.py", "Add login")
    works.crew("create", "Plain")
    assert works.crew("resume", "2", exit=4)["message"] == "Cannot resume PROJ-2: it has no script"
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
    assert error["message"] == "Cannot resume PROJ-1 just so: feature.py was changed while PROJ-1 waited."
    assert "--accept-new-code" in error["hint"] and "turn stop PROJ-1" in error["hint"]
    task = works.crew("resume", "1", flag)
    assert (task["state"], task["summary"]) == ("done", "new")
    assert works.crew.turns("PROJ-1") == (1 if flag == "--accept-new-code" else 2)


def test_changed_code_asked_on_a_terminal(works: Floor) -> None:
    key = works.changed()
    code, seen = works.types("resume", "1", "--detach", keys="\n")
    assert code == 7 and "How should it go on?" in seen
    code, seen = works.types("resume", "1", "--detach", keys="retry\n")
    assert code == 0 and works.desk.show(key)["state"] == "ready"


def test_resume_reads_what_the_agent_said_since(works: Floor) -> None:
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
    assert "coder says: DONE (and Q1 is for a person to judge). Next: turn continue Q1" in seen
    assert works.question(key)["id"] == "Q1"


def test_resume_of_what_is_ready_asleep_or_somebodys(works: Floor) -> None:
    key, claim = works.begun()
    error = works.crew("resume", "1", exit=4)
    assert error["message"] == "Cannot resume PROJ-1: it is 'running': w1 works on it"
    assert error["hint"] == "Look on with: turn watch PROJ-1"
    works.agent.park(claim)
    assert works.crew("resume", "1", "--detach")["state"] == "ready"
    assert works.crew("resume", "1")["state"] == "done" and works.crew.turns(key) == 2
    key, claim = works.begun()
    works.agent.park(claim, "2d")
    assert works.crew("resume", "2")["state"] == "done"


def test_a_run_goes_on_here_after_it_was_helped(both: Floor) -> None:
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
    """Until it says something, it happens again: nobody can know when it has begun to look."""
    floor.crew.until(lambda: happens() and select.select([process.stdout], [], [], 0.2)[0])


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err, err
    return process.returncode, out


def test_watch_goes_on_when_the_agent_finished_with_a_person(works: Floor) -> None:
    key = works.escalated()
    with watching(works, "1") as process:
        assert process.stdout is not None and process.stdout.readline() == f"Run {key}: waiting_human\n"
        works.signal(status="DONE", summary="OAuth2 with PKCE")
        code, seen = ended(process)
    assert code == 0, seen
    assert "coder says: DONE: OAuth2 with PKCE" in seen and "Q1: ana: “settled in coder's session”" in seen
    assert seen.count(f"Run {key}: completed\nSummary: all of it") == 1
    assert works.steps(key)["2"]["summary"] == "OAuth2 with PKCE"


def test_watch_goes_on_after_an_answer_from_elsewhere_if_nobody_else_does(works: Floor) -> None:
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


def test_watch_leaves_it_to_whoever_is_faster_and_tells_what_happens(works: Floor) -> None:
    key = works.escalated()
    with watching(works, "1", "--only-look") as process:
        assert process.stdout is not None
        while process.stdout.readline() != "\n":
            pass
        works.signal(status="DONE")
        works.desk.respond("Q1", "Use PKCE")
        claim = works.agent.claim(key, "w2")["claim"]
        result = {"status": "DONE", "summary": "done by w2"}
        works.agent.record(claim, [_step("2", "run", "completed", "coder", {"agent": "coder", "prompt": None}, result=result)])
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
        assert "Q1 is for a person to judge" in line
        works.desk.stop(key, "enough")
        code, seen = ended(process)
    assert code == 1 and "coder says" not in seen, "it is said once"


def test_watch_everything(works: Floor) -> None:
    with watching(works, "--json") as process:
        heard(works, process, lambda: works.desk.create("One more"))
        assert process.stdout is not None and json.loads(process.stdout.readline())["action"] == "create"

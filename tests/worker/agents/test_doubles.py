"""Whole turns: the adapters against doubles of claude and codex, with real hooks, MCP calls and sessions on disk."""

from __future__ import annotations

import json
import os
import sys
import threading
import uuid
from pathlib import Path

import pytest

from tests.doubles import HERE, install
from tests.worker.agents.test_process import until
from yourturn.worker.agents import agent_for, make
from yourturn.worker.agents.base import SessionStarted, ToolResult

HOOK = """
import json, pathlib, sys
call = json.load(sys.stdin)
with open("calls", "a") as file:
    file.write(json.dumps([call["session_id"], call["tool_use_id"], call["tool_name"]]) + "\\n")
decision = json.loads(pathlib.Path("decision").read_text())
if decision:
    print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}}))
"""
QUESTION = {
    "question": "Which store?",
    "header": "Store",
    "multiSelect": False,
    "options": [{"label": "SQLite"}, {"label": "Postgres"}],
}


class Stage:
    """One agent, its script, and its session."""

    def __init__(self, tmp_path: Path, go, adapter: str):
        self.folder, self.go = tmp_path, go
        programs = install(tmp_path / "bin")
        self.config = {"adapter": adapter}
        self.env = {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "CLAUDE_CONFIG_DIR": str(tmp_path / "home"),
            "CODEX_HOME": str(tmp_path / "home"), "DOUBLE_SCRIPT": str(tmp_path / "script.json"),
            "DOUBLE_PROMPTS": str(tmp_path / "prompts"), "YOURTURN_ASK_WAIT": "0",
        }  # fmt: skip
        self.hook = tmp_path / "hook.py"
        self.hook.write_text(HOOK)
        self.session = str(uuid.uuid4()) if adapter == "claude" else None
        self.server = {
            "ask_question": {"status": "answered", "question_id": "Q1"},
            "approve": {"behavior": "deny", "message": "not now"},
        }
        self.parked = False

    def script(self, *steps):
        (self.folder / "script.json").write_text(json.dumps(steps))

    def decide(self, decision="", **more):
        (self.folder / "decision").write_text(json.dumps({"permissionDecision": decision, **more} if decision else None))

    def run(self, resume=False, answer="", **limits):
        adapter = make(agent_for("coder", {"agents": {"coder": self.config}}, path=self.env["PATH"]))
        server = (sys.executable, str(HERE / "tiny_mcp.py"), json.dumps(self.server)) if self.server else ("/no/such/server",)
        fields = {
            "session_id": self.session, "answer_prompt": answer, "parked": self.parked,
            "hook_command": (sys.executable, str(self.hook)), "mcp_command": server,
        }  # fmt: skip
        ending = self.go(adapter.agent, adapter=adapter, env=self.env, run=fields, resume=resume, **limits)
        self.session, self.parked = ending.session_id or self.session, ending.parked is not None
        return ending

    def results(self):
        return [(said.text, said.error) for said in self.go.heard if isinstance(said, ToolResult)]

    def calls(self):
        return [json.loads(line) for line in (self.folder / "calls").read_text().splitlines()]

    def prompts(self):
        return [json.loads(line) for line in (self.folder / "prompts").read_text().splitlines()]


@pytest.fixture
def claude(tmp_path, go):
    return Stage(tmp_path, go, "claude")


@pytest.fixture
def codex(tmp_path, go):
    return Stage(tmp_path, go, "codex")


# --- claude ---------------------------------------------------------------------------------------------------------


def test_claude_completes_a_turn(claude):
    claude.config["allowed_tools"] = ["Bash"]
    claude.script({"tool": "Bash", "input": {"command": "echo hi > made"}}, {"text": "Finished"})
    chosen = claude.session
    ending = claude.run()
    assert (ending.what, ending.text, ending.session_id, ending.tokens, ending.cost) == ("done", "Finished", chosen, 12, 0.001)
    assert (claude.folder / "made").read_text() == "hi\n"
    assert claude.prompts() == ["the brief"]


def test_parked_claude_session_continues_with_the_answer(claude):
    """An early resume changes nothing; the same call comes to the hook each time; the answer reaches the model."""
    claude.script({"ask": [QUESTION]}, {"text": "Postgres it is"})
    claude.decide("defer")
    ending = claude.run()
    assert (ending.what, ending.parked.name, ending.text) == ("parked", "AskUserQuestion", "")
    assert claude.run(resume=True).what == "parked"
    claude.decide("allow", updatedInput={"questions": [QUESTION], "answers": {"Which store?": "Postgres"}})
    ending = claude.run(resume=True)
    assert (ending.what, ending.text, ending.cost) == ("done", "Postgres it is", 0.001)
    assert '"Which store?"="Postgres"' in claude.results()[0][0]
    assert isinstance(claude.go.heard[0], ToolResult), "the result comes before the session's first event"
    assert len({tuple(call) for call in claude.calls()}) == 1 and len(claude.calls()) == 3
    assert claude.prompts() == ["the brief", None, None]


def test_refusal_reaches_claude_with_its_reason(claude):
    claude.config["gate"] = ["Bash(git push*)"]
    claude.script({"tool": "Bash", "input": {"command": "touch made"}}, {"text": "Then not"})
    claude.decide("defer")
    assert claude.run().what == "parked"
    claude.decide("deny", permissionDecisionReason="Ana says: not on a Friday")
    ending = claude.run(resume=True)
    assert ending.what == "done" and not (claude.folder / "made").exists()
    assert [(one.name, one.input) for one in ending.denials] == [("Bash", {"command": "touch made"})]
    assert "not on a Friday" in claude.results()[0][0] and claude.results()[0][1]


def test_edited_input_replaces_the_input_of_claude(claude):
    claude.config["gate"] = ["Bash"]
    claude.script({"tool": "Bash", "input": {"command": "touch theirs"}}, {"text": "ok"})
    claude.decide("defer")
    claude.run()
    claude.decide("allow", updatedInput={"command": "touch ours"})
    assert claude.run(resume=True).what == "done"
    assert (claude.folder / "ours").exists() and not (claude.folder / "theirs").exists()


def test_claude_asks_with_ask_question(claude):
    claude.script({"tool": "mcp__yourturn__ask_question", "input": {"question": "Ship?"}}, {"text": "Shipped"})
    claude.decide("defer")
    ending = claude.run()
    assert (ending.what, ending.parked.name) == ("parked", "mcp__yourturn__ask_question")
    claude.decide("allow")
    assert claude.run(resume=True).text == "Shipped"
    assert "answered" in claude.results()[0][0]


def test_permission_tool_handles_calls_that_are_not_allowed(claude):
    claude.script({"tool": "Bash", "input": {"command": "touch made"}}, {"text": "ok"})
    claude.decide()
    ending = claude.run()
    assert ending.what == "done" and [one.why for one in ending.denials] == ["not now"]
    claude.session = str(uuid.uuid4())
    claude.server["approve"] = {"behavior": "allow", "updatedInput": {"command": "touch edited"}}
    assert claude.run().denials == () and (claude.folder / "edited").exists()


def test_second_of_two_deferred_calls_supersedes_the_first(claude):
    claude.config["gate"] = ["Bash"]
    claude.script({"tools": [["AskUserQuestion", {"questions": [QUESTION]}], ["Bash", {"command": "true"}]]}, {"text": "ok"})
    claude.decide("defer")
    ending = claude.run()
    assert (ending.what, ending.parked.name, [call.name for call in ending.superseded]) == ("parked", "Bash", ["AskUserQuestion"])
    assert {call[1] for call in claude.calls()} == {ending.parked.id, ending.superseded[0].id}


def test_prompt_would_drop_the_parked_call(claude):
    """This is why a parked session is resumed without a prompt."""
    claude.script({"ask": [QUESTION]}, {"text": "?"})
    claude.decide("defer")
    claude.run()
    claude.parked = False
    assert claude.run(resume=True, answer="Postgres").what == "done"
    assert "missing due to internal error" in claude.results()[0][0]


def test_session_that_continued_before_a_crash_is_not_parked(claude):
    """The worker still has it recorded as parked, and sends the answer as a prompt in its second attempt."""
    claude.script({"ask": [QUESTION]}, {"crash": "SIGKILL"}, {"text": "Finished"})
    claude.decide("defer")
    claude.run()
    claude.decide("allow", updatedInput={"questions": [QUESTION], "answers": {"Which store?": "Postgres"}})
    ending = claude.run(resume=True)
    assert (ending.cause, ending.parked) == ("killed", None), "it was heard to go on"
    claude.parked = True
    assert claude.run(resume=True, answer="Answer to Q1: Postgres").text == "Finished"
    assert claude.prompts() == ["the brief", None, None, "Answer to Q1: Postgres"]


def test_session_stopped_during_resume_is_still_parked(claude):
    claude.script({"ask": [QUESTION]}, {"text": "Finished"})
    claude.decide("defer")
    claude.run()
    hook, stop = claude.hook.read_text(), threading.Event()
    claude.hook.write_text("import pathlib, time\npathlib.Path('woken').touch()\ntime.sleep(600)")
    waker = threading.Thread(target=lambda: (until((claude.folder / "woken").exists), stop.set()))
    waker.start()
    ending = claude.run(resume=True, stop=stop)
    waker.join()
    assert ending.what == "stopped" and ending.parked is not None
    claude.hook.write_text(hook)
    claude.decide("allow", updatedInput={"questions": [QUESTION], "answers": {"Which store?": "Postgres"}})
    assert claude.run(resume=True).text == "Finished" and '"Postgres"' in claude.results()[0][0]


def test_session_that_was_not_parked_gets_the_answer_as_prompt(claude):
    claude.script({"text": "<promise>INPUT_NEEDED: Which?</promise>"}, {"text": "Thanks"})
    claude.run()
    assert claude.run(resume=True, answer="Answer to Q1: Postgres").text == "Thanks"
    assert claude.prompts() == ["the brief", "Answer to Q1: Postgres"]


def test_session_stays_parked_while_its_tool_is_missing(claude):
    claude.script({"tool": "mcp__yourturn__ask_question", "input": {"question": "Ship?"}}, {"text": "Shipped"})
    claude.decide("defer")
    claude.run()
    claude.decide("allow")
    claude.env["DOUBLE_NO_SERVERS"] = "1"
    ending = claude.run(resume=True)
    assert (ending.what, ending.cause, ending.parked.name) == ("retryable", "tool_unavailable", "mcp__yourturn__ask_question")
    del claude.env["DOUBLE_NO_SERVERS"]
    assert claude.run(resume=True).text == "Shipped"


def test_lost_session_is_reported(claude):
    claude.script({"text": "hi"})
    ending = claude.run(resume=True)
    assert (ending.what, ending.lost, ending.cause) == ("retryable", True, "session_lost")
    claude.run()
    ending = claude.run()
    assert (ending.what, ending.lost, ending.cause) == ("retryable", True, "session_taken")


@pytest.mark.parametrize(
    ("step", "what", "cause"),
    [
        ({"api_error": 401}, "failed", "login"),
        ({"api_error": 529}, "retryable", "overloaded"),
        ({"crash": 3}, "failed", "crash"),
        ({"crash": 0}, "failed", "silent"),
        ({"crash": "SIGKILL"}, "retryable", "killed"),
    ],
)
def test_failures_of_claude(claude, step, what, cause):
    claude.script(step)
    ending = claude.run()
    assert (ending.what, ending.cause) == (what, cause) and ending.session_id == claude.session


def test_claude_reaches_its_turn_limit(claude):
    claude.config["argv"] = ["claude", "--max-turns", "1"]
    claude.config["allowed_tools"] = ["Bash"]
    claude.script({"tool": "Bash", "input": {"command": "true"}})
    assert claude.run().cause == "turns"


def test_finished_claude_process_that_lingers_is_ended(claude):
    """Its result counts, although the process never exits by itself."""
    claude.script({"linger": True}, {"text": "Finished"})
    clock = iter(range(0, 10**9, 7))
    ending = claude.run(clock=lambda: next(clock), time_limit=10**9)
    assert (ending.what, ending.text) == ("done", "Finished") and ending.rc == -15


def test_finished_claude_process_with_an_open_question_is_ended(claude):
    """An answer cannot reach this process any more."""
    claude.script({"linger": True}, {"text": "I wait"})
    clock = iter(range(0, 10**9, 7))
    ending = claude.run(clock=lambda: next(clock), time_limit=10**9, waiting=lambda: True)
    assert (ending.what, ending.text) == ("done", "I wait") and ending.rc == -15


def test_noise_in_the_stream_is_ignored(claude):
    claude.script({"raw": "Warning: something"}, {"raw": '{"type": "brand_new"}'}, {"raw": ""}, {"text": "Finished"})
    assert claude.run().text == "Finished"


# --- codex ----------------------------------------------------------------------------------------------------------


def test_codex_thread_is_resumed_with_the_answer(codex):
    codex.server["ask_question"] = {"status": "pending", "question_id": "Q7"}
    codex.script(
        {"command": "echo hi > made"},
        {"mcp": ["yourturn", "ask_question", {"question": "Ship?"}]},
        {"text": "I wait"},
        {"text": "Shipped"},
    )
    ending = codex.run()
    assert (ending.what, ending.parked.question, ending.text, ending.tokens) == ("parked", "Q7", "I wait", 14)
    assert [said.id for said in codex.go.heard if isinstance(said, SessionStarted)] == [codex.session]
    assert (codex.folder / "made").exists()
    ending = codex.run(resume=True, answer="Answer to Q7: yes")
    assert (ending.what, ending.text, ending.session_id) == ("done", "Shipped", codex.session)
    assert codex.prompts() == ["the brief", "Answer to Q7: yes"]


def test_codex_gets_a_quick_answer_in_the_same_turn(codex):
    codex.script({"say": "Let me ask"}, {"mcp": ["yourturn", "ask_question", {"question": "Ship?"}]}, {"text": "Shipped"})
    ending = codex.run()
    assert (ending.what, ending.text, ending.denials) == ("done", "Shipped", ())


@pytest.mark.parametrize(
    ("step", "what", "cause"),
    [
        ({"fail": "unexpected status 401 Unauthorized"}, "failed", "login"),
        ({"fail": "exceeded retry limit, last status: 503"}, "retryable", "overloaded"),
        ({"fail": "unknown model"}, "failed", "api"),
        ({"crash": 1}, "failed", "crash"),
        ({"crash": "SIGTERM"}, "retryable", "killed"),
    ],
)
def test_failures_of_codex(codex, step, what, cause):
    codex.script(step)
    ending = codex.run()
    assert (ending.what, ending.cause) == (what, cause) and ending.session_id


def test_lost_thread_of_codex(codex):
    codex.script({"text": "hi"})
    codex.session = str(uuid.uuid4())
    assert codex.run(resume=True, answer="x").cause == "session_lost"


def test_long_prompts_go_through_standard_input(claude, codex):
    for agent in (claude, codex):
        agent.script({"text": "ok"})
        adapter = make(agent_for("coder", {"agents": {"coder": agent.config}}, path=agent.env["PATH"]))
        fields = {"session_id": agent.session}
        assert agent.go(adapter.agent, adapter=adapter, env=agent.env, run=fields, prompt="ä" * 200_000).what == "done"
    assert [len(prompt) for prompt in claude.prompts()] == [200_000, 200_000]

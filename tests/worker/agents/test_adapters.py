"""Adapters: recorded streams, command lines, configuration."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yourturn.core.errors import Invalid, NotFound, Usage
from yourturn.worker.agents import Agent, agent_for, exec_agent, make
from yourturn.worker.agents.base import Activity, AgentRun, Denied, Parked, Text, ToolUse, Transcript, Unknown
from yourturn.worker.claude.patterns import concerns, gated

STREAMS = Path(__file__).parent / "streams"
SESSION = "5d1f0c52-8d3b-4c55-9d0e-0f3a6c1b7e10"
THREAD = "01a1de16-d752-78c3-85f5-139b85dcf3a6"
CLAUDE, CODEX = make(Agent("coder", "claude")), make(Agent("coder", "codex"))


def played(name: str, rc: int = 0, stderr: str = ""):
    """(what was said, the ending) of a recorded stream."""
    adapter = CLAUDE if name.startswith("claude") else CODEX
    heard, sayings = Transcript(), []
    path = STREAMS / f"{name}.jsonl"
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        for said in adapter.parse(line):
            heard.add(said)
            sayings.append(said)
    heard.errors = stderr
    return sayings, adapter.classify(rc, heard)


# --- how it ended: never by the exit code alone ---------------------------------------------------------------------

ENDINGS = [
    # stream, exit code, standard error, what, cause, words in the error
    ("claude_done", 0, "", "done", "", ""),
    ("claude_refused", 0, "", "done", "", ""),
    ("claude_parked", 0, "", "parked", "", ""),
    ("claude_parked_late", 0, "", "parked", "", ""),
    ("claude_parked_two", 0, "", "parked", "", ""),
    ("claude_woken", 0, "", "done", "", ""),
    ("claude_helper", 0, "", "done", "", ""),
    ("claude_401", 1, "", "failed", "login", "Invalid API key"),
    ("claude_not_logged_in", 1, "", "failed", "login", "Not logged in"),
    ("claude_400", 1, "", "failed", "api", "too long"),
    ("claude_429", 1, "", "retryable", "overloaded", "429"),
    ("claude_529", 1, "", "retryable", "overloaded", "529"),
    ("claude_unreachable", 1, "", "retryable", "overloaded", "Connection"),
    ("claude_turns", 1, "", "failed", "turns", "maximum number of turns"),
    ("claude_interrupted", 0, "", "failed", "aborted", "interrupted"),
    ("claude_tool_gone", 1, "", "retryable", "tool_unavailable", "not available"),
    ("claude_killed", 143, "", "retryable", "killed", "SIGTERM"),
    ("claude_killed", -9, "", "retryable", "killed", "SIGKILL"),
    ("claude_killed", 0, "", "failed", "silent", "without a result"),
    ("claude_killed", 1, "Segmentation fault", "failed", "crash", "Segmentation"),
    ("claude_nothing", 1, "error: unknown option '--frobnicate'", "failed", "crash", "--frobnicate"),
    (
        "claude_nothing",
        1,
        "Error: When using --print, --output-format=stream-json requires --verbose",
        "failed",
        "crash",
        "verbose",
    ),
    ("claude_nothing", 1, f"No conversation found with session ID: {SESSION}", "retryable", "session_lost", SESSION),
    ("claude_nothing", 1, f"Error: Session ID {SESSION} is already in use.", "retryable", "session_taken", SESSION),
    ("claude_nothing", 1, "Error: No deferred tool marker found in the resumed session.", "retryable", "not_parked", "marker"),
    ("claude_nothing", 3, "", "failed", "crash", "exit code 3"),
    ("codex_done", 0, "", "done", "", ""),
    ("codex_refused", 0, "", "done", "", ""),
    ("codex_answered", 0, "", "done", "", ""),
    ("codex_pending", 0, "", "parked", "", ""),
    ("codex_pending_then_answered", 0, "", "done", "", ""),
    ("codex_failed", 1, "", "failed", "api", "unknown model"),
    ("codex_not_logged_in", 1, "", "failed", "login", "401"),
    ("codex_overloaded", 1, "", "retryable", "overloaded", "429"),
    ("codex_disconnected", 1, "", "retryable", "overloaded", "disconnected"),
    ("codex_cut", 143, "", "retryable", "killed", "SIGTERM"),
    ("codex_cut", 1, "", "failed", "crash", "exit code 1"),
    ("codex_cut", 0, "", "failed", "silent", "without a result"),
    ("codex_nothing", 1, "Error: thread/resume: no rollout found for thread id x", "retryable", "session_lost", "no rollout"),
    ("codex_nothing", 1, "error: unexpected argument '-s' found", "failed", "crash", "unexpected"),
]


@pytest.mark.parametrize(("stream", "rc", "stderr", "what", "cause", "words"), ENDINGS)
def test_ending_of_a_recording(stream, rc, stderr, what, cause, words):
    _, ending = played(stream, rc, stderr)
    assert (ending.what, ending.cause) == (what, cause)
    assert words in ending.error and bool(words) == bool(ending.error)
    assert ending.lost == cause.startswith("session")


def test_every_recording_is_used():
    assert {path.stem for path in STREAMS.glob("*.jsonl")} <= {row[0] for row in ENDINGS}


def test_the_message_is_the_result():
    assert played("claude_done")[1].text == "The login works. <promise>COMPLETE</promise>"
    assert played("codex_done")[1].text == "Finished. <promise>COMPLETE</promise>"
    assert played("claude_parked")[1].text == ""


def test_text_of_a_subagent_is_not_the_message():
    sayings, ending = played("claude_helper")
    assert ending.text == "Still at it"
    assert [said.text for said in sayings if isinstance(said, Text)] == ["Still at it"]
    assert [said.text for said in sayings if isinstance(said, Activity)] == ["<promise>COMPLETE</promise>", "Task, 30 s"]


def test_session_id_is_read_from_the_stream():
    assert played("claude_done")[1].session_id == SESSION
    assert played("claude_woken")[1].session_id == SESSION
    assert played("codex_cut", 143)[1].session_id == THREAD


def test_tokens_and_cost():
    ending = played("claude_done")[1]
    assert (ending.tokens, ending.cost) == (132, 0.00016)
    assert played("claude_woken")[1].cost == 0.00016, "what the session cost before is not counted again"
    assert played("codex_done")[1].tokens == 28, "cached input is part of the input"


def test_refused_tools_are_reported_with_a_success():
    command = {"command": "rm -rf build", "description": "clean"}
    assert played("claude_refused")[1].denials == (Denied("toolu_1", "Bash", "rm -rf build requires approval", command),)
    [denied] = played("codex_refused")[1].denials
    assert denied.name == "mcp__yourturn__ask_question" and "approval policy" in denied.why


def test_parked_and_superseded_calls_are_reported():
    ending = played("claude_parked_two")[1]
    assert ending.parked == Parked("toolu_2", "Bash", {"command": "git push"})
    assert [call.id for call in ending.superseded] == ["toolu_1"], "a call that had its result is not lost"
    assert played("claude_parked")[1].superseded == ()
    assert played("claude_done")[1].superseded == ()
    assert played("claude_tool_gone", 1)[1].parked.name == "mcp__yourturn__ask_question", "the park is not lost"
    assert played("codex_pending")[1].parked.question == "Q7"


def test_unknown_events_are_kept():
    sayings, _ = played("claude_helper")
    [unknown] = [said for said in sayings if isinstance(said, Unknown)]
    assert unknown.kind == "something_new" and json.loads(unknown.raw)["x"] == [1]
    assert {said.kind for said in played("claude_woken")[0] if isinstance(said, Unknown)} == {"command_lifecycle", "attachment"}
    assert any(isinstance(said, Unknown) for said in played("codex_done")[0])


@pytest.mark.parametrize("adapter", [CLAUDE, CODEX, make(Agent("p", "python", ("a:b",)))], ids=["claude", "codex", "python"])
@pytest.mark.parametrize("stream", sorted(path.stem for path in STREAMS.glob("*.jsonl")))
def test_a_broken_stream_raises_nothing(adapter, stream):
    """Every value of every event is replaced by other values."""
    for line in (STREAMS / f"{stream}.jsonl").read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        for name in event:
            for odd in (None, 7, "x", [], {}, [None], [7], {"content": 3}, {"content": [None]}):
                found = adapter.parse(json.dumps({**event, name: odd}))
                heard = Transcript()
                for said in found:
                    heard.add(said)
                assert adapter.classify(1, heard).what in ("done", "parked", "failed", "retryable")
        assert adapter.parse(line[: len(line) // 2])


@given(
    st.text()
    | st.recursive(st.none() | st.text() | st.floats(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)).map(json.dumps)
)
def test_any_line_becomes_an_event(line):
    for adapter in (CLAUDE, CODEX):
        assert adapter.parse(line)


def test_deep_nesting_is_unknown():
    assert isinstance(CLAUDE.parse("[" * 100_000)[0], Unknown)
    assert isinstance(CODEX.parse('{"type":' * 100_000)[0], Unknown)


def test_transcript_is_bounded():
    heard = Transcript()
    for number in range(5000):
        heard.add(ToolUse(f"t{number}", "Bash", {}))
        heard.add(Denied(f"d{number}", "Bash"))
    assert len(heard.open) == len(heard.denials) == 1000


# --- how it is started ----------------------------------------------------------------------------------------------


def a_run(agent: Agent, **fields) -> AgentRun:
    env = {
        "PATH": "/bin",
        "YOURTURN_TOKEN": "secret-token",
        "YOURTURN_CLAIM": "secret-claim",
        "YOURTURN_TASK": "PROJ-1",
        "CLAUDECODE": "1",
    }
    return AgentRun(**{"task": "PROJ-1", "agent": agent, "prompt": "# Do it", "folder": "/tmp", "env": env, **fields})


def after(argv: tuple[str, ...], option: str) -> str:
    return argv[argv.index(option) + 1]


def test_command_line_of_claude():
    agent = Agent("coder", "claude", model="opus", allowed_tools=("Bash(git *)", "Edit"), permission_mode="acceptEdits")
    run = a_run(agent, session_id=SESSION)
    launch = make(agent).start(run)
    assert launch.argv[:6] == ("claude", "-p", "# Do it", "--output-format", "stream-json", "--verbose")
    assert after(launch.argv, "--session-id") == SESSION and "--resume" not in launch.argv
    assert after(launch.argv, "--permission-prompt-tool") == "mcp__yourturn__approve"
    assert after(launch.argv, "--model") == "opus"
    assert after(launch.argv, "--permission-mode") == "acceptEdits"
    assert launch.argv[launch.argv.index("--allowedTools") :] == ("--allowedTools", "Bash(git *)", "Edit", "mcp__yourturn__*")
    assert launch.stdin is None and launch.cwd == "/tmp"
    server = json.loads(after(launch.argv, "--mcp-config"))["mcpServers"]["yourturn"]
    assert server["type"] == "stdio" and server["args"][-1:] == ["mcp"]
    assert launch.env["YOURTURN_SESSION"] == SESSION
    assert "CLAUDECODE" not in launch.env


def test_session_id_of_claude_is_chosen_before_the_start():
    one, two = CLAUDE.session_id(), CLAUDE.session_id()
    assert one != two and re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", one)
    assert CODEX.session_id() is None


def test_hook_matcher_covers_gated_tools():
    agent = Agent("coder", "claude", gate=("Bash(git push*)", "Bash(rm *)", "Write", "mcp__shop__*"))
    run = a_run(agent, session_id=SESSION, hook_command=("/opt/my turn", "hook", "claude"))
    run.env["YOURTURN_ASK_WAIT"] = "200"
    launch = make(agent).start(run)
    [group] = json.loads(after(launch.argv, "--settings"))["hooks"]["PreToolUse"]
    for tool in ("AskUserQuestion", "ExitPlanMode", "mcp__yourturn__ask_question", "Bash", "Write", "mcp__shop__pay"):
        assert re.fullmatch(group["matcher"], tool), tool
    for tool in ("Read", "BashOutput", "mcp__yourturn__add_note"):
        assert not re.fullmatch(group["matcher"], tool), tool
    [hook] = group["hooks"]
    assert shlex.split(hook["command"]) == ["/opt/my turn", "hook", "claude"]
    assert hook["timeout"] > 200
    assert json.loads(launch.env["YOURTURN_GATED"]) == list(agent.gate)


@pytest.mark.parametrize("pattern", ["Ba?h", "[BW]*", "Ba[rs]h(git push*)", "*"])
def test_hook_matcher_covers_every_pattern(pattern):
    """The hook compares the exact pattern, so the matcher may match too much, never too little."""
    agent = Agent("coder", "claude", gate=(pattern,))
    launch = make(agent).start(a_run(agent, session_id=SESSION))
    [group] = json.loads(after(launch.argv, "--settings"))["hooks"]["PreToolUse"]
    assert concerns("Bash", {"command": "git push"}, gated(launch.env["YOURTURN_GATED"]))
    assert re.fullmatch(group["matcher"], "Bash")


def test_parked_claude_session_is_resumed_without_a_prompt():
    agent = Agent("coder", "claude")
    run = a_run(agent, session_id=SESSION, answer_prompt="Answer to Q7: yes")
    argv = make(agent).resume(run).argv
    assert argv[1:3] == ("-p", "Answer to Q7: yes") and after(argv, "--resume") == SESSION and "--session-id" not in argv
    run.parked = True
    argv = make(agent).resume(run).argv
    assert argv[1:3] == ("-p", "--output-format") and "Answer to Q7: yes" not in argv


def test_command_lines_of_codex():
    agent = Agent("coder", "codex", model="gpt", permission_mode="read-only")
    run = a_run(agent, answer_prompt="Answer to Q7: yes")
    argv = make(agent).start(run).argv
    assert argv[:3] == ("codex", "exec", "--json") and argv[-1] == "# Do it"
    assert after(argv, "-m") == "gpt"
    settings = [argv[i + 1] for i, word in enumerate(argv) if word == "-c"]
    assert 'sandbox_mode="read-only"' in settings
    assert 'mcp_servers.yourturn.default_tools_approval_mode="approve"' in settings
    assert 'mcp_servers.yourturn.env_vars=["YOURTURN_CLAIM", "YOURTURN_TASK", "YOURTURN_TOKEN"]' in settings
    assert "mcp_servers.yourturn.tool_timeout_sec=105" in settings
    run.session_id = THREAD
    argv = make(agent).resume(run).argv
    assert argv[:4] == ("codex", "exec", "resume", "--json") and argv[-2:] == (THREAD, "Answer to Q7: yes")
    assert "-s" not in argv and 'sandbox_mode="read-only"' in argv, "resume knows no -s"


@pytest.mark.parametrize("adapter", ["claude", "codex"])
def test_command_lines_contain_no_secret(adapter):
    launch = make(Agent("coder", adapter)).start(a_run(Agent("coder", adapter)))
    assert not [word for word in launch.argv if "secret" in word]
    assert launch.env["YOURTURN_TOKEN"] == "secret-token"


@pytest.mark.parametrize("adapter", ["claude", "codex"])
def test_awkward_prompts(adapter):
    agent = Agent("coder", adapter)
    long = "ä" * 100_000
    launch = make(agent).start(a_run(agent, prompt=long))
    assert launch.stdin == long.encode() and max(map(len, launch.argv)) < 10_000
    argv = make(agent).start(a_run(agent, prompt="--help \0")).argv
    assert "\n--help \ufffd" in argv


def test_an_agents_settings_cannot_change_its_identity():
    agent = Agent("coder", "claude", env={"YOURTURN_TOKEN": "other", "LANG": "C"})
    env = make(agent).start(a_run(agent)).env
    assert (env["YOURTURN_TOKEN"], env["LANG"], env["PATH"]) == ("secret-token", "C", "/bin")


# --- configuration --------------------------------------------------------------------------------------------------


def config(**fields):
    return {"agents": {"coder": fields}}


def test_agent_settings(tmp_path):
    program = tmp_path / "agent.sh"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    fields = {
        "adapter": "command",
        "argv": ["./agent.sh", "-v"],
        "timeout": "30m",
        "silence": 60,
        "env": {"A": "b"},
        "gate": ["Bash"],
    }
    agent = agent_for("coder", config(**fields), tmp_path)
    assert agent == Agent(
        "coder", "command", (str(tmp_path / "agent.sh"), "-v"), timeout=1800.0, silence=60.0, gate=("Bash",), env={"A": "b"}
    )
    assert make(agent_for("coder", config(**fields), tmp_path)).plain


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({}, NotFound, "There is no agent 'coder'"),
        ({"agents": {"other": {}}}, NotFound, "names other"),
        ({"agents": 3}, Invalid, "not a table"),
        ({"agents": {"coder": "claude"}}, Invalid, "not a table"),
        (config(), Invalid, "has no adapter"),
        (config(adapter="gemini"), Invalid, "'gemini' is unknown"),
        (config(adapter="codex", gate=["Bash"]), Invalid, "asks nobody before a tool runs"),
        (config(adapter="claude", gate=["Bash(git push*"]), Invalid, "it is not a pattern"),
        (config(adapter="command"), Invalid, "has no argv"),
        (config(adapter="command", argv="ls -l"), Invalid, "argv is not a list"),
        (config(adapter="command", argv=["ls", 3]), Invalid, "argv is not a list"),
        (config(adapter="command", argv=["no-such-program"]), NotFound, "There is no program 'no-such-program'"),
        (config(adapter="claude"), NotFound, "There is no program 'claude'"),
        (config(adapter="codex"), NotFound, "There is no program 'codex'"),
        (config(adapter="python", argv=["no function"]), Invalid, "not a function"),
        (config(adapter="scripted", argv=["none.json"]), NotFound, "There is no script"),
        (config(adapter="claude", modell="x"), Invalid, "unknown setting 'modell'"),
        (config(adapter="claude", timeout=-1), Invalid, "timeout is not a time"),
        (config(adapter="claude", timeout="soon"), Invalid, "soon"),
        (config(adapter="claude", model=3), Invalid, "model is not a text"),
        (config(adapter="claude", env={"YOURTURN_TOKEN": "x"}), Invalid, "env sets YOURTURN_TOKEN"),
        (config(adapter="claude", env={"A": 1}), Invalid, "env.A is not a text"),
    ],
)
def test_invalid_agent_settings_are_refused(given, error, words, tmp_path):
    with pytest.raises(error) as caught:
        make(agent_for("coder", given, tmp_path, path=str(tmp_path)))
    assert words in str(caught.value)


def test_hints_are_valid_configuration(tmp_path):
    import tomllib

    with pytest.raises(NotFound) as caught:
        make(agent_for("coder", {}, tmp_path))
    block = caught.value.hint.split("\n", 1)[1]
    assert tomllib.loads(block) == {"agents": {"coder": {"adapter": "claude"}}}
    with pytest.raises(NotFound) as caught:
        make(agent_for("coder", config(adapter="claude"), path=str(tmp_path)))
    assert "Install it" in caught.value.hint and "argv" in caught.value.hint


def test_exec():
    assert exec_agent("./a.sh | tee log").argv == ("/bin/sh", "-c", "./a.sh | tee log")
    with pytest.raises(Usage):
        exec_agent("  ")
    assert os.path.exists("/bin/sh")

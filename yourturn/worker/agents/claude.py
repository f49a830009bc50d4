"""Adapter for Claude Code: `claude -p`, a stream of events, a session id that we choose.

Questions leave the session in two ways: hooks (`turn hook claude`) that may defer a tool call, so that the process ends and
the session is *parked*, and the MCP server `turn mcp`. A parked session is resumed **without** a prompt: the hook then returns
the answer, and the parked call goes on. With a prompt, Claude Code drops the call and reports an internal error to the model. A
session that only seemed to be parked refuses to be resumed without a prompt, and is resumed with the answer instead.

The exit code alone is not enough: 0 can mean refused tools, a park or an interruption; 1 comes with results that report
success. The result event decides, and in it `deferred_tool_use` before everything else. Costs are reported for the whole session
and would count twice after a resume, so the costs since the last result are used where the event has them.
"""

from __future__ import annotations

import json
import re
import shlex
import uuid
from typing import Any

from ..claude.patterns import ASKING
from .base import (
    ARGUMENT,
    Activity,
    Agent,
    AgentEvent,
    AgentRun,
    Denied,
    Ending,
    Finished,
    Launch,
    Parked,
    SessionStarted,
    Text,
    ToolResult,
    ToolUse,
    Transcript,
    argument,
    ended_without_result,
    environment,
    parse_event,
    structured,
    turn_command,
)

APPROVE = "mcp__yourturn__approve"
OURS = "mcp__yourturn__*"

#: API errors without a status code that are temporary.
TEMPORARY = re.compile(
    r"overload|rate.?limit|connection|network|timed? ?out|ECONN|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|socket", re.IGNORECASE
)
LOST = (
    ("No conversation found", "session_lost"),
    ("is already in use", "session_taken"),
    ("No deferred tool marker", "not_parked"),
)


class Claude:
    plain = False

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def session_id(self) -> str | None:
        return str(uuid.uuid4())

    def start(self, run: AgentRun) -> Launch:
        return self._launch(run, run.prompt, "--session-id")

    def resume(self, run: AgentRun) -> Launch:
        return self._launch(run, "" if run.parked else run.answer_prompt or run.prompt, "--resume")

    def _launch(self, run: AgentRun, prompt: str, session: str) -> Launch:
        agent = run.agent
        stdin = None
        words = [*(agent.argv or ("claude",)), "-p"]
        if len(prompt.encode("utf-8", "replace")) > ARGUMENT:
            stdin = prompt.encode("utf-8", "replace")
        elif prompt:
            words.append(argument(prompt))
        words += ["--output-format", "stream-json", "--verbose"]
        if run.session_id:
            words += [session, run.session_id]
        words += ["--settings", json.dumps(settings(run)), "--mcp-config", json.dumps(servers(run))]
        words += ["--permission-prompt-tool", APPROVE]
        if agent.model:
            words += ["--model", agent.model]
        if agent.permission_mode:
            words += ["--permission-mode", agent.permission_mode]
        words += ["--allowedTools", *agent.allowed_tools, OURS]
        env = environment(run, YOURTURN_GATED=json.dumps(list(agent.gate)))
        env.pop("CLAUDECODE", None)  # set if Claude Code started the worker; the session would count as nested
        return Launch(tuple(words), env, run.folder, stdin)

    def parse(self, line: str) -> list[AgentEvent]:
        return parse_event(line, _events)

    def classify(self, rc: int, transcript: Transcript) -> Ending:
        last = transcript.finished
        if last is None:
            return _without_result(rc, transcript)
        transcript.parked = last.parked
        text = last.text or transcript.text
        if last.parked and last.ok:
            return transcript.ending("parked", text=last.text)
        if last.ok:
            return transcript.ending("done", text=text)
        what = "retryable" if last.cause in ("overloaded", "tool_unavailable") else "failed"
        return transcript.ending(what, last.error, last.cause, text=text)


def settings(run: AgentRun) -> dict[str, Any]:
    """One hook for all calls that may need a person. Its timeout is longer than the time that a question waits."""
    tools = [*ASKING]
    for pattern in run.agent.gate:
        name = _matcher(pattern.partition("(")[0].strip())
        if name not in tools:
            tools.append(name)
    command = shlex.join(run.hook_command or turn_command("hook", "claude"))
    hook = {"type": "command", "command": command, "timeout": int(run.ask_wait) + 60}
    return {"hooks": {"PreToolUse": [{"matcher": "|".join(tools), "hooks": [hook]}]}}


def _matcher(name: str) -> str:
    """A regex that may match too much: the hook compares with the exact pattern."""
    prefix = re.split(r"[*?[]", name)[0]
    return re.escape(name) if prefix == name else f"{re.escape(prefix)}.*"


def servers(run: AgentRun) -> dict[str, Any]:
    """`turn mcp`. It inherits the environment: a token on a command line would be visible to all users of the machine."""
    program, *words = run.mcp_command or turn_command("mcp")
    return {"mcpServers": {"yourturn": {"type": "stdio", "command": program, "args": words}}}


def _without_result(rc: int, transcript: Transcript) -> Ending:
    words = transcript.stderr()
    for phrase, cause in LOST:
        if phrase in words:
            transcript.parked = None
            return transcript.ending("retryable", words, cause)
    return ended_without_result(rc, transcript)


# --- events ---------------------------------------------------------------------------------------------------------


def _events(event: dict[str, Any]) -> list[AgentEvent]:
    match event.get("type"):
        case "system":
            return _system(event)
        case "assistant":
            return _assistant(event)
        case "user":
            return _user(event)
        case "tool_progress":
            return [Activity(f"{event.get('tool_name')}, {float(event.get('elapsed_time_seconds') or 0):.0f} s")]
        case "result":
            return _result(event)
    return []


def _system(event: dict[str, Any]) -> list[AgentEvent]:
    match event.get("subtype"):
        case "init":
            return [SessionStarted(str(event["session_id"]), str(event.get("model") or ""))]
        case "permission_denied":
            return [Denied(str(event["tool_use_id"]), str(event.get("tool_name")), str(event.get("message") or ""))]
    return []


def _assistant(event: dict[str, Any]) -> list[AgentEvent]:
    subagent = event.get("parent_tool_use_id")
    events: list[AgentEvent] = []
    for block in event["message"]["content"]:
        match block.get("type"):
            case "text":
                events.append(Activity(str(block["text"])) if subagent else Text(str(block["text"])))
            case "tool_use":
                events.append(ToolUse(str(block["id"]), str(block["name"]), block.get("input")))
            case "thinking":
                events.append(Activity())
    return events


def _user(event: dict[str, Any]) -> list[AgentEvent]:
    content = event["message"]["content"]
    if isinstance(content, str):
        return [Activity()]
    events: list[AgentEvent] = []
    for block in content:
        if block.get("type") == "tool_result":
            text = _text(block.get("content"))
            events.append(ToolResult(str(block["tool_use_id"]), text, bool(block.get("is_error")), structured(text)))
    return events or [Activity()]


def _result(event: dict[str, Any]) -> list[AgentEvent]:
    parked = None
    call = event.get("deferred_tool_use")
    if isinstance(call, dict):
        parked = Parked(str(call["id"]), str(call.get("name")), call.get("input"))
    denials = tuple(
        Denied(str(item.get("tool_use_id")), str(item.get("tool_name")), "", item.get("tool_input"))
        for item in _objects(event.get("permission_denials"))
    )
    tokens, cost = _spent(event)
    cause, error = _trouble(event)
    finished = Finished(not cause, str(event.get("result") or ""), tokens, cost, error, cause, parked, denials)
    return [parked, finished] if parked and not cause else [finished]


def _trouble(event: dict[str, Any]) -> tuple[str, str]:
    """A cause and its words; both are '' after a success."""
    subtype, reason = event.get("subtype"), event.get("terminal_reason")
    errors = [str(error) for error in event["errors"]] if isinstance(event.get("errors"), list) else []
    words = "; ".join(errors) or str(event.get("result") or "")
    if event.get("stop_reason") == "tool_deferred_unavailable":
        return "tool_unavailable", words or "The tool that the session waits with is not there."
    if subtype == "error_max_turns":
        return "turns", words or "It used all its turns."
    if subtype == "success" and not event.get("is_error"):
        return "", ""
    if reason == "api_error" or event.get("api_error_status"):
        return _api(event, words)
    if str(reason).startswith("aborted"):
        return "aborted", words or "It was interrupted."
    return "error", words or f"It ended with {subtype}."


def _api(event: dict[str, Any], words: str) -> tuple[str, str]:
    status, error_type = event.get("api_error_status"), str(event.get("api_error_type") or "")
    words = words or "The model could not be reached."
    if isinstance(status, int):
        if status in (408, 409, 425, 429) or status >= 500:
            return "overloaded", words
        return ("login" if status in (401, 403) else "api"), words
    if TEMPORARY.search(f"{error_type} {words}"):
        return "overloaded", words
    return "login", words


def _spent(event: dict[str, Any]) -> tuple[int, float]:
    usage = event.get("usage")
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    tokens = sum(int(_number(usage.get(name))) for name in names) if isinstance(usage, dict) else 0
    since = event.get("model_usage_since_last_result")
    if isinstance(since, dict):
        return tokens, sum(_number(item.get("costUSD")) for item in _objects(list(since.values())))
    return tokens, _number(event.get("total_cost_usd"))


def _number(value: Any) -> float:
    return value if isinstance(value, int | float) else 0.0


def _objects(values: Any) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(str(block.get("text", "")) for block in content if isinstance(block, dict))
    return ""

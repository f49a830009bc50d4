"""Claude Code without a terminal: `claude -p`, a stream of events, a session id that we choose before the start.

Questions leave the session in two ways: hooks (`turn hook claude`) that may defer a tool call, so that the process ends and
the session is *parked*, and the MCP server `turn mcp`. A parked session is woken **without** a prompt: the hook then answers,
and the very call goes on. With a prompt the call would be dropped and the model told of an internal error. A session that only
seemed to be parked refuses to be woken like that, and is woken with the answer instead.

Never trust the exit code alone: 0 can mean refused tools, a park or an interruption; 1 comes with results that call
themselves a success. The result event decides, and in it `deferred_tool_use` before everything else. Costs are told for the
whole session and would count twice after a resume, so what was added since the last result is taken where it is told.
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
    Agent,
    Denied,
    Ending,
    Finished,
    Heard,
    Launch,
    Parked,
    Progress,
    Run,
    Said,
    SessionStarted,
    Text,
    ToolResult,
    ToolUse,
    Unknown,
    argument,
    environment,
    killed,
    structured,
    turn_command,
)

APPROVE = "mcp__yourturn__approve"
OURS = "mcp__yourturn__*"

#: Words of API errors that come without a number and may pass.
PASSING = re.compile(
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

    def start(self, run: Run) -> Launch:
        return self._launch(run, run.prompt, "--session-id")

    def resume(self, run: Run) -> Launch:
        return self._launch(run, "" if run.parked else run.answer_prompt or run.prompt, "--resume")

    def _launch(self, run: Run, prompt: str, session: str) -> Launch:
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
        env.pop("CLAUDECODE", None)  # a worker that was itself started by Claude Code starts sessions of their own
        return Launch(tuple(words), env, run.folder, stdin)

    def parse(self, line: str) -> list[Said]:
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return [Unknown("", line)]
        if not isinstance(event, dict):
            return [Unknown("", line)]
        try:
            found = _READ.get(str(event.get("type")), _other)(event)
        except (AttributeError, TypeError, ValueError, KeyError):  # a known name in an unknown shape
            found = []
        return found or [Unknown(str(event.get("type", "")), line)]

    def classify(self, rc: int, heard: Heard) -> Ending:
        last = heard.finished
        if last is None:
            return _without_result(rc, heard)
        heard.parked = last.parked
        text = last.text or heard.text
        if last.parked and last.ok:
            return heard.ending("parked", text=last.text)
        if last.ok:
            return heard.ending("done", text=text)
        what = "retryable" if last.cause in ("overloaded", "tool_unavailable") else "failed"
        return heard.ending(what, last.error, last.cause, text=text)


def settings(run: Run) -> dict[str, Any]:
    """One hook for whatever may need a person. It may wait for a quick one, so it has more time than that."""
    tools = [*ASKING]
    for pattern in run.agent.gate:
        name = _matcher(pattern.partition("(")[0].strip())
        if name not in tools:
            tools.append(name)
    command = shlex.join(run.hook_command or turn_command("hook", "claude"))
    hook = {"type": "command", "command": command, "timeout": int(run.ask_wait) + 60}
    return {"hooks": {"PreToolUse": [{"matcher": "|".join(tools), "hooks": [hook]}]}}


def _matcher(name: str) -> str:
    """Rather too many: the hook itself looks once more."""
    begins = re.split(r"[*?[]", name)[0]
    return re.escape(name) if begins == name else f"{re.escape(begins)}.*"


def servers(run: Run) -> dict[str, Any]:
    """`turn mcp`. It inherits the environment: a token on a command line could be read by everybody on the machine."""
    program, *words = run.mcp_command or turn_command("mcp")
    return {"mcpServers": {"yourturn": {"type": "stdio", "command": program, "args": words}}}


def _without_result(rc: int, heard: Heard) -> Ending:
    words = heard.stderr()
    for phrase, cause in LOST:
        if phrase in words:
            heard.parked = None
            return heard.ending("retryable", words, cause)
    if death := killed(rc):
        return heard.ending("retryable", death, "killed")
    if rc == 0:
        return heard.ending("failed", f"It ended without a result. {words}".strip(), "silent")
    return heard.ending("failed", words or f"It ended with exit code {rc} and said nothing.", "crash")


# --- events ---------------------------------------------------------------------------------------------------------


def _system(event: dict[str, Any]) -> list[Said]:
    match event.get("subtype"):
        case "init":
            return [SessionStarted(str(event["session_id"]), str(event.get("model") or ""))]
        case "permission_denied":
            return [Denied(str(event["tool_use_id"]), str(event.get("tool_name")), str(event.get("message") or ""))]
    return []


def _assistant(event: dict[str, Any]) -> list[Said]:
    helper = event.get("parent_tool_use_id")  # said by a helper of the agent, not by the agent
    found: list[Said] = []
    for block in event["message"]["content"]:
        match block.get("type"):
            case "text":
                found.append(Progress(str(block["text"])) if helper else Text(str(block["text"])))
            case "tool_use":
                found.append(ToolUse(str(block["id"]), str(block["name"]), block.get("input")))
            case "thinking":
                found.append(Progress())
    return found


def _user(event: dict[str, Any]) -> list[Said]:
    content = event["message"]["content"]
    if isinstance(content, str):
        return [Progress()]
    found: list[Said] = []
    for block in content:
        if block.get("type") == "tool_result":
            text = _words(block.get("content"))
            found.append(ToolResult(str(block["tool_use_id"]), text, bool(block.get("is_error")), structured(text)))
    return found or [Progress()]


def _progress(event: dict[str, Any]) -> list[Said]:
    return [Progress(f"{event.get('tool_name')}, {float(event.get('elapsed_time_seconds') or 0):.0f} s")]


def _result(event: dict[str, Any]) -> list[Said]:
    parked = None
    call = event.get("deferred_tool_use")
    if isinstance(call, dict):
        parked = Parked(str(call["id"]), str(call.get("name")), call.get("input"))
    denials = tuple(
        Denied(str(one.get("tool_use_id")), str(one.get("tool_name")), "", one.get("tool_input"))
        for one in _each(event.get("permission_denials"))
    )
    tokens, cost = _spent(event)
    cause, error = _trouble(event)
    last = Finished(not cause, str(event.get("result") or ""), tokens, cost, error, cause, parked, denials)
    return [parked, last] if parked and not cause else [last]


def _trouble(event: dict[str, Any]) -> tuple[str, str]:
    """('', '') when all is well, else a cause and words."""
    subtype, reason = event.get("subtype"), event.get("terminal_reason")
    errors = [str(one) for one in event["errors"]] if isinstance(event.get("errors"), list) else []
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
    status, sort = event.get("api_error_status"), str(event.get("api_error_type") or "")
    words = words or "The model could not be reached."
    if isinstance(status, int):
        if status in (408, 409, 425, 429) or status >= 500:
            return "overloaded", words
        return ("login" if status in (401, 403) else "api"), words
    if PASSING.search(f"{sort} {words}"):
        return "overloaded", words
    return "login", words


def _spent(event: dict[str, Any]) -> tuple[int, float]:
    usage = event.get("usage")
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    tokens = sum(int(_number(usage.get(name))) for name in names) if isinstance(usage, dict) else 0
    since = event.get("model_usage_since_last_result")
    if isinstance(since, dict):
        return tokens, sum(_number(one.get("costUSD")) for one in _each(list(since.values())))
    return tokens, _number(event.get("total_cost_usd"))


def _number(value: Any) -> float:
    return value if isinstance(value, int | float) else 0.0


def _each(values: Any) -> list[dict[str, Any]]:
    return [one for one in values if isinstance(one, dict)] if isinstance(values, list) else []


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(str(block.get("text", "")) for block in content if isinstance(block, dict))
    return ""


def _other(event: dict[str, Any]) -> list[Said]:
    return []


_READ = {"system": _system, "assistant": _assistant, "user": _user, "tool_progress": _progress, "result": _result}

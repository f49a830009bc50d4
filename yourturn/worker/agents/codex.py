"""Codex without a terminal: `codex exec --json`, and `exec resume … ID "the answer"`.

It chooses the session's id itself and says it in its first event. Nothing parks by itself: our MCP tool answers `pending`, the
model ends its turn, and the session is woken with the answer as its prompt. Without `default_tools_approval_mode` every
call of our tools would be refused, and without `env_vars` the server would not know whose it is.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ..claude.hook_question import CLOSED
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

SANDBOX = "workspace-write"
REFUSED = re.compile(r"requires approval|approval policy", re.IGNORECASE)
LOGIN = re.compile(r"\b40[13]\b|unauthori[sz]ed|not logged in|api key|log ?in", re.IGNORECASE)
PASSING = re.compile(r"\b(429|5\d\d)\b|overload|rate.?limit|disconnected|connection|network|timed? ?out|try again", re.IGNORECASE)


class Codex:
    plain = False

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def session_id(self) -> str | None:
        return None

    def start(self, run: Run) -> Launch:
        return self._launch(run, run.prompt)

    def resume(self, run: Run) -> Launch:
        return self._launch(run, run.answer_prompt or run.prompt, str(run.session_id))

    def _launch(self, run: Run, prompt: str, session: str = "") -> Launch:
        agent, env = run.agent, environment(run)
        words = [*(agent.argv or ("codex",)), "exec", *(["resume"] if session else []), "--json", "--skip-git-repo-check"]
        words += ["-c", f"sandbox_mode={json.dumps(agent.permission_mode or SANDBOX)}"]  # resume knows no -s
        if agent.model:
            words += ["-m", agent.model]
        program, *more = run.mcp_command or turn_command("mcp")
        server = {
            "command": program,
            "args": more,
            "env_vars": sorted(name for name in env if name.startswith("YOURTURN_")),
            "default_tools_approval_mode": "approve",
            "startup_timeout_sec": 30,
            "tool_timeout_sec": int(run.ask_wait) + 60,
        }
        for name, value in server.items():
            words += ["-c", f"mcp_servers.yourturn.{name}={json.dumps(value)}"]  # such JSON is TOML, too
        data = prompt.encode("utf-8", "replace")
        long = len(data) > ARGUMENT
        words += [*([session] if session else []), "-" if long else argument(prompt)]
        return Launch(tuple(words), env, run.folder, data if long else None)

    def parse(self, line: str) -> list[Said]:
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return [Unknown("", line)]
        if not isinstance(event, dict):
            return [Unknown("", line)]
        try:
            found = _event(event)
        except (AttributeError, TypeError, ValueError, KeyError):
            found = []
        return found or [Unknown(str(event.get("type", "")), line)]

    def classify(self, rc: int, heard: Heard) -> Ending:
        last, words = heard.finished, heard.stderr()
        if last is not None and not last.ok:
            return heard.ending(_sort(last.error), last.error, _cause(last.error))
        if last is not None:
            return heard.ending("parked" if heard.parked and heard.parked.question else "done")
        if "no rollout found" in words:
            return heard.ending("retryable", words, "session_lost")
        if death := killed(rc):
            return heard.ending("retryable", death, "killed")
        if rc == 0:
            return heard.ending("failed", f"It ended without a result. {words}".strip(), "silent")
        return heard.ending("failed", words or f"It ended with exit code {rc} and said nothing.", "crash")


def _sort(error: str) -> str:
    return "retryable" if _cause(error) == "overloaded" else "failed"


def _cause(error: str) -> str:
    if LOGIN.search(error):
        return "login"
    return "overloaded" if PASSING.search(error) else "api"


def _event(event: dict[str, Any]) -> list[Said]:
    match event.get("type"):
        case "thread.started":
            return [SessionStarted(str(event["thread_id"]))]
        case "turn.started":
            return [Progress()]
        case "turn.completed":
            usage = event.get("usage") or {}
            return [Finished(True, tokens=int(usage.get("input_tokens") or 0) + int(usage.get("output_tokens") or 0))]
        case "turn.failed":
            return [Finished(False, error=str(event["error"]["message"]))]
        case "error":
            return [Progress(str(event.get("message") or ""))]  # the turn that fails says so itself
        case "item.started" | "item.updated" | "item.completed":
            return _item(event["item"], event["type"] == "item.completed", event["type"] == "item.started")
    return []


def _item(item: dict[str, Any], ended: bool, started: bool) -> list[Said]:
    id_ = str(item.get("id"))
    match item.get("type"):
        case "agent_message":
            return [Text(str(item["text"]))] if ended else [Progress()]
        case "command_execution":
            if not ended:
                return [ToolUse(id_, "shell", {"command": item.get("command")})] if started else [Progress()]
            return [ToolResult(id_, str(item.get("aggregated_output") or ""), item.get("status") != "completed")]
        case "mcp_tool_call":
            return _call(item, id_, ended, started)
        case "file_change" | "reasoning" | "web_search" | "todo_list" | "error":
            return [Progress(str(item.get("text") or item.get("message") or item["type"]))]
    return []


def _call(item: dict[str, Any], id_: str, ended: bool, started: bool) -> list[Said]:
    name = f"mcp__{item.get('server')}__{item.get('tool')}"
    if not ended:
        return [ToolUse(id_, name, item.get("arguments"))] if started else [Progress()]
    if item.get("error"):
        why = str(item["error"].get("message"))
        result = ToolResult(id_, why, True)
        return [Denied(id_, name, why, item.get("arguments")), result] if REFUSED.search(why) else [result]
    result_ = item.get("result") or {}
    text = "\n".join(str(block.get("text", "")) for block in result_.get("content") or () if isinstance(block, dict))
    data = result_.get("structured_content")
    data = data if isinstance(data, dict) else structured(text)
    found: list[Said] = [ToolResult(id_, text, item.get("status") == "failed", data)]
    if item.get("server") == "yourturn" and isinstance(data, dict):
        found += _waits(id_, name, item.get("arguments"), data)
    return found


def _waits(id_: str, name: str, arguments: Any, data: dict[str, Any]) -> list[Said]:
    """Whether a tool of ours left a question open that the session waits for, or told how one was closed."""
    if "question_id" not in data or data.get("blocking") is False:
        return []
    question = str(data["question_id"])
    if data.get("status") == "pending":
        return [Parked(id_, name, arguments, question)]
    return [Parked("", name, arguments, question)] if data.get("status") in CLOSED else []

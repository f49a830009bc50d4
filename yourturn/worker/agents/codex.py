"""Adapter for Codex: `codex exec --json`, and `exec resume … ID "the answer"`.

Codex chooses the session id and reports it in its first event. It cannot park a tool call: our MCP tool returns `pending`, the
model ends its turn, and the session is resumed with the answer as its prompt. Without `default_tools_approval_mode` Codex
would refuse every call of our tools, and without `env_vars` the MCP server would not know its task.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ..claude.hook_question import CLOSED
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

SANDBOX = "workspace-write"
REFUSED = re.compile(r"requires approval|approval policy", re.IGNORECASE)
LOGIN = re.compile(r"\b40[13]\b|unauthori[sz]ed|not logged in|api key|log ?in", re.IGNORECASE)
TEMPORARY = re.compile(r"\b(429|5\d\d)\b|overload|rate.?limit|disconnected|connection|network|timed? ?out|try again", re.I)


class Codex:
    plain = False

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def session_id(self) -> str | None:
        return None

    def start(self, run: AgentRun) -> Launch:
        return self._launch(run, run.prompt)

    def resume(self, run: AgentRun) -> Launch:
        return self._launch(run, run.answer_prompt or run.prompt, str(run.session_id))

    def _launch(self, run: AgentRun, prompt: str, session: str = "") -> Launch:
        agent, env = run.agent, environment(run)
        words = [*(agent.argv or ("codex",)), "exec", *(["resume"] if session else []), "--json", "--skip-git-repo-check"]
        words += ["-c", f"sandbox_mode={json.dumps(agent.permission_mode or SANDBOX)}"]  # `resume` has no option -s
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
            words += ["-c", f"mcp_servers.yourturn.{name}={json.dumps(value)}"]  # these values are valid TOML, too
        data = prompt.encode("utf-8", "replace")
        long = len(data) > ARGUMENT
        words += [*([session] if session else []), "-" if long else argument(prompt)]
        return Launch(tuple(words), env, run.folder, data if long else None)

    def parse(self, line: str) -> list[AgentEvent]:
        return parse_event(line, _events)

    def classify(self, rc: int, transcript: Transcript) -> Ending:
        last, words = transcript.finished, transcript.stderr()
        if last is not None and not last.ok:
            cause = _cause(last.error)
            return transcript.ending("retryable" if cause == "overloaded" else "failed", last.error, cause)
        if last is not None:
            return transcript.ending("parked" if transcript.parked and transcript.parked.question else "done")
        if "no rollout found" in words:
            return transcript.ending("retryable", words, "session_lost")
        return ended_without_result(rc, transcript)


def _cause(error: str) -> str:
    if LOGIN.search(error):
        return "login"
    return "overloaded" if TEMPORARY.search(error) else "api"


def _events(event: dict[str, Any]) -> list[AgentEvent]:
    match event.get("type"):
        case "thread.started":
            return [SessionStarted(str(event["thread_id"]))]
        case "turn.started":
            return [Activity()]
        case "turn.completed":
            usage = event.get("usage") or {}
            return [Finished(True, tokens=int(usage.get("input_tokens") or 0) + int(usage.get("output_tokens") or 0))]
        case "turn.failed":
            return [Finished(False, error=str(event["error"]["message"]))]
        case "error":
            return [Activity(str(event.get("message") or ""))]  # a failed turn has an event of its own
        case "item.started" | "item.updated" | "item.completed":
            return _item(event["item"], event["type"] == "item.completed", event["type"] == "item.started")
    return []


def _item(item: dict[str, Any], ended: bool, started: bool) -> list[AgentEvent]:
    id_ = str(item.get("id"))
    match item.get("type"):
        case "agent_message":
            return [Text(str(item["text"]))] if ended else [Activity()]
        case "command_execution":
            if not ended:
                return [ToolUse(id_, "shell", {"command": item.get("command")})] if started else [Activity()]
            return [ToolResult(id_, str(item.get("aggregated_output") or ""), item.get("status") != "completed")]
        case "mcp_tool_call":
            return _call(item, id_, ended, started)
        case "file_change" | "reasoning" | "web_search" | "todo_list" | "error":
            return [Activity(str(item.get("text") or item.get("message") or item["type"]))]
    return []


def _call(item: dict[str, Any], id_: str, ended: bool, started: bool) -> list[AgentEvent]:
    name = f"mcp__{item.get('server')}__{item.get('tool')}"
    if not ended:
        return [ToolUse(id_, name, item.get("arguments"))] if started else [Activity()]
    if item.get("error"):
        why = str(item["error"].get("message"))
        result = ToolResult(id_, why, True)
        return [Denied(id_, name, why, item.get("arguments")), result] if REFUSED.search(why) else [result]
    result_ = item.get("result") or {}
    text = "\n".join(str(block.get("text", "")) for block in result_.get("content") or () if isinstance(block, dict))
    data = result_.get("structured_content")
    data = data if isinstance(data, dict) else structured(text)
    events: list[AgentEvent] = [ToolResult(id_, text, item.get("status") == "failed", data)]
    if item.get("server") == "yourturn" and isinstance(data, dict):
        events += _parked(id_, name, item.get("arguments"), data)
    return events


def _parked(id_: str, name: str, arguments: Any, data: dict[str, Any]) -> list[AgentEvent]:
    """The effect of a result of our tools: it left a question open, for which the session waits, or reported a closed one."""
    if "question_id" not in data or data.get("blocking") is False:
        return []
    question = str(data["question_id"])
    if data.get("status") == "pending":
        return [Parked(id_, name, arguments, question)]
    return [Parked("", name, arguments, question)] if data.get("status") in CLOSED else []

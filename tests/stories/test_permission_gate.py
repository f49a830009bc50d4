"""An agent wants to push. A person edits the exact command, and the hook allows only that, once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.fixtures.command import Turn

CALL = {
    "session_id": "0f6e", "tool_use_id": "toolu_9", "cwd": "/shop", "hook_event_name": "PreToolUse", "tool_name": "Bash",
    "tool_input": {"command": "git push --force"},
}  # fmt: skip
ACTION = {"tool": "Bash", "input": CALL["tool_input"], "folder": "/shop"}


def hook(turn: Turn, claim: str, **more: Any) -> dict[str, Any]:
    env = {
        "YOURTURN_TASK": "PROJ-1", "YOURTURN_AGENT": "coder", "YOURTURN_CLAIM": claim, "YOURTURN_ASK_WAIT": "0",
        "YOURTURN_GATED": '["Bash(git push*)"]',
    }  # fmt: skip
    found: dict[str, Any] = json.loads(turn.text("hook", "claude", env=env, input=json.dumps({**CALL, **more})))
    return dict(found["hookSpecificOutput"])


def test_parked_edited_and_resumed(turn: Turn, tmp_path: Path) -> None:
    turn("create", "Ship it")
    claim = turn.as_agent("claim", "PROJ-1", "--worker-id", "w1")["claim"]["token"]
    assert hook(turn, claim)["permissionDecision"] == "defer"
    turn.as_agent("park", "PROJ-1", "--claim", claim)

    shown = turn.text("show", "Q1")
    assert "This exact action, once" in shown and '"command": "git push --force"' in shown
    assert turn.as_agent("approve", "Q1", exit=5)["code"] == "not_allowed"
    assert turn("approve", "Q1", "--edit-input", "nowhere.json", exit=6)["code"] == "invalid"
    assert turn("approve", "PROJ-1", "--edit-input", "{", exit=6)["code"] == "invalid"
    better = tmp_path / "better.json"
    better.write_text('{"command": "git push"}')
    turn("approve", "Q1", "no force", "--edit-input", str(better))
    shown = turn.text("show", "Q1")
    assert "ana said yes, with changes: “no force”" in shown and "Changed by ana to" in shown

    claim = turn.as_agent("claim", "PROJ-1", "--worker-id", "w2")["claim"]["token"]
    found = hook(turn, claim)
    assert (found["permissionDecision"], found["updatedInput"]) == ("allow", {"command": "git push"})
    assert "Used by 0f6e/toolu_9" in turn.text("show", "Q1")
    assert hook(turn, claim, tool_input={"command": "git push --all"})["permissionDecision"] == "deny"
    assert turn("doctor", "--strict")


def test_any_program_can_use_a_permission_once(turn: Turn) -> None:
    turn("create", "Ship it")
    action = json.dumps({"tool": "deploy", "input": {"to": "production"}, "folder": "/srv"})
    turn.as_agent("ask", "PROJ-1", "Deploy?", "--kind", "permission", "--action", action)
    assert turn.as_agent("use", "Q1", "--by", "deploy-7", "--action", action, exit=4)["code"] == "precondition"
    turn("approve", "Q1", "--edit-input", '{"to": "staging"}')
    refused = turn.as_agent("use", "Q1", "--by", "deploy-7", "--action", action, exit=4)
    assert refused["message"] == "Cannot use PROJ-1: Q1 allows something else"
    edited = action.replace("production", "staging")
    assert turn.as_agent("use", "Q1", "--by", "deploy-7", "--action", edited)["used_by"] == "deploy-7"
    assert turn.as_agent("use", "Q1", "--by", "deploy-7", "--action", edited)["used_by"] == "deploy-7"
    assert "used already, by deploy-7" in turn.as_agent("use", "Q1", "--by", "deploy-8", "--action", edited, exit=4)["message"]
    assert turn.as_agent("use", "Q1", "--by", "deploy-7", "--action", edited, exit=5, name="rival")["code"] == "not_allowed"

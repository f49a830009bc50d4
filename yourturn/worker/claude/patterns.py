"""Patterns for tool calls that need a person, like `Bash(git push*)`, `Write`, `mcp__github__*`.

A name alone matches every call of that tool. The part in brackets is compared with the subject of the call: a command, a path, a
URL, or the whole input as JSON. In a command it may match anywhere: after `cd … &&`, in quotes, after `sudo`. So an
`echo "git push"` asks for nothing, which costs a moment; the other mistake would cost more. A pattern cannot detect everything
that a shell can do; gate the whole tool to be sure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from fnmatch import translate
from typing import Any

#: Tools that are themselves questions to a person.
QUESTIONS, PLAN, ASK = "AskUserQuestion", "ExitPlanMode", "mcp__yourturn__ask_question"
ASKING = (QUESTIONS, PLAN, ASK)

#: The field of an input that is the subject, by priority.
_ABOUT = ("command", "file_path", "notebook_path", "path", "url", "query", "pattern", "skill", "subagent_type")
_PATTERN = re.compile(r"([^()]+)(?:\((.*)\))?", re.DOTALL)
#: The ends of the parts of a command, and the characters after which a word can begin.
_ENDS = re.compile(r"[;&|\n()`]+")
_BEFORE = frozenset(" {}\"'$=<>!\\/")
#: A part of a command with more possible matches needs a person, without further comparison.
_OFTEN = 100


def gated(text: str | None) -> tuple[str, ...] | None:
    """The patterns in YOURTURN_GATED, a JSON list. None if it is invalid; then every call is gated."""
    if not text:
        return ()
    try:
        patterns = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(patterns, list) or not all(isinstance(item, str) and readable(item) for item in patterns):
        return None
    return tuple(item.strip() for item in patterns)


def readable(pattern: str) -> bool:
    return _PATTERN.fullmatch(pattern.strip()) is not None


def concerns(tool: object, tool_input: object, patterns: Sequence[str] | None) -> bool:
    """True if this call needs a person."""
    return patterns is None or tool in ASKING or matches(tool, tool_input, patterns)


def matches(tool: object, tool_input: object, patterns: Sequence[str]) -> bool:
    return any(_match(str(tool), tool_input, pattern) for pattern in patterns)


def _match(tool: str, tool_input: object, pattern: str) -> bool:
    parsed = _PATTERN.fullmatch(pattern)
    if parsed is None or not re.match(translate(parsed[1].strip()), tool):
        return parsed is None
    if parsed[2] is None or parsed[2].strip() in ("", "*"):
        return True
    expected = parsed[2].strip()
    expected = expected[:-2] + "*" if expected.endswith(":*") else expected
    fields = tool_input if isinstance(tool_input, Mapping) else {}
    subject = next((fields[name] for name in _ABOUT if isinstance(fields.get(name), str)), None)
    if subject is None:
        subject = json.dumps(tool_input, sort_keys=True, ensure_ascii=False)
    return _in_command(subject, expected) if "command" in fields else re.match(translate(expected), subject) is not None


def _in_command(command: str, expected: str) -> bool:
    expected = " ".join(expected.split())
    regex = re.compile(translate(expected))
    prefix = re.split(r"[*?[]", expected)[0]  # str.find for the literal prefix is fast
    joined = re.sub(r"\\\r?\n", " ", command)
    if regex.match(" ".join(joined.split())):
        return True
    bare = re.sub(r"[\"'\\]", "", joined)
    return bool(prefix) and any(_found_in(regex, prefix, part) for text in (joined, bare) for part in _ENDS.split(text))


def _found_in(regex: re.Pattern[str], prefix: str, part: str) -> bool:
    words = " ".join(part.split())
    at = words.find(prefix)
    for _ in range(_OFTEN):
        if at < 0:
            return False
        if (at == 0 or words[at - 1] in _BEFORE) and regex.match(words, at):
            return True
        at = words.find(prefix, at + 1)
    return True


def deny(reason: str) -> dict[str, Any]:
    return output("deny", reason)


def output(decision: str, reason: str, updated: dict[str, Any] | None = None) -> dict[str, Any]:
    """The output of a PreToolUse hook."""
    result: dict[str, Any] = {"hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": reason}
    if updated is not None:
        result["updatedInput"] = updated
    return {"hookSpecificOutput": result}

"""Which tool calls need a person: patterns like `Bash(git push*)`, `Write`, `mcp__github__*`.

A name alone stands for every call of that tool; words in brackets are compared with what the call is about: a command, a
path, an address, or the whole input as JSON. A command is searched, not only compared from its start: whatever follows a
`cd … &&`, stands in quotes or hides behind `sudo` is found too. That asks about an `echo "git push"` for nothing, which costs
a moment; the other mistake would cost more. No pattern can see through everything that a shell can do, so whoever
wants to be sure gates the whole tool.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from fnmatch import translate
from typing import Any

#: Calls that are themselves questions to a person.
QUESTIONS, PLAN, ASK = "AskUserQuestion", "ExitPlanMode", "mcp__yourturn__ask_question"
ASKING = (QUESTIONS, PLAN, ASK)

#: The part of an input that a pattern is about.
_ABOUT = ("command", "file_path", "notebook_path", "path", "url", "query", "pattern", "skill", "subagent_type")
_PATTERN = re.compile(r"([^()]+)(?:\((.*)\))?", re.DOTALL)
#: Where a word of a command can begin.
_START = re.compile(r"(?:^|(?<=[\s;&|(){}`\"'$=<>!\\/]))(?=\S)")
#: Longer commands than this are not searched: they need a person.
_LONG = 50_000


def gated(text: str | None) -> tuple[str, ...] | None:
    """YOURTURN_GATED, a JSON list of patterns. None: it cannot be read, so nobody knows what is gated."""
    if not text:
        return ()
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, list) or not all(isinstance(item, str) and _PATTERN.fullmatch(item.strip()) for item in found):
        return None
    return tuple(item.strip() for item in found)


def concerns(tool: object, given: object, patterns: Sequence[str] | None) -> bool:
    """Does this call need a person?"""
    return patterns is None or tool in ASKING or matches(tool, given, patterns)


def matches(tool: object, given: object, patterns: Sequence[str]) -> bool:
    return any(_match(str(tool), given, pattern) for pattern in patterns)


def _match(tool: str, given: object, pattern: str) -> bool:
    found = _PATTERN.fullmatch(pattern)
    if found is None or not re.match(translate(found[1].strip()), tool):
        return found is None
    if found[2] is None or found[2].strip() in ("", "*"):
        return True
    wanted = found[2].strip()
    wanted = wanted[:-2] + "*" if wanted.endswith(":*") else wanted
    fields = given if isinstance(given, Mapping) else {}
    about = next((fields[name] for name in _ABOUT if isinstance(fields.get(name), str)), None)
    if about is None:
        about = json.dumps(given, sort_keys=True, ensure_ascii=False)
    return _in_command(about, wanted) if "command" in fields else re.match(translate(wanted), about) is not None


def _in_command(command: str, wanted: str) -> bool:
    if len(command) > _LONG:
        return True
    same = re.compile(translate(" ".join(wanted.split())))
    whole = " ".join(re.sub(r"\\\r?\n", " ", command).split())
    if same.match(whole):
        return True
    if wanted.startswith("*"):
        return False
    bare = re.sub(r"[\"'\\]", "", command)
    return any(_starts(same, part) for text in (command, bare) for part in re.split(r"[;&|\n()`]+", text))


def _starts(same: re.Pattern[str], part: str) -> bool:
    words = " ".join(part.split())
    return any(same.match(words, at.start()) for at in _START.finditer(words))


def deny(reason: str) -> dict[str, Any]:
    return output("deny", reason)


def output(decision: str, reason: str, updated: dict[str, Any] | None = None) -> dict[str, Any]:
    """What Claude Code reads from a PreToolUse hook."""
    said: dict[str, Any] = {"hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": reason}
    if updated is not None:
        said["updatedInput"] = updated
    return {"hookSpecificOutput": said}

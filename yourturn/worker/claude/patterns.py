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
#: What ends a part of a command, and after what, inside one, a word can begin.
_ENDS = re.compile(r"[;&|\n()`]+")
_BEFORE = frozenset(" {}\"'$=<>!\\/")
#: A part of a command that looks like it in so many places is not looked at any closer: it needs a person.
_OFTEN = 100


def gated(text: str | None) -> tuple[str, ...] | None:
    """YOURTURN_GATED, a JSON list of patterns. None: it cannot be read, so nobody knows what is gated."""
    if not text:
        return ()
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, list) or not all(isinstance(item, str) and readable(item) for item in found):
        return None
    return tuple(item.strip() for item in found)


def readable(pattern: str) -> bool:
    return _PATTERN.fullmatch(pattern.strip()) is not None


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
    wanted = " ".join(wanted.split())
    same = re.compile(translate(wanted))
    begins = re.split(r"[*?[]", wanted)[0]  # what it begins with is looked for first: that takes no time
    joined = re.sub(r"\\\r?\n", " ", command)
    if same.match(" ".join(joined.split())):
        return True
    bare = re.sub(r"[\"'\\]", "", joined)
    return bool(begins) and any(_found(same, begins, part) for text in (joined, bare) for part in _ENDS.split(text))


def _found(same: re.Pattern[str], begins: str, part: str) -> bool:
    words = " ".join(part.split())
    at = words.find(begins)
    for _ in range(_OFTEN):
        if at < 0:
            return False
        if (at == 0 or words[at - 1] in _BEFORE) and same.match(words, at):
            return True
        at = words.find(begins, at + 1)
    return True


def deny(reason: str) -> dict[str, Any]:
    return output("deny", reason)


def output(decision: str, reason: str, updated: dict[str, Any] | None = None) -> dict[str, Any]:
    """What Claude Code reads from a PreToolUse hook."""
    said: dict[str, Any] = {"hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": reason}
    if updated is not None:
        said["updatedInput"] = updated
    return {"hookSpecificOutput": said}

"""What an agent is told that works in a step of a run: the run, what came before, its own part, and how to end its turn."""

from __future__ import annotations

from typing import Any

from . import brief as briefs
from .quoting import inline, quote, say

_PROMPT, _SUMMARY, _STEPS = 8_000, 600, 30
_WORDS = """\
You work on one step of a script. When your turn ends, the script goes on with what you said; you do not finish the whole
run. If your role or this step asks for a word of its own (like APPROVED or NEEDS_REVIEW), write it as the status of the
signal file."""


def brief(
    task: dict[str, Any], steps: list[dict[str, Any]], path: str, prompt: str | None, *, agent: str, role: str, again: str,
    signals: str,
) -> str:  # fmt: skip
    more = [*_before(steps, path, task["key"]), *_own(task, path, prompt, agent)]
    return briefs.brief(task, agent=agent, role=role, again=again, signals=signals, more=more, in_run=True)


def _own(task: dict[str, Any], path: str, prompt: str | None, agent: str) -> list[str]:
    parts = [f"## Your step: {path}", _WORDS]
    if prompt and prompt.strip() != task["description"].strip():
        parts.append(say(f"The script calls {inline(agent)} with this:", prompt, _PROMPT, task["key"]))
    return parts


def _before(steps: list[dict[str, Any]], path: str, key: str) -> list[str]:
    """What agents and people have said, in the order of the script. Other branches are not known yet."""
    done = [s for s in steps if s["status"] == "completed" and not s["spare"] and _leads_to(s["index"], path)]
    told = [line for line in (_line(s, key) for s in done) if line]
    if not told:
        return []
    more = len(told) - _STEPS
    left = [f"({more} earlier steps are left out here; turn show {key} has them all.)"] if more > 0 else []
    return ["## What was done before", *left, *told[-_STEPS:]]


def _leads_to(index: str, path: str) -> bool:
    """Is it a call of the script itself, or of a branch that this one is in?"""
    line = index.rpartition(".")[0]
    return index != path and (not line or path.startswith(f"{line}."))


def _line(step: dict[str, Any], key: str) -> str:
    result = step["result"] if isinstance(step["result"], dict) else {}
    index = step["index"]
    if step["name"] == "run":
        words = next((str(result[name]) for name in ("summary", "message", "reason") if result.get(name)), "")
        head = f"- step {index}, {inline(step['agent'] or '')}: {inline(str(result.get('status') or ''))}"
        return say(f"{head}:", words, _SUMMARY, key) if words.strip() else head
    if step["name"] in ("pause", "ask"):
        asked = (step["call"] or {}).get("text") or ""
        words = str(result.get("text") or result.get("value") or result.get("verdict") or result.get("status") or "")
        return "\n".join([say(f"- step {index}, a person was asked:", asked, _SUMMARY, key), quote(words, _SUMMARY, key)])
    return ""

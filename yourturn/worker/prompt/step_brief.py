"""The brief of an agent in a step of a run: the run, the earlier steps, its own step, and how to end its turn."""

from __future__ import annotations

from typing import Any

from . import brief as briefs
from .quoting import inline, labelled, quoted

_PROMPT, _SUMMARY, _STEPS = 8_000, 600, 30
_WORDS = """\
You work on one step of a script. When your turn ends, the script goes on with what you said; you do not finish the whole
run. If your role or this step asks for a word of its own (like APPROVED or NEEDS_REVIEW), write it as the status of the
signal file."""


def brief(
    task: dict[str, Any], steps: list[dict[str, Any]], path: str, prompt: str | None, *, agent: str, role: str, again: str,
    signals: str,
) -> str:  # fmt: skip
    more = [*_earlier_steps(steps, path, task["key"]), *_own_step(task, path, prompt, agent)]
    return briefs.brief(task, agent=agent, role=role, again=again, signals=signals, more=more, in_run=True)


def _own_step(task: dict[str, Any], path: str, prompt: str | None, agent: str) -> list[str]:
    parts = [f"## Your step: {path}", _WORDS]
    if prompt and prompt.strip() != task["description"].strip():
        parts.append(labelled(f"The script calls {inline(agent)} with this:", prompt, _PROMPT, task["key"]))
    return parts


def _earlier_steps(steps: list[dict[str, Any]], path: str, key: str) -> list[str]:
    """The results of earlier steps, in the order of the script, without those of parallel branches."""
    completed = [s for s in steps if s["status"] == "completed" and not s["spare"] and _is_visible(s["index"], path)]
    lines = [line for line in (_step_line(s, key) for s in completed) if line]
    if not lines:
        return []
    more = len(lines) - _STEPS
    omitted = [f"({more} earlier steps are left out here; turn show {key} has them all.)"] if more > 0 else []
    return ["## What was done before", *omitted, *lines[-_STEPS:]]


def _is_visible(index: str, path: str) -> bool:
    """True for a step of the script itself, or of a branch that contains this step."""
    line = index.rpartition(".")[0]
    return index != path and (not line or path.startswith(f"{line}."))


def _step_line(step: dict[str, Any], key: str) -> str:
    result = step["result"] if isinstance(step["result"], dict) else {}
    index = step["index"]
    if step["name"] == "run":
        words = next((str(result[name]) for name in ("summary", "message", "reason") if result.get(name)), "")
        head = f"- step {index}, {inline(step['agent'] or '')}: {inline(str(result.get('status') or ''))}"
        return labelled(f"{head}:", words, _SUMMARY, key) if words.strip() else head
    if step["name"] in ("pause", "ask"):
        text = (step["call"] or {}).get("text") or ""
        words = str(result.get("text") or result.get("value") or result.get("verdict") or result.get("status") or "")
        return "\n".join([labelled(f"- step {index}, a person was asked:", text, _SUMMARY, key), quoted(words, _SUMMARY, key)])
    return ""

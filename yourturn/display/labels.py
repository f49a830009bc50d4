"""The terms of the desk on a terminal: states, people, values."""

from __future__ import annotations

from typing import Any

from .terminal import cut, one_line, safe

ICONS = {
    "created": "·", "ready": "○", "blocked": "◌", "working": "●", "human": "❓", "review": "◎", "done": "✓",
    "failed": "✗", "cancelled": "–", "deferred": "☾",
}  # fmt: skip
WORDS = {
    "created": "not vetted yet", "ready": "ready", "blocked": "blocked", "working": "working", "human": "needs human",
    "review": "to be accepted", "done": "done", "failed": "failed", "cancelled": "cancelled", "deferred": "deferred",
}  # fmt: skip


def person(actor: str) -> str:
    """human:ana is ana; agent:coder is coder."""
    return safe(actor.partition(":")[2] or actor)


def as_text(value: Any) -> str:
    """A field's value in a fact: the items of a list with commas between."""
    return ", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)


def quoted(value: Any) -> str:
    if isinstance(value, bool):
        return "“yes”" if value else "“no”"
    if isinstance(value, list):
        return ", ".join(quoted(item) for item in value)
    return f"“{cut(one_line(str(value)), 80)}”"

"""What a session has read: a mark in its seat. What is closed or noted beyond it is news to the session.

    {"questions": ["Q3", "Q7"], "notes": 4}     closed questions by name, and how many of the task's notes

A mark moves when the session has read the words, not when they are sent: once the model says something after them (both Claude
Code and Codex write a prompt to the session's file before they send it), or once the turn ends in order. A worker that dies
before leaves the mark where it was, and the next one says the same again. What a tool or a hook tells within a turn counts
alike. Without a mark nothing is known to be read, not even the brief.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Mark = dict[str, Any]


def of(task: dict[str, Any]) -> Mark:
    """Of all that the task says now."""
    return {"questions": [q["id"] for q in task["questions"] if q["status"] != "pending"], "notes": len(task["notes"])}


def with_questions(known: Mark, names: Iterable[str]) -> Mark:
    return {**known, "questions": [*dict.fromkeys([*known["questions"], *names])]}


def read(found: Any) -> Mark | None:
    """The mark of a seat."""
    known = isinstance(found, dict) and isinstance(found.get("questions"), list) and isinstance(found.get("notes"), int)
    return found if known else None


def new_questions(task: dict[str, Any], known: Mark | None) -> list[dict[str, Any]]:
    return [q for q in task["questions"] if q["status"] != "pending" and (known is None or q["id"] not in known["questions"])]


def new_notes(task: dict[str, Any], known: Mark | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = task["notes"][known["notes"] if known else 0 :]
    return found

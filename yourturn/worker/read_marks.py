"""What a session has read: a mark in its seat. What is closed or noted beyond it is news to the session.

    {"questions": ["Q3", "Q7"], "notes": 4}     closed questions by name, and how many of the task's notes

A mark moves when the session has read the words, not when they are sent: once the model says something after them (Claude Code
and Codex write a prompt to the session's file before they send it to the model), or once the turn ends in order. A worker that
dies before leaves the mark where it was, and the next one says the same again. What a tool or a hook tells within a turn
counts alike. Without a mark nothing is known to be read, not even the brief.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .agents.base import Said, Text, ToolResult, ToolUse
from .claude import hook_question, permission_gate

#: Our tools, whose results tell how questions were closed. Of others so many results are looked at, and so much of each.
_OURS, _MANY, _WORDS = "mcp__yourturn__", 1000, 4000

Mark = dict[str, Any]
Task = dict[str, Any]


def of(task: Task) -> Mark:
    """Of all that the task says now."""
    return {"questions": [q["id"] for q in task["questions"] if q["status"] != "pending"], "notes": len(task["notes"])}


def read(found: Any) -> Mark | None:
    """The mark of a seat."""
    known = isinstance(found, dict) and isinstance(found.get("questions"), list) and isinstance(found.get("notes"), int)
    return found if known else None


def new_questions(task: Task, known: Mark | None) -> list[dict[str, Any]]:
    return [q for q in task["questions"] if q["status"] != "pending" and (known is None or q["id"] not in known["questions"])]


def new_notes(task: Task, known: Mark | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = task["notes"][known["notes"] if known else 0 :]
    return found


class Reading:
    """The mark of one session, while it takes its turns."""

    def __init__(self, mark: Mark | None = None) -> None:
        self.mark = mark
        self._told: Mark = {"questions": [], "notes": 0}  #: what it has read as soon as it goes on
        self._went_on = False
        self._calls: dict[str, str] = {}  #: this turn's open calls, by name
        self._results: dict[str, ToolResult] = {}  #: and what came of those that a hook may have decided

    def begin(self, task: Task) -> None:
        """It is told all that is news to it."""
        self._told, self._went_on, self._calls, self._results = of(task), False, {}, {}

    def hear(self, said: Said) -> bool:
        """Whether the mark has moved."""
        if isinstance(said, ToolUse):
            self._calls[said.id] = said.name
        elif isinstance(said, ToolResult) and self._calls.pop(said.id, "").startswith(_OURS):
            self._also(hook_question.closed(said.data))
        elif isinstance(said, ToolResult) and len(self._results) < _MANY:
            self._results[said.id] = said._replace(text=said.text[:_WORDS], data=None)
        return isinstance(said, Text | ToolUse) and self._goes_on()

    def end(self, task: Task, what: str) -> bool:
        """Whether the mark has moved. A session that was woken too early is parked again, and has read nothing."""
        if what != "done" and not (what == "parked" and self._went_on):
            return False
        calls = [(q, self._results.get(str((q["metadata"] or {}).get("call")))) for q in task["questions"]]
        self._also(q["id"] for q, result in calls if result and permission_gate.tells(q, result))
        return self._goes_on()

    def knows(self, name: str) -> bool:
        return self.mark is not None and name in self.mark["questions"]

    def tell_again(self, names: set[str]) -> None:
        if self.mark is not None:
            self.mark = {**self.mark, "questions": [name for name in self.mark["questions"] if name not in names]}

    def _also(self, names: Iterable[str]) -> None:
        self._told = {**self._told, "questions": [*dict.fromkeys([*self._told["questions"], *names])]}

    def _goes_on(self) -> bool:
        self._went_on, moved = True, self.mark != self._told
        self.mark = self._told
        return moved

"""What a session has read: a mark in its `seat`. Answers and notes beyond the mark are news to the session.

    {"questions": ["Q3", "Q7"], "notes": 4}     ids of closed questions, and the number of the task's notes

A mark moves when the session has read the text, not when the text is sent: once the model produces output after it (Claude
Code and Codex write a prompt to the session's file before they send it to the model), or once the turn ends normally. After a
crash before that, the mark is unchanged and the next worker sends the text again. What a tool or a hook returns within a turn
counts alike. Without a mark nothing counts as read, not even the brief.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .agents.base import AgentEvent, Text, ToolResult, ToolUse
from .claude import hook_question, permission_gate

_OUR_TOOLS = "mcp__yourturn__"  #: their results tell how questions were closed
_MAX_RESULTS, _MAX_TEXT = 1000, 4000  #: other tool results that are kept, and characters of each

Mark = dict[str, Any]
Task = dict[str, Any]


def mark_of(task: Task) -> Mark:
    """The mark of a session that has read everything."""
    return {"questions": [q["id"] for q in task["questions"] if q["status"] != "pending"], "notes": len(task["notes"])}


def parse(value: Any) -> Mark | None:
    valid = isinstance(value, dict) and isinstance(value.get("questions"), list) and isinstance(value.get("notes"), int)
    return value if valid else None


def new_questions(task: Task, mark: Mark | None) -> list[dict[str, Any]]:
    return [q for q in task["questions"] if q["status"] != "pending" and (mark is None or q["id"] not in mark["questions"])]


def new_notes(task: Task, mark: Mark | None) -> list[dict[str, Any]]:
    notes: list[dict[str, Any]] = task["notes"][mark["notes"] if mark else 0 :]
    return notes


class ReadTracker:
    """Moves the mark of one session during its turns."""

    def __init__(self, mark: Mark | None = None) -> None:
        self.mark = mark
        self._sent: Mark = {"questions": [], "notes": 0}  #: becomes the mark once the session produces output
        self._went_on = False
        self._calls: dict[str, str] = {}  #: names of this turn's open calls, by id
        self._results: dict[str, ToolResult] = {}  #: results of calls that a hook may have decided

    def begin(self, task: Task) -> None:
        """A turn begins, and its prompt has all news."""
        self._sent, self._went_on, self._calls, self._results = mark_of(task), False, {}, {}

    def handle(self, event: AgentEvent) -> bool:
        """True if the mark has moved."""
        if isinstance(event, ToolUse):
            self._calls[event.id] = event.name
        elif isinstance(event, ToolResult) and self._calls.pop(event.id, "").startswith(_OUR_TOOLS):
            self._add(hook_question.closed_questions(event.data))
        elif isinstance(event, ToolResult) and len(self._results) < _MAX_RESULTS:
            self._results[event.id] = event._replace(text=event.text[:_MAX_TEXT], data=None)
        return isinstance(event, Text | ToolUse) and self._move()

    def end(self, task: Task, what: str) -> bool:
        """True if the mark has moved. A session that was resumed too early and parked again has read nothing."""
        if what != "done" and not (what == "parked" and self._went_on):
            return False
        calls = [(q, self._results.get(str((q["metadata"] or {}).get("call")))) for q in task["questions"]]
        self._add(q["id"] for q, result in calls if result and permission_gate.tells(q, result))
        return self._move()

    def has_read(self, question: str) -> bool:
        return self.mark is not None and question in self.mark["questions"]

    def unmark(self, questions: set[str]) -> None:
        """Send these questions' answers again."""
        if self.mark is not None:
            self.mark = {**self.mark, "questions": [name for name in self.mark["questions"] if name not in questions]}

    def _add(self, questions: Iterable[str]) -> None:
        self._sent = {**self._sent, "questions": [*dict.fromkeys([*self._sent["questions"], *questions])]}

    def _move(self) -> bool:
        self._went_on, moved = True, self.mark != self._sent
        self.mark = self._sent
        return moved

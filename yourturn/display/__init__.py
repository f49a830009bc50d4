"""Text for people on a terminal: tasks, questions, runs and history.

Takes the plain values of client/serialize.py and returns lines. All text from people and agents passes `safe` or `one_line`: it
cannot move the cursor, change colours or contain invisible characters.
"""

from __future__ import annotations

from .commands import answer_commands, answer_effect, answers, continuing_actor, hint, hints, next_steps, unattended
from .history import events, history, output
from .labels import ICONS, WORDS, as_text, person, quoted
from .lists import GROUPS, SOON, awaiting, grouped, inbox, inbox_groups, inbox_rows, more, old_id, task_rows, tasks, tree
from .questions import context_lines, option_lines, question, result, timeout_effect
from .task import followed, task, tries

__all__ = [
    "GROUPS", "ICONS", "SOON", "WORDS", "answer_commands", "answer_effect", "answers", "as_text", "awaiting", "context_lines",
    "continuing_actor", "events", "followed", "grouped", "hint", "hints", "history", "inbox", "inbox_groups", "inbox_rows",
    "more", "next_steps", "old_id", "option_lines", "output", "person", "question", "quoted", "result", "task", "task_rows",
    "tasks", "timeout_effect", "tree", "tries", "unattended",
]  # fmt: skip

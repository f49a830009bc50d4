"""Plain text for people: tasks, questions, runs and history as a terminal shows them.

Takes the plain values of client/serialize.py, returns lines. All text from people and agents goes through `safe` or
`one_line` first: it cannot move the cursor, change colours or hide invisible characters.
"""

from __future__ import annotations

from .commands import answers, goes_on, hint, hints, next_steps, then, unattended, ways
from .history import events, history, output
from .labels import ICONS, WORDS, as_text, person, quoted
from .lists import GROUPS, SOON, awaiting, grouped, inbox, inbox_groups, inbox_rows, more, old_id, task_rows, tasks, tree
from .questions import context_lines, option_lines, question, result, silence
from .task import followed, task, tries

__all__ = [
    "GROUPS",
    "ICONS",
    "SOON",
    "WORDS",
    "answers",
    "as_text",
    "awaiting",
    "context_lines",
    "events",
    "followed",
    "goes_on",
    "grouped",
    "hint",
    "hints",
    "history",
    "inbox",
    "inbox_groups",
    "inbox_rows",
    "more",
    "next_steps",
    "old_id",
    "option_lines",
    "output",
    "person",
    "question",
    "quoted",
    "result",
    "silence",
    "task",
    "task_rows",
    "tasks",
    "then",
    "tree",
    "tries",
    "unattended",
    "ways",
]

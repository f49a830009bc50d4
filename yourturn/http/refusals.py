"""Questions that could not be asked through this process: how many, by the error's code. They leave no row anywhere else."""

from __future__ import annotations

from collections import Counter

REFUSED: Counter[str] = Counter()

#: What puts a question to people: operations of the API, and tools.
OPERATIONS = frozenset({"ask", "flag"})
TOOLS = frozenset({"ask_question", "request_permission", "flag_task"})

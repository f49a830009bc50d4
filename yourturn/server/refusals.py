"""Counts questions that this process refused to ask, by error code, for /metrics: no row records a refused question."""

from __future__ import annotations

from collections import Counter

REFUSED: Counter[str] = Counter()

#: API operations and MCP tools that ask a person.
OPERATIONS = frozenset({"ask", "flag"})
TOOLS = frozenset({"ask_question", "request_permission", "flag_task"})

"""The output of a session on its way to the desk: sent a few times a second, in bounded memory, so that people can follow."""

from __future__ import annotations

import threading
from typing import Any

from ..client import Client
from ..core.errors import YourturnError
from ..desk.agent_output import cut
from .agents.base import Activity, AgentEvent, Denied, Text, ToolUse, Unknown

LIMIT = 400  #: lines that are sent at once


class OutputBuffer:
    def __init__(self, desk: Client, claim: dict[str, Any]) -> None:
        self.desk, self.claim = desk, claim
        self._lines: list[tuple[str, str]] = []
        self._dropped = 0
        self._lock = threading.Lock()

    def write(self, event: AgentEvent) -> str:
        """Buffer an event. Returns its text for the terminal; '' if it is not shown there."""
        match event:
            case Text():
                line = ("said", cut(event.text))
            case ToolUse():
                line = ("tool", f"{event.name} {_argument(event.input)}".strip())
            case Denied():
                line = ("denied", f"{event.name}: {event.why}")
            case Unknown():
                line = ("event", event.raw[:2000])
            case Activity() if event.text:
                line = ("progress", cut(event.text))
            case _:
                return ""
        with self._lock:
            self._lines.append(line)
            if len(self._lines) > LIMIT:
                del self._lines[LIMIT // 2]
                self._dropped += 1
        return line[1] if line[0] in ("said", "tool", "progress") else ""

    def flush(self) -> None:
        with self._lock:
            lines, self._lines, dropped, self._dropped = self._lines, [], self._dropped, 0
        if dropped:
            lines.insert(LIMIT // 2, ("note", f"({dropped:,} more lines are only in the log file)"))
        if lines:
            try:
                self.desk.write_output(self.claim, lines)
            except YourturnError:
                pass  # the log file has the lines; the heartbeat detects a lost claim


def _argument(value: Any) -> str:
    """The first text of a tool's input, in one line."""
    if isinstance(value, dict):
        value = next((v for v in value.values() if isinstance(v, str)), "")
    return " ".join(str(value or "")[:2000].split())[:300]

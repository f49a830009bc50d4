"""What a session says, on its way to the desk: a few times a second, in bounded memory, so that others can follow."""

from __future__ import annotations

import threading
from typing import Any

from ..client import Client
from ..core.errors import YourturnError
from ..desk.agent_output import cut
from .agents.base import Denied, Progress, Said, Text, ToolUse, Unknown

MANY = 400  #: lines that go to the desk at once


class Minutes:
    def __init__(self, desk: Client, claim: dict[str, Any]) -> None:
        self.desk, self.claim = desk, claim
        self._lines: list[tuple[str, str]] = []
        self._unsaid = 0
        self._lock = threading.Lock()

    def write(self, said: Said) -> str:
        """The words for whoever watches; '' for what only others want to know."""
        match said:
            case Text():
                line = ("said", cut(said.text))
            case ToolUse():
                line = ("tool", f"{said.name} {_short(said.input)}".strip())
            case Denied():
                line = ("denied", f"{said.name}: {said.why}")
            case Unknown():
                line = ("event", said.raw[:2000])
            case Progress() if said.text:
                line = ("progress", cut(said.text))
            case _:
                return ""
        with self._lock:
            self._lines.append(line)
            if len(self._lines) > MANY:  # somebody talks faster than anybody reads
                del self._lines[MANY // 2]
                self._unsaid += 1
        return line[1] if line[0] in ("said", "tool", "progress") else ""

    def flush(self) -> None:
        with self._lock:
            lines, self._lines, unsaid, self._unsaid = self._lines, [], self._unsaid, 0
        if unsaid:
            lines.insert(MANY // 2, ("note", f"({unsaid:,} more lines are only in the log file)"))
        if lines:
            try:
                self.desk.write_output(self.claim, lines)
            except YourturnError:
                pass  # the log in the file has it; the heartbeat notices if the claim is lost


def _short(value: Any) -> str:
    if isinstance(value, dict):
        value = next((v for v in value.values() if isinstance(v, str)), "")
    return " ".join(str(value or "")[:2000].split())[:300]

"""The terminal output of a worker: a live line per running agent on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable
from typing import IO

from ..display.terminal import cut, dim, length, one_line

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_COLOUR = re.compile("\x1b\\[[0-9;:?]*[ -/]*[@-~]")
_MAX_LINE = 500


class ProgressDisplay:
    """Prints `TIME KEY words`; with `live`, also draws the running agents until `close`."""

    def __init__(self, out: IO[str], live: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self.out, self.live, self.clock = out, live, clock
        self._running: dict[str, tuple[str, float, str]] = {}
        self._lock = threading.Lock()
        self._drawn = self._frame = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._draw_loop, daemon=True) if live else None
        if self._thread:
            self._thread.start()

    def report(self, key: str, words: str) -> None:
        line = cut(one_line(words[: 2 * _MAX_LINE]), _MAX_LINE)
        with self._lock:
            self._show("  ".join(filter(None, (time.strftime("%H:%M:%S"), key, line))) + "\n")

    def begin(self, key: str, agent: str) -> None:
        with self._lock:
            self._running[key] = (agent, self.clock(), "")

    def update(self, key: str, words: str) -> None:
        """Show the agent's last output in its live line."""
        with self._lock:
            if key in self._running:
                agent, since, _ = self._running[key]
                self._running[key] = (agent, since, one_line(_COLOUR.sub("", words[:_MAX_LINE])))

    def end(self, key: str) -> None:
        with self._lock:
            self._running.pop(key, None)
            self._show()

    def close(self) -> None:
        self._ended.set()
        if self._thread:
            self._thread.join()
        with self._lock:
            self._show()

    def lines(self, width: int, height: int = 1000) -> list[str]:
        """The live lines: spinner, key, agent, duration, last output."""
        now, lines = self.clock(), []
        for key, (agent, since, words) in self._running.items():
            head = f"{_FRAMES[self._frame % len(_FRAMES)]} {key} {agent} {length(now - since, compact=True)}"
            lines.append(cut(f"{head}  {words}".rstrip(), max(10, width - 1)))
        room = max(1, height - 2)
        return lines if len(lines) <= room else [*lines[: room - 1], f"  and {len(lines) - room + 1} more"]

    def _draw_loop(self) -> None:
        while not self._ended.wait(0.12):
            with self._lock:
                self._frame += 1
                self._show()

    def _show(self, lasting: str = "") -> None:
        """Print a lasting line above the live lines, in one write, so that nothing flickers."""
        if not self.live:
            self._write(lasting)
            return
        drawn = [] if self._ended.is_set() else self.lines(*self._size())
        up = f"\x1b[{self._drawn}A\r" if self._drawn else ""
        lines = "".join(f"{line}\x1b[K\n" for line in (*lasting.splitlines(), *map(dim, drawn)))
        if up or lines:
            self._write(f"{up}{lines}\x1b[J")
        self._drawn = len(drawn)

    def _size(self) -> tuple[int, int]:
        try:
            return os.get_terminal_size(self.out.fileno())
        except (OSError, ValueError):
            return 80, 24

    def _write(self, text: str) -> None:
        try:
            self.out.write(text)
            self.out.flush()
        except (OSError, ValueError):  # the reader is gone; the work goes on
            self.live = False

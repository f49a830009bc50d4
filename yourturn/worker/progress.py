"""What a worker shows while it works: on a terminal one living line per agent, elsewhere plain lines that last."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from typing import IO

from ..screen import one_line

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Progress:
    """Says `TIME KEY words`; with `live`, also draws who is at work until `close`."""

    def __init__(self, out: IO[str], live: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self.out, self.live, self.clock = out, live, clock
        self._running: dict[str, tuple[str, float, str]] = {}
        self._lock = threading.Lock()
        self._drawn = self._frame = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._draw_on, daemon=True) if live else None
        if self._thread:
            self._thread.start()

    def say(self, key: str, words: str) -> None:
        with self._lock:
            self._wipe()
            self._print(f"{time.strftime('%H:%M:%S')}  {key}  {one_line(words)}".rstrip())
            self._draw()

    def begin(self, key: str, agent: str) -> None:
        with self._lock:
            self._running[key] = (agent, self.clock(), "")

    def heard(self, key: str, words: str) -> None:
        """The last thing that it said."""
        with self._lock:
            if key in self._running:
                agent, since, _ = self._running[key]
                self._running[key] = (agent, since, words)

    def end(self, key: str) -> None:
        with self._lock:
            self._wipe()
            self._running.pop(key, None)
            self._draw()

    def close(self) -> None:
        self._ended.set()
        if self._thread:
            self._thread.join()
        with self._lock:
            self._wipe()

    def lines(self, width: int) -> list[str]:
        """One per running agent: a spinner, whom, for how long, the last thing it said."""
        now, found = self.clock(), []
        for key, (agent, since, words) in self._running.items():
            head = f"{_FRAMES[self._frame % len(_FRAMES)]} {key} {agent} {elapsed(now - since)}"
            found.append(one_line(f"{head}  {words}")[: max(20, width - 1)])
        return found

    def _draw_on(self) -> None:
        while not self._ended.wait(0.12):
            with self._lock:
                self._frame += 1
                self._wipe()
                self._draw()

    def _draw(self) -> None:
        if not self.live or self._ended.is_set():
            return
        drawn = self.lines(shutil.get_terminal_size().columns)
        for line in drawn:
            self._print(f"\x1b[2m{line}\x1b[0m")
        self._drawn = len(drawn)

    def _wipe(self) -> None:
        if self.live and self._drawn:
            self._write(f"\x1b[{self._drawn}A\x1b[J")
            self._drawn = 0

    def _print(self, line: str) -> None:
        self._write(line + "\n")

    def _write(self, text: str) -> None:
        try:
            self.out.write(text)
            self.out.flush()
        except (OSError, ValueError):  # nobody reads any more: the work goes on
            self.live = False


def elapsed(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}h {minutes % 60:02}m" if minutes >= 60 else f"{minutes}m {rest:02}s" if minutes else f"{rest}s"

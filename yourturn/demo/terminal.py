"""Output of the demo: lines in a terminal, with colour where it is supported."""

from __future__ import annotations

import os
import sys
import time

COLOURS = {"agent": "36", "person": "33", "desk": "32", "quiet": "2", "bold": "1"}


class DemoTerminal:
    def __init__(self, pace: float) -> None:
        self.pace = pace
        self.colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"

    def paint(self, text: str, colour: str) -> str:
        return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if self.colour and text else text

    def print(self, text: str = "") -> None:
        print(text, flush=True)

    def print_part(self, text: str) -> None:
        """Print without a line end."""
        print(text, end="", flush=True)

    def heading(self, text: str) -> None:
        self.print()
        self.print(self.paint(text, "bold"))
        self.pause(0.5)

    def print_line(self, actor: str, text: str) -> None:
        name = self.paint(f"{actor:>7}", actor if actor in COLOURS else "quiet")
        self.print(f"{name}  {text}")

    def pause(self, share: float = 1.0) -> None:
        time.sleep(self.pace * share)

"""Where the demo speaks: lines in a terminal, in colour only where somebody looks."""

from __future__ import annotations

import os
import sys
import time

COLOURS = {"agent": "36", "person": "33", "desk": "32", "quiet": "2", "bold": "1"}


class Stage:
    def __init__(self, pace: float) -> None:
        self.pace = pace
        self.colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"

    def paint(self, text: str, colour: str) -> str:
        return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if self.colour and text else text

    def say(self, text: str = "") -> None:
        print(text, flush=True)

    def more(self, text: str) -> None:
        """The line goes on."""
        print(text, end="", flush=True)

    def chapter(self, text: str) -> None:
        self.say()
        self.say(self.paint(text, "bold"))
        self.pause(0.5)

    def line(self, who: str, text: str) -> None:
        name = self.paint(f"{who:>7}", who if who in COLOURS else "quiet")
        self.say(f"{name}  {text}")

    def pause(self, share: float = 1.0) -> None:
        time.sleep(self.pace * share)

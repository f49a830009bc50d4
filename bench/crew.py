"""Processes that work at the same time: started once, then let go together, as often as needed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

_ROOT = Path(__file__).parent.parent


class Crew:
    """So many processes of one kind (bench/hand.py)."""

    def __init__(self, kind: str, address: str, count: int = 1) -> None:
        self.everybody = [
            subprocess.Popen(
                [sys.executable, "-m", "bench.hand", kind, address, f"w{number}"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT,
            )
            for number in range(count)
        ]  # fmt: skip

    def wait(self) -> None:
        """Until all have opened what they need."""
        for hand in self.everybody:
            self._heard(hand)

    def go(self, **order: Any) -> list[dict[str, Any]]:
        """Give all the same order at once; what each answered."""
        self.start(**order)
        return self.answers()

    def start(self, **order: Any) -> None:
        for hand in self.everybody:
            assert hand.stdin is not None
            hand.stdin.write(json.dumps(order) + "\n")
            hand.stdin.flush()

    def answers(self) -> list[dict[str, Any]]:
        return [self._heard(hand) for hand in self.everybody]

    def _heard(self, hand: subprocess.Popen[str]) -> dict[str, Any]:
        assert hand.stdout is not None
        line = hand.stdout.readline()
        if not line:
            raise RuntimeError(f"a worker ended with {hand.wait()}, its words are above")
        found: dict[str, Any] = json.loads(line)
        return found

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for hand in self.everybody:
            assert hand.stdin is not None and hand.stdout is not None
            hand.stdin.close()
        for hand in self.everybody:
            assert hand.stdout is not None
            try:
                hand.wait(10)
            except subprocess.TimeoutExpired:
                hand.kill()
                hand.wait()
            hand.stdout.close()


def rush(crew: Crew, seconds: float, lead: float = 0.3) -> tuple[float, list[dict[str, Any]]]:
    """All work at the same time; what was done per second of the time that counts, and what each answered."""
    opens = time.monotonic() + lead
    answers = crew.go(opens=opens, closes=opens + seconds)
    return sum(a["count"] for a in answers) / seconds, answers

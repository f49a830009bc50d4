"""A pool of worker processes: started once, then given the same order at once, repeatedly."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

_ROOT = Path(__file__).parent.parent


class ProcessPool:
    """`count` processes of one kind (pool_process.py)."""

    def __init__(self, kind: str, address: str, count: int = 1) -> None:
        self.processes = [
            subprocess.Popen(
                [sys.executable, "-m", "bench.pool_process", kind, address, f"w{number}"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT,
            )
            for number in range(count)
        ]  # fmt: skip

    def wait(self) -> None:
        """Wait until all have opened their connections."""
        for process in self.processes:
            self._read(process)

    def go(self, **order: Any) -> list[dict[str, Any]]:
        """Give all the same order at once; returns their answers."""
        self.start(**order)
        return self.answers()

    def start(self, **order: Any) -> None:
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()

    def answers(self) -> list[dict[str, Any]]:
        return [self._read(process) for process in self.processes]

    def _read(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"a process ended with {process.wait()}; its output is above")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> ProcessPool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for process in self.processes:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.close()
        for process in self.processes:
            assert process.stdout is not None
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()


def run_together(pool: ProcessPool, seconds: float, lead: float = 0.3) -> tuple[float, list[dict[str, Any]]]:
    """All work at the same time. Returns the count per second of the measured time, and each answer."""
    opens = time.monotonic() + lead
    answers = pool.go(opens=opens, closes=opens + seconds)
    return sum(a["count"] for a in answers) / seconds, answers

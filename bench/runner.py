"""The smallest host for the scripts of parts (g) and (i), without agents.

`python -m bench.runner ADDRESS KEY FOLDER` is a fresh process that answers the question of a run, claims the run and reaches the
next line of its script; it prints the time of each.
"""

from __future__ import annotations

import sys
import time

BEGUN = time.monotonic()

import json  # noqa: E402
import os  # noqa: E402
import threading  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from contextlib import contextmanager  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

#: Waits for a person repeatedly; the line after a pause records when it is reached.
SCRIPT = '''
from bench.runner import reached

def workflow(prompt):
    for number in range(int(prompt)):
        step(abs, number)
    while True:
        pause("Go on?")
        reached()
'''
FILE = "waits.py"

#: Times at which the script reached the line after a pause.
lines: list[float] = []


def reached() -> None:
    lines.append(time.monotonic())
    if "BENCH_LINES" in os.environ:  # for a measuring process other than this one
        with Path(os.environ["BENCH_LINES"]).open("a") as file:
            file.write(f"{lines[-1]!r}\n")


class Host:
    """No agents, no folders."""

    def __init__(self) -> None:
        self.stop = threading.Event()

    def turns(self, call: Any) -> Any:
        raise NotImplementedError

    def leave(self) -> None:
        pass

    def close(self, what: str, words: str) -> str:
        return words

    def say(self, text: str) -> None:
        pass

    @contextmanager
    def fork(self, path: str, branches: int) -> Iterator[None]:
        yield

    def join(self, path: str, branches: int) -> None:
        pass


def begin(desk: Any, folder: Path, steps: int = 0) -> str:
    """A new run, executed until its first pause."""
    Path(folder, FILE).write_text(SCRIPT)
    source = {"file": FILE, "body": SCRIPT}
    key: str = desk.create("One of many runs", description=str(steps), workflow=FILE, program=source)["key"]
    assert take(desk, folder) == key
    return key


def take(desk: Any, folder: Path) -> str | None:
    """Claim a run that is ready, and execute it until it waits again."""
    from yourturn.flow.engine import Engine

    claimed = desk.claim_next("bench", runs=True)
    if claimed is None:
        return None
    ended = Engine(desk, claimed, Host(), folder).go()
    assert ended.what == "waiting", ended
    return str(claimed["task"]["key"])


def main(address: str, key: str, folder: str) -> None:
    from yourturn.config import connect

    times = {"begun": BEGUN}
    with connect(address, as_="human:ana", project="PROJ", env={}) as desk:
        times["connected"] = time.monotonic()
        desk.approve(key)
        times["answered"] = time.monotonic()
        assert take(desk, Path(folder)) == key
        times["reached"] = sys.modules["bench.runner"].lines[0]
    print(json.dumps(times))


if __name__ == "__main__":
    main(*sys.argv[1:])

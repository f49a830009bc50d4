"""Starts many real processes cheaply, by forking; they run at the same time and can be stopped and killed.

A processes has a mother: a process that has imported everything, and has nothing open. She forks a child per order, and she alone
signals and collects them: a number is not given to another process before its owner was collected, so a kill never hits a
stranger. When its parent exits, it kills the remaining processes and exits.

A child is a function of a module of this folder, called with plain values. What it lets escape is written to `broken`:
an exception in a child is something that the section has to report.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_WARM = (
    "yourturn.db.sqlite", "yourturn.db.postgres", "yourturn.health.doctor", "yourturn.core.decide", "yourturn.core.actions",
    "hashlib", "encodings.utf_8_sig", "random", "uuid",
)  # fmt: skip


class Processes:
    """Orders children, kills them, waits for them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.broken = folder / "broken"
        self.kills = 0
        env = {name: value for name, value in os.environ.items() if not name.startswith("YOURTURN_")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.processes", str(self.broken)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=env,
        )  # fmt: skip

    def start(self, role: str, *args: Any) -> int:
        """start('roles:agent', 7) calls tests.faults.roles.agent(7) in a new process; its number."""
        return int(self._say("start", role, list(args)))

    def signal(self, child: int, number: int) -> bool:
        """Send a signal; False when it has ended by itself."""
        found = bool(self._say("signal", child, int(number)))
        self.kills += found and number == signal.SIGKILL
        return found

    def kill(self, child: int) -> bool:
        """SIGKILL, and collect it: afterwards it is gone."""
        found = self.signal(child, signal.SIGKILL)
        self.wait(child)
        return found

    def ended(self, child: int) -> bool:
        return self._say("poll", child) is not None

    def wait(self, child: int, seconds: float = 120.0) -> int:
        """Its exit code, or minus the signal that ended it; raises if it does not end."""
        code = self._say("wait", child, seconds)
        if code is None:
            self.signal(child, signal.SIGKILL)
            raise TimeoutError(f"process {child} did not end in {seconds:g} seconds")
        return int(code)

    def rests(self, child: int) -> bool:
        """Wait until it was stopped; False when it has ended instead."""
        return bool(self._say("rests", child))

    def troubles(self) -> list[str]:
        """What children let escape."""
        if not self.broken.exists():
            return []
        return [f"a process broke: {text}" for text in self.broken.read_text().split("\0") if text.strip()]

    def _say(self, *order: Any) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the mother of the processes is gone")
        return json.loads(line)

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# --- the other side ---------------------------------------------------------------------------------------------------


def _serve(broken: str) -> None:
    for name in _WARM:
        importlib.import_module(name)
    gc.freeze()  # what is shared with the children stays shared
    children: dict[int, int | None] = {}
    waiting = b""
    try:
        while data := os.read(0, 65536):
            waiting += data
            while b"\n" in waiting:
                line, _, waiting = waiting.partition(b"\n")
                os.write(1, (json.dumps(_obey(children, broken, *json.loads(line))) + "\n").encode())
    finally:
        for child, code in children.items():
            if code is None:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)


def _obey(children: dict[int, int | None], broken: str, order: str, what: Any, more: Any = None) -> Any:
    if order == "start":
        module, _, function = what.partition(":")
        role = getattr(importlib.import_module(f"tests.faults.{module}"), function)
        child = os.fork()
        if not child:
            _live(role, more, broken)
        children[child] = None
        return child
    if order == "wait" and children[what] is None:
        children[what] = _ended(what, more)
    if order == "rests":
        _, status = os.waitpid(what, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            return True
        children[what] = os.waitstatus_to_exitcode(status)
        return False
    if children[what] is None:
        done, status = os.waitpid(what, os.WNOHANG)
        if done:
            children[what] = os.waitstatus_to_exitcode(status)
    if order == "signal" and children[what] is None:
        os.kill(what, more)
        return True
    return False if order == "signal" else children[what]


def _ended(child: int, seconds: float) -> int | None:
    """How it ended, once it has; None if it does not."""

    def enough(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, enough)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except TimeoutError:
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _live(role: Any, args: list[Any], broken: str) -> None:
    code = 1
    try:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        role(*args)
        code = 0
    except BaseException:
        with open(broken, "a") as file:
            file.write(f"{role.__name__}{args!r}: {traceback.format_exc()}\0")
    finally:
        os._exit(code)



if __name__ == "__main__":
    _serve(sys.argv[1])

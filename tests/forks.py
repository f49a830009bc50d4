"""Processes of their own, without paying each time for what every Python does first.

A mother has imported the command, and has nothing open. For each order she forks somebody who waits for it and tells how it
ended, and that one forks the process itself: with its own folder, environment, arguments, standard streams and exit code.
`turn` is the command, through the console script's own function. `TURN` (conftest.py), started from nothing, is for tests in
which the start is the point, or what is around a process: its group, its terminal, its bytes.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_SLOW = ("yourturn.mcp", "yourturn.demo", "tools.generate_docs", "yourturn.testing")  #: what a command seldom imports
_lock = threading.Lock()
_line: socket.socket | None = None


def turn(
    words: Sequence[str], cwd: Path, env: Mapping[str, str], input: str | None = None, timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """As subprocess.run([TURN, *words], capture_output=True, text=True) would."""
    child = command(words, cwd, env)
    out, err = child.communicate(input, timeout)
    return subprocess.CompletedProcess(["turn", *words], child.wait(), out, err)


def command(words: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Child:
    return Child("yourturn.cli.main:run", words, cwd, env)


class Child:
    """What a subprocess.Popen is, of a function that needs no arguments."""

    def __init__(self, role: str, words: Sequence[str], cwd: Path | str = "/", env: Mapping[str, str] | None = None) -> None:
        order = json.dumps([role, list(words), str(cwd), dict(os.environ if env is None else env)]).encode()
        (given, give), (out, said), (err, moaned), (ended, end) = [os.pipe() for _ in range(4)]
        with _lock:
            line = _mother()
            line.sendall(len(order).to_bytes(4, "big"))
            socket.send_fds(line, [b"."], [given, said, moaned, end])
            line.sendall(order)
        for fd in (given, said, moaned, end):
            os.close(fd)
        self.stdin, self.stdout, self.stderr = open(give, "w"), open(out), open(err)  # noqa: SIM115
        self._ended = open(ended)  # noqa: SIM115
        self.pid = int(self._ended.readline())
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._ended], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("turn", timeout or 0)
            self.returncode = int(self._ended.readline())
            self._ended.close()
        return self.returncode

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def kill(self) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:
        heard: dict[str, str] = {}
        threads = [threading.Thread(target=self._read, args=(name, heard)) for name in ("stdout", "stderr")]
        threads.append(threading.Thread(target=self._give, args=(input or "",)))
        for thread in threads:
            thread.start()
        try:
            self.wait(timeout)
        finally:
            self.kill()
            for thread in threads:
                thread.join()
        return heard["stdout"], heard["stderr"]

    def _read(self, name: str, heard: dict[str, str]) -> None:
        with getattr(self, name) as file:
            heard[name] = file.read()

    def _give(self, text: str) -> None:
        with suppress(BrokenPipeError), self.stdin as file:
            file.write(text)


def _mother() -> socket.socket:
    global _line
    if _line is None:
        _line, other = socket.socketpair()
        env = {name: value for name, value in os.environ.items() if not name.startswith("YOURTURN_")}
        line = [sys.executable, "-m", "tests.forks", str(other.fileno())]
        subprocess.Popen(line, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=[other.fileno()])
        other.close()
    return _line


# --- the other side -------------------------------------------------------------------------------------------------------


def _serve(line: socket.socket) -> None:
    import yourturn
    from tests import warm

    for module in pkgutil.walk_packages(yourturn.__path__, "yourturn."):
        if not module.name.startswith(_SLOW):
            importlib.import_module(module.name)
    warm.up()
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while size := line.recv(4, socket.MSG_WAITALL):
        _, fds, _, _ = socket.recv_fds(line, 1, 4)
        order = json.loads(line.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
        if not os.fork():
            line.close()
            _keep(order, fds)
        for fd in fds:
            os.close(fd)
        with suppress(ChildProcessError):  # all have ended
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _keep(order: list[Any], fds: list[int]) -> None:
    *streams, end = fds
    child = os.fork()
    if not child:
        os.close(end)
        _become(order, streams)
    for fd in streams:
        os.close(fd)
    os.write(end, b"%d\n" % child)
    status = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert status is not None
    code = status.si_status if status.si_code == os.CLD_EXITED else -status.si_status
    os.write(end, b"%d\n" % code)  # before it is collected: until then nobody else has its number
    os.waitpid(child, 0)
    os._exit(0)


def _become(order: list[Any], streams: list[int]) -> None:
    role, words, folder, env = order
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, (fd, name) in enumerate(zip(streams, ("stdin", "stdout", "stderr"), strict=True)):
        os.dup2(fd, number)
        os.close(fd)
        old = getattr(sys, name)
        new = open(number, "w" if number else "r", encoding=old.encoding, errors=old.errors, closefd=False)  # noqa: SIM115
        new.reconfigure(line_buffering=name == "stderr")
        setattr(sys, name, new)
    module, _, function = role.partition(":")
    found = getattr(importlib.import_module(module), function)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = [str(Path(sys.executable).parent / "turn"), *words]
    sys.path[0] = str(Path(sys.executable).parent)
    sys.exit(found())  # an exception ends this process, as it would end any


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))

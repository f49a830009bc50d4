"""Starts a program that dies with its worker, even if the worker is killed with SIGKILL.

    python -I -S kill_with_parent.py PARENT FD PROGRAM [ARGUMENT …]

Runs as a file, in a Python without site-packages: `signal` and `ctypes` bring the start to 14 ms, and an agent runs for
seconds at least. On Linux the kernel kills the program when the worker dies. A watchdog process kills the program's children: it
blocks on a pipe whose other end only the worker holds, and kills the process group when that end closes. The watchdog
is forked twice, so that it is not a child of the program.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> None:
    if sys.platform.startswith("linux"):
        try:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        except (OSError, AttributeError):
            pass  # the watchdog is enough
    if os.getppid() != parent:
        os._exit(137)  # the worker died before prctl took effect


def watch(pipe: int) -> None:
    group = os.getpid()  # the worker started this process as a group leader; otherwise killpg would fail, and kill nothing
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        os.close(pipe)
        return
    if os.fork():
        os._exit(0)
    try:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        for fd in (0, 1, 2):
            os.close(fd)
        while os.read(pipe, 1):
            pass
        os.killpg(group, signal.SIGKILL)
    finally:
        os._exit(0)


def main(words: "list[str]") -> None:
    die_with(int(words[0]))
    watch(int(words[1]))
    program = words[2:]
    for name in ("SIGPIPE", "SIGXFSZ", "SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM"):  # ignored signals are inherited (nohup)
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execvp(program[0], program)
    except OSError as error:
        os.write(2, f"yourturn: cannot start {program[0]}: {error.strerror}\n".encode("utf-8", "replace"))
        os._exit(127)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Between the worker and the agent: if the worker dies, the agent dies, even after kill -9.

    python -I -S leash.py PARENT FD PROGRAM [ARGUMENT …]

Run as a file, by a bare Python that imports next to nothing, because it stands before every agent. The kernel kills the agent
when its worker dies (Linux only). Its children are killed by a second pair of eyes: a process that sleeps on a pipe
whose other end only the worker holds, wakes when that end closes, and kills the whole group. It has no parent here, so
an agent that counts its children never meets it.
"""

import os
import sys

try:
    import _signal as signal  # type: ignore[import-not-found]  # what `signal` wraps: without the wrapping we start in half the time
except ImportError:
    import signal


def die_with(parent: int) -> None:
    if sys.platform.startswith("linux"):
        try:
            import _ctypes as c

            prctl = c.dlsym(c.dlopen(None, os.RTLD_NOW), "prctl")  # type: ignore[arg-type]
            c.call_function(prctl, (1, int(signal.SIGKILL), 0, 0, 0))  # PR_SET_PDEATHSIG
        except (ImportError, OSError, AttributeError):
            pass  # the watcher is enough
    if os.getppid() != parent:
        os._exit(137)  # it died before we could ask to be told


def watch(pipe: int) -> None:
    group = os.getpid()  # we lead it; if we did not, there would be no such group, and nobody would be killed
    between = os.fork()
    if between:
        os.waitpid(between, 0)
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
    for name in ("SIGPIPE", "SIGXFSZ", "SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM"):  # whoever started us may ignore them (nohup)
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execvp(program[0], program)
    except OSError as error:
        os.write(2, f"yourturn: cannot start {program[0]}: {error.strerror}\n".encode("utf-8", "replace"))
        os._exit(127)


if __name__ == "__main__":
    main(sys.argv[1:])

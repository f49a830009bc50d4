"""Running an agent's process: started on a leash, listened to, limited, and ended with everything it started.

One thread, one loop. It waits for output, for the end of the process, and at most a moment, so that limits and `stop` are
looked at a few times a second. The rules:

- The process leads a group of its own, and the group ends with it: a server that the agent forgot does not outlive the task,
  and a child that keeps the pipe open does not keep us waiting.
- Whoever has to go is asked first (SIGTERM) and killed after `grace` seconds.
- Memory is bounded, the log is not: a line or a message over `LIMIT` is dropped from what we remember, and a message of which
  the beginning is missing is never handed on, because half a text can say what the whole one did not.
- Time in which the agent waits for a person (`waiting`) counts neither as work nor as silence.
- An agent that has said its last word and does not go is not a failure: it is ended after `LINGER` seconds of silence, also
  while a person is asked, because it waits for nobody any more.
"""

from __future__ import annotations

import dataclasses
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from . import base
from .base import STILL, Adapter, Ending, Hear, Heard, Launch, Run, Said, Text, Unknown

TICK = 0.1
GRACE = 5.0
LINGER = 30.0
DRAIN = 2.0
CHUNK = 1 << 16
ERRORS = 64 * 1024
SHOWN = 4000
LEASH = str(Path(__file__).with_name("kill_with_parent.py"))


def perform(
    adapter: Adapter,
    run: Run,
    *,
    resume: bool = False,
    heard: Hear = lambda said: None,
    time_limit: float | None = None,
    silence_limit: float | None = None,
    stop: threading.Event | None = None,
    waiting: Callable[[], bool] = lambda: False,
    grace: float = GRACE,
    clock: Callable[[], float] = time.monotonic,
) -> Ending:
    """Run an agent to its end. Never raises for anything that the agent does."""
    from .function_agent import Inline

    limits = Limits(time_limit, silence_limit, stop or threading.Event(), waiting, grace, clock)
    if isinstance(adapter, Inline):
        return adapter.perform(run, limits, heard)
    ending = _once(adapter, run, resume, heard, limits)
    if ending.cause == "not_parked" and run.parked:  # it had gone on already when its last process died
        ending = _once(adapter, dataclasses.replace(run, parked=False), resume, heard, limits)
    return ending


def _once(adapter: Adapter, run: Run, resume: bool, heard: Hear, limits: Limits) -> Ending:
    listening = Listening(adapter, run, heard)
    if resume and run.parked:
        listening.known.parked = STILL
    if limits.stop.is_set():
        return listening.known.ending("stopped", STOPPED["stop"], "stop")
    try:
        launch = adapter.resume(run) if resume else adapter.start(run)
        with _log(run.log) as log, _started(launch) as process:
            listening.log = log
            rc = _watch(process, listening, limits)
    except (OSError, ValueError) as error:
        words = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) and error.filename else str(error)
        return listening.known.ending("failed", f"The agent could not be started: {words}", "not_started")
    return listening.ending(rc, limits.stopped)


class Limits:
    """How long a run may take, and how it is asked to end."""

    def __init__(
        self,
        time_limit: float | None,
        silence_limit: float | None,
        stop: threading.Event,
        waiting: Callable[[], bool],
        grace: float,
        clock: Callable[[], float],
    ) -> None:
        self.time_limit, self.silence_limit = time_limit, silence_limit
        self.stop, self.waiting, self.grace, self.clock = stop, waiting, grace, clock
        self.worked = self.silent = 0.0
        self.last = clock()
        self.stopped = ""
        self.asked = 0.0

    def heard(self) -> None:
        self.silent = 0.0

    def over(self, finished: bool = False) -> str:
        """'', or why it has to end: stop, time or silence."""
        now = self.clock()
        passed, self.last = now - self.last, now
        if self.stop.is_set():
            return "stop"
        if not finished and self.waiting():
            self.silent = 0.0
            return ""
        self.worked += passed
        self.silent += passed
        silence = self.silence_limit
        if finished:
            silence = min(LINGER, silence or LINGER)
        if silence and self.silent >= silence:
            return "silence"
        return "time" if self.time_limit and self.worked >= self.time_limit else ""

    def patient(self) -> bool:
        """It was asked to end, and may still do so."""
        return self.clock() - self.asked < self.grace


class Listening:
    """What comes out of a process: to the log as it is, to the adapter in lines."""

    def __init__(self, adapter: Adapter, run: Run, heard: Hear) -> None:
        self.adapter, self.heard = adapter, heard
        self.known = Heard()
        self.known.session_id = run.session_id
        self.log: IO[bytes] | None = None
        self.line = bytearray()
        self.long = False
        self.message = bytearray()
        self.errors = bytearray()

    def out(self, data: bytes) -> None:
        self._write(data)
        if self.adapter.plain and not self.known.cut:
            self.message += data
            if len(self.message) > base.LIMIT:
                self.known.cut = True
                self.message.clear()
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._more(data[start:end])
            self._said()
            start = end + 1
        self._more(data[start:])

    def err(self, data: bytes) -> None:
        self._write(data)
        self.errors += data
        if len(self.errors) > 2 * ERRORS:
            del self.errors[:-ERRORS]

    def ending(self, rc: int, stopped: str) -> Ending:
        if self.line:
            self._said()
        known = self.known
        known.stopped = stopped
        known.errors = self.errors[-ERRORS:].decode("utf-8", "replace")
        if self.adapter.plain:
            known.text = self.message.decode("utf-8", "replace")
        if rc == 127 and "yourturn: cannot start" in known.errors:
            words = known.errors[known.errors.index("yourturn: cannot start") + len("yourturn: ") :].strip()
            return known.ending("failed", words[:1].upper() + words[1:], "not_started", rc=rc)
        if stopped and (known.finished is None or known.finished.cause == "aborted"):
            return known.ending("stopped", STOPPED[stopped], stopped, rc=rc)
        found = self.adapter.classify(rc, known)
        if known.cut:
            words = f"It said more than {base.LIMIT >> 20} MB at once; only the log has it all."
            found = found._replace(text="", error=f"{found.error}\n{words}".strip())
        return found._replace(rc=rc)

    def _more(self, piece: bytes) -> None:
        limit = SHOWN if self.adapter.plain else base.LIMIT
        room = limit - len(self.line)
        if len(piece) > room:
            self.long = True
        self.line += piece[: max(0, room)]

    def _said(self) -> None:
        raw, long = bytes(self.line), self.long
        self.line.clear()
        self.long = False
        text = raw.decode("utf-8", "replace").rstrip("\r")
        if self.adapter.plain:
            self._tell([Text(text)] if text.strip() else [])
        elif long:
            self.known.cut = True
            self._tell([Unknown("too long", text[:SHOWN])])
        elif text.strip():
            self._tell(self.adapter.parse(text))

    def _tell(self, sayings: list[Said]) -> None:
        for said in sayings:
            self.known.add(said)
            try:
                self.heard(said)
            except Exception as error:  # who listens must not break who works
                self.err(f"yourturn: {type(error).__name__}: {error}\n".encode("utf-8", "replace"))

    def _write(self, data: bytes) -> None:
        if self.log is not None:
            try:
                self.log.write(data)
            except OSError:
                self.log = None  # a full disk ends the log, not the work


STOPPED = {
    "stop": "It was stopped",
    "time": "It took longer than it may",
    "silence": "It said nothing for longer than it may",
}


def _watch(process: subprocess.Popen[bytes], listening: Listening, limits: Limits) -> int:
    with selectors.DefaultSelector() as waits, _end_of(process) as ended:
        assert process.stdout is not None and process.stderr is not None
        for stream, hear in ((process.stdout, listening.out), (process.stderr, listening.err)):
            os.set_blocking(stream.fileno(), False)
            waits.register(stream, selectors.EVENT_READ, hear)
        if ended is not None:
            waits.register(ended, selectors.EVENT_READ, None)
        limits.last = limits.clock()
        try:
            while not _gone(process):
                if _listen(waits, TICK if ended is not None else TICK / 4):
                    limits.heard()
                if limits.stopped:
                    if not limits.patient():
                        _signal(process, signal.SIGKILL)
                elif why := limits.over(listening.known.finished is not None):
                    limits.stopped, limits.asked = why, limits.clock()
                    _signal(process, signal.SIGTERM)
        finally:
            _signal(process, signal.SIGKILL)  # whoever is left of the group
            rc = process.wait()
        if ended is not None:
            waits.unregister(ended)
        last = time.monotonic() + DRAIN
        while waits.get_map() and time.monotonic() < last and _listen(waits, DRAIN / 4):
            pass
    return rc


def _listen(waits: selectors.BaseSelector, moment: float) -> bool:
    """Whether anything was said, or a stream ended."""
    any_ = False
    for key, _ in waits.select(moment):
        if key.data is None:
            continue
        any_ = True
        try:
            data = os.read(key.fd, CHUNK)
        except BlockingIOError:
            continue
        except OSError:
            data = b""
        if data:
            key.data(data)
        else:
            waits.unregister(key.fileobj)
    return any_


def _gone(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has ended. Where possible it is not buried yet, so that its number can not belong to somebody else."""
    if process.returncode is not None:
        return True
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        pass


@contextmanager
def _end_of(process: subprocess.Popen[bytes]) -> Iterator[int | None]:
    """A file that becomes readable when the process ends, where the system has one."""
    try:
        found = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        yield None
        return
    try:
        yield found
    finally:
        os.close(found)


@contextmanager
def _started(launch: Launch) -> Iterator[subprocess.Popen[bytes]]:
    """The agent behind its leash. The pipe stays open as long as we live, and not a moment longer."""
    theirs, ours = os.pipe()
    given = None
    try:
        stdin: int | IO[bytes] = subprocess.DEVNULL
        if launch.stdin is not None:
            given = stdin = tempfile.TemporaryFile()  # noqa: SIM115
            given.write(launch.stdin)
            given.seek(0)
        argv = [sys.executable, "-I", "-S", LEASH, str(os.getpid()), str(theirs), *launch.argv]
        process = subprocess.Popen(
            argv, cwd=launch.cwd, env=launch.env, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            bufsize=0, start_new_session=True, pass_fds=(theirs,),
        )  # fmt: skip
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
        if given is not None:
            given.close()
    try:
        with process:
            try:
                yield process
            finally:
                if process.returncode is None:
                    _signal(process, signal.SIGKILL)
    finally:
        os.close(ours)


@contextmanager
def _log(path: str | None) -> Iterator[IO[bytes] | None]:
    """The raw log, for the owner's eyes. Without one the work goes on."""
    if path is None:
        yield None
        return
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:
        yield None
        return
    with os.fdopen(fd, "wb", buffering=0) as file:
        yield file

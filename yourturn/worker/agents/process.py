"""Runs an agent's process: starts it, reads its output, enforces limits, and ends it with all its children.

One thread, one loop. It waits for output or the end of the process, and checks limits and `stop` a few times a second. The rules:

- The process leads a process group, and the group ends with it: a server that the agent left behind does not outlive the task,
  and a child that keeps the pipe open does not block the worker.
- A process that has to end gets SIGTERM, and SIGKILL after `grace` seconds.
- Memory is bounded, the log is not: a line or a message over `LIMIT` is dropped from the transcript. A truncated message is never
  evaluated, because a part of a text can mean what the whole does not.
- Time in which the agent waits for a person (`waiting`) counts neither as work nor as silence.
- An agent that has reported its end and does not exit has not failed: it is ended after `LINGER` seconds of silence, also while
  a question is open.
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
from .base import STILL_PARKED, Adapter, AgentEvent, AgentRun, Ending, Launch, OnEvent, Text, Transcript, Unknown

TICK = 0.1
GRACE = 5.0
LINGER = 30.0
DRAIN = 2.0
CHUNK = 1 << 16
ERRORS = 64 * 1024
SHOWN = 4000
LAUNCHER = str(Path(__file__).with_name("kill_with_parent.py"))


def perform(
    adapter: Adapter,
    run: AgentRun,
    *,
    resume: bool = False,
    on_event: OnEvent = lambda event: None,
    time_limit: float | None = None,
    silence_limit: float | None = None,
    stop: threading.Event | None = None,
    waiting: Callable[[], bool] = lambda: False,
    grace: float = GRACE,
    clock: Callable[[], float] = time.monotonic,
) -> Ending:
    """Run one turn of an agent. Raises nothing, whatever the agent does."""
    limits = Limits(time_limit, silence_limit, stop or threading.Event(), waiting, grace, clock)
    ending = _perform(adapter, run, resume, on_event, limits)
    if ending.cause == "not_parked" and run.parked:  # the session had gone on before its last process died
        ending = _perform(adapter, dataclasses.replace(run, parked=False), resume, on_event, limits)
    return ending


def _perform(adapter: Adapter, run: AgentRun, resume: bool, on_event: OnEvent, limits: Limits) -> Ending:
    reader = OutputReader(adapter, run, on_event)
    if resume and run.parked:
        reader.transcript.parked = STILL_PARKED
    if limits.stop.is_set():
        return reader.transcript.ending("stopped", STOPPED["stop"], "stop")
    try:
        launch = adapter.resume(run) if resume else adapter.start(run)
        with _open_log(run.log) as log, _start(launch) as process:
            reader.log = log
            rc = _supervise(process, reader, limits)
    except (OSError, ValueError) as error:
        words = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) and error.filename else str(error)
        return reader.transcript.ending("failed", f"The agent could not be started: {words}", "not_started")
    return reader.ending(rc, limits.stopped)


class Limits:
    """How long a run may take, and when it was asked to end."""

    def __init__(
        self, time_limit: float | None, silence_limit: float | None, stop: threading.Event, waiting: Callable[[], bool],
        grace: float, clock: Callable[[], float],
    ) -> None:  # fmt: skip
        self.time_limit, self.silence_limit = time_limit, silence_limit
        self.stop, self.waiting, self.grace, self.clock = stop, waiting, grace, clock
        self.worked = self.silent = 0.0
        self.last = clock()
        self.stopped = ""
        self.asked = 0.0

    def exceeded(self, finished: bool = False) -> str:
        """'', or why the run has to end: stop, time or silence."""
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

    def in_grace(self) -> bool:
        """The process was asked to end, and has time left to do so."""
        return self.clock() - self.asked < self.grace


class OutputReader:
    """Writes the output of a process to the log, and passes it to the adapter in lines."""

    def __init__(self, adapter: Adapter, run: AgentRun, on_event: OnEvent) -> None:
        self.adapter, self.on_event = adapter, on_event
        self.transcript = Transcript()
        self.transcript.session_id = run.session_id
        self.log: IO[bytes] | None = None
        self.line = bytearray()
        self.long = False
        self.message = bytearray()
        self.errors = bytearray()

    def out(self, data: bytes) -> None:
        self._write(data)
        if self.adapter.plain and not self.transcript.cut:
            self.message += data
            if len(self.message) > base.LIMIT:
                self.transcript.cut = True
                self.message.clear()
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._extend_line(data[start:end])
            self._end_line()
            start = end + 1
        self._extend_line(data[start:])

    def err(self, data: bytes) -> None:
        self._write(data)
        self.errors += data
        if len(self.errors) > 2 * ERRORS:
            del self.errors[:-ERRORS]

    def ending(self, rc: int, stopped: str) -> Ending:
        if self.line:
            self._end_line()
        transcript = self.transcript
        transcript.stopped = stopped
        transcript.errors = self.errors[-ERRORS:].decode("utf-8", "replace")
        if self.adapter.plain:
            transcript.text = self.message.decode("utf-8", "replace")
        _, failed, words = transcript.errors.partition("yourturn: cannot start")
        if rc == 127 and failed:  # the message of the launcher
            return transcript.ending("failed", f"Cannot start{words.rstrip()}", "not_started", rc=rc)
        if stopped and (transcript.finished is None or transcript.finished.cause == "aborted"):
            return transcript.ending("stopped", STOPPED[stopped], stopped, rc=rc)
        ending = self.adapter.classify(rc, transcript)
        if transcript.cut:
            words = f"Its message is longer than {base.LIMIT >> 20} MB; only the log has all of it."
            ending = ending._replace(text="", error=f"{ending.error}\n{words}".strip())
        return ending._replace(rc=rc)

    def _extend_line(self, piece: bytes) -> None:
        limit = SHOWN if self.adapter.plain else base.LIMIT
        room = limit - len(self.line)
        if len(piece) > room:
            self.long = True
        self.line += piece[: max(0, room)]

    def _end_line(self) -> None:
        raw, long = bytes(self.line), self.long
        self.line.clear()
        self.long = False
        text = raw.decode("utf-8", "replace").rstrip("\r")
        if self.adapter.plain:
            self._emit([Text(text)] if text.strip() else [])
        elif long:
            self.transcript.cut = True
            self._emit([Unknown("too long", text[:SHOWN])])
        elif text.strip():
            self._emit(self.adapter.parse(text))

    def _emit(self, events: list[AgentEvent]) -> None:
        for event in events:
            self.transcript.add(event)
            try:
                self.on_event(event)
            except Exception as error:  # an error of the listener must not end the agent
                self.err(f"yourturn: {type(error).__name__}: {error}\n".encode("utf-8", "replace"))

    def _write(self, data: bytes) -> None:
        if self.log is not None:
            try:
                self.log.write(data)
            except OSError:
                self.log = None  # a full disk ends the log, not the work


STOPPED = {
    "stop": "It was stopped",
    "time": "It took longer than the time limit",
    "silence": "It printed nothing for longer than the silence limit",
}


def _supervise(process: subprocess.Popen[bytes], reader: OutputReader, limits: Limits) -> int:
    with selectors.DefaultSelector() as selector, _exit_handle(process) as exit_handle:
        assert process.stdout is not None and process.stderr is not None
        for stream, receive in ((process.stdout, reader.out), (process.stderr, reader.err)):
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ, receive)
        if exit_handle is not None:
            selector.register(exit_handle, selectors.EVENT_READ, None)
        limits.last = limits.clock()
        try:
            while not _has_ended(process):
                if _read_available(selector, TICK if exit_handle is not None else TICK / 4):
                    limits.silent = 0.0
                if limits.stopped:
                    if not limits.in_grace():
                        _signal(process, signal.SIGKILL)
                elif why := limits.exceeded(reader.transcript.finished is not None):
                    limits.stopped, limits.asked = why, limits.clock()
                    _signal(process, signal.SIGTERM)
        finally:
            _signal(process, signal.SIGKILL)  # the rest of the group
            rc = process.wait()
        if exit_handle is not None:
            selector.unregister(exit_handle)
        last = time.monotonic() + DRAIN
        while selector.get_map() and time.monotonic() < last and _read_available(selector, DRAIN / 4):
            pass
    return rc


def _read_available(selector: selectors.BaseSelector, timeout: float) -> bool:
    """True if there was output, or a stream ended."""
    active = False
    for key, _ in selector.select(timeout):
        if key.data is None:
            continue
        active = True
        try:
            data = os.read(key.fd, CHUNK)
        except BlockingIOError:
            continue
        except OSError:
            data = b""
        if data:
            key.data(data)
        else:
            selector.unregister(key.fileobj)
    return active


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Checks without reaping the process where possible: its id cannot be reused before the group gets its signal."""
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
def _exit_handle(process: subprocess.Popen[bytes]) -> Iterator[int | None]:
    """A file descriptor that becomes readable when the process ends, on Linux."""
    try:
        handle = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        yield None
        return
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def _start(launch: Launch) -> Iterator[subprocess.Popen[bytes]]:
    """Start the agent behind the launcher, which kills it when the pipe closes: when this process ends."""
    theirs, ours = os.pipe()
    file = None
    try:
        stdin: int | IO[bytes] = subprocess.DEVNULL
        if launch.stdin is not None:
            file = stdin = tempfile.TemporaryFile()  # noqa: SIM115
            file.write(launch.stdin)
            file.seek(0)
        argv = [sys.executable, "-I", "-S", LAUNCHER, str(os.getpid()), str(theirs), *launch.argv]
        process = subprocess.Popen(
            argv, cwd=launch.cwd, env=launch.env, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            bufsize=0, start_new_session=True, pass_fds=(theirs,),
        )  # fmt: skip
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
        if file is not None:
            file.close()
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
def _open_log(path: str | None) -> Iterator[IO[bytes] | None]:
    """The raw log, readable by its owner only. If it cannot be opened the agent runs without one."""
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

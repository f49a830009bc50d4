"""Runs the scripts of scripts.py: a session is a process that claims a run and executes it as far as it can.

A session can be killed at the n-th point that it reaches: the failpoints of every change, and before and after whatever
happens outside (an effect, an agent's turn). Before it dies it says where in the ledger. It can also be stopped there as a
machine that falls asleep, and be told to stop in good order.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

from yourturn.client import Client
from yourturn.config import connect
from yourturn.db.failpoints import FailingStore
from yourturn.flow.agent_step import AgentCall, Turn
from yourturn.flow.engine import Ended, Engine
from yourturn.flow.results import Released

from .ledger import Ledger, SharedClock

LEASE = 60  #: seconds, by the shared clock
FILE = "program.py"


class Reaper:
    """Counts the points that are reached, and does at the n-th what it was told to."""

    def __init__(self, say: Ledger, at: int = 0, sign: int = signal.SIGKILL, early: bool = False) -> None:
        self.say, self.at, self.sign = say, at, sign
        self.armed = early  #: also while the run is being claimed
        self.stop = threading.Event()
        self._count = self._open = 0
        self._lock = threading.Lock()

    def reached(self, what: str, point: str) -> None:
        with self._lock:
            self._count += self.armed
            if not (self.armed and self.at) or self._count < self.at:
                return
            if self.sign == signal.SIGSTOP and not self._harmless(point):
                return
            self.armed = False
            if self.sign == signal.SIGTERM:
                self.stop.set()
                return
            self.say("killed" if self.sign == signal.SIGKILL else "stopped", at=f"{what}:{point}")
            signal.pthread_kill(threading.get_ident(), self.sign)  # to this thread: then it gets no further before all stand


    @contextmanager
    def inside(self) -> Iterator[None]:
        """A transaction."""
        with self._lock:
            self._open += 1
        try:
            yield
        finally:
            with self._lock:
                self._open -= 1

    def _harmless(self, point: str) -> bool:
        """A process stopped inside a transaction blocks all others."""
        return self._open == (point in ("before-begin", "after-commit")) and point not in ("first-write", "before-commit")


class Doomed(FailingStore):
    """A store whose failpoints the reaper counts."""

    def __init__(self, inner: Any, reaper: Reaper) -> None:
        super().__init__(inner, "", "", 0)
        self.reaper = reaper

    def reached(self, what: str, point: str) -> None:
        self.reaper.reached(what, point)

    @contextmanager
    def begin(self, what: str = "", *, write: bool = True) -> Iterator[Any]:
        with self.reaper.inside(), super().begin(what, write=write) as run:
            yield run


class Session:
    """One go at a run: what a worker does, without the agents."""

    def __init__(self, desk: Client, folder: str, number: int, reaper: Reaper) -> None:
        self.desk, self.folder, self.number, self.reaper = desk, folder, number, reaper
        self.stop = reaper.stop
        self.engine: Any = None

    def go(self) -> Ended | None:
        global _session
        got = self.desk.claim_next(f"w{self.number}", lease=f"{LEASE}s", runs=True)
        if got is None:
            return None
        self.reaper.armed = True
        self.engine = Engine(self.desk, got, self, Path(self.folder))
        _session = self
        ended: Ended = self.engine.go()
        self.reaper.say("ended", session=self.number, how=ended.what, words=ended.words)
        return ended

    def outside(self, what: str, **said: Any) -> None:
        """An effect that cannot be undone."""
        self.reaper.reached(what, "before")
        self.reaper.say(what, session=self.number, journal=self.engine.journal.number, **said)
        self.reaper.reached(what, "after")

    # --- the host ---------------------------------------------------------------------------------------------------

    def turns(self, call: AgentCall) -> Turn:
        answers = [q["response"]["text"] or q["response"]["value"] for q in call.questions() if q["status"] == "answered"]
        seat = f"{call.agent}@{call.path}"
        if call.begun and call.session_id not in (None, seat):
            self.reaper.say("wrong", words=f"{call.path} was to go on with the session {seat}, and got {call.session_id}")
        if not call.begun:
            call.remember(seat, folder=self.folder)
        self.outside("turn", name=str(call.prompt), answers=len(answers))
        asked = f"{call.agent} {call.prompt} {len(answers)}?"
        if len(answers) < {"asker": 1, "twice": 2, "approver": 1, "tooler": 1}.get(call.agent, 0):
            if call.agent == "tooler":
                self.desk.ask(call.journal.key, asked, claim=call.journal.claim, step=call.path)
                return Turn("waiting")
            return Turn("ask", "NEEDS_HUMAN", asked, "approval" if call.agent == "approver" else "input")
        if call.agent == "crasher" and not (marker := Path(self.folder, f"crashed {call.prompt}")).exists():
            marker.touch()
            raise Released("the agent crashed")
        if call.agent == "breaker" and not answers:
            return Turn("broken", "ERROR", asked, "escalation")
        if call.agent == "failer":
            return Turn("failed", "FAILED", f"cannot {call.prompt}")
        if call.agent == "custom":
            return Turn("said", "MAYBE", f"perhaps {call.prompt}")
        return Turn("done", "DONE", f"did {call.prompt} {answers}")

    def leave(self) -> None:
        self.reaper.reached("leave", "before")

    def close(self, what: str, words: str) -> str:
        return words

    def say(self, text: str) -> None:
        pass

    @contextmanager
    def fork(self, path: str, branches: int) -> Iterator[None]:
        yield

    def join(self, path: str, branches: int) -> None:
        self.reaper.reached("together", "before")


#: Whose script is running in this process.
_session: Session


def effect(name: str, *values: Any) -> int:
    _session.outside("effect", name=name, values=values)
    return crc32(name.encode()) % 7


def broken(name: str) -> None:
    _session.outside("effect", name=name, values=())
    raise OSError(f"{name} broke")



def session(address: str, folder: str, number: int, at: int, sign: int, early: bool) -> None:
    """One process."""
    desk = connect(address, as_="agent:coder", project="PROJ", clock=SharedClock(f"{folder}/clock"), env={})
    reaper = Reaper(Ledger(f"{folder}/ledger"), at, sign, early)
    desk.desk.store = Doomed(desk.desk.store, reaper)  # type: ignore[assignment]
    Session(desk, folder, number, reaper).go()
    desk.close()

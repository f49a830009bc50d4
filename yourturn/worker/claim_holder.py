"""The worker's side of a claim: renews the lease, detects its loss, sends output and unfinished work to the desk."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..core.errors import ClaimLost, YourturnError
from .git import worktrees
from .output_buffer import OutputBuffer

if TYPE_CHECKING:
    from ..client import Client
    from .worker import Worker


class SessionResult(NamedTuple):
    what: str  #: done, waiting, asleep, released, failed, stuck, moved, lost, stopped
    words: str
    person: bool = False  #: a person is asked, though the agent did not ask


class AgentSession(Protocol):
    """The work under one claim: a task (task_session.py) or a run (run_session.py)."""

    holder: ClaimHolder

    def run(self) -> SessionResult: ...


class ClaimHolder:
    def __init__(self, worker: Worker, desk: Client, claimed: dict[str, Any]) -> None:
        self.worker, self.desk = worker, desk
        self.task: dict[str, Any] = claimed["task"]
        self.claim: dict[str, Any] = claimed["claim"]
        self.key: str = self.task["key"]
        self.stop = threading.Event()
        self.lost = False
        self.output = OutputBuffer(desk, self.claim)

    def renew(self) -> None:
        """Extend the lease. A lost claim stops the session at once."""
        try:
            self.desk.heartbeat(self.claim)
        except ClaimLost:
            self.lost = True
            self.stop.set()
        except YourturnError:
            pass  # the next heartbeat may succeed before the lease ends

    def guard(self, work: Callable[[], SessionResult]) -> SessionResult:
        """Do the work. An error ends this session only: a lost claim is reported, anything else becomes a question."""
        try:
            return work()
        except ClaimLost as error:
            return SessionResult("lost", str(error))
        except Exception as error:
            return self._ask_for_help(error)

    def _ask_for_help(self, error: Exception) -> SessionResult:
        text = error_text(error)
        try:
            question = f"The worker could not continue with {self.key}.\n{text}"
            self.desk.flag(self.key, question, "blocked_external", claim=self.claim)
        except YourturnError as trouble:
            return SessionResult("lost", f"{text.splitlines()[0]}; asking a person failed: {trouble}")
        return SessionResult("waiting", text.splitlines()[0])

    def prepare_folder(self, patch: dict[str, Any] | None) -> worktrees.Workplace:
        """The task's folder, with the work that another machine has stored as a patch."""
        needs = [other["branch"] for other in map(self.desk.show, self.task["depends_on"]) if other["branch"]]
        return worktrees.prepare(
            self.worker.root, self.key, str(self.task["branch"]), needs=needs, patch=patch["body"] if patch else None,
            base=patch["base"] if patch else None, in_place=self.worker.in_place,
        )  # fmt: skip

    def store_patch(self, base: str, make: Callable[[], str]) -> None:
        """Store the folder's work on the desk, so that another machine can go on with it."""
        try:
            body = make()
            if body or self.desk.patch(self.key):
                self.desk.keep_patch(self.claim, base, body)
        except ClaimLost:
            raise
        except YourturnError as trouble:  # for example too large; the folder still has it
            self.worker.progress.report(self.key, f"only this machine can continue it: {trouble}")


def error_text(error: Exception) -> str:
    if isinstance(error, YourturnError):
        return "\n".join(error.lines()).removeprefix("Error: ")
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return f"{type(error).__name__}: {error}"

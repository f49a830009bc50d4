"""Who holds a claim: says that it is still there, and notices when it is not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.errors import ClaimLost, YourturnError
from .git import worktrees
from .output_buffer import Minutes

if TYPE_CHECKING:
    from ..client import Client
    from .worker import Worker


class Result(NamedTuple):
    what: str  #: done, waiting, asleep, released, failed, stuck, moved, lost, stopped
    words: str
    person: bool = False  #: somebody is asked, though the agent did not


class Holder:
    def __init__(self, worker: Worker, desk: Client, got: dict[str, Any]) -> None:
        self.worker, self.desk = worker, desk
        self.task: dict[str, Any] = got["task"]
        self.claim: dict[str, Any] = got["claim"]
        self.key: str = self.task["key"]
        self.stop = threading.Event()
        self.lost = False
        self.minutes = Minutes(desk, self.claim)

    def run(self) -> Result:
        raise NotImplementedError

    def beat(self) -> None:
        """Still here. Who has lost the claim stops at once."""
        try:
            self.desk.heartbeat(self.claim)
        except ClaimLost:
            self.lost = True
            self.stop.set()
        except YourturnError:
            pass  # the next one may get through, before the lease is over

    def hand_over(self, error: Exception, reason: str) -> Result:
        """What nobody foresaw reaches a person."""
        words = in_words(error)
        try:
            self.desk.flag(self.key, f"The worker could not go on with {self.key}.\n{words}", reason, claim=self.claim)
        except YourturnError as trouble:
            return Result("lost", f"{words.splitlines()[0]}; and that could not be said: {trouble}")
        return Result("waiting", words.splitlines()[0])

    def folder(self, left: dict[str, Any] | None) -> worktrees.Workplace:
        """Where the task is worked on, with what another machine has left of it."""
        needs = [other["branch"] for other in map(self.desk.show, self.task["depends_on"]) if other["branch"]]
        return worktrees.prepare(
            self.worker.root, self.key, str(self.task["branch"]), needs=needs, patch=left["body"] if left else None,
            base=left["base"] if left else None, in_place=self.worker.in_place,
        )  # fmt: skip

    def keep_patch(self, base: str, taken: Callable[[], str]) -> None:
        """The work in the folder, in case that another machine goes on."""
        try:
            body = taken()
            if body or self.desk.patch(self.key):
                self.desk.keep_patch(self.claim, base, body)
        except ClaimLost:
            raise
        except YourturnError as trouble:  # too large, say: it still lies in the folder
            self.worker.progress.say(self.key, f"only this machine can go on with it: {trouble}")


def in_words(error: Exception) -> str:
    if isinstance(error, YourturnError):
        return "\n".join(error.lines()).removeprefix("Error: ")
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return f"{type(error).__name__}: {error}"

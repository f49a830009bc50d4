"""The Python API: the verbs as methods that take and return plain values.

    desk = yourturn.connect()
    task = desk.create("Add login")
    got = desk.claim_next("w1")
    asked = desk.ask(got["task"]["key"], "JWT or sessions?", options=["jwt", "sessions"], claim=got["claim"])

A task is named by its key ("PROJ-42"), a bare number in the default project, or the dictionary that another method
returned; a question by its id ("Q17"); a claim by the dictionary that `claim` gave, or its token.

What only a change needs is imported when one is made: reading is what the command does most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.model import Who
from .admin import Managing
from .commands import Saying
from .data import Moving
from .output import Papers
from .queries import Looks
from .refs import Named, Names
from .runs import Runs
from .workers import Presence

if TYPE_CHECKING:
    from .aio import Aio


class Client(Saying, Looks, Managing, Moving, Papers, Presence, Runs):
    """A desk, spoken to in plain values."""

    def as_(self, who: Who) -> Client:
        """The same desk for somebody else."""
        other = Client(self.desk.as_(who), self._project)
        other._beside = self._beside
        return other

    def at_version(self, version: int | None) -> Client:
        """The same desk; what is said to it holds only while the task is at this version."""
        other = self.as_(self.who)
        other._version = version
        return other

    @property
    def aio(self) -> Aio:
        """The same methods, to be awaited."""
        from .aio import Aio, Threads

        return Aio(self, self._beside.get("threads") or self._beside.setdefault("threads", Threads()))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._shut()


__all__ = ["Client", "Named", "Names"]

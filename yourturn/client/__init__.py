"""The Python API: methods that take and return plain values.

    desk = yourturn.connect()
    task = desk.create("Add login")
    got = desk.claim_next("w1")
    asked = desk.ask(got["task"]["key"], "JWT or sessions?", options=["jwt", "sessions"], claim=got["claim"])

A task is named by its key ("PROJ-42"), a bare number in the default project, or the dictionary that another method
returned; a question by its id ("Q17"); a claim by the dictionary that `claim` gave, or its token.

One class, `Client`, whose methods are grouped by module:

    refs.py        the base: how tasks, questions and claims are identified, how a move is made, `show`
    commands.py    moves whose arguments need preparation: create, claim_next, complete, ask, answer, …
    verbs.py       generated: the other moves, one method per row of the table of verbs
    queries.py     lists, the inbox, counts, statistics, events, previews of answers; filters.py has their filters
    runs.py        runs of scripts: steps, source, rewind
    output.py      output and patches of agent sessions
    workers.py     the registry of workers
    admin.py       projects, users, preferences, sessions, links, tokens
    data.py        export, import, backup

Beside it: serialize.py encodes the replies, aio.py has the same methods for asyncio, remote.py the client of a server, and
remote_methods.py (generated) its methods.

Imports that only changes need are late, because most commands only read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.model import Who
from .admin import Admin
from .commands import Commands
from .data import Data
from .output import Output
from .queries import QueryMethods
from .refs import Named, not_served
from .runs import Runs
from .workers import Workers

if TYPE_CHECKING:
    from .aio import Aio


class Client(Commands, QueryMethods, Admin, Data, Output, Workers, Runs):
    """A connection to a desk, as one actor."""

    @not_served
    def as_(self, who: Who) -> Client:
        """The same desk for another actor."""
        other = Client(self.desk.as_(who), self._project)
        other._shared = self._shared
        return other

    @not_served
    def at_version(self, version: int | None) -> Client:
        """The same desk; its moves are refused if the task is not at this version."""
        other = self.as_(self.who)
        other._version = version
        return other

    @property
    def aio(self) -> Aio:
        """The same methods for asyncio."""
        from .aio import Aio, Threads

        return Aio(self, self._shared.get("threads") or self._shared.setdefault("threads", Threads()))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._close_desk()


__all__ = ["Client", "Named"]

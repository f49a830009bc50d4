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

from ..core.model import Who
from .looks import Looks
from .managing import Managing
from .moving import Moving
from .names import Named, Names
from .papers import Papers
from .saying import Saying


class Client(Saying, Looks, Managing, Moving, Papers):
    """A desk, spoken to in plain values."""

    def as_(self, who: Who) -> Client:
        """The same desk for somebody else."""
        return Client(self.desk.as_(who), self._project)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.desk.close()


__all__ = ["Client", "Named", "Names"]

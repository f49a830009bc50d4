"""The verb that moves a task on: what a hint names after a command and below a task.

The table says it for a state, and the rules' own guards say where another one has to come first. A test compares it with
`decide`: whatever is hinted at can be said.
"""

from __future__ import annotations

from collections.abc import Iterable

from .guards import container, too_large
from .model import CANCELLED, CREATED, DEFERRED, FAILED, HUMAN, READY

#: In other states nothing is left to say: people look.
NEXT: dict[str, str] = {
    CREATED: "vet", READY: "claim", HUMAN: "resolve", FAILED: "reopen", CANCELLED: "reopen", DEFERRED: "wake",
}  # fmt: skip
#: Of a run, which goes on from where it was.
NEXT_OF_A_RUN = {FAILED: "rewind", DEFERRED: "rewind"}


def next_verb(state: str, *, type: str, complexity: str, has_children: bool, run: bool, asks: bool) -> str:
    """`asks`: it only carries a question (see `only_asks`), so nobody should work on it."""
    verb = (NEXT | NEXT_OF_A_RUN if run else NEXT).get(state, "")
    if verb not in ("vet", "claim"):
        return verb
    if asks:
        return "close"
    if too_large(complexity, has_children):
        return "decompose"
    return "create" if verb == "claim" and container(type) else verb


def only_asks(created_by: str, questions: Iterable[tuple[str, str]]) -> bool:
    """Did a program write the task down only to ask for a permission? `questions`: kind and asker of each."""
    return created_by.startswith("agent:") and any(asked == ("permission", created_by) for asked in questions)

"""The next useful verb for a task: hints after a command and below a task name it.

A table has the verb for each state; guards of the rules say where another verb has to come first. A test checks with
`decide` that every hinted verb is legal.
"""

from __future__ import annotations

from collections.abc import Iterable

from .guards import container, too_large
from .model import CANCELLED, CREATED, DEFERRED, FAILED, HUMAN, READY

#: Other states have no next verb.
NEXT: dict[str, str] = {
    CREATED: "vet", READY: "claim", HUMAN: "resolve", FAILED: "reopen", CANCELLED: "reopen", DEFERRED: "wake",
}  # fmt: skip
#: The same for runs.
NEXT_OF_A_RUN = {FAILED: "rewind", DEFERRED: "rewind"}


def next_verb(state: str, *, type: str, complexity: str, has_children: bool, run: bool, asks: bool) -> str:
    """`asks`: the task only carries a question (see `only_asks`) and is not work."""
    verb = (NEXT | NEXT_OF_A_RUN if run else NEXT).get(state, "")
    if verb not in ("vet", "claim"):
        return verb
    if asks:
        return "close"
    if too_large(complexity, has_children):
        return "decompose"
    return "create" if verb == "claim" and container(type) else verb


def only_asks(created_by: str, questions: Iterable[tuple[str, str]]) -> bool:
    """True if a program created the task only to ask for a permission. `questions`: kind and asker of each."""
    return created_by.startswith("agent:") and any(asked == ("permission", created_by) for asked in questions)

"""Which cells of the transition table were reached: legal ones by a move, illegal ones by a refusal."""

from __future__ import annotations

from collections import Counter

from yourturn.core.actions import VERBS
from yourturn.core.model import STATES, Action
from yourturn.core.rules import ADMIN_VERBS, ALIASES, TRANSITIONS

Cell = tuple[str | None, str]

#: What makes a task is said of none.
BIRTHS = frozenset(verb for state, verb in TRANSITIONS if state is None)
LEGAL: frozenset[Cell] = frozenset(TRANSITIONS)
ILLEGAL: frozenset[Cell] = frozenset(
    (state, verb)
    for state in STATES
    for verb in VERBS
    if verb not in {*ADMIN_VERBS, *BIRTHS} and (state, ALIASES.get((verb, state), verb)) not in LEGAL
)


class Cells:
    def __init__(self) -> None:
        self.reached: Counter[Cell] = Counter()
        self.steps = 0

    def copy(self) -> Cells:
        other = Cells()
        other.reached, other.steps = Counter(self.reached), self.steps
        return other

    def all_moved(self, moves: list[Cell]) -> None:
        self.reached.update(moves)

    def refused(self, state: str | None, action: Action, code: str) -> None:
        """Refused by the table: also a claim of what waits for others, which says so instead."""
        cell = (state, action.verb)
        if cell in ILLEGAL and (code == "illegal_move" or (action.verb == "claim" and code == "precondition")):
            self.reached[cell] += 1

    def legal(self) -> set[Cell]:
        return set(self.reached) & LEGAL

    def illegal(self) -> set[Cell]:
        return set(self.reached) & ILLEGAL

    def missing(self) -> list[Cell]:
        return sorted((LEGAL | ILLEGAL) - set(self.reached), key=str)

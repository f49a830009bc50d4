"""The draft of a decision: guards read it, effects write to it. Lives only inside decide()."""

from __future__ import annotations

from typing import Any

from .model import PENDING, Action, Case, Claim, Note, Program, Question, Ref, Step


class Draft:
    """Read with `draft.get("field")`, write with `draft.put(field=value)`; the case itself never changes."""

    __slots__ = (
        "action", "after", "args", "case", "claim", "closed", "data", "holds_claim", "needs", "needs_added",
        "needs_removed", "notes", "now", "opened", "program", "question", "questions", "rewound", "script", "set", "silent",
        "steps", "touch", "used",
    )  # fmt: skip

    def __init__(self, case: Case, action: Action, now: int) -> None:
        self.case = case
        self.action = action
        self.args = action.args
        self.now = now
        self.set: dict[str, Any] = {}
        self.questions = list(case.questions)
        self.question: Question | None = None
        self.needs: list[Ref] = list(case.needs)
        self.opened: list[Question] = []
        self.closed: list[Question] = []
        self.notes: list[Note] = []
        self.needs_added: list[tuple[int, int]] = []
        self.needs_removed: list[tuple[int, int]] = []
        self.after: list[Action] = []
        self.touch: list[int] = []
        self.data: dict[str, Any] = {}
        self.claim: Claim | None = None
        self.holds_claim = False
        self.script = False  #: runs only: the claim was proved by the script, not by an agent in one of its steps
        self.silent = False
        self.used: Question | None = None
        self.steps: list[Step] = []
        self.program: Program | None = None
        self.rewound: tuple[int, str, bool] | None = None

    def get(self, field: str) -> Any:
        return self.set[field] if field in self.set else getattr(self.case.task, field)

    def put(self, **fields: Any) -> None:
        self.set.update(fields)

    @property
    def id(self) -> int:
        return self.case.task.id if self.case.task else 0

    @property
    def key(self) -> str:
        return str(self.get("key"))

    @property
    def state(self) -> str:
        return str(self.get("state"))

    @property
    def settings(self) -> dict[str, Any]:
        return self.case.project.settings

    def waiting(self) -> list[Question]:
        """Blocking questions that are still open."""
        return [q for q in self.questions if q.status == PENDING and q.blocking]

    def swap(self, new: Question) -> None:
        """Replace a question of the draft by its changed version."""
        self.questions = [new if q.id == new.id else q for q in self.questions]
        self.closed = [q for q in self.closed if q.id != new.id] + [new]

"""Cases as this process last saw them, so that it need not read them again before each move.

A case that was just written is known. The next move of the same task is decided on the remembered case, and the write compares
(unit_of_work): the task's version, which grows with everything that changes the task or its questions, the settings of
project and workspace, and the fence, which a restore moves. If one of them differs, nothing is written, the case is forgotten,
and the move runs again on fresh rows. The same happens when the decision is an error: no move is refused because of an old
case. So a remembered case can be wrong, and only costs a second attempt.

Only tasks that stand alone are remembered: without neighbours, not even ended ones, which could be reopened. A neighbour can
change without touching the task's row. A task that gets its first neighbour has its version raised (UnitOfWork._save_needs),
so a remembered case that does not know of it is noticed, too.

The database's clock is remembered with the case and goes on by this machine's monotonic one. It can be off by the time that
a message takes, which moves a deadline by as much; a second writer still meets another version.
"""

from __future__ import annotations

import time

from ..core.model import PENDING, Case

#: How many are remembered, and for how many seconds.
SIZE, KEPT = 512, 30.0


class CaseCache:
    def __init__(self) -> None:
        self._cases: dict[int, tuple[Case, int, float]] = {}  #: by task: the case, the database's time, and this machine's then

    def recall(self, task: int, workspace: int, question: int | None) -> tuple[Case, int] | None:
        """The case, with the question that is meant, and the database's time now (0 where it has none of its own)."""
        case, database, at = self._cases.get(task, (None, 0, 0.0))
        passed = time.monotonic() - at
        if case is None or passed > KEPT or case.project.workspace_id != workspace:
            return None
        if question is not None and all(q.id != question for q in case.questions):
            return None
        return case, database + round(passed * 1_000_000) if database else 0

    def remember(self, case: Case, database: int, at: float) -> None:
        """The case as a commit left it; `database` was its time when this machine's monotonic clock showed `at`."""
        assert case.task is not None
        task = case.task.id
        if not case.alone:
            self.forget(task)
            return
        if len(self._cases) >= SIZE:
            self._cases.clear()
        open_questions = tuple([q for q in case.questions if q.status == PENDING])
        if open_questions != case.questions:
            case = case._replace(questions=open_questions)
        self._cases[task] = (case, database, at)

    def forget(self, task: int) -> None:
        self._cases.pop(task, None)

"""Case cache: the cases that this process has just written, so that the next move does not read them again.

The next move of the same task is decided on the remembered case, and its write compares (UnitOfWork.write): the task's version,
which grows with every change of the task or its questions, the settings of project and workspace, and the time of the last
restore. If one differs, nothing is written, the case is forgotten, and the move runs again on fresh rows. The same happens
when the decision is an error: no move is refused because of an old case. So a stale case only costs a second attempt.

Only tasks without neighbours are remembered, because a neighbour can change without touching the task's row. Ended neighbours
count, as they can be reopened. A task that gets its first neighbour has its version raised (UnitOfWork._save_needs), so a
remembered case without that neighbour is noticed.

The database's time is remembered with the case and continued by this machine's monotonic clock. It can be off by the latency
of a message, which moves a deadline by as much; a second writer still finds another version.
"""

from __future__ import annotations

import time

from ..core.model import PENDING, Case

#: Maximum number of cases, and their age in seconds.
SIZE, KEPT = 512, 30.0


class CaseCache:
    def __init__(self) -> None:
        self._cases: dict[int, tuple[Case, int, float]] = {}  #: by task: the case, the database's time, the monotonic time then

    def recall(self, task: int, workspace: int, question: int | None) -> tuple[Case, int] | None:
        """The case, if it includes the named question, and the database's time now (0 on SQLite)."""
        case, database, at = self._cases.get(task, (None, 0, 0.0))
        passed = time.monotonic() - at
        if case is None or passed > KEPT or case.project.workspace_id != workspace:
            return None
        if question is not None and all(q.id != question for q in case.questions):
            return None
        return case, database + round(passed * 1_000_000) if database else 0

    def remember(self, case: Case, database: int, at: float) -> None:
        """Remember a committed case. `database`: its time when the monotonic clock showed `at`."""
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

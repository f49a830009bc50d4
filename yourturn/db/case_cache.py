"""Cases as this process last saw them, so that it need not read them again before each move.

A case that was just written is known. The next move of the same task is decided on what is remembered, and the write
compares: the task's version, which grows with everything that changes the task or its questions, the settings, and the
fence. If any of them is not what was remembered, nothing is written and the move runs again on fresh rows. The same happens
when the decision is an error: nobody is refused because of old news.

Only tasks that stand alone are remembered, with no neighbours, not even ended ones, which could be reopened. A neighbour can
change without touching the task's row; whoever gets a first neighbour has its version raised (tx._save_needs), so a
remembered loner that is none any more is noticed too.

Where a look costs a round trip (PostgreSQL), so are the numbers that come next: of the next task of a project and its row, and
of the next question. They are guesses, too, and compared by the write. Who finds that somebody else came in between looks
first, until it was alone once more.

The database's clock is remembered with the case and goes on by this machine's monotonic one. So it can be off by the time
that a message takes, which moves a deadline by as much and can let nobody in: who comes second meets another version.

What such a task and its open questions are called is remembered with it, so that who names one need not ask for its row.
Rows that were replaced by a restore meanwhile are noticed by the key, which a task keeps for ever.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from ..core.errors import Busy
from ..core.model import PENDING, Case, Project

#: How many are remembered, and for how many seconds.
SIZE, KEPT = 512, 30.0


class Birth(NamedTuple):
    """Where the next task of a project comes in."""

    project: Project
    id: int
    database: int  #: its time
    at: float  #: this machine's, then
    alone: bool  #: nobody else created a task between our last two

    def later(self) -> Birth:
        here = time.monotonic()
        return self._replace(database=self.database + round((here - self.at) * 1_000_000), at=here)

    def next(self) -> Birth:
        return self._replace(project=self.project._replace(next_number=self.project.next_number + 1), id=self.id + 1)


class Recent:
    def __init__(self) -> None:
        self._cases: dict[int, tuple[Case, int, float]] = {}
        self._names: dict[tuple[int, str | int], int] = {}  #: in a workspace, a task's key or a question's number, and the task
        self._keys: dict[int, str] = {}  #: what the tasks are called that may have been named
        self._births: dict[tuple[int, str], Birth] = {}
        #: by workspace: the next question's number; and whether nobody else asked between our last two
        self.numbers: dict[int, tuple[int, bool]] = {}

    def recall(self, task: int, workspace: int, question: int | None) -> tuple[Case, int, float] | None:
        """The case and the database's time, if both are still known; and this machine's."""
        found = self._cases.get(task)
        if found is None:
            return None
        case, database, at = found
        here = time.monotonic()
        passed = here - at
        if passed > KEPT or case.project.workspace_id != workspace:
            return None
        if question is not None and all(q.id != question for q in case.questions):
            return None
        return case, database + round(passed * 1_000_000) if database else 0, here

    def whose(self, name: str | int, workspace: int) -> int | None:
        """The task that a key or the number of a question stands for, if it is remembered."""
        task = self._names.get((workspace, name))
        if task is None or self.recall(task, workspace, name if isinstance(name, int) else None) is None:
            return None
        return task

    def agree(self, task: int, key: str) -> None:
        """A task keeps its key. If the one with this number has another now, the whole desk was replaced since it was named."""
        if self._keys.get(task, key) != key:
            self._cases.clear()
            self._names.clear()
            self._keys.clear()
            raise Busy("This desk was just restored", hint="Nothing was changed. Try again.")

    def remember(self, case: Case, database: int, at: float) -> None:
        """`database` was its time when it was `at` here; 0: a moment ago."""
        assert case.task is not None
        task, key, workspace = case.task.id, case.task.key, case.project.workspace_id
        if not case.alone:
            self.forget(task)
            return
        asked = tuple([q for q in case.questions if q.status == PENDING])
        if len(self._cases) >= SIZE or len(self._names) >= 4 * SIZE:
            self._cases.clear()
            self._names.clear()
            self._keys.clear()
        if asked != case.questions:
            case = case._replace(questions=asked)
        self._cases[task] = (case, database, at or time.monotonic())
        self._names[workspace, key], self._keys[task] = task, key
        for q in asked:
            self._names[workspace, q.id] = task

    def birth(self, workspace: int, project: str) -> Birth | None:
        """Taken out: nobody guesses the same again."""
        found = self._births.pop((workspace, project), None)
        return found if found is not None and time.monotonic() - found.at <= KEPT else None

    def born(self, next: Birth) -> None:
        self._births[next.project.workspace_id, next.project.key] = next

    def forget(self, task: int) -> None:
        self._cases.pop(task, None)

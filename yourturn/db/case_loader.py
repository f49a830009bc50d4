"""Loads what a move is decided on: cases, and the tasks and questions that names mean. Plain SQL from queries.sql."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from ..core.errors import NotFound
from ..core.model import RESOLVED, Case, Project, Question, Ref, Step, Task
from ..core.references import Name, Reading, meant
from .backend import DESCENDANTS, FROM_HOME, HOME, OF_PROJECT, Store

_TASK = len(Task._fields)
#: A task whose session lives on another machine is left to that machine for a minute.
_NEAR_ITS_SESSION = (
    " AND (t.host IS NULL OR t.host = :host OR t.updated_at <= coalesce(CAST(:now AS {big}), {moment}) - 60000000)"
)


class CaseLoader:
    """Loads cases in one transaction, and locks them."""

    __slots__ = ("q", "run", "store", "workspace")

    def __init__(self, store: Store, run: Any, workspace: int) -> None:
        self.store = store
        self.run = run
        self.q = store.query
        self.workspace = workspace

    def case(self, task: int, question: int | None = None) -> tuple[Case, int]:
        """The case of a task, locked, and the database's time (0 where it has none of its own)."""
        row = self.run(self.q["task_for_update"], {"id": task, "workspace": self.workspace}).fetchone()
        if row is None:
            raise NotFound(f"There is no task number {task}")
        return self._case(row, question)

    def seen(self, row: Any, question: int | None = None) -> Case:
        """The same of a row that was only looked at."""
        return self._case(row, question)[0]

    def _case(self, row: Any, question: int | None = None, home: Project | None = None) -> tuple[Case, int]:
        """The row is locked, and says what else there is; what is read now is what the lock protects."""
        task = Task._make(row[:_TASK])
        more = [(self.q[name], {"id": task.id}) for bit, name in ((1, "pending"), (2, "neighbours")) if row[-2] & bit]
        found = self.run.many(*more) if more else []
        asked = found[0] if row[-2] & 1 else ()
        near = found[-1] if row[-2] & 2 else ()
        questions = [Question._make(r) for r in asked]
        if question is not None and all(q.id != question for q in questions):
            named = self.question(question)
            if named.task_id != task.id:
                raise NotFound(f"{task.key} has no question {named.name}")
            questions.append(named)
        home = home or self._project((task.project_id, *row[_TASK:-2]))
        case = Case(home, task, tuple(questions), alone=not row[-2] & 2)
        return (_among(case, near) if near else case), int(row[-1])

    def _project(self, row: Any) -> Project:
        return Project(row[0], row[1], row[2], row[3], row[4], self.store.settings(row[5], row[6]), row[7], (row[5], row[6]))

    def latest(self, case: Case) -> Case:
        """The case with its last question, closed or not."""
        assert case.task is not None
        row = self.run(self.q["latest"], {"id": case.task.id}).fetchone()
        return case._replace(questions=(Question._make(row),)) if row else case

    def with_steps(self, case: Case, places: list[str]) -> Case:
        """The case with the steps that the action speaks of."""
        assert case.task is not None
        marks = ", ".join(f":place{at}" for at in range(len(places)))
        args = {"task": case.task.id, "journal": case.task.journal, **{f"place{at}": at_ for at, at_ in enumerate(places)}}
        rows = self.run(self.q["steps_at"].replace("{places}", marks), args).fetchall()
        return case._replace(steps=tuple(map(Step._make, rows)))

    def new_case(self, project: str, parent: int | None, needs: Iterable[int]) -> tuple[Case, int, int | None]:
        """The case of a task that does not exist yet, the database's time, and the task's id if the database gives it out now.

        Its neighbours are locked, so that none of them ends unseen while it joins them.
        """
        near = {ref.id: ref for ref in self.refs({*needs, *([parent] if parent else [])}, lock=True)}
        row = self.run(self.q["project_for_update"], {"workspace": self.workspace, "key": project}).fetchone()
        if row is None:
            self.no_project(project)
        waits = [near[other] for other in sorted(set(needs)) if near[other].state not in RESOLVED]
        above = near[parent] if parent else None
        return Case(self._project(row), None, needs=tuple(waits), parent=above, alone=not near), int(row[-1]), row[-2]

    def no_project(self, key: str) -> NoReturn:
        known = ", ".join(r[0] for r in self.run(self.q["project_keys"], {"workspace": self.workspace}).fetchall())
        hint = f"There is: {known or 'none'}. Make one with: turn project create {key}"
        raise NotFound(f"There is no project {key}", hint=hint)

    def refs(self, ids: Iterable[int], lock: bool = False) -> list[Ref]:
        wanted = list(ids)
        if not wanted:
            return []
        args = {"workspace": self.workspace, "ids": ",".join(str(int(i)) for i in wanted)}
        found = [Ref._make(r) for r in self.run(self.q["refs_for_update" if lock else "refs"], args).fetchall()]
        if len(found) != len(set(wanted)):
            raise NotFound("One of the tasks named is not there")
        return found

    def question(self, number: int) -> Question:
        row = self.run(self.q["question"], {"workspace": self.workspace, "id": number}).fetchone()
        if row is None:
            raise NotFound(f"There is no question Q{number}", hint="See what is open with: turn inbox")
        return Question._make(row)

    def named(self, name: Name) -> Reading:
        """The task or question of this name."""
        key = {"workspace": self.workspace, "project": name.project, "key": name.key}
        number = {"workspace": self.workspace, "number": -1 if name.number is None else name.number}
        rows: list[Any] = []
        if name.exact:
            sort, args = ("named_task", key) if name.key else ("named_question", number)
            rows = self.run(self.q[sort], args).fetchall()
        if not rows:
            rows = self.run(self.q["named"], {**key, **number, "text": name.text, "id": name.id or name.text}).fetchall()
        return meant(name, [Reading._make(row) for row in rows])

    def reaches(self, start: int, goal: int) -> bool:
        return self.run(self.q["reaches"], {"from": start, "to": goal}).fetchone() is not None

    def pick(
        self,
        now: int | None,
        project: str | None,
        epic: int | None = None,
        role: str | None = None,
        host: str | None = None,
        runs: bool = False,
        home: Project | None = None,
    ) -> tuple[bool, tuple[Case, int] | None]:
        """Is something due? And the next task to work on, locked, or None. Without a project: the best of all projects.

        `home`: a project that this transaction has read already.
        """
        if project is None:
            keys = [row[0] for row in self.run(self.q["project_keys"], {"workspace": self.workspace}).fetchall()]
            found = [self.pick(now, key, epic, role, host, runs) for key in keys]
            return any(due for due, _ in found), min((case for _, case in found if case), key=_urgency, default=None)
        if home is not None and home.key != project:
            home = None
        row = self.run(*self._picking(home, now, project, epic, role, host, runs)).fetchone()
        return (bool(row[0]), self._case(row[1:], home=home)) if row else (self.anything_due(now)[1], None)

    def _picking(
        self, home: Project | None, now: int | None, project: str | None, epic: int | None, role: str | None, host: str | None,
        runs: bool,
    ) -> tuple[str, dict[str, Any]]:  # fmt: skip
        sorts = (home is not None, epic is not None, role is not None, host is not None, runs)
        text = self.store.picks.get(sorts) or self._picks(*sorts)
        args = {"workspace": self.workspace, "project": project, "now": now, "epic": epic, "role": role, "host": host}
        if home is not None:
            args["home"] = home.id
        return text, args

    def _picks(self, home: bool, epic: bool, role: bool, host: bool, runs: bool) -> str:
        """The query for such tasks only."""
        only = ("AND t.project_id = :home" if home else f"AND {OF_PROJECT}") + " AND t.workflow IS NULL" * (not runs)
        if epic:
            only += f" AND t.parent_id IN ({DESCENDANTS})".format_map(self.store.words)
        if role:
            only += " AND (t.role IS NULL OR t.role = :role)"
        if host:
            only += _NEAR_ITS_SESSION.format_map(self.store.words)
        text = self.q["pick"].replace("{only}", only)
        text = text.replace("{home}", "" if home else HOME).replace("{from_home}", "" if home else FROM_HOME)
        self.store.picks[home, epic, role, host, runs] = text
        return text

    def anything_due(self, now: int | None) -> tuple[int, bool]:
        """What time it is, by the database's clock if none is given; and is something due?"""
        at, something = self.run(self.q["anything_due"], {"now": now, "workspace": self.workspace}).fetchone()
        return int(at), bool(something)

    def due(self, now: int, limit: int) -> list[int]:
        args = {"now": now, "workspace": self.workspace, "limit": limit}
        return [row[0] for row in self.run(self.q["due"], args).fetchall()]


def _urgency(found: tuple[Case, int]) -> tuple[int, int, int]:
    task = found[0].task
    assert task is not None
    return task.priority, task.created_at, task.id


def _among(case: Case, near: Any) -> Case:
    """The case with its neighbours."""
    found: dict[str, list[Ref]] = {"needs": [], "dependent": [], "child": [], "parent": [], "parts": []}
    for sort, *ref in sorted(near):
        found[sort].append(Ref._make(ref))
    return case._replace(
        needs=tuple(found["needs"]),
        children=tuple(found["child"]),
        dependents=tuple(found["dependent"]),
        parent=found["parent"][0] if found["parent"] else None,
        has_children=bool(found["parts"]),
    )

"""Loads and locks cases, and resolves names of tasks and questions. The SQL is in queries.sql."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from ..core.errors import NotFound
from ..core.model import RESOLVED, Case, Project, Question, Ref, Step, Task
from ..core.references import Name, Reading, resolve
from .backend import DESCENDANTS, JOIN_PROJECT, OF_PROJECT, PROJECT_COLUMNS, Store

_TASK = len(Task._fields)
#: A task whose session is on another machine is reserved for that machine for a minute.
_SAME_HOST = (
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
        """The case of a task, with its row locked, and the database's time (0 on SQLite)."""
        row = self.run(self.q["task_for_update"], {"id": task, "workspace": self.workspace}).fetchone()
        if row is None:
            raise NotFound(f"There is no task number {task}")
        return self._case(row, question)

    def unlocked(self, row: Any, question: int | None = None) -> Case:
        """The case of a row that was read without a lock."""
        return self._case(row, question)[0]

    def _case(self, row: Any, question: int | None = None, home: Project | None = None) -> tuple[Case, int]:
        """The row says whether there are open questions (1) and neighbours (2); these are read now, behind the lock."""
        task = Task._make(row[:_TASK])
        more = [(self.q[name], {"id": task.id}) for bit, name in ((1, "pending"), (2, "neighbours")) if row[-2] & bit]
        results = self.run.many(*more) if more else []
        pending = results[0] if row[-2] & 1 else ()
        neighbours = results[-1] if row[-2] & 2 else ()
        questions = [Question._make(r) for r in pending]
        if question is not None and all(q.id != question for q in questions):
            named = self.question(question)
            if named.task_id != task.id:
                raise NotFound(f"{task.key} has no question {named.name}")
            questions.append(named)
        home = home or self._project((task.project_id, *row[_TASK:-2]))
        case = Case(home, task, tuple(questions), alone=not row[-2] & 2)
        return (_with_neighbours(case, neighbours) if neighbours else case), int(row[-1])

    def _project(self, row: Any) -> Project:
        return Project(row[0], row[1], row[2], row[3], row[4], self.store.settings(row[5], row[6]), row[7], (row[5], row[6]))

    def latest(self, case: Case) -> Case:
        """The case with its last question, closed or not."""
        assert case.task is not None
        row = self.run(self.q["latest"], {"id": case.task.id}).fetchone()
        return case._replace(questions=(Question._make(row),)) if row else case

    def with_steps(self, case: Case, places: list[str]) -> Case:
        """The case with the steps at these places."""
        assert case.task is not None
        marks = ", ".join(f":place{at}" for at in range(len(places)))
        args = {"task": case.task.id, "journal": case.task.journal, **{f"place{at}": at_ for at, at_ in enumerate(places)}}
        rows = self.run(self.q["steps_at"].replace("{places}", marks), args).fetchall()
        return case._replace(steps=tuple(map(Step._make, rows)))

    def new_case(self, project: str, parent: int | None, needs: Iterable[int]) -> tuple[Case, int, int | None]:
        """The case of a new task, the database's time, and the task's id if the database assigns it before the INSERT.

        Its neighbours are locked, so that none of them ends before this commit.
        """
        near = {ref.id: ref for ref in self.refs({*needs, *([parent] if parent else [])}, lock=True)}
        row = self.run(self.q["project_for_update"], {"workspace": self.workspace, "key": project}).fetchone()
        if row is None:
            self.no_project(project)
        waits = [near[other] for other in sorted(set(needs)) if near[other].state not in RESOLVED]
        above = near[parent] if parent else None
        return Case(self._project(row), None, needs=tuple(waits), parent=above, alone=not near), int(row[-1]), row[-2]

    def no_project(self, key: str) -> NoReturn:
        keys = ", ".join(r[0] for r in self.run(self.q["project_keys"], {"workspace": self.workspace}).fetchall())
        hint = f"There is: {keys or 'none'}. Make one with: turn project create {key}"
        raise NotFound(f"There is no project {key}", hint=hint)

    def refs(self, ids: Iterable[int], lock: bool = False) -> list[Ref]:
        wanted = list(ids)
        if not wanted:
            return []
        args = {"workspace": self.workspace, "ids": ",".join(str(int(i)) for i in wanted)}
        refs = [Ref._make(r) for r in self.run(self.q["refs_for_update" if lock else "refs"], args).fetchall()]
        if len(refs) != len(set(wanted)):
            raise NotFound("One of the tasks named is not there")
        return refs

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
            query, args = ("named_task", key) if name.key else ("named_question", number)
            rows = self.run(self.q[query], args).fetchall()
        if not rows:
            rows = self.run(self.q["named"], {**key, **number, "text": name.text, "id": name.id or name.text}).fetchall()
        return resolve(name, [Reading._make(row) for row in rows])

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
        """True if any move is due; and the case of the next task, locked, or None. Without a project: the best of all projects.

        `home`: a project that this transaction has read already.
        """
        if project is None:
            keys = [row[0] for row in self.run(self.q["project_keys"], {"workspace": self.workspace}).fetchall()]
            picks = [self.pick(now, key, epic, role, host, runs) for key in keys]
            return any(due for due, _ in picks), min((case for _, case in picks if case), key=_urgency, default=None)
        if home is not None and home.key != project:
            home = None
        row = self.run(*self._pick_query(home, now, project, epic, role, host, runs)).fetchone()
        return (bool(row[0]), self._case(row[1:], home=home)) if row else (self.anything_due(now)[1], None)

    def _pick_query(
        self, home: Project | None, now: int | None, project: str | None, epic: int | None, role: str | None, host: str | None,
        runs: bool,
    ) -> tuple[str, dict[str, Any]]:  # fmt: skip
        filters = (home is not None, epic is not None, role is not None, host is not None, runs)
        text = self.store.picks.get(filters) or self._pick_text(*filters)
        args = {"workspace": self.workspace, "project": project, "now": now, "epic": epic, "role": role, "host": host}
        if home is not None:
            args["home"] = home.id
        return text, args

    def _pick_text(self, home: bool, epic: bool, role: bool, host: bool, runs: bool) -> str:
        only = ("AND t.project_id = :home" if home else f"AND {OF_PROJECT}") + " AND t.workflow IS NULL" * (not runs)
        if epic:
            only += f" AND t.parent_id IN ({DESCENDANTS})".format_map(self.store.words)
        if role:
            only += " AND (t.role IS NULL OR t.role = :role)"
        if host:
            only += _SAME_HOST.format_map(self.store.words)
        text = self.q["pick"].replace("{only}", only)
        columns, join = ("", "") if home else (PROJECT_COLUMNS, JOIN_PROJECT)
        text = text.replace("{project_columns}", columns).replace("{join_project}", join)
        self.store.picks[home, epic, role, host, runs] = text
        return text

    def anything_due(self, now: int | None) -> tuple[int, bool]:
        """The time, by the database's clock if none is given; and True if any move is due by then."""
        at, due = self.run(self.q["anything_due"], {"now": now, "workspace": self.workspace}).fetchone()
        return int(at), bool(due)

    def due(self, now: int, limit: int) -> list[int]:
        args = {"now": now, "workspace": self.workspace, "limit": limit}
        return [row[0] for row in self.run(self.q["due"], args).fetchall()]


def _urgency(picked: tuple[Case, int]) -> tuple[int, int, int]:
    task = picked[0].task
    assert task is not None
    return task.priority, task.created_at, task.id


def _with_neighbours(case: Case, rows: Any) -> Case:
    refs: dict[str, list[Ref]] = {"needs": [], "dependent": [], "child": [], "parent": [], "parts": []}
    for relation, *ref in sorted(rows):
        refs[relation].append(Ref._make(ref))
    return case._replace(
        needs=tuple(refs["needs"]),
        children=tuple(refs["child"]),
        dependents=tuple(refs["dependent"]),
        parent=refs["parent"][0] if refs["parent"] else None,
        has_children=bool(refs["parts"]),
    )

"""One open transaction of the door: what it loads to decide on. Plain SQL from queries.sql, for both dialects."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, NoReturn

from ..core.errors import NotFound
from ..core.model import RESOLVED, Action, Case, Decision, Project, Question, Ref, Step, Task
from ..core.references import Name, Reading, meant
from .backend import DESCENDANTS, FROM_HOME, HOME, OF_PROJECT, Store
from .case_cache import Birth

_TASK, _KEY = len(Task._fields), Task._fields.index("key")
#: Whose session lives on another machine is left to that machine for a minute.
_NEAR_ITS_SESSION = (
    " AND (t.host IS NULL OR t.host = :host OR t.updated_at <= coalesce(CAST(:now AS {big}), {moment}) - 60000000)"
)


class Docket:
    """Cases, loaded and locked."""

    __slots__ = (
        "ahead", "asked", "birth", "counted", "decided", "events", "final", "fresh", "known", "last", "limited", "moved", "q",
        "recalled", "recent", "run", "store", "unasked", "virtual", "workspace",
    )  # fmt: skip

    def __init__(self, store: Store, run: Any, workspace: int, virtual: bool = False, recent: bool = False) -> None:
        self.store = store
        self.run = run
        self.q = store.query
        self.workspace = workspace
        self.last: tuple[int | None, int] = (None, 0)  #: an event in a later slot than ours: the next one's is not before its
        self.events: list[tuple[Any, ...]] = []  #: in a row, not written yet
        self.fresh: int | None = None  #: the id of the task that is being created, where the database gives it out before
        self.virtual = virtual  #: will be rolled back, so it must not promise numbers that somebody else gets
        self.unasked = 0
        self.recent = recent  #: may be decided on what this process remembers
        self.recalled = 0  #: the task whose case was remembered, not read; -1: where a new one comes in
        self.ahead: Project | None = None  #: in which the next task was asked for before that in hand was moved
        self.birth: Birth | None = None  #: where the next task comes in
        self.asked: tuple[int, int] | None = None  #: the first number that was guessed for a question, and how many
        self.limited: list[Decision] = []  #: what agents ask and create, see desk/rate_limits.py
        self.counted: tuple[int, bool] | None = None  #: the number behind those that were given, see recent.py
        self.known = 0.0  #: what this machine's clock showed when the database's showed what was remembered
        self.final: list[tuple[Case, int, float]] = []  #: the cases that it leaves behind, the database's time, and when that was
        self.decided: list[Decision] = []  #: the moves that it has made, for the reply
        self.moved: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}  #: what a row was, what changed, and is not written yet

    def write(self) -> None:
        """What was decided and not written yet; before anybody looks. Who only loads has nothing."""

    def recall(self, task: int, question: int | None, asked: bool) -> tuple[Case, int] | None:
        """The case as this process remembers it; what is written on it compares. With `asked`, only if it has open questions."""
        found = self.store.recent.recall(task, self.workspace, question) if self.recent else None
        if found is None or (asked and not found[0].questions):
            return None
        case, database, self.known = found
        self.recalled = task
        return case, database

    def case(self, task: int, question: int | None = None) -> tuple[Case, int]:
        """The case of a task, locked, and the database's time (0 where it has none of its own)."""
        self.write()
        row = self.run(self.q["task_for_update"], {"id": task, "workspace": self.workspace}).fetchone()
        if row is None:
            raise NotFound(f"There is no task number {task}")
        self.store.recent.agree(task, row[_KEY])
        return self._case(row, question)

    def seen(self, row: Any, question: int | None = None) -> Case:
        """The same of a row that was only looked at."""
        return self._case(row, question)[0]

    def _case(self, row: Any, question: int | None = None, home: Project | None = None) -> tuple[Case, int]:
        """The row is locked, and says what else there is; what is read now is what the lock protects."""
        task, self.known = Task._make(row[:_TASK]), 0.0
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
        """The case with its last question: who speaks of the task's key may come too late for it."""
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

    def new_case(self, project: str, parent: int | None, needs: Iterable[int]) -> tuple[Case, int]:
        """The case of a task that does not exist yet. Its neighbours are locked: none ends unseen while it joins them."""
        self.write()
        near = {ref.id: ref for ref in self.refs({*needs, *([parent] if parent else [])}, lock=True)}
        known = self.store.recent.birth(self.workspace, project) if self.recent and self.store.far else None
        if known is not None and known.alone and not near and not self.run.begun:
            self.birth, self.recalled = known.later(), -1
            self.fresh, self.known = known.id, self.birth.at
            return Case(known.project, None, alone=True), self.birth.database
        row = self.run(self.q["project_for_update"], {"workspace": self.workspace, "key": project}).fetchone()
        if row is None:
            self._no_project(project)
        home = self._project(row)
        self.fresh = row[-2]
        if self.fresh is not None:
            alone = known is not None and (known.project.next_number, known.id) == (home.next_number, self.fresh)
            self.birth = Birth(home, self.fresh, int(row[-1]), time.monotonic(), alone)
        waits = [near[other] for other in sorted(set(needs)) if near[other].state not in RESOLVED]
        return Case(home, None, needs=tuple(waits), parent=near[parent] if parent else None, alone=not near), int(row[-1])

    def _no_project(self, key: str) -> NoReturn:
        known = ", ".join(r[0] for r in self.run(self.q["project_keys"], {"workspace": self.workspace}).fetchall())
        hint = f"There is: {known or 'none'}. Make one with: turn project create {key}"
        raise NotFound(f"There is no project {key}", hint=hint)

    def refs(self, ids: Iterable[int], lock: bool = False) -> list[Ref]:
        wanted = list(ids)
        if not wanted:
            return []
        self.write()
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
    ) -> tuple[bool, tuple[Case, int] | None]:
        """Is something due? And the next task to work on, locked, or None. Without a project: the best of all projects."""
        if project is None:
            keys = [row[0] for row in self.run(self.q["project_keys"], {"workspace": self.workspace}).fetchall()]
            found = [self.pick(now, key, epic, role, host, runs) for key in keys]
            return any(due for due, _ in found), min((case for _, case in found if case), key=_urgency, default=None)
        if self.ahead is not None:
            home: Project | None = self.ahead
            row = self.run.came().fetchone()
        else:
            home = self.final[-1][0].project if self.final and self.final[-1][0].project.key == project else None
            row = self.run(*self._picking(home, now, project, epic, role, host, runs)).fetchone()
        return (bool(row[0]), self._case(row[1:], home=home)) if row else (self.anything_due(now)[1], None)

    def pick_ahead(self, first: Action, now: int | None, project: str | None, *wanted: Any) -> None:
        """Ask for the next task before the task in hand is moved: the server looks while we decide."""
        if self.store.far and first.task is not None and project is not None:
            found = self.store.recent.recall(first.task, self.workspace, first.question)
            if found is not None and found[0].project.key == project:
                self.ahead = found[0].project
                self.run.ahead(*self._picking(self.ahead, now, project, *wanted))

    def picked_ahead(self) -> bool:
        """Was it, and does what was moved since change nothing about which is the next? Then all is written at the end.

        The project that was remembered is compared with the task that was, so that has to be what was moved.
        """
        case = self.final[-1][0] if self.final and self.recalled else None
        if case is None or not case.alone or case.offered:
            self.ahead = None
        return self.ahead is not None

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
        """The query for who looks for such tasks only; with `home`, in the project that this transaction has just looked at."""
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

"""What both dialects share: loading a case, saving a decision.

A dialect is how to connect, how to begin, how to wait for news, and a few words (`words`). Everything here is plain SQL from
queries.sql. `Tx` is one open transaction of the door; nothing outside desk.py gets hold of one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, NoReturn

from ..core import settings
from ..core.canon import dumps, link
from ..core.errors import NotFound, Precondition
from ..core.model import RESOLVED, Action, Case, Decision, Project, Question, Ref, Task
from . import text

_TASK = len(Task._fields)
_QUIET = frozenset({"id", "claim_hash", "event_count", "event_head", "version", "updated_at", "due_at", "lease", "created_at"})


#: All that can change on a question.
_CLOSING = ("status", "response", "close_reason", "responded_by", "responded_at", "timeout_at", "reviewer", "urgency")

#: One project, so that the planner can use the indexes that begin with it.
OF_PROJECT = "t.project_id = (SELECT x.id FROM projects x WHERE x.workspace_id = :workspace AND x.key = :project)"

#: An epic and everything below it that can itself be a parent.
DESCENDANTS = (
    "WITH RECURSIVE under (id) AS (SELECT {cast_epic} UNION SELECT k.id FROM tasks k JOIN under ON k.parent_id = under.id) "
    "SELECT id FROM under"
)


class Again(Exception):
    """The transaction lost a race and left nothing behind: run it again."""


class Store:
    dialect = ""
    url = ""
    words: dict[str, str] = {}
    pulse = 1.0

    def __init__(self) -> None:
        self.query = {name: self.sql(body) for name, body in text.queries(self.words).items()}
        self._settings: dict[tuple[str, str], dict[str, Any]] = {}

    def sql(self, body: str) -> str:
        """The dialect's way to write parameters."""
        return body

    def begin(self, what: str = "", *, write: bool = True) -> AbstractContextManager[Any]:
        """One transaction. `what` names the change that is made in it, for failpoints."""
        raise NotImplementedError

    def reading(self) -> AbstractContextManager[Any]:
        raise NotImplementedError

    def script(self, run: Any, statements: list[str]) -> None:
        raise NotImplementedError

    def tables(self, run: Any) -> set[str]:
        raise NotImplementedError

    def lock_graph(self, run: Any, workspace: int) -> None:
        """Two new dependencies could close a circle that neither sees; where writers run side by side, they queue here."""

    def lock_key(self, run: Any, workspace: int, key: str) -> None:
        """Two requests with one idempotency key: the second waits here for the first one's reply."""

    def wait(self, seconds: float) -> bool:
        raise NotImplementedError

    def check(self) -> list[str]:
        """What the database itself finds wrong."""
        raise NotImplementedError

    def held_back(self, seconds: float = 60.0) -> list[str]:
        """Which transactions, open for so long, keep readers of the event log from going on."""
        return []

    def _unguarded(self, triggers: Iterable[str]) -> list[str]:
        gone = set(re.findall(r"CREATE TRIGGER (\w+)", self.words["append_only"])) - set(triggers)
        return [f"the trigger {name}, which keeps events unchanged, is missing" for name in sorted(gone)]

    def close(self) -> None:
        raise NotImplementedError

    def settings(self, project: str, workspace: str) -> dict[str, Any]:
        """The project's word over the workspace's over the defaults."""
        known = self._settings.get((project, workspace))
        if known is None:
            known = settings.defaults() | json.loads(workspace) | json.loads(project)
            self._settings[project, workspace] = known
        return known


class Tx:
    """One transaction: load cases, save decisions."""

    __slots__ = ("q", "run", "slot", "store", "unasked", "virtual", "workspace")

    def __init__(self, store: Store, run: Any, workspace: int, virtual: bool = False) -> None:
        self.store = store
        self.run = run
        self.q = store.query
        self.workspace = workspace
        self.slot = "0"
        self.virtual = virtual  #: will be rolled back, so it must not promise numbers that somebody else gets
        self.unasked = 0

    # --- loading ----------------------------------------------------------------------------------------------------

    def case(self, task: int, question: int | None = None, lock: bool = True) -> tuple[Case, int]:
        """The case of a task, and the database's time (0 where it has none of its own)."""
        row = self.run(self.q["task_for_update" if lock else "task"], {"id": task, "workspace": self.workspace}).fetchone()
        if row is None:
            raise NotFound(f"There is no task number {task}")
        return self._case(row, question)

    def _case(self, row: Any, question: int | None = None) -> tuple[Case, int]:
        task = Task._make(row[:_TASK])
        questions = [Question._make(r) for r in self.run(self.q["pending"], {"id": task.id}).fetchall()]
        if question is not None and all(q.id != question for q in questions):
            named = self.question(question)
            if named.task_id != task.id:
                raise NotFound(f"{task.key} has no question {named.name}")
            questions.append(named)
        needs: list[Ref] = []
        dependents: list[Ref] = []
        children: list[Ref] = []
        shelf = {"needs": needs, "dependent": dependents, "child": children}
        for r in self.run(self.q["neighbours"], {"id": task.id}).fetchall():
            shelf[r[0]].append(Ref._make(r[1:]))
        return (
            Case(
                self._project((task.project_id, *row[_TASK:-1])),
                task,
                tuple(questions),
                tuple(needs),
                tuple(children),
                tuple(dependents),
                self.refs([task.parent_id])[0] if task.parent_id else None,
                task.type == "epic" and self.run(self.q["has_children"], {"id": task.id}).fetchone() is not None,
            ),
            int(row[-1]),
        )

    def _project(self, row: Any) -> Project:
        return Project(row[0], row[1], row[2], row[3], row[4], self.store.settings(row[5], row[6]))

    def latest(self, case: Case) -> Case:
        """The case with its last question: who speaks of the task's key may come too late for it."""
        assert case.task is not None
        row = self.run(self.q["latest"], {"id": case.task.id}).fetchone()
        return case._replace(questions=(Question._make(row),)) if row else case

    def new_case(self, project: str, parent: int | None, needs: Iterable[int]) -> tuple[Case, int]:
        """The case of a task that does not exist yet. Its neighbours are locked: none ends unseen while it joins them."""
        near = {ref.id: ref for ref in self.refs({*needs, *([parent] if parent else [])}, lock=True)}
        row = self.run(self.q["project_for_update"], {"workspace": self.workspace, "key": project}).fetchone()
        if row is None:
            self._no_project(project)
        waits = [near[other] for other in sorted(set(needs)) if near[other].state not in RESOLVED]
        return (
            Case(self._project(row), None, needs=tuple(waits), parent=near[parent] if parent else None),
            int(row[-1]),
        )

    def _no_project(self, key: str) -> NoReturn:
        known = ", ".join(r[0] for r in self.run(self.q["project_keys"], {"workspace": self.workspace}).fetchall())
        hint = f"There is: {known or 'none'}. Make one with: turn project create {key}"
        raise NotFound(f"There is no project {key}", hint=hint)

    def refs(self, ids: Iterable[int], lock: bool = False) -> list[Ref]:
        wanted = list(ids)
        if not wanted:
            return []
        body = self.q["refs_for_update" if lock else "refs"].replace("{ids}", ",".join(str(int(i)) for i in wanted))
        found = [Ref._make(r) for r in self.run(body, {"workspace": self.workspace}).fetchall()]
        if len(found) != len(set(wanted)):
            raise NotFound("One of the tasks named is not there")
        return found

    def question(self, number: int) -> Question:
        row = self.run(self.q["question"], {"workspace": self.workspace, "id": number}).fetchone()
        if row is None:
            raise NotFound(f"There is no question Q{number}")
        return Question._make(row)

    def task_id(self, project: str, key: str, elsewhere: str) -> int | None:
        row = self.run(self.q["task_id"], {"workspace": self.workspace, "project": project, "key": key}).fetchone()
        if row is None:
            row = self.run(self.q["task_id_elsewhere"], {"workspace": self.workspace, "key": elsewhere}).fetchone()
        return row[0] if row else None

    def reaches(self, start: int, goal: int) -> bool:
        return self.run(self.q["reaches"], {"from": start, "to": goal}).fetchone() is not None

    def pick(self, project: str | None, epic: int | None = None, role: str | None = None) -> tuple[Case, int] | None:
        """The next task to work on, locked; None when there is none. Without a project: the best of all projects."""
        if project is None:
            keys = [row[0] for row in self.run(self.q["project_keys"], {"workspace": self.workspace}).fetchall()]
            found = [case for case in (self.pick(key, epic, role) for key in keys) if case]
            return min(found, key=_urgency, default=None)
        only = f"AND {OF_PROJECT}"
        args = {"workspace": self.workspace, "project": project}
        if epic is not None:
            only += f" AND t.parent_id IN ({DESCENDANTS})".format_map(self.store.words)
            args["epic"] = epic
        if role is not None:
            only += " AND (t.role IS NULL OR t.role = :role)"
            args["role"] = role
        row = self.run(self.q["pick"].replace("{only}", self.store.sql(only)), args).fetchone()
        return self._case(row) if row else None

    def due(self, now: int, limit: int) -> list[int]:
        args = {"now": now, "workspace": self.workspace, "limit": limit}
        return [row[0] for row in self.run(self.q["due"], args).fetchall()]

    # --- saving -----------------------------------------------------------------------------------------------------

    def save(self, decision: Decision) -> Decision:
        """Write a decision and its event. Compares the version that the decision was made on."""
        decision = self._numbered(decision)
        task, before = decision.task, decision.before
        data = _data(decision)
        if not decision.silent:
            n = task.event_count + 1
            body = dumps(data)
            who, at = decision.action.who.name, decision.now
            head = link(task.event_head, task.key, n, at, who, decision.action.verb, body)
            decision = _with(decision, event_count=n, event_head=head)
        decision = self._insert(decision) if before is None else self._update(decision, before)
        task = decision.task
        for q in decision.opened:
            fields = q._asdict() | {"workspace_id": self.workspace, "task_id": task.id}
            self.run(self.store.sql(_insert("questions", fields)), fields)
        for q in decision.closed:
            self._close(q)
        for note in decision.notes:
            self.run(self.q["insert_note"], {"task": task.id, "author": note.author, "text": note.text, "at": note.at})
        self._save_needs(decision)
        if not decision.silent:
            self._log(task.id, n, at, who, decision.action.verb, body, before.event_head if before else "", head)
        return decision

    def _log(self, task: int | None, n: int, at: int, actor: str, action: str, data: str, prev: str, hash: str) -> None:
        self.slot = self.run(
            self.q["insert_event"],
            {
                "workspace": self.workspace, "task": task, "n": n, "at": at, "actor": actor, "action": action,
                "data": data, "prev": prev, "hash": hash, "slot": self.slot,
            },
        ).fetchone()[0]  # fmt: skip

    def _numbered(self, decision: Decision) -> Decision:
        """Give the questions that were opened their numbers."""
        count = len(decision.opened)
        if not count:
            return decision
        if self.virtual:
            self.unasked += count
            first = -self.unasked
        else:
            first = self.run(self.q["take_numbers"], {"workspace": self.workspace, "count": count}).fetchone()[0]
        opened = tuple(q._replace(id=first + i, task_id=decision.task.id) for i, q in enumerate(decision.opened))
        fresh = iter(opened)
        questions = tuple(next(fresh) if q.id == 0 else q for q in decision.case.questions)
        return decision._replace(opened=opened, case=decision.case._replace(questions=questions))

    def _insert(self, decision: Decision) -> Decision:
        fields = decision.task._asdict()
        del fields["id"]
        if fields["external_id"]:
            self._new_elsewhere(fields["project_id"], fields["external_id"])
        number = int(decision.task.key.rpartition("-")[2])
        taken = self.run(self.q["next_number"], {"id": fields["project_id"], "number": number})
        if taken.rowcount != 1:
            raise Again
        new = self.run(self.store.sql(_insert("tasks", fields) + " RETURNING id"), fields).fetchone()[0]
        opened = tuple(q._replace(task_id=new) for q in decision.opened)
        return _with(decision, id=new)._replace(opened=opened)

    def _new_elsewhere(self, project: int, external: str) -> None:
        row = self.run(self.q["external"], {"project": project, "external": external}).fetchone()
        if row:
            raise Precondition(f"Cannot create {external}", reason=f"it is here already, as {row[0]}")

    def _update(self, decision: Decision, before: Task) -> Decision:
        fields = dict(decision.set)
        names = "".join(f", {name} = :{name}" for name in fields)
        done = self.run(
            self.store.sql(f"UPDATE tasks SET version = version + 1{names} WHERE id = :id AND version = :version"),
            {**fields, "id": before.id, "version": before.version},
        )
        if done.rowcount != 1:
            raise Again
        return _with(decision, version=before.version + 1)

    def _close(self, q: Question) -> None:
        """Compare-and-set: only a question that is still pending can change."""
        fields = {name: getattr(q, name) for name in _CLOSING}
        names = ", ".join(f"{name} = :{name}" for name in fields)
        done = self.run(
            self.store.sql(f"UPDATE questions SET {names} WHERE workspace_id = :workspace AND id = :id AND status = 'pending'"),
            {**fields, "workspace": self.workspace, "id": q.id},
        )
        if done.rowcount != 1:
            raise Again

    def _save_needs(self, decision: Decision) -> None:
        new = decision.task.id
        for task, other in decision.needs_added:
            self.run(self.q["insert_dep"], {"task": task or new, "needs": other or new})
        for task, other in decision.needs_removed:
            self.run(self.q["delete_dep"], {"task": task, "needs": other})
        if decision.action.args.get("warned"):
            self.run(self.q["warn_dep"], {"task": new, "needs": decision.action.args["warned"]})
        if decision.before is not None and decision.before.ended_at is not None and decision.task.ended_at is None:
            self.run(self.q["unwarn_deps"], {"needs": new})

    # --- idempotency ------------------------------------------------------------------------------------------------

    def reply(self, action: Action) -> Any:
        args = {"workspace": self.workspace, "key": action.key, "actor": action.who.name}
        return self.run(self.q["reply"], args).fetchone()

    def renew_claim(self, task: Task, claim_hash: str) -> None:
        self.run(self.q["renew_claim"], {"id": task.id, "epoch": task.epoch, "hash": claim_hash})

    def remember(self, action: Action, request: str, task: int | None, question: int | None, epoch: int | None, at: int) -> None:
        self.run(
            self.q["insert_reply"],
            {
                "workspace": self.workspace, "key": action.key, "actor": action.who.name, "request": request, "task": task,
                "question": question, "epoch": epoch, "at": at,
            },
        )  # fmt: skip

    # --- what concerns no task --------------------------------------------------------------------------------------

    def office_event(self, action: Action, data: dict[str, Any], at: int) -> None:
        name, n, head, _ = self.run(self.q["office_head"], {"workspace": self.workspace}).fetchone()
        body = dumps(data)
        fresh = link(head, name, n + 1, at, action.who.name, action.verb, body)
        self.run(self.q["move_office_head"], {"workspace": self.workspace, "n": n + 1, "hash": fresh})
        self._log(None, n + 1, at, action.who.name, action.verb, body, head, fresh)


def _urgency(found: tuple[Case, int]) -> tuple[int, int, int]:
    task = found[0].task
    assert task is not None
    return task.priority, task.created_at, task.id


def _insert(table: str, fields: dict[str, Any]) -> str:
    return f"INSERT INTO {table} ({', '.join(fields)}) VALUES ({', '.join(':' + name for name in fields)})"


def _with(decision: Decision, **fields: Any) -> Decision:
    """The decision with fields of its task that only the store knows."""
    task = decision.task._replace(**fields)
    changed = decision.set if decision.before is None else {**decision.set, **fields}
    changed.pop("version", None)
    return decision._replace(task=task, set=changed, case=decision.case._replace(task=task))


def _data(decision: Decision) -> dict[str, Any]:
    """What the event says: enough to rebuild the rows from it."""
    data: dict[str, Any] = {
        "from": decision.before.state if decision.before else None,
        "to": decision.task.state,
        **decision.data,
    }
    changed = {name: value for name, value in decision.set.items() if name not in _QUIET and name != "state"}
    if decision.before is None:
        changed = {name: value for name, value in changed.items() if value not in (None, "", "[]", 0)}
    if changed:
        data["set"] = changed
    if decision.needs_added:  # 0 is the task that this event creates
        data["needs_added"] = [list(pair) for pair in decision.needs_added]
    if decision.needs_removed:
        data["needs_removed"] = [list(pair) for pair in decision.needs_removed]
    if decision.opened:
        data["opened"] = [_said(q, Question._fields) for q in decision.opened]
    if decision.closed:
        data["closed"] = [_said(q, ("id", *_CLOSING)) for q in decision.closed]
    if decision.notes:
        data["notes"] = [{"author": note.author, "text": note.text} for note in decision.notes]
    return data


def _said(q: Question, names: Iterable[str]) -> dict[str, Any]:
    fields = ((name, getattr(q, name)) for name in names if name != "task_id")
    return {name: value for name, value in fields if value is not None}

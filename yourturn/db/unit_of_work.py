"""One transaction of the desk: cases are loaded, decisions saved. Plain SQL, for both dialects.

Nothing outside the desk gets hold of one. What changes on a task's row is kept until something is read, or until the end, so
that the moves of one task in one transaction are one write to it. All writes are sent without waiting for their results
(connection.py); the task's row is locked before any other row of the task is changed, so that two moves of it never
deadlock.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from ..core.canonical_json import dumps, link
from ..core.errors import Precondition
from ..core.model import Action, Case, Decision, Note, Program, Question, Ref, Step, Task, altered
from .backend import Store
from .case_loader import CaseLoader
from .event_log import FollowUp, Left, follow_ups

_QUIET = frozenset({"id", "claim_hash", "event_count", "event_head", "version", "updated_at", "due_at", "lease", "created_at"})
#: All that can change on a question.
_CLOSING = ("status", "response", "close_reason", "responded_by", "responded_at", "timeout_at", "reviewer", "urgency")


class UnitOfWork:
    """One transaction: load cases, save decisions."""

    __slots__ = (
        "cases", "decided", "events", "final", "last", "limited", "moved", "new_id", "q", "recalled", "remembering", "run",
        "store", "unasked", "unlocked", "virtual", "workspace",
    )  # fmt: skip

    def __init__(self, store: Store, run: Any, workspace: int, virtual: bool = False, remembering: bool = False) -> None:
        self.store = store
        self.run = run
        self.q = store.query
        self.workspace = workspace
        self.cases = CaseLoader(store, run, workspace)
        self.virtual = virtual  #: is rolled back, so it must not take numbers
        self.unasked = 0  #: questions without a number
        self.remembering = remembering  #: may be decided on remembered cases
        self.recalled = self.unlocked = 0  #: the task whose case was remembered, not read; and while its row is not locked
        self.new_id: int | None = None  #: of the task that is being created, where the database gives it out before
        self.last: tuple[int | None, int] = (None, 0)  #: an event in a later slot than ours: the next one's is not before its
        self.events: list[tuple[Any, ...]] = []  #: in a row, not written yet
        self.moved: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}  #: what a row was, what changed, and is not written yet
        self.limited: list[Decision] = []  #: what agents ask and create, see desk/rate_limits.py
        self.decided: list[Decision] = []  #: the moves that it has made, for the reply
        self.final: list[tuple[Case, int, float]] = []  #: the cases that it leaves behind, for the cache

    # --- loading ----------------------------------------------------------------------------------------------------

    def recall(self, task: int, question: int | None, asked: bool) -> tuple[Case, int] | None:
        """The remembered case; what is written on it compares. With `asked`, only if it has open questions."""
        found = self.store.case_cache.recall(task, self.workspace, question) if self.remembering else None
        if found is None or (asked and not found[0].questions):
            return None
        self.recalled = self.unlocked = task
        return found

    def case(self, task: int, question: int | None = None) -> tuple[Case, int]:
        """The case of a task, locked, and the database's time."""
        self.write()
        return self.cases.case(task, question)

    def new_case(self, project: str, parent: int | None, needs: Iterable[int]) -> tuple[Case, int]:
        self.write()
        case, database, self.new_id = self.cases.new_case(project, parent, needs)
        return case, database

    def refs(self, ids: Iterable[int], lock: bool = False) -> list[Ref]:
        self.write()
        return self.cases.refs(ids, lock)

    # --- saving -----------------------------------------------------------------------------------------------------

    def save(self, decision: Decision) -> Decision:
        """Write a decision and its event. Compares the version that the decision was made on."""
        if self.unlocked and (decision.opened or decision.closed or decision.used or decision.steps):
            self._lock(decision.task)
        if decision.opened:
            self._numbered(decision)
        task, before, changed = decision.task, decision.before, decision.set
        if decision.action.who.role == "agent" and (decision.opened or before is None):
            self.limited.append(decision)
        if not decision.silent:
            n, verb, who, at = task.event_count + 1, decision.action.verb, decision.action.who.name, decision.now
            body = dumps(_data(decision))
            head = link(task.event_head, task.key, n, at, who, verb, body)
            changed["event_count"], changed["event_head"] = n, head
        if before is None:
            changed["id"] = self._insert(changed)
        else:
            self._keep(decision, before, changed)
        prev, task = task.event_head, altered(task, changed)
        for q in decision.opened:
            fields = q._asdict() | {"workspace_id": self.workspace, "task_id": task.id}
            self.run.later(*_insert_known("questions", fields))
        for q in decision.closed:
            self._close(q)
        if decision.used is not None:
            self.run.must(_USE, {"workspace": self.workspace, "id": decision.used.id, "used_by": decision.used.used_by})
        for note in decision.notes:
            self.run.later(self.q["insert_note"], {"task": task.id, "author": note.author, "text": note.text, "at": note.at})
        if decision.steps or decision.program or decision.rewound:
            self._save_journal(decision, task.id)
        decision.task = task
        if decision.needs_added or decision.needs_removed:
            self._save_needs(decision)
        if not decision.silent:
            if self.events and not self.store.batch_inserts:
                self._write_events()
            self.events.append((task.id, n, at, who, verb, body, prev, head))
        return decision

    def _lock(self, task: Task) -> None:
        """Lock the row of the remembered task, if it still has the version that was remembered."""
        if self.unlocked == task.id:
            was = self.moved[task.id][0]["was"] if task.id in self.moved else task.version
            self.store.lock_version(self.run, task.id, was)
            self.unlocked = 0

    def left(self, task: int | None) -> Left | None:
        """How it leaves a task, if it has moved it."""
        moves = [decision for decision in self.decided if decision.task.id == task]
        if not moves:
            return None
        questions = {q.id: q for move in moves for q in move.questions}
        steps = {step.place: step for move in moves for step in move.steps}
        return Left(
            moves[-1].task, moves[-1].case.alone, [questions[number] for number in sorted(questions)],
            [note for move in moves for note in move.notes], [steps[place] for place in sorted(steps)], self._follow_ups(task),
        )  # fmt: skip

    def _follow_ups(self, task: int | None) -> tuple[FollowUp, ...]:
        """Where the system's moves led other tasks, in the order in which it came to them."""
        others = [m for m in self.decided if m.task.id != task and m.before is not None and m.action.who.role == "system"]
        return follow_ups((m.task.key, m.before.state, m.task.state, [q.name for q in m.opened]) for m in others if m.before)

    def _save_journal(self, decision: Decision, task: int) -> None:
        """Compare-and-set: a step that is completed cannot change."""
        if decision.rewound is not None:
            old, to, spare = decision.rewound
            args = {"task": task, "journal": old + 1, "old": old, "to": to}
            self.run.later(self.q["copy_steps"], args)
            if spare:
                self.run.later(self.q["lay_aside"], args)
        for step in decision.steps:
            self.run.must(_WRITE_STEP, step._asdict())
        if decision.program is not None:
            self.run.later(_INSERT_PROGRAM, {**decision.program._asdict(), "task_id": task})

    def _numbered(self, decision: Decision) -> None:
        """Give the questions that were opened their numbers."""
        count = len(decision.opened)
        if self.virtual:
            self.unasked += count
            first = -self.unasked
        else:
            first = int(self.run(self.q["take_numbers"], {"workspace": self.workspace, "count": count}).fetchone()[0])
        opened = tuple(q._replace(id=first + i, task_id=decision.task.id) for i, q in enumerate(decision.opened))
        fresh = iter(opened)
        decision.questions = tuple(next(fresh) if q.id == 0 else q for q in decision.questions)
        decision.opened = opened

    def _insert(self, fields: dict[str, Any]) -> int:
        """The new row's id: taken from the database before, or given by it now."""
        if fields["external_id"]:
            self._new_elsewhere(fields["project_id"], fields["external_id"])
        number = int(fields["key"].rpartition("-")[2])
        self.run.must(self.q["next_number"], {"id": fields["project_id"], "number": number})
        new, self.new_id = self.new_id, None
        if new is None:
            return int(self.run(*_insert_known("tasks", {**fields, "id": None})).lastrowid)
        self.run.later(*_insert_known("tasks", {**fields, "id": new}))
        return int(new)

    def _new_elsewhere(self, project: int, external: str) -> None:
        row = self.run(self.q["external"], {"project": project, "external": external}).fetchone()
        if row:
            raise Precondition(f"Cannot create {external}", reason=f"it is here already, as {row[0]}")

    def _keep(self, decision: Decision, before: Task, fields: dict[str, Any]) -> None:
        """Moves of one task in one transaction are one write to its row."""
        fields["version"] = before.version + 1
        was, earlier = self.moved.get(before.id, (None, None))
        if was is None:
            was = {"task": before.id, "was": before.version}
            if before.id == self.recalled:
                project = decision.found.project
                was |= {"home": project.id, "own": project.said[0], "shared": project.said[1]}
                was |= {"workspace": self.workspace, "fence": project.fenced_at or 0}
        self.moved[before.id] = (was, fields if earlier is None else {**earlier, **fields})

    def write(self) -> None:
        """Write what was kept, before anything is read. Compare-and-set: the rows are as they were when they were read."""
        if self.moved:
            self.unlocked = 0
        while self.moved:
            was, fields = self.moved.popitem()[1]
            names = (*fields, *was)
            text = _UPDATES.get(names)
            if text is None:
                put = ", ".join(f"{name} = :{name}" for name in fields)
                same = "id = :task AND version = :was" + _AS_REMEMBERED * ("own" in was)
                text = _UPDATES[names] = f"UPDATE tasks SET {put} WHERE {same}"
            self.run.must(text, {**fields, **was})
        if self.events:
            self._write_events()

    def committed(self) -> None:
        """It is committed: remember the cases that it leaves behind."""
        for left in self.final:
            self.store.case_cache.remember(*left)

    def _write_events(self) -> None:
        """All in one slot, which is not before that of the event before each of them, nor before what this transaction wrote.

        The event before can only be in a later one than ours if it was written while this transaction was under way. Of a
        task that was remembered, and is as it was, it was not.
        """
        first, *more = self.events
        words, (after, number) = self.store.words, self.last
        args = dict(zip(_EVENT, first, strict=True), workspace=self.workspace, after_task=after, after_n=number)
        for at, event in enumerate(more, 1):
            args.update({f"{name}{at}": value for name, value in zip(_EVENT, event, strict=True)})
        text = self.q["insert_events" if more else "insert_event"]
        known, before = {self.recalled}, ""
        for at, (task, n, *_) in enumerate(self.events):
            if task not in known and n > 1:
                before += words["before"].replace("{at}", str(at or ""))
            known.add(task)
        behind = words["after"] if after is not None else ""
        self.run.later(_events(text, before, behind, len(more)), args)
        if before or behind:
            self.last = self.events[-1][:2]
        self.events = []

    def _close(self, q: Question) -> None:
        """Compare-and-set: only a question that is still pending can change."""
        self.run.must(_CLOSE, {**q._asdict(), "workspace": self.workspace})

    def _save_needs(self, decision: Decision) -> None:
        new = decision.task.id
        if decision.needs_added:
            self.write()
        for task, other in decision.needs_added:
            self.run.later(self.q["insert_dep"], {"task": task or new, "needs": other or new})
            self.run.later(self.q["raise_version"], {"id": other if task in (0, new) else task})  # see CaseCache
        for task, other in decision.needs_removed:
            self.run.later(self.q["delete_dep"], {"task": task, "needs": other})

    # --- idempotency ------------------------------------------------------------------------------------------------

    def reply(self, action: Action) -> Any:
        args = {"workspace": self.workspace, "key": action.key, "actor": action.who.name}
        return self.run(self.q["reply"], args).fetchone()

    def renew_claim(self, task: Task, claim_hash: str) -> None:
        self.run.later(self.q["renew_claim"], {"id": task.id, "epoch": task.epoch, "hash": claim_hash})

    def remember(self, action: Action, request: str, task: int | None, question: int | None, epoch: int | None, at: int) -> None:
        self.run.later(
            self.q["insert_reply"],
            {
                "workspace": self.workspace, "key": action.key, "actor": action.who.name, "request": request, "task": task,
                "question": question, "epoch": epoch, "at": at,
            },
        )  # fmt: skip

    # --- what concerns no task --------------------------------------------------------------------------------------

    def office_event(self, action: Action, data: dict[str, Any], at: int) -> None:
        self.write()
        name, n, head, _ = self.run(self.q["office_head"], {"workspace": self.workspace}).fetchone()
        body = dumps(data)
        fresh = link(head, name, n + 1, at, action.who.name, action.verb, body)
        self.run.later(self.q["move_office_head"], {"workspace": self.workspace, "n": n + 1, "hash": fresh})
        self.run.later(
            self.q["insert_office_event"],
            {
                "workspace": self.workspace, "n": n + 1, "at": at, "actor": action.who.name, "action": action.verb,
                "data": body, "prev": head, "hash": fresh,
            },
        )  # fmt: skip


@lru_cache(64)
def _events(text: str, before: str, after: str, more: int) -> str:
    """The INSERT of so many events; and which others they may not come before."""
    rows = "".join(f", ({', '.join(f':{name}{at}' for name in _EVENT)})" for at in range(1, more + 1))
    return text.replace("{before}", before).replace("{after}", after).replace("{more}", rows)


def _insert_known(table: str, fields: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """An INSERT, and its values; what is not known is not said, and NULL."""
    known = {name: value for name, value in fields.items() if value is not None}
    return _insert(table, tuple(known)), known


@lru_cache(256)
def _insert(table: str, names: tuple[str, ...]) -> str:
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(':' + name for name in names)})"


_INSERT_PROGRAM = _insert("programs", Program._fields)
_WRITE_STEP = (
    f"{_insert('steps', Step._fields)} ON CONFLICT (task_id, journal, place) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in ("agent", "status", "session_id", "seat", "result", "ended_at"))
    + " WHERE steps.status <> 'completed' AND steps.digest = excluded.digest"
)
_CLOSE = (
    f"UPDATE questions SET {', '.join(f'{name} = :{name}' for name in _CLOSING)} "
    "WHERE workspace_id = :workspace AND id = :id AND status = 'pending'"
)
#: Once: only a permission that was given and not used.
_USE = (
    "UPDATE questions SET used_by = :used_by "
    "WHERE workspace_id = :workspace AND id = :id AND status = 'answered' AND used_by IS NULL"
)
_EVENT = ("task", "n", "at", "actor", "action", "data", "prev", "hash")
_UPDATES: dict[tuple[str, ...], str] = {}
_AS_REMEMBERED = (
    " AND (SELECT p.settings = :own FROM projects p WHERE p.id = :home)"
    " AND (SELECT w.settings = :shared AND coalesce(w.fenced_at, 0) = :fence FROM workspaces w WHERE w.id = :workspace)"
)


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
    if decision.steps:
        data["steps"] = [_said(step, Step._fields) for step in decision.steps]
    if decision.notes:
        data["notes"] = [_noted(note, decision.now) for note in decision.notes]
    return data


def _noted(note: Note, now: int) -> dict[str, Any]:
    """A note that was written elsewhere, before, says when."""
    return {"author": note.author, "text": note.text, **({"at": note.at} if note.at != now else {})}


def _said(q: Question | Step, names: Iterable[str]) -> dict[str, Any]:
    fields = ((name, getattr(q, name)) for name in names if name != "task_id")
    return {name: value for name, value in fields if value is not None}

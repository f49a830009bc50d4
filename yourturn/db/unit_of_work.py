"""Unit of work: one transaction that loads cases and saves decisions. Plain SQL, for both dialects.

Changes of a task's row are collected until something is read, or until the end, so that several moves of one task in one
transaction are one write to its row. All writes are sent without waiting for their results (connection.py). The task's row is
locked before any other row of the task is changed, so that two moves of it never deadlock.
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
from .event_log import FollowUp, MovedTask, follow_ups

#: Columns that an event does not repeat.
_QUIET = frozenset({"id", "claim_hash", "event_count", "event_head", "version", "updated_at", "due_at", "lease", "created_at"})
#: The columns of a question that can change.
_CLOSING = ("status", "response", "close_reason", "responded_by", "responded_at", "timeout_at", "reviewer", "urgency")


class UnitOfWork:
    """One transaction: load cases, save decisions."""

    __slots__ = (
        "cases", "decided", "events", "final", "last_event", "limited", "new_id", "q", "recalled", "remembering", "run", "store",
        "unlocked", "unnumbered", "unwritten", "virtual", "workspace",
    )  # fmt: skip

    def __init__(self, store: Store, run: Any, workspace: int, virtual: bool = False, remembering: bool = False) -> None:
        self.store = store
        self.run = run
        self.q = store.query
        self.workspace = workspace
        self.cases = CaseLoader(store, run, workspace)
        self.virtual = virtual  #: will be rolled back, so it must not take numbers of questions
        self.unnumbered = 0  #: questions without a number
        self.remembering = remembering  #: may use remembered cases
        self.recalled = 0  #: the task whose case was remembered, not read
        self.unlocked = 0  #: the same, while its row is not locked
        self.new_id: int | None = None  #: id of the task that is being created, where the database assigns it before the INSERT
        self.last_event: tuple[int | None, int] = (None, 0)  #: task and n of an event in a later slot: the next event follows it
        self.events: list[tuple[Any, ...]] = []  #: events that are not written yet
        self.unwritten: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}  #: task -> (what the row must be, changes)
        self.limited: list[Decision] = []  #: questions and new tasks of agents, see desk/allowances.py
        self.decided: list[Decision] = []  #: all moves, for the reply
        self.final: list[tuple[Case, int, float]] = []  #: the cases after the transaction, for the cache

    # --- loading ----------------------------------------------------------------------------------------------------

    def recall(self, task: int, question: int | None, asked: bool) -> tuple[Case, int] | None:
        """The remembered case; writing it compares the version. With `asked`, only if it has open questions."""
        remembered = self.store.case_cache.recall(task, self.workspace, question) if self.remembering else None
        if remembered is None or (asked and not remembered[0].questions):
            return None
        self.recalled = self.unlocked = task
        return remembered

    def case(self, task: int, question: int | None = None) -> tuple[Case, int]:
        """The case of a task, with its row locked, and the database's time."""
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
        """Write a decision and its event. The write compares the version that the decision was made on."""
        if self.unlocked and (decision.opened or decision.closed or decision.used or decision.steps):
            self._lock(decision.task)
        if decision.opened:
            self._number_questions(decision)
        task, before, changed = decision.task, decision.before, decision.set
        if decision.action.who.role == "agent" and (decision.opened or before is None):
            self.limited.append(decision)
        if not decision.silent:
            n, verb, who, at = task.event_count + 1, decision.action.verb, decision.action.who.name, decision.now
            body = dumps(_data(decision))
            head = link(task.event_head, task.key, n, at, who, verb, body)
            changed["event_count"], changed["event_head"] = n, head
        if before is None:
            changed["id"] = self._insert_task(changed)
        else:
            self._update_task(decision, before, changed)
        prev, task = task.event_head, altered(task, changed)
        for q in decision.opened:
            fields = q._asdict() | {"workspace_id": self.workspace, "task_id": task.id}
            self.run.later(*_insert_set("questions", fields))
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
            version = self.unwritten[task.id][0]["was"] if task.id in self.unwritten else task.version
            self.store.lock_version(self.run, task.id, version)
            self.unlocked = 0

    def moved_task(self, task: int | None) -> MovedTask | None:
        """The task after the moves of this transaction; None if there were none."""
        moves = [decision for decision in self.decided if decision.task.id == task]
        if not moves:
            return None
        questions = {q.id: q for move in moves for q in move.questions}
        steps = {step.place: step for move in moves for step in move.steps}
        return MovedTask(
            moves[-1].task, moves[-1].case.alone, [questions[number] for number in sorted(questions)],
            [note for move in moves for note in move.notes], [steps[place] for place in sorted(steps)], self._follow_ups(task),
        )  # fmt: skip

    def _follow_ups(self, task: int | None) -> tuple[FollowUp, ...]:
        """The system's moves of other tasks, in order."""
        others = [m for m in self.decided if m.task.id != task and m.before is not None and m.action.who.role == "system"]
        return follow_ups((m.task.key, m.before.state, m.task.state, [q.name for q in m.opened]) for m in others if m.before)

    def _save_journal(self, decision: Decision, task: int) -> None:
        """Compare-and-set: a completed step cannot change."""
        if decision.rewound is not None:
            old, to, spare = decision.rewound
            args = {"task": task, "journal": old + 1, "old": old, "to": to}
            self.run.later(self.q["copy_steps"], args)
            if spare:
                self.run.later(self.q["supersede_steps"], args)
        for step in decision.steps:
            self.run.must(_WRITE_STEP, step._asdict())
        if decision.program is not None:
            self.run.later(_INSERT_PROGRAM, {**decision.program._asdict(), "task_id": task})

    def _number_questions(self, decision: Decision) -> None:
        """Assign numbers to the opened questions."""
        count = len(decision.opened)
        if self.virtual:
            self.unnumbered += count
            first = -self.unnumbered
        else:
            first = int(self.run(self.q["take_numbers"], {"workspace": self.workspace, "count": count}).fetchone()[0])
        opened = tuple(q._replace(id=first + i, task_id=decision.task.id) for i, q in enumerate(decision.opened))
        numbered = iter(opened)
        decision.questions = tuple(next(numbered) if q.id == 0 else q for q in decision.questions)
        decision.opened = opened

    def _insert_task(self, fields: dict[str, Any]) -> int:
        """Returns the new row's id: assigned with the case, or by the INSERT."""
        if fields["external_id"]:
            self._check_external_id(fields["project_id"], fields["external_id"])
        number = int(fields["key"].rpartition("-")[2])
        self.run.must(self.q["next_number"], {"id": fields["project_id"], "number": number})
        task, self.new_id = self.new_id, None
        if task is None:
            return int(self.run(*_insert_set("tasks", {**fields, "id": None})).lastrowid)
        self.run.later(*_insert_set("tasks", {**fields, "id": task}))
        return int(task)

    def _check_external_id(self, project: int, external: str) -> None:
        row = self.run(self.q["external"], {"project": project, "external": external}).fetchone()
        if row:
            raise Precondition(f"Cannot create {external}", reason=f"it is here already, as {row[0]}")

    def _update_task(self, decision: Decision, before: Task, fields: dict[str, Any]) -> None:
        """Collect the changes of a row; `write` sends them as one UPDATE."""
        fields["version"] = before.version + 1
        expected, earlier = self.unwritten.get(before.id, (None, None))
        if expected is None:
            expected = {"task": before.id, "was": before.version}
            if before.id == self.recalled:
                project = decision.loaded.project
                expected |= {"home": project.id, "own": project.stored_settings[0], "shared": project.stored_settings[1]}
                expected |= {"workspace": self.workspace, "fence": project.fenced_at or 0}
        self.unwritten[before.id] = (expected, fields if earlier is None else {**earlier, **fields})

    def write(self) -> None:
        """Send the collected changes. Compare-and-set: a row that is not as it was read fails the transaction."""
        if self.unwritten:
            self.unlocked = 0
        while self.unwritten:
            expected, fields = self.unwritten.popitem()[1]
            self.run.must(_update(tuple(fields), "own" in expected), {**fields, **expected})
        if self.events:
            self._write_events()

    def committed(self) -> None:
        """Remember the cases after the commit."""
        for final in self.final:
            self.store.case_cache.remember(*final)

    def _write_events(self) -> None:
        """Write the collected events in one slot of the log (event_log.py).

        The slot is not before that of the previous event of each task, nor before that of this transaction's own earlier events.
        A previous event is in a later slot only if it was written while this transaction ran, which is impossible for a
        remembered task whose version has not changed.
        """
        first, *more = self.events
        words, (after, number) = self.store.words, self.last_event
        args = dict(zip(_EVENT, first, strict=True), workspace=self.workspace, after_task=after, after_n=number)
        for at, event in enumerate(more, 1):
            args.update({f"{name}{at}": value for name, value in zip(_EVENT, event, strict=True)})
        text = self.q["insert_events" if more else "insert_event"]
        checked, before = {self.recalled}, ""
        for at, (task, n, *_) in enumerate(self.events):
            if task not in checked and n > 1:
                before += words["before"].replace("{at}", str(at or ""))
            checked.add(task)
        own = words["after"] if after is not None else ""
        self.run.later(_insert_events(text, before, own, len(more)), args)
        if before or own:
            self.last_event = self.events[-1][:2]
        self.events = []

    def _close(self, q: Question) -> None:
        """Compare-and-set: only a pending question can change."""
        self.run.must(_CLOSE, {**q._asdict(), "workspace": self.workspace})

    def _save_needs(self, decision: Decision) -> None:
        own = decision.task.id
        if decision.needs_added:
            self.write()
        for task, other in decision.needs_added:
            self.run.later(self.q["insert_dep"], {"task": task or own, "needs": other or own})
            self.run.later(self.q["raise_version"], {"id": other if task in (0, own) else task})  # see CaseCache
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

    # --- events without a task --------------------------------------------------------------------------------------

    def admin_event(self, action: Action, data: dict[str, Any], at: int) -> None:
        self.write()
        name, n, head, _ = self.run(self.q["workspace_head_for_update"], {"workspace": self.workspace}).fetchone()
        body = dumps(data)
        link_hash = link(head, name, n + 1, at, action.who.name, action.verb, body)
        self.run.later(self.q["set_workspace_head"], {"workspace": self.workspace, "n": n + 1, "hash": link_hash})
        self.run.later(
            self.q["insert_admin_event"],
            {
                "workspace": self.workspace, "n": n + 1, "at": at, "actor": action.who.name, "action": action.verb,
                "data": body, "prev": head, "hash": link_hash,
            },
        )  # fmt: skip


@lru_cache(64)
def _insert_events(text: str, before: str, after: str, more: int) -> str:
    """The INSERT of several events. `before` and `after`: the events that their slot must not precede."""
    rows = "".join(f", ({', '.join(f':{name}{at}' for name in _EVENT)})" for at in range(1, more + 1))
    return text.replace("{before}", before).replace("{after}", after).replace("{more}", rows)


def _insert_set(table: str, fields: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """An INSERT of the fields that are not NULL, and its values."""
    values = {name: value for name, value in fields.items() if value is not None}
    return _insert(table, tuple(values)), values


@lru_cache(256)
def _insert(table: str, names: tuple[str, ...]) -> str:
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(':' + name for name in names)})"


@lru_cache(256)
def _update(names: tuple[str, ...], remembered: bool) -> str:
    put = ", ".join(f"{name} = :{name}" for name in names)
    return f"UPDATE tasks SET {put} WHERE id = :task AND version = :was" + _AS_REMEMBERED * remembered


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
#: Only an answered permission that is not used yet.
_USE = (
    "UPDATE questions SET used_by = :used_by "
    "WHERE workspace_id = :workspace AND id = :id AND status = 'answered' AND used_by IS NULL"
)
_EVENT = ("task", "n", "at", "actor", "action", "data", "prev", "hash")
#: For a remembered case: settings and fence are compared, too.
_AS_REMEMBERED = (
    " AND (SELECT p.settings = :own FROM projects p WHERE p.id = :home)"
    " AND (SELECT w.settings = :shared AND coalesce(w.fenced_at, 0) = :fence FROM workspaces w WHERE w.id = :workspace)"
)


def _data(decision: Decision) -> dict[str, Any]:
    """The data of the event: enough to rebuild the rows."""
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
        data["opened"] = [_as_data(q, Question._fields) for q in decision.opened]
    if decision.closed:
        data["closed"] = [_as_data(q, ("id", *_CLOSING)) for q in decision.closed]
    if decision.steps:
        data["steps"] = [_as_data(step, Step._fields) for step in decision.steps]
    if decision.notes:
        data["notes"] = [_note_data(note, decision.now) for note in decision.notes]
    return data


def _note_data(note: Note, now: int) -> dict[str, Any]:
    """An imported note has its own time."""
    return {"author": note.author, "text": note.text, **({"at": note.at} if note.at != now else {})}


def _as_data(q: Question | Step, names: Iterable[str]) -> dict[str, Any]:
    fields = ((name, getattr(q, name)) for name in names if name != "task_id")
    return {name: value for name, value in fields if value is not None}

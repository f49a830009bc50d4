"""A real desk and its model: both execute every action, and their rows are compared after each.

`Watched` is a Desk, so every call of a Client goes through it: the machines' steps and the recipes of
tests/core/transition_recipes.py alike. An error must be the one that the model expects and leave every row as it was; a move
must leave exactly the rows that the model has. `Cells` counts the transitions that were reached.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

from yourturn import strict
from yourturn.client import Client, serialize
from yourturn.core import settings
from yourturn.core.actions import say
from yourturn.core.canonical_json import claim_hash
from yourturn.core.errors import YourturnError
from yourturn.core.model import Action, Who
from yourturn.core.rules import ADMIN_VERBS
from yourturn.db.backend import Store
from yourturn.db.reads import Reader
from yourturn.desk.desk import Desk
from yourturn.desk.move import Done
from yourturn.health import audit, doctor
from yourturn.testing import FakeClock

from .coverage import Cells
from .model import Model, may_ever
from .rows import Asked, Job, No
from .verbs import UNBORN

START = 1_790_000_000_000_000
ADMIN = Who("human:ana", "admin", direct=True)
_names = itertools.count(1)

_COLUMNS = (
    "id", "state", "return_state", "outcome", "retry_count", "max_retries", "epoch", "holder", "claimed_by", "claim_hash",
    "lease_expires_at", "wake_at", "due_at", "failure", "ended_at", "updated_at", "event_count", "parent_id",
    "journal", "notes", "events", "sources", "version",
)  # fmt: skip
_JOB = f"""
SELECT {", ".join(f"t.{name}" for name in _COLUMNS[:-4])},
       (SELECT count(*) FROM notes n WHERE n.task_id = t.id), (SELECT count(*) FROM events e WHERE e.task_id = t.id),
       (SELECT count(*) FROM programs m WHERE m.task_id = t.id), t.version
FROM tasks t JOIN projects p ON p.id = t.project_id WHERE p.workspace_id = :workspace ORDER BY t.id
"""
_ASKED = """
SELECT q.task_id, q.id, q.kind, q.blocking, q.status, q.asked_by, q.reason, q.timeout_at, q.reviewer, q.responded_by,
       q.responded_at, q.response, q.used_by, q.step, q.on_timeout, q.timeout
FROM questions q WHERE q.workspace_id = :workspace ORDER BY q.id
"""
_NEEDS = """
SELECT d.task_id, d.needs_id FROM deps d JOIN tasks t ON t.id = d.task_id JOIN projects p ON p.id = t.project_id
WHERE p.workspace_id = :workspace ORDER BY 1, 2
"""
_STEPS = """
SELECT s.task_id, s.journal, s.place, s.name, s.call, s.status, s.started_at, s.result, s.ended_at
FROM steps s JOIN tasks t ON t.id = s.task_id JOIN projects p ON p.id = t.project_id
WHERE p.workspace_id = :workspace ORDER BY 1, 2, 3
"""


class Differs(AssertionError):
    """The desk and its model disagree."""


class Watched(Desk):
    """A desk of its own workspace, compared with its model after everything that is said to it."""

    trace: list[str]
    cells: Cells
    tokens: list[tuple[int, str, str]]  #: every claim that was ever given: task, token, worker
    box: dict[str, Any]

    def __init__(self, store: Store, clock: FakeClock, cells: Cells) -> None:
        name = f"w{next(_names)}"
        with store.begin() as run:
            run(store.query["insert_workspace"], {"name": name, "at": clock()})
        super().__init__(store, ADMIN, workspace=name, clock=clock)
        # What changes lies in one box, because as_() copies this object.
        self.box = {"model": Model(settings.defaults()), "rows": ([], [], [], []), "inside": False, "failed": False}
        self.trace, self.tokens, self.cells = [], [], cells
        super().do(say("project_create", ADMIN, project="PROJ"))

    @property
    def model(self) -> Model:
        found: Model = self.box["model"]
        return found

    def as_(self, who: Who) -> Watched:
        other = object.__new__(Watched)
        other.__dict__.update(self.__dict__, who=who)
        return other

    # --- what is said -----------------------------------------------------------------------------------------------

    def do(self, action: Action, reply: Callable[..., Any] | None = None, then: Action | None = None) -> Any:
        assert then is None, "the machines make single moves"
        now = self.now()
        if action.verb in ADMIN_VERBS:
            return self._manage(action)
        words = f"{action.who.name} {action.verb} {action.task or ''} {action.question or ''} {_short(action.args)}".strip()
        state = self._truly(action.task, now)
        both = lambda r, done: (self._told(r, done), reply(r, done) if reply else done)  # noqa: E731
        found = self._beside(words, lambda model: _expect(model, action, now), lambda: Desk.do(self, action, both))
        if isinstance(found, YourturnError):
            self.cells.refused(state, action, found.code)
            raise found
        done, seen = found
        self._heard(done)
        return seen

    def _manage(self, action: Action) -> Any:
        done = Desk.do(self, action)
        if action.verb == "project_set":
            self.model.settings[action.args["setting"]] = settings.check(action.args["setting"], action.args["value"])
        if action.verb == "restore":
            self.trace.append("the desk is restored")
            with self.store.reading() as run:
                at = run("SELECT fenced_at FROM workspaces WHERE id = :id", {"id": self.workspace}).fetchone()[0]
            late = [job.id for job in self.model.jobs.values() if job.updated >= at] if at >= self.now() else ["the clock"]
            self._same("what is not before the fence", late, [])
            trial = self.model.copy()
            trial.restore(at)
            self._adopt(trial)
            self.cells.all_moved(trial.moves)
        return done

    def claim_next(self, worker: str, **args: Any) -> Any:
        now, reply = self.now(), args.pop("reply", None)
        both = lambda r, done: (self._told(r, done), reply(r, done) if reply else done)  # noqa: E731
        chosen: list[Job | None] = []

        def expect(model: Model) -> None:
            may_ever("claim", self.who)
            if model.overdue(now):
                model.reconcile(now)
            job = model.next(args.get("role"), args.get("runs", False))
            chosen.append(job)
            if job is not None:
                model.do(say("claim", self.who, task=job.id, worker=worker, secret="s", lease=args.get("lease")), now)

        found = self._beside(
            f"{self.who.name} claims the next as {worker}", expect, lambda: Desk.claim_next(self, worker, reply=both, **args)
        )
        if isinstance(found, YourturnError):
            raise found
        if found is None:
            return self._same("the next task", None, chosen[0] and chosen[0].id)
        self._same("the next task", found[0].task, chosen[0] and chosen[0].id)
        self._heard(found[0])
        return found[1]

    def reconcile(self, batch: int = 200) -> dict[str, int]:
        if self.box["inside"]:
            return Desk.reconcile(self, batch)
        now = self.now()
        moved: list[int] = []
        found = self._beside("reconcile", lambda model: moved.append(model.reconcile(now)), lambda: Desk.reconcile(self, batch))
        self._same("what reconcile moved", found, {"moved": moved[0], "failed": 0})
        return dict(found)

    # --- side by side -----------------------------------------------------------------------------------------------

    def _beside(self, words: str, expect: Callable[[Model], Any], move: Callable[[], Any]) -> Any:
        """What the desk returned or refused with, after it was compared."""
        at = (self.now() - START) / 1_000_000
        self.trace.append(f"{at:>12.6f}s  {words}")
        trial, wanted = self.model.copy(), ""
        try:
            expect(trial)
        except No as no:
            wanted = str(no)
        self.box["inside"] = True
        try:
            found = move()
        except YourturnError as error:
            self.trace[-1] += f"  → {error.code}"
            self._same("the refusal", error.code, wanted or "none: the move is right", why=str(error))
            self._same("the rows after a refusal", self._rows(), self.box["rows"])
            return error
        finally:
            self.box["inside"] = False
        self._same("the refusal", "none: the move was made", wanted or "none: the move was made")
        self._adopt(trial)
        self.cells.all_moved(trial.moves)
        return found

    def _adopt(self, trial: Model) -> None:
        """The new rows get the desk's numbers, then everything has to be equal."""
        rows = self._rows()
        jobs, asked, needs, steps = rows
        new = [row[0] for row in jobs if row[0] not in self.model.jobs]
        unborn = sorted(task for task in trial.jobs if task >= UNBORN)
        self._same("how many tasks were made", len(new), len(unborn))
        names = dict(zip(unborn, new, strict=True))
        trial.jobs = {names.get(task, task): job for task, job in trial.jobs.items()}
        for task, job in trial.jobs.items():
            job.id, job.parent = task, names.get(job.parent or 0, job.parent)
            job.needs = {names.get(other, other) for other in job.needs}
            for q in job.asked:
                q.about = names.get(q.about or 0, q.about)
        per_task: dict[int, list[Any]] = {task: [] for task in trial.jobs}
        for row in asked:
            per_task[row[0]].append(row)
        for row in jobs:
            self._same_job(trial.jobs[row[0]], row)
            self._same_questions(trial.jobs[row[0]], per_task[row[0]])
        wanted = sorted((job.id, other) for job in trial.jobs.values() for other in job.needs)
        self._same("who waits for whom", [tuple(row) for row in needs], wanted)
        self._same("the journals", sorted(steps), sorted(row for job in trial.jobs.values() for row in _written(job)))
        self.box.update(model=trial, rows=rows)

    def _same_job(self, job: Job, row: Any) -> None:
        wanted = (
            job.id, job.state, job.back, job.outcome, job.tries, job.limit, job.epoch, job.holder, job.claimer,
            row[9] if job.token is None and job.holder else job.token and claim_hash(job.token, job.workflow),
            job.ends, job.wake, job.due(), job.failure, job.ended, job.updated, job.events, job.parent,
            job.journal, job.notes, job.events, job.sources, row[22],
        )  # fmt: skip
        differ = [i for i, name in enumerate(_COLUMNS) if row[i] != wanted[i]]
        self._same(f"task {job.id}", *({_COLUMNS[i]: side[i] for i in differ} for side in (row, wanted)))
        before = next((old for old in self.box["rows"][0] if old[0] == job.id), None)
        if before is not None and (row[22] > before[22]) != (tuple(row) != tuple(before)):
            self._same(f"the version of task {job.id}", row[22], f"more than {before[22]} if and only if the row changed")

    def _same_questions(self, job: Job, rows: list[Any]) -> None:
        self._same(f"how many questions task {job.id} has", len(rows), len(job.asked))
        for q, row in zip(job.asked, rows, strict=True):
            q.id = q.id or row[1]
            said = json.loads(row[11]) if row[11] is not None else {}
            self._same(f"Q{q.id}", (*row[1:11], said.get("verdict"), *row[12:]), _as_row(q))

    def _rows(self) -> Any:
        with self.store.reading() as run:
            args = {"workspace": self.workspace}
            return tuple([tuple(row) for row in run(text, args).fetchall()] for text in (_JOB, _ASKED, _NEEDS, _STEPS))

    def _same(self, what: str, found: Any, wanted: Any, why: str = "") -> None:
        if found != wanted:
            self.box["failed"] = True
            last = "\n    ".join(self.trace[-30:])
            raise Differs(f"{what}: promised {wanted}, found {found} {why}\n    {last}")

    def _told(self, r: Reader, done: Done) -> Done:
        """What a move says of itself without looking is what a look finds."""
        sight = Reader(r.store, r.run, r.workspace)
        assert done.task is not None
        task, row = r.task(done.task), sight.task(done.task)
        told, seen = r.details([task])[done.task], sight.details([row])[done.task]
        self._same("the task that the move tells of", (task, serialize.task(task, told)), (row, serialize.task(row, seen)))
        if done.question is not None:
            self._same(
                "its question", serialize.question(*r.question(done.question)), serialize.question(*sight.question(done.question))
            )
        return done

    def _heard(self, done: Done) -> None:
        """What the desk replied: the token of a claim is known from here alone."""
        if done.claim is None:
            return
        assert done.task is not None
        job = self.model.jobs[done.task]
        self._same("the claim", (done.claim.epoch, done.claim.worker, done.claim.expires_at), (job.epoch, job.holder, job.ends))
        job.token = done.claim.token
        self.tokens.append((job.id, done.claim.token, done.claim.worker))

    def _truly(self, task: int | None, now: int) -> str | None:
        """The state from which a move is judged: after what is owed to the task."""
        if task is None or task not in self.model.jobs:
            return None
        trial = self.model.copy()
        trial._pay(trial.jobs[task], now)
        return trial.jobs[task].state

    # --- looks ------------------------------------------------------------------------------------------------------

    def check_reads(self) -> None:
        """A read shows the desk as if everything owed were paid, and writes nothing."""
        trial, now = self.model.copy(), self.now()
        for task in trial.overdue(now):
            trial.pay_one(task, now)
        seen = self.read(lambda r: [(t.id, t.state, t.retry_count) for t in r.tasks()])
        self._same("what a read shows", sorted(seen), sorted((j.id, j.state, j.tries) for j in trial.jobs.values()))
        self._same("the rows after a read", self._rows(), self.box["rows"])

    def check_invariants(self) -> None:
        client = Client(self, "PROJ")
        Desk.reconcile(self)
        wrong = [f"{line['check']}: {line['words']}" for line in doctor.examine(client) if line["status"] != "ok"]
        self._same("the doctor's findings", wrong, [])
        self._same("the history", audit.verify(client)["problems"], [])
        self._same("the strict checker's findings", strict.examine(client), [])


def _expect(model: Model, action: Action, now: int) -> None:
    """Said for the first time it is a move; said again with its idempotency key it is an echo."""
    if action.key is None:
        model.do(action, now)
        return
    name = (action.who.name, action.key)
    request = (action.verb, action.task, action.question, _short({**action.args, "needs": None, "claim": None}))
    if name not in model.replies:
        may_ever(action.verb, action.who)
        job = model.do(action, now)
        model.replies[name] = (request, job.id, job.epoch if action.verb == "claim" else 0)
        return
    may_ever(action.verb, action.who)
    before, task, epoch = model.replies[name]
    if before != request:
        raise No("idempotency_conflict")
    if epoch:
        job = model.jobs[task]
        if job.epoch != epoch or job.ends is None or job.ends <= now:
            raise No("claim_lost")
        job.token = None  # the reply brings a new one


def _as_row(q: Asked) -> tuple[Any, ...]:
    asker = q.asker and f"{q.asker[0]}/{_place(q.asker[1])}"
    return (
        q.id, q.kind, int(q.blocking), q.status, q.by, q.reason, q.ends, q.reviewer, q.closer, q.closed_at, q.verdict, q.used,
        asker, q.how, q.step,
    )  # fmt: skip


def _written(job: Job) -> list[tuple[Any, ...]]:
    """Every journal of a run, row by row."""
    return [
        (job.id, journal, _place(at), call.name, call.call, call.status, call.began, call.result, call.ended)
        for journal, steps in job.journals.items()
        for at, call in steps.items()
    ]


def _place(path: str) -> str:
    aside, path = path[: path.count("~")], path.lstrip("~")
    return aside + ".".join(part.zfill(6) for part in path.split("."))


def _short(args: dict[str, Any]) -> str:
    shown = {name: value for name, value in args.items() if name not in ("text", "secret", "circle") and value is not None}
    return ", ".join(f"{name}={str(value)[:40]}" for name, value in shown.items())

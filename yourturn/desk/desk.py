"""The desk: the one write path.

Every change goes through `Desk.do(action)`, in one transaction or not at all:

    begin ─ load the case ─ due moves ─ decide ─ save rows and event ─ follow up ─ commit          (move.py)

*Due moves.* A lease expires, a question times out, a date comes: `core.decide.due(case, now)` returns the move that the system
then has to make. The desk makes the due moves of a case before it decides anything about it, so a late writer is refused
even if no reconciler runs. `reconcile` makes the due moves of all tasks. `read` shows the state after all due moves: if there
are any, it makes them in a transaction that it then rolls back. So nothing depends on a daemon.

*Lost races.* A transaction that loses a race raises `Conflict` and leaves nothing behind; the desk runs it again on fresh rows. A
move of a task that this process has just moved is decided on the remembered case, and loses the race if that is old.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ..core.actions import say
from ..core.canonical_json import digest
from ..core.decide import may_ever
from ..core.errors import Busy, NotFound, StoreTrouble
from ..core.model import Action, Event, Who
from ..core.permissions import check, check_scope, in_scope
from ..core.references import parse
from ..core.rules import ADMIN_VERBS
from ..db.backend import Conflict, Store
from ..db.case_loader import CaseLoader
from ..db.details import RunJournal
from ..db.reads import Reader
from ..db.unit_of_work import UnitOfWork
from . import idempotency
from .admin import manage
from .allowances import spend
from .lookups import Clock, Credentials, EventFeed
from .move import Done, Moves

T = TypeVar("T")
#: Builds a reply from the result of a move, in the move's transaction.
Reply = Callable[[Reader, Done], Any]

_ATTEMPTS = 12


class _Rollback(Exception):
    """Ends a transaction without a trace."""


class _DueFirst(Exception):
    """The next task can only be picked when the due moves are made."""


class Desk:
    """One workspace in one database, used by one actor."""

    def __init__(self, store: Store, who: Who, *, workspace: str = "default", clock: Clock | None = None) -> None:
        self.store = store
        self.who = who
        self.clock = clock
        self.workspace_name = workspace
        with store.reading() as run:
            row = run(store.query["workspace"], {"name": workspace}).fetchone()
        if row is None:
            raise NotFound(f"There is no workspace {workspace}", hint="Make one with: turn init")
        self.workspace: int = row[0]
        self._claim_secret = ""
        self.credentials = Credentials(store, self.workspace, self.now)
        self.feed = EventFeed(store, self.workspace)

    def as_(self, who: Who, claim_secret: str = "") -> Desk:
        """The same desk for another actor. With `claim_secret` all its claims have that secret instead of random ones."""
        other = object.__new__(Desk)
        other.__dict__.update(self.__dict__, who=who, _claim_secret=claim_secret or self._claim_secret)
        return other

    def new_secret(self) -> str:
        """The secret of a new claim."""
        return self._claim_secret or os.urandom(16).hex()

    def now(self, database: int = 0) -> int:
        """The injected clock's time, else the database's, else this machine's."""
        if self.clock is not None:
            return self.clock()
        return database or time.time_ns() // 1000

    def _local_time(self) -> int | None:
        """The time of a query; None where the database's own clock counts."""
        if self.clock is not None:
            return self.clock()
        return time.time_ns() // 1000 if self.store.dialect == "sqlite" else None

    # --- writes -----------------------------------------------------------------------------------------------------

    def do(self, action: Action, reply: Reply | None = None, then: Action | None = None) -> Any:
        """Make a move. Returns its result, or what `reply` makes of it.

        `then` is a second action about the same task, in the same commit: both are made, or neither.
        """
        if action.verb in ADMIN_VERBS:
            check(action.who, action.verb)
            return self.transact(action.verb, lambda tx: self._administer(tx, action))
        for each in (action,) if then is None else (action, then):
            self._check_scope(each)

        def move(tx: UnitOfWork) -> Any:
            moves = Moves(tx, self.now)
            done = moves.make(action)
            if then is not None:
                done = moves.make(then._replace(task=done.task))
            return self._reply(tx, done, reply)

        return self.transact(action.verb, move)

    def _check_scope(self, action: Action) -> None:
        may_ever(action.verb, action.who)
        if action.who.scopes is not None:
            check_scope(action.who, action.verb)

    def _reply(self, tx: UnitOfWork, done: Done, reply: Reply | None) -> Any:
        if reply is None:
            return done
        tx.write()
        return reply(Reader(self.store, tx.run, self.workspace, tx.moved_task(done.task)), done)

    def _administer(self, tx: UnitOfWork, action: Action) -> Done:
        now, request = self.now(tx.run(tx.q["now"]).fetchone()[0]), ""
        if action.key is not None:
            request = idempotency.digest(action)
            if Moves(tx, self.now).earlier(action, request) is not None:
                return Done()
        manage(tx, action, now)
        Moves(tx, self.now).keep(action, request, Done(at=now))
        return Done()

    def claim_next(
        self,
        worker: str,
        *,
        project: str | None = None,
        epic: int | None = None,
        role: str | None = None,
        host: str | None = None,
        lease: Any = None,
        runs: bool = False,
        first: Action | None = None,
        key: str | None = None,
        reply: Reply | None = None,
    ) -> Any:
        """Claim the next ready task; None if there is none. Two workers never get the same one.

        `first` is a move that is made before, in the same commit: it completes one task, for example. If it is refused,
        nothing is claimed.
        """
        action = say("claim", self.who, key=key, worker=worker, lease=lease, secret=self.new_secret())
        request = "" if key is None else digest([idempotency.digest(action), project, epic, role, host, runs])
        self._check_scope(action)
        if self.who.scopes is not None:
            runs = runs and in_scope(self.who, "step")  # a token that cannot work on runs is not offered any
        failed = 0  #: tasks whose due moves fail: they must not block the others

        def move(tx: UnitOfWork) -> Any:
            moves = Moves(tx, self.now)
            done = moves.earlier(action, request)
            if done is None:
                if first is not None:
                    moves.make(first)
                    tx.write()
                home = tx.final[-1][0].project if tx.final else None
                due, picked = tx.cases.pick(self._local_time(), project, epic, role, host, runs, home=home)
                if due and not failed:
                    raise _DueFirst
                if picked is None:
                    return None
                case, database = picked
                assert case.task is not None
                done = moves.make_on(case, database, action._replace(task=case.task.id))
                moves.keep(action, request, done._replace(question=None))
            return self._reply(tx, done, reply)

        for _ in range(_ATTEMPTS):
            try:
                return self.transact("claim_next", move)
            except _DueFirst:
                if first is not None:  # does not wait for the due moves of other tasks
                    self.do(first)
                    first = None
                failed = self.reconcile()["failed"]
        raise Busy("The desk cannot keep up with what is due", hint="Nothing was changed. Try again.")

    def transact(self, what: str, move: Callable[[UnitOfWork], T]) -> T:
        """Run `move` in one transaction, commit, and return its result. `what` names the change for failpoints.

        Every write goes through here: moves, and what is no move (rates, workers, agent output, imports). A lost race runs
        `move` again on fresh rows, so it must have no effect outside its transaction. Any other error rolls back.
        """
        for attempt in range(_ATTEMPTS):
            tx = None
            try:
                with self.store.begin(what) as run:
                    tx = UnitOfWork(self.store, run, self.workspace, remembering=True)
                    result = move(tx)
                    tx.write()
                    if tx.limited:
                        spend(tx)
            except Exception as error:
                recalled = tx.recalled if tx is not None else 0
                self.store.case_cache.forget(recalled)
                if isinstance(error, StoreTrouble) and not isinstance(error, Conflict):
                    raise  # the commit may have succeeded
                if not recalled:  # a remembered case may be old: no move is refused because of it
                    if not isinstance(error, Conflict):
                        raise
                    time.sleep(0.002 * 2**attempt * int.from_bytes(os.urandom(1)) / 255)
            else:
                tx.committed()
                return result
        raise Busy("Too many others change the same thing", hint="Nothing was changed. Try again.")

    # --- due moves --------------------------------------------------------------------------------------------------

    def reconcile(self, batch: int = 200) -> dict[str, int]:
        """Make all due moves. Returns how many tasks moved and how many failed to. A second run changes nothing."""
        moved, failed = 0, 0
        seen: set[int] = set()
        while True:
            with self.store.reading() as run:
                cases = CaseLoader(self.store, run, self.workspace)
                now, any_due = cases.anything_due(self._local_time())
                tasks = [task for task in cases.due(now, batch + len(seen)) if task not in seen] if any_due else []
            if not tasks:
                return {"moved": moved, "failed": failed}
            for task in tasks:
                seen.add(task)
                try:
                    moved += self.transact("reconcile", lambda tx, task=task: Moves(tx, self.now).apply_due(task))  # type: ignore[misc]
                except Exception:  # one failing task must not block the others
                    failed += 1

    # --- reads ------------------------------------------------------------------------------------------------------

    def read(self, query: Callable[[Reader], T]) -> T:
        """Read the desk as it is after all due moves, without writing."""
        with self.store.begin(write=False) as run:
            reader = Reader(self.store, run, self.workspace)
            reader.now, any_due = CaseLoader(self.store, run, self.workspace).anything_due(self._local_time())
            if not any_due:
                return query(reader)
        try:
            return self._read_after_due_moves(query)
        except Exception:  # the database cannot be written now, or a due move fails
            return self.read_stored(query)

    def read_stored(self, query: Callable[[Reader], T]) -> T:
        """Read the rows as they are stored."""
        with self.store.begin(write=False) as run:
            reader = Reader(self.store, run, self.workspace)
            reader.now = CaseLoader(self.store, run, self.workspace).anything_due(self._local_time())[0]
            return query(reader)

    def _read_after_due_moves(self, query: Callable[[Reader], T]) -> T:
        for _ in range(_ATTEMPTS):
            try:
                with self.store.begin() as run:
                    tx = UnitOfWork(self.store, run, self.workspace, virtual=True)
                    reader = Reader(self.store, run, self.workspace)
                    reader.now = tx.cases.anything_due(self._local_time())[0]
                    for task in tx.cases.due(reader.now, 1_000_000):
                        Moves(tx, self.now).apply_due(task)
                    tx.write()
                    result = query(reader)
                    raise _Rollback
            except _Rollback:
                return result
            except Conflict:
                continue
        raise Busy("Too many others change the same thing")

    def identity(self) -> str:
        """Identifies the desk since its last restore. Browsers keep their drafts under it."""
        with self.store.reading() as run:
            *_, created, fenced = run(self.store.query["workspace"], {"name": self.workspace_name}).fetchone()
        return f"{created:x}.{fenced or 0:x}"

    def projects(self) -> list[str]:
        """The keys of the projects, oldest first."""
        with self.store.reading() as run:
            return Reader(self.store, run, self.workspace).project_keys()

    def find(self, text: str, home: Callable[[], str] = str) -> tuple[int, int | None]:
        """The task's row id for a name, and the question's number if it names one. `home`: the default project."""
        name = parse(text, home)
        with self.store.reading() as run:
            reading = CaseLoader(self.store, run, self.workspace).named(name)
        return reading.task, reading.question

    def journal(self, task: int) -> RunJournal:
        """All questions and steps of a run, and its source."""
        with self.store.reading() as run:
            return Reader(self.store, run, self.workspace).journal(task)

    # --- events -----------------------------------------------------------------------------------------------------

    def cursor(self) -> str:
        """The current end of the event log."""
        return self.feed.cursor()

    def events(self, after: str | None = None, limit: int = 500) -> tuple[list[tuple[str, Event]], str]:
        """Events after a cursor, each with its own, and the cursor to continue from."""
        return self.feed.events(after, limit)

    def watch(self, after: str | None = None, seconds: float | None = None) -> Iterator[tuple[str, Event]]:
        """Events as they happen, without end or for so many seconds."""
        for batch in self.feed.batches(after, seconds):
            yield from batch

    def wait(self, seconds: float) -> bool:
        """Sleep until something may have changed, at most so many seconds."""
        return self.store.wait(seconds)

    def close(self) -> None:
        self.store.close()

"""The door.

Every change to anything goes through `Desk.do(action)`:

    begin ─ load the case ─ make what the system owes it ─ decide ─ save rows and event ─ follow up ─ commit

in one transaction, or not at all. Follow-ups are moves of other tasks that this one causes (children are created,
dependents unblocked, a container completed, somebody told that what they wait for failed): they are decided by the same
table, as the system, and committed together.

*Owed moves.* A lease that ran out, a question that nobody answered, a date that came: `due(case, now)` says what the
system owes. The door pays a case's debts before it decides anything about it, so a late writer is refused even if nobody
has reconciled. `reconcile()` pays everybody's. A read shows the state as if they were paid: when something is due, it pays
inside a transaction that it then rolls back. So nothing depends on a daemon.

*Losing a race* (`Again`) leaves nothing behind, and the whole move runs again on fresh rows. A move of a task that this
process has just moved is decided on the remembered case (CaseCache), and loses the race if that was old.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

from ..core.actions import say
from ..core.canonical_json import digest, secret_hash
from ..core.decide import decide, due, may_ever
from ..core.errors import Busy, NotFound, StoreTrouble
from ..core.model import Action, Case, Claim, Decision, Event, Who
from ..core.permissions import check, check_scope, in_scope
from ..core.references import parse
from ..core.rules import OFFICE
from ..core.step_paths import place
from ..db.backend import Again, Store
from ..db.case_loader import CaseLoader
from ..db.details import RunJournal
from ..db.reads import Reader
from ..db.unit_of_work import UnitOfWork
from . import idempotency
from .lookups import Clock, Credentials, EventFeed

T = TypeVar("T")

_ATTEMPTS = 12
#: Said of a task's key, these may come too late for its last question.
_MAY_BE_LATE = frozenset({"answer", "approve", "reject", "withdraw"})
#: What a person says to a question.
_ANSWERS = frozenset({"answer", "approve", "reject", "accept"})
#: These bring neighbours in, or ask about them: they look at the rows themselves.
_NEIGHBOURLY = frozenset({"dep_add", "dep_remove", "decompose", "reopen", "rewind"})


class Done(NamedTuple):
    """What a move left behind."""

    task: int | None = None
    question: int | None = None
    claim: Claim | None = None
    state: str | None = None  #: of the task then; None where the move was made before, and only its reply is given again
    at: int = 0


class _Undo(Exception):
    """Leaves a transaction without a trace."""


class _Owed(Exception):
    """Something is due: what comes next can only be told after that."""


class Desk:
    """One workspace in one database, seen by one actor."""

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
        self.credentials = Credentials(store, self.workspace, self.now)
        self.feed = EventFeed(store, self.workspace)

    def new_secret(self) -> str:
        """Of a claim that is taken here: what only its holder knows."""
        return os.urandom(16).hex()

    def as_(self, who: Who) -> Desk:
        """The same desk for another actor."""
        other = object.__new__(Desk)
        other.__dict__.update(self.__dict__, who=who)
        return other

    def now(self, database: int = 0) -> int:
        """The injected clock, else the database's, else this machine's."""
        if self.clock is not None:
            return self.clock()
        return database or time.time_ns() // 1000

    # --- changes ----------------------------------------------------------------------------------------------------

    def do(self, action: Action, look: Callable[[Reader, Done], Any] | None = None, then: Action | None = None) -> Any:
        """Say an action. Returns Done; or, with `look`, what that sees right after the move, in the same transaction.

        `then` is a second action about the same task, in the same commit: both are made, or neither.
        """
        if action.verb in OFFICE:
            check(action.who, action.verb)
            return self.transact(action.verb, lambda tx: self._office(tx, action))
        for each in (action,) if then is None else (action, then):
            may_ever(each.verb, each.who)
            if each.who.scopes is not None:
                check_scope(each.who, each.verb)
        return self.transact(action.verb, lambda tx: self._seen(tx, self._moves(tx, action, then), look))

    def _moves(self, tx: UnitOfWork, action: Action, then: Action | None) -> Done:
        done = self._move(tx, action)
        return done if then is None else self._move(tx, then._replace(task=done.task))

    def _seen(self, tx: UnitOfWork, done: Done, look: Callable[[Reader, Done], Any] | None) -> Any:
        if look is None:
            return done
        tx.write()
        return look(Reader(self.store, tx.run, self.workspace, tx.left(done.task)), done)

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
        look: Callable[[Reader, Done], Any] | None = None,
    ) -> Any:
        """Take the next ready task, or None. Two workers never get the same one.

        With `first`, that is done before, in the same commit: who hands in one task takes the next. If it is refused, nothing
        is taken.
        """
        action = say("claim", self.who, key=key, worker=worker, lease=lease, secret=self.new_secret())
        request = "" if key is None else digest([idempotency.digest(action), project, epic, role, host, runs])
        may_ever("claim", self.who)
        if self.who.scopes is not None:
            check_scope(self.who, "claim")
            runs = runs and in_scope(self.who, "step")  # what it may not take is not offered to it

        unpaid = 0  # one failing task must not block the others

        def move(tx: UnitOfWork) -> Any:
            if key is not None:
                before = self._replay(tx, action, request)
                if before is not None:
                    return self._seen(tx, before, look)
            wanted = (self._given(), project, epic, role, host, runs)
            if first is not None:
                self._move(tx, first)
                tx.write()
            owed, found = tx.cases.pick(*wanted, home=tx.final[-1][0].project if tx.final else None)
            if owed and not unpaid:
                raise _Owed
            if found is None:
                return None
            case, database = found
            assert case.task is not None
            now = self.now(database)
            done = self._decide(tx, case, action._replace(task=case.task.id), now, database)
            if key is not None:
                tx.remember(action, request, done.task, None, done.claim.epoch if done.claim else None, done.at)
            return self._seen(tx, done, look)

        for _ in range(_ATTEMPTS):
            try:
                return self.transact("claim_next", move)
            except _Owed:
                if first is not None:  # it does not wait for what others are due
                    self.do(first)
                    first = None
                unpaid = self.reconcile()["failed"]
        raise Busy("The desk cannot keep up with what is due", hint="Nothing was changed. Try again.")

    def transact(self, what: str, move: Callable[[UnitOfWork], T]) -> T:
        """Run `move` in one transaction, commit, and return its result; `what` names it in errors and in tests of failures.

        Every write of the desk goes through here: moves, and what is no move (rates, workers, agent output, imports). A lost
        race runs `move` again on fresh rows, so it must have no effect outside its transaction. Any other error rolls back.
        """
        for attempt in range(_ATTEMPTS):
            tx = None
            try:
                with self.store.begin(what) as run:
                    tx = UnitOfWork(self.store, run, self.workspace, remembering=True)
                    done = move(tx)
                    tx.write()
                    if tx.limited:
                        self._spend(tx)
            except Exception as error:
                recalled = tx.recalled if tx is not None else 0
                self.store.case_cache.forget(recalled)
                if isinstance(error, StoreTrouble) and not isinstance(error, Again):
                    raise  # it may even have been made
                if not recalled:  # a remembered case may be old: no move is refused because of it
                    if not isinstance(error, Again):
                        raise
                    time.sleep(0.002 * 2**attempt * int.from_bytes(os.urandom(1)) / 255)
            else:
                tx.committed()
                return done
        raise Busy("Too many others change the same thing", hint="Nothing was changed. Try again.")

    def _spend(self, tx: UnitOfWork) -> None:
        """Agents ask and create only so often, whichever way they come."""
        from .rate_limits import spend

        spend(tx)

    def _move(self, tx: UnitOfWork, action: Action) -> Done:
        request = ""
        if action.key is not None:
            request = idempotency.digest(action)
            before = self._replay(tx, action, request)
            if before is not None:
                return before
        case, database = self._case(tx, action)
        done = self._decide(tx, case, action, self.now(database), database)
        if action.key is not None:
            epoch = done.claim.epoch if done.claim else None
            tx.remember(action, request, done.task, done.question, epoch, done.at)
        return done

    def _case(self, tx: UnitOfWork, action: Action) -> tuple[Case, int]:
        if action.task is None:
            return self._new_case(tx, action)
        if tx.final and (own := tx.final[-1])[0].alone and own[0].task is not None and own[0].task.id == action.task:
            return own[0], own[1]  # this transaction has just moved it
        if action.verb == "dep_add":
            self.store.lock_graph(tx.run, self.workspace)
            start = action.args["needs"] = tx.refs([ref.id for ref in action.args["needs"]], lock=True)
            action.args["circle"] = [ref for ref in start if ref.id == action.task or tx.cases.reaches(ref.id, action.task)]
        if action.verb not in _NEIGHBOURLY and not action.args.get("restart"):
            recalled = tx.recall(action.task, action.question, action.verb in _MAY_BE_LATE)
            if recalled is not None:
                return recalled
        case, database = tx.case(action.task, action.question)
        if case.parent is not None and (action.verb in ("reopen", "rewind") or action.args.get("restart")):
            case = case._replace(parent=tx.refs([case.parent.id], lock=True)[0])
        if action.question is None and action.verb in _MAY_BE_LATE and not case.questions:
            case = tx.cases.latest(case)
        return case, database

    def _with_steps(self, tx: UnitOfWork, case: Case, action: Action) -> Case:
        """With the steps that are about to be written."""
        places = [place(step["path"]) for step in action.args.get("steps", ())]
        if action.args.get("signal"):
            places += [q.step.partition("/")[2] for q in case.questions if q.step]
        return tx.cases.with_steps(case, places) if places and case.task is not None else case

    def _new_case(self, tx: UnitOfWork, action: Action) -> tuple[Case, int]:
        parent, needs = action.args.get("parent"), action.args.get("depends_on") or ()
        if parent is not None and needs:
            self.store.lock_graph(tx.run, self.workspace)
            action.args["circle"] = [ref for ref in tx.refs(needs) if ref.id == parent or tx.cases.reaches(ref.id, parent)]
        return tx.new_case(action.args["project"], parent, needs)

    def _decide(self, tx: UnitOfWork, case: Case, action: Action, now: int, database: int) -> Done:
        touched: set[int] = set()
        at = time.monotonic()  # when the database's clock showed `database`
        if case.task is not None:
            case = self._pay(tx, case, now, touched)
        if action.args.get("steps") or action.args.get("signal"):
            case = self._with_steps(tx, case, action)
        decision = self._save(tx, case, action, now)
        after = self._follow(tx, decision, now, touched)
        tx.final.append((after, database, at))
        number = decision.opened[0].id if decision.opened else action.question
        if action.verb in _ANSWERS and decision.closed and not action.args.get("signal"):
            number = decision.closed[0].id  # also where the answer led to another question
        if number is None and decision.closed:
            number = decision.closed[0].id
        if number is None and action.verb in _MAY_BE_LATE and case.questions:
            number = case.questions[-1].id
        state = after.task.state if after.task is not None and not decision.after else None
        return Done(decision.task.id, number, decision.claim, state, decision.now)

    def _save(self, tx: UnitOfWork, case: Case, action: Action, now: int) -> Decision:
        decision = tx.save(decide(case, action, now))
        tx.decided.append(decision)
        return decision

    def _pay(self, tx: UnitOfWork, case: Case, now: int, touched: set[int]) -> Case:
        """Make the moves that the system owes this case."""
        while (owed := due(case, now)) is not None:
            decision = self._save(tx, case, owed, now)
            touched.update(decision.touch)
            case = decision.case
        return case

    def _follow(self, tx: UnitOfWork, decision: Decision, now: int, touched: set[int]) -> Case:
        """The moves that this one causes. Returns the case as it is then."""
        touched.update(decision.touch)
        case = decision.case
        for action in decision.after:
            if action.task is None:
                child = action._replace(args={"project": case.project.key, **action.args})
                follows = self._save(tx, self._new_case(tx, child)[0], child, now)
            else:
                follows = self._save(tx, tx.case(action.task)[0], action, now)
            touched.update(follows.touch)
        if not decision.after:  # a parent whose children were just created is loaded again, because they touch it
            case = self._pay(tx, case, now, touched)
        self.settle(tx, touched, now)
        return case

    def settle(self, tx: UnitOfWork, touched: set[int], now: int) -> None:
        """Apply due moves to touched tasks, transitively."""
        while touched:
            task = min(touched)
            touched.remove(task)
            self._pay(tx, tx.case(task)[0], now, touched)

    def _replay(self, tx: UnitOfWork, action: Action, request: str) -> Done | None:
        """What the first move with this idempotency key left behind."""
        row = idempotency.replay(tx, action, request)
        if row is None:
            return None
        task, question, epoch, at = row
        claim = None if epoch is None else idempotency.same_claim(tx, action, task, epoch, self.now)
        return Done(task, question, claim, at=at)

    def _office(self, tx: UnitOfWork, action: Action) -> Done:
        from .admin import manage

        now, request = self.now(tx.run(tx.q["now"]).fetchone()[0]), ""
        if action.key is not None:
            request = idempotency.digest(action)
            if self._replay(tx, action, request) is not None:
                return Done()
        manage(tx, action, now)
        if action.key is not None:
            tx.remember(action, request, None, None, None, now)
        return Done()

    # --- clockwork --------------------------------------------------------------------------------------------------

    def reconcile(self, batch: int = 200) -> dict[str, int]:
        """Pay what the system owes everybody. Says how many tasks moved, and which could not. Running it twice is harmless."""
        moved, failed = 0, 0
        seen: set[int] = set()
        while True:
            with self.store.reading() as run:
                cases = CaseLoader(self.store, run, self.workspace)
                now, something = cases.anything_due(self._given())
                ids = [task for task in cases.due(now, batch + len(seen)) if task not in seen] if something else []
            if not ids:
                return {"moved": moved, "failed": failed}
            for task in ids:
                seen.add(task)
                try:
                    moved += self.transact("reconcile", lambda tx, task=task: self._pay_one(tx, task))  # type: ignore[misc]
                except Exception:  # one failing task must not block the others
                    failed += 1

    def _pay_one(self, tx: UnitOfWork, task: int) -> int:
        case, database = tx.case(task)
        touched: set[int] = set()
        now = self.now(database)
        before = case
        after = self._pay(tx, case, now, touched)
        self.settle(tx, touched, now)
        return int(after is not before)

    def _given(self) -> int | None:
        """The time, if the database is not the one to ask."""
        if self.clock is not None:
            return self.clock()
        return time.time_ns() // 1000 if self.store.dialect == "sqlite" else None

    # --- reads ------------------------------------------------------------------------------------------------------

    def look(self, look: Callable[[Reader], T]) -> T:
        """Look at what is written."""
        with self.store.begin(write=False) as run:
            reader = Reader(self.store, run, self.workspace)
            reader.now = CaseLoader(self.store, run, self.workspace).anything_due(self._given())[0]
            return look(reader)

    def read(self, look: Callable[[Reader], T]) -> T:
        """Look at the desk as it truly is now, without writing."""
        with self.store.begin(write=False) as run:
            reader = Reader(self.store, run, self.workspace)
            reader.now, something = CaseLoader(self.store, run, self.workspace).anything_due(self._given())
            if not something:
                return look(reader)
        try:
            return self._as_if_paid(look)
        except Exception:  # it cannot be paid now, or never: then the rows as they are
            return self.look(look)

    def _as_if_paid(self, look: Callable[[Reader], T]) -> T:
        for _ in range(_ATTEMPTS):
            try:
                with self.store.begin() as run:
                    tx = UnitOfWork(self.store, run, self.workspace, virtual=True)
                    reader = Reader(self.store, run, self.workspace)
                    reader.now = tx.cases.anything_due(self._given())[0]
                    for task in tx.cases.due(reader.now, 1_000_000):
                        self._pay_one(tx, task)
                    tx.write()
                    seen = look(reader)
                    raise _Undo
            except _Undo:
                return seen
            except Again:
                continue
        raise Busy("Too many others change the same thing")

    def identity(self) -> str:
        """Which desk this is, and since which restore. A browser that keeps something for a desk keeps it under this."""
        with self.store.reading() as run:
            *_, created, fenced = run(self.store.query["workspace"], {"name": self.workspace_name}).fetchone()
        return f"{created:x}.{fenced or 0:x}"

    def projects(self) -> list[str]:
        """What the projects are called, the first one first."""
        with self.store.reading() as run:
            return Reader(self.store, run, self.workspace).project_keys()

    def find(self, text: str, home: Callable[[], str] = str) -> tuple[int, int | None]:
        """What a name means: a task's row id, and a question's number if it is one. `home`: the default project."""
        name = parse(text, home)
        with self.store.reading() as run:
            found = CaseLoader(self.store, run, self.workspace).named(name)
        return found.task, found.question

    # --- credentials and events -------------------------------------------------------------------------------------

    def journal(self, task: int) -> RunJournal:
        """All questions and steps of a run, and its source."""
        with self.store.reading() as run:
            return Reader(self.store, run, self.workspace).journal(task)

    def credential(self, sort: str, **named: Any) -> Any:
        return self.credentials.row(sort, **named)

    def identify(self, token: str) -> Who:
        """The actor that a token stands for."""
        return self.holder(secret_hash(token))[0]

    def holder(self, hashed: str) -> tuple[Who, int | None]:
        return self.credentials.of_token(hashed)

    def session(self, secret: str) -> tuple[int, Who, int]:
        return self.credentials.of_session(secret)

    def role_of(self, person: str) -> str | None:
        return self.credentials.role_of(person)

    def cursor(self) -> str:
        """Where the event log ends now."""
        return self.feed.cursor()

    def events(self, after: str | None = None, limit: int = 500) -> tuple[list[tuple[str, Event]], str]:
        """Events after a cursor, each with its own, and the cursor to go on from."""
        return self.feed.events(after, limit)

    def wait(self, seconds: float) -> bool:
        """Sleep until something may have changed, at most so long."""
        return self.store.wait(seconds)

    def watch(self, after: str | None = None, seconds: float | None = None) -> Iterator[tuple[str, Event]]:
        """Events as they happen, for ever or for so long."""
        for found in self.batches(after, seconds):
            yield from found

    def batches(self, after: str | None = None, seconds: float | None = None) -> Iterator[list[tuple[str, Event]]]:
        """The same, as many together as there are."""
        return self.feed.batches(after, seconds)

    def close(self) -> None:
        self.store.close()


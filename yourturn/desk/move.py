"""One move, in one transaction.

`Moves.make(action)` does, in this order:

    load         the case of the task: remembered (db/case_cache.py), or read and locked (db/case_loader.py)
    due moves    whatever time or a neighbour has made necessary, such as an expired lease, comes first
    decide       core/decide.py returns a Decision or raises an error
    save         db/unit_of_work.py writes the changed rows and one event
    follow up    a decision can name moves of other tasks (children are created) and tasks that it touches (dependents become
                 ready, a container completes, a failed dependency is asked about): these moves are made as the system,
                 by the same table, until no touched task has a due move

An error at any point rolls the whole transaction back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from ..core.decide import decide, due
from ..core.model import Action, Case, Claim, Decision
from ..core.step_paths import place
from ..db.unit_of_work import UnitOfWork
from . import idempotency

_ANSWERS = frozenset({"answer", "approve", "reject", "accept"})
#: With a task's key instead of a question's number, these mean the task's last question, which may be closed already.
_LAST_QUESTION = frozenset({"answer", "approve", "reject", "withdraw"})
#: These add or ask about neighbours, so they need rows that are read and locked, not a remembered case.
_NEEDS_ROWS = frozenset({"dep_add", "dep_remove", "decompose", "reopen", "rewind"})


class Done(NamedTuple):
    """The result of a move."""

    task: int | None = None
    question: int | None = None
    claim: Claim | None = None
    state: str | None = None  #: the task's state after the move; None where an earlier result is returned again
    at: int = 0


class Moves:
    """Makes moves in one transaction. `clock` takes the database's time and returns the time that counts."""

    def __init__(self, tx: UnitOfWork, clock: Callable[[int], int]) -> None:
        self.tx = tx
        self.clock = clock
        self._touched: set[int] = set()  #: tasks that may have a due move now

    def make(self, action: Action) -> Done:
        """Make a move, or return the result of the first one with the same idempotency key."""
        request = "" if action.key is None else idempotency.digest(action)
        earlier = self.earlier(action, request)
        if earlier is not None:
            return earlier
        done = self.make_on(*self._load(action), action)
        self.keep(action, request, done)
        return done

    def make_on(self, case: Case, database: int, action: Action) -> Done:
        """Make a move on a case that is loaded and locked. `database`: its time."""
        read_at = time.monotonic()
        now = self.clock(database)
        if case.task is not None:
            case = self._apply_due(case, now)
        if action.args.get("steps") or action.args.get("signal"):
            case = self._with_steps(case, action)
        decision = self._save(case, action, now)
        after = self._follow_up(decision, now)
        self.tx.final.append((after, database, read_at))
        state = after.task.state if after.task is not None and not decision.after else None
        return Done(decision.task.id, _question_of(decision, case, action), decision.claim, state, decision.now)

    def apply_due(self, task: int) -> bool:
        """Make all due moves of a task and of the tasks that they touch. True if there were any."""
        before, database = self.tx.case(task)
        now = self.clock(database)
        after = self._apply_due(before, now)
        self._settle(now)
        return after is not before

    def settle(self, tasks: set[int], now: int) -> None:
        """Make all due moves of these tasks and of the tasks that they touch."""
        self._touched |= tasks
        self._settle(now)

    # --- load -------------------------------------------------------------------------------------------------------

    def _load(self, action: Action) -> tuple[Case, int]:
        """The case, and the database's time."""
        tx, late = self.tx, action.args.get("restart")
        if action.task is None:
            return self._load_new(action)
        if tx.final and (last := tx.final[-1])[0].alone and last[0].task is not None and last[0].task.id == action.task:
            return last[0], last[1]  # the first of two moves of this task in one transaction has left it here
        if action.verb == "dep_add":
            tx.store.lock_graph(tx.run, tx.workspace)
            needs = action.args["needs"] = tx.refs([ref.id for ref in action.args["needs"]], lock=True)
            action.args["circle"] = [ref for ref in needs if ref.id == action.task or tx.cases.reaches(ref.id, action.task)]
        if action.verb not in _NEEDS_ROWS and not late:
            recalled = tx.recall(action.task, action.question, action.verb in _LAST_QUESTION)
            if recalled is not None:
                return recalled
        case, database = tx.case(action.task, action.question)
        if case.parent is not None and (action.verb in ("reopen", "rewind") or late):
            case = case._replace(parent=tx.refs([case.parent.id], lock=True)[0])
        if action.question is None and action.verb in _LAST_QUESTION and not case.questions:
            case = tx.cases.latest(case)
        return case, database

    def _load_new(self, action: Action) -> tuple[Case, int]:
        """The case of a task that is being created: its project and its future neighbours."""
        tx, parent, needs = self.tx, action.args.get("parent"), action.args.get("depends_on") or ()
        if parent is not None and needs:
            tx.store.lock_graph(tx.run, tx.workspace)
            action.args["circle"] = [ref for ref in tx.refs(needs) if ref.id == parent or tx.cases.reaches(ref.id, parent)]
        return tx.new_case(action.args["project"], parent, needs)

    def _with_steps(self, case: Case, action: Action) -> Case:
        """The case with the steps that the action writes."""
        places = [place(step["path"]) for step in action.args.get("steps", ())]
        if action.args.get("signal"):
            places += [q.step.partition("/")[2] for q in case.questions if q.step]
        return self.tx.cases.with_steps(case, places) if places and case.task is not None else case

    # --- save and follow up -----------------------------------------------------------------------------------------

    def _save(self, case: Case, action: Action, now: int) -> Decision:
        decision = self.tx.save(decide(case, action, now))
        self.tx.decided.append(decision)
        self._touched.update(decision.touch)
        return decision

    def _apply_due(self, case: Case, now: int) -> Case:
        while (action := due(case, now)) is not None:
            case = self._save(case, action, now).case
        return case

    def _follow_up(self, decision: Decision, now: int) -> Case:
        """Make the moves that a decision causes. Returns the case after them."""
        case = decision.case
        for action in decision.after:
            if action.task is None:
                child = action._replace(args={"project": case.project.key, **action.args})
                self._save(self._load_new(child)[0], child, now)
            else:
                self._save(self.tx.case(action.task)[0], action, now)
        if not decision.after:  # a parent whose children were just created is loaded again, because they touch it
            case = self._apply_due(case, now)
        self._settle(now)
        return case

    def _settle(self, now: int) -> None:
        while self._touched:
            task = min(self._touched)
            self._touched.remove(task)
            self._apply_due(self.tx.case(task)[0], now)

    # --- idempotency ------------------------------------------------------------------------------------------------

    def earlier(self, action: Action, request: str) -> Done | None:
        """The result of the first move with this idempotency key."""
        row = None if action.key is None else idempotency.replay(self.tx, action, request)
        if row is None:
            return None
        task, question, epoch, at = row
        claim = None if epoch is None else idempotency.same_claim(self.tx, action, task, epoch, self.clock)
        return Done(task, question, claim, at=at)

    def keep(self, action: Action, request: str, done: Done) -> None:
        """Keep the result for the next request with this idempotency key."""
        if action.key is not None:
            epoch = done.claim.epoch if done.claim else None
            self.tx.remember(action, request, done.task, done.question, epoch, done.at)


def _question_of(decision: Decision, case: Case, action: Action) -> int | None:
    """The question that the reply shows: the one that the move answered, opened, named or closed."""
    closed = decision.closed[0].id if decision.closed else None
    if closed is not None and action.verb in _ANSWERS and not action.args.get("signal"):
        return closed
    number = decision.opened[0].id if decision.opened else action.question
    if number is None:
        number = closed
    if number is None and action.verb in _LAST_QUESTION and case.questions:
        number = case.questions[-1].id
    return number

"""A second, plain implementation of the desk: the expected rows after every move.

The model is told what is said to the real desk, and says beforehand what must come of it: which rows, or which refusal. It
shares only what is published: the table of cells with who may speak (`TRANSITIONS`, `ROLES`), and the tables of questions
(`KINDS`, `OUTCOMES`). What a move does, what it costs, what time owes and who is told is written here anew, plainly, with
objects that change, from the words of the rules and not from the code in core/.

Where the two disagree one of them is wrong. `watch.py` sets them side by side after every move.
"""

from __future__ import annotations

import copy
from typing import Any

from yourturn.core.model import Action, Who
from yourturn.core.rules import ROLES, TRANSITIONS

from .rows import ENDED, Asked, Job, Move, No
from .verbs import Verbs, judge

SYSTEM = Who("system", "system")
ABOUT_QUESTIONS = ("answer", "approve", "reject", "accept", "withdraw", "assign", "timeout")
#: Words of people that answer a question.
VERDICTS = {"approve": "approved", "accept": "approved", "reject": "rejected"}
#: Verbs that, with a task's key, may refer to a question that has been closed.
MAY_BE_LATE = ("answer", "approve", "reject", "withdraw")


def may_ever(verb: str, who: Who) -> None:
    meant = "answer" if verb in VERDICTS and not (verb == "accept" and who.role == "system") else verb
    named = frozenset().union(*(rule.who for (_, v), rule in TRANSITIONS.items() if v == meant))
    if not named & ROLES[who.role]:
        raise No("not_allowed")


class Model(Verbs):
    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__(settings)
        #: What idempotency keys stand for: (actor, key) -> the request, the task, the epoch of a claim.
        self.replies: dict[tuple[str, str], tuple[Any, int, int]] = {}

    def copy(self) -> Model:
        other = Model(dict(self.settings))
        other.fenced = self.fenced
        other.replies = dict(self.replies)
        for job in self.jobs.values():
            model = copy.copy(job)
            model.needs, model.asked = set(job.needs), [copy.copy(q) for q in job.asked]
            model.journals = {n: {at: copy.copy(call) for at, call in steps.items()} for n, steps in job.journals.items()}
            other.jobs[job.id] = model
        return other

    # --- speaking ---------------------------------------------------------------------------------------------------

    def do(self, a: Action, now: int) -> Job:
        """Raises No, or is afterwards what the desk should be. Work on a copy."""
        may_ever(a.verb, a.who)
        if a.task is None:
            job = (self._brought if a.verb == "import" else self._born)(a.args, a.who, max(now, self.fenced))
        else:
            job = self.jobs[a.task]
            if a.question is not None and all(q.id != a.question for q in job.asked):
                raise No("not_found")
            known = job.pending()
            if not known and a.question is None and a.verb in MAY_BE_LATE and job.asked:
                known = [max(job.asked, key=lambda q: (q.closed_at or 0, q.id))]
            self._pay(job, now)
            self._say(job, a, now, known)
        self._pay(job, now)
        self._settle(now)
        return job

    def _say(self, job: Job, a: Action, now: int, known: list[Asked]) -> None:
        m = Move(a.verb, a.who, a.args, max(now, job.updated, self.fenced), clock=now)
        m.holds = self._proof(job, m)
        elsewhere = m.verb == "accept" and job.state != "review"  # only finished work is accepted
        if m.verb in ABOUT_QUESTIONS and not elsewhere and (a.question is not None or a.who.role != "system"):
            m.q = self._meant(job, a, known)
            if a.verb in VERDICTS:
                m.args = {**a.args, "verdict": VERDICTS[a.verb], "text": a.args.get("reason") or a.args.get("text")}
                m.verb = "answer"
        if m.verb == "use":
            m.q = next((q for q in job.asked if q.id == a.question), None)
            self._made(job, m)
        elif m.q is not None and m.q.status != "pending":
            self._late(job, m)
        else:
            self._made(job, m)

    def _made(self, job: Job, m: Move) -> None:
        rule = TRANSITIONS.get((job.state, m.verb))
        if rule is None:
            raise No("precondition" if m.verb == "claim" and self.open_needs(job) else "illegal_move")
        self._may(rule.who, m)
        source = job.state
        if rule.to != (job.state,) or hasattr(self, f"_{m.verb}"):  # a verb without a method of the model only writes an event
            getattr(self, f"_{m.verb}")(job, m)
        self.moves.append((source, m.verb))
        if m.verb != "heartbeat" and not m.again:
            job.events += 1
            job.updated = m.now

    def _may(self, named: frozenset[str], m: Move) -> None:
        allowed = named & ROLES[m.who.role]
        if not allowed:
            raise No("not_allowed")
        if allowed == {"holder"} and not m.holds:
            raise No("claim_lost")

    def _proof(self, job: Job, m: Move) -> bool:
        if m.verb == "claim":
            return False
        alive = job.holder is not None and job.ends is not None and job.ends > m.now
        token, worker = m.args.get("claim"), m.args.get("worker")
        if token is None and worker is None:
            return alive and m.who.direct and m.who.is_person and m.who.name == job.claimer
        if token is None and not m.who.direct:
            raise No("not_allowed")
        if alive and token in (None, job.token) and worker in (None, job.holder):
            m.script = bool(token and job.workflow)
            return True
        raise No("claim_lost")

    def _meant(self, job: Job, a: Action, known: list[Asked]) -> Asked | None:
        if a.question is not None:
            return next(q for q in job.asked if q.id == a.question)
        found = job.pending()
        if len(found) > 1:
            found = job.waiting() or found
        if len(found) > 1:
            raise No("invalid")
        return found[0] if found else known[-1] if known else None

    def _late(self, job: Job, m: Move) -> None:
        """Closed already. Only a late answer that should restart the task is kept."""
        if m.verb != "answer" or not m.args.get("restart"):
            raise No("already_answered")
        if m.args.get("value") is not None or m.args.get("verdict"):
            assert m.q is not None
            judge(m.q, m.args)
        elif not (m.args.get("text") or "").strip():
            raise No("invalid")
        if (job.state, "reopen") in TRANSITIONS:
            self._may(frozenset({"human"}), m)
            self._may_answer(job, m)
            if job.state == "done":
                self._approver(m)
            self.moves.append((job.state, "reopen"))
            self._reopen(job, m)
        job.notes += 1
        job.events += 1
        job.updated = m.now

    # --- what is owed -----------------------------------------------------------------------------------------------

    def _owed(self, job: Job, now: int) -> Move | None:
        if job.ends is not None and job.ends <= now:
            return Move("expire", SYSTEM, {}, now)
        for q in job.pending():
            if q.ends is not None and q.ends <= now and q.how != "keep":
                return Move("timeout", SYSTEM, {}, now, q=q)
        if job.state == "deferred" and job.wake is not None and job.wake <= now:
            return Move("wake", SYSTEM, {}, now)
        needs = self.open_needs(job)
        if job.state == "review" and not job.asks_for_acceptance() and not self.open_children(job):
            at_once = self.settings["review"] == 0
            return Move("accept", SYSTEM, {}, now) if at_once else Move("ask", SYSTEM, {"reason": "finished"}, now)
        if job.state == "human":
            for q in job.pending():
                if q.by == "system" and self._cause_is_gone(job, q):
                    return Move("withdraw", SYSTEM, {}, now, q=q)
        if job.state == "ready" and needs:
            return Move("block", SYSTEM, {}, now)
        if job.state == "ready" and self.too_large(job):
            return Move("unvet", SYSTEM, {}, now)
        if job.state == "blocked" and not needs:
            return Move("parent" if self.is_container(job) else "unblock", SYSTEM, {}, now)
        if job.state == "blocked":
            for other in sorted(needs):
                if self.jobs[other].state == "failed":
                    return Move("flag", SYSTEM, {"reason": "dependency_failed", "about": other}, now)
        return None

    def _cause_is_gone(self, job: Job, q: Asked) -> bool:
        if q.reason == "dependency_failed":
            return q.about not in job.needs or self.jobs[q.about].state != "failed"
        return q.reason == "retry_exhausted" and job.tries < job.limit

    def _pay(self, job: Job, now: int) -> bool:
        moved = False
        while (owed := self._owed(job, now)) is not None:
            owed.now = max(now, job.updated, self.fenced)
            self._made(job, owed)
            moved = True
        return moved

    def _settle(self, now: int) -> None:
        while self.touched:
            first = min(self.touched)
            self.touched.remove(first)
            self._pay(self.jobs[first], now)

    def overdue(self, now: int) -> list[int]:
        found = [(job.due(), job.id) for job in self.jobs.values() if job.due() is not None]
        return [task for at, task in sorted(found) if at <= now]  # type: ignore[operator,type-var]

    def pay_one(self, task: int, now: int) -> bool:
        moved = self._pay(self.jobs[task], now)
        self._settle(now)
        return moved

    def reconcile(self, now: int) -> int:
        """How many tasks moved."""
        seen: set[int] = set()
        moved = 0
        while todo := [task for task in self.overdue(now) if task not in seen]:
            for task in todo:
                seen.add(task)
                moved += self.pay_one(task, now)
        return moved

    def restore(self, at: int) -> None:
        """From now on nothing counts that was handed out before: claims, and permissions that were given since the last time."""
        last, self.fenced = self.fenced, at
        for job in self.jobs.values():
            given = [q for q in job.asked if q.kind == "permission" and q.verdict == "approved" and (q.closed_at or 0) >= last]
            if job.state not in ENDED and (job.holder or given):
                self._made(job, Move("fence", SYSTEM, {"approvals": given}, at))

    def next(self, role: str | None = None, runs: bool = False) -> Job | None:
        """The task that the next worker gets."""
        able = [job for job in self.jobs.values() if job.state == "ready" and job.tries < job.limit]
        able = [job for job in able if job.type != "epic" and not self.too_large(job) and (runs or not job.workflow)]
        fit = [job for job in able if role is None or job.role in (None, role)]
        return min(fit, key=lambda job: (job.priority, job.born, job.id), default=None)

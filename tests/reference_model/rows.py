"""The rows of the reference model, their relations, and the guards of its moves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from yourturn.core.model import Who
from yourturn.core.rules import KINDS, ROLES

ENDED = ("done", "failed", "cancelled")


class No(Exception):
    """The refusal that is due, by its code."""


@dataclass
class Asked:
    kind: str
    blocking: bool
    by: str
    how: str  #: on_timeout
    answers: str  #: the response type
    default: bool = False
    ends: int | None = None
    step: int | None = None
    reason: str | None = None
    about: int | None = None  #: of a question of the system: the task that failed
    other: bool = False  #: a choice that takes other words too
    reviewer: str | None = None
    options: tuple[str, ...] = ()
    status: str = "pending"
    closer: str | None = None
    closed_at: int | None = None
    verdict: str | None = None
    shown: str = ""  #: the digest of what a permission is for
    used: str | None = None
    asker: tuple[int, str] | None = None  #: of a run: the journal and the step that asks
    id: int = 0


@dataclass
class Call:
    """A step of a run."""

    name: str
    call: str
    status: str
    began: int
    result: str | None = None
    ended: int | None = None


@dataclass
class Job:
    id: int
    state: str
    updated: int
    type: str = "task"
    complexity: str = "medium"
    parent: int | None = None
    requires: str | None = None
    role: str | None = None
    workflow: bool = False
    priority: int = 2
    born: int = 0
    tries: int = 0
    limit: int = 3
    back: str | None = None
    outcome: str | None = None
    epoch: int = 0
    holder: str | None = None
    claimer: str | None = None
    token: str | None = None
    lease: int | None = None
    ends: int | None = None
    wake: int | None = None
    failure: str | None = None
    ended: int | None = None
    events: int = 0
    notes: int = 0
    needs: set[int] = field(default_factory=set)  #: what it waits for, or did
    asked: list[Asked] = field(default_factory=list)
    journal: int = 0
    journals: dict[int, dict[str, Call]] = field(default_factory=lambda: {0: {}})  #: every one that was ever written
    sources: int = 0  #: how often a script was written down

    def pending(self) -> list[Asked]:
        return [q for q in self.asked if q.status == "pending"]

    def waiting(self) -> list[Asked]:
        return [q for q in self.asked if q.status == "pending" and q.blocking]

    def asks_for_acceptance(self) -> list[Asked]:
        return [q for q in self.pending() if q.reason == "finished"]

    def due(self) -> int | None:
        moments = [self.ends, self.wake, *(q.ends for q in self.pending() if q.how != "keep")]
        return min((at for at in moments if at is not None), default=None)


@dataclass
class Move:
    """Something that is being said of a job."""

    verb: str
    who: Who
    args: dict[str, Any]
    now: int  #: never earlier than what happened to the task before
    holds: bool = False
    script: bool = False  #: of a run: shown by the claim's token, not by a worker's or a person's name
    q: Asked | None = None
    clock: int = 0  #: what the clock really says
    again: bool = False  #: said before, so it leaves no event


class Rows:
    """One project and its tasks."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.jobs: dict[int, Job] = {}
        self.touched: set[int] = set()  #: tasks that may have a due move, because a neighbour moved
        self.fenced = 0  #: when the desk was last restored
        self.moves: list[tuple[str | None, str]] = []  #: what was moved, by the system too: (state, verb)

    # --- neighbours -------------------------------------------------------------------------------------------------

    def open_needs(self, job: Job) -> list[int]:
        return [other for other in job.needs if self.jobs[other].state not in ("done", "cancelled")]

    def children(self, job: Job) -> list[Job]:
        return [child for child in self.jobs.values() if child.parent == job.id]

    def open_children(self, job: Job) -> list[Job]:
        return [child for child in self.children(job) if child.state not in ENDED]

    def is_container(self, job: Job) -> bool:
        return job.type == "epic" and bool(self.children(job))

    def too_large(self, job: Job) -> bool:
        return job.complexity == "xlarge" and not self.children(job)

    def waits_for(self, start: int, goal: int) -> bool:
        seen, todo = set(), [start]
        while todo:
            here = todo.pop()
            if here == goal:
                return True
            if here not in seen:
                seen.add(here)
                todo += self.jobs[here].needs
        return False

    def _tell_dependents(self, job: Job) -> None:
        self.touched |= {other.id for other in self.jobs.values() if job.id in other.needs and other.state not in ENDED}

    # --- landings ---------------------------------------------------------------------------------------------------

    def _rest(self, job: Job) -> None:
        finished_meanwhile = self.is_container(job) and job.state in ("created", "human", "deferred")
        job.state = "blocked" if self.open_needs(job) or finished_meanwhile else "ready"
        job.back = job.outcome = None

    def _to_review(self, job: Job, m: Move) -> None:
        job.state, job.back, job.outcome = "review", None, None
        if self.settings["review"] != 0:
            self._ask_for_acceptance(job, m)

    def _ask_for_acceptance(self, job: Job, m: Move) -> None:
        delay = self.settings["review"]
        asked = Asked("approval", True, m.who.name, "keep" if delay == "ask" else "accept", "approval", reason="finished")
        if delay != "ask":
            asked.ends, asked.step = m.now + delay, delay
        job.asked.append(asked)

    def _return(self, job: Job, m: Move) -> None:
        was = job.back
        if was == "review" and not self.open_children(job):
            self._to_review(job, m)
        elif was == "created" or (was == "working" and job.holder):
            job.state, job.back, job.outcome = was, None, None
        else:
            self._rest(job)

    def _drop(self, job: Job) -> None:
        job.holder = job.claimer = job.token = job.lease = job.ends = None

    def _end(self, job: Job, state: str, m: Move) -> None:
        self._drop(job)
        job.state, job.back, job.outcome, job.wake = state, None, None, None
        job.ended = m.now
        for q in job.pending():
            self._shut(q, "cancelled", m)
        self._tell_dependents(job)

    def _shut(self, q: Asked, status: str, m: Move, verdict: str | None = None) -> None:
        q.status, q.closer, q.closed_at, q.verdict = status, m.who.name, m.now, verdict

    def _one_less(self, job: Job, outcome: str | None, m: Move) -> None:
        """A blocking question is closed. The last one moves the task; one `back` among them is enough for back."""
        if outcome is not None and job.outcome != "back":
            job.outcome = outcome
        if job.waiting():
            if job.back == "review" and all(q.reason == "finished" for q in job.waiting()):
                self._review_again(job, m)
            return
        if job.outcome == "back":
            self._return(job, m)
        elif self.open_children(job):
            raise No("precondition")
        else:
            self._end(job, "done", m)

    def _review_again(self, job: Job, m: Move) -> None:
        """Only the question about the finished work is left: its time runs anew. With new children the work is not finished."""
        if self.open_children(job):
            for q in job.waiting():
                self._shut(q, "cancelled", m)
            self._rest(job)
            return
        job.state, job.back, job.outcome = "review", None, None
        for q in job.waiting():
            q.ends = m.now + q.step if q.step else None

    # --- guards -----------------------------------------------------------------------------------------------------

    def _approver(self, m: Move) -> None:
        if self.settings["approvals"] == "approvers" and "approver" not in ROLES[m.who.role]:
            raise No("not_allowed")

    def _may_lift(self, job: Job, m: Move) -> None:
        if any(KINDS[q.kind].gate for q in job.waiting()):
            self._approver(m)

    def _may_end(self, job: Job, m: Move) -> None:
        if self.open_children(job):
            raise No("precondition")
        if job.requires or "review" in (job.state, job.back):
            self._approver(m)
        self._may_lift(job, m)

    def _open_parent(self, parent: int | None) -> None:
        if parent is not None and self.jobs[parent].state in (*ENDED, "review"):
            raise No("precondition")

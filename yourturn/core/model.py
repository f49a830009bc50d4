"""The nouns, as rows.

Each class is one row of one table, field for column, in the order in which the store selects them. They are named
tuples: immutable, compared by value, and made from a database row in one C call. Times are whole microseconds since 1970
in UTC, yes and no are 1 and 0, and a field typed `Json` holds JSON text, exactly as it is stored.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

Json: TypeAlias = str
Micros: TypeAlias = int

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

#: The ten states of a task.
CREATED = "created"  #: written down, not vetted yet
READY = "ready"  #: an agent's turn
BLOCKED = "blocked"  #: waits for other tasks
WORKING = "working"  #: claimed
HUMAN = "human"  #: a person's turn
REVIEW = "review"  #: finished, to be accepted
DONE = "done"
FAILED = "failed"
CANCELLED = "cancelled"
DEFERRED = "deferred"  #: asleep until a date or a person wakes it

STATES = (CREATED, READY, BLOCKED, WORKING, HUMAN, REVIEW, DONE, FAILED, CANCELLED, DEFERRED)
ENDED = frozenset({DONE, FAILED, CANCELLED})
#: A dependent need not wait for these any more.
RESOLVED = frozenset({DONE, CANCELLED})
#: Ended, and its work counts: it may go home.
COUNTS = frozenset({DONE})

#: Why a question is asked, where a rule depends on it.
FINISHED = "finished"  #: finished work, to be accepted: its task stays in `review`
DEPENDENCY_FAILED = "dependency_failed"
RETRY_EXHAUSTED = "retry_exhausted"

#: The four fates of a question.
PENDING = "pending"
ANSWERED = "answered"
TIMEOUT = "timeout"
WITHDRAWN = "cancelled"

#: How far a step is; and what was done before the script was changed.
RUNNING = "running"
WAITING = "waiting"
COMPLETED = "completed"
SPARE = "~"  #: before the place of a step that was laid aside

APPROVED = "approved"
REJECTED = "rejected"
VERDICTS = (APPROVED, REJECTED)


class Who(NamedTuple):
    """Who says an action. Comes from the credential, never from the text of a request."""

    name: str  #: human:ana, agent:coder, system
    role: str  #: a row of rules.ROLES
    direct: bool = False  #: opened the database itself, so a worker's name is proof enough of its claim
    scopes: frozenset[str] | None = None  #: what their token is narrowed to: rows of access.SCOPES; None is not at all

    @property
    def is_person(self) -> bool:
        return self.name.startswith("human:")

    def as_agent(self) -> Who:
        """The same somebody, speaking as an agent: never more than before, so a viewer stays one."""
        role = self.role if self.role == "viewer" else "agent"
        return self._replace(name=f"agent:{self.name.partition(':')[2]}", role=role)


SYSTEM = Who("system", "system")


class Project(NamedTuple):
    id: int
    workspace_id: int
    key: str
    name: str
    next_number: int
    settings: dict[str, Any]  #: the project's over the workspace's over the defaults
    fenced_at: Micros | None = None  #: when this desk was last restored: nothing handed out before counts
    said: tuple[Json, Json] = ("{}", "{}")  #: the project's own settings and the workspace's, as they are stored


class Ref(NamedTuple):
    """A neighbour, as far as a decision needs to know it."""

    id: int
    key: str
    state: str
    reason: str = ""


class Task(NamedTuple):
    id: int
    project_id: int
    key: str
    title: str
    description: str
    state: str
    return_state: str | None  #: where `human` and `deferred` lead back to
    outcome: str | None  #: the best outcome among the questions closed during this stay in `human`
    priority: int
    type: str
    complexity: str
    parent_id: int | None
    requires: str | None
    role: str | None
    labels: Json
    acceptance: str
    retry_count: int
    max_retries: int
    branch: str | None
    session_id: str | None
    workflow: str | None
    summary: str
    failure: str | None
    reason: str
    external_id: str | None
    holder: str | None  #: the worker that holds the claim
    claimed_by: str | None  #: the actor that took it
    epoch: int  #: grows with every claim, never falls
    claim_hash: str | None
    lease: Micros | None
    lease_expires_at: Micros | None
    wake_at: Micros | None
    due_at: Micros | None  #: the next moment at which clockwork owes this task a move
    event_count: int
    event_head: str
    version: int
    created_by: str
    created_at: Micros
    updated_at: Micros
    ended_at: Micros | None
    extra: Json | None  #: what another tracker said, and no field here can
    host: str | None = None  #: the machine that its session lives on
    seat: Json | None = None  #: where the session sits
    journal: int = 0  #: of a run: which of its journals is being written


_AT = {name: at for at, name in enumerate(Task._fields)}


def altered(task: Task, fields: dict[str, Any]) -> Task:
    """The row with other values: _replace for a row this wide, several times as fast."""
    values = list(task)
    for name, value in fields.items():
        values[_AT[name]] = value
    return Task._make(values)


class Question(NamedTuple):
    id: int
    task_id: int
    kind: str
    blocking: int
    text: str
    context: Json | None
    reason: str | None
    urgency: str
    response_type: str
    options: Json
    multi: int
    allow_other: int
    grp: str | None
    default_value: Json | None
    timeout_at: Micros | None
    timeout: Micros | None
    on_timeout: str
    reviewer: str | None
    confidence: float | None
    action: Json | None
    digest: str | None
    metadata: Json | None
    status: str
    response: Json | None
    close_reason: str | None
    asked_by: str
    asked_at: Micros
    responded_by: str | None
    responded_at: Micros | None
    used_by: str | None = None  #: a permission: the one call that has made use of it
    step: str | None = None  #: of a run: the journal and the place of the step that asks, '0/000003'

    @property
    def name(self) -> str:
        return f"Q{self.id}"


class Note(NamedTuple):
    author: str
    text: str
    at: Micros


class Step(NamedTuple):
    """One durable call of a run's script."""

    task_id: int
    journal: int
    place: str
    name: str  #: run, pause, ask, step, sleep, now …
    agent: str | None
    digest: str  #: of the name and the arguments
    call: Json  #: the arguments
    status: str
    session_id: str | None
    seat: Json | None  #: what it needs to go on
    result: Json | None
    started_at: Micros
    ended_at: Micros | None


class Program(NamedTuple):
    """The source of a run, as it was when it was begun or gone on with."""

    task_id: int
    journal: int
    at: Micros
    file: str
    digest: str
    body: str


class Event(NamedTuple):
    seq: int
    task_id: int | None
    task: str | None
    n: int
    at: Micros
    actor: str
    action: str
    data: Json
    prev: str
    hash: str


class Claim(NamedTuple):
    task: str
    worker: str
    epoch: int
    token: str
    expires_at: Micros


class Case(NamedTuple):
    """All that a decision may look at: one task, its open questions and its neighbours."""

    project: Project
    task: Task | None = None
    questions: tuple[Question, ...] = ()  #: pending, oldest first; and the one that the action names
    needs: tuple[Ref, ...] = ()  #: unresolved dependencies
    children: tuple[Ref, ...] = ()  #: children that have not ended
    dependents: tuple[Ref, ...] = ()  #: open tasks that wait for this one
    parent: Ref | None = None
    has_children: bool = False  #: open or ended ones
    alone: bool = False  #: has, and had, no neighbours at all
    steps: tuple[Step, ...] = ()  #: those that the action speaks of

    @property
    def is_parent(self) -> bool:
        """A container: its children are the work."""
        return self.has_children and self.task is not None and self.task.type == "epic"

    def pending(self) -> list[Question]:
        return [q for q in self.questions if q.status == PENDING]

    @property
    def offered(self) -> bool:
        """May the next one who looks for work be given it?"""
        return self.task is not None and self.task.state == READY


class Action(NamedTuple):
    """One thing somebody says. `args` has been checked by core.actions."""

    verb: str
    who: Who
    args: dict[str, Any]
    task: int | None = None
    question: int | None = None
    key: str | None = None  #: idempotency key
    version: int | None = None  #: the task as the speaker saw it


class Decision:
    """What one move writes. The store adds the numbers that only it can give.

    A plain class: dataclasses would cost every command that only starts a tenth of its time.
    """

    __slots__ = (
        "action", "after", "before", "claim", "closed", "data", "found", "needs", "needs_added", "needs_removed", "notes", "now",
        "opened", "program", "questions", "rewound", "set", "silent", "steps", "task", "touch", "used",
    )  # fmt: skip

    def __init__(self, found: Case, action: Action, task: Task, now: Micros, set: dict[str, Any]) -> None:
        self.found = found  #: the case that was decided
        self.before = found.task
        self.action = action
        self.task = task
        self.now = now
        self.set = set
        self.questions: tuple[Question, ...] = ()  #: pending, and what became of the others
        self.needs: tuple[Ref, ...] = ()
        self.opened: tuple[Question, ...] = ()
        self.closed: tuple[Question, ...] = ()
        self.notes: tuple[Note, ...] = ()
        self.needs_added: tuple[tuple[int, int], ...] = ()  #: (task, needs); 0 stands for the task being created
        self.needs_removed: tuple[tuple[int, int], ...] = ()
        self.after: tuple[Action, ...] = ()  #: moves of other tasks in the same commit
        self.touch: tuple[int, ...] = ()  #: neighbours to whom the system may now owe a move
        self.data: dict[str, Any] = {}
        self.claim: Claim | None = None
        self.used: Question | None = None  #: the permission that is used
        self.silent = False  #: leaves no event (a heartbeat)
        self.steps: tuple[Step, ...] = ()
        self.program: Program | None = None
        self.rewound: tuple[int, str, bool] | None = None  #: from which journal, to which place, are later steps laid aside

    @property
    def has_born(self) -> bool:
        return any(action.verb == "create" for action in self.after)

    @property
    def case(self) -> Case:
        """The case as it is now, for what follows."""
        f = self.found
        alone = f.alone and not self.needs_added and not self.after
        parent = f.has_children or self.has_born
        return Case(f.project, self.task, self.questions, self.needs, f.children, f.dependents, f.parent, parent, alone)

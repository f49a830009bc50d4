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
CREATED = "created"  #: created, not vetted yet
READY = "ready"  #: an agent's turn
BLOCKED = "blocked"  #: waits for other tasks
WORKING = "working"  #: claimed
HUMAN = "human"  #: a person's turn
REVIEW = "review"  #: finished, to be accepted
DONE = "done"
FAILED = "failed"
CANCELLED = "cancelled"
DEFERRED = "deferred"  #: until a date, or until a person wakes it

STATES = (CREATED, READY, BLOCKED, WORKING, HUMAN, REVIEW, DONE, FAILED, CANCELLED, DEFERRED)
ENDED = frozenset({DONE, FAILED, CANCELLED})
#: States that satisfy a dependency.
RESOLVED = frozenset({DONE, CANCELLED})
#: States whose work is delivered.
COUNTS = frozenset({DONE})

#: Reasons of questions that rules depend on.
FINISHED = "finished"  #: finished work, to be accepted: its task stays in `review`
DEPENDENCY_FAILED = "dependency_failed"
RETRY_EXHAUSTED = "retry_exhausted"

#: The states of a question.
PENDING = "pending"
ANSWERED = "answered"
TIMEOUT = "timeout"
WITHDRAWN = "cancelled"

#: The states of a step.
RUNNING = "running"
WAITING = "waiting"
COMPLETED = "completed"
SPARE = "~"  #: prefix of the path of a superseded step

APPROVED = "approved"
REJECTED = "rejected"
VERDICTS = (APPROVED, REJECTED)


class Who(NamedTuple):
    """The actor of an action. Comes from the credential, never from the text of a request."""

    name: str  #: human:ana, agent:coder, system
    role: str  #: a row of rules.ROLES
    direct: bool = False  #: uses the database directly: a worker's name proves its claim
    scopes: frozenset[str] | None = None  #: scopes of the token (permissions.SCOPES); None: not limited

    @property
    def is_person(self) -> bool:
        return self.name.startswith("human:")

    def as_agent(self) -> Who:
        """This actor with the agent role; viewers stay viewers."""
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
    fenced_at: Micros | None = None  #: time of the last restore: claims and permissions from before are void
    said: tuple[Json, Json] = ("{}", "{}")  #: the project's own settings and the workspace's, as they are stored


class Ref(NamedTuple):
    """A dependency, dependent, parent or child, as far as a decision reads it."""

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
    due_at: Micros | None  #: the next time at which the system has to make a move
    event_count: int
    event_head: str
    version: int
    created_by: str
    created_at: Micros
    updated_at: Micros
    ended_at: Micros | None
    extra: Json | None  #: fields of another tracker without a column here
    host: str | None = None  #: the machine of its session
    seat: Json | None = None  #: location of the session: folder, agent, session id
    journal: int = 0  #: runs: number of the current journal


_AT = {name: at for at, name in enumerate(Task._fields)}


def altered(task: Task, fields: dict[str, Any]) -> Task:
    """_replace for wide rows, several times as fast."""
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
    used_by: str | None = None  #: permissions: the call that used it
    step: str | None = None  #: runs: journal and path of the asking step, '0/000003'

    @property
    def name(self) -> str:
        return f"Q{self.id}"


class Note(NamedTuple):
    author: str
    text: str
    at: Micros


class Step(NamedTuple):
    """One durable call of a script."""

    task_id: int
    journal: int
    place: str
    name: str  #: run, pause, ask, step, sleep, now …
    agent: str | None
    digest: str  #: hash of name and arguments
    call: Json  #: the arguments
    status: str
    session_id: str | None
    seat: Json | None  #: state that the step needs to continue
    result: Json | None
    started_at: Micros
    ended_at: Micros | None


class Program(NamedTuple):
    """The source of a run at its start or last continuation."""

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
    """The input of a decision: one task, its open questions, its neighbours."""

    project: Project
    task: Task | None = None
    questions: tuple[Question, ...] = ()  #: pending ones, oldest first, and the one that the action names
    needs: tuple[Ref, ...] = ()  #: unresolved dependencies
    children: tuple[Ref, ...] = ()  #: children that have not ended
    dependents: tuple[Ref, ...] = ()  #: open tasks that wait for this one
    parent: Ref | None = None
    has_children: bool = False  #: open or ended ones
    alone: bool = False  #: never had neighbours
    steps: tuple[Step, ...] = ()  #: the steps that the action names

    @property
    def is_parent(self) -> bool:
        """A container: its children are the work."""
        return self.has_children and self.task is not None and self.task.type == "epic"

    def pending(self) -> list[Question]:
        return [q for q in self.questions if q.status == PENDING]

    @property
    def offered(self) -> bool:
        """True if the task can be given to the next worker."""
        return self.task is not None and self.task.state == READY


class Action(NamedTuple):
    """One requested move. core.actions has validated `args`."""

    verb: str
    who: Who
    args: dict[str, Any]
    task: int | None = None
    question: int | None = None
    key: str | None = None  #: idempotency key
    version: int | None = None  #: the version that the actor read


class Decision:
    """Everything that one move writes. The database adds the ids.

    A plain class: importing dataclasses would add a tenth to the start of every command.
    """

    __slots__ = (
        "action", "after", "before", "claim", "closed", "data", "found", "needs", "needs_added", "needs_removed", "notes", "now",
        "opened", "program", "questions", "rewound", "set", "silent", "steps", "task", "touch", "used",
    )  # fmt: skip

    def __init__(self, found: Case, action: Action, task: Task, now: Micros, set: dict[str, Any]) -> None:
        self.found = found  #: the case before the move
        self.before = found.task
        self.action = action
        self.task = task
        self.now = now
        self.set = set
        self.questions: tuple[Question, ...] = ()  #: pending and changed questions
        self.needs: tuple[Ref, ...] = ()
        self.opened: tuple[Question, ...] = ()
        self.closed: tuple[Question, ...] = ()
        self.notes: tuple[Note, ...] = ()
        self.needs_added: tuple[tuple[int, int], ...] = ()  #: (task, dependency); 0 is the task being created
        self.needs_removed: tuple[tuple[int, int], ...] = ()
        self.after: tuple[Action, ...] = ()  #: moves of other tasks in the same transaction
        self.touch: tuple[int, ...] = ()  #: neighbours for which a move may be due now
        self.data: dict[str, Any] = {}
        self.claim: Claim | None = None
        self.used: Question | None = None  #: the used permission
        self.silent = False  #: writes no event (heartbeat)
        self.steps: tuple[Step, ...] = ()
        self.program: Program | None = None
        self.rewound: tuple[int, str, bool] | None = None  #: (journal, path, whether later steps are superseded)

    @property
    def has_born(self) -> bool:
        return any(action.verb == "create" for action in self.after)

    @property
    def case(self) -> Case:
        """The case after the move, for follow-ups."""
        f = self.found
        alone = f.alone and not self.needs_added and not self.after
        parent = f.has_children or self.has_born
        return Case(f.project, self.task, self.questions, self.needs, f.children, f.dependents, f.parent, parent, alone)

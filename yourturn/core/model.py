"""Rows of the database tables, the input of a decision (`Case`) and its result (`Decision`).

`Task`, `Question`, `Step`, `Program` and `Event` have one field for each column, in the order in which the store selects them.
Named tuples are immutable, compare by value, and are created from a database row in one C call. Times are whole microseconds
since 1970 in UTC, booleans are 1 and 0, and a field typed `Json` holds JSON text, exactly as it is stored.
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
CREATED = "created"  #: waits to be vetted
READY = "ready"  #: an agent's turn
BLOCKED = "blocked"  #: waits for other tasks
WORKING = "working"  #: claimed
HUMAN = "human"  #: a person's turn
REVIEW = "review"  #: finished; a person accepts it or sends it back
DONE = "done"
FAILED = "failed"
CANCELLED = "cancelled"
DEFERRED = "deferred"  #: put aside until a date, or until a person wakes it

STATES = (CREATED, READY, BLOCKED, WORKING, HUMAN, REVIEW, DONE, FAILED, CANCELLED, DEFERRED)
ENDED = frozenset({DONE, FAILED, CANCELLED})
#: States that satisfy a dependency.
RESOLVED = frozenset({DONE, CANCELLED})
#: States whose work is delivered.
COUNTS = frozenset({DONE})

#: Reasons of questions that rules depend on.
FINISHED = "finished"  #: asks whether finished work is accepted; its task stays in `review`
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
    """The actor of an action. It comes from the credential, never from the text of a request."""

    name: str  #: human:ana, agent:coder, system
    role: str  #: a row of rules.ROLES
    direct: bool = False  #: uses the database directly: the name of a worker proves its claim
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
    settings: dict[str, Any]  #: the project's settings override the workspace's, and these the defaults
    fenced_at: Micros | None = None  #: time of the last restore, which voids earlier claims and permissions
    stored_settings: tuple[Json, Json] = ("{}", "{}")  #: of the project, and of its workspace


class Ref(NamedTuple):
    """A dependency, dependent, parent or child: the fields that a decision reads."""

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
    return_state: str | None  #: the state after `human` or `deferred`
    outcome: str | None  #: the best outcome of the questions that were closed in this stay in `human`
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
    holder: str | None  #: the worker with the claim
    claimed_by: str | None  #: the actor that made the claim
    epoch: int  #: increases with every claim
    claim_hash: str | None
    lease: Micros | None
    lease_expires_at: Micros | None
    wake_at: Micros | None
    due_at: Micros | None  #: time of the next move of the system
    event_count: int
    event_head: str
    version: int
    created_by: str
    created_at: Micros
    updated_at: Micros
    ended_at: Micros | None
    extra: Json | None  #: fields of an imported task that have no column
    host: str | None = None  #: the machine of its session
    seat: Json | None = None  #: where the session can be resumed: folder, agent, session id
    journal: int = 0  #: of a run: number of the current journal


_POSITIONS = {name: position for position, name in enumerate(Task._fields)}


def altered(task: Task, fields: dict[str, Any]) -> Task:
    """The task with these fields changed. For rows this wide it is several times as fast as `_replace`."""
    values = list(task)
    for name, value in fields.items():
        values[_POSITIONS[name]] = value
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
    used_by: str | None = None  #: of a permission: the tool call that used it
    step: str | None = None  #: of a run: journal and path of the step that asks, '0/000003'

    @property
    def name(self) -> str:
        return f"Q{self.id}"


class Note(NamedTuple):
    author: str
    text: str
    at: Micros


class Step(NamedTuple):
    """One durable call of a run's script, with its result."""

    task_id: int
    journal: int
    place: str
    name: str  #: run, pause, ask, step, sleep, now …
    agent: str | None
    digest: str  #: hash of name and arguments
    call: Json  #: the arguments
    status: str
    session_id: str | None
    seat: Json | None  #: what the step needs to continue
    result: Json | None
    started_at: Micros
    ended_at: Micros | None


class Program(NamedTuple):
    """The source of a run's script, at its start or last continuation."""

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
    questions: tuple[Question, ...] = ()  #: the pending ones, oldest first, and the one that the action names
    needs: tuple[Ref, ...] = ()  #: unresolved dependencies
    children: tuple[Ref, ...] = ()  #: children that have not ended
    dependents: tuple[Ref, ...] = ()  #: open tasks that wait for this one
    parent: Ref | None = None
    has_children: bool = False  #: open or ended
    alone: bool = False  #: the task never had neighbours
    steps: tuple[Step, ...] = ()  #: the steps that the action names

    @property
    def is_parent(self) -> bool:
        """A container: its children are the work."""
        return self.has_children and self.task is not None and self.task.type == "epic"

    def pending(self) -> list[Question]:
        return [q for q in self.questions if q.status == PENDING]

    @property
    def offered(self) -> bool:
        """Whether a worker can claim the task."""
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
    """Everything that one move writes; the database adds the ids.

    This is a plain class because importing dataclasses would add a tenth to the start of every command.
    """

    __slots__ = (
        "action", "after", "before", "claim", "closed", "data", "loaded", "needs", "needs_added", "needs_removed", "notes", "now",
        "opened", "program", "questions", "rewound", "set", "silent", "steps", "task", "touch", "used",
    )  # fmt: skip

    def __init__(self, loaded: Case, action: Action, task: Task, now: Micros, set: dict[str, Any]) -> None:
        self.loaded = loaded  #: the case before the move
        self.before = loaded.task
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
        self.touch: tuple[int, ...] = ()  #: neighbours whose next move may be due now
        self.data: dict[str, Any] = {}
        self.claim: Claim | None = None
        self.used: Question | None = None  #: the permission that the move uses
        self.silent = False  #: writes no event, like a heartbeat
        self.steps: tuple[Step, ...] = ()
        self.program: Program | None = None
        self.rewound: tuple[int, str, bool] | None = None  #: (journal, path, whether later steps are superseded)

    @property
    def creates_tasks(self) -> bool:
        return any(action.verb == "create" for action in self.after)

    @property
    def case(self) -> Case:
        """The case after the move, for the next decision."""
        f = self.loaded
        alone = f.alone and not self.needs_added and not self.after
        has_children = f.has_children or self.creates_tasks
        return Case(f.project, self.task, self.questions, self.needs, f.children, f.dependents, f.parent, has_children, alone)

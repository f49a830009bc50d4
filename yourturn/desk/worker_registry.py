"""Worker registry: the running workers, the tasks that each takes, and ready tasks that none takes.

A worker registers when it starts, renews its row every `RENEW`, and removes it when it ends. A worker that was killed counts
as gone after `GONE`. No rule reads these rows and no event records them, so they do not go through the table of moves. An actor
can renew and remove only its own rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from shlex import quote
from typing import Any, NamedTuple

from ..core.model import DAY, MINUTE, SECOND, Task
from ..db.reads import Reader
from ..db.unit_of_work import UnitOfWork
from .desk import Desk

#: The interval of renewals, and the time without one after which a worker counts as gone.
RENEW, GONE = 90 * SECOND, 3 * MINUTE
#: Number of ready tasks to check, in the order in which they are claimed.
FIRST = 200
#: Age and number (per actor) of the rows of killed workers to keep.
KEPT, MOST = 30 * DAY, 1000


class RegisteredWorker(NamedTuple):
    actor: str
    name: str
    host: str
    agents: str  #: separated by spaces
    project_id: int | None
    project: str | None
    epic_id: int | None
    epic: str | None
    role: str | None
    runs: int
    parallel: int
    started_at: int
    seen_at: int

    @property
    def takes_everything(self) -> bool:
        return (self.project_id, self.epic_id, self.role) == (None, None, None) and bool(self.agents and self.runs)

    def takes(self, task: Task, below: Mapping[int, frozenset[int]]) -> bool:
        """True if `claim_next` could return this task to the worker. `below`: the descendants of each epic."""
        return (
            self.project_id in (None, task.project_id)
            and (self.epic_id is None or task.id in below[self.epic_id])
            and (task.role is None or self.role in (None, task.role))
            and bool(self.runs if task.workflow else self.agents)
        )


class Unattended(NamedTuple):
    """A ready task that no worker takes."""

    task: Task
    ready: int  #: number of all ready tasks
    workers: int  #: number of running workers, which take other tasks
    start: str  #: the command that starts a worker for it


def register(desk: Desk, name: str, **takes: Any) -> None:
    """Insert the worker's row, or replace that of an earlier worker of the same name."""
    whose = {"workspace": desk.workspace, "actor": desk.who.name}

    def move(tx: UnitOfWork) -> None:
        now = _now(desk, tx)
        tx.run(tx.q["register_worker"], {**whose, "name": name, "now": now, **takes})
        tx.run(tx.q["trim_workers"], {**whose, "before": now - KEPT, "kept": MOST - 1})

    desk.transact("presence", move)


def renew(desk: Desk, name: str) -> bool:
    """False if the row does not exist: then the worker has to register again."""
    args = {"workspace": desk.workspace, "actor": desk.who.name, "name": name}
    return bool(desk.transact("presence", lambda tx: tx.run(tx.q["renew_worker"], {**args, "now": _now(desk, tx)}).rowcount))


def remove(desk: Desk, name: str) -> None:
    args = {"workspace": desk.workspace, "actor": desk.who.name, "name": name}
    desk.transact("presence", lambda tx: tx.run.later(tx.q["remove_worker"], args))


def workers(reader: Reader, since: int = -1) -> list[RegisteredWorker]:
    """The workers that were seen since then, last seen first."""
    return [RegisteredWorker._make(row) for row in reader.workers(since)]


def unattended(reader: Reader, project: str | None, task: int | None = None) -> Unattended | None:
    """The first ready task that no worker takes: of a project, of all projects, or this task.

    None if an unregistered program (a script, an agent's session) holds a claim: it may take the task.
    """
    since = reader.now - GONE
    running = workers(reader, since)
    if any(w.takes_everything for w in running):
        return None
    ids = None if task is None else [task]
    ready = reader.tasks(workable=True, project=project, ids=ids, limit=FIRST if running else 1)
    numbers = [t.id for t in ready]
    epics = {w.epic_id for w in running if w.epic_id is not None}
    below = {epic: frozenset(t.id for t in reader.tasks(epic=epic, ids=numbers, limit=FIRST)) for epic in epics}
    untaken = next((t for t in ready if not any(w.takes(t, below) for w in running)), None)
    if untaken is None:
        return None
    project = project if task is None else _project(untaken)
    if reader.worked_on(project, since):
        return None
    start = _start(untaken, reader.project_keys(), bool(running))
    return Unattended(untaken, reader.count_ready(project), len(running), start)


def _start(task: Task, projects: Iterable[str], others: bool) -> str:
    """The command for a worker of this project and, if other workers run, of this role."""
    only = f" -p {_project(task)}" if len(list(projects)) > 1 else ""
    return f"turn work{only}" + (f" --agent {quote(task.role)}" if others and task.role else "")


def _project(task: Task) -> str:
    return task.key.rpartition("-")[0]


def _now(desk: Desk, tx: UnitOfWork) -> int:
    return desk.now(tx.run(tx.q["now"]).fetchone()[0])

"""Registry of workers, and ready tasks that no worker takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core import fields as f
from ..db.reads import Reader
from . import serialize
from .refs import ClientBase, Named


class Workers(ClientBase):
    def register_worker(
        self, worker: str, *, host: str = "", agents: Iterable[str] = (), role: str | None = None, project: str | None = None,
        epic: Named | None = None, runs: bool = False, parallel: int = 1,
    ) -> None:  # fmt: skip
        """Register a running worker, with the filters of `claim_next`. `agents`: their names; without any it takes only runs.

        The worker renews its registration; after three minutes without a renewal it is considered stopped."""
        from ..core.permissions import in_scope
        from ..desk import worker_registry

        self._check("presence")
        takes = {
            "host": f.line(200, blank=True)("host", host), "agents": " ".join(f.names("agents", agents)),
            "role": None if role is None else f.name("role", role), "project": self._within(project),
            "epic": None if epic is None else self._task(epic), "runs": int(runs and in_scope(self.who, "step")),
            "parallel": f.integer(1, 10_000)("parallel", parallel),
        }  # fmt: skip
        worker_registry.register(self.desk, f.name("worker", worker), **takes)

    def renew_worker(self, worker: str) -> bool:
        """Renew the registration of a worker. False if there is none any more: the worker has to register again."""
        from ..desk import worker_registry

        self._check("presence")
        return worker_registry.renew(self.desk, f.name("worker", worker))

    def remove_worker(self, worker: str) -> None:
        """Remove the registration of a worker."""
        from ..desk import worker_registry

        self._check("presence")
        worker_registry.remove(self.desk, f.name("worker", worker))

    def workers(self) -> list[dict[str, Any]]:
        """Workers, the last renewed first. `running`: in the last three minutes; `tasks`: keys of the tasks that it holds."""
        from ..desk import worker_registry

        def look(r: Reader) -> list[dict[str, Any]]:
            held: dict[tuple[str, str], list[str]] = {}
            for actor, name, key in r.held():
                held.setdefault((actor, name), []).append(key)
            return [
                serialize.worker(w, w.seen_at > r.now - worker_registry.GONE, held.get((w.actor, w.name), []))
                for w in worker_registry.workers(r)
            ]

        return self.desk.read(look)

    def unattended(self, project: str | None = None, *, task: Named | None = None) -> dict[str, Any] | None:
        """A ready task that no worker takes: the first of a project or of all, or this `task`. `start`: how to start one."""
        from ..desk import worker_registry

        number = None if task is None else self._task(task)
        where = None if task is not None else self._within(project)
        row = self.desk.read(lambda r: worker_registry.unattended(r, where, number))
        return None if row is None else {**row._asdict(), "task": row.task.key}

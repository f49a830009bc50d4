"""Runs: tasks whose body is a script. What their journals say, and what a script's holder writes there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..db.reads import Reader
from . import serialize
from .commands import _proof
from .refs import Named, Names


class Runs(Names):
    def record(
        self,
        claim: Named,
        steps: Iterable[dict[str, Any]] = (),
        *,
        program: dict[str, str] | None = None,
        worker: str | None = None,
        key: str | None = None,
    ) -> None:
        """Write down how far a script's calls are: `path`, `name`, `call`, `status`, `result` … of each. The holder's word."""
        self.do("step", key=key, steps=list(steps) or None, program=program, **self._hold(claim, worker))

    def rewind(
        self,
        run: Named,
        to: str | int | None = None,
        *,
        spare: bool = False,
        claim: Named | None = None,
        worker: str | None = None,
        key: str | None = None,
    ) -> dict[str, Any]:
        """Let a run go on from a step, keeping what was done before it; without one, from where it was.

        `spare`: what was done from there on is laid aside, and taken over by calls that are exactly the same.
        """
        where = None if to is None else str(to)
        return self._say("rewind", key=key, task=self._task(run), to=where, spare=spare or None, **_proof(claim, worker))

    def steps(self, run: Named, journal: int | None = None) -> list[dict[str, Any]]:
        """The steps of a run, in the order of the script's calls: of the journal that is being written, or of an older one."""
        task = self._task(run)

        def look(r: Reader) -> list[dict[str, Any]]:
            return [serialize.step(s) for s in r.steps(task, r.task(task).journal if journal is None else journal)]

        return self.desk.read(look)

    def program(self, run: Named) -> dict[str, Any] | None:
        """The source that a run was begun or last gone on with: `file`, `body`, `digest`."""
        task = self._task(run)
        found = self.desk.look(lambda r: r.program(task))
        if found is None:
            return None
        return {**{name: getattr(found, name) for name in ("file", "digest", "body", "journal")}, "at": serialize.time(found.at)}

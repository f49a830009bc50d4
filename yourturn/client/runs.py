"""Runs of scripts: start, steps, source and rewind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.actions import say
from ..core.canonical_json import digest
from ..core.model import Action, Program
from ..db.reads import Reader
from . import serialize
from .refs import ClientBase, Named, needs_database, not_served, proof_of


class Runs(ClientBase):
    def record(
        self,
        claim: Named,
        steps: Iterable[dict[str, Any]] = (),
        *,
        program: dict[str, str] | None = None,
        worker: str | None = None,
        key: str | None = None,
    ) -> None:
        """Record steps of a script: `path`, `name`, `call`, `status`, `result` … of each. Requires the claim."""
        self.do("step", key=key, steps=list(steps) or None, program=program, **self._hold(claim, worker))

    @needs_database
    def start(
        self, title: str, worker: str, *, project: str | None = None, lease: Any = None, key: str | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Create a task, usually a run, and claim it in the same commit. Returns the same as `claim`.

        `fields` as in `create`, but for a parent and dependencies: a task that has to wait cannot be claimed.
        """
        then = self._claiming(worker, lease, key)
        reply: dict[str, Any] = self.do(
            "create", key=key, title=title, project=project or self.project, look=self._claimed, then=then, **fields
        )
        return reply

    @needs_database
    def answer_and_claim(
        self,
        question: Named,
        worker: str,
        value: Any = None,
        text: str = "",
        verdict: str | None = None,
        *,
        lease: Any = None,
        key: str | None = None,
    ) -> dict[str, Any]:
        """Answer a question and claim its task in the same commit: no other worker can claim it in between."""
        then = self._claiming(worker, lease, key)
        args = {"value": value, "text": text, "verdict": verdict, **self._about(question)}
        reply: dict[str, Any] = self.do("answer", key=key, look=self._claimed, then=then, **args)
        return reply

    def _claiming(self, worker: str, lease: Any, key: str | None) -> Action:
        own = None if key is None else digest([key, "claim"])
        return say("claim", self.who, key=own, task=0, worker=worker, lease=lease, secret=self.desk.new_secret())

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
        """Continue a run from a step, keeping the results before it; without one, from where it stopped.

        `spare`: later steps are set aside, and exactly equal calls reuse their results.
        """
        where = None if to is None else str(to)
        return self._move("rewind", key=key, task=self._task(run), to=where, spare=spare or None, **proof_of(claim, worker))

    def steps(self, run: Named, journal: int | None = None) -> list[dict[str, Any]]:
        """The steps of a run, in the order of the script's calls: of the current journal, or of an older one."""
        task = self._task(run)

        def look(r: Reader) -> list[dict[str, Any]]:
            return [serialize.step(s) for s in r.steps(task, r.task(task).journal if journal is None else journal)]

        return self.desk.read(look)

    def program(self, run: Named) -> dict[str, Any] | None:
        """The source of a run at its start or last continuation: `file`, `body`, `digest`."""
        task = self._task(run)
        return _program(self.desk.read_stored(lambda r: r.program(task)))

    @not_served
    def journal(self, run: Named) -> dict[str, Any]:
        """Everything needed to continue a run, in one read: `questions` and `steps` as in `show`, and the `program`."""
        journal = self.desk.journal(self._task(run))
        return {
            "questions": [serialize.question(q, journal.key) for q in journal.questions],
            "steps": [serialize.step(s) for s in journal.steps],
            "program": _program(journal.program),
        }


def _program(source: Program | None) -> dict[str, Any] | None:
    if source is None:
        return None
    return {**{name: getattr(source, name) for name in ("file", "digest", "body", "journal")}, "at": serialize.time(source.at)}

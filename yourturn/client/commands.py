"""Moves whose arguments need preparation; the others are generated (verbs.py)."""

from __future__ import annotations

import time as clock_time
from collections.abc import Iterable
from typing import Any

from ..core.actions import say
from ..core.canonical_json import digest as digest_of
from ..core.errors import NotFound, StillWaiting, StoreTrouble
from ..core.model import Ref
from .refs import Named, proof_of
from .verbs import Verbs


class Commands(Verbs):
    # --- tasks ------------------------------------------------------------------------------------------------------

    def create(
        self,
        title: str,
        *,
        project: str | None = None,
        parent: Named | None = None,
        depends_on: Iterable[Named] = (),
        key: str | None = None,
        **fields: Any,
    ) -> dict[str, Any]:
        """Create a task. `fields`: those of `update`, `draft`, `awaiting` and the other arguments of the verb (docs/rules.md)."""
        above = self._task(parent) if parent is not None else None
        fields |= {"title": title, "project": project or self.project, "parent": above, "depends_on": self._tasks(depends_on)}
        return self._move("create", key=key, **fields)

    def update(
        self, task: Named, *, claim: Named | None = None, worker: str | None = None, key: str | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Change fields of a task. An agent has to give its claim."""
        return self._move("update", key=key, task=self._task(task), fields=fields, **proof_of(claim, worker))

    def note(self, task: Named, text: str, *, key: str | None = None) -> dict[str, Any]:
        """Add a note to a task, or to the task of a question."""
        return self._move("note", key=key, task=self._about(task)["task"], text=text)

    def depend(self, task: Named, *needs: Named, key: str | None = None) -> dict[str, Any]:
        """Make a task wait for others."""
        return self._move("dep_add", key=key, task=self._task(task), needs=self._refs(needs))

    def undepend(self, task: Named, *needs: Named, key: str | None = None) -> dict[str, Any]:
        """Remove dependencies of a task."""
        return self._move("dep_remove", key=key, task=self._task(task), needs=self._refs(needs))

    def _refs(self, named: Iterable[Named]) -> list[Ref]:
        ids = [self._task(other) for other in named]
        return [Ref(t.id, t.key, t.state, t.reason) for t in self.desk.read(lambda r: r.tasks(ids=ids))]

    def close(self, task: Named | None = None, reason: str = "", *, key: str | None = None) -> dict[str, Any] | None:
        """Close a task: it is done, whatever its state. Without a task, close the connection."""
        if task is not None:
            return self._move("close", key=key, task=self._task(task), reason=reason)
        self._close_desk()
        return None

    # --- claims -----------------------------------------------------------------------------------------------------

    def claim(self, task: Named, worker: str, *, lease: Any = None, key: str | None = None) -> dict[str, Any]:
        """Claim a task. Returns the `task` and the `claim`, whose token proves it."""
        reply: dict[str, Any] = self.do(
            "claim", key=key, task=self._task(task), worker=worker, lease=lease, secret=self.desk.new_secret(), look=self._claimed
        )
        return reply

    def claim_next(
        self,
        worker: str,
        *,
        project: str | None = None,
        epic: Named | None = None,
        role: str | None = None,
        host: str | None = None,
        lease: Any = None,
        runs: bool = False,
        completing: Named | None = None,
        summary: str = "",
        key: str | None = None,
    ) -> dict[str, Any] | None:
        """Claim the next task: returns `task` and `claim`, or None.

        `host`: a task with a session on another machine is reserved for that machine for a minute.

        `runs`: also tasks whose body is a script, which only a worker that can run scripts should take.

        `completing`: a claim whose work is finished. It is completed and the next task claimed in one commit.
        """
        within = self._task(epic) if epic is not None else None
        limit = self._within(project)
        first = None
        if completing is not None:
            own = None if key is None else digest_of([key, "completing"])  # also recorded where there is no next task
            first = say("complete", self.who, key=own, summary=summary, **self._hold(completing, None))
        reply: dict[str, Any] | None = self.desk.claim_next(
            worker, project=limit, epic=within, role=role, host=host, lease=lease, runs=runs, first=first, key=key,
            reply=self._claimed,
        )  # fmt: skip
        return reply

    def park(
        self,
        claim: Named,
        until: str | int | None = None,
        *,
        worker: str | None = None,
        proof: str | None = None,
        steps: Iterable[dict[str, Any]] = (),
        key: str | None = None,
    ) -> dict[str, Any]:
        """Give a claimed task back without costing a try. `steps`: new steps of a run, recorded in the same commit."""
        held = self._hold(claim, worker, proof)
        return self._move("park", key=key, until=self._moment(until), steps=list(steps) or None, **held)

    def complete(
        self,
        claim: Named,
        summary: str = "",
        *,
        worker: str | None = None,
        proof: str | None = None,
        key: str | None = None,
        details: str = "",
        issues: Iterable[str] = (),
        steps: Iterable[dict[str, Any]] = (),
        journal: int | None = None,
    ) -> dict[str, Any]:
        """Finish the claimed work. `details` (for a reviewer) and `issues` (problems left) are recorded as a note.

        `journal`: number of the journal of a run; only the process that runs its script knows it.
        """
        held = {**self._hold(claim, worker, proof), **_account(details, issues)}
        return self._move("complete", key=key, summary=summary, steps=list(steps) or None, journal=journal, **held)

    def fail(
        self,
        claim: Named,
        reason: str = "",
        *,
        failure: str = "error",
        details: str = "",
        issues: Iterable[str] = (),
        worker: str | None = None,
        proof: str | None = None,
        steps: Iterable[dict[str, Any]] = (),
        journal: int | None = None,
        key: str | None = None,
    ) -> dict[str, Any]:
        """End a claimed task as failed; arguments as in `complete`."""
        held = {**self._hold(claim, worker, proof), **_account(details, issues)}
        return self._move("fail", key=key, reason=reason, failure=failure, steps=list(steps) or None, journal=journal, **held)

    def decompose(
        self,
        claim: Named,
        children: Iterable[str | dict[str, Any]],
        *,
        worker: str | None = None,
        proof: str | None = None,
        key: str | None = None,
    ) -> dict[str, Any]:
        """Split a claimed task into children (titles, or fields as in `create`) and wait for them."""
        rows = [self._child(child) for child in children]
        return self._move("decompose", key=key, children=rows, **self._hold(claim, worker, proof))

    def _child(self, child: Any) -> Any:
        if not isinstance(child, dict) or child.get("depends_on") is None:
            return child
        return {**child, "depends_on": self._tasks(child["depends_on"])}

    # --- questions --------------------------------------------------------------------------------------------------

    def ask(
        self,
        task: Named,
        text: str,
        kind: str = "input",
        options: Iterable[Any] = (),
        wait: float | None = None,
        *,
        claim: Named | None = None,
        worker: str | None = None,
        key: str | None = None,
        **fields: Any,
    ) -> dict[str, Any]:
        """Ask a person. With `wait`, wait up to so many seconds for the answer."""
        args = {"task": self._task(task), **proof_of(claim, worker)}
        question = self._question_move("ask", key=key, text=text, kind=kind, options=list(options) or None, **args, **fields)
        return self._wait_after_asking(question, wait) if wait else question

    def _wait_after_asking(self, question: dict[str, Any], seconds: float) -> dict[str, Any]:
        """As `wait_for`. If the desk cannot be read, StillWaiting names the question, so that it is not asked twice."""
        try:
            return self.wait_for(question, seconds)
        except StoreTrouble as trouble:
            raise answer_unreadable(question, trouble) from None

    def check_question(
        self, text: str, kind: str = "input", options: Iterable[Any] = (), *, project: str | None = None, **fields: Any
    ) -> None:
        """Raises what `ask` would raise for these arguments, about a task of that project."""
        from ..core.questions import trial

        args = say("ask", self.who, text=text, kind=kind, options=list(options) or None, **fields).args
        rows = self.desk.read_stored(lambda r: r.projects())
        own, shared = next(row[2:4] for row in rows if row[0] == (project or self.project))
        settings = self.desk.store.settings(own, shared)
        trial(args, settings)
        if self.who.role == "agent":
            from ..desk import rate_limits

            rate_limits.check(self.desk, settings)

    def flag(
        self,
        task: Named,
        text: str,
        reason: str = "decision_needed",
        kind: str = "escalation",
        *,
        claim: Named | None = None,
        worker: str | None = None,
        key: str | None = None,
        **fields: Any,
    ) -> dict[str, Any]:
        """Stop and hand the task to a person."""
        args = {"task": self._task(task), **proof_of(claim, worker)}
        return self._move("flag", key=key, text=text, reason=reason, kind=kind, **args, **fields)

    def wait_for(self, question: Named, seconds: float) -> dict[str, Any]:
        """The question, as soon as it is closed or after so many seconds."""
        number = self._question(question)
        if number is None:
            number = self._about(question).get("question_id")
        if number is None:
            raise NotFound("There is no question to wait for", hint="A question is named like Q17.")
        end = clock_time.monotonic() + seconds
        while True:
            reply = self._shown_question(number)
            left = end - clock_time.monotonic()
            if reply["status"] != "pending" or not left > 0:
                return reply
            self.desk.wait(min(left, 1.0))

    def answer(
        self,
        question: Named,
        value: Any = None,
        text: str = "",
        verdict: str | None = None,
        *,
        restart: bool = False,
        signal: dict[str, Any] | None = None,
        key: str | None = None,
    ) -> dict[str, Any]:
        """Answer a question. Without a `verdict`, the value decides between yes and no; without a value, the answer is yes.

        `signal`: in a run, the outcome that the asking call of the script returns.
        """
        args = {"value": value, "text": text, "verdict": verdict, "restart": restart, "signal": signal}
        return self._question_move("answer", key=key, **args, **self._about(question))

    def respond(self, question: Named, text: str, *, restart: bool = False, key: str | None = None) -> dict[str, Any]:
        """Answer with a text."""
        return self.answer(question, text, restart=restart, key=key)

    def use(
        self,
        question: Named,
        by: str,
        action: Any = None,
        *,
        digest: str | None = None,
        claim: Named | None = None,
        worker: str | None = None,
        key: str | None = None,
    ) -> dict[str, Any]:
        """Record that a call uses a permission, just before the call: only once, and only for this action."""
        if digest is None:
            digest = digest_of(action)
        return self._question_move("use", key=key, by=by, digest=digest, **proof_of(claim, worker), **self._about(question))

    def await_person(
        self,
        task: Named,
        kind: str,
        text: str | None = None,
        *,
        reviewer: str | None = None,
        claim: Named | None = None,
        worker: str | None = None,
        fields: dict[str, Any] | None = None,
        key: str | None = None,
    ) -> dict[str, Any]:
        """Make it a person's turn. Without `text` and `reviewer`, an open question of that kind is enough.

        Replaces open questions that the actor may withdraw. `fields` are changed in the same move, as by `update`.
        """
        again = text is None and reviewer is None
        args = {"task": self._task(task), "kind": kind, "text": text, "reviewer": reviewer, "fields": fields}
        return self._move("flag", key=key, once=again, replace=True, **args, **proof_of(claim, worker))


def answer_unreadable(question: dict[str, Any], trouble: StoreTrouble) -> StillWaiting:
    """The error for a question that was asked while its answer cannot be read."""
    name = question["id"]
    words, hint = f"{name} was asked, but its answer cannot be read", f"Read it with: turn show {name}"
    error = StillWaiting(words, reason=str(trouble), hint=hint)
    error.question = name
    return error


def _account(details: str, issues: Iterable[str]) -> dict[str, Any]:
    return {"details": details or None, "issues": ([issues] if isinstance(issues, str) else list(issues)) or None}

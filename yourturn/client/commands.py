"""The verbs: everything that changes something."""

from __future__ import annotations

import time as clock_time
from collections.abc import Iterable
from typing import Any

from ..core.actions import say
from ..core.canonical_json import digest as digest_of
from ..core.errors import Invalid, NotFound, StillWaiting, StoreTrouble
from ..core.fields import duration
from ..core.model import Ref
from .refs import Named, Names


class Saying(Names):
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
        needs = self._tasks(depends_on)
        where = project
        above = self._task(parent) if parent is not None else None
        return self._say("create", key=key, title=title, project=where or self.project, parent=above, depends_on=needs, **fields)

    def update(
        self, task: Named, *, claim: Named | None = None, worker: str | None = None, key: str | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Change fields. An agent shows the claim for what it holds."""
        return self._say("update", key=key, task=self._task(task), fields=fields, **_proof(claim, worker))

    def note(self, task: Named, text: str, *, key: str | None = None) -> dict[str, Any]:
        return self._say("note", key=key, task=self._about(task)["task"], text=text)

    def vet(self, task: Named, *, key: str | None = None) -> dict[str, Any]:
        return self._say("vet", key=key, task=self._task(task))

    def depend(self, task: Named, *needs: Named, key: str | None = None) -> dict[str, Any]:
        """Make a task wait for others."""
        return self._say("dep_add", key=key, task=self._task(task), needs=self._refs(needs))

    def undepend(self, task: Named, *needs: Named, key: str | None = None) -> dict[str, Any]:
        return self._say("dep_remove", key=key, task=self._task(task), needs=self._refs(needs))

    def _refs(self, named: Iterable[Named]) -> list[Ref]:
        ids = [self._task(other) for other in named]
        return [Ref(t.id, t.key, t.state, t.reason) for t in self.desk.read(lambda r: r.tasks(ids=ids))]

    def cancel(self, task: Named, reason: str = "", *, key: str | None = None) -> dict[str, Any]:
        return self._say("cancel", key=key, task=self._task(task), reason=reason)

    def close(self, task: Named | None = None, reason: str = "", *, key: str | None = None) -> dict[str, Any] | None:
        """Close a task: it is done, whatever its state. Without a task, close the desk itself."""
        if task is not None:
            return self._say("close", key=key, task=self._task(task), reason=reason)
        self._shut()
        return None

    def reopen(self, task: Named, reason: str = "", *, key: str | None = None) -> dict[str, Any]:
        return self._say("reopen", key=key, task=self._task(task), reason=reason)

    def accept(self, task: Named, reason: str = "", *, key: str | None = None) -> dict[str, Any]:
        return self._say("accept", key=key, task=self._task(task), reason=reason)

    def resolve(self, task: Named, reason: str = "", *, key: str | None = None) -> dict[str, Any]:
        return self._say("resolve", key=key, task=self._task(task), reason=reason)

    def defer(
        self, task: Named, until: str | int | None = None, reason: str = "", *, key: str | None = None
    ) -> dict[str, Any]:
        return self._say("defer", key=key, task=self._task(task), until=self._moment(until), reason=reason)

    def wake(self, task: Named, *, key: str | None = None) -> dict[str, Any]:
        return self._say("wake", key=key, task=self._task(task))

    def _moment(self, given: str | int | None) -> int | None:
        """A date, in the reader's own time zone unless it names one; or '2d' from now."""
        if given is None or isinstance(given, int):
            return given
        from datetime import datetime

        try:
            return int(datetime.fromisoformat(given).astimezone().timestamp() * 1_000_000)
        except (ValueError, OverflowError):
            pass
        try:
            return self._now() + duration(given)
        except Invalid:
            raise Invalid(f"{given[:40]!a} is no time", hint="Like 2d, 2026-12-24 or 2026-12-24T18:00.") from None

    def _now(self) -> int:
        return self.desk.read(lambda r: r.now)

    # --- claims -----------------------------------------------------------------------------------------------------

    def claim(self, task: Named, worker: str, *, lease: Any = None, key: str | None = None) -> dict[str, Any]:
        found: dict[str, Any] = self.do(
            "claim", key=key, task=self._task(task), worker=worker, lease=lease, secret=self.desk.new_secret(), look=self._claimed
        )
        return found

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
        """The next task and a claim on it, or None. With `host`, sessions of other machines are left to these for a minute.

        `runs`: also tasks whose body is a script; only who can run one should take it.

        `completing`: a claim whose work is finished. It is completed and the next task taken in one commit.
        """
        within = self._task(epic) if epic is not None else None
        where = self._within(project)
        first = None
        if completing is not None:
            own = None if key is None else digest_of([key, "completing"])  # kept also where there is no next task
            first = say("complete", self.who, key=own, summary=summary, **self._hold(completing, None))
        found: dict[str, Any] | None = self.desk.claim_next(
            worker, project=where, epic=within, role=role, host=host, lease=lease, runs=runs, first=first, key=key,
            reply=self._claimed,
        )  # fmt: skip
        return found

    def heartbeat(
        self, claim: Named, *, worker: str | None = None, proof: str | None = None, key: str | None = None
    ) -> dict[str, Any]:
        return self._say("heartbeat", key=key, **self._hold(claim, worker, proof))

    def release(
        self, claim: Named, reason: str = "", *, worker: str | None = None, proof: str | None = None, key: str | None = None
    ) -> dict[str, Any]:
        return self._say("release", key=key, reason=reason, **self._hold(claim, worker, proof))

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
        """`steps`: of a run, what its script has done since, in the same commit. So also in complete, fail and flag."""
        held = self._hold(claim, worker, proof)
        return self._say("park", key=key, until=self._moment(until), steps=list(steps) or None, **held)

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
        """`details`: what a reviewer should know; `issues`: problems that were seen. Both are kept as a note.

        `journal`: a run ends when its script says so, and that is who knows the journal.
        """
        held = {**self._hold(claim, worker, proof), **_account(details, issues)}
        return self._say("complete", key=key, summary=summary, steps=list(steps) or None, journal=journal, **held)

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
        held = {**self._hold(claim, worker, proof), **_account(details, issues)}
        return self._say("fail", key=key, reason=reason, failure=failure, steps=list(steps) or None, journal=journal, **held)

    def stop(self, task: Named, reason: str = "", *, key: str | None = None) -> dict[str, Any]:
        """A person ends a task as stuck."""
        return self._say("stop", key=key, task=self._task(task), reason=reason)

    def decompose(
        self,
        claim: Named,
        children: Iterable[str | dict[str, Any]],
        *,
        worker: str | None = None,
        proof: str | None = None,
        key: str | None = None,
    ) -> dict[str, Any]:
        named = [self._child(child) for child in children]
        return self._say("decompose", key=key, children=named, **self._hold(claim, worker, proof))

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
        """Ask a person. With `wait`, look for so many seconds whether a quick one answers."""
        args = {"task": self._task(task), **_proof(claim, worker)}
        found = self._ask("ask", key=key, text=text, kind=kind, options=list(options) or None, **args, **fields)
        return self._heard(found, wait) if wait else found

    def _heard(self, asked: dict[str, Any], seconds: float) -> dict[str, Any]:
        """What was asked, after at most so many seconds. Where nobody can look any more, the asker is told what it asked."""
        try:
            return self.wait_for(asked, seconds)
        except StoreTrouble as trouble:
            raise unheard(asked, trouble) from None

    def check_question(
        self, text: str, kind: str = "input", options: Iterable[Any] = (), *, project: str | None = None, **fields: Any
    ) -> None:
        """Would `ask` take this, about some task of that project? Raises what `ask` would."""
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
        args = {"task": self._task(task), **_proof(claim, worker)}
        return self._say("flag", key=key, text=text, reason=reason, kind=kind, **args, **fields)

    def wait_for(self, question: Named, seconds: float) -> dict[str, Any]:
        """The question, answered or not, after at most so many seconds."""
        number = self._question(question)
        if number is None:
            number = self._about(question).get("question_id")
        if number is None:
            raise NotFound("There is no question to wait for", hint="A question is named like Q17.")
        ends = clock_time.monotonic() + seconds
        while True:
            found = self._shown_question(number)
            left = ends - clock_time.monotonic()
            if found["status"] != "pending" or not left > 0:
                return found
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
        """Without a `verdict`, the value says yes or no; without a value either, it is a plain yes.

        `signal`: of a run, what the agent that asked has come to with the person; its call returns that.
        """
        args = {"value": value, "text": text, "verdict": verdict, "restart": restart, "signal": signal}
        return self._ask("answer", key=key, **args, **self._about(question))

    def respond(self, question: Named, text: str, *, restart: bool = False, key: str | None = None) -> dict[str, Any]:
        """Answer in words."""
        return self.answer(question, text, restart=restart, key=key)

    def approve(
        self, named: Named, text: str = "", value: Any = None, *, restart: bool = False, key: str | None = None
    ) -> dict[str, Any]:
        return self._say("approve", key=key, value=value, text=text, restart=restart, **self._about(named))

    def reject(self, named: Named, text: str = "", *, restart: bool = False, key: str | None = None) -> dict[str, Any]:
        return self._say("reject", key=key, text=text, restart=restart, **self._about(named))

    def withdraw(
        self,
        question: Named,
        reason: str = "",
        *,
        claim: Named | None = None,
        worker: str | None = None,
        key: str | None = None,
    ) -> dict[str, Any]:
        """Take a question off the desk. An agent shows the claim for one of its own that holds the task up."""
        return self._ask("withdraw", key=key, reason=reason, **_proof(claim, worker), **self._about(question))

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
        """Say, just before it is done, that a permission is used: by this call and no other, for exactly this action."""
        if digest is None:
            digest = digest_of(action)
        return self._ask("use", key=key, by=by, digest=digest, **_proof(claim, worker), **self._about(question))

    def assign(self, question: Named, reviewer: str, *, key: str | None = None) -> dict[str, Any]:
        return self._ask("assign", key=key, reviewer=reviewer, **self._about(question))

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
        """Make it a person's turn, saying only of which kind. It stays as it is where such a question is open already.

        What the task waited for before is replaced, as far as the speaker may take it off the desk. `fields` are changed with
        it, as `update` does.
        """
        again = text is None and reviewer is None
        args = {"task": self._task(task), "kind": kind, "text": text, "reviewer": reviewer, "fields": fields}
        return self._say("flag", key=key, once=again, replace=True, **args, **_proof(claim, worker))

    def hand_back(self, task: Named, *, fields: dict[str, Any] | None = None, key: str | None = None) -> dict[str, Any]:
        """Return a task to agents without an answer. `fields` are changed with it, as `update` does."""
        return self._say("hand_back", key=key, task=self._task(task), fields=fields)


def unheard(asked: dict[str, Any], trouble: StoreTrouble) -> StillWaiting:
    """A question was asked, and whether it is answered cannot be seen now."""
    name = asked["id"]
    words, hint = f"{name} is asked, and its answer cannot be read", f"Look with: turn show {name}"
    error = StillWaiting(words, reason=str(trouble), hint=hint)
    error.question = name
    return error


def _account(details: str, issues: Iterable[str]) -> dict[str, Any]:
    return {"details": details or None, "issues": ([issues] if isinstance(issues, str) else list(issues)) or None}


def _proof(claim: Named | None, worker: str | None) -> dict[str, Any]:
    """A claim's token, from the token itself or from what `claim` returned."""
    while isinstance(claim, dict):
        claim = claim.get("claim") or claim.get("token")
    return {"claim": claim, "worker": worker}

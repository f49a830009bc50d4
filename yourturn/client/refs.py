"""References (keys, numbers, questions, claims) and the base of the client."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

from ..core.actions import VERBS, say
from ..core.errors import Invalid, NotFound
from ..core.fields import duration, project_key
from ..core.model import Action, Task, Who
from ..core.references import QUESTION
from ..db.reads import Reader
from ..desk.desk import Desk
from ..desk.move import Done
from . import serialize

_TOKEN = re.compile(r"([A-Z][A-Z0-9_]*-\d+)\.\d+\.\w+")

Named = str | int | dict[str, Any]
F = TypeVar("F", bound=Callable[..., Any])


def not_served(method: F) -> F:
    """Mark a method that HTTP does not serve by its name: the remote client implements it itself."""
    method.served = False  # type: ignore[attr-defined]
    return method


def needs_database(method: F) -> F:
    """Mark a method that needs direct access to the database."""
    method.needs_database = True  # type: ignore[attr-defined]
    return not_served(method)


@cache
def key_name(method: Callable[..., Any]) -> str:
    """The parameter of a method that takes an idempotency key, or ''. `key` is the project's where there is a `once`."""
    import inspect

    parameters = inspect.signature(method).parameters
    return next((name for name in ("once", "key") if name in parameters), "")


def proof_of(claim: Named | None, worker: str | None) -> dict[str, Any]:
    """The proof of a claim: its token, from the token itself or from what `claim` returned, and the worker's name."""
    while isinstance(claim, dict):
        claim = claim.get("claim") or claim.get("token")
    return {"claim": claim, "worker": worker}


class ClientBase:
    def __init__(self, desk: Desk, project: str | None = None) -> None:
        self.desk = desk
        self._project = project_key("project", project) if project else None
        self._first: str | None = None
        self._known: frozenset[str] = frozenset()
        self._version: int | None = None  #: moves are refused unless the task is at this version
        self._shared: dict[str, Any] = {}  #: shared with the clients that `as_` returns

    def _close_desk(self) -> None:
        threads = self._shared.pop("threads", None)
        if threads is not None:
            threads.close()
        self.desk.close()

    @property
    def who(self) -> Who:
        return self.desk.who

    @property
    def project(self) -> str:
        """The default project: the one given to `connect`, else the first of the desk."""
        if self._project is not None:
            return self._project
        if self._first is None:
            keys = self.desk.projects()
            if not keys:
                raise NotFound("This desk has no project yet", hint="Create one with: turn project create PROJ")
            self._first = keys[0]
        return self._first

    def _within(self, project: str | None) -> str | None:
        """The project that a list is limited to, if any. Raises NotFound for an unknown one."""
        key = project_key("project", project) if project else self._project
        if key is not None and key not in self._known:  # projects are never deleted
            self._known = frozenset(self.desk.projects())
            if key not in self._known:
                raise NotFound(f"There is no project {key}", hint="See them with: turn project list")
        return key

    # --- references ------------------------------------------------------------------------------------------------------

    def _find(self, text: str) -> tuple[int, int | None]:
        return self.desk.find(text, lambda: self.project)

    def _task(self, named: Named) -> int:
        """A task's row id."""
        while isinstance(named, dict):
            named = named.get("key") or named.get("task") or ""
        task, question = self._find(str(named))
        if question is not None:
            raise NotFound(f"There is no task {named}", hint=f"Q{question} is a question: turn show Q{question}")
        return task

    def _tasks(self, named: Named | Iterable[Named]) -> list[int]:
        return [self._task(ref) for ref in ([named] if isinstance(named, (str, int, dict)) else named)]

    def _question(self, named: Named) -> int | None:
        """A question's number, if the reference is written like Q17."""
        text = str(named.get("id") or "") if isinstance(named, dict) else str(named).strip()
        match = QUESTION.fullmatch(text)
        return int(match[1]) if match and text[0] == "Q" else None

    def _about(self, named: Named) -> dict[str, Any]:
        """task= and question_id= for an action about a question; a task's key stands for its open question."""
        if isinstance(named, dict):
            number = self._question(named)
            if number is None:
                return {"task": self._task(named)}
            named = f"Q{number}"
        task, question = self._find(str(named))
        return {"task": task} if question is None else {"task": task, "question_id": question}

    def _hold(self, claim: Named, worker: str | None, proof: str | None = None) -> dict[str, Any]:
        """task= and the proof of a claim, from a claim, its token, or a task."""
        if isinstance(claim, dict) and "claim" in claim and "task" in claim:
            claim = claim["claim"]
        if isinstance(claim, dict) and "token" in claim:
            return {"task": self._task(claim.get("task", "")), "claim": claim["token"], "worker": worker}
        match = _TOKEN.fullmatch(claim) if isinstance(claim, str) else None
        if match:
            return {"task": self._task(match[1]), "claim": claim, "worker": worker}
        return {"task": self._task(claim), "claim": proof, "worker": worker}

    def claim_is_for(self, token: str, task: Named) -> bool:
        """False if this is the token of another task's claim. A malformed token passes, so that the move refuses it."""
        match = _TOKEN.fullmatch(token)
        return match is None or self._task(match[1]) == self._about(task)["task"]

    def _moment(self, time: str | int | None) -> int | None:
        """A date, in the local time zone unless it names one; or a duration from now, like '2d'."""
        if time is None or isinstance(time, int):
            return time
        from datetime import datetime

        try:
            return int(datetime.fromisoformat(time).astimezone().timestamp() * 1_000_000)
        except (ValueError, OverflowError):
            pass
        try:
            return self.desk.read(lambda r: r.now) + duration(time)
        except Invalid:
            raise Invalid(f"Invalid time {time[:40]!a}", hint="Like 2d, 2026-12-24 or 2026-12-24T18:00.") from None

    # --- moves ------------------------------------------------------------------------------------------------------

    @not_served
    def do(self, verb: str, /, *, key: str | None = None, look: Any = None, then: Action | None = None, **args: Any) -> Any:
        """Make a move by its verb, and then the move `then`. Returns what `look` reads at the end of the same transaction."""
        return self.desk.do(say(verb, self.who, key=key, version=self._version, **args), look, then)

    def _check(self, operation: str) -> None:
        """Raises NotAllowed if this actor may not make this read."""
        from ..core import permissions

        permissions.check(self.who, operation)

    def _verb(
        self, verb: str, named: Named, key: str | None, *, proof: str | None = None, claim: Named | None = None,
        worker: str | None = None, **args: Any,
    ) -> dict[str, Any]:  # fmt: skip
        """The body of the generated methods (verbs.py). A verb about a question returns the question, others the task."""
        row = VERBS[verb]
        subject = row.call.partition(",")[0]
        if "until" in args:
            args["until"] = self._moment(args["until"])
        if subject == "claim":
            return self._move(verb, key=key, **args, **self._hold(named, worker, proof))
        if "claim" in row.args:
            args |= proof_of(claim, worker)
        if subject == "task":
            return self._move(verb, key=key, **args, task=self._task(named))
        move = self._question_move if subject == "question" else self._move
        return move(verb, key=key, **args, **self._about(named))

    def _move(self, verb: str, /, **args: Any) -> dict[str, Any]:
        """Make a move, return the task."""
        reply: dict[str, Any] = self.do(verb, look=self._moved, **args)
        return reply

    def _question_move(self, verb: str, /, **args: Any) -> dict[str, Any]:
        """Make a move, return the question."""
        reply: dict[str, Any] = self.do(verb, look=_closed if verb in ("answer", "withdraw") else _asked, **args)
        return reply

    def _moved(self, r: Reader, done: Done) -> dict[str, Any]:
        """The reply of a move: the task, its open questions, and what the move changed. `show` returns the whole history."""
        assert done.task is not None
        return serialize.task(*r.reply(done.task, done.question, done.at)) | serialize.follow_ups(
            r.follow_ups(done.task, done.at)
        )

    def _claimed(self, r: Reader, done: Done) -> dict[str, Any]:
        assert done.claim is not None
        return {"task": self._moved(r, done), "claim": serialize.claim(done.claim)}

    def show(self, named: Named) -> dict[str, Any]:
        """A task with its history, or a question."""
        number = self._question(named)
        if number is not None:
            with suppress(NotFound):  # it may be an old id
                return self._shown_question(number)
        about = self._about(named)
        if "question_id" in about:
            return self._shown_question(about["question_id"])
        return self.desk.read(lambda r: self._encode(r, [r.task(about["task"])])[0])

    def _shown_question(self, number: int) -> dict[str, Any]:
        return self.desk.read(lambda r: serialize.question(*r.question(number)))

    def _encode(self, r: Reader, tasks: list[Task], whole: bool = True) -> list[dict[str, Any]]:
        """`whole`: with their history; otherwise with open questions and steps only, as there may be many tasks."""
        details = r.details(tasks, whole)
        return [serialize.task(task, details[task.id]) for task in tasks]


def _asked(r: Reader, done: Done) -> dict[str, Any]:
    assert done.question is not None
    return serialize.question(*r.question(done.question))


def _closed(r: Reader, done: Done) -> dict[str, Any]:
    """The question, and the state of its task after the move: where the answer led."""
    assert done.task is not None
    state = {"task_state": done.state or r.task(done.task).state}
    return {**_asked(r, done), **state, **serialize.follow_ups(r.follow_ups(done.task, done.at))}

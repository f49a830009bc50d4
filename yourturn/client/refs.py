"""What things are called: keys, numbers, questions, claims; and how an action is said."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from typing import Any

from ..core.actions import say
from ..core.errors import NotFound
from ..core.fields import project_key
from ..core.model import Action, Task, Who
from ..core.references import QUESTION
from ..db.reads import Reader
from ..desk.desk import Desk
from ..desk.move import Done
from . import serialize

_TOKEN = re.compile(r"([A-Z][A-Z0-9_]*-\d+)\.\d+\.\w+")

Named = str | int | dict[str, Any]


@cache
def key_name(method: Callable[..., Any]) -> str:
    """The parameter of a method that takes an idempotency key, or ''. `key` is the project's where there is a `once`."""
    import inspect

    parameters = inspect.signature(method).parameters
    return next((name for name in ("once", "key") if name in parameters), "")


class Names:
    def __init__(self, desk: Desk, project: str | None = None) -> None:
        self.desk = desk
        self._project = project_key("project", project) if project else None
        self._first: str | None = None
        self._known: frozenset[str] = frozenset()
        self._version: int | None = None  #: what is said holds only for the task as it was at this version
        self._beside: dict[str, Any] = {}  #: what this desk shares with the same desk for somebody else

    def _shut(self) -> None:
        threads = self._beside.pop("threads", None)
        if threads is not None:
            threads.close()
        self.desk.close()

    @property
    def who(self) -> Who:
        return self.desk.who

    @property
    def project(self) -> str:
        """The default project: the one that was named, else the desk's first."""
        if self._project is not None:
            return self._project
        if self._first is None:
            keys = self.desk.projects()
            if not keys:
                raise NotFound("This desk has no project yet", hint="Make one with: turn project create PROJ")
            self._first = keys[0]
        return self._first

    def _within(self, project: str | None) -> str | None:
        """The project that a list is about, if it is about one; a wrong name is no empty list."""
        key = project_key("project", project) if project else self._project
        if key is not None and key not in self._known:  # a project is never taken away
            self._known = frozenset(self.desk.projects())
            if key not in self._known:
                raise NotFound(f"There is no project {key}", hint="See them with: turn project list")
        return key

    # --- names ------------------------------------------------------------------------------------------------------

    def _meant(self, text: str) -> tuple[int, int | None]:
        return self.desk.find(text, lambda: self.project)

    def _task(self, named: Named) -> int:
        """A task's row id."""
        while isinstance(named, dict):
            named = named.get("key") or named.get("task") or ""
        task, question = self._meant(str(named))
        if question is not None:
            raise NotFound(f"There is no task {named}", hint=f"Q{question} is a question: turn show Q{question}")
        return task

    def _tasks(self, named: Named | Iterable[Named]) -> list[int]:
        return [self._task(one) for one in ([named] if isinstance(named, (str, int, dict)) else named)]

    def _question(self, named: Named) -> int | None:
        """A question's number, if it is named as the desk prints it."""
        text = str(named.get("id") or "") if isinstance(named, dict) else str(named).strip()
        found = QUESTION.fullmatch(text)
        return int(found[1]) if found and text[0] == "Q" else None

    def _about(self, named: Named) -> dict[str, Any]:
        """task= and question_id= for an action about a question, or about the one that a task's key stands for."""
        if isinstance(named, dict):
            number = self._question(named)
            if number is None:
                return {"task": self._task(named)}
            named = f"Q{number}"
        task, question = self._meant(str(named))
        return {"task": task} if question is None else {"task": task, "question_id": question}

    def _hold(self, claim: Named, worker: str | None, proof: str | None = None) -> dict[str, Any]:
        """task= and the proof of a claim, from whatever names one."""
        if isinstance(claim, dict) and "claim" in claim and "task" in claim:
            claim = claim["claim"]
        if isinstance(claim, dict) and "token" in claim:
            return {"task": self._task(claim.get("task", "")), "claim": claim["token"], "worker": worker}
        found = _TOKEN.fullmatch(claim) if isinstance(claim, str) else None
        if found:
            return {"task": self._task(found[1]), "claim": claim, "worker": worker}
        return {"task": self._task(claim), "claim": proof, "worker": worker}

    def claim_is_for(self, token: str, task: Named) -> bool:
        """Does this token speak of that task? One that is not a token at all does, so that it is refused."""
        found = _TOKEN.fullmatch(token)
        return found is None or self._task(found[1]) == self._about(task)["task"]

    # --- saying -----------------------------------------------------------------------------------------------------

    def do(self, verb: str, /, *, key: str | None = None, look: Any = None, then: Action | None = None, **args: Any) -> Any:
        """Say any verb; returns what `look` sees right after it (and after `then`), in the same transaction."""
        return self.desk.do(say(verb, self.who, key=key, version=self._version, **args), look, then)

    def _may(self, operation: str) -> None:
        """Looks that are not for everybody ask the table, like the verbs do."""
        from ..core import permissions

        permissions.check(self.who, operation)

    def _say(self, verb: str, /, **args: Any) -> dict[str, Any]:
        """Say a verb, return the task."""
        found: dict[str, Any] = self.do(verb, look=self._moved, **args)
        return found

    def _ask(self, verb: str, /, **args: Any) -> dict[str, Any]:
        """Say a verb, return the question."""
        found: dict[str, Any] = self.do(verb, look=_closed if verb in ("answer", "withdraw") else _asked, **args)
        return found

    def _moved(self, r: Reader, done: Done) -> dict[str, Any]:
        """What a move answers: the task, its open questions, and what the move made. The whole history is for `show`."""
        assert done.task is not None
        return serialize.task(*r.reply(done.task, done.question, done.at)) | serialize.follow_ups(
            r.follow_ups(done.task, done.at)
        )

    def _claimed(self, r: Reader, done: Done) -> dict[str, Any]:
        assert done.claim is not None
        return {"task": self._moved(r, done), "claim": serialize.claim(done.claim)}

    def show(self, named: Named) -> dict[str, Any]:
        """A task with everything that hangs on it; or a question."""
        number = self._question(named)
        if number is not None:
            with suppress(NotFound):  # then it is an old id, or nothing
                return self._shown_question(number)
        about = self._about(named)
        if "question_id" in about:
            return self._shown_question(about["question_id"])
        return self.desk.read(lambda r: self._encode(r, [r.task(about["task"])])[0])

    def _shown_question(self, number: int) -> dict[str, Any]:
        return self.desk.read(lambda r: serialize.question(*r.question(number)))

    def _encode(self, r: Reader, tasks: list[Task], whole: bool = True) -> list[dict[str, Any]]:
        """`whole`: with everything that hangs on them; else, where there may be many, with open questions and steps only."""
        details = r.details(tasks, whole)
        return [serialize.task(task, details[task.id]) for task in tasks]


def _asked(r: Reader, done: Done) -> dict[str, Any]:
    assert done.question is not None
    return serialize.question(*r.question(done.question))


def _closed(r: Reader, done: Done) -> dict[str, Any]:
    """The question, and the state of its task after the move: where the answer led."""
    assert done.task is not None
    led = {"task_state": done.state or r.task(done.task).state}
    return {**_asked(r, done), **led, **serialize.follow_ups(r.follow_ups(done.task, done.at))}

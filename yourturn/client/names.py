"""What things are called: keys, numbers, questions, claims; and how an action is said."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from .. import wire
from ..core import law
from ..core.errors import NotFound
from ..core.fields import project_key
from ..core.model import Task, Who
from ..desk import Desk, Done
from ..store.reads import Reader

_KEY = re.compile(r"([A-Za-z][A-Za-z0-9_]*)-(\d{1,15})")
QUESTION = re.compile(r"[qQ](0|[1-9]\d{0,14})")
_TOKEN = re.compile(r"([A-Z][A-Z0-9_]*-\d+)\.\d+\.\w+")

Named = str | int | dict[str, Any]


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

    def _task(self, named: Named) -> int:
        """A task's row id."""
        if isinstance(named, dict):
            named = named.get("key") or named.get("task") or ""
            if isinstance(named, dict):
                return self._task(named)
        text = key = str(named).strip()
        if text.isascii() and text.isdigit() and len(text) < 16:
            key = f"{self.project}-{int(text)}"
        found = _KEY.fullmatch(key)
        if found:
            return self.desk.find(found[1].upper(), f"{found[1].upper()}-{int(found[2])}", text)
        if not text or not text.isprintable() or len(text) > 200:
            raise NotFound(f"There is no task {text[:60]!a}", hint="A task is named like PROJ-42.")
        return self.desk.find("", text, text)

    def _tasks(self, named: Named | Iterable[Named]) -> list[int]:
        return [self._task(one) for one in ([named] if isinstance(named, (str, int, dict)) else named)]

    def _question(self, named: Named) -> int | None:
        """A question's number, if that is what is meant."""
        if isinstance(named, dict):
            named = named.get("id") or ""
        found = QUESTION.fullmatch(str(named).strip())
        return int(found[1]) if found else None

    def _about(self, named: Named) -> dict[str, Any]:
        """task= and question_id= for an action about a question, or about the one that a task's key stands for."""
        number = self._question(named)
        if number is None:
            if isinstance(named, dict) and "status" in named:
                named = named["task"]
            return {"task": self._task(named)}
        try:
            return {"task": self.desk.task_of(number), "question_id": number}
        except NotFound as error:
            return {"task": self._named_like_a_question(named, error)}

    def _named_like_a_question(self, named: Named, error: NotFound) -> int:
        """q12 is a question's number, unless there is none and a task had that id in another tracker."""
        found = self.desk.elsewhere(str(named).strip()) if isinstance(named, str) else None
        if found is None:
            raise error
        return found

    def _hold(self, claim: Named, worker: str | None, proof: str | None = None) -> dict[str, Any]:
        """task= and the proof of a claim, from whatever names one."""
        if isinstance(claim, dict) and "claim" in claim and "task" in claim:
            claim = claim["claim"]
        if isinstance(claim, dict) and "token" in claim:
            return {"task": self._task(claim["task"]), "claim": claim["token"], "worker": worker}
        found = _TOKEN.fullmatch(claim) if isinstance(claim, str) else None
        if found:
            return {"task": self._task(found[1]), "claim": claim, "worker": worker}
        return {"task": self._task(claim), "claim": proof, "worker": worker}

    def claim_is_for(self, token: str, task: Named) -> bool:
        """Does this token speak of that task? One that is not a token at all does, so that it is refused."""
        found = _TOKEN.fullmatch(token)
        return found is None or self._task(found[1]) == self._about(task)["task"]

    # --- saying -----------------------------------------------------------------------------------------------------

    def do(self, verb: str, /, *, key: str | None = None, look: Any = None, **args: Any) -> Any:
        """Say any verb; returns what `look` sees right after it, in the same transaction."""
        return self.desk.do(law.say(verb, self.who, key=key, version=self._version, **args), look)

    def _may(self, operation: str) -> None:
        """Looks that are not for everybody ask the table, like the verbs do."""
        from ..core import access

        access.check(self.who, operation)

    def _say(self, verb: str, /, **args: Any) -> dict[str, Any]:
        """Say a verb, return the task."""
        found: dict[str, Any] = self.do(verb, look=self._moved, **args)
        return found

    def _ask(self, verb: str, /, **args: Any) -> dict[str, Any]:
        """Say a verb, return the question."""
        found: dict[str, Any] = self.do(verb, look=_asked, **args)
        return found

    def _moved(self, r: Reader, done: Done) -> dict[str, Any]:
        assert done.task is not None
        return self._encode(r, [r.task(done.task)])[0]

    def show(self, named: Named) -> dict[str, Any]:
        """A task with everything that hangs on it; or a question."""
        number = self._question(named)
        if number is not None:
            try:
                return self._shown_question(number)
            except NotFound as error:
                task = self._named_like_a_question(named, error)
        else:
            task = self._task(named)
        return self.desk.read(lambda r: self._encode(r, [r.task(task)])[0])

    def _shown_question(self, number: int) -> dict[str, Any]:
        return self.desk.read(lambda r: wire.question(*r.question(number)))

    def _encode(self, r: Reader, tasks: list[Task], whole: bool = True) -> list[dict[str, Any]]:
        """`whole`: with all steps of runs; else, where there may be many runs, with those that have not ended."""
        details = r.details(tasks, whole)
        return [wire.task(task, details[task.id]) for task in tasks]


def _asked(r: Reader, done: Done) -> dict[str, Any]:
    assert done.question is not None
    return wire.question(*r.question(done.question))

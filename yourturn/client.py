"""The Python API: the verbs as methods that take and return plain values.

    desk = yourturn.connect()
    task = desk.create("Add login")
    got = desk.claim_next("w1")
    asked = desk.ask(got["task"]["key"], "JWT or sessions?", options=["jwt", "sessions"], claim=got["claim"])

A task is named by its key ("PROJ-42"), a bare number in the default project, or the dictionary that another method
returned; a question by its id ("Q17"); a claim by the dictionary that `claim` gave, or its token.

What only a change needs is imported when one is made: reading is what the command does most.
"""

from __future__ import annotations

import builtins
import os
import re
import time as clock_time
from collections.abc import Iterable, Iterator
from typing import Any

from . import wire
from .core import law
from .core.errors import Invalid, NotFound
from .core.fields import duration, project_key
from .core.model import Ref, Task, Who
from .desk import Desk, Done
from .store.reads import Reader

_KEY = re.compile(r"([A-Za-z][A-Za-z0-9_]*)-(\d{1,15})")
_QUESTION = re.compile(r"[qQ](\d{1,15})")
_TOKEN = re.compile(r"([A-Z][A-Z0-9_]*-\d+)\.\d+\.\w+")

Named = str | int | dict[str, Any]


class Client:
    """A desk, spoken to in plain values."""

    def __init__(self, desk: Desk, project: str | None = None) -> None:
        self.desk = desk
        self._project = project_key("project", project) if project else None

    @property
    def who(self) -> Who:
        return self.desk.who

    def as_(self, who: Who) -> Client:
        return Client(self.desk.as_(who), self._project)

    @property
    def project(self) -> str:
        """The default project: the one that was named, else the desk's first."""
        if self._project is None:
            found = self.desk.read(lambda r: r.projects())
            if not found:
                raise NotFound("This desk has no project yet", hint="Make one with: turn project create PROJ")
            self._project = found[0][0]
        return self._project

    # --- names ------------------------------------------------------------------------------------------------------

    def _task(self, named: Named) -> int:
        """A task's row id."""
        if isinstance(named, dict):
            named = named.get("key") or named.get("task") or ""
            if isinstance(named, dict):
                return self._task(named)
        text = str(named).strip()
        if text.isascii() and text.isdigit() and len(text) < 16:
            text = f"{self.project}-{int(text)}"
        found = _KEY.fullmatch(text)
        if found:
            return self.desk.find(found[1].upper(), f"{found[1].upper()}-{int(found[2])}")
        if not text or not text.isprintable() or len(text) > 200:
            raise NotFound(f"There is no task {text[:60]!a}", hint="A task is named like PROJ-42.")
        return self.desk.find("", text)

    def _tasks(self, named: Named | Iterable[Named]) -> builtins.list[int]:
        return [self._task(one) for one in ([named] if isinstance(named, (str, int, dict)) else named)]

    def _question(self, named: Named) -> int | None:
        """A question's number, if that is what is meant."""
        if isinstance(named, dict):
            named = named.get("id") or ""
        found = _QUESTION.fullmatch(str(named).strip())
        return int(found[1]) if found else None

    def _about(self, named: Named) -> dict[str, int]:
        """task= and question= for an action about a question, or about the one that a task's key stands for."""
        number = self._question(named)
        if number is None:
            if isinstance(named, dict) and "status" in named:
                named = named["task"]
            return {"task": self._task(named)}
        return {"task": self.desk.question(number).task_id, "question": number}

    def _hold(self, claim: Named, worker: str | None, proof: str | None = None) -> dict[str, Any]:
        """task= and the proof of a claim, from whatever names one."""
        if isinstance(claim, dict) and "claim" in claim and "task" in claim:
            claim = claim["claim"]
        if isinstance(claim, dict) and "token" in claim:
            return {"task": self._task(claim["task"]), "claim": claim["token"], "worker": None}
        found = _TOKEN.fullmatch(claim) if isinstance(claim, str) else None
        if found:
            return {"task": self._task(found[1]), "claim": claim, "worker": None}
        return {"task": self._task(claim), "claim": proof, "worker": worker}

    def claim_is_for(self, token: str, task: Named) -> bool:
        """Does this token speak of that task? One that is not a token at all does, so that it is refused."""
        found = _TOKEN.fullmatch(token)
        return found is None or self._task(found[1]) == self._about(task)["task"]

    # --- saying -----------------------------------------------------------------------------------------------------

    def do(self, verb: str, *, key: str | None = None, **args: Any) -> Done:
        return self.desk.do(law.say(verb, self.who, key=key, **args))

    def _moved(self, done: Done) -> dict[str, Any]:
        assert done.task is not None
        return self._shown(done.task)

    def _asked(self, done: Done) -> dict[str, Any]:
        assert done.question is not None
        return self._shown_question(done.question)

    def _say(self, verb: str, **args: Any) -> dict[str, Any]:
        return self._moved(self.do(verb, **args))

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
        return self._say(
            "create", key=key, title=title, project=where or self.project, parent=above, depends_on=needs, **fields
        )

    def update(self, task: Named, *, key: str | None = None, **fields: Any) -> dict[str, Any]:
        return self._say("update", key=key, task=self._task(task), fields=fields)

    def note(self, task: Named, text: str, *, key: str | None = None) -> dict[str, Any]:
        number = self._question(task)
        return self._say("note", key=key, task=self._about(task)["task"] if number else self._task(task), text=text)

    def vet(self, task: Named) -> dict[str, Any]:
        return self._say("vet", task=self._task(task))

    def depend(self, task: Named, *needs: Named) -> dict[str, Any]:
        """Make a task wait for others."""
        return self._say("dep_add", task=self._task(task), needs=self._refs(needs))

    def undepend(self, task: Named, *needs: Named) -> dict[str, Any]:
        return self._say("dep_remove", task=self._task(task), needs=self._refs(needs))

    def _refs(self, named: Iterable[Named]) -> builtins.list[Ref]:
        ids = [self._task(other) for other in named]
        return [Ref(t.id, t.key, t.state, t.reason) for t in self.desk.read(lambda r: r.tasks(ids=ids))]

    def cancel(self, task: Named, reason: str = "") -> dict[str, Any]:
        return self._say("cancel", task=self._task(task), reason=reason)

    def close_task(self, task: Named, reason: str = "") -> dict[str, Any]:
        return self._say("close", task=self._task(task), reason=reason)

    def reopen(self, task: Named, reason: str = "") -> dict[str, Any]:
        return self._say("reopen", task=self._task(task), reason=reason)

    def accept(self, task: Named, reason: str = "") -> dict[str, Any]:
        return self._say("accept", task=self._task(task), reason=reason)

    def resolve(self, task: Named, reason: str = "") -> dict[str, Any]:
        return self._say("resolve", task=self._task(task), reason=reason)

    def defer(self, task: Named, until: str | int | None = None, reason: str = "") -> dict[str, Any]:
        return self._say("defer", task=self._task(task), until=self._moment(until), reason=reason)

    def wake(self, task: Named) -> dict[str, Any]:
        return self._say("wake", task=self._task(task))

    def _moment(self, given: str | int | None) -> int | None:
        """'2d' from now, or a date."""
        if given is None or isinstance(given, int):
            return given
        try:
            return self._now() + duration(given)
        except Invalid:
            from datetime import UTC, datetime

            try:
                found = datetime.fromisoformat(given)
            except ValueError:
                raise Invalid(f"{given[:40]!a} is no time", hint="Like 2d, 2026-12-24 or 2026-12-24T18:00.") from None
            moment = found if found.tzinfo else found.replace(tzinfo=UTC)
            return int(moment.timestamp() * 1_000_000)

    def _now(self) -> int:
        return self.desk.read(lambda r: r.now)

    # --- claims -----------------------------------------------------------------------------------------------------

    def claim(self, task: Named, worker: str, *, lease: Any = None, key: str | None = None) -> dict[str, Any]:
        done = self.do("claim", key=key, task=self._task(task), worker=worker, lease=lease, secret=_secret(key))
        return self._claimed(done)

    def claim_next(
        self,
        worker: str,
        *,
        project: str | None = None,
        epic: Named | None = None,
        role: str | None = None,
        lease: Any = None,
    ) -> dict[str, Any] | None:
        within = self._task(epic) if epic is not None else None
        where = project_key("project", project) if project else self._project
        done = self.desk.claim_next(worker, project=where, epic=within, role=role, lease=lease)
        return self._claimed(done) if done else None

    def _claimed(self, done: Done) -> dict[str, Any]:
        assert done.claim is not None
        return {"task": self._moved(done), "claim": wire.claim(done.claim)}

    def heartbeat(self, claim: Named, *, worker: str | None = None, proof: str | None = None) -> dict[str, Any]:
        return self._say("heartbeat", **self._hold(claim, worker, proof))

    def release(
        self, claim: Named, reason: str = "", *, worker: str | None = None, proof: str | None = None
    ) -> dict[str, Any]:
        return self._say("release", reason=reason, **self._hold(claim, worker, proof))

    def park(
        self, claim: Named, until: str | int | None = None, *, worker: str | None = None, proof: str | None = None
    ) -> dict[str, Any]:
        return self._say("park", until=self._moment(until), **self._hold(claim, worker, proof))

    def complete(
        self,
        claim: Named,
        summary: str = "",
        *,
        worker: str | None = None,
        proof: str | None = None,
        key: str | None = None,
    ) -> dict[str, Any]:
        return self._say("complete", key=key, summary=summary, **self._hold(claim, worker, proof))

    def fail(
        self,
        claim: Named,
        reason: str = "",
        *,
        failure: str = "error",
        worker: str | None = None,
        proof: str | None = None,
    ) -> dict[str, Any]:
        return self._say("fail", reason=reason, failure=failure, **self._hold(claim, worker, proof))

    def decompose(
        self,
        claim: Named,
        children: Iterable[str | dict[str, Any]],
        *,
        worker: str | None = None,
        proof: str | None = None,
    ) -> dict[str, Any]:
        named = [self._child(child) for child in children]
        return self._say("decompose", children=named, **self._hold(claim, worker, proof))

    def _child(self, child: Any) -> Any:
        if not isinstance(child, dict) or "depends_on" not in child:
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
        done = self.do("ask", key=key, text=text, kind=kind, options=list(options) or None, **args, **fields)
        found = self._asked(done)
        return self.wait_for(found, wait) if wait else found

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
        return self._moved(self.do("flag", key=key, text=text, reason=reason, kind=kind, **args, **fields))

    def wait_for(self, question: Named, seconds: float) -> dict[str, Any]:
        """The question, answered or not, after at most so many seconds."""
        number = self._question(question)
        if number is None:
            raise NotFound("There is no question to wait for")
        ends = clock_time.monotonic() + seconds
        while True:
            found = self._shown_question(number, true=True)
            left = ends - clock_time.monotonic()
            if found["status"] != "pending" or left <= 0:
                return found
            self.desk.wait(min(left, 1.0))

    def answer(
        self,
        question: Named,
        value: Any = None,
        text: str = "",
        verdict: str = "approved",
        *,
        restart: bool = False,
        key: str | None = None,
    ) -> dict[str, Any]:
        done = self.do(
            "answer", key=key, value=value, text=text, verdict=verdict, restart=restart, **self._about(question)
        )
        return self._asked(done)

    def approve(self, named: Named, text: str = "", value: Any = None, *, key: str | None = None) -> dict[str, Any]:
        return self._say("approve", key=key, value=value, text=text, **self._about(named))

    def reject(self, named: Named, text: str = "", *, key: str | None = None) -> dict[str, Any]:
        return self._say("reject", key=key, text=text, **self._about(named))

    def withdraw(self, question: Named, reason: str = "") -> dict[str, Any]:
        return self._asked(self.do("withdraw", reason=reason, **self._about(question)))

    def assign(self, question: Named, reviewer: str) -> dict[str, Any]:
        return self._asked(self.do("assign", reviewer=reviewer, **self._about(question)))

    def await_person(
        self, task: Named, kind: str, text: str | None = None, *, key: str | None = None
    ) -> dict[str, Any]:
        """Make it a person's turn, saying only of which kind. It stays as it is where such a question is open already."""
        found = self.show(task)
        if text is None and any(
            q["kind"] == kind and q["blocking"] and q["status"] == "pending" for q in found["questions"]
        ):
            return found
        return self._moved(self.do("flag", key=key, task=self._task(task), kind=kind, text=text))

    def hand_back(self, task: Named) -> dict[str, Any]:
        return self._say("hand_back", task=self._task(task))

    # --- reads ------------------------------------------------------------------------------------------------------

    def show(self, named: Named) -> dict[str, Any]:
        """A task with everything that hangs on it; or a question."""
        number = self._question(named)
        if number is not None:
            return self._shown_question(number, true=True)
        task = self._task(named)
        return self.desk.read(lambda r: self._encode(r, [r.task(task)])[0])

    def _shown(self, task: int) -> dict[str, Any]:
        return self.desk.look(lambda r: self._encode(r, [r.task(task)])[0])

    def _shown_question(self, number: int, true: bool = False) -> dict[str, Any]:
        def look(r: Reader) -> dict[str, Any]:
            question, task = r.question(number)
            return wire.question(question, task.key)

        self.desk.question(number)
        return self.desk.read(look) if true else self.desk.look(look)

    def _encode(self, r: Reader, tasks: builtins.list[Task]) -> builtins.list[dict[str, Any]]:
        details = r.details(tasks)
        return [wire.task(task, details[task.id]) for task in tasks]

    def list(
        self,
        *,
        state: str | Iterable[str] | None = None,
        awaiting: bool | str | Iterable[str] | None = None,
        epic: Named | None = None,
        parent: Named | None = None,
        expiring: str | int | None = None,
        project: str | None = None,
        after: Named | None = None,
        limit: int = 500,
        **filters: Any,
    ) -> builtins.list[dict[str, Any]]:
        kinds = None if awaiting is None or awaiting is False else () if awaiting is True else _kinds(awaiting)
        within = self._task(epic) if epic is not None else None
        above = self._task(parent) if parent is not None else None
        follows = self._task(after) if after is not None else None
        where = project_key("project", project) if project else self._project

        def look(r: Reader) -> builtins.list[dict[str, Any]]:
            return self._encode(
                r,
                r.tasks(
                    states=_states(state), awaiting=kinds, epic=within, parent=above, after=follows, limit=limit,
                    project=where, expiring=None if expiring is None else r.now + duration(expiring, "expiring"), **filters,
                ),
            )  # fmt: skip

        return self.desk.read(look)

    def ready(self, **filters: Any) -> builtins.list[dict[str, Any]]:
        """What can be worked on now, in the order in which it should be."""
        return self.list(workable=True, **filters)

    def next(self, epic: Named | None = None, **filters: Any) -> dict[str, Any] | None:
        found = self.ready(epic=epic, limit=1, **filters)
        return found[0] if found else None

    def holds_up(self, named: Named) -> builtins.list[str]:
        """The keys of open tasks that wait for this one."""
        task = self._task(named)
        return self.desk.read(lambda r: r.holds_up([task])).get(task, [])

    def counts(self, project: str | None = None) -> dict[str, int]:
        """state -> how many tasks."""
        return self.desk.read(lambda r: r.counts(project))

    def inbox(
        self,
        *,
        kind: str | Iterable[str] | None = None,
        project: str | None = None,
        task: Named | None = None,
        status: str = "pending",
        after: Named | None = None,
        limit: int = 500,
        **filters: Any,
    ) -> builtins.list[dict[str, Any]]:
        """Everything that waits for a person: open questions, and finished work to accept."""
        kinds = _kinds(kind) if kind is not None else []
        number = self._task(task) if task is not None else None
        where = project_key("project", project) if project else self._project
        follows = self._question(after) if after is not None else None

        def look(r: Reader) -> builtins.list[dict[str, Any]]:
            found = r.inbox(
                kinds=kinds, project=where, task=number, status=status, after=follows, limit=limit, **filters
            )
            shown = [wire.asked(item) for item in found]
            if status == "pending" and (not kinds or "review" in kinds) and not filters and len(shown) < limit:
                finished = r.tasks(
                    states=("review",),
                    project=where,
                    ids=None if number is None else [number],
                    limit=limit - len(shown),
                )
                waits = r.holds_up(task.id for task in finished)
                shown += [wire.to_accept(task, len(waits.get(task.id, ()))) for task in finished]
            return shown

        return self.desk.read(look)

    def tree(
        self, root: Named | None = None, *, project: str | None = None, limit: int = 5000
    ) -> builtins.list[dict[str, Any]]:
        """Tasks with their `children`, from the roots down."""
        top = self.show(root)["key"] if root is not None else None
        tasks = self.list(project=project, limit=limit)
        nodes = {task["key"]: {**task, "children": builtins.list[Any]()} for task in tasks}
        for node in nodes.values():
            if node["parent"] in nodes:
                nodes[node["parent"]]["children"].append(node)
        if top is not None:
            return [nodes[top]]
        return [node for node in nodes.values() if node["parent"] not in nodes]

    def history(
        self, named: Named | None = None, *, limit: int = 500, after: int | None = None, **filters: Any
    ) -> builtins.list[dict[str, Any]]:
        """Events: of one task, or of all."""
        task = self._about(named)["task"] if named is not None else None
        return self.desk.look(lambda r: [wire.event(e) for e in r.log(task=task, limit=limit, after=after, **filters)])

    log = history

    def watch(self, after: str | None = None, seconds: float | None = None) -> Iterator[dict[str, Any]]:
        """Events as they happen; each carries the `cursor` after which to go on."""
        for cursor, event in self.desk.watch(after, seconds):
            yield {**wire.event(event), "cursor": cursor}

    def desk_cursor(self) -> str:
        """Where the event log ends now: the `after` for a later watch."""
        return self.desk.cursor()

    def sleep_until_due(self, seconds: float) -> None:
        """Sleep until time makes something due, or something changes; at most so long."""
        now, next_due = self.desk.read(lambda r: (r.now, r.next_due()))
        if next_due is not None:
            seconds = min(seconds, max(0.05, (next_due - now) / 1_000_000))
        self.desk.wait(seconds)

    def reconcile(self) -> dict[str, int]:
        return self.desk.reconcile()

    # --- the office -------------------------------------------------------------------------------------------------

    def create_project(self, key: str, name: str | None = None) -> dict[str, Any]:
        self.do("project_create", project=key, name=name)
        return next(p for p in self.projects() if p["key"] == key.upper())

    def projects(self) -> builtins.list[dict[str, Any]]:
        def look(r: Reader) -> builtins.list[dict[str, Any]]:
            return [
                {
                    "key": key,
                    "name": name,
                    "open_tasks": count,
                    "settings": wire.settings(self.desk.store.settings(own, shared)),
                    "created_at": wire.time(at),
                }
                for key, name, own, shared, at, count in r.projects()
            ]

        return self.desk.read(look)

    def set(self, setting: str, value: Any, project: str | None = None) -> None:
        self.do("project_set", setting=setting, value=value, project=project)

    def users(self) -> builtins.list[dict[str, Any]]:
        return self.desk.read(
            lambda r: [{"name": n, "role": role, "created_at": wire.time(at)} for n, role, at in r.users()]
        )

    def set_user(self, name: str, role: str = "member") -> dict[str, Any]:
        self.do("user_set", user=name, role=role)
        return next(user for user in self.users() if user["name"] == name)

    def remove_user(self, name: str) -> None:
        self.do("user_remove", user=name)

    def tokens(self) -> builtins.list[dict[str, Any]]:
        names = ("name", "actor", "role", "created_at", "expires_at", "revoked_at")
        return self.desk.read(
            lambda r: [dict(zip(names, [*row[:3], *map(wire.time, row[3:])], strict=True)) for row in r.tokens()]
        )

    def create_token(
        self, name: str, role: str = "agent", *, actor: str | None = None, expires: Any = None
    ) -> dict[str, Any]:
        """The token is in the result, and nowhere else."""
        secret = f"yt_{os.urandom(24).hex()}"
        self.do("token_create", name=name, role=role, actor=actor, expires=expires, secret=secret)
        return {"token": secret, **next(t for t in reversed(self.tokens()) if t["name"] == name)}

    def revoke_token(self, name: str) -> None:
        self.do("token_revoke", name=name)

    def close(self) -> None:
        self.desk.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _proof(claim: Named | None, worker: str | None) -> dict[str, Any]:
    """A claim's token, from the token itself or from what `claim` returned."""
    while isinstance(claim, dict):
        claim = claim.get("claim") or claim.get("token")
    return {"claim": claim, "worker": worker if claim is None else None}


def _secret(key: str | None) -> str:
    """Random; but the same claim said again with its idempotency key gets the same token."""
    from hashlib import sha256

    return sha256(f"claim {key}".encode()).hexdigest()[:32] if key else os.urandom(16).hex()


def _listed(words: str | Iterable[str]) -> builtins.list[str]:
    return [w.strip() for w in words.split(",") if w.strip()] if isinstance(words, str) else list(words)


def _kinds(words: Any) -> builtins.list[str]:
    from .core.rules import KINDS

    found = _listed(words)
    for word in found:
        if word not in KINDS:
            raise Invalid(f"There is no kind {word[:40]!a}", hint=f"Choose from: {', '.join(KINDS)}.")
    return found


def _states(words: str | Iterable[str] | None) -> builtins.list[str]:
    if not words:
        return []
    from .core.rules import STATE_WORDS

    found: builtins.list[str] = []
    for word in _listed(words):
        if word not in STATE_WORDS:
            raise Invalid(f"There is no state {word[:40]!a}", hint=f"Choose from: {', '.join(STATE_WORDS)}.")
        found += STATE_WORDS[word]
    return builtins.list(dict.fromkeys(found))

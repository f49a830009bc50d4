"""Brings a real task into each of the ten states, and compares rows before and after."""

from __future__ import annotations

from typing import Any

from yourturn.client import Client
from yourturn.core.model import BLOCKED, CANCELLED, CREATED, DEFERRED, DONE, FAILED, HUMAN, READY, REVIEW, WORKING, Case, Task
from yourturn.core.rules import ALIASES
from yourturn.db.unit_of_work import UnitOfWork
from yourturn.testing import FakeClock

#: The least that a verb takes.
LEAST: dict[str, dict[str, Any]] = {
    "claim": {"worker": "w2", "secret": "s"},
    "ask": {"text": "Which?"},
    "flag": {"text": "Stuck"},
    "assign": {"reviewer": "bob"},
    "use": {"by": "s/c", "digest": "0" * 64},
    "decompose": {"children": ["a"]},
    "note": {"text": "By the way"},
    "update": {"fields": {"labels": ["better"]}},
    "dep_add": {"needs": []},
    "dep_remove": {"needs": []},
}
_TABLES = ("tasks", "questions", "notes", "deps", "steps", "programs", "events")
SCRIPT = "feature.py"


def said(path: str, status: str = "completed", result: Any = "ok", **more: Any) -> dict[str, Any]:
    """A call of a script, as its holder writes it down."""
    more = {"name": "step", "call": {"prompt": path}, **more}
    return {"path": path, "status": status, **({"result": result} if status == "completed" else {}), **more}


class Bench:
    """A desk in project PROJ where finished work waits for a person, and the claims that were taken on it."""

    def __init__(self, desk: Client, agent: Client, clock: FakeClock) -> None:
        self.desk, self.agent, self.clock = desk, agent, clock
        self.claims: dict[str, Any] = {}
        self.ids = 0
        desk.set("review", "ask")

    def into(self, state: str, **fields: Any) -> str:
        """A new task in this state; its key."""
        return str(getattr(self, state)(**fields))

    def created(self, **fields: Any) -> str:
        return str(self.desk.create("a draft", draft=True, **fields)["key"])

    def ready(self, **fields: Any) -> str:
        return str(self.desk.create("work", **fields)["key"])

    def blocked(self, **fields: Any) -> str:
        return self.ready(depends_on=[self.ready()], **fields)

    def working(self, **fields: Any) -> str:
        key = self.ready(**fields)
        self.claims[key] = self.agent.claim(key, "w1")["claim"]
        return key

    def human(self, **fields: Any) -> str:
        return self.ready(awaiting="input", **fields)

    def review(self, **fields: Any) -> str:
        key = self.working(**fields)
        claim = self.claims.pop(key)
        self.agent.complete(claim, "it is finished", journal=0 if fields.get("workflow") else None)
        return key

    def done(self, **fields: Any) -> str:
        return str(self.desk.close(self.ready(**fields))["key"])

    def failed(self, **fields: Any) -> str:
        return str(self.desk.fail(self.ready(**fields))["key"])

    def cancelled(self, **fields: Any) -> str:
        return str(self.desk.cancel(self.ready(**fields))["key"])

    def deferred(self, **fields: Any) -> str:
        return str(self.desk.defer(self.ready(**fields))["key"])

    def run(self, **fields: Any) -> str:
        """A task whose body is a script, ready."""
        return self.ready(workflow=SCRIPT, **fields)

    def running(self, *steps: dict[str, Any], **fields: Any) -> str:
        """A run that is being worked on, with these steps."""
        key = self.working(workflow=SCRIPT, **fields)
        if steps:
            self.agent.record(self.claims[key], steps)
        return key

    def ask(self, key: str, text: str = "What now?", **fields: Any) -> str:
        """The agent asks; as the claim's holder if it has one."""
        return str(self.agent.ask(key, text, claim=self.claims.get(key), **fields)["id"])

    def waiting(self, state: str, workflow: str | None = None, **fields: Any) -> tuple[str, str]:
        """A task that came from `state` into `human` by a question: (key, question)."""
        key = self.into(state, workflow=workflow)
        return key, self.ask(key, **fields)

    def asked_aside(self, state: str) -> tuple[str, str]:
        """A task in `state` with an open question that holds nothing up."""
        key = self.into(READY if state == DEFERRED else state)
        asked = self.ask(key, blocking=False, default="the usual")
        if state == DEFERRED:
            self.desk.defer(key)
        return key, asked

    def new_id(self) -> str:
        """An id of another tracker that was not used yet."""
        self.ids += 1
        return f"old-{self.ids}"

    def add_need(self, key: str) -> str:
        need = self.ready()
        self.desk.depend(key, need)
        return need


BRING = (CREATED, READY, BLOCKED, WORKING, HUMAN, REVIEW, DONE, FAILED, CANCELLED, DEFERRED)


def number(client: Client, key: str) -> int:
    return client.desk.find(key)[0]


def key_of(client: Client, task: int) -> str:
    return str(client.desk.read_stored(lambda r: r.task(task)).key)


def row(client: Client, key: str) -> Task:
    """The task as it is stored, whatever is due."""
    task = case(client, key).task
    assert task is not None
    return task


def case(client: Client, key: str) -> Case:
    with client.desk.store.reading() as run:
        return UnitOfWork(client.desk.store, run, client.desk.workspace).case(number(client, key))[0]


def everything(client: Client) -> dict[str, list[Any]]:
    """All rows as they are stored, to see that nothing changed."""
    with client.desk.store.reading() as run:
        return {table: sorted(map(repr, run(f"SELECT * FROM {table}").fetchall())) for table in _TABLES}


def state(client: Client, key: str) -> str:
    return str(client.show(key)["state"])


def moves(client: Client, key: str) -> list[tuple[str | None, str, str]]:
    """What the log says about a task: (from, verb of the table, to)."""
    found = []
    for event in client.history(key):
        source = event["data"]["from"]
        meant = event["action"] if event["actor"] == "system" else ALIASES.get((event["action"], source), event["action"])
        found.append((source, meant, event["data"]["to"]))
    return found


def verbs(client: Client, key: str) -> list[str]:
    return [verb for _, verb, _ in moves(client, key)]

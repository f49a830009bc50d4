"""Session of an agent: its desk, its current task, and its claims. `LocalSession` is the session of `turn mcp`, one per process.

The session renews a claim until the agent gives up the task, or until it ends itself: then it parks the task, which costs no
try. A question without a task gets a task of its own, claimed here, which is completed when the answer is delivered. If the
session ends before that, the task stays with its question, and a worker continues it with the answer.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from ..client import Client
from ..core.errors import ClaimLost, Invalid, MaybeDone, YourturnError


class AgentSession(Protocol):
    """Interface of a session for the tools."""

    env: Mapping[str, str]

    @property
    def desk(self) -> Client: ...

    @property
    def folder(self) -> str:
        """The folder in which the agent works, if it is known."""

    @property
    def worker(self) -> str:
        """The worker name of the session's claims."""

    def begin_call(self, client_name: str | None) -> None:
        """Called before each call of a tool, with the name of the client program."""

    def current_task(self, name: str | None) -> str | None:
        """The named task, else the one that the session works on."""

    def claimed_tasks(self) -> list[str]:
        """Tasks that were claimed with next_task and not given up yet."""

    def claim_token(self, task: str) -> str | None:
        """The token of the claim on a task, if the session or its worker holds one."""

    def add_claim(self, reply: dict[str, Any], own: bool = False) -> None: ...

    def update(self, task: dict[str, Any]) -> None:
        """Forget the claim on this task if the task has no claim any more, or a newer one."""

    def create_own_task(self, text: str, key: str) -> str:
        """A task for one question. If a person has to vet it first, it is not claimed."""

    def complete_own_task(self, task: str, summary: str) -> None: ...

    def take_lost_claims(self) -> list[str]:
        """Messages about lost claims, each once."""

    def heartbeat(self, all_claims: bool = False) -> float:
        """Renew the claims that need it, or all. Returns the seconds until the next call; 0 if there are no claims."""

    def close(self) -> None:
        """Park the claims. Tasks that were created for a question that blocks nothing are completed."""


class Held(NamedTuple):
    token: str
    task: str
    lease: float  #: in seconds
    due: float  #: time of the next heartbeat
    own: bool = False  #: the task was created for one question


def agent_name(client_name: str | None, env: Mapping[str, str]) -> str:
    """YOURTURN_AGENT, else the client's name for itself, else `mcp`."""
    return env.get("YOURTURN_AGENT") or re.sub(r"[^\w.@+-]+", "-", client_name or "").strip("-.@+")[:60] or "mcp"


def own_task_title(agent: str, text: str) -> str:
    title = f"{agent} asks: {' '.join(''.join(c if c.isprintable() else ' ' for c in text).split())}"
    return title if len(title) <= 120 else title[:119] + "…"


class LocalSession:
    """A session of one process, which keeps its claims in memory."""

    def __init__(self, connect: Callable[[str], Client], env: Mapping[str, str]) -> None:
        self._connect = connect
        self.env = env
        self._client: Client | None = None
        self._lock = threading.RLock()
        self._held: dict[str, Held] = {}  #: by task, the newest last
        self._lost: list[str] = []
        self._unsure_claims: dict[str, str] = {}  #: idempotency keys of claims that may have been made

    def begin_call(self, client_name: str | None) -> None:
        """Connect, at the first call: the agent's name is fixed then."""
        with self._lock:
            if self._client is None:
                self._client = self._connect(agent_name(client_name, self.env))

    @property
    def desk(self) -> Client:
        self.begin_call(None)
        assert self._client is not None
        return self._client

    @property
    def folder(self) -> str:
        return os.getcwd()  # noqa: PTH109

    @property
    def worker(self) -> str:
        return self.env.get("YOURTURN_WORKER") or f"{self.desk.who.name.partition(':')[2]}.mcp{os.getpid()}"

    def current_task(self, name: str | None) -> str | None:
        """The named task, else the one claimed here last, else the worker's."""
        if name is not None:
            return name
        claimed = self.claimed_tasks()
        return claimed[-1] if claimed else self.env.get("YOURTURN_TASK") or None

    def claimed_tasks(self) -> list[str]:
        with self._lock:
            return [held.task for held in self._held.values() if not held.own]

    def claim_token(self, task: str) -> str | None:
        with self._lock:
            exact = self._held.get(task)
            tokens = [held.token for held in self._held.values()]
        if exact is not None:
            return exact.token
        tokens += filter(None, [self.env.get("YOURTURN_CLAIM")])
        return next((token for token in tokens if self.desk.claim_is_for(token, task)), None)

    def add_claim(self, reply: dict[str, Any], own: bool = False) -> None:
        claim = reply["claim"]
        ends, now = (datetime.fromisoformat(at) for at in (claim["expires_at"], reply["task"]["updated_at"]))
        lease = (ends - now).total_seconds()
        with self._lock:
            self._held[claim["task"]] = Held(claim["token"], claim["task"], lease, time.monotonic() + lease / 3, own)

    def update(self, task: dict[str, Any]) -> None:
        claim = task["claim"]
        with self._lock:
            held = self._held.get(task["key"])
            if held is not None and (claim is None or not held.token.startswith(f"{task['key']}.{claim['epoch']}.")):
                del self._held[task["key"]]

    def create_own_task(self, text: str, key: str) -> str:
        title = own_task_title(self.desk.who.name.partition(":")[2], text)
        task = self.desk.create(title, description=text, key=key)["key"]
        try:
            self.add_claim(self.desk.claim(task, self.worker, key=self._unsure_claims.pop(key, None)), own=True)
        except MaybeDone as lost:
            self._unsure_claims[key] = lost.key  # with the same key, a second claim is the same one
            raise
        except YourturnError:
            pass
        return str(task)

    def complete_own_task(self, task: str, summary: str) -> None:
        with self._lock:
            held = self._held.get(task)
            if held is None or not held.own:
                return
            del self._held[task]
        with suppress(YourturnError):
            self.desk.complete(held.token, summary)

    def take_lost_claims(self) -> list[str]:
        with self._lock:
            lost, self._lost = self._lost, []
            return lost

    def heartbeat(self, all_claims: bool = False) -> float:
        now = time.monotonic()
        with self._lock:
            due = [held for held in self._held.values() if all_claims or now >= held.due]
        for held in due:
            try:
                self.desk.heartbeat(held.token)
            except YourturnError as error:
                if error.exit_code == ClaimLost.exit_code:  # lost, or another process has moved the task
                    self._lose(held, str(error))
                    continue
            with self._lock:
                if self._held.get(held.task) == held:
                    self._held[held.task] = held._replace(due=now + held.lease / 3)
        with self._lock:
            return min((max(0.0, held.due - time.monotonic()) for held in self._held.values()), default=60.0)

    def _lose(self, held: Held, why: str) -> None:
        with self._lock:
            if self._held.get(held.task) == held:
                del self._held[held.task]
                if not held.own:
                    self._lost.append(f"Your claim on {held.task} is over ({why}): stop working on it.")

    def close(self) -> None:
        """An answer that was not delivered is kept: its task is parked, and a worker delivers it."""
        with self._lock:
            all_held, self._held = list(self._held.values()), {}
        for held in all_held:
            with suppress(YourturnError):
                if held.own and not any(q["blocking"] for q in self.desk.show(held.task)["questions"]):
                    self.desk.complete(held.token, "The session ended.")
                else:
                    self.desk.park(held.token)


def require_task(session: AgentSession, name: str | None) -> str:
    task = session.current_task(name)
    if task is None:
        raise Invalid("Which task?", reason="you hold none", hint="Give task, like PROJ-42, or take one with next_task.")
    return task

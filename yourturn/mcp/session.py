"""Where one agent sits: who it is, which task it works on, and which claims it holds.

A claim that was taken here is kept alive until it is given up by name, or until the seat is left: then it is parked, which
costs no try. A question outside any task gets a task of its own, claimed here, that is finished when the answer is handed out.
If the session ends before, the task stays with its question, and a worker takes it up with the answer.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

from ..client import Client
from ..core.errors import ClaimLost, Invalid, MaybeDone, YourturnError


class Held(NamedTuple):
    token: str
    task: str
    lease: float  #: in seconds
    due: float  #: when to say that it is still held
    own: bool = False  #: the task was made for one question


def agent_name(client: str | None, env: Mapping[str, str]) -> str:
    """YOURTURN_AGENT, else what the client calls itself, else `mcp`."""
    given = env.get("YOURTURN_AGENT")
    return given or re.sub(r"[^\w.@+-]+", "-", client or "").strip("-.@+")[:60] or "mcp"


class Seat:
    def __init__(self, connect: Callable[[str], Client], env: Mapping[str, str]) -> None:
        self._connect = connect
        self._env = env
        self._client: Client | None = None
        self._lock = threading.RLock()
        self._held: dict[str, Held] = {}  #: by task, the newest last
        self._lost: list[str] = []
        self._unsure_claims: dict[str, str] = {}

    # --- who and where ----------------------------------------------------------------------------------------------

    def sit(self, client: str | None) -> Client:
        """The desk, as this agent. The name is settled by the first call."""
        with self._lock:
            if self._client is None:
                self._client = self._connect(agent_name(client, self._env))
            return self._client

    @property
    def desk(self) -> Client:
        return self.sit(None)

    @property
    def worker(self) -> str:
        return self._env.get("YOURTURN_WORKER") or f"{self.desk.who.name.partition(':')[2]}.mcp{os.getpid()}"

    def task(self, given: str | None) -> str | None:
        """The task that is meant: the one named, the one claimed here last, or the worker's."""
        if given is not None:
            return given
        mine = self.claimed()
        return mine[-1] if mine else self._env.get("YOURTURN_TASK") or None

    def must(self, given: str | None) -> str:
        task = self.task(given)
        if task is None:
            raise Invalid("Which task?", reason="you hold none", hint="Give task, like PROJ-42, or take one with next_task.")
        return task

    def proof(self, task: str) -> str | None:
        """The claim on a task, from here or from the worker."""
        with self._lock:
            exact = self._held.get(task)
            tokens = [held.token for held in self._held.values()]
        if exact is not None:
            return exact.token
        given = self._env.get("YOURTURN_CLAIM")
        return next((token for token in [*tokens, *filter(None, [given])] if self.desk.claim_is_for(token, task)), None)

    # --- claims -----------------------------------------------------------------------------------------------------

    def claimed(self) -> list[str]:
        """What was taken with next_task and not given up yet."""
        with self._lock:
            return [held.task for held in self._held.values() if not held.own]

    def keep(self, got: dict[str, Any], own: bool = False) -> None:
        claim = got["claim"]
        ends, now = (datetime.fromisoformat(at) for at in (claim["expires_at"], got["task"]["updated_at"]))
        lease = (ends - now).total_seconds()
        with self._lock:
            self._held[claim["task"]] = Held(claim["token"], claim["task"], lease, time.monotonic() + lease / 3, own)

    def settle(self, task: dict[str, Any]) -> None:
        """A task has moved: if nobody holds it any more, neither do we."""
        if task["claim"] is None:
            with self._lock:
                self._held.pop(task["key"], None)

    def own_task(self, text: str, key: str) -> str:
        """A task for one question. Where somebody has to vet it first, it waits without a claim."""
        who = self.desk.who.name.partition(":")[2]
        line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        title = f"{who} asks: {line}"
        made = self.desk.create(title if len(title) <= 120 else title[:119] + "…", description=text, key=key)
        try:
            self.keep(self.desk.claim(made["key"], self.worker, key=self._unsure_claims.pop(key, None)), own=True)
        except MaybeDone as lost:
            self._unsure_claims[key] = lost.key  # said again, it is the same claim
            raise
        except YourturnError:
            pass
        return str(made["key"])

    def finish_own(self, task: str, summary: str) -> None:
        with self._lock:
            held = self._held.get(task)
            if held is None or not held.own:
                return
            del self._held[task]
        with suppress(YourturnError):
            self.desk.complete(held.token, summary)

    def beat(self) -> float:
        """Keep what is held alive. Says in how many seconds to look again."""
        now = time.monotonic()
        with self._lock:
            held = [one for one in self._held.values() if now >= one.due]
        for one in held:
            try:
                self.desk.heartbeat(one.token)
            except YourturnError as error:
                if error.exit_code == ClaimLost.exit_code:  # lost, or moved on without us
                    self._lose(one, str(error))
                    continue
            with self._lock:
                if self._held.get(one.task) == one:
                    self._held[one.task] = one._replace(due=now + one.lease / 3)
        with self._lock:
            return min((max(0.0, one.due - time.monotonic()) for one in self._held.values()), default=60.0)

    def _lose(self, one: Held, why: str) -> None:
        with self._lock:
            if self._held.get(one.task) == one:
                del self._held[one.task]
                if not one.own:
                    self._lost.append(f"Your claim on {one.task} is over ({why}): stop working on it.")

    def leave(self) -> None:
        """Park what is held. What was made for a question that holds nobody up is finished.

        An answer that came and was not handed out is still somebody's to hear: it waits with its task for a worker.
        """
        with self._lock:
            held, self._held = list(self._held.values()), {}
        for one in held:
            with suppress(YourturnError):
                if one.own and not any(q["blocking"] for q in self.desk.show(one.task)["questions"]):
                    self.desk.complete(one.token, "The session ended.")
                else:
                    self.desk.park(one.token)

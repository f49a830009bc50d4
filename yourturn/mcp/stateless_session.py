"""Session of an agent over HTTP, created for each request: it reads its claims from the desk.

A claim's secret is derived from the agent's token and the session's id, so any process of any server can verify the claim, and
no other agent or session can.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from ..client import Client
from ..core.errors import Invalid, YourturnError
from .session import own_task_title

#: Claims that end in less than RENEW seconds are renewed; the claims of a session are checked every EVERY seconds.
RENEW, EVERY = 1800.0, 20.0


class StatelessSession:
    folder = ""

    def __init__(self, client: Client, secret: str, session_id: str, env: Mapping[str, str]) -> None:
        self.desk = client
        self.env = env
        self._secret = secret
        self._session_id = session_id

    @property
    def worker(self) -> str:
        return f"{self._agent}.mcp{f'-{self._session_id[:12]}' if self._session_id else ''}"

    @property
    def _agent(self) -> str:
        return self.desk.who.name.partition(":")[2]

    def begin_call(self, client_name: str | None) -> None:
        self.heartbeat()

    def current_task(self, name: str | None) -> str | None:
        claimed = self.claimed_tasks() if name is None else []
        if len(claimed) > 1:
            raise Invalid("Which task?", reason=f"you hold {', '.join(claimed)}", hint="Give task, like PROJ-42.")
        return name or (claimed[0] if claimed else None)

    def claimed_tasks(self) -> list[str]:
        return [task["key"] for task in self._held() if not self._is_own(task)]

    def claim_token(self, task: str) -> str | None:
        shown = self.desk.show(task)
        claim = shown.get("claim")
        return self._token(shown) if claim and claim["worker"] == self.worker else None

    def add_claim(self, reply: dict[str, Any], own: bool = False) -> None:
        """Nothing to do: the desk has recorded the claim."""

    def update(self, task: dict[str, Any]) -> None:
        """Nothing to do: the desk has recorded the move."""

    def create_own_task(self, text: str, key: str) -> str:
        task = self.desk.create(own_task_title(self._agent, text), description=text, key=key)["key"]
        with suppress(YourturnError):
            self.desk.claim(task, self.worker)
        return str(task)

    def complete_own_task(self, task: str, summary: str) -> None:
        shown = self.desk.show(task)
        token = self.claim_token(task)
        if token is not None and self._is_own(shown):
            with suppress(YourturnError):
                self.desk.complete(token, summary)

    def take_lost_claims(self) -> list[str]:
        return []

    def heartbeat(self, all_claims: bool = False) -> float:
        held = self._held()
        for task in held:
            ends, now = (datetime.fromisoformat(at) for at in (task["claim"]["expires_at"], self.desk.now()))
            if all_claims or (ends - now).total_seconds() < RENEW:
                with suppress(YourturnError):
                    self.desk.heartbeat(self._token(task))
        return EVERY if held else 0.0

    def close(self) -> None:
        for task in self._held():
            with suppress(YourturnError):
                if self._is_own(task) and not any(q["blocking"] for q in self.desk.show(task["key"])["questions"]):
                    self.desk.complete(self._token(task), "The session ended.")
                else:
                    self.desk.park(self._token(task))

    def _held(self) -> list[dict[str, Any]]:
        return self.desk.list(worker=self.worker)

    def _token(self, task: dict[str, Any]) -> str:
        return f"{task['key']}.{task['claim']['epoch']}.{self._secret}"

    def _is_own(self, task: dict[str, Any]) -> bool:
        """Whether the task was created for one question."""
        return bool(task["created_by"] == self.desk.who.name and task["title"].startswith(f"{self._agent} asks: "))

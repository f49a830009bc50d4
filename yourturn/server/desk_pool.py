"""The desks of one server process: one database, a client for each principal, and the threads in which handlers run.

A credential belongs to one workspace, and the principal that brings it sees no other. Handlers block on the database, so every
one of them runs in a thread and the event loop only moves bytes. The threads live as long as the server: each keeps its own
connection to the database, which an executor that ends idle threads (anyio's) would open again and again.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from typing import TypeVar

from ..client import Client
from ..config import open_store
from ..core.canonical_json import secret_hash
from ..core.errors import NotKnown
from ..core.model import Who
from ..db import schema
from ..desk.desk import Desk
from ..desk.lookups import Clock

T = TypeVar("T")

#: The actor of requests without a credential.
ANONYMOUS = Who("nobody", "viewer")
#: SQLite has one writer at a time, and each thread keeps a connection: more threads cost memory and gain nothing.
THREADS = 8
#: Remembered workspaces of credentials; beyond this the cache is cleared.
MAX_CACHED = 10_000

_NOUNS = {"token": "token", "login": "session", "link": "link"}
_HINTS = {
    "token": "Ask an admin for one: turn token create NAME --role agent",
    "login": "Log in again.",
    "link": "Ask for a new one.",
}


class DeskPool:
    def __init__(self, address: str, *, clock: Clock | None = None, threads: int = THREADS) -> None:
        self.address = address
        self.store = open_store(address)
        try:
            schema.check(self.store)
        except BaseException:
            self.store.close()
            raise
        self._clock = clock
        self._desks: dict[str, Desk] = {}
        self._workspaces: dict[str, str] = {}
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="yourturn-http")

    def workspaces(self) -> list[str]:
        with self.store.reading() as run:
            return [row[0] for row in run(self.store.query["workspaces"]).fetchall()]

    def desk(self, workspace: str = "default") -> Desk:
        desk = self._desks.get(workspace)
        if desk is None:
            desk = self._desks[workspace] = Desk(self.store, ANONYMOUS, workspace=workspace, clock=self._clock)
        return desk

    def client(self, who: Who = ANONYMOUS, workspace: str = "default") -> Client:
        return Client(self.desk(workspace).as_(who))

    def workspace_of(self, kind: str, secret: str) -> str:
        """The workspace of a token, a login or a link. It never changes, so it is cached."""
        digest = secret_hash(secret)
        workspace = self._workspaces.get(digest)
        if workspace is None:
            with self.store.reading() as run:
                row = run(self.store.query[f"workspace_of_{kind}"], {"hash": digest}).fetchone()
            if row is None:
                raise NotKnown(f"Unknown {_NOUNS[kind]}", hint=_HINTS[kind])
            if len(self._workspaces) > MAX_CACHED:
                self._workspaces.clear()
            workspace = self._workspaces[digest] = str(row[0])
        return workspace

    def by_token(self, token: str) -> Client:
        desk = self.desk(self.workspace_of("token", token))
        return Client(desk.as_(desk.credentials.of_token(secret_hash(token))[0]))

    def by_session(self, secret: str) -> Client:
        desk = self.desk(self.workspace_of("login", secret))
        return Client(desk.as_(desk.credentials.of_session(secret)[1]))

    def for_session(self, client: Client, token: str, session: str) -> tuple[Client, str]:
        """A client for one MCP session, and the secret of its claims. The secret is derived from token, session and actor, so
        any process can verify the session's claims and no other session can."""
        secret = hmac.new(token.encode(), f"{session} {client.who.name}".encode(), sha256).hexdigest()[:32]
        return Client(client.desk.as_(client.who, claim_secret=secret)), secret

    async def run(self, function: Callable[..., T], *args: object, **named: object) -> T:
        """Runs the function in a thread. Cancelling the caller does not stop a function that has started."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, partial(_call, function, args, named))

    def close(self) -> None:
        self._executor.shutdown()
        self.store.close()


def _call(function: Callable[..., T], args: tuple[object, ...], named: dict[str, object]) -> T:
    try:
        return function(*args, **named)
    except StopIteration as error:  # before Python 3.12 a future cannot raise it, and the caller would wait for ever
        raise RuntimeError("a handler ended with StopIteration") from error

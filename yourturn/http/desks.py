"""The desks of a server: one database, a client for each who asks, and where they work.

A principal belongs to one workspace: their credential says which, and from then on there is no other.

*Here or in a thread.* Whatever may last is done in a thread, while the event loop goes on. But two threads of Python hand each
other the one lock that both need, and on SQLite that costs more than a short look or move itself. So what is short is done
in the loop, at once. It never waits there: where another writes, or much would have to be done first, it goes to a thread after
all. And should many last in spite of that, because the disk is slow, then all go to threads for a while: the loop spends no more
than a small share of its time with such. (One now and then is a checkpoint.)
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable
from hashlib import sha256
from math import inf
from typing import Any

from ..client import Client
from ..config import open_store
from ..core.canonical_json import secret_hash
from ..core.errors import NotKnown
from ..core.model import Who
from ..db import schema
from ..db.backend import NotNow
from ..desk.desk import Desk
from ..desk.lookups import Clock
from .threads import Threads

NOBODY = Who("nobody", "viewer")
#: SQLite lets one write at a time, and a connection costs memory: a few threads are enough.
THREADS = 8
#: Seconds after which one lasts; how many times as long the loop should have for others; and how far it may fall behind.
LONG, REST, BEHIND = 0.005, 5, 1.0


class Desks:
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
        self._homes: dict[str, str] = {}
        self._holders: dict[str, tuple[Any, Who, int | None]] = {}
        self._threads = Threads(threads)
        self._rest = 0.0 if self.store.hurries else inf  #: until then the loop is for others

    def workspaces(self) -> list[str]:
        with self.store.reading() as run:
            return [row[0] for row in run(self.store.query["workspaces"]).fetchall()]

    def desk(self, workspace: str = "default") -> Desk:
        found = self._desks.get(workspace)
        if found is None:
            found = self._desks[workspace] = Desk(self.store, NOBODY, workspace=workspace, clock=self._clock)
        return found

    def client(self, who: Who = NOBODY, workspace: str = "default") -> Client:
        return Client(self.desk(workspace).as_(who))

    def home(self, sort: str, secret: str) -> str:
        """The workspace that a token, a login or a link belongs to."""
        return self._home(sort, secret_hash(secret))

    def _home(self, sort: str, known: str) -> str:
        found = self._homes.get(known)
        if found is None:
            with self.store.reading() as run:
                row = run(self.store.query[f"home_of_{sort}"], {"hash": known}).fetchone()
            if row is None:
                raise NotKnown(f"The {_WORDS[sort]} is not known here", hint=_HINTS[sort])
            if len(self._homes) > 10_000:
                self._homes.clear()
            found = self._homes[known] = str(row[0])
        return found

    def by_token(self, token: str) -> Client:
        """Who brought it a moment ago is asked again only if somebody may have been told something else since."""
        known, stamp = secret_hash(token), self.store.stamp()
        desk = self.desk(self._home("token", known))
        found = self._holders.get(known)
        if found is None or stamp is None or found[0] != stamp or (found[2] is not None and found[2] <= desk.now()):
            if len(self._holders) > 1000:
                self._holders.clear()
            found = self._holders[known] = (stamp, *desk.holder(known))
        return Client(desk.as_(found[1]))

    def by_session(self, secret: str) -> Client:
        desk = self.desk(self.home("login", secret))
        return Client(desk.as_(desk.session(secret)[1]))

    def seated(self, client: Client, token: str, seat: str) -> tuple[Client, str]:
        """A client whose claims are proven by who comes with this token to this seat, at whichever process; and their secret."""
        secret = hmac.new(token.encode(), f"{seat} {client.who.name}".encode(), sha256).hexdigest()[:32]
        desk = client.desk.as_(client.who)
        desk.new_secret = lambda: secret  # type: ignore[method-assign]
        return Client(desk), secret

    async def run(self, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """In one of our threads."""
        return await self._threads.run(function, *args, **named)

    async def run_short(self, function: Callable[..., Any], *args: Any) -> Any:
        """Here if that holds nobody up, else in one of our threads."""
        begun = time.monotonic()
        if begun >= self._rest - BEHIND:
            try:
                return self.store.hurried(function, *args)
            except NotNow:
                pass
            finally:
                took = time.monotonic() - begun
                if took > LONG:
                    self._rest = max(self._rest, begun) + took * REST
        return await self._threads.run(function, *args)

    def close(self) -> None:
        self._threads.close()
        self.store.close()


_WORDS = {"token": "token", "login": "session", "link": "link"}
_HINTS = {
    "token": "Ask an admin for one: turn token create NAME --role agent",
    "login": "Log in again.",
    "link": "Ask for a new one.",
}

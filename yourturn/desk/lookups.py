"""Reads of a desk that are not about one task: credentials, and the event log as it grows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from ..core.canonical_json import secret_hash
from ..core.errors import NotKnown
from ..core.model import Event, Who
from ..core.permissions import scopes_of
from ..core.rules import ROLES
from ..db.backend import Queries, Store
from ..db.event_log import EventLog

Clock = Callable[[], int]


class Credentials:
    """Tokens, sessions and people of one workspace. `now` takes the database's time and returns the time that counts."""

    def __init__(self, store: Store, workspace: int, now: Callable[[int], int]) -> None:
        self.store = store
        self.workspace = workspace
        self.now = now

    def row(self, query: str, **args: Any) -> Any:
        """The row of a token, login, link or password, by its hash or its owner; None if there is none."""
        with self.store.reading() as run:
            return run(self.store.query[query], {"workspace": self.workspace, **args}).fetchone()

    def identify(self, token: str) -> Who:
        """The actor of a token."""
        return self.of_token(secret_hash(token))[0]

    def of_token(self, hashed: str) -> tuple[Who, int | None]:
        """The actor of a token, by the token's hash, and when the token expires."""
        row = self.row("token", hash=hashed)
        if row is None:
            raise NotKnown("The token is not known here", hint="Ask an admin for one: turn token create NAME --role agent")
        name, actor, role, expires, revoked, scopes, *owner, database = row
        if revoked is not None:
            raise NotKnown(f"The token {name} was revoked")
        if expires is not None and expires <= self.now(database):
            raise NotKnown(f"The token {name} has expired")
        return Who(actor, _capped(role, *owner), scopes=scopes_of(scopes.split(), role)), expires

    def of_session(self, secret: str) -> tuple[int, Who, int]:
        """The number of a browser session, its actor, and when it expires."""
        row = self.row("login", hash=secret_hash(secret))
        if row is None or row[4] is not None or row[3] <= self.now(row[-1]):
            raise NotKnown("The session is over", hint="Log in again.")
        return row[0], Who(row[1], _capped(row[2], *row[5:7])), row[3]

    def role_of(self, person: str) -> str | None:
        """A person's role; None if none was set."""
        row = self.row("user", name=person)
        return None if row is None else _current(*row)


class EventFeed:
    """The event log of one workspace as it grows."""

    def __init__(self, store: Store, workspace: int) -> None:
        self.store = store
        self.workspace = workspace

    def cursor(self) -> str:
        """The current end of the log."""
        with self.store.reading() as run:
            return EventLog(Queries(self.store, run, self.workspace)).end()

    def events(self, after: str | None, limit: int) -> tuple[list[tuple[str, Event]], str]:
        """Events after a cursor, each with its own, and the cursor to continue from. Never skips one that commits late."""
        with self.store.reading() as run:
            return EventLog(Queries(self.store, run, self.workspace)).after(after, limit)

    def batches(self, after: str | None, seconds: float | None) -> Iterator[list[tuple[str, Event]]]:
        """Events as they happen, as many together as there are; for so many seconds, or without end."""
        cursor = self.cursor() if after is None else after
        ends = None if seconds is None else time.monotonic() + seconds
        retries = 0
        while True:
            events, cursor = self.events(cursor, 500)
            if events:
                yield events
                retries = 0
                continue
            left = 60.0 if ends is None else ends - time.monotonic()
            if left <= 0:
                return
            # a commit that was notified is not visible while an older transaction is open: poll again soon
            pause = min(0.002 * 2 ** (9 - retries), 0.1, left) if retries else left
            if self.store.wait(pause):
                retries = 0 if self.store.dialect == "sqlite" else 8
            else:
                retries = max(0, retries - 1)


def _current(role: str, removed: int | None) -> str:
    """A person who was removed can only look."""
    return role if removed is None else "viewer"


def _capped(role: str, person: str | None, removed: int | None) -> str:
    """A credential's role is capped by its owner's current role."""
    return role if person is None else min(role, _current(person, removed), key=list(ROLES).index)

"""What can be seen from a desk without deciding anything: names, credentials, and the event log as it grows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from ..core.canonical_json import secret_hash
from ..core.errors import NotKnown
from ..core.model import Event, Who
from ..core.permissions import scopes_of
from ..core.references import parse
from ..core.rules import ROLES
from ..db.backend import Store
from ..db.case_loader import Docket
from ..db.details import RunJournal
from ..db.reads import Reader

Clock = Callable[[], int]


class Lookout:
    """One workspace in one database."""

    store: Store
    workspace: int
    workspace_name: str
    clock: Clock | None

    def now(self, database: int = 0) -> int:
        """The injected clock, else the database's, else this machine's."""
        if self.clock is not None:
            return self.clock()
        return database or time.time_ns() // 1000

    def identity(self) -> str:
        """Which desk this is, and since which restore. A browser that keeps something for a desk keeps it under this."""
        with self.store.reading() as run:
            *_, created, fenced = run(self.store.query["workspace"], {"name": self.workspace_name}).fetchone()
        return f"{created:x}.{fenced or 0:x}"

    def projects(self) -> list[str]:
        """What the projects are called, the first one first."""
        with self.store.reading() as run:
            return Reader(self.store, run, self.workspace).project_keys()

    def find(self, text: str, home: Callable[[], str] = str) -> tuple[int, int | None]:
        """What a name means: a task's row id, and a question's number if it is one. `home`: the default project."""
        name = parse(text, home)
        if name.exact:
            task = self.store.recent.whose(name.key if name.number is None else name.number, self.workspace)
            if task is not None:
                return task, name.number
        with self.store.reading() as run:
            found = Docket(self.store, run, self.workspace).named(name)
        return found.task, found.question

    def journal(self, task: int) -> RunJournal:
        """All questions and steps of a run, and its source."""
        with self.store.reading() as run:
            return Reader(self.store, run, self.workspace).journal(task)

    def credential(self, sort: str, **named: Any) -> Any:
        """The row of a token, login, link or password, by its hash or whose it is; None where there is none."""
        with self.store.reading() as run:
            return run(self.store.query[sort], {"workspace": self.workspace, **named}).fetchone()

    def identify(self, token: str) -> Who:
        """Whose token is this?"""
        return self.holder(secret_hash(token))[0]

    def holder(self, known: str) -> tuple[Who, int | None]:
        """Whose token has this hash, and until when?"""
        row = self.credential("token", hash=known)
        if row is None:
            raise NotKnown("The token is not known here", hint="Ask an admin for one: turn token create NAME --role agent")
        name, actor, role, expires, revoked, scopes, *now, database = row
        if revoked is not None:
            raise NotKnown(f"The token {name} was revoked")
        if expires is not None and expires <= self.now(database):
            raise NotKnown(f"The token {name} has expired")
        return Who(actor, _limited(role, *now), scopes=scopes_of(scopes.split(), role)), expires

    def session(self, secret: str) -> tuple[int, Who, int]:
        """Whose session is this? Its number, who, and when it ends."""
        row = self.credential("login", hash=secret_hash(secret))
        if row is None or row[4] is not None or row[3] <= self.now(row[-1]):
            raise NotKnown("The session is over", hint="Log in again.")
        return row[0], Who(row[1], _limited(row[2], *row[5:7])), row[3]

    def role_of(self, person: str) -> str | None:
        """A person's role: None if nobody has said."""
        row = self.credential("user", name=person)
        return None if row is None else _now(*row)

    # --- the event log ----------------------------------------------------------------------------------------------

    def cursor(self) -> str:
        """Where the log ends now."""
        with self.store.reading() as run:
            return Reader(self.store, run, self.workspace).log_end()

    def events(self, after: str | None = None, limit: int = 500) -> tuple[list[tuple[str, Event]], str]:
        """Events after a cursor, each with its own, and the cursor to go on from. Never skips one that commits late."""
        with self.store.reading() as run:
            return Reader(self.store, run, self.workspace).log_after(after, limit)

    def wait(self, seconds: float) -> bool:
        """Sleep until something may have changed, at most so long."""
        return self.store.wait(seconds)

    def watch(self, after: str | None = None, seconds: float | None = None) -> Iterator[tuple[str, Event]]:
        """Events as they happen, for ever or for so long."""
        for found in self.batches(after, seconds):
            yield from found

    def batches(self, after: str | None = None, seconds: float | None = None) -> Iterator[list[tuple[str, Event]]]:
        """The same, as many together as there are."""
        cursor = self.cursor() if after is None else after
        ends = None if seconds is None else time.monotonic() + seconds
        hurry = 0
        while True:
            found, cursor = self.events(cursor)
            if found:
                yield found
                hurry = 0
                continue
            left = 60.0 if ends is None else ends - time.monotonic()
            if left <= 0:
                return
            # told of a commit that may not be visible yet, because another transaction is still open before it: look again soon
            pause = min(0.002 * 2 ** (9 - hurry), 0.1, left) if hurry else left
            if self.wait(pause):
                hurry = 0 if self.store.dialect == "sqlite" else 8
            else:
                hurry = max(0, hurry - 1)


def _now(role: str, removed: int | None) -> str:
    """Somebody who was removed can only look."""
    return role if removed is None else "viewer"


def _limited(role: str, person: str | None, removed: int | None) -> str:
    """Never more than the person is now, if somebody has said what that is."""
    return role if person is None else min(role, _now(person, removed), key=list(ROLES).index)

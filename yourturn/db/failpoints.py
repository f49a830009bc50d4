"""Failpoints: a store that dies on purpose.

A change goes through five named points, and at each of them a process can be killed:

    before-begin   nothing has been said to the database
    first-write    the first row is written, the transaction is open
    before-commit  everything is written, the transaction is open
    after-commit   it is committed, and the caller has no reply yet
    after-reply    the caller has the reply

`YOURTURN_FAULT` turns them on, for tests: `claim:before-commit` kills the process there as `kill -9` would,
`stop:claim:before-commit` stops it as a machine that falls asleep would, `record:/a/file` writes down which points were
passed. The word before the point is the change: a verb, or claim_next, reconcile, init, migrate, restore. A command that has
printed its reply calls `config.replied()` before it ends.

When the variable is not set, config.open_store hands out the plain store and this file is not even imported: a failpoint
that is off is not there.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from ..core.errors import Usage
from .backend import Store

POINTS = ("before-begin", "first-write", "before-commit", "after-commit", "after-reply")

_WRITE = re.compile(
    r"\b(INSERT INTO|UPDATE \w+( AS)?( \w+)? SET|DELETE FROM|CREATE (TABLE|INDEX|UNIQUE|FUNCTION|TRIGGER)|ALTER|DROP)\b"
)


def with_failpoints(store: Store, wish: str) -> Store:
    """The same store, which does what YOURTURN_FAULT wishes when a point is reached."""
    if wish.startswith("record:/"):
        return cast(Store, FailingStore(store, wish.removeprefix("record:"), "", 0))
    *stop, what, point = ["", *wish.split(":")][-3:]
    if stop not in ([""], ["stop"]) or not what or point not in POINTS:
        hint = f"Like claim:{POINTS[2]} or stop:claim:{POINTS[2]}; the points are {', '.join(POINTS)}. Or record:/a/file."
        raise Usage(f"YOURTURN_FAULT={wish[:80]!a} is no failpoint", hint=hint)
    return cast(Store, FailingStore(store, "", f"{what}:{point}", signal.SIGSTOP if stop == ["stop"] else signal.SIGKILL))


class FailingStore:
    """Everything else is the inner store's own."""

    def __init__(self, inner: Store, diary: str, point: str, sign: int) -> None:
        self.inner = inner
        self._diary = diary
        self._point = point
        self._sign = sign

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def reached(self, what: str, point: str) -> None:
        here = f"{what}:{point}"
        if self._diary:
            file = os.open(self._diary, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(file, f"{here}\n".encode())
            os.close(file)
        elif here == self._point:
            os.kill(os.getpid(), self._sign)

    @contextmanager
    def begin(self, what: str = "", *, write: bool = True) -> Iterator[Any]:
        if not what:  # a look, or one that is rolled back: no change
            with self.inner.begin(what, write=write) as run:
                yield run
            return
        self.reached(what, "before-begin")
        with self.inner.begin(what, write=write) as run:
            yield _Statements(run, lambda: self.reached(what, "first-write"))
            run.flush()
            self.reached(what, "before-commit")
        _unreplied.append((self, what))
        self.reached(what, "after-commit")


#: Changes of this process that the caller has no reply to yet.
_unreplied: list[tuple[FailingStore, str]] = []


def replied() -> None:
    """The caller has the reply."""
    while _unreplied:
        store, what = _unreplied.pop(0)
        store.reached(what, "after-reply")


class _Statements:
    """What `begin` gives, with an eye on the first write."""

    def __init__(self, run: Any, first: Callable[[], None]) -> None:
        self._run = run
        self._first: Callable[[], None] | None = first

    def __call__(self, text: str, *args: Any) -> Any:
        return self._said(self._run, text, *args)

    def later(self, text: str, *args: Any) -> None:
        self._said(self._run.later, text, *args)

    def must(self, text: str, *args: Any) -> None:
        self._said(self._run.must, text, *args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._run, name)

    def _said(self, say: Callable[..., Any], text: str, *args: Any) -> Any:
        found = say(text, *args)
        if self._first is not None and _WRITE.search(text):
            first, self._first = self._first, None
            self._run.flush()  # what a dialect would send later has arrived before the process dies
            first()
        return found

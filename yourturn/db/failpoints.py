"""Failpoints: a store that kills the process at a named point of a change.

    before-begin   nothing has been sent to the database
    first-write    the first row is written, the transaction is open
    before-commit  everything is written, the transaction is open
    after-commit   it is committed, and the caller has no reply yet
    after-reply    the caller has the reply

`YOURTURN_FAULT` turns them on, for tests: `claim:before-commit` kills the process there like `kill -9`,
`stop:claim:before-commit` stops it like a suspended machine, `record:/a/file` records the points that were passed. The word
before the point is the change: a verb, or claim_next, reconcile, init, migrate, restore. A command that has printed its
reply calls `config.replied()` before it ends.

Without the variable, config.open_store returns the plain store, and this module is not imported.
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


def with_failpoints(store: Store, fault: str) -> Store:
    """The store with the failpoint that YOURTURN_FAULT names."""
    if fault.startswith("record:/"):
        return cast(Store, FailingStore(store, fault.removeprefix("record:"), "", 0))
    *stop, what, point = ["", *fault.split(":")][-3:]
    if stop not in ([""], ["stop"]) or not what or point not in POINTS:
        hint = f"Like claim:{POINTS[2]} or stop:claim:{POINTS[2]}; the points are {', '.join(POINTS)}. Or record:/a/file."
        raise Usage(f"Invalid failpoint YOURTURN_FAULT={fault[:80]!a}", hint=hint)
    return cast(Store, FailingStore(store, "", f"{what}:{point}", signal.SIGSTOP if stop == ["stop"] else signal.SIGKILL))


class FailingStore:
    """Delegates everything but `begin` to the inner store."""

    def __init__(self, inner: Store, record: str, point: str, signal_number: int) -> None:
        self.inner = inner
        self._record = record
        self._point = point
        self._signal = signal_number

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def reached(self, what: str, point: str) -> None:
        here = f"{what}:{point}"
        if self._record:
            file = os.open(self._record, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(file, f"{here}\n".encode())
            os.close(file)
        elif here == self._point:
            os.kill(os.getpid(), self._signal)

    @contextmanager
    def begin(self, what: str = "", *, write: bool = True) -> Iterator[Any]:
        if not what:  # a read, or a transaction that is rolled back
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


#: Committed changes without a reply to the caller yet.
_unreplied: list[tuple[FailingStore, str]] = []


def replied() -> None:
    """The caller has the reply."""
    while _unreplied:
        store, what = _unreplied.pop(0)
        store.reached(what, "after-reply")


class _Statements:
    """The statements of a transaction; notices the first write."""

    def __init__(self, run: Any, first: Callable[[], None]) -> None:
        self._run = run
        self._first: Callable[[], None] | None = first

    def __call__(self, text: str, *args: Any) -> Any:
        return self._sent(self._run, text, *args)

    def later(self, text: str, *args: Any) -> None:
        self._sent(self._run.later, text, *args)

    def must(self, text: str, *args: Any) -> None:
        self._sent(self._run.must, text, *args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._run, name)

    def _sent(self, send: Callable[..., Any], text: str, *args: Any) -> Any:
        result = send(text, *args)
        if self._first is not None and _WRITE.search(text):
            first, self._first = self._first, None
            self._run.flush()  # the write reaches the database before the process dies
            first()
        return result

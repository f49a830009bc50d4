"""Filters of the client's lists that go to the database as they are: keyword arguments, with their types."""

# No __future__ import of annotations: TypedDict would compile each annotation (0.2 ms instead of 0.07 at the start of a command).

from collections.abc import Iterable
from typing import TypedDict

from .refs import Named


class _Filters(TypedDict, total=False):
    role: str | None
    label: str | None
    type: str | None
    priority: int | None
    requires: str | None
    search: str | None
    only_runs: bool
    newest: bool
    worker: str | None


class TaskFilters(_Filters, total=False):
    """Of `list`, beside its own parameters."""

    runs: bool
    workable: bool


class NextFilters(_Filters, total=False):
    """Of `next`, which passes them to `list`."""

    state: str | Iterable[str] | None
    awaiting: bool | str | Iterable[str] | None
    parent: Named | None
    expiring: str | int | None
    project: str | None
    after: Named | None


class ReadyFilters(NextFilters, total=False):
    """Of `ready`, which passes them to `list`."""

    epic: Named | None
    limit: int
    runs: bool


class QuestionFilters(TypedDict, total=False):
    """Of `inbox`, beside its own parameters."""

    reviewer: str | None
    urgency: str | None
    blocking: bool | None


class EventFilters(TypedDict, total=False):
    """Of `history`, beside its own parameters."""

    project: str | None
    actor: str | None
    action: str | None
    before: int | None

"""The version of a task that a page showed, so that a button does not act on something else.

A form that moves a task carries `as_of`: the task's version, and a digest of what a person's decision depends on (its state, its
claim, its open questions). The desk compares the version in the transaction of the move. Heartbeats and notes raise the version
too; as long as the digest is the same, the current version is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..client import Client
from ..core.canonical_json import digest
from ..core.errors import Changed
from ..core.model import PENDING
from . import event_text, times
from .request import PageRequest, is_number

#: How often the version may change between the read and the move before the request fails.
TRIES = 5
#: Events that are searched for the last change.
RECENT = 50


def mark(task: Mapping[str, Any]) -> str:
    claim = task["claim"]
    shown = [task["state"], claim and claim["epoch"], sorted(q["id"] for q in task["questions"] if q["status"] == PENDING)]
    return f"{task['version']} {digest(shown)[:16]}"


def move(request: PageRequest, key: str, make: Callable[[Client], dict[str, Any]]) -> dict[str, Any]:
    """Makes the move if the task is as the page showed it. Raises Changed, with the reason, if it is not."""
    version, _, shown = request.field("as_of").partition(" ")
    seen = int(version) if is_number(version) else -1  # no version
    for _ in range(TRIES):
        now = request.client.show(key)
        same = mark(now).partition(" ")[2] == shown
        try:  # also if it differs: the idempotency key recognizes a form that is sent twice
            return make(request.client.at_version(now["version"] if same else seen))
        except Changed:
            if not same:
                break
    why = _last_change(request.client, key)
    raise Changed(f"{key} has changed since this page was drawn", reason=why, hint="Look again, then decide.")


def _last_change(client: Client, key: str) -> str:
    """'ben accepted it: it is done, just now'"""
    now = times.desk_time(client)
    for event in reversed(client.history(key, limit=RECENT)):
        data = event["data"]
        if data.get("from") != data.get("to") or data.get("opened") or data.get("closed"):
            view = event_text.event_view(event, now)
            return f"{'' if view.without_actor else f'{view.who.name} '}{view.brief}, {view.at.words}"
    return ""

"""A button acts on what its page showed.

A form that moves a task carries `as_of`: the task's version, and a digest of what a person goes by when they press it (its state,
who works on it, which questions are open). The door compares the version in the transaction that makes the move. A heartbeat or
a note raises the version, too, and is no reason to refuse anybody: while the digest is the same, the version of now is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..client import Client
from ..core.canonical_json import digest
from ..core.errors import Changed
from ..core.model import PENDING
from . import event_text, view_models
from .request import Visit

#: How often a version may change between the look and the move before the page gives up.
TRIES = 5
#: Events among which the last one that changed something is looked for.
RECENT = 50


def mark(task: Mapping[str, Any]) -> str:
    claim = task["claim"]
    shown = [task["state"], claim and claim["epoch"], sorted(q["id"] for q in task["questions"] if q["status"] == PENDING)]
    return f"{task['version']} {digest(shown)[:16]}"


def move(visit: Visit, key: str, make: Callable[[Client], dict[str, Any]]) -> dict[str, Any]:
    """Make a move while the task is as the page showed it, and return its reply; Changed, with what happened, if it is not."""
    version, _, shown = visit.field("as_of").partition(" ")
    seen = int(version) if version.isascii() and version.isdigit() and len(version) < 18 else -1  # no version
    for _ in range(TRIES):
        now = visit.client.show(key)
        same = mark(now).partition(" ")[2] == shown
        try:  # also where it differs: a form that is sent twice is answered by its idempotency key
            return make(visit.client.at_version(now["version"] if same else seen))
        except Changed:
            if not same:
                break
    why = _since(visit.client, key)
    raise Changed(f"{key} has changed since this page was drawn", reason=why, hint="Look again, then decide.")


def _since(client: Client, key: str) -> str:
    """Who changed it last, how and when: 'ben accepted it: it is done, just now'."""
    now = view_models.now_of(client)
    for event in reversed(client.history(key, limit=RECENT)):
        data = event["data"]
        if data.get("from") != data.get("to") or data.get("opened") or data.get("closed"):
            told = event_text.told(event, now)
            return f"{'' if told.alone else f'{told.who.name} '}{told.brief}, {told.at.words}"
    return ""

"""Edit first: a permission is changed before it is given. Both versions are shown, and the new one has a digest of its own."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ..core.canonical_json import digest, loads
from ..core.errors import Invalid, NotFound
from ..core.model import PENDING
from ..display.terminal import HIDDEN
from . import evidence, view_models
from .question_view import Asked, find, made
from .request import Go, Page, Shown, Visit


class Entry(NamedTuple):
    """One argument that may be changed: as text, or as JSON where it is no text or hides signs."""

    name: str
    text: str
    is_json: bool
    rows: int


def _entries(given: Any) -> list[Entry]:
    found = []
    for name, value in given.items():
        plain = isinstance(value, str) and not HIDDEN.search(value)
        text = value if plain else evidence.as_text(value) if not isinstance(value, str) else _quoted(value)
        found.append(Entry(str(name), text, not plain, min(12, text.count("\n") + 1 + len(text) // 90)))
    return found


def _quoted(value: str) -> str:
    return HIDDEN.sub(lambda m: f"\\u{ord(m[0]):04x}", json.dumps(value, ensure_ascii=False))


def _permission(visit: Visit) -> tuple[Asked, Any]:
    q = find(visit.client, visit.path["id"])
    given = evidence.editable(q["action"])
    if q["kind"] != "permission" or given is None:
        raise NotFound(f"{q['id']} has nothing that could be edited")
    return q, given


def edit(visit: Visit) -> Shown:
    q, given = _permission(visit)
    if q["status"] != PENDING:
        return Go(f"/questions/{q['id']}")
    shown = made(visit.client, q, view_models.now_of(visit.client), "page")
    return Page("edit.html", {"here": "inbox", "q": shown, "entries": _entries(given), "new": None, "wrong": "", "action": ""})


def edited(visit: Visit) -> Shown:
    """Both versions, and the digest of the new one. Nothing is allowed yet."""
    q, given = _permission(visit)
    if q["status"] != PENDING:
        return Go(f"/questions/{q['id']}")
    entries = _entries(given)
    new: dict[str, Any] = {}
    wrong = ""
    shown_again = []
    for at, entry in enumerate(entries):
        typed = visit.field(f"arg{at}")
        shown_again.append(entry._replace(text=typed))
        try:
            new[entry.name] = loads(typed, entry.name) if entry.is_json else typed
        except Invalid as error:
            wrong = f"{error}."
    name = next(n for n, value in q["action"].items() if value is given)
    action = {**q["action"], name: new}
    same = not wrong and digest(action) == q["digest"]
    shown = made(visit.client, q, view_models.now_of(visit.client), "page")
    context = {
        "here": "inbox", "q": shown, "entries": shown_again,
        "new": None if wrong or same else evidence.action(action, digest(action)),
        "wrong": wrong or ("Nothing was changed. Allow it as it is, or change something." if same else ""),
        "action": json.dumps(action),
    }  # fmt: skip
    return Page("edit.html", context, 422 if wrong else 200)

"""One record of another tracker, read field by field. Fields that are not read are kept; problems are collected."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ...core import fields as f
from ...core.canonical_json import digest
from ...core.errors import Invalid
from ...core.rules import KINDS
from ...core.task_fields import COMPLEXITIES, REQUIRES, TYPES

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Item(NamedTuple):
    """A task of another tracker: the arguments of the import move, and its neighbours by their old ids."""

    id: str
    place: str
    args: dict[str, Any]
    parent: str | None
    needs: list[str]
    warnings: list[str]


class Record:
    def __init__(self, tracker: str, place: str, raw: dict[str, Any]) -> None:
        self.tracker = tracker
        self.place = place
        self.digest = digest(raw)
        self.left = {name: value for name, value in raw.items() if value not in (None, "", [], {})}
        self.problems: list[str] = []
        self.warnings: list[str] = []

    def wrong(self, name: str, what: str) -> None:
        self.problems.append(f"{name} {what}")

    def take(self, name: str, expected: type | tuple[type, ...], what: str) -> Any:
        value = self.left.pop(name, None)
        if value is not None and (not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool)):
            self.wrong(name, f"must be {what}, and is {f._quote(value)}")
            return None
        return value

    def text(self, name: str) -> str:
        return self.take(name, str, "text") or ""

    def flag(self, name: str) -> bool:
        return bool(self.take(name, bool, "true or false"))

    def words(self, name: str) -> list[str]:
        value = self.take(name, list, "a list of words") or []
        if not all(isinstance(word, str) and word for word in value):
            self.wrong(name, "must be a list of words")
            return []
        return list(dict.fromkeys(value))

    def choice(self, name: str, words: tuple[str, ...]) -> str | None:
        value = self.text(name)
        if value and value not in words:
            self.wrong(name, f"cannot be {f._quote(value)}; it is one of: {', '.join(words)}")
        return value or None

    def shared(self, name: str, words: tuple[str, ...]) -> str | None:
        """A word that this desk knows; any other is kept in `left`."""
        value = self.text(name)
        if value and value not in words:
            self.left[name] = value
        return value if value in words else None

    def moment(self, name: str, keep: bool = False) -> int | None:
        """Microseconds since 1970. A moment without a zone is in UTC."""
        value = self.text(name)
        if not value:
            return None
        if keep:
            self.left[name] = value
        at = moment(value)
        if at is None:
            self.wrong(name, f"is not a date: {f._quote(value)}")
        return at if at and at > 0 else None

    def actor(self, name: str) -> str | None:
        value = self.text(name)
        return person(value, self.tracker) if value else None

    def name(self, name: str) -> str | None:
        """One word in the form of a name; the original is kept if that differs."""
        value = self.text(name)
        fit = slug(value)
        if value and fit != value:
            self.left[name] = value
        return fit or None

    def item(self, args: dict[str, Any], parent: str | None, needs: list[str]) -> Item:
        """The item with the common fields, `args` and the rest of the record."""
        id, title = self.text("id"), " ".join(f.CONTROL.sub(" ", self.text("title")).split())
        if not id and not any(problem.startswith("id ") for problem in self.problems):
            self.wrong("id", "is missing")
        if not title:
            self.wrong("title", "is missing")
        if len(title) > f.TITLE_LIMIT:
            self.left["title"] = title
            title = title[: f.TITLE_LIMIT - 1] + "…"
        labels = self.words("labels")
        fit = [word for word in map(slug, labels) if word]
        if fit != labels:
            self.left["labels"] = labels
        args |= {
            "title": title, "description": self.text("description"), "external_id": id, "labels": fit,
            "priority": self._priority(), "role": self.name("role"),
        }  # fmt: skip
        args["extra"] = {"source": self.tracker, "digest": self.digest, "fields": self.left}
        return Item(id, self.place, args, parent, needs, self.warnings)

    def _priority(self) -> int | None:
        value = self.take("priority", (int, str), "a number from 0 to 4")
        try:
            return None if value is None else f.priority("priority", value)
        except Invalid as error:
            self.problems.append(str(error))
            return None


def moment(text: str) -> int | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return (at - _EPOCH) // datetime.resolution


def slug(text: str) -> str:
    """A word in the form of a name."""
    word = re.sub(r"[^\w.@+:/-]+", "-", text).strip("-.@+:/")
    return re.sub(r"\.{2,}", ".", word)[:80]


def person(text: str, tracker: str) -> str:
    return f"human:{slug(text).replace(':', '-') or tracker}"


#: Words of tasks that mean the same in every tracker.
SHARED = {"type": TYPES, "complexity": COMPLEXITIES, "requires": REQUIRES, "awaiting": tuple(KINDS)}

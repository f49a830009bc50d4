"""Resolves names of tasks and questions: a key, a question number, a bare number, or an id from another tracker.

A name as the desk prints it (`BD-17`, `Q19`) means that and nothing else, so programs can rely on it. A bare number is a task
of the default project. Every other spelling (`bd-17`, `q19`, `k7q`) is also looked up among the old ids, and so is a bare
number among those of the default project. `tracker:id` is an old id in that tracker. A name with several readings is refused,
and the error lists all of them with an exact name for each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from .errors import Invalid, NotFound

_KEY = re.compile(r"([A-Za-z][A-Za-z0-9_]*)-(\d{1,15})")
_NUMBER = re.compile(r"[0-9]{1,15}")
_TRACKED = re.compile(r"([a-z][a-z0-9_-]*):(.+)")
_LONGEST, _SHOWN = 200, 60

#: Trackers that tasks are imported from. Imported notes and questions name theirs as an agent.
TRACKERS = ("ticks", "beehive", "beads")

#: A question's number.
QUESTION = re.compile(r"[qQ](0|[1-9]\d{0,14})")


class Name(NamedTuple):
    """A parsed name. Absent parts are empty."""

    text: str
    key: str = ""
    project: str = ""  #: of the key
    number: int | None = None  #: of a question
    tracker: str = ""
    id: str = ""  #: in that tracker
    bare: bool = False  #: a number without a project

    @property
    def exact(self) -> bool:
        """The spelling that the desk prints."""
        return self.text == (self.key if self.number is None else f"Q{self.number}")


class Reading(NamedTuple):
    """One candidate for a name: a row of the query `named`."""

    task: int
    key: str
    title: str  #: of the task; of a question, its text
    project: str
    question: int | None
    old: str | None  #: the old id that matched; None: the key or number of the thing itself
    extra: str | None

    @property
    def tracker(self) -> str:
        return str(json.loads(self.extra or "{}").get("source", ""))


def parse(text: str, home: Callable[[], str]) -> Name:
    """`home` returns the default project; called only if needed."""
    text = text.strip()
    if not text or not text.isprintable() or len(text) > _LONGEST:
        raise NotFound(f"There is no task {text[:_SHOWN]!a}", hint="A task is named like PROJ-42.")
    if _NUMBER.fullmatch(text):
        project = home()
        return Name(text, f"{project}-{int(text)}", project, bare=True)
    if match := _KEY.fullmatch(text):
        return Name(text, f"{match[1].upper()}-{int(match[2])}", match[1].upper())
    if match := QUESTION.fullmatch(text):
        return Name(text, number=int(match[1]))
    if match := _TRACKED.fullmatch(text):
        return Name(text, tracker=match[1], id=match[2])
    return Name(text)


def resolve(name: Name, candidates: Iterable[Reading]) -> Reading:
    """The candidate that the name means; raises if there is none or more than one."""
    readings = [r for r in candidates if r.old is None or r.old == name.text or r.tracker == name.tracker]
    if name.bare:
        near = [r for r in readings if r.project == name.project]
        readings = near or readings
    readings.sort(key=lambda r: (r.old is not None, r.task))
    things = [r for n, r in enumerate(readings) if all((r.task, r.question) != (o.task, o.question) for o in readings[:n])]
    if len(things) == 1:
        return things[0]
    if not things:
        raise _missing(name)
    raise _ambiguous(name, things)


def _missing(name: Name) -> NotFound:
    if name.number is not None:
        return NotFound(f"There is no question Q{name.number}", hint="See what is open with: turn inbox")
    return NotFound(f"There is no task {name.key if name.bare else name.text}", hint="See what there is with: turn list")


def _ambiguous(name: Name, things: list[Reading]) -> Invalid:
    tracked = [f"{r.tracker}:{r.old}" if r.old and r.tracker else "" for r in things]
    exact = [
        f"Q{r.question}" if r.question is not None else old if old and tracked.count(old) == 1 else r.key
        for r, old in zip(things, tracked, strict=True)
    ]
    clauses = [_clause(name, r, way) for r, way in zip(things, exact, strict=True)]
    return Invalid(
        f"{name.text} has {len(things)} readings", reason=", and ".join(clauses), hint=f"Say which: {' or '.join(exact)}."
    )


def _clause(name: Name, r: Reading, exact: str) -> str:
    title = " ".join(r.title.split())
    title = title if len(title) <= _SHOWN else title[: _SHOWN - 1] + "…"
    if r.question is not None:
        return f'{name.text} is question {exact} "{title}" here'
    if r.old is None:
        return f'{name.text} is {r.key} "{title}" here'
    if exact == r.key:
        return f'{name.text} is the old id of {r.key} "{title}"'
    return f'{exact} is {r.key} "{title}"'

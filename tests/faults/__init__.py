"""The fault tests in full: `make torture`, or `python -m tests.faults [SECTION …] [--scale 0.1]`.

A section is a row of SECTIONS: a name, and a function that is given a place to work in and how much to do, and returns a
Tally. `scale` 1 is the long form; the tests in this folder run the same functions with a small one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass
class Tally:
    """What a section did, and what it found."""

    runs: int = 0
    kills: int = 0
    violations: list[str] = field(default_factory=list)


class Place(NamedTuple):
    """Where a section works."""

    dialect: str  #: sqlite or postgres
    new_db: Callable[[], str]  #: the address of an empty database of that dialect
    scale: float = 1.0
    seed: int = 0


class Section(NamedTuple):
    name: str  #: of the module tests.faults.<name>, which has run(place) -> Tally
    dialects: tuple[str, ...] = ("sqlite", "postgres")


SECTIONS: tuple[Section, ...] = (
    Section("failpoints"),
    Section("models"),
    Section("load"),
    Section("stale_workers"),
    Section("reconcilers"),
    Section("environment"),
    Section("events"),
    Section("scripts"),
    Section("openapi"),
    Section("backup"),
    Section("migrations"),
)

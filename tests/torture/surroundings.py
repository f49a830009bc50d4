"""Section `surroundings`: what a database can do to its users. Files for SQLite, servers for PostgreSQL."""

from __future__ import annotations

from importlib import import_module

from . import Place, Tally

_WHERE = {"sqlite": "files", "postgres": "servers"}


def run(place: Place) -> Tally:
    found: Tally = import_module(f"tests.torture.{_WHERE[place.dialect]}").run(place)
    return found

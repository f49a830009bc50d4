"""Section `environment`: faults of the database itself: files for SQLite, servers for PostgreSQL."""

from __future__ import annotations

from importlib import import_module

from . import Place, Tally

_WHERE = {"sqlite": "sqlite_files", "postgres": "postgres_servers"}


def run(place: Place) -> Tally:
    found: Tally = import_module(f"tests.faults.{_WHERE[place.dialect]}").run(place)
    return found

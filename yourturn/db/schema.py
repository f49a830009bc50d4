"""Creates and upgrades the tables.

`schema.sql` is the newest schema, for new databases. `migrations/NNNN_why.sql` upgrade older ones, each in one transaction
with its version row, under a lock. A program refuses a database of another version and names the command to run.
"""

from __future__ import annotations

import os
import time
from typing import Any

from ..core.errors import BadDatabase, SchemaMismatch
from .backend import Store
from .sql_loader import read, statements
from .tables import TABLES

_MIGRATIONS = os.path.join(os.path.dirname(__file__), "migrations")  # noqa: PTH118, PTH120
#: The schema of this program: that of the newest migration.
VERSION = max(int(name[:4]) for name in os.listdir(_MIGRATIONS) if name.endswith(".sql"))  # noqa: PTH208


def migrations(folder: str | None = None) -> dict[int, str]:
    """version -> script."""
    folder = folder or _MIGRATIONS
    scripts = {}
    for name in sorted(os.listdir(folder)):  # noqa: PTH208
        if name.endswith(".sql"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:  # noqa: PTH118, PTH123
                scripts[int(name[:4])] = file.read()
    return scripts


def version_of(store: Store) -> int:
    """The schema's version; 0 for an empty database. Raises BadDatabase for the tables of another program."""
    with store.reading() as run:
        return version_in(store, run)


def version_in(store: Store, run: Any) -> int:
    tables = store.tables(run)
    if "schema_version" in tables:
        return int(run(store.query["version"]).fetchone()[0] or 0)
    if tables & {table.name for table in TABLES} or (tables and store.dialect == "sqlite"):
        raise BadDatabase(f"{store.url} holds tables of another program", reason=", ".join(sorted(tables)[:5]))
    return 0


def check(store: Store, known: int = VERSION) -> None:
    version = version_of(store)
    if version == 0:
        raise BadDatabase(f"{store.url} holds no desk yet", hint="Make one with: turn init")
    if version < known:
        raise SchemaMismatch(
            f"{store.url} has schema {version}, and this program needs {known}",
            hint="Upgrade it (a backup first is wise) with: turn init --upgrade",
        )
    if version > known:
        raise SchemaMismatch(
            f"{store.url} has schema {version}, and this program only knows {known}",
            hint="It was upgraded by a newer Yourturn: pip install --upgrade yourturn",
        )


def create(store: Store, upgrade: bool = False, known: int = VERSION, steps: dict[int, str] | None = None) -> int:
    """Create the tables, or upgrade them. Safe to run in many processes at once. Returns the version before."""
    before = version_of(store)
    if before == 0:
        _step(store, read("schema.sql"), 0, known)
    elif before < known and upgrade:
        scripts = steps if steps is not None else migrations()
        for version in range(before + 1, known + 1):
            script = scripts[version].replace("{own}", part(version, store.dialect)).replace("{owed}", part(version, "owed"))
            _step(store, script, version - 1, version)
    check(store, known)
    return before


def part(version: int, name: str) -> str:
    """A part of a migration in a file of its own: NNNN.sqlite or NNNN.postgres for {own}, NNNN.owed for {owed}."""
    path = os.path.join(os.path.dirname(__file__), "migrations", f"{version:04}.{name}")  # noqa: PTH118, PTH120
    if not os.path.exists(path):  # noqa: PTH110
        return ""
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        return file.read()


def _step(store: Store, script: str, before: int, after: int) -> None:
    with store.begin("migrate") as run:
        store.script(run, [])
        if version_in(store, run) != before:
            return  # another process was faster
        store.script(run, statements(script, store.words))
        run(
            "INSERT INTO schema_version (version, applied_at) VALUES (:version, :at)",
            {"version": after, "at": time.time_ns() // 1000},
        )

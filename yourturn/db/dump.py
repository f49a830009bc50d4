"""Dump and load: all rows of a database, as they are stored.

Rows keep their ids, because the hashes of the event log cover them. A dump leaves out what each database makes itself (the slot
of an event in the log, the number of the next question) and, without `secrets`, what is valid for this desk only: tokens,
sessions, links, the hashes of passwords and claims, and the workers.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from ..core.errors import Invalid
from . import schema
from .backend import Store
from .sql_loader import read, statements
from .tables import TABLES, Table

Row: TypeAlias = tuple[str, dict[str, Any]]

#: Maximum number of parameters of one statement.
_PARAMETERS = 4_000
#: The hash of a claim that no token proves.
_NO_CLAIM = "0" * 64


def columns(store: Store, run: Any, table: Table) -> list[str]:
    """The columns that the database has; an older desk has fewer."""
    names = [column[0] for column in run(f"SELECT * FROM {table.name} LIMIT 0").description]
    return [name for name in names if name not in table.left_out]


def dump(store: Store, run: Any, secrets: bool) -> Iterator[Row]:
    """All rows, table by table, in the same order on every database. Streams them."""
    tables = store.tables(run)  # an older desk has fewer
    for table in TABLES:
        if table.name not in tables or (not secrets and "*" in table.secret):
            continue
        names = [name for name in columns(store, run, table) if secrets or name not in table.secret]
        order = ", ".join(table.order).replace("{bytewise}", store.words["bytewise"])
        for row in store.stream(run, f"SELECT {', '.join(names)} FROM {table.name} ORDER BY {order}"):
            yield table.name, {name: value for name, value in zip(names, row, strict=True) if value is not None}


def rebuild(store: Store, run: Any) -> None:
    """Replace everything by empty tables of the newest schema, in this transaction."""
    names = [table.name for table in TABLES[::-1]]
    if schema.version_in(store, run) == schema.VERSION and store.clear(run, names):
        return
    for table in (*names, "schema_version"):
        run(f"DROP TABLE IF EXISTS {table}")
    store.script(run, statements(store.words["drop_functions"], {}) + statements(read("schema.sql"), store.words))
    run(
        "INSERT INTO schema_version (version, applied_at) VALUES (:version, :at)",
        {"version": schema.VERSION, "at": time.time_ns() // 1000},
    )


#: Columns of older schemas, in exports and backups of that time.
GONE = {"deps": ("warned",)}


def load(store: Store, run: Any, rows: Iterable[Row]) -> dict[str, int]:
    """Write rows into empty tables. Returns how many per table."""
    allowed = {table.name: set(columns(store, run, table)) for table in TABLES}
    counts = dict.fromkeys(allowed, 0)
    for name, names, batch in _batches(rows, allowed):
        values = ", ".join(f"({', '.join(f':{column}_{i}' for column in names)})" for i in range(len(batch)))
        args = {f"{column}_{i}": row[column] for i, row in enumerate(batch) for column in names}
        run(f"INSERT INTO {name} ({', '.join(names)}) VALUES {values}", args)
        counts[name] += len(batch)
    run(store.query["renumber_questions"])
    store.script(run, statements(schema.part(6, "owed"), store.words))
    store.renumber(run, [(table.name, table.order[0]) for table in TABLES if table.numbered])
    return counts


def _batches(rows: Iterable[Row], allowed: dict[str, set[str]]) -> Iterator[tuple[str, tuple[str, ...], list[dict[str, Any]]]]:
    """Successive rows of one table with the same columns."""
    batch: list[dict[str, Any]] = []
    last: tuple[str, tuple[str, ...]] = ("", ())
    for name, row in rows:
        for column in GONE.get(name, ()):
            row.pop(column, None)
        if name not in allowed or not row.keys() <= allowed[name]:
            raise Invalid(f"Unknown table or column in a row of {name[:40]!a}", hint="Perhaps a newer Yourturn wrote it.")
        if name == "tasks" and "holder" in row and "claim_hash" not in row:
            row["claim_hash"] = _NO_CLAIM  # the import is about to void it
        shape = (name, tuple(sorted(row)))
        if batch and (shape != last or len(batch) * len(row) > _PARAMETERS):
            yield (*last, batch)
            batch = []
        batch.append(row)
        last = shape
    if batch:
        yield (*last, batch)


def lock_tables(store: Store, run: Any) -> None:
    """Block other writers until the transaction ends. In the order in which a move uses the tables."""
    existing = store.tables(run)
    tables = [table.name for table in TABLES if table.name in existing]
    if tables:
        store.lock_all(run, tables)


def holds_work(store: Store, run: Any) -> str:
    """What a replacement of this desk would lose, in words; "" if it is new."""
    if "tasks" not in store.tables(run):
        return ""
    for table in ("tasks", "users", "tokens"):
        count = run(f"SELECT count(*) FROM {table}").fetchone()[0]
        if count:
            return f"it holds {count:,} {table if count != 1 else table[:-1]}"
    moves = run("SELECT count(*) FROM events WHERE action NOT IN ('project_create', 'project_set')").fetchone()[0]
    return "it has a history" if moves else ""

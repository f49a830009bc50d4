"""All rows of a database, as they are: out of one and into another.

Everything that is stored keeps its numbers on the way, because the hashes of the history cover them. Only what a database
makes for itself stays behind (the slot of an event in the log, the number of the next question), and, unless they are
asked for, what is good for this desk only: tokens, sessions, links, the hashes that prove passwords and claims, the workers.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

from ..core.errors import Invalid
from . import schema
from .backend import Store
from .sql_loader import read, statements

Row: TypeAlias = tuple[str, dict[str, Any]]

#: How many parameters go into one statement.
_PARAMETERS = 4_000
_NOBODY = "0" * 64


class Table(NamedTuple):
    name: str
    order: tuple[str, ...]  #: by which its rows are told apart
    numbered: bool = True  #: the database gives the numbers
    left_out: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()  #: columns that only a backup holds; "*" is the whole table


#: In the order in which they refer to each other.
TABLES: tuple[Table, ...] = (
    Table("workspaces", ("id",), left_out=("next_question",)),
    Table("projects", ("id",)),
    Table("users", ("id",), secret=("password",)),
    Table("tokens", ("id",), secret=("*",)),
    Table("logins", ("id",), secret=("*",)),
    Table("links", ("id",), secret=("*",)),
    Table("prefs", ("workspace_id", "actor {bytewise}"), numbered=False),
    Table("rates", ("workspace_id", "name {bytewise}"), numbered=False, secret=("*",)),
    Table("tasks", ("id",), secret=("claim_hash",)),
    Table("deps", ("task_id", "needs_id"), numbered=False),
    Table("questions", ("workspace_id", "id"), numbered=False),
    Table("notes", ("id",)),
    Table("steps", ("task_id", "journal", "place {bytewise}"), numbered=False),
    Table("programs", ("id",)),
    Table("events", ("seq",), left_out=("xid",)),
    Table("output", ("id",)),
    Table("patches", ("task_id",), numbered=False),
    Table("workers", ("workspace_id", "actor {bytewise}", "name {bytewise}"), numbered=False, secret=("*",)),
    Table("replies", ("workspace_id", "actor {bytewise}", "key {bytewise}"), numbered=False),
)


def columns(store: Store, run: Any, table: Table) -> list[str]:
    """What the database itself says: an older desk has fewer."""
    found = [column[0] for column in run(f"SELECT * FROM {table.name} LIMIT 0").description]
    return [name for name in found if name not in table.left_out]


def dump(store: Store, run: Any, secrets: bool) -> Iterator[Row]:
    """Every row, table by table, in an order that is the same everywhere. Holds only a few rows at a time."""
    there = store.tables(run)  # an older desk has fewer
    for table in TABLES:
        if table.name not in there or (not secrets and "*" in table.secret):
            continue
        names = [name for name in columns(store, run, table) if secrets or name not in table.secret]
        order = ", ".join(table.order).replace("{bytewise}", store.words["bytewise"])
        for row in store.stream(run, f"SELECT {', '.join(names)} FROM {table.name} ORDER BY {order}"):
            yield table.name, {name: value for name, value in zip(names, row, strict=True) if value is not None}


def rebuild(store: Store, run: Any) -> None:
    """Empty tables of the newest schema, whatever was there. Undone if the transaction is."""
    names = [table.name for table in TABLES[::-1]]
    if schema.version_in(store, run) == schema.VERSION and store.clear(run, names):
        return
    for table in (*names, "schema_version"):
        run(f"DROP TABLE IF EXISTS {table}")
    store.script(run, statements(store.words["raze"], {}) + statements(read("schema.sql"), store.words))
    run(
        "INSERT INTO schema_version (version, applied_at) VALUES (:version, :at)",
        {"version": schema.VERSION, "at": time.time_ns() // 1000},
    )


#: Columns that older schemas had: an export or a backup of that time still names them.
GONE = {"deps": ("warned",)}


def load(store: Store, run: Any, rows: Iterable[Row]) -> dict[str, int]:
    """Write rows into empty tables. Says how many went where."""
    known = {table.name: set(columns(store, run, table)) for table in TABLES}
    counts = dict.fromkeys(known, 0)
    for name, shape, batch in _batches(rows, known):
        values = ", ".join(f"({', '.join(f':{column}_{i}' for column in shape)})" for i in range(len(batch)))
        args = {f"{column}_{i}": row[column] for i, row in enumerate(batch) for column in shape}
        run(f"INSERT INTO {name} ({', '.join(shape)}) VALUES {values}", args)
        counts[name] += len(batch)
    run(store.query["renumber_questions"])
    store.script(run, statements(schema.part(6, "owed"), store.words))
    store.renumber(run, [(table.name, table.order[0]) for table in TABLES if table.numbered])
    return counts


def _batches(rows: Iterable[Row], known: dict[str, set[str]]) -> Iterator[tuple[str, tuple[str, ...], list[dict[str, Any]]]]:
    """Neighbours of one shape together."""
    waiting: list[dict[str, Any]] = []
    last: tuple[str, tuple[str, ...]] = ("", ())
    for name, row in rows:
        for column in GONE.get(name, ()):
            row.pop(column, None)
        if name not in known or not row.keys() <= known[name]:
            raise Invalid(f"This desk has no place for a row of {name[:40]!a}", hint="Was it written by a newer Yourturn?")
        if name == "tasks" and "holder" in row and "claim_hash" not in row:
            row["claim_hash"] = _NOBODY  # nobody can prove this claim; it is about to be voided
        shape = (name, tuple(sorted(row)))
        if waiting and (shape != last or len(waiting) * len(row) > _PARAMETERS):
            yield (*last, waiting)
            waiting = []
        waiting.append(row)
        last = shape
    if waiting:
        yield (*last, waiting)


def alone(store: Store, run: Any) -> None:
    """Nobody else writes here until the transaction ends. In the order in which a move meets the tables."""
    there = store.tables(run)
    ours = [table.name for table in TABLES if table.name in there]
    if ours:
        store.lock_all(run, ours)


def holds_work(store: Store, run: Any) -> str:
    """What would be lost if this desk were replaced, in words; "" if it was only founded."""
    if "tasks" not in store.tables(run):
        return ""
    for table in ("tasks", "users", "tokens"):
        count = run(f"SELECT count(*) FROM {table}").fetchone()[0]
        if count:
            return f"it holds {count:,} {table if count != 1 else table[:-1]}"
    said = run("SELECT count(*) FROM events WHERE action NOT IN ('project_create', 'project_set')").fetchone()[0]
    return "it has a history" if said else ""

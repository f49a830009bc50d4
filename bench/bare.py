"""Bare commits: the upper limit of the database. One row each, durable, on one connection."""

from __future__ import annotations

import sqlite3
from typing import Any

from .figure import Step

#: A row of about 300 bytes.
_TEXT = "x" * 280
_TABLES = (
    "CREATE TABLE IF NOT EXISTS bare_count (id INTEGER PRIMARY KEY, n BIGINT NOT NULL)",
    "INSERT INTO bare_count (id, n) VALUES (1, 0) ON CONFLICT DO NOTHING",
)


def update(address: str) -> Step:
    """One commit: add one to the only row of a table."""
    return _steps(address, "UPDATE bare_count SET n = n + 1 WHERE id = 1", ())


def insert(address: str) -> Step:
    """One commit: a new row of about 300 bytes."""
    mark = "%s" if address.startswith("postgresql:") else "?"
    return _steps(address, f"INSERT INTO bare_row (text) VALUES ({mark})", (_TEXT,))


def _steps(address: str, statement: str, args: tuple[str, ...]) -> Step:
    if address.startswith("postgresql:"):
        return _postgres(address, statement, args)
    return _sqlite(address, statement, args)


def _sqlite(path: str, statement: str, args: tuple[str, ...]) -> Step:
    db = sqlite3.connect(path, timeout=60, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    for text in (*_TABLES, "CREATE TABLE IF NOT EXISTS bare_row (id INTEGER PRIMARY KEY, text TEXT NOT NULL)"):
        db.execute(text)

    def step() -> int:
        db.execute("BEGIN IMMEDIATE")
        db.execute(statement, args)
        db.execute("COMMIT")
        return 1

    return step


def _postgres(address: str, statement: str, args: tuple[str, ...]) -> Step:
    import psycopg

    db: Any = psycopg.connect(address, autocommit=True)
    identity = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
    for text in (*_TABLES, f"CREATE TABLE IF NOT EXISTS bare_row (id {identity}, text TEXT NOT NULL)"):
        db.execute(text)
    cursor = db.cursor()

    def step() -> int:
        cursor.execute(statement, args or None)
        return 1

    return step

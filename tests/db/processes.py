"""Runs many processes at the same moment; opens a bare connection to the database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.forked_commands import Child


def crowd(address: str, *actors: tuple[str, str, dict[str, Any]], at: int | list[int] | None = None) -> list[dict[str, Any]]:
    """Start everybody, wait until all are ready, let them go at once; what each said: {"ok": …} or {"error": …}."""
    with gathered(address, *actors, at=at) as everybody:
        for process in everybody:
            process.stdin.write("go\n")
            process.stdin.flush()
        return [_said(process) for process in everybody]


@contextmanager
def gathered(
    address: str, *actors: tuple[str, str, dict[str, Any]], at: int | list[int] | None = None
) -> Iterator[list[Child]]:
    """The processes, ready and waiting for a line; none is left behind."""
    times = at if isinstance(at, list) else [at] * len(actors)
    everybody = [
        Child("tests.db.process_roles:run", [json.dumps([role, address, who, now, args])])
        for (role, who, args), now in zip(actors, times, strict=True)
    ]
    try:
        for process in everybody:
            line = process.stdout.readline()
            assert line == "ready\n", line + process.stderr.read()
        yield everybody
    finally:
        for process in everybody:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                pipe.close()


def _said(process: Child) -> dict[str, Any]:
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    assert not err, err
    return json.loads(out)


def oks(results: list[dict[str, Any]]) -> list[Any]:
    """What the successful ones said; the others' words if there are any."""
    assert all("ok" in result for result in results), [r for r in results if "ok" not in r]
    return [result["ok"] for result in results]


class Raw:
    """A bare connection, for looking at rows and for damaging them."""

    def __init__(self, address: str) -> None:
        self.postgres = address.startswith("postgresql:")
        if self.postgres:
            import psycopg

            self.db: Any = psycopg.connect(address, autocommit=True)
            self.refusals: tuple[type[Exception], ...] = (psycopg.IntegrityError, psycopg.errors.RaiseException)
            self.deadlocks: tuple[type[Exception], ...] = (psycopg.errors.DeadlockDetected,)
        else:
            import sqlite3

            self.db = sqlite3.connect(address, isolation_level=None)
            self.db.execute("PRAGMA foreign_keys = ON")
            self.refusals = (sqlite3.IntegrityError,)

    def __call__(self, sql: str) -> list[tuple[Any, ...]]:
        cursor = self.db.execute(sql)
        return cursor.fetchall() if cursor.description else []

    def one(self, sql: str) -> Any:
        return self(sql)[0][0]

    def unguard(self) -> None:
        """Drops the triggers that protect the events, as a user with access to the file could."""
        if self.postgres:
            self("ALTER TABLE events DISABLE TRIGGER USER")
            self("SET session_replication_role = replica")
        else:
            for (name,) in self("SELECT name FROM sqlite_master WHERE type = 'trigger'"):
                self(f"DROP TRIGGER {name}")
            self("PRAGMA foreign_keys = OFF")
            self("PRAGMA ignore_check_constraints = ON")

    def close(self) -> None:
        self.db.close()


@contextmanager
def raw(address: str) -> Iterator[Raw]:
    found = Raw(address)
    try:
        yield found
    finally:
        found.close()

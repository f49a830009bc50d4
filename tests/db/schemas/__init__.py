"""Every released schema, as it was released, and a desk of that time with work that waits in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.db.processes import raw

HERE = Path(__file__).parent
#: Versions that people may still have.
RELEASED = sorted(int(path.name[:4]) for path in HERE.glob("*.jsonl"))


def told(version: int) -> dict[str, Any]:
    """Credentials issued before the upgrade: tokens of claims, people and agents."""
    with (HERE / f"{version:04}.jsonl").open() as file:
        return json.loads(file.readline())


def rows(version: int) -> list[tuple[str, dict[str, Any]]]:
    with (HERE / f"{version:04}.jsonl").open() as file:
        return [(table, row) for table, row in map(json.loads, list(file)[1:])]


def old_desk(address: str, version: int) -> None:
    """Make it, without a line of our own code."""
    if "://" not in address:
        Path(address).parent.mkdir(parents=True, exist_ok=True)
    with raw(address) as run:
        if not run.postgres:
            run("PRAGMA journal_mode = WAL")
        run("BEGIN")
        script = (HERE / f"{version:04}.{'postgres' if run.postgres else 'sqlite'}.sql").read_text()
        for statement in script.partition("\n")[2].split("\n;;\n"):
            run.db.execute(statement)
        for table, row in rows(version):
            names = ", ".join(row)
            marks = ", ".join(["%s" if run.postgres else "?"] * len(row))
            run.db.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(row.values()))
        if run.postgres:
            there = {table for table, _ in rows(version)}
            for table in there & {"workspaces", "projects", "users", "tokens", "tasks", "notes", "events", "programs"}:
                column = "seq" if table == "events" else "id"
                run(f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), (SELECT max({column}) FROM {table}))")
        run("COMMIT")

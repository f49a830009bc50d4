"""Upgrades from every released schema, killed after every statement: what both the tests and the long form do."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.db.processes import raw
from tests.db.schemas import old_desk
from yourturn.config import open_store
from yourturn.db import schema
from yourturn.db.dump import TABLES

_UPGRADER = str(Path(__file__).parent / "upgrade_process.py")
_SAID = "seq, workspace_id, task_id, n, at, actor, action, data, prev, hash"


class Upgrader:
    """Upgrades in processes of their own."""

    def __enter__(self) -> Upgrader:
        self.process = subprocess.Popen([sys.executable, _UPGRADER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __call__(self, address: str, kill_after: int = 0) -> int:
        """How many statements it said, or 0 if it was killed."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps([address, kill_after]) + "\n")
        self.process.stdin.flush()
        found = json.loads(self.process.stdout.readline())
        assert isinstance(found, int), found
        return found

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


def contents(address: str) -> dict[str, list[Any]]:
    """Every row of every table; when the upgrade was made is its own business."""
    with raw(address) as run:
        there = _there(run)
        names = [table.name for table in TABLES if table.name != "events" and table.name in there]
        found = {name: sorted(map(repr, run(f"SELECT * FROM {name}"))) for name in names}
        found["events"] = sorted(map(repr, run(f"SELECT {_SAID} FROM events")))
        found["versions"] = run("SELECT version FROM schema_version ORDER BY version")
        return found


def _there(run: Any) -> set[str]:
    if run.postgres:
        return {row[0] for row in run("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")}
    return {row[0] for row in run("SELECT name FROM sqlite_master WHERE type = 'table'")}


def shape(address: str) -> list[str]:
    """Tables with their columns and checks, indexes and triggers, as the database itself describes them."""
    with raw(address) as run:
        if not run.postgres:
            rows = run("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name")
            return [f"{sort} {name}: {_plain(sql)}" for sort, name, sql in rows]
        asked = (
            "SELECT concat_ws(' ', table_name, column_name, data_type, is_nullable, column_default, is_identity, "
            "ordinal_position) FROM information_schema.columns WHERE table_schema = current_schema()",
            "SELECT conrelid::regclass || ': ' || pg_get_constraintdef(oid) FROM pg_constraint "
            "WHERE connamespace = current_schema()::regnamespace",
            "SELECT replace(indexdef, current_schema() || '.', '') FROM pg_indexes WHERE schemaname = current_schema()",
            "SELECT replace(pg_get_triggerdef(t.oid), current_schema() || '.', '') FROM pg_trigger t "
            "JOIN pg_class c ON c.oid = t.tgrelid WHERE NOT t.tgisinternal AND c.relnamespace = current_schema()::regnamespace",
            "SELECT proname || ': ' || regexp_replace(prosrc, '\\s+', ' ', 'g') FROM pg_proc "
            "WHERE pronamespace = current_schema()::regnamespace",
        )
        return [f"{n} {row[0]}" for n, sql in enumerate(asked) for row in sorted(run(sql))]


#: Until schema 7, SQLite was given chains of ORs for the lists of schema.sql.
_LIST = re.compile(r"(\w+) IN \(([^()]*)\)")


def _chain(found: re.Match[str]) -> str:
    return f"({' OR '.join(f'{found[1]} = {word.strip()}' for word in found[2].split(','))})"


def _plain(sql: str) -> str:
    """Without what only layout decides; and a list of words is the same as a chain of them."""
    return re.sub(r"\s*([(),])\s*", r"\1", " ".join(_LIST.sub(_chain, sql).split()))


Stage = tuple[dict[str, list[Any]], list[str]]


def stage(address: str) -> Stage:
    return contents(address), shape(address)


def _stages(address: str, version: int) -> list[Stage]:
    """The desk before, and after each schema on the way: one step is made whole, or not at all."""
    old_desk(address, version)
    found = [stage(address)]
    store = open_store(address)
    try:
        for known in range(version + 1, schema.VERSION + 1):
            schema.create(store, upgrade=True, known=known)
            found.append(stage(address))
    finally:
        store.close()
    return found


def killed_everywhere(new_db: Callable[[], str], version: int, every: int = 1) -> tuple[int, list[str]]:
    """(kills, what was promised and not found): one desk's upgrade is killed after each of its statements, until it is done.

    After each kill the desk is exactly as before, or exactly as after a whole schema; then the next process begins there.
    """
    stages = _stages(new_db(), version)
    with Upgrader() as upgrade:
        whole, address = new_db(), new_db()
        old_desk(whole, version)
        steps = upgrade(whole)
        wrong = [] if stage(whole) == stages[-1] else [f"An upgrade from schema {version} at once gives something else."]
        old_desk(address, version)
        at = kills = 0
        step = 1
        while at < len(stages) - 1:
            alive, now = upgrade(address, step), stage(address)
            how = f"An upgrade from schema {version + at} that was killed after statement {step}"
            if now not in stages[at:]:
                return kills, [*wrong, f"{how} left half of it behind."]
            if alive and every == 1:
                return kills, [*wrong, f"{how} should be dead, and is not."]
            kills += not alive
            at, step = (at, step + every) if now == stages[at] else (stages.index(now), 1)
    if every == 1 and kills != steps:
        wrong.append(f"An upgrade from schema {version} says {steps} statements, and was killed after {kills}.")
    return kills, wrong

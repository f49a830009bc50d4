"""Fills a desk with many tasks.

One task per state is created with `Desk.do`, then its rows are copied: task, questions and events, with their own key, number and
hash chain. So the desk is valid (`turn doctor` reports nothing), however large, and follows changes of the schema.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from yourturn.client import Client
from yourturn.core.canonical_json import dumps, link

from .environment import open_desk

_BATCH = 20_000
_MANY = 100_000
_EXTRAS = (
    "SELECT type, name, sql FROM sqlite_master WHERE type IN ('index', 'trigger') AND sql IS NOT NULL "
    "AND tbl_name IN ('tasks', 'questions', 'events', 'steps', 'programs')"
)
_URGENCIES = ("normal", "low", "normal", "high", "normal")

Columns = dict[str, Any]


class Sample(NamedTuple):
    task: Columns
    questions: list[Columns]
    events: list[Columns]
    event_data: list[Columns]  #: the data of each event
    steps: list[Columns] = []  # of a run
    programs: list[Columns] = []


class Bulk:
    """A bare connection that inserts fast."""

    def __init__(self, address: str) -> None:
        self.postgres = address.startswith("postgresql:")
        if self.postgres:
            import psycopg

            self.db: Any = psycopg.connect(address, autocommit=True)
            self.db.execute("SET session_replication_role = replica")  # copies of valid rows need no checks
            self.db.execute("SET synchronous_commit = off")
        else:
            self.db = sqlite3.connect(address, timeout=60, isolation_level=None)
            self.db.execute("PRAGMA synchronous = OFF")
            self.db.execute("PRAGMA cache_size = -200000")

    def rows(self, text: str) -> list[Columns]:
        cursor = self.db.execute(text)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def number(self, text: str) -> int:
        return int(self.db.execute(text).fetchone()[0] or 0)

    def insert(self, table: str, names: list[str], rows: list[tuple[Any, ...]]) -> None:
        if not rows:
            return
        listed = ", ".join(names)
        if self.postgres:
            with self.db.cursor().copy(f"COPY {table} ({listed}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
        else:
            self.db.execute("BEGIN IMMEDIATE")
            self.db.executemany(f"INSERT INTO {table} ({listed}) VALUES ({', '.join('?' * len(names))})", rows)
            self.db.execute("COMMIT")

    def set_sequences(self) -> None:
        """Set the database's sequences behind the ids that were used here."""
        for table, column in (("tasks", "id"), ("events", "seq")) if self.postgres else ():
            serial = f"pg_get_serial_sequence('{table}', '{column}')"
            self.db.execute(f"SELECT setval({serial}, (SELECT max({column}) FROM {table}))")

    @contextmanager
    def unindexed(self) -> Iterator[None]:
        """On SQLite, without indexes and triggers until the rows are inserted: that is faster."""
        rows = [] if self.postgres else self.rows(_EXTRAS)
        for extra in rows:
            self.db.execute(f"DROP {extra['type']} {extra['name']}")
        try:
            yield
        finally:
            for extra in rows:
                self.db.execute(extra["sql"])

    def maintain(self) -> None:
        """Run the maintenance that a server does after a while."""
        if self.postgres:
            self.db.execute("VACUUM ANALYZE")
            self.db.execute("CHECKPOINT")
        else:
            self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        self.db.close()


def fill(address: str, *, ready: int = 0, human: int = 0, done: int = 0) -> float:
    """Add tasks in each state. Returns the seconds that it took."""
    begun = time.monotonic()
    bulk = Bulk(address)
    with open_desk(address) as desk:
        samples = [(_sample(bulk, desk, state), n) for state, n in (("ready", ready), ("human", human), ("done", done)) if n]
    with bulk.unindexed() if ready + human + done >= _MANY else nullcontext():
        for sample, count in samples:
            _copies(bulk, sample, count - 1)
    bulk.maintain()
    bulk.close()
    return time.monotonic() - begun


def waiting_runs(address: str, count: int, folder: Path) -> float:
    """Add runs that wait for a person, at the first pause of the script in the folder."""
    from .runner import begin

    begun = time.monotonic()
    bulk = Bulk(address)
    with open_desk(address) as desk:
        sample = _read_sample(bulk, begin(desk, folder))
    with bulk.unindexed() if count >= _MANY else nullcontext():
        _copies(bulk, sample, count - 1)
    bulk.maintain()
    bulk.close()
    return time.monotonic() - begun


def _sample(bulk: Bulk, desk: Client, state: str) -> Sample:
    key = desk.create("One of many tasks", description="What there is to do, in a few words. " * 3)["key"]
    if state == "human":
        desk.ask(key, "Which of the two ways do you want?", options=["this", "that"], timeout="24h", on_timeout="keep")
    if state == "done":
        desk.close(key, "It was done elsewhere")
    sample = _read_sample(bulk, key)
    assert sample.task["state"] == state
    return sample


def _read_sample(bulk: Bulk, key: str) -> Sample:
    task = bulk.rows(f"SELECT * FROM tasks WHERE key = '{key}'")[0]
    questions = bulk.rows(f"SELECT * FROM questions WHERE task_id = {task['id']} ORDER BY id")
    events = bulk.rows(f"SELECT * FROM events WHERE task_id = {task['id']} ORDER BY n")
    steps, programs = (bulk.rows(f"SELECT * FROM {table} WHERE task_id = {task['id']}") for table in ("steps", "programs"))
    for row in programs:
        del row["id"]  # assigned by the database
    return Sample(task, questions, events, [json.loads(event["data"]) for event in events], steps, programs)


def _copies(bulk: Bulk, sample: Sample, count: int) -> None:
    prefix = sample.task["key"].rpartition("-")[0]
    number = bulk.number(f"SELECT next_number FROM projects WHERE id = {sample.task['project_id']}") - 1
    tasks, questions = bulk.number("SELECT max(id) FROM tasks"), bulk.number("SELECT max(id) FROM questions")
    events = bulk.number("SELECT max(seq) FROM events")
    for first in range(0, count, _BATCH):
        copies: dict[str, list[tuple[Any, ...]]] = {"tasks": [], "questions": [], "events": [], "steps": [], "programs": []}
        for i in range(first + 1, min(first + _BATCH, count) + 1):
            for table, row in _copy(sample, f"{prefix}-{number + i}", i, tasks + i, questions + i):
                if table == "events":
                    events += 1
                    row["seq"] = events
                copies[table].append(tuple(row.values()))
        examples = {"tasks": [sample.task], **{table: getattr(sample, table) for table in copies if table != "tasks"}}
        for table, rows in copies.items():
            bulk.insert(table, [name for name in examples[table][0] if name != "xid"] if rows else [], rows)
    bulk.set_sequences()
    bulk.db.execute(f"UPDATE projects SET next_number = {number + count + 1} WHERE id = {sample.task['project_id']}")
    if sample.questions:
        bulk.db.execute(f"UPDATE workspaces SET next_question = {questions + count + 1}")


def _copy(sample: Sample, key: str, i: int, task: int, question: int) -> Iterator[tuple[str, Columns]]:
    priority, urgency = i % 5, _URGENCIES[i // 7 % 5]
    head, chain = "", []
    for event, data in zip(sample.events, sample.event_data, strict=True):
        data = dict(data)
        if "key" in data.get("set", {}):
            data["set"] = {**data["set"], "key": key, "priority": priority}
        if "opened" in data:
            data["opened"] = [{**opened, "id": question, "urgency": urgency} for opened in data["opened"]]
        body = dumps(data)
        hash = link(head, key, event["n"], event["at"], event["actor"], event["action"], body)
        row = {**event, "task_id": task, "data": body, "prev": head, "hash": hash}
        del row["xid"]
        chain.append(row)
        head = hash
    yield "tasks", {**sample.task, "id": task, "key": key, "priority": priority, "event_head": head}
    for asked in sample.questions:
        yield "questions", {**asked, "id": question, "task_id": task, "urgency": urgency}
    for row in chain:
        yield "events", row
    for table, rows in (("steps", sample.steps), ("programs", sample.programs)):
        for row in rows:
            yield table, {**row, "task_id": task}

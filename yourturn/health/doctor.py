"""Checks the health of the database, for `turn doctor`.

Each check is a row of `CHECKS`: a name, a function that returns what is wrong in words, the status in that case, the text
when nothing is wrong, and a hint. `examine` runs each check in its own read-only transaction. A check that raises, because
the database is damaged, is reported as bad with the reason; `examine` itself never raises.

The rules (core/rules.py) keep these invariants, and the schema's CHECKs guard most of them. The doctor reads the rows all
the same, because files are restored, copied and edited by hand.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

from ..client import Client
from ..db import integrity_queries, schema
from ..db.reads import Reader
from .audit import verify

_SHOWN = 5
_RESTORE = "The rows were changed behind the desk's back: compare with a backup."


class Check(NamedTuple):
    name: str
    run: Callable[[Client], Iterable[str]]  #: returns the problems
    status: str  #: with problems: warn or bad
    well: str  #: the text without problems
    hint: str


def examine(client: Client, strict: bool = False) -> list[dict[str, str]]:
    """One line per check: check, status (ok, warn, bad), words, hint. `strict` adds the checks of the package strict."""
    assert client.desk.store  # a remote client raises an error here: it cannot examine the database
    lines = [*(_examined(client, check) for check in CHECKS), _workers(client)]
    if strict:
        from ..strict import report  # optional; 20 ms

        lines += [_line(f"strict {c['check']}", "bad", c["wrong"], c["well"], c["hint"]) for c in report(client)]
    return lines


def _examined(client: Client, check: Check) -> dict[str, str]:
    status = check.status
    try:
        problems = list(check.run(client))
    except Exception as trouble:  # the doctor reports every error
        problems, status = [f"the check failed: {trouble or type(trouble).__name__}"], "bad"
    return _line(check.name, status, problems, check.well, check.hint)


def _line(name: str, status: str, problems: list[str], well: str, hint: str) -> dict[str, str]:
    if not problems:
        return {"check": name, "status": "ok", "words": well, "hint": ""}
    words = "; ".join(problems[:_SHOWN]) + (f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else "")
    return {"check": name, "status": status, "words": words, "hint": hint}


# --- the database -----------------------------------------------------------------------------------------------------


def _schema(client: Client) -> Iterable[str]:
    version = schema.version_of(client.desk.store)
    return [] if version == schema.VERSION else [f"schema {version}, and this program works with {schema.VERSION}"]


def _database(client: Client) -> Iterable[str]:
    return client.desk.store.check()


def _held_back(client: Client) -> Iterable[str]:
    return client.desk.store.held_back()


def _history(client: Client) -> Iterable[str]:
    return [f"{p['chain']} event {p['n']} {p['what']}" for p in verify(client)["problems"]]


# --- rows -------------------------------------------------------------------------------------------------------------


def _read(query: Callable[[Reader], Iterable[str]]) -> Callable[[Client], Iterable[str]]:
    """A check of the stored rows, without due moves."""

    def run(client: Client) -> Iterable[str]:
        desk = client.desk
        with desk.store.begin(write=False) as execute:
            reader = Reader(desk.store, execute, desk.workspace)
            reader.now = desk.now(execute(desk.store.query["now"]).fetchone()[0])
            return list(query(reader))

    return run


def _overdue(reader: Reader) -> Iterable[str]:
    late = integrity_queries.overdue(reader)
    return [f"{late} task{'s' * (late != 1)} should have moved by now"] if late else []


def _violations(name: str, words: str) -> Callable[[Client], Iterable[str]]:
    """A check that is one query for violating rows."""
    return _read(lambda reader: [f"{key} {words}" for key in integrity_queries.violations(reader, name)])


def _acyclic(reader: Reader) -> Iterable[str]:
    needs: dict[str, set[str]] = {}
    for task, other in integrity_queries.edges(reader):
        needs.setdefault(task, set()).add(other)
    return cycles(needs)


def cycles(needs: dict[str, set[str]]) -> list[str]:
    """Topological sort of the dependencies; what cannot be sorted is part of a cycle, or waits for one."""
    sorter = TopologicalSorter(needs)
    with suppress(CycleError):
        sorter.prepare()
    free: set[str] = set()
    while ready := sorter.get_ready():
        free.update(ready)
        sorter.done(*ready)
    return [
        f"{task} waits for itself, by way of {', '.join(sorted(others - free))}"
        for task, others in sorted(needs.items())
        if task not in free
    ]


def _epochs(reader: Reader) -> Iterable[str]:
    """Each claim's epoch is higher than the one before, and the row's is not lower than the last."""
    last: dict[str, int] = {}
    for key, now, data in integrity_queries.claims(reader):
        epoch = json.loads(data)["set"]["epoch"]
        if epoch <= last.get(key, 0):
            yield f"{key} was claimed with epoch {epoch} after {last[key]}"
        elif epoch > now:
            yield f"{key} has epoch {now}, and was claimed with {epoch}"
        last[key] = epoch


def _log(reader: Reader) -> Iterable[str]:
    """The last event of a task led to the state of its row."""
    for key, state, data in integrity_queries.last_events(reader):
        to = json.loads(data).get("to")
        if to != state:
            yield f"{key} is '{state}', and its last event says '{to}'"


# --- workers ----------------------------------------------------------------------------------------------------------


def _workers(client: Client) -> dict[str, str]:
    """The running workers, or the last one. Always ok: a desk without workers is valid."""
    try:
        workers = client.workers()
    except Exception as trouble:  # the doctor reports every error
        return _line("workers", "bad", [f"the check failed: {trouble or type(trouble).__name__}"], "", "")
    running = [w for w in workers if w["running"]]
    if running:
        shown = [f"{_worker(w)}: {', '.join(w['tasks'][:_SHOWN]) or 'idle'}" for w in running[:_SHOWN]]
        more = [f"and {len(running) - _SHOWN} more"] if len(running) > _SHOWN else []
        return _line("workers", "ok", [], f"{len(running)} run{'s' * (len(running) == 1)}: {'; '.join(shown + more)}", "")
    last = f"; the last one, {_worker(workers[0])}, was seen at {workers[0]['seen_at']}" if workers else ""
    return _line("workers", "ok", [], f"none runs{last}", "")


def _worker(w: dict[str, Any]) -> str:
    takes = [w["project"], w["epic"] and f"below {w['epic']}", ", ".join(w["agents"]) or "runs only"]
    return f"{w['name']} on {w['host']} ({', '.join(filter(None, takes))})"


_UPGRADE = "Upgrade the database with: turn init --upgrade, or the program with pip."
_BACKUP = "Restore a backup; keep this file for a closer look."
_HOLDER = "End that transaction: until then, watchers see nothing newer."
_TRIES = "Give it back with: turn update KEY --max-retries N, or cancel it."
_REVOKE = "Revoke it at once: turn token revoke NAME"

CHECKS: tuple[Check, ...] = (
    Check("schema", _schema, "bad", f"schema {schema.VERSION}", _UPGRADE),
    Check("database", _database, "bad", "the database finds nothing wrong with itself", _BACKUP),
    Check("rows", _violations("orphan", "refers to a row that is gone"), "bad", "no row refers to a missing one", _RESTORE),
    Check("history", _history, "bad", "every chain of events verifies", "See all with: turn audit verify"),
    Check("log", _read(_log), "bad", "the last event of every task says its state", _RESTORE),
    Check("readers", _held_back, "warn", "no transaction holds event readers back", _HOLDER),
    Check("overdue", _read(_overdue), "warn", "nothing is overdue", "Make the moves with: turn reconcile"),
    Check("working", _violations("unclaimed", "is 'working' without a claim"), "bad", "working tasks are claimed", _RESTORE),
    Check("claims", _violations("stray_claim", "has a claim it should not have"), "bad", "no other task is claimed", _RESTORE),
    Check("human", _violations("unasked", "is 'human' without an open question"), "bad", "human tasks have a question", _RESTORE),
    Check("asked", _violations("unheld", "has a blocking question and goes on"), "bad", "asking tasks wait", _RESTORE),
    Check("ended", _violations("left_open", "has ended with an open question"), "bad", "ended tasks ask nothing", _RESTORE),
    Check("ready", _violations("too_early", "is 'ready' before what it needs"), "bad", "ready tasks need nothing", _RESTORE),
    Check("blocked", _violations("too_late", "is 'blocked' by nothing"), "bad", "blocked tasks wait for something", _RESTORE),
    Check("circles", _read(_acyclic), "bad", "no task waits for itself", "Break it with: turn dep remove KEY NEEDS"),
    Check("epochs", _read(_epochs), "bad", "epochs only grow", _RESTORE),
    Check("retries", _violations("exhausted", "ran out of tries without a question"), "warn", "a person was asked", _TRIES),
    Check("secrets", _violations("in_clear", "holds a secret in clear"), "bad", "secrets are stored as hashes only", _REVOKE),
)

"""Changes the event log directly in the database; `turn audit verify` must name each change.

Triggers and unique indexes are out of the way, so nothing but the chain can notice. Every field of every event is edited (also
with a recomputed hash); every event is deleted; forged ones are put in after each; any two are swapped. Each
time one thing is done, the audit looks, and it is undone. Chains that were cut short together with their row look well
and are found with an anchor.

What a chain does not hold is the order of events of *different* tasks: exchanging the places of two of them is not tried, unless
that also turns one of their chains around.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any, NamedTuple

from tests.db.processes import Raw, raw
from yourturn.client import Client
from yourturn.config import connect, init
from yourturn.core.canonical_json import link
from yourturn.health import audit

from . import Place

COLUMNS = ("seq", "xid", "workspace_id", "task_id", "n", "at", "actor", "action", "data", "prev", "hash")
Row = dict[str, Any]


class Tampering(NamedTuple):
    what: str
    gone: tuple[int, ...]  #: the seqs that are taken out
    put: tuple[Row, ...]  #: what is put in instead
    chains: frozenset[str]  #: one of these must be named


class Log:
    """The events of a desk, by raw SQL."""

    def __init__(self, run: Raw) -> None:
        self.run = run
        self.rows = [dict(zip(COLUMNS, row, strict=True)) for row in run(f"SELECT {', '.join(COLUMNS)} FROM events ORDER BY seq")]
        self.by_seq = {row["seq"]: row for row in self.rows}
        self.names = {None: "default", **dict(run("SELECT id, key FROM tasks"))}
        self.chains: dict[int | None, list[Row]] = {}
        for row in self.rows:
            self.chains.setdefault(row["task_id"], []).append(row)

    def name(self, row: Row) -> str:
        return str(self.names.get(row["task_id"], f"task number {row['task_id']}"))

    def place(self, row: Row) -> int:
        return self.chains[row["task_id"]].index(row)

    def swap(self, gone: Iterable[int], put: Iterable[Row]) -> None:
        self.run("BEGIN")
        for seq in gone:
            self.run(f"DELETE FROM events WHERE seq = {seq}")
        for row in put:
            values = ", ".join(_literal(row[name]) for name in COLUMNS)
            self.run(f"INSERT INTO events ({', '.join(COLUMNS)}) VALUES ({values})")
        self.run("COMMIT")


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"


# --- the ways ---------------------------------------------------------------------------------------------------------


def every_way(log: Log) -> Iterator[Tampering]:
    last = max(log.by_seq)
    for row in log.rows:
        yield from _edits(log, row)
        yield _way(log, "delete", (row,), ())
        yield from _insertions(log, row, last)
    for one, other in combinations(log.rows, 2):
        yield from _swaps(log, one, other)


def _way(log: Log, what: str, gone: tuple[Row, ...], put: tuple[Row, ...]) -> Tampering:
    about = f"{what} " + " and ".join(f"{log.name(row)} event {row['n']}" for row in gone or put)
    return Tampering(about, tuple(row["seq"] for row in gone), put, frozenset(map(log.name, (*gone, *put))))


def _fitting(log: Log, row: Row) -> Row:
    fresh = link(row["prev"], log.name(row), row["n"], row["at"], row["actor"], row["action"], row["data"])
    return {**row, "hash": fresh}


def _edits(log: Log, row: Row) -> Iterator[Tampering]:
    other = next(task for task in log.chains if task is not None and task != row["task_id"])
    said = json.loads(row["data"])
    changes: dict[str, list[Any]] = {
        "workspace_id": [row["workspace_id"] + 1],
        "task_id": [other, None if row["task_id"] else other, 987654],
        "n": [row["n"] + 1, row["n"] - 1, 0, row["n"] + 1000],
        "at": [row["at"] + 1, row["at"] - 1, 0],
        "actor": ["human:eve", row["actor"] + " ", ""],
        "action": ["note" if row["action"] != "note" else "approve", ""],
        "data": [row["data"] + " ", "{}", json.dumps({**said, "to": "cancelled "}), row["data"].swapcase()],
        "prev": [_flip(row["prev"]), row["hash"]],
        "hash": [_flip(row["hash"]), row["prev"], ""],
    }
    for column, values in changes.items():
        for value in values:
            if value == row[column]:
                continue
            edited = {**row, column: value}
            yield _way(log, f"edit {column} of", (row,), (edited,))
            if column in ("at", "actor", "action", "data"):
                yield _way(log, f"edit {column} with a fitting hash of", (row,), (_fitting(log, edited),))
    chain, place = log.chains[row["task_id"]], log.place(row)
    if place + 1 < len(chain):
        after = chain[place + 1]
        yield _way(log, "move behind the next", (row, after), ({**row, "seq": after["seq"]}, {**after, "seq": row["seq"]}))


def _flip(hash: str) -> str:
    return ("1" if hash[:1] != "1" else "2") + hash[1:]


def _insertions(log: Log, row: Row, last: int) -> Iterator[Tampering]:
    said = {"actor": "human:eve", "action": "note", "data": '{"to":"done"}'}
    forged = {**row, **said, "seq": last + 1, "n": row["n"] + 1, "prev": row["hash"]}
    yield _way(log, "put a forged one after", (), (_fitting(log, forged),))
    yield _way(log, "repeat", (), ({**row, "seq": last + 1},))
    chain, place = log.chains[row["task_id"]], log.place(row)
    if place + 1 < len(chain):  # squeezed in, and everything behind renumbered, but not linked anew
        behind = chain[place + 1 :]
        moved = tuple({**other, "n": other["n"] + 1, "seq": last + 2 + i} for i, other in enumerate(behind))
        yield _way(log, "squeeze one in before", tuple(behind), (_fitting(log, forged), *moved))


def _swaps(log: Log, one: Row, other: Row) -> Iterator[Tampering]:
    for names in (("data",), ("actor",), ("at", "actor", "action", "data"), ("prev", "hash"), ("task_id", "n")):
        if any(one[name] != other[name] for name in names):
            put = {**one, **{n: other[n] for n in names}}, {**other, **{n: one[n] for n in names}}
            yield _way(log, f"swap {', '.join(names)} of", (one, other), put)
    if one["task_id"] == other["task_id"] or _turns(log, one, other):
        put = {**one, "seq": other["seq"]}, {**other, "seq": one["seq"]}
        yield _way(log, "swap the places of", (one, other), put)


def _turns(log: Log, one: Row, other: Row) -> bool:
    """Would exchanging their places turn one of the two chains around?"""
    low, high = sorted((one["seq"], other["seq"]))
    return any(low < row["seq"] < high for mine in (one, other) for row in log.chains[mine["task_id"]] if row is not mine)


# --- the run ----------------------------------------------------------------------------------------------------------


def live(desk: Client, agent: Client, rounds: int) -> None:
    """A bit of everything."""
    for _ in range(rounds):
        first = desk.create("A", priority=1, labels=["x"])["key"]
        desk.create("B", depends_on=[first])
        got = agent.claim(first, "w1")
        asked = agent.ask(first, "Which?", options=["a", "b"], claim=got)
        desk.note(first, "hm")
        desk.answer(asked["id"], "b")
        agent.complete(got, "did it")
        desk.decompose(desk.create("C", type="epic")["key"], ["D", "E"])
        desk.set_user(f"bob{desk.counts()['done']}")


def run(place: Place, luck: random.Random) -> tuple[int, list[str]]:
    """How many ways were tried, and which were not found."""
    address = place.new_db()
    init(address, "PROJ", None, {"USER": "ana"})[0].close()
    with (
        connect(address, as_="human:ana", project="PROJ", env={}) as desk,
        connect(address, as_="agent:coder", project="PROJ", env={}) as agent,
        raw(address) as db,
    ):
        live(desk, agent, 1)
        exhaustive = place.dialect == "sqlite" or place.scale >= 1
        most = 10**9 if exhaustive else max(150, round(5000 * place.scale))
        _unguard(db)
        tried, missed = _try(desk, db, luck, most)
        if place.scale >= 1:
            live(desk, agent, 10)
            more, found = _try(desk, db, luck, 1000)
            tried, missed = tried + more, missed + found
    return tried, missed


def _unguard(db: Raw) -> None:
    db.unguard()
    db("SET synchronous_commit = off" if db.postgres else "PRAGMA synchronous = OFF")
    for index in ("events_chain", "events_office"):
        db(f"DROP INDEX {index}")


def _try(desk: Client, db: Raw, luck: random.Random, most: int) -> tuple[int, list[str]]:
    log = Log(db)
    missed = [] if audit.verify(desk)["ok"] else ["an untouched log should verify, and does not"]
    ways = list(every_way(log))
    if len(ways) > most:
        ways = luck.sample(ways, most)
    for way in ways:
        log.swap(way.gone, way.put)
        named = {problem["chain"] for problem in audit.verify(desk)["problems"]}
        if not named & way.chains:
            missed.append(f"tampering should be found, and was not: {way.what}" + (f" (named: {named})" if named else ""))
        log.swap((row["seq"] for row in way.put), (log.by_seq[seq] for seq in way.gone))
    if not audit.verify(desk)["ok"]:
        missed.append("after everything was put back the log should verify, and does not")
    cuts = [(task, keep) for task, chain in log.chains.items() for keep in range(len(chain))]
    for task, keep in luck.sample(cuts, min(len(cuts), most)):
        missed += _cut(desk, log, task, keep)
    return len(ways) + len(cuts), missed


def _cut(desk: Client, log: Log, task: int | None, keep: int) -> Iterator[str]:
    """Cuts a chain and adapts its row: only an anchor shows it."""
    anchor = json.loads(json.dumps(audit.anchor(desk)))
    chain = log.chains[task]
    where = "tasks SET {} WHERE id = " + str(task) if task else "workspaces SET {} WHERE name = 'default'"
    row = "UPDATE " + where.format("event_count = {}, event_head = '{}'")
    log.swap((row["seq"] for row in chain[keep:]), ())
    log.run(row.format(keep, chain[keep - 1]["hash"] if keep else ""))
    if not audit.verify(desk)["ok"]:
        yield f"a chain that was cut with its row should look like a younger one, and {log.names[task]} at {keep} did not"
    named = {problem["chain"] for problem in audit.verify(desk, anchor)["problems"]}
    if named != {log.names[task]}:
        yield f"an anchor should name what was cut, and of {log.names[task]} at {keep} it named {named or 'nothing'}"
    log.swap((), chain[keep:])
    log.run(row.format(len(chain), chain[-1]["hash"]))

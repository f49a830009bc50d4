"""Audit: verifies that the event log is as it was written.

Every task has a chain of events, and the workspace has one for events without a task. An event contains its number `n` in the
chain, the hash of the previous event (`prev`), and a hash over both and its content. The row of the task has the last number
and hash. So a changed, removed, added or moved event is found unless the rest of the chain and the row are rewritten, too.

A chain that was truncated *and* whose row was rewritten to match looks like a younger chain. `anchor` returns the heads of all
chains, to be kept elsewhere; `verify` compares the log with them.

Both read one snapshot, without due moves, and write nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from ..client import Client, serialize
from ..core.canonical_json import digest, link
from ..core.errors import Invalid
from ..core.model import Event
from ..db.reads import Reader

Problem: TypeAlias = dict[str, Any]
Heads: TypeAlias = dict[str, list[Any]]

PAGE = 5000


class _Link(NamedTuple):
    """The last verified event of a chain."""

    name: str
    n: int
    hash: str


class _Walk:
    """One pass over all events in the order of writing."""

    def __init__(self, reader: Reader, anchored: Heads) -> None:
        self.reader = reader
        self.anchored = anchored
        self.workspace, self.workspace_n, self.workspace_hash = reader.log.workspace_head()
        self.chains: dict[int | None, _Link] = {}
        self.problems: list[Problem] = []
        self.events = 0

    def wrong(self, chain: str, n: int, what: str) -> None:
        self.problems.append({"chain": chain, "n": n, "what": what})

    def run(self) -> None:
        seq: int | None = None
        while page := self.reader.log.chain(-(2**62) if seq is None else seq, PAGE):
            for event in page:
                self._follow(event)
            seq = page[-1].seq
        self._heads()

    def _follow(self, e: Event) -> None:
        self.events += 1
        name = self.workspace if e.task_id is None else e.task or f"task number {e.task_id}"
        before = self.chains.get(e.task_id, _Link(name, 0, ""))
        if e.task_id is not None and e.task is None:
            self.wrong(name, e.n, "belongs to a task that is gone")
        if e.n != before.n + 1:
            self.wrong(name, e.n, f"follows number {before.n}: one is missing, was added, or stands in the wrong place")
        elif e.prev != before.hash:
            self.wrong(name, e.n, "does not continue the event before it")
        if e.hash != link(e.prev, name, e.n, e.at, e.actor, e.action, e.data):
            self.wrong(name, e.n, "was changed: its hash does not fit")
        n, hash = self.anchored.get(name, (0, ""))
        if e.n == n and e.hash != hash:
            self.wrong(name, e.n, "is not the event that the anchor saw")
        self.chains[e.task_id] = _Link(name, e.n, e.hash)

    def _heads(self) -> None:
        """Compare the end of each chain with its row."""
        self._head(self.chains.get(None, _Link(self.workspace, 0, "")), self.workspace_n, self.workspace_hash)
        last, ends = -(2**62), {self.workspace: self.workspace_n}
        while page := self.reader.log.heads(last, PAGE):
            for task, key, n, hash in page:
                self._head(self.chains.get(task, _Link(key, 0, "")), n, hash)
                ends[key] = n
            last = page[-1][0]
        for name, (n, _) in self.anchored.items():
            if ends.get(name, 0) < n:
                self.wrong(name, ends.get(name, 0), f"was cut short: the anchor saw {n} events")

    def _head(self, end: _Link, n: int, hash: str) -> None:
        if end.n != n:
            self.wrong(end.name, end.n, f"is the last event, and the row says that there are {n}")
        elif end.hash != hash:
            self.wrong(end.name, end.n, "is not the last event that the row names")


def verify(client: Client, anchor: dict[str, Any] | None = None) -> dict[str, Any]:
    """Verify all chains. Reports all problems."""
    heads = _heads_of(anchor) if anchor is not None else {}
    desk = client.desk
    with desk.store.begin(write=False) as run:
        walk = _Walk(Reader(desk.store, run, desk.workspace), heads)
        if anchor is not None and anchor["workspace"] != walk.workspace:
            walk.wrong(walk.workspace, 0, f"is not the workspace of the anchor, {anchor['workspace']}")
        walk.run()
    return {"ok": not walk.problems, "events": walk.events, "chains": len(walk.chains), "problems": walk.problems}


def anchor(client: Client) -> dict[str, Any]:
    """The heads of all chains, to be kept where the database's owner cannot change them."""
    desk = client.desk
    with desk.store.begin(write=False) as run:
        reader = Reader(desk.store, run, desk.workspace)
        at = desk.now(run(desk.store.query["now"]).fetchone()[0])
        name, n, hash = reader.log.workspace_head()
        heads: Heads = {name: [n, hash]} if n else {}
        last = -(2**62)
        while page := reader.log.heads(last, PAGE):
            heads.update({key: [count, head] for _, key, count, head in page})
            last = page[-1][0]
    body = {"at": serialize.time(at), "workspace": name, "events": sum(n for n, _ in heads.values()), "heads": heads}
    return {**body, "digest": digest(body)}


def _heads_of(anchor: dict[str, Any]) -> Heads:
    """The heads of a valid anchor."""
    body = {name: value for name, value in anchor.items() if name != "digest"}
    heads = body.get("heads")
    if set(body) != {"at", "workspace", "events", "heads"} or not isinstance(heads, dict):
        raise Invalid("Invalid anchor", hint="Make one with: turn audit anchor")
    if digest(body) != anchor.get("digest"):
        raise Invalid("The anchor itself was changed", reason="its digest does not fit")
    return {name: [n, hash] for name, (n, hash) in heads.items()}

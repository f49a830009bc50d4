"""Processes that retry: whatever the database fails with, each repeats its write with the same idempotency key.

Every reply goes to the ledger, and so does every trouble, in its own words. Afterwards each thing that was said must have had
one effect, however often it was said, and everything that was acknowledged must be there.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from yourturn.client import Client
from yourturn.config import connect
from yourturn.core.errors import StoreTrouble

from .ledger import Ledger, lines
from .post_crash_checks import everything

DAY = 24 * 3600


class RetryingWriter:
    def __init__(self, address: str, folder: str, name: str, patience: float = 60.0) -> None:
        self.name, self.patience = name, patience
        self.ledger = Ledger(f"{folder}/ledger")
        self.address = address
        self.client: Client | None = None

    def desk(self) -> Client:
        if self.client is None:
            self.client = connect(self.address, as_=f"human:{self.name}", project="PROJ", env={})
        return self.client

    def round(self, number: int) -> None:
        """The life of a task; each step has a mark, which is also its key."""
        mark = f"{self.name}.{number}"
        task = self.insist("create", f"{mark}.create", lambda key: self.desk().create(key, key=key))["key"]
        claim = self.insist("claim", f"{mark}.claim", lambda key: self.desk().claim(task, key, key=key))
        asked = self.insist("ask", f"{mark}.ask", lambda key: self.desk().ask(task, key, claim=claim, key=key))
        self.insist("note", f"{mark}.note", lambda key: self.desk().note(task, key, key=key))
        self.insist("answer", f"{mark}.answer", lambda key: self.desk().answer(asked["id"], key, key=key))
        self.insist("complete", f"{mark}.complete", lambda key: self.desk().complete(claim, key, key=key))

    def insist(self, verb: str, mark: str, move: Callable[[str], Any]) -> Any:
        ends = time.monotonic() + self.patience
        while True:
            try:
                found = move(mark)
            except StoreTrouble as error:
                self.ledger("trouble", verb=verb, mark=mark, code=error.code, said=str(error), hint=error.hint)
                if time.monotonic() > ends:
                    raise
                time.sleep(0.02)
                continue
            self.ledger("acked", verb=verb, mark=mark)
            return found


def retrying_writer(address: str, folder: str, name: str, rounds: int, wrong_by: int = 0) -> None:
    """So many rounds; on a machine whose clock is wrong by so many seconds."""
    if wrong_by:
        true_ns, true = time.time_ns, time.time
        time.time_ns = lambda: true_ns() + wrong_by * 10**9  # type: ignore[assignment]
        time.time = lambda: true() + wrong_by  # type: ignore[assignment]
    one = RetryingWriter(address, folder, name)
    for number in range(rounds):
        one.round(number)
    one.ledger("finished", name=name)


def check(client: Client, folder: str) -> Iterator[str]:
    """What was acknowledged is there, and what was said is there once."""
    written = lines(f"{folder}/ledger")
    made: Counter[tuple[str, str]] = Counter()
    for event in everything(client):
        for mark in _marks(event.action, json.loads(event.data)):
            made[event.action, mark] += 1
    for line in written:
        if line["what"] == "acked" and made[line["verb"], line["mark"]] != 1:
            yield f"{line['mark']} was acknowledged and should have one effect, and has {made[line['verb'], line['mark']]}"
        if line["what"] == "trouble" and (not line["said"] or not line["hint"] or "\n" in line["said"]):
            yield f"trouble should be told in a clear sentence with a next step, and was: {line}"
    for (verb, mark), count in made.items():
        if count > 1:
            yield f"the same request again should have one effect, and {verb} {mark} has {count}"


def _marks(action: str, data: dict[str, Any]) -> list[str]:
    found = {
        "create": lambda: data["set"]["title"], "claim": lambda: data["set"]["holder"], "ask": lambda: data["opened"][0]["text"],
        "note": lambda: data["notes"][0]["text"], "answer": lambda: json.loads(data["closed"][0]["response"])["text"],
        "complete": lambda: data["set"]["summary"],
    }  # fmt: skip
    return [str(found[action]())] if action in found else []

"""What one of many processes does: reports ready, waits for the signal, acts, prints the result."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from yourturn.client import Client
from yourturn.config import connect, init, open_store
from yourturn.core.errors import YourturnError


def claim_some(client: Client, worker: str, most: int) -> list[list[Any]]:
    """Claim until nothing is left, or so many are taken."""
    found = []
    while len(found) < most and (got := client.claim_next(worker)):
        found.append([got["task"]["key"], got["claim"]["epoch"]])
    return found


def answer(client: Client, question: str, value: str) -> str:
    return str(client.answer(question, value)["responded_by"])


def reconcile(client: Client) -> dict[str, int]:
    return client.reconcile()


def depend(client: Client, task: str, needs: str) -> str:
    return str(client.depend(task, needs)["state"])


def complete(client: Client, claim: str) -> str:
    return str(client.complete(claim, "done")["state"])


def claim_keyed(client: Client, task: str, key: str) -> str:
    return str(client.claim(task, "w", key=key)["claim"]["token"])


def write(client: Client, rounds: int) -> list[str]:
    """A busy life: tasks that are created, claimed, asked about, answered and finished, and notes on a shared one."""
    keys = []
    for number in range(rounds):
        key = client.create(f"Task {number}")["key"]
        got = client.claim(key, f"w{os.getpid()}")
        asked = client.ask(key, "Which?", claim=got["claim"])
        client.note("PROJ-1", f"about {key}")
        client.answer(asked["id"], "that")
        client.complete(got["claim"])
        keys.append(key)
    return keys


def create_schema(address: str, known: int, steps: dict[str, str], upgrade: bool) -> int:
    from yourturn.db import schema

    store = open_store(address, create=True)
    try:
        schema.version_of(store)  # connected before it begins, so that all begin at once
        _signal()
        return schema.create(store, upgrade, known, {int(version): script for version, script in steps.items()})
    finally:
        store.close()


def found(address: str) -> str:
    _signal()
    client, about = init(address, "PROJ", None, {"USER": "ana"})
    client.close()
    return str(about["project"])


def as_nobody(address: str) -> list[str]:
    """Try to read and to write with no more rights than anybody has."""
    open_store(address).close()  # loads what is needed, while it may
    _signal()
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    said = []
    for attempt in (lambda desk: desk.list(), lambda desk: desk.create("B")):
        try:
            with connect(address, as_="human:bob", env={}) as desk:
                attempt(desk)
            said.append("ok")
        except YourturnError as error:
            said.append(error.code)
    return said


ALONE = {role.__name__: role for role in (create_schema, found, as_nobody)}
AT_A_DESK = {role.__name__: role for role in (claim_some, answer, reconcile, depend, complete, claim_keyed, write)}


def main(role: str, address: str, who: str, at: int | None, args: dict[str, Any]) -> Any:
    if role in ALONE:
        return ALONE[role](address, **args)
    with connect(address, as_=who, project="PROJ", clock=None if at is None else lambda: at, env={}) as client:
        _signal()
        return AT_A_DESK[role](client, **args)


def _signal() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


def run() -> None:
    try:
        result = {"ok": main(*json.loads(sys.argv[1]))}
    except YourturnError as error:
        result = {"error": error.code, "message": str(error), "hint": error.hint}
    print(json.dumps(result), flush=True)

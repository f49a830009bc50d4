"""Checks after a load: compares the desk with the ledger, which lies outside the database.

Events of a task are cut into segments: the segment of an epoch begins with the claim that took it. A reply that a holder got
must be an event of its own epoch's segment; so a write that a late holder got away with shows up as one that is elsewhere.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import Any

from yourturn.client import Client
from yourturn.core.model import Event
from yourturn.health import doctor

from .ledger import lines
from .roles import Stage

Lines = list[dict[str, Any]]


def judge(stage: Stage, ended: bool, stops: int) -> tuple[list[str], int]:
    """What is wrong, and how many tasks there were."""
    ledger = lines(f"{stage.folder}/ledger")
    with stage.client("human:ana") as client:
        wrong = [] if ended else list(_unfinished(client))
        wrong += health(client)
        events = everything(client)
        tasks = {task["key"]: task for task in _tasks(client)}
    events.sort(key=lambda e: (e.task or "", e.n))
    chains = {key: list(chain) for key, chain in groupby(events, key=lambda e: e.task or "")}
    wrong += _created(ledger, tasks)
    for key in tasks:
        wrong += _ended_once(key, tasks[key]["state"], chains.get(key, []))
    wrong += _acknowledged(ledger, chains, tasks)
    wrong += _said_once(ledger, chains)
    wrong += _overlaps([line for line in ledger if line.get("epoch")])
    if stops > 20 and not any(line["what"] == "refused" for line in ledger):
        wrong.append(f"{stops} workers overslept and none came late: this run shows nothing")
    return wrong, len(tasks)


def health(client: Client) -> list[str]:
    """What the strictest doctor and a second reconciliation find."""
    client.reconcile()
    again = client.reconcile()
    wrong = [] if again == {"moved": 0, "failed": 0} else [f"reconciling twice should change nothing, and did: {again}"]
    found = doctor.examine(client, strict=True)
    return wrong + [f"the doctor should find nothing, and {e['check']} says: {e['words']}" for e in found if e["status"] == "bad"]


def everything(client: Client) -> list[Event]:
    found: list[Event] = []
    cursor = None
    while True:
        page, cursor = client.desk.events(cursor, 5000)
        if not page:
            return found
        found += [event for _, event in page]


def _tasks(client: Client) -> Iterator[dict[str, Any]]:
    last = None
    while page := client.list(after=last, limit=1000, whole=True):
        yield from page
        last = page[-1]["key"]


def _unfinished(client: Client) -> Iterator[str]:
    for task in client.list(state="open,failed", limit=5):
        history = [f"{e['action']}→{e['data']['to']}" for e in client.history(task["key"], limit=100)]
        yield f"every task should reach an end, and {task['key']} stays '{task['state']}': {' '.join(history[-12:])}"


def _created(ledger: Lines, tasks: dict[str, Any]) -> Iterator[str]:
    titles = Counter(task["title"] for task in tasks.values())
    for title, count in titles.items():
        if count > 1:
            yield f"the same request twice should be one effect, and there are {count} tasks {title!r}"
    for line in ledger:
        if line["what"] == "created" and tasks.get(line["task"], {}).get("title") != f"Task {line['number']}":
            yield f"an acknowledged task should be there, and {line['task']} (Task {line['number']}) is not"


def _ended_once(key: str, state: str, chain: list[Event]) -> Iterator[str]:
    """One accepted completion: a second `complete` needs a rejection or a reopening in between."""
    finished = 0
    for event in chain:
        data = json.loads(event.data)
        if event.action == "complete":
            finished += 1
            if finished > 1:
                yield f"{key} should have one accepted completion, and event {event.n} is another"
        elif data["to"] in ("ready", "blocked", "created") and (event.action == "reopen" or data.get("verdict") == "rejected"):
            finished = 0
    if state == "done" and chain and json.loads(chain[-1].data)["to"] != "done":
        yield f"{key} is done, and its last event says {chain[-1].action}"


def _segments(chain: list[Event]) -> dict[int, list[Event]]:
    found: dict[int, list[Event]] = {0: []}
    epoch = 0
    for event in chain:
        if event.action == "claim":
            epoch = json.loads(event.data)["set"]["epoch"]
        found.setdefault(epoch, []).append(event)
    return found


def _acknowledged(ledger: Lines, chains: dict[str, list[Event]], tasks: dict[str, Any]) -> Iterator[str]:
    segments: dict[str, dict[int, list[Event]]] = {}
    answers = {question["id"]: question for task in tasks.values() for question in task["questions"]}
    for line in ledger:
        what, key = line["what"], line.get("task", "")
        if key not in segments:
            segments[key] = _segments(chains.get(key, []))
        if what in ("claimed", "done"):
            verb = "claim" if what == "claimed" else line["verb"]
            mine = [e for e in segments[key].get(line["epoch"], ()) if e.action == verb and _marked(e, line)]
            if not mine and verb != "heartbeat":
                whose = f"{verb} of {key} by {line['worker']} in epoch {line['epoch']}"
                yield f"what was acknowledged should be in the log, and {whose} is not"
            if what == "done" and line["said"] >= line["until"]:
                yield f"a late write should be refused, and {verb} of {key} in epoch {line['epoch']} was accepted"
            if any(e.at >= line["until"] for e in mine):
                yield f"nothing happens after a lease, and {verb} of {key} in epoch {line['epoch']} did"
        elif what == "answered" and line["question"].startswith("Q"):
            found = answers.get(line["question"], {})
            if found.get("status") != "answered" or line["mark"] not in json.dumps(found.get("response")):
                kept = found.get("response")
                yield f"an acknowledged answer should be kept, and {line['mark']} to {line['question']} is not: {kept}"


def _said_once(ledger: Lines, chains: dict[str, list[Event]]) -> Iterator[str]:
    """Whatever became of it: what a holder said once has happened once, or never."""
    for line in ledger:
        if line["what"] in ("done", "unknown", "refused") and line.get("mark"):
            made = [e for e in chains.get(line["task"], ()) if e.action == line["verb"] and line["mark"] in e.data]
            if len(made) > (line["what"] != "refused"):
                yield f"{line['verb']} of {line['mark']} was {line['what']}, and is in the log {len(made)} times"


def _marked(event: Event, line: dict[str, Any]) -> bool:
    if line["what"] == "claimed":
        return bool(json.loads(event.data)["set"]["holder"] == line["worker"])
    return line["mark"] in event.data


def _overlaps(ledger: Lines) -> Iterator[str]:
    """Effects of two epochs of one task never share a moment in which both leases hold."""
    spans: dict[str, list[tuple[int, int, int]]] = {}
    begun: dict[tuple[str, int], dict[str, Any]] = {}
    until: dict[tuple[str, int], int] = {}
    over: dict[tuple[str, int], int] = {}
    for line in ledger:
        effect = line["task"], line["epoch"]
        until[effect] = max(until.get(effect, 0), line["until"])
        if line["what"] == "begin":
            if effect in begun:
                yield f"a claim is one worker's, and {effect[0]} epoch {effect[1]} was begun twice"
            begun[effect] = line
        elif line["what"] == "end":
            over[effect] = line["at"]
    for effect, line in begun.items():
        first, last = line["at"], min(over.get(effect, until[effect]), until[effect])
        if first < last:
            spans.setdefault(effect[0], []).append((first, last, effect[1]))
    for task, found in spans.items():
        found.sort()
        for (_, last, one), (first, _, other) in pairwise(found):
            if first < last:
                yield f"two effects should never overlap under valid leases, and epochs {one} and {other} of {task} did"

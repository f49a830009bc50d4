"""The checks of `turn doctor --strict`: what the API shows, compared with what the replayed event log says.

`Snapshot` reads everything in one transaction, so other processes may write meanwhile, and reads the rows as they are stored: an
ordinary read shows the effect of due moves (an expired lease, for example), which have no event yet.

Each check is a row of CHECKS. `examine` returns the problems as sentences, `report` one line per check for the doctor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any, NamedTuple, TypeVar

from ..client import Client
from ..core.canonical_json import digest
from ..core.model import BLOCKED, DONE, ENDED, PENDING, READY, RESOLVED
from ..core.step_paths import place
from ..core.task_fields import TASK_FIELDS
from ..db.reads import Reader
from ..desk.desk import Desk
from ..health.audit import verify
from ..health.doctor import cycles
from .moves import MOVE_CHECKS
from .replay import Replay, Row, TaskHistory

PAGE = 2000
_START = "0.0.0"
_FIRST = -(2**62)

T = TypeVar("T")


class _SnapshotDesk(Desk):
    """A desk whose reads all see one snapshot, without due moves."""

    reader: Reader

    def read(self, query: Callable[[Reader], T]) -> T:
        return query(self.reader)

    read_stored = read

    def events(self, after: str | None = None, limit: int = PAGE) -> Any:
        return self.reader.log.after(after, limit)


@contextmanager
def as_written(client: Client) -> Iterator[Client]:
    """A client whose reads all see one snapshot, without due moves."""
    desk = client.desk
    with desk.store.begin(write=False) as run:
        snapshot = object.__new__(_SnapshotDesk)
        snapshot.__dict__.update(desk.__dict__, reader=Reader(desk.store, run, desk.workspace))
        yield Client(snapshot)


class Snapshot:
    """Everything that the API shows, and the replayed event log."""

    def __init__(self, client: Client) -> None:
        self.problems = verify(client)["problems"]
        with as_written(client) as snapshot:
            self._read(snapshot)

    def _read(self, client: Client) -> None:
        self.tasks: dict[str, Row] = {}
        for task in _pages(lambda last: client.list(limit=PAGE, after=last["key"] if last else None, whole=True)):
            self.tasks[task["key"]] = task
        runs = [task for task in self.tasks.values() if task["workflow"]]
        self.journals = {task["key"]: [client.steps(task["key"], n) for n in range(task["journal"] + 1)] for task in runs}
        self.programs = {task["key"]: client.program(task["key"]) for task in runs}
        self.inbox = list(_pages(lambda last: client.inbox(limit=PAGE, after=last["id"] if last else None)))
        self.projects, self.users, self.tokens = client.projects(), client.users(), client.tokens()
        self.replay = Replay(MOVE_CHECKS)
        self.misordered: list[str] = []
        self._replay(client)

    def _replay(self, client: Client) -> None:
        """Replay the events in a watcher's order, then those that watchers do not see yet; compare the order of each chain."""
        seen: dict[str | None, list[int]] = {}
        for event in client.watch(_START, 0):
            seen.setdefault(event["task"], []).append(event["seq"])
            self.replay.apply(event)
        place = dict.fromkeys(seen, 0)
        for event in _pages(lambda last: client.history(limit=PAGE, after=last["seq"] if last else _FIRST)):
            chain, at = seen.get(event["task"], ()), place.get(event["task"], 0)
            if at >= len(chain):
                self.replay.apply(event)
                continue
            if chain[at] != event["seq"]:
                self.misordered.append(f"a watcher of {event['task']} sees event {chain[at]} where {event['seq']} was written")
            place[event["task"]] = at + 1
        more = {task: len(seen[task]) - n for task, n in place.items() if n < len(seen[task])}
        self.misordered += [f"a watcher of {task} sees {n} events too many" for task, n in more.items()]


def _pages(page: Callable[[Any], list[Row]]) -> Iterator[Row]:
    items = page(None)
    while items:
        yield from items
        items = page(items[-1])


class StrictCheck(NamedTuple):
    name: str
    run: Callable[[Snapshot], Iterable[str]]  #: returns the problems
    well: str
    hint: str


def examine(client: Client) -> list[str]:
    """The problems, one sentence each."""
    return [f"{name}: {words}" for name, wrong in _run(client) for words in wrong]


def report(client: Client) -> list[dict[str, Any]]:
    """One line per check: check, wrong (a list of sentences), well, hint."""
    problems = dict(_run(client))
    if "log" in problems:
        return [{"check": "log", "wrong": problems["log"], "well": "", "hint": _RESTORE}]
    return [{"check": c.name, "wrong": problems[c.name], "well": c.well, "hint": c.hint} for c in CHECKS]


def _run(client: Client) -> list[tuple[str, list[str]]]:
    try:
        seen = Snapshot(client)
    except Exception as trouble:  # a damaged database is reported, too
        return [("log", [f"cannot be read: {type(trouble).__name__} {trouble}"])]
    return [(check.name, list(check.run(seen))) for check in CHECKS]


# --- the API against the event log --------------------------------------------------------------------------------------

#: Fields of a task that its events name.
_LOGGED = tuple(name for name, field in TASK_FIELDS.items() if field.told)
#: A question's fields: in the API, in an event.
_ASKED = {
    **{name: name for name in (
        "id", "kind", "text", "context", "reason", "response_type", "options", "urgency", "timeout_at", "on_timeout", "reviewer",
        "confidence", "action", "digest", "metadata", "status", "response", "close_reason", "asked_by", "asked_at",
        "responded_by", "responded_at", "used_by",
    )},
    "group": "grp",
}  # fmt: skip


def _rows(seen: Snapshot) -> Iterator[str]:
    for key, task in seen.tasks.items():
        history = seen.replay.tasks.get(key)
        if history is None:
            yield f"{key} is there, and no event tells of it"
            continue
        yield from (f"{key} {words}" for words in _differs(task, history))
    for key in seen.replay.tasks.keys() - seen.tasks.keys():
        yield f"events tell of {key}, and it is not there"


def _differs(task: Row, history: TaskHistory) -> Iterator[str]:
    logged = history.row
    for name in _LOGGED:
        if task[name] != logged.get(name):
            yield f"has {name} {task[name]!a}, and its events say {logged.get(name)!a}"
    if task["updated_at"] != history.at:
        yield f"was changed at {task['updated_at']}, and its last event was at {history.at}"
    if task["version"] < history.events - 1:
        yield f"has version {task['version']} after {history.events} events"
    yield from _other_claim(task["claim"], logged)
    if set(task["depends_on"]) != set(history.needs):
        shown, logged_needs = (", ".join(names) or "nothing" for names in (task["depends_on"], history.needs))
        yield f"waits for {shown}, and its events say {logged_needs}"
    if task["notes"] != history.notes:
        yield f"has {len(task['notes'])} notes, and its events tell {len(history.notes)}, or they say something else"


def _other_claim(claim: Row | None, logged: Row) -> Iterator[str]:
    if (claim and claim["worker"]) != logged["holder"]:
        yield f"is held by {claim and claim['worker']}, and its events say {logged['holder']}"
    elif claim and claim["epoch"] != logged["epoch"]:
        yield f"has epoch {claim['epoch']}, and its events say {logged['epoch']}"
    elif claim and claim["expires_at"] < logged["lease_expires_at"]:  # a heartbeat extends it, and leaves no event
        yield f"has a lease until {claim['expires_at']}, and its events say {logged['lease_expires_at']}"


def _asked(seen: Snapshot) -> Iterator[str]:
    for key, task in seen.tasks.items():
        history = seen.replay.tasks.get(key)
        logged = dict(history.questions) if history else {}
        for q in task["questions"]:
            event = logged.pop(q["id"], None)
            if event is None:
                yield f"{q['id']} of {key} is there, and no event tells of it"
                continue
            yield from (f"{q['id']} {words}" for words in _other_question(q, event))
        yield from (f"events tell of {name}, and {key} does not have it" for name in logged)
        waits = next((q["kind"] for q in task["questions"] if q["status"] == PENDING and q["blocking"]), None)
        if task["awaiting"] != waits:
            yield f"{key} awaits {task['awaiting']}, and its questions say {waits}"


def _other_question(q: Row, event: Row) -> Iterator[str]:
    for name, column in _ASKED.items():
        if q[name] != event.get(column):
            yield f"has {name} {q[name]!a}, and its events say {event.get(column)!a}"
    for name in ("blocking", "multi", "allow_other"):
        if q[name] != bool(event[name]):
            yield f"has {name} {q[name]}, and its events say {bool(event[name])}"
    step = f"{q['journal']}/{place(q['step'])}" if q["step"] else None
    if step != event.get("step"):
        yield f"was asked by step {step}, and its events say {event.get('step')}"
    default = (event.get("default_value") or {}).get("value")
    if q["default"] != default:
        yield f"has the default {q['default']!a}, and its events say {default!a}"


def _journals(seen: Snapshot) -> Iterator[str]:
    """The current journal, the earlier ones, and the script."""
    for key, task in seen.tasks.items():
        history = seen.replay.tasks.get(key)
        shown = seen.journals.get(key, [[]])
        if task["steps"] != shown[-1]:
            yield f"{key} is listed with other steps than those of its journal"
        logged = [*history.older, history.steps] if history else []
        for number, (steps, events) in enumerate(zip_longest(shown, logged, fillvalue=())):
            yield from (f"{words} of {key}, journal {number}" for words in _other_steps(steps, dict(events)))
        program, source = seen.programs.get(key), history.program if history else None
        if program and digest(program["body"]) != program["digest"]:
            yield f"the script of {key} is not what it was"
        if (program and {name: program[name] for name in ("file", "digest")}) != source:
            yield f"the script of {key} is {program and program['file']}, and its events say {source and source['file']}"


def _other_steps(steps: Iterable[Row], logged: dict[str, Row]) -> Iterator[str]:
    for step in steps:
        name = f"{'~' * step['spare']}{step['index']}"
        event = logged.pop(name, None)
        if event is None:
            yield f"is there, and no event tells of it: step {name}"
            continue
        for field in ("name", "agent", "digest", "call", "status", "session_id", "seat", "result", "started_at", "ended_at"):
            if step[field] != event.get(field):
                yield f"{field} is {step[field]!a}, and the events say {event.get(field)!a}: step {name}"
    yield from (f"is not there, and events tell of it: step {name}" for name in logged)


def _inbox(seen: Snapshot) -> Iterator[str]:
    """The inbox has every pending question exactly once, and nothing else."""
    expected = {q["id"] for task in seen.tasks.values() for q in task["questions"] if q["status"] == PENDING}
    shown = [item["id"] for item in seen.inbox]
    yield from (f"{name} waits for a person, and is not in the inbox" for name in sorted(expected - set(shown)))
    yield from (f"{name} is in the inbox, and is not open" for name in sorted(set(shown) - expected))
    if len(shown) != len(set(shown)):
        yield "something is in the inbox twice"


# --- neighbours --------------------------------------------------------------------------------------------------------


def _needs(seen: Snapshot) -> Iterator[str]:
    """`ready` has no open dependency, `blocked` has one, `done` has no open child; every task that is named exists."""
    children: dict[str, list[str]] = {}
    for key, task in seen.tasks.items():
        others = [*task["depends_on"], *([task["parent"]] if task["parent"] else [])]
        yield from (f"{key} names {other}, which is not there" for other in others if other not in seen.tasks)
        if task["parent"] and task["state"] not in ENDED:
            children.setdefault(task["parent"], []).append(key)
        needs = [] if task["state"] in ENDED else task["depends_on"]
        waits = [n for n in needs if n in seen.tasks and seen.tasks[n]["state"] not in RESOLVED]
        if task["blocked_by"] != waits:
            yield f"{key} is blocked by {', '.join(task['blocked_by']) or 'nothing'}, and {', '.join(waits) or 'nothing'} is open"
        if waits and task["state"] == READY:
            yield f"{key} is 'ready', and {waits[0]}, which it waits for, is open"
        if not waits and task["state"] == BLOCKED:
            yield f"{key} is 'blocked', and waits for nothing"
    for key, open_ in children.items():
        if key in seen.tasks and seen.tasks[key]["state"] == DONE:
            yield f"{key} is 'done', and its child {open_[0]} is open"


def _circles(seen: Snapshot) -> Iterable[str]:
    return cycles({key: set(task["depends_on"]) & seen.tasks.keys() for key, task in seen.tasks.items()})


# --- accounts and the log ----------------------------------------------------------------------------------------------


_TOKEN = ("actor", "role", "scopes", "created_by")


def _accounts(seen: Snapshot) -> Iterator[str]:
    replay = seen.replay
    yield from replay.wrong["accounts"]
    shown: dict[str, tuple[Row, Row]] = {
        "projects": ({p["key"]: p["name"] for p in seen.projects}, replay.projects),
        "people": ({u["name"]: u["role"] for u in seen.users}, replay.users),
        "tokens": (
            {t["name"]: {n: t[n] for n in _TOKEN} for t in seen.tokens if t["revoked_at"] is None},
            replay.tokens,
        ),
    }
    for what, (rows, logged) in shown.items():
        names = rows.keys() if what == "tokens" else rows.keys() | logged.keys()  # an export leaves secrets behind
        for name in sorted(names):
            if rows.get(name) != logged.get(name):
                yield f"of the {what}, {name} is {rows.get(name)}, and the events say {logged.get(name)}"
    secrets = {"token", "hash", "secret"}
    yield from (f"the token {t['name']} shows its secret" for t in seen.tokens if secrets & t.keys())


def _chain(seen: Snapshot) -> Iterator[str]:
    return (f"{p['chain']} event {p['n']} {p['what']}" for p in seen.problems)


def _replayed(name: str) -> Callable[[Snapshot], Iterable[str]]:
    return lambda seen: seen.replay.wrong[name]


_RESTORE = "Rows were changed outside of the desk, or there is a bug: keep the file, and compare with a backup."
_WELL = {
    "moves": "every event is a legal move of an actor who may make it",
    "claims": "exactly the working tasks are claimed",
    "epochs": "epochs only grew",
    "retries": "tries were counted, and given back by people only",
    "turns": "it was a person's turn exactly while a blocking question was open",
    "questions": "every question began as its kind allows",
    "answers": "every answer fits, came from a person, and was the first",
    "uses": "every permission was used once, for what was approved",
    "steps": "the holder of the run wrote every step, and no result changed",
    "verdicts": "every verdict and every timeout landed where the table says",
    "times": "time never ran backwards, and no move was made too early",
    "causes": "every effect comes after its cause",
}

CHECKS: tuple[StrictCheck, ...] = (
    StrictCheck("chain", _chain, "every chain of events verifies", "See all with: turn audit verify"),
    StrictCheck("readers", lambda seen: seen.misordered, "watchers see every chain in its order", _RESTORE),
    *(StrictCheck(name, _replayed(name), _WELL[name], _RESTORE) for name in MOVE_CHECKS),
    StrictCheck("tasks", _rows, "every task, its notes and its dependencies are as the events say", _RESTORE),
    StrictCheck("journals", _journals, "every step and script is as the events say", _RESTORE),
    StrictCheck("asked", _asked, "every question is as the events say", _RESTORE),
    StrictCheck("inbox", _inbox, "the inbox shows exactly the open questions", _RESTORE),
    StrictCheck("needs", _needs, "ready tasks wait for nothing, blocked ones for an open task", _RESTORE),
    StrictCheck("circles", _circles, "no task waits for itself", "Break it with: turn dep remove KEY NEEDS"),
    StrictCheck("accounts", _accounts, "projects, people and tokens are as the events say", _RESTORE),
)

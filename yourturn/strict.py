"""Does the desk keep every promise that can be seen from outside?

The one checker of the invariants: behind `turn doctor --strict`, after every kill of the fault tests, after every step of the
model tests. It uses what anybody has: the methods of the Client, the event log, `turn audit verify`. It speaks no SQL.

Everything is read in one snapshot, so that work may go on meanwhile, and as it is written: an ordinary read shows a lease
that ran out as over although nobody has made that move yet, and such a row would not agree with its events. `_Snapshot` is
the desk that answers the client's reads in that way. Whether the moves that are owed can be made is another question; who
wants to know reconciles first and examines then.

Then the log is heard from its beginning (fold.py), every move is judged by itself (judge.py), and what they amount to is
compared with what the API shows. Each check is a row of CHECKS, like the doctor's; `examine` returns what is wrong, in words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any, NamedTuple, TypeVar

from .client import Client
from .core.canonical_json import digest
from .core.model import BLOCKED, DONE, ENDED, PENDING, READY, RESOLVED
from .core.step_paths import place
from .db.reads import Reader
from .desk.desk import Desk
from .fold import Fold, Row, Story
from .health.audit import verify
from .judge import LAWS

PAGE = 2000
_START = "0.0.0"
_FIRST = -(2**62)

T = TypeVar("T")


class _Snapshot(Desk):
    """The desk at one moment, as it is written."""

    reader: Reader

    def look(self, look: Callable[[Reader], T]) -> T:
        return look(self.reader)

    read = look

    def events(self, after: str | None = None, limit: int = PAGE) -> Any:
        return self.reader.log.after(after, limit)


@contextmanager
def as_written(client: Client) -> Iterator[Client]:
    """A client that sees one moment, without the moves that are owed."""
    desk = client.desk
    with desk.store.begin(write=False) as run:
        snapshot = object.__new__(_Snapshot)
        snapshot.__dict__.update(desk.__dict__, reader=Reader(desk.store, run, desk.workspace))
        yield Client(snapshot)


class Seen:
    """All that the API shows, and all that the log tells."""

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
        self.fold = Fold(LAWS)
        self.strays: list[str] = []
        self._listen(client)

    def _listen(self, client: Client) -> None:
        """In the order in which a watcher sees them, then what a watcher is still kept from: it sees each chain in order."""
        seen: dict[str | None, list[int]] = {}
        for event in client.watch(_START, 0):
            seen.setdefault(event["task"], []).append(event["seq"])
            self.fold.hear(event)
        place = dict.fromkeys(seen, 0)
        for event in _pages(lambda last: client.history(limit=PAGE, after=last["seq"] if last else _FIRST)):
            chain, at = seen.get(event["task"], ()), place.get(event["task"], 0)
            if at >= len(chain):
                self.fold.hear(event)
                continue
            if chain[at] != event["seq"]:
                self.strays.append(f"a watcher of {event['task']} sees event {chain[at]} where {event['seq']} was written")
            place[event["task"]] = at + 1
        more = {task: len(seen[task]) - n for task, n in place.items() if n < len(seen[task])}
        self.strays += [f"a watcher of {task} sees {n} events too many" for task, n in more.items()]


def _pages(page: Callable[[Any], list[Row]]) -> Iterator[Row]:
    found = page(None)
    while found:
        yield from found
        found = page(found[-1])


class Check(NamedTuple):
    name: str
    look: Callable[[Seen], Iterable[str]]
    well: str
    hint: str


def examine(client: Client) -> list[str]:
    """What is wrong, one sentence each; an empty list is a promise kept."""
    return [f"{name}: {words}" for name, wrong in _looked(client) for words in wrong]


def report(client: Client) -> list[dict[str, Any]]:
    """One line per check with what it found: check, wrong (a list of sentences), well, hint."""
    found = dict(_looked(client))
    if "log" in found:
        return [{"check": "log", "wrong": found["log"], "well": "", "hint": _RESTORE}]
    return [{"check": c.name, "wrong": found[c.name], "well": c.well, "hint": c.hint} for c in CHECKS]


def _looked(client: Client) -> list[tuple[str, list[str]]]:
    try:
        seen = Seen(client)
    except Exception as trouble:  # whoever asks is in trouble already
        return [("log", [f"cannot be read: {type(trouble).__name__} {trouble}"])]
    return [(check.name, list(check.look(seen))) for check in CHECKS]


# --- what the API shows, against what the log tells ---------------------------------------------------------------------

#: Fields of a task that its events tell under the same name.
_TOLD = (
    "title", "description", "state", "priority", "type", "complexity", "parent", "requires", "role", "labels", "acceptance",
    "retry_count", "max_retries", "branch", "session_id", "workflow", "summary", "failure", "reason", "wake_at", "external_id",
    "created_by", "created_at", "ended_at", "extra", "host", "seat", "journal",
)  # fmt: skip
#: A question's fields: in the API, in an event.
_ASKED = {
    **{name: name for name in (
        "id", "kind", "text", "context", "reason", "response_type", "options", "urgency", "timeout_at", "on_timeout", "reviewer",
        "confidence", "action", "digest", "metadata", "status", "response", "close_reason", "asked_by", "asked_at",
        "responded_by", "responded_at", "used_by",
    )},
    "group": "grp",
}  # fmt: skip


def _rows(seen: Seen) -> Iterator[str]:
    for key, task in seen.tasks.items():
        story = seen.fold.tasks.get(key)
        if story is None:
            yield f"{key} is there, and no event tells of it"
            continue
        yield from (f"{key} {words}" for words in _differs(task, story))
    for key in seen.fold.tasks.keys() - seen.tasks.keys():
        yield f"events tell of {key}, and it is not there"


def _differs(task: Row, story: Story) -> Iterator[str]:
    told = story.row
    for name in _TOLD:
        if task[name] != told.get(name):
            yield f"has {name} {task[name]!a}, and its events say {told.get(name)!a}"
    if task["updated_at"] != story.at:
        yield f"was changed at {task['updated_at']}, and its last event was at {story.at}"
    if task["version"] < story.events - 1:
        yield f"has version {task['version']} after {story.events} events"
    yield from _other_claim(task["claim"], told)
    if set(task["depends_on"]) != set(story.needs):
        yield f"waits for {', '.join(task['depends_on']) or 'nobody'}, and its events say {', '.join(story.needs) or 'nobody'}"
    if task["notes"] != story.notes:
        yield f"has {len(task['notes'])} notes, and its events tell {len(story.notes)}, or they say something else"


def _other_claim(claim: Row | None, told: Row) -> Iterator[str]:
    if (claim and claim["worker"]) != told["holder"]:
        yield f"is held by {claim and claim['worker']}, and its events say {told['holder']}"
    elif claim and claim["epoch"] != told["epoch"]:
        yield f"has epoch {claim['epoch']}, and its events say {told['epoch']}"
    elif claim and claim["expires_at"] < told["lease_expires_at"]:  # a heartbeat extends it, and leaves no event
        yield f"has a lease until {claim['expires_at']}, and its events say {told['lease_expires_at']}"


def _asked(seen: Seen) -> Iterator[str]:
    for key, task in seen.tasks.items():
        story = seen.fold.tasks.get(key)
        told = dict(story.questions) if story else {}
        for q in task["questions"]:
            said = told.pop(q["id"], None)
            if said is None:
                yield f"{q['id']} of {key} is there, and no event tells of it"
                continue
            yield from (f"{q['id']} {words}" for words in _asked_otherwise(q, said))
        yield from (f"events tell of {name}, and {key} does not have it" for name in told)
        waits = next((q["kind"] for q in task["questions"] if q["status"] == PENDING and q["blocking"]), None)
        if task["awaiting"] != waits:
            yield f"{key} awaits {task['awaiting']}, and its questions say {waits}"


def _asked_otherwise(q: Row, said: Row) -> Iterator[str]:
    for name, told in _ASKED.items():
        if q[name] != said.get(told):
            yield f"has {name} {q[name]!a}, and its events say {said.get(told)!a}"
    for name in ("blocking", "multi", "allow_other"):
        if q[name] != bool(said[name]):
            yield f"has {name} {q[name]}, and its events say {bool(said[name])}"
    step = f"{q['journal']}/{place(q['step'])}" if q["step"] else None
    if step != said.get("step"):
        yield f"was asked by step {step}, and its events say {said.get('step')}"
    default = (said.get("default_value") or {}).get("value")
    if q["default"] != default:
        yield f"has the default {q['default']!a}, and its events say {default!a}"


def _journals(seen: Seen) -> Iterator[str]:
    """The journal that is being written, those that were, and the script."""
    for key, task in seen.tasks.items():
        story = seen.fold.tasks.get(key)
        shown = seen.journals.get(key, [[]])
        if task["steps"] != shown[-1]:
            yield f"{key} is listed with other steps than those of its journal"
        told = [*story.older, story.steps] if story else []
        for number, (steps, said) in enumerate(zip_longest(shown, told, fillvalue=())):
            yield from (f"{words} of {key}, journal {number}" for words in _other_steps(steps, dict(said)))
        program, known = seen.programs.get(key), story.program if story else None
        if program and digest(program["body"]) != program["digest"]:
            yield f"the script of {key} is not what it was"
        if (program and {name: program[name] for name in ("file", "digest")}) != known:
            yield f"the script of {key} is {program and program['file']}, and its events say {known and known['file']}"


def _other_steps(steps: Iterable[Row], told: dict[str, Row]) -> Iterator[str]:
    for step in steps:
        name = f"{'~' * step['spare']}{step['index']}"
        said = told.pop(name, None)
        if said is None:
            yield f"is there, and no event tells of it: step {name}"
            continue
        for field in ("name", "agent", "digest", "call", "status", "session_id", "seat", "result", "started_at", "ended_at"):
            if step[field] != said.get(field):
                yield f"{field} is {step[field]!a}, and the events say {said.get(field)!a}: step {name}"
    yield from (f"is not there, and events tell of it: step {name}" for name in told)


def _inbox(seen: Seen) -> Iterator[str]:
    """Everything that waits for a person is in the inbox, once, and nothing else."""
    should = {q["id"] for task in seen.tasks.values() for q in task["questions"] if q["status"] == PENDING}
    shown = [item["id"] for item in seen.inbox]
    yield from (f"{name} waits for a person, and is not in the inbox" for name in sorted(should - set(shown)))
    yield from (f"{name} is in the inbox, and waits for nobody" for name in sorted(set(shown) - should))
    if len(shown) != len(set(shown)):
        yield "something is in the inbox twice"


# --- neighbours --------------------------------------------------------------------------------------------------------


def _needs(seen: Seen) -> Iterator[str]:
    """Ready waits for nobody, blocked for somebody; who is done has no open child; everybody named is there."""
    children: dict[str, list[str]] = {}
    for key, task in seen.tasks.items():
        others = [*task["depends_on"], *([task["parent"]] if task["parent"] else [])]
        yield from (f"{key} names {other}, which is not there" for other in others if other not in seen.tasks)
        if task["parent"] and task["state"] not in ENDED:
            children.setdefault(task["parent"], []).append(key)
        needs = [] if task["state"] in ENDED else task["depends_on"]
        waits = [n for n in needs if n in seen.tasks and seen.tasks[n]["state"] not in RESOLVED]
        if task["blocked_by"] != waits:
            yield f"{key} is blocked by {', '.join(task['blocked_by']) or 'nobody'}, and {', '.join(waits) or 'nobody'} is open"
        if waits and task["state"] == READY:
            yield f"{key} is 'ready', and {waits[0]}, which it waits for, is open"
        if not waits and task["state"] == BLOCKED:
            yield f"{key} is 'blocked', and waits for nobody"
    for key, open_ in children.items():
        if key in seen.tasks and seen.tasks[key]["state"] == DONE:
            yield f"{key} is 'done', and its child {open_[0]} is open"


def _circles(seen: Seen) -> Iterator[str]:
    """Take away whoever waits for nobody, until nobody is left, or only circles are."""
    waits = {key: set(task["depends_on"]) & seen.tasks.keys() for key, task in seen.tasks.items()}
    holds: dict[str, list[str]] = {}
    for key, needs in waits.items():
        for other in needs:
            holds.setdefault(other, []).append(key)
    free = [key for key, needs in waits.items() if not needs]
    while free:
        gone = free.pop()
        del waits[gone]
        for key in holds.get(gone, ()):
            waits[key].discard(gone)
            if not waits[key]:
                free.append(key)
    return (f"{key} waits for itself, by way of {', '.join(sorted(needs))}" for key, needs in sorted(waits.items()))


# --- the office and the log ---------------------------------------------------------------------------------------------


_TOKEN = ("actor", "role", "scopes", "created_by")


def _office(seen: Seen) -> Iterator[str]:
    fold = seen.fold
    yield from fold.wrong["office"]
    shown: dict[str, tuple[Row, Row]] = {
        "projects": ({p["key"]: p["name"] for p in seen.projects}, fold.projects),
        "people": ({u["name"]: u["role"] for u in seen.users}, fold.users),
        "tokens": (
            {t["name"]: {n: t[n] for n in _TOKEN} for t in seen.tokens if t["revoked_at"] is None},
            fold.tokens,
        ),
    }
    for what, (there, told) in shown.items():
        names = there.keys() if what == "tokens" else there.keys() | told.keys()  # an export leaves secrets behind
        for name in sorted(names):
            if there.get(name) != told.get(name):
                yield f"of the {what}, {name} is {there.get(name)}, and the events say {told.get(name)}"
    secrets = {"token", "hash", "secret"}
    yield from (f"the token {t['name']} shows its secret" for t in seen.tokens if secrets & t.keys())


def _chain(seen: Seen) -> Iterator[str]:
    return (f"{p['chain']} event {p['n']} {p['what']}" for p in seen.problems)


def _law(name: str) -> Callable[[Seen], Iterable[str]]:
    return lambda seen: seen.fold.wrong[name]


_RESTORE = "Something was changed behind the desk's back, or there is a bug: keep the file, and compare with a backup."
_WELL = {
    "moves": "every event is a legal move, by somebody who may",
    "claims": "who works holds a claim, and nobody else",
    "epochs": "epochs only grew",
    "retries": "tries were counted, and given back by people only",
    "turns": "it was a person's turn exactly while a blocking question was open",
    "questions": "every question began as its kind allows",
    "answers": "every answer fits, came from a person, and was the first",
    "uses": "every permission was used once, for what was approved",
    "steps": "every step was written by who held its run, and no result changed",
    "verdicts": "every verdict and every silence landed where the table says",
    "times": "time never ran backwards, and nothing was moved too early",
    "causes": "no effect stands before its cause",
}

CHECKS: tuple[Check, ...] = (
    Check("chain", _chain, "every chain of events verifies", "See all with: turn audit verify"),
    Check("readers", lambda seen: seen.strays, "watchers see every chain in its order", _RESTORE),
    *(Check(name, _law(name), _WELL[name], _RESTORE) for name in LAWS),
    Check("tasks", _rows, "the events tell every task as it is, with its notes and needs", _RESTORE),
    Check("journals", _journals, "the events tell every step and script as it is", _RESTORE),
    Check("asked", _asked, "the events tell every question as it is", _RESTORE),
    Check("inbox", _inbox, "the inbox shows what waits for a person", _RESTORE),
    Check("needs", _needs, "ready tasks wait for nobody, blocked ones for somebody", _RESTORE),
    Check("circles", _circles, "nobody waits for themselves", "Break it with: turn dep remove KEY NEEDS"),
    Check("office", _office, "the events tell projects, people and tokens as they are", _RESTORE),
)

"""Rebuilds tasks, questions, journals, projects, users and tokens from the event log alone.

`Replay.apply(event)` takes one event as the API shows it, updates the history of its task, and runs every move check
(moves.py) on the change. It reads no row of the database: checks.py compares the result with the rows, and so finds changes
without an event and events without a change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ..core.model import HUMAN, PENDING, RESOLVED, REVIEW
from ..core.permissions import FOR_ITS_AGENTS
from ..core.rules import ALIASES

Row = dict[str, Any]

#: Fields that the event of a new task leaves out when they are empty.
_EMPTY: Row = {
    "description": "", "acceptance": "", "summary": "", "reason": "", "labels": [], "retry_count": 0, "epoch": 0, "priority": 0,
    "state": None, "holder": None, "return_state": None, "lease_expires_at": None, "wake_at": None,
    "workflow": None, "max_retries": 0, "journal": 0,
}  # fmt: skip

#: What closing a question writes; a field that the event leaves out is empty.
_CLOSING = ("status", "response", "close_reason", "responded_by", "responded_at", "timeout_at", "reviewer", "urgency")


class TaskHistory:
    """One task, as its events so far describe it."""

    __slots__ = (
        "at", "events", "freed", "key", "needs", "notes", "older", "program", "questions", "row", "stay", "steps", "void"
    )  # fmt: skip

    def __init__(self, key: str) -> None:
        self.key = key
        self.row: Row = dict(_EMPTY)
        self.questions: dict[str, Row] = {}
        self.notes: list[Row] = []
        self.needs: dict[str, None] = {}
        self.steps: dict[str, Row] = {}  #: of the current journal
        self.older: list[dict[str, Row]] = []  #: of the earlier journals
        self.program: Row | None = None
        self.stay: set[str] = set()  #: outcomes of the questions closed during this stay in `human`
        self.events = 0
        self.at = ""
        self.void: set[str] = set()  #: permissions that a restore voided
        self.freed = False  #: was resolved at least once

    def pending(self) -> list[Row]:
        return [q for q in self.questions.values() if q["status"] == PENDING]

    def waiting(self) -> list[Row]:
        return [q for q in self.pending() if q["blocking"]]


class Move(NamedTuple):
    """One event, with the task before and after it."""

    event: Row
    data: Row
    verb: str  #: of the table
    was: Row  #: the task's fields before; empty for a new task
    history: TaskHistory
    closed: list[tuple[Row, Row]]  #: a question before and after
    opened: list[Row]
    used: tuple[Row, Row] | None = None  #: a permission before and after
    written: list[tuple[Row | None, Row]] = []  #: a step before and after

    @property
    def to(self) -> str:
        return str(self.data["to"])


class Replay:
    def __init__(self, checks: Mapping[str, Callable[[Replay, Move], Iterator[str]]]) -> None:
        self.checks = checks
        self.tasks: dict[str, TaskHistory] = {}
        self.asked: dict[str, str] = {}  #: question -> task
        self.projects: dict[str, str] = {}
        self.users: dict[str, str] = {}
        self.tokens: dict[str, Row] = {}
        self.events = 0
        self.retried: set[str] = set()  #: failed dependencies that a person chose to retry
        self.wrong: dict[str, list[str]] = {name: [] for name in (*checks, "accounts")}

    def apply(self, event: Row) -> None:
        self.events += 1
        try:
            if event["task"] is None:
                self._account(event)
            else:
                self._task(event)
        except (KeyError, TypeError, ValueError, AttributeError) as trouble:
            check = "moves" if event["task"] else "accounts"
            self.wrong[check].append(f"{_name(event)} cannot be understood: {type(trouble).__name__} {trouble}")

    # --- tasks ------------------------------------------------------------------------------------------------------

    def _task(self, event: Row) -> None:
        data, key = event["data"], event["task"]
        history = self.tasks.get(key)
        created = history is None
        if history is None:
            history = self.tasks[key] = TaskHistory(key)
            history.row["created_at"] = data.get("created_at", event["at"])
        was = {} if created else dict(history.row)
        if data["to"] in (HUMAN, REVIEW) and data["to"] != was.get("state"):
            history.stay = set()
        history.row.update(data.get("set", ()), state=data["to"])
        closed, opened = list(self._close(history, data)), list(self._open(history, event))
        written = list(self._write(history, data))
        used = self._use(history, data) if event["action"] == "use" else None
        history.notes += [{"at": event["at"], **note} for note in data.get("notes", ())]
        for task, needs in data.get("needs_added", ()):
            self.tasks[task].needs[needs] = None
        for task, needs in data.get("needs_removed", ()):
            self.tasks[task].needs.pop(needs, None)
        history.void |= set(data.get("void", ()))
        history.program = data.get("program", history.program)
        move = Move(event, data, _table_verb(event, data), was, history, closed, opened, used, written)
        for name, check in self.checks.items():
            self.wrong[name] += [f"{_name(event)}: {words}" for words in check(self, move)]
        history.events, history.at = history.events + 1, event["at"]
        history.freed = history.freed or move.to in RESOLVED

    def _close(self, history: TaskHistory, data: Row) -> Iterator[tuple[Row, Row]]:
        for fields in data.get("closed", ()):
            before = history.questions.get(fields["id"])
            if before is None:
                raise ValueError(f"closes {fields['id']}, which {history.key} never had")
            after = {**before, **dict.fromkeys(_CLOSING), **fields}
            history.questions[fields["id"]] = after
            yield before, after

    def _write(self, history: TaskHistory, data: Row) -> Iterator[tuple[Row | None, Row]]:
        if "journal" in data.get("set", ()) and data["from"] is not None:
            to, spare = _back_to(data), data.get("rewound", {}).get("spare")
            kept = {name: step for name, step in history.steps.items() if to is not None and _order(name) < to}
            if spare:
                kept |= {f"~{name}": step for name, step in history.steps.items() if name not in kept and name[0] != "~"}
            history.older.append(history.steps)
            history.steps = kept
        for step in data.get("steps", ()):
            before = history.steps.get(step["index"])
            history.steps[step["index"]] = step
            yield before, step

    def _use(self, history: TaskHistory, data: Row) -> tuple[Row, Row]:
        before = history.questions.get(data["question"])
        if before is None:
            raise ValueError(f"uses {data['question']}, which {history.key} never had")
        after = history.questions[data["question"]] = {**before, "used_by": data["used_by"]}
        return before, after

    def _open(self, history: TaskHistory, event: Row) -> Iterator[Row]:
        for question in event["data"].get("opened", ()):
            if question["id"] in self.asked:
                raise ValueError(f"opens {question['id']}, which {self.asked[question['id']]} has already")
            self.asked[question["id"]] = history.key
            history.questions[question["id"]] = question
            yield question

    # --- accounts ---------------------------------------------------------------------------------------------------

    def _account(self, event: Row) -> None:
        if not event["actor"].startswith("human:") and not self._for_its_agents(event):
            self.wrong["accounts"].append(f"{_name(event)}: {event['actor']} is no admin")
        _ACCOUNT_EVENTS[event["action"]](self, event["data"])

    def _project(self, data: Row) -> None:
        self.projects[data["project"]] = data["name"]

    def _for_its_agents(self, event: Row) -> bool:
        """A worker creates tokens for the agents that it starts, and revokes them."""
        token = self.tokens.get(event["data"].get("token")) or event["data"]
        return event["action"] in FOR_ITS_AGENTS and (token.get("role"), token.get("created_by")) == ("agent", event["actor"])

    def _user(self, data: Row) -> None:
        self.users[data["user"]] = data["role"]

    def _user_removed(self, data: Row) -> None:
        del self.users[data["user"]]
        owner = f"human:{data['user']}"
        self.tokens = {name: t for name, t in self.tokens.items() if owner not in (t["actor"], t["created_by"])}

    def _token(self, data: Row) -> None:
        old = {"scopes": [], "created_by": ""}
        self.tokens[data["token"]] = {**old, **{n: data[n] for n in ("actor", "role", *old) if n in data}}

    def _token_revoked(self, data: Row) -> None:
        del self.tokens[data["token"]]


_ACCOUNT_EVENTS: dict[str, Callable[[Replay, Row], None]] = {
    "project_create": Replay._project,
    "project_set": lambda replay, data: None,
    "user_set": Replay._user,
    "user_remove": Replay._user_removed,
    "token_create": Replay._token,
    "token_revoke": Replay._token_revoked,
    **dict.fromkeys(
        ("password_set", "login", "logout", "link_create", "link_use", "prefs_set", "restore"), lambda replay, data: None
    ),
}


def _order(index: str) -> list[int]:
    """Sort key of a step's index; steps that a rewind set aside come last."""
    return [10**9] if index.startswith("~") else [int(part) for part in index.split(".")]


def _back_to(data: Row) -> list[int] | None:
    return _order(data["rewound"]["to"]) if "rewound" in data else None


def _name(event: Row) -> str:
    return f"{event['task'] or 'the workspace'}, {event['action']} by {event['actor']} at {event['at']}"


def _table_verb(event: Row, data: Row) -> str:
    """The verb of the table for an alias."""
    action = str(event["action"])
    return action if event["actor"] == "system" else ALIASES.get((action, data["from"]), action)

"""JSON encoding of tasks, questions and events. The command line, the Python API, HTTP and MCP all use it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ..core.model import DONE, ENDED, FINISHED, PENDING, RESOLVED, SPARE, Claim, Event, Question, Step, Task
from ..core.step_paths import path
from ..core.task_fields import TASK_FIELDS
from ..core.time_format import iso
from ..db.details import Details
from ..db.event_log import FollowUp
from ..db.reads import Asked

if TYPE_CHECKING:
    from ..core.previews import Effect
    from ..desk.worker_registry import RegisteredWorker


def time(micros: int | None) -> str | None:
    return None if micros is None else iso(micros)


def _json(text: str | None) -> Any:
    return None if text is None else [] if text == "[]" else json.loads(text)


def dumps(value: Any) -> str:
    return json.dumps(value)


_PLAIN, _JSON, _TIMES = (
    tuple(name for name, field in TASK_FIELDS.items() if field.stored == stored) for stored in ("plain", "json", "time")
)
_plain = attrgetter(*_PLAIN)


def task(t: Task, d: Details) -> dict[str, Any]:
    reply: dict[str, Any] = dict.fromkeys(TASK_FIELDS)
    reply.update(zip(_PLAIN, _plain(t), strict=True))
    for name in _JSON:
        reply[name] = _json(getattr(t, name))
    for name in _TIMES:
        reply[name] = time(getattr(t, name))
    reply["parent"] = d.parent
    reply["depends_on"] = [ref.key for ref in d.needs]
    reply["blocked_by"] = [] if t.state in ENDED else [ref.key for ref in d.needs if ref.state not in RESOLVED]
    reply["children"] = d.children
    reply["awaiting"] = awaiting(d.questions)
    if t.holder is not None:
        reply["claim"] = {"worker": t.holder, "epoch": t.epoch, "expires_at": time(t.lease_expires_at)}
    reply["questions"] = [question(q, t.key) for q in d.questions]
    reply["notes"] = [{"author": note.author, "text": note.text, "at": time(note.at)} for note in d.notes]
    reply["steps"] = [step(s) for s in d.steps]
    reply["completed_at"] = time(_completed(t, d.questions))
    return reply


def _completed(t: Task, questions: list[Question]) -> int | None:
    """When the work was finished: when its approval was requested, while that is pending; otherwise when the task ended."""
    asked = [q.asked_at for q in questions if q.status == PENDING and (q.reason == FINISHED or q.kind == t.requires)]
    return asked[0] if asked else t.ended_at if t.state == DONE else None


def step(s: Step) -> dict[str, Any]:
    """One call of a run's script. `spare`: the call was made by an older version of the script, and its result may be reused."""
    return {
        "index": path(s.place),
        "name": s.name,
        "agent": s.agent,
        "digest": s.digest,
        "call": _json(s.call),
        "status": s.status,
        "session_id": s.session_id,
        "seat": _json(s.seat),
        "result": _json(s.result),
        "started_at": time(s.started_at),
        "ended_at": time(s.ended_at),
        "spare": s.place.startswith(SPARE),
    }


def awaiting(questions: list[Question]) -> str | None:
    """The kind of the oldest open blocking question."""
    return next((q.kind for q in questions if q.status == PENDING and q.blocking), None)


def question(q: Question, key: str) -> dict[str, Any]:
    return {
        "id": q.name if q.id > 0 else key,  # a review that is not recorded as a question yet: the task's key identifies it
        "task": key,
        "kind": q.kind,
        "blocking": bool(q.blocking),
        "text": q.text,
        "context": _json(q.context),
        "reason": q.reason,
        "response_type": q.response_type,
        "options": _json(q.options),
        "multi": bool(q.multi),
        "allow_other": bool(q.allow_other),
        "group": q.grp,
        "urgency": q.urgency,
        "default": (_json(q.default_value) or {}).get("value"),
        "timeout_at": time(q.timeout_at),
        "on_timeout": q.on_timeout,
        "reviewer": q.reviewer,
        "confidence": q.confidence,
        "action": _json(q.action),
        "digest": q.digest,
        "metadata": _json(q.metadata),
        "status": q.status,
        "response": _json(q.response),
        "close_reason": q.close_reason,
        "asked_by": q.asked_by,
        "asked_at": time(q.asked_at),
        "responded_by": q.responded_by,
        "responded_at": time(q.responded_at),
        "used_by": q.used_by,
        "step": path(q.step.partition("/")[2]) if q.step else None,
        "journal": int(q.step.partition("/")[0]) if q.step else None,
    }


def asked(item: Asked) -> dict[str, Any]:
    """A question of the inbox, with the title of its task and the number of tasks that wait for it."""
    return {**question(item.question, item.key), "title": item.title, "holds_up": item.waiting, "workflow": item.workflow}


def waiting(rows: Iterable[Any]) -> list[dict[str, Any]]:
    """Questions without their texts, because there may be thousands."""
    return [
        {
            "id": f"Q{r[0]}", "task": r[1], "project": r[2], "kind": r[3], "response_type": r[4], "blocking": r[5] == 1,
            "urgency": r[6], "timeout_at": None if r[7] is None else iso(r[7]), "on_timeout": r[8], "reviewer": r[9],
            "asked_by": r[10], "holds_up": r[11],
        }
        for r in rows
    ]  # fmt: skip


def effect(e: Effect) -> dict[str, Any]:
    """One possible answer to a question, and the state of the task after it."""
    return {
        "answer": e.way.name,
        "label": e.way.label,
        "verdict": e.way.verdict,
        "value": e.way.value,
        "option": e.option,
        "command": e.way.command,
        "why": e.way.why,
        "why_needed": e.way.why_needed,
        "state": e.state,
        "worker": e.holder,
        "cancels": e.cancels,
        "waits_for": list(e.waits_for),
    }


def follow_ups(changes: Iterable[FollowUp]) -> dict[str, Any]:
    """The field of a reply for other tasks that the same commit moved; empty if there are none."""
    moved = [{"task": f.task, "from": f.was, "to": f.state, "questions": list(f.questions)} for f in changes]
    return {"follow_ups": moved} if moved else {}


def claim(c: Claim) -> dict[str, Any]:
    return {"task": c.task, "worker": c.worker, "epoch": c.epoch, "token": c.token, "expires_at": time(c.expires_at)}


def worker(w: RegisteredWorker, running: bool, tasks: list[str]) -> dict[str, Any]:
    return {
        "name": w.name, "actor": w.actor, "host": w.host, "agents": w.agents.split(), "project": w.project, "epic": w.epic,
        "role": w.role, "runs": bool(w.runs), "parallel": w.parallel, "running": running, "tasks": tasks,
        "started_at": time(w.started_at), "seen_at": time(w.seen_at),
    }  # fmt: skip


def events(rows: Iterable[Event], keys: Callable[[set[int]], dict[int, str]]) -> list[dict[str, Any]]:
    """Events in the format of the contract. `keys` returns the keys of tasks by their row ids."""
    decoded = [(e, json.loads(e.data)) for e in rows]
    numbers = {number for _, data in decoded for number in _numbers(data)}
    named = keys(numbers) if numbers else {}
    return [
        {
            "seq": e.seq,
            "at": time(e.at),
            "actor": e.actor,
            "action": e.action,
            "task": e.task,
            "data": _data(data, {0: e.task, **named}),
        }
        for e, data in decoded
    ]


def _numbers(data: dict[str, Any]) -> Iterator[int]:
    """Row ids of the tasks that an event refers to; 0 is the task that it creates."""
    for name in _NEEDS:
        for pair in data.get(name, ()):
            yield from filter(None, pair)
    if data.get("set", {}).get("parent_id"):
        yield data["set"]["parent_id"]


_NEEDS = ("needs_added", "needs_removed")


def _data(data: dict[str, Any], named: dict[int, Any]) -> dict[str, Any]:
    """The stored data of an event, in the format of the contract."""
    readable = {name: _readable(name, value) for name, value in data.items()}
    for name in ("opened", "closed"):
        if name in data:
            readable[name] = [{k: _readable(k, v) for k, v in item.items()} | {"id": f"Q{item['id']}"} for item in data[name]]
    if "steps" in data:
        readable["steps"] = [
            {k: _readable(k, v) for k, v in item.items() if k not in ("place", "journal")} | {"index": path(item["place"])}
            for item in data["steps"]
        ]
    for name in _NEEDS:
        if name in data:
            readable[name] = [[named.get(number) for number in pair] for pair in data[name]]
    if "notes" in data:
        readable["notes"] = [{**note, "at": time(note["at"])} if "at" in note else note for note in data["notes"]]
    if "set" in data:
        readable["set"] = {k: _readable(k, v) for k, v in data["set"].items() if k not in ("project_id", "parent_id")}
        if "parent_id" in data["set"]:
            readable["set"]["parent"] = named.get(data["set"]["parent_id"])
    return readable


def _readable(name: str, value: Any) -> Any:
    if name.endswith("_at") and isinstance(value, int):
        return time(value)
    if name in _STORED_JSON and isinstance(value, str):
        return json.loads(value)
    return value


_STORED_JSON = frozenset(
    {"action", "call", "context", "default_value", "extra", "labels", "metadata", "options", "response", "result", "seat"}
)


_TIMED = ("lease", "max_lease", "min_timeout", "max_timeout", "review", "signal_timeout")
_NO_TIME = {"review": "auto", "signal_timeout": "none"}


def settings(values: dict[str, Any]) -> dict[str, Any]:
    """Settings with their durations in seconds; they are stored in microseconds."""
    reply = {}
    for name, value in values.items():
        timed = name.partition(".")[0] in _TIMED and isinstance(value, int) and value != 0
        reply[name] = value / 1_000_000 if timed else _NO_TIME.get(name.partition(".")[0], value) if value == 0 else value
    return reply

"""Results of the tools: questions and tasks as data, and as text that tells the agent what to do now."""

from __future__ import annotations

import json
from typing import Any

from ..core.task_fields import TASK_FIELDS
from ..worker.claude.hook_question import EDITED

_END = (
    "End your turn now: do not poll, do not guess, do not ask again. You will be resumed with the answer; "
    "if you get another message before, get_answer shows its status."
)


def question_status(q: dict[str, Any]) -> dict[str, Any]:
    """Status of a question, with its answer."""
    response = q["response"] or {}
    assumed = q["status"] == "timeout" or (q["status"] == "pending" and not q["blocking"])
    value = response.get("value") if q["response"] else q["default"] if assumed else None
    return {
        "status": q["status"],
        "question_id": q["id"],
        "task": q["task"],
        "kind": q["kind"],
        "blocking": q["blocking"],
        "value": value,
        "text": response.get("text") or "",
        "verdict": "rejected" if value is False and q["status"] == "answered" else response.get("verdict"),
        "assumed": assumed and value is not None,
        "answered_by": q["responded_by"] if q["status"] == "answered" else None,
        "answered_at": q["responded_at"] if q["status"] == "answered" else None,
        "timeout_at": q["timeout_at"],
        "message": status_text(q),
    }


def status_text(q: dict[str, Any]) -> str:
    """Status of a question, and what the agent does next."""
    if q["status"] == "pending" and not q["blocking"]:
        return (
            f"{q['id']} is asked. Go on with {_quoted(q['default'])} now; if a person answers later, "
            "another tool's result or your next brief will say so."
        )
    if q["status"] == "pending":
        return f"{q['id']} waits for a person, who has not answered yet. {_END}"
    if q["status"] == "timeout":
        return _timeout_text(q)
    if q["status"] == "cancelled":
        why = f": {q['close_reason']}" if q.get("close_reason") else ""
        return f"{q['id']} was cancelled without an answer{why}. Nothing was approved or decided by that."
    return _answer_text(q)


def _timeout_text(q: dict[str, Any]) -> str:
    value = (q["response"] or {}).get("value")
    timeout = f"Nobody answered {q['id']} in time. That is neither a yes nor a no."
    if value is not None:
        return f"{timeout} Go on with the default: {_quoted(value)}."
    return f"{timeout} Do not do what you asked about; get_task shows the state of the task."


def _answer_text(q: dict[str, Any]) -> str:
    response = q["response"] or {}
    who = str(q["responded_by"]).partition(":")[2] or q["responded_by"]
    value, text = response.get("value"), response.get("text") or ""
    words = f' and wrote: "{text}"' if text and text != value else ""
    if response.get("verdict") == "rejected":
        return f"{who} said no to {q['id']}{words}. Do not do it."
    if q["kind"] == "permission" and isinstance(value, dict):
        return f"{who} said yes to {q['id']}{words}, {EDITED}{_quoted(value)}"
    if q["kind"] == "permission" and q["action"] is not None:
        return f"{who} said yes to {q['id']}{words}. Do exactly what you asked for, once."
    if value is True or value is None:
        return f"{who} said yes to {q['id']}{words}."
    if value is False:
        return f"{who} answered {q['id']}: no{words}."
    return f"{who} answered {q['id']}: {_quoted(value)}{words}."


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


#: Meaning of a state for an agent.
_STATE_TEXTS = {
    "created": "a person has to vet it",
    "ready": "any agent can take it",
    "blocked": "it waits for other tasks",
    "working": "another agent works on it",
    "human": "it waits for a person",
    "review": "a person accepts it or sends it back",
    "done": "it is finished",
    "failed": "it has failed",
    "cancelled": "it was abandoned",
    "deferred": "it is put aside",
}


def state_text(task: dict[str, Any], holds: bool = False) -> str:
    means = "it is yours" if holds else _STATE_TEXTS.get(task["state"], "")
    waits = f" ({', '.join(task['blocked_by'])})" if task["blocked_by"] else ""
    return f"{task['key']} is '{task['state']}': {means}{waits}."


#: Fields of a task that agents get.
_FIELDS = tuple(name for name, field in TASK_FIELDS.items() if field.agents)


def task(t: dict[str, Any]) -> dict[str, Any]:
    """A task with its notes, questions and answers, as data for an agent."""
    return {
        **{name: t[name] for name in _FIELDS},
        "questions": [
            {**question_status(q), "message": _status_so_far(q), "question": q["text"], "context": q["context"]}
            for q in t["questions"]
        ],
        "notes": t["notes"],
    }


def _status_so_far(q: dict[str, Any]) -> str:
    return "No answer yet." if q["status"] == "pending" and q["blocking"] else status_text(q)


def brief(t: dict[str, Any]) -> str:
    """A task as text."""
    parts = [f"{t['key']}: {t['title']}"]
    if t["description"]:
        parts.append(t["description"])
    if t["acceptance"]:
        parts.append(f"It is done when:\n{t['acceptance']}")
    asked = [f"- {q['id']} ({q['kind']}): {q['text']}\n  {_status_so_far(q)}" for q in t["questions"]]
    if asked:
        parts.append("Questions and answers:\n" + "\n".join(asked))
    if t["notes"]:
        parts.append("Notes:\n" + "\n".join(f"- {note['author']}: {note['text']}" for note in t["notes"]))
    return "\n\n".join(parts)

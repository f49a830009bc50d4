"""How a question or a task is told to an agent: as data, and in words that say what to do now."""

from __future__ import annotations

import json
from typing import Any

from ..core.task_fields import TASK_FIELDS
from ..worker.claude.hook_question import EDITED

_END = (
    "End your turn now: do not poll, do not guess, do not ask again. You will be resumed with the answer; "
    "should somebody speak to you before, get_answer shows how it stands."
)


def standing(q: dict[str, Any]) -> dict[str, Any]:
    """How a question stands."""
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
        "message": told(q),
    }


def told(q: dict[str, Any]) -> str:
    """How a question stands, and what that means for whoever asked."""
    if q["status"] == "pending" and not q["blocking"]:
        return (
            f"{q['id']} is asked. Go on with {_quoted(q['default'])} now; if a person answers later, "
            "another tool's result or your next brief will say so."
        )
    if q["status"] == "pending":
        return f"{q['id']} waits for a person, who has not answered yet. {_END}"
    if q["status"] == "timeout":
        return _silence(q)
    if q["status"] == "cancelled":
        why = f": {q['close_reason']}" if q.get("close_reason") else ""
        return f"{q['id']} was cancelled without an answer{why}. Nothing was approved or decided by that."
    return _answer(q)


def _silence(q: dict[str, Any]) -> str:
    value = (q["response"] or {}).get("value")
    said = f"Nobody answered {q['id']} in time. That is neither a yes nor a no."
    if value is not None:
        return f"{said} Go on with the default: {_quoted(value)}."
    return f"{said} Do not do what you asked about; see with get_task how the task stands."


def _answer(q: dict[str, Any]) -> str:
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


#: What a state means for the agent that has just moved a task there, or looks at it.
_MEANS = {
    "created": "a person has to vet it",
    "ready": "whoever is free takes it",
    "blocked": "it waits for other tasks",
    "working": "somebody works on it",
    "human": "it waits for a person",
    "review": "a person accepts it or sends it back",
    "done": "it is finished",
    "failed": "it has failed",
    "cancelled": "it was abandoned",
    "deferred": "it sleeps",
}


def whereabouts(task: dict[str, Any], holds: bool = False) -> str:
    means = "it is yours" if holds else _MEANS.get(task["state"], "")
    waits = f" ({', '.join(task['blocked_by'])})" if task["blocked_by"] else ""
    return f"{task['key']} is '{task['state']}': {means}{waits}."


#: What an agent needs to know of a task; the rest is the desk's own business.
_SHOWN = tuple(name for name, field in TASK_FIELDS.items() if field.agents)


def task(t: dict[str, Any]) -> dict[str, Any]:
    """A task as an agent sees it: with notes, and with questions and their answers."""
    return {
        **{name: t[name] for name in _SHOWN},
        "questions": [
            {**standing(q), "message": _so_far(q), "question": q["text"], "context": q["context"]} for q in t["questions"]
        ],
        "notes": t["notes"],
    }


def _so_far(q: dict[str, Any]) -> str:
    return "No answer yet." if q["status"] == "pending" and q["blocking"] else told(q)


def brief(t: dict[str, Any]) -> str:
    """A task in words."""
    parts = [f"{t['key']}: {t['title']}"]
    if t["description"]:
        parts.append(t["description"])
    if t["acceptance"]:
        parts.append(f"It is done when:\n{t['acceptance']}")
    asked = [f"- {q['id']} ({q['kind']}): {q['text']}\n  {_so_far(q)}" for q in t["questions"]]
    if asked:
        parts.append("Questions and answers:\n" + "\n".join(asked))
    if t["notes"]:
        parts.append("Notes:\n" + "\n".join(f"- {note['author']}: {note['text']}" for note in t["notes"]))
    return "\n\n".join(parts)

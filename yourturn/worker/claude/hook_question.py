"""The question for a tool call of an agent: its fields and its identity.

A call may reach the desk twice: through the hook before it runs and through the tool itself, or again when a parked session
is resumed. Both use the same fields and the same key, so both get the same question:

    client.ask(task, **question_fields(arguments), **identity_of(session, call))
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

#: Seconds that a call waits for an answer: by default, and at most. Some agents give up after five minutes.
WAIT, LONGEST = 45.0, 240.0

#: The text before an action that a person has edited.
EDITED = "with changes. Do exactly this, once, and nothing else: "
#: The states of a closed question.
CLOSED = ("answered", "timeout", "cancelled")

_KINDS = {"blocking": "input", "non_blocking": "input", "approval": "permission", "error_recovery": "recovery"}
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,79}")


def question_fields(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `client.ask` from the arguments of `ask_question`. The desk refuses invalid values."""
    kind = arguments.get("type") or "blocking"
    minutes = arguments.get("timeoutMinutes")
    timed = isinstance(minutes, (int, float)) and not isinstance(minutes, bool)
    return {
        "text": arguments.get("question"),
        "kind": _KINDS.get(kind, kind) if isinstance(kind, str) else kind,
        "blocking": kind != "non_blocking",
        "response_type": arguments.get("responseType") or None,
        "options": arguments.get("options") or (),
        "context": arguments.get("context") or None,
        "timeout": minutes * 60 if timed and minutes is not None else minutes,
        "default": arguments.get("defaultResponse"),
    }


def identity_of(session: str, call: str, n: int = 0) -> dict[str, Any]:
    """The key and metadata of a question: the same call gets the same question. `n` counts the questions of one call."""
    return {"key": f"hook/{session}/{call}/{n}", "metadata": {"session": session, "call": call}}


def closed_questions(result: Any) -> list[str]:
    """The questions that a result of our tools reports as closed."""
    if not isinstance(result, dict):
        return []
    own = [result.get("question_id")] if result.get("status") in CLOSED else []
    more = result.get("told")
    return [name for name in (*own, *(more if isinstance(more, list) else ())) if isinstance(name, str)]


def step_of(env: Mapping[str, str], proof: str | None) -> str | None:
    """The agent's step of a run, if the proof is that run's claim."""
    return env.get("YOURTURN_STEP") or None if proof and proof == env.get("YOURTURN_CLAIM") else None


def signal(env: Mapping[str, str], status: str, **fields: Any) -> dict[str, Any]:
    """Write the signal file that ends a step. The script decides how the run goes on, so the desk is not changed."""
    import json  # late: a hook that only asks writes no file; both take 10 ms
    from pathlib import Path

    data = {"status": status, **{name: value for name, value in fields.items() if value}}
    folder = Path(env.get("YOURTURN_SIGNALS") or ".agents/signals")
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / f".{env.get('YOURTURN_AGENT', 'agent')}.new"
    new.write_text(json.dumps(data), encoding="utf-8")
    new.replace(folder / f"{env.get('YOURTURN_AGENT', 'agent')}.json")
    return data


def is_id(value: object) -> bool:
    """True if the value is a valid id of a session or a call."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def ask_wait(env: Mapping[str, str]) -> float:
    """The seconds in YOURTURN_ASK_WAIT; 0 does not wait."""
    try:
        seconds = float(env.get("YOURTURN_ASK_WAIT") or WAIT)
    except ValueError:
        return WAIT
    return min(LONGEST, max(0.0, seconds)) if seconds == seconds else WAIT

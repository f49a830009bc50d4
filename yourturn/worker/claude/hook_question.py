"""What a tool call of an agent becomes on the desk: which question, under which name.

A call may reach the desk twice: through the hook before it runs and through the tool itself, or again when a parked session
is resumed. Both ask with the same words and the same name, so both find the same question:

    client.ask(task, **question_fields(arguments), **named(session, call))
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

#: How long a call waits for a quick person, in seconds: by default, and at most. Some agents give up after five minutes.
WAIT, LONGEST = 45.0, 240.0

#: What stands before the action that a person made of the one that was asked for.
EDITED = "with changes. Do exactly this, once, and nothing else: "
#: How a question can have ended.
CLOSED = ("answered", "timeout", "cancelled")

_KINDS = {"blocking": "input", "non_blocking": "input", "approval": "permission", "error_recovery": "recovery"}
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,79}")


def question_fields(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `client.ask` from the arguments of `ask_question`. What does not fit is refused by the desk, in words."""
    sort = arguments.get("type") or "blocking"
    minutes = arguments.get("timeoutMinutes")
    timed = isinstance(minutes, (int, float)) and not isinstance(minutes, bool)
    return {
        "text": arguments.get("question"),
        "kind": _KINDS.get(sort, sort) if isinstance(sort, str) else sort,
        "blocking": sort != "non_blocking",
        "response_type": arguments.get("responseType") or None,
        "options": arguments.get("options") or (),
        "context": arguments.get("context") or None,
        "timeout": minutes * 60 if timed and minutes is not None else minutes,
        "default": arguments.get("defaultResponse"),
    }


def named(session: str, call: str, n: int = 0) -> dict[str, Any]:
    """How the desk recognises a call: the same call, said again, is the same question. `n` counts the questions of one call."""
    return {"key": f"hook/{session}/{call}/{n}", "metadata": {"session": session, "call": call}}


def closed(result: Any) -> list[str]:
    """The questions whose end a result of our tools tells."""
    if not isinstance(result, dict):
        return []
    own = [result.get("question_id")] if result.get("status") in CLOSED else []
    more = result.get("told")
    return [name for name in (*own, *(more if isinstance(more, list) else ())) if isinstance(name, str)]


def step_of(env: Mapping[str, str], proof: str | None) -> str | None:
    """The step of a run that the agent works in, if it shows that run's claim."""
    return env.get("YOURTURN_STEP") or None if proof and proof == env.get("YOURTURN_CLAIM") else None


def signal(env: Mapping[str, str], status: str, **fields: Any) -> dict[str, Any]:
    """Say how a step ended. The run goes on by its script, so nothing is ended at the desk: it is what the turn came to."""
    import json
    from pathlib import Path

    said = {"status": status, **{name: value for name, value in fields.items() if value}}
    folder = Path(env.get("YOURTURN_SIGNALS") or ".agents/signals")
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / f".{env.get('YOURTURN_AGENT', 'agent')}.new"
    new.write_text(json.dumps(said), encoding="utf-8")
    new.replace(folder / f"{env.get('YOURTURN_AGENT', 'agent')}.json")
    return said


def is_id(value: object) -> bool:
    """Is this the id of a session or of a call?"""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def ask_wait(env: Mapping[str, str]) -> float:
    """YOURTURN_ASK_WAIT: 0 does not wait at all."""
    try:
        seconds = float(env.get("YOURTURN_ASK_WAIT") or WAIT)
    except ValueError:
        return WAIT
    return min(LONGEST, max(0.0, seconds)) if seconds == seconds else WAIT

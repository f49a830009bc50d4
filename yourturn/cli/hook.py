"""`turn hook claude`: Claude Code runs it before a tool call. It reads one JSON object and prints one or none, never a traceback.

It runs for every tool call, so imports are late: the patterns first (most calls end there), then the worker's socket, and the
client only without a worker.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from typing import Any

from ..core.errors import NotAllowed, YourturnError


def hook_args(p: Any) -> None:
    p.add_argument("agent", choices=("claude",), metavar="claude", help="the agent program that runs it")


def hook(a: Namespace) -> int:
    try:
        reply = _decide(a)
    except Exception as error:  # every failure becomes a denial in Claude Code's format
        reply = _deny(error)
    if reply is not None:
        print(json.dumps(reply))
    return 0


def _decide(a: Namespace) -> dict[str, Any] | None:
    from ..worker.claude.patterns import concerns, gated

    if a.as_:
        raise NotAllowed(f"A hook cannot act as {a.as_}", reason="it always acts as an agent")
    payload = json.loads(sys.stdin.buffer.read(_limit()))
    if not isinstance(payload, dict):
        raise ValueError("not a JSON object")
    if not concerns(payload.get("tool_name"), payload.get("tool_input"), gated(os.environ.get("YOURTURN_GATED"))):
        return None
    path = os.environ.get("YOURTURN_GATE")
    if path:
        from ..worker.claude.hook_question import ask_wait
        from ..worker.claude.hook_socket import call

        try:
            return call(path, payload, ask_wait(os.environ) + 30)
        except OSError:  # the worker is gone: ask the desk directly
            pass
    return _ask_desk(a, payload)


def _limit() -> int:
    from ..worker.claude.hook_socket import LIMIT

    return LIMIT


def _ask_desk(a: Namespace, payload: dict[str, Any]) -> dict[str, Any] | None:
    from ..worker.claude import permission_gate

    flags = {"YOURTURN_DB": a.db, "YOURTURN_PROJECT": a.project}
    env = {**os.environ, **{name: value for name, value in flags.items() if value}}
    with permission_gate.connect_as_agent(env) as desk:
        return permission_gate.hook(desk, payload, env)


def _deny(error: Exception) -> dict[str, Any]:
    from ..worker.claude.patterns import deny

    if isinstance(error, YourturnError):
        reason = f"{error}. {error.hint}".strip()
    elif isinstance(error, (ValueError, RecursionError)):
        reason = "the hook was not called with a JSON object"
    else:
        reason = f"{type(error).__name__} {error}".strip()
    return deny(f"This was not allowed, because no person could be asked: {reason}")

"""`turn hook claude`: run by Claude Code before a tool call. Reads one JSON object, prints one or none; never a traceback.

It runs for every gated call, so it imports only what it needs: first whether the call concerns anybody, then the worker's
socket, and the desk itself only if there is none.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from typing import Any

from ..core.errors import NotAllowed, YourturnError


def hook_args(p: Any) -> None:
    p.add_argument("agent", choices=("claude",), metavar="claude", help="whose hook this is")


def hook(a: Namespace) -> int:
    try:
        said = _decide(a)
    except Exception as trouble:  # whatever it is: an answer that Claude Code understands, and not a yes
        said = _deny(trouble)
    if said is not None:
        print(json.dumps(said))
    return 0


def _decide(a: Namespace) -> dict[str, Any] | None:
    from ..worker.claude.patterns import concerns, gated

    if a.as_:
        raise NotAllowed(f"A hook cannot act as {a.as_}", reason="it is always an agent")
    payload = json.loads(sys.stdin.buffer.read(_most() + 1)[: _most()])
    if not isinstance(payload, dict):
        raise ValueError("an object is wanted")
    if not concerns(payload.get("tool_name"), payload.get("tool_input"), gated(os.environ.get("YOURTURN_GATED"))):
        return None
    path = os.environ.get("YOURTURN_GATE")
    if path:
        from ..worker.claude.hook_question import ask_wait
        from ..worker.claude.hook_socket import call

        try:
            return call(path, payload, ask_wait(os.environ) + 30)
        except OSError:  # the worker is gone; the desk is still there
            pass
    return _directly(a, payload)


def _most() -> int:
    from ..worker.claude.hook_socket import LIMIT

    return LIMIT


def _directly(a: Namespace, payload: dict[str, Any]) -> dict[str, Any] | None:
    from ..worker.claude import permission_gate

    flags = {"YOURTURN_DB": a.db, "YOURTURN_PROJECT": a.project}
    env = {**os.environ, **{name: value for name, value in flags.items() if value}}
    with permission_gate.connect_as_agent(env) as desk:
        return permission_gate.hook(desk, payload, env)


def _deny(trouble: Exception) -> dict[str, Any]:
    from ..worker.claude.patterns import deny

    if isinstance(trouble, YourturnError):
        why = f"{trouble}. {trouble.hint}".strip()
    elif isinstance(trouble, (ValueError, RecursionError)):
        why = "the hook was not called with a JSON object"
    else:
        why = f"{type(trouble).__name__} {trouble}".strip()
    return deny(f"This was not allowed, because no person could be asked: {why}")

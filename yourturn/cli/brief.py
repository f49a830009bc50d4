"""`turn brief`: prints the prompt with which an agent starts a task."""

from __future__ import annotations

import os
from argparse import Namespace
from typing import Any

from ..core.errors import Invalid
from .parser import connect
from .parser import show as out


def brief_args(p: Any) -> None:
    p.add_argument("task", metavar="KEY", help="a task, or a question about it")
    p.add_argument("--agent", metavar="NAME", help="the agent (default: the task's role); its role text is read from here upward")


def brief(a: Namespace) -> int:
    from pathlib import Path

    from ..core.fields import NAME
    from ..display.terminal import safe
    from ..worker.prompt import brief as briefs

    with connect(a) as desk:
        row = desk.show(a.task)
        task = briefs.informed(desk.show(row["task"]) if "status" in row else row, desk.show, desk.history)
    agent = (a.agent or os.environ.get("YOURTURN_AGENT") or task["role"] or "agent").removeprefix("agent:")
    if not NAME.fullmatch(agent):
        raise Invalid(f"Invalid agent name {agent[:40]!a}", hint="Letters, digits and . _ - @ + / are allowed.")
    text = briefs.brief(task, agent=agent, role=briefs.role_text(agent, Path.cwd()))
    return out(a, {"task": task["key"], "agent": agent, "brief": text}, lambda: [safe(text).rstrip("\n")])

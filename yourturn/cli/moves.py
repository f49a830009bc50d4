"""Commands that make one move and need no code of their own: their options come from the table of verbs."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from ..core.actions import VERBS
from . import parser
from .parser import connect
from .parser import show as out
from .tasks import result_lines


def move_args(p: Any) -> None:
    takes = VERBS[p.get_default("verb")].args
    if "reason" in takes:
        parser.task_and_reason(p)
    else:
        p.add_argument("task", metavar="KEY")
        parser.keyed(p)
    if "claim" in takes:
        parser.proof(p)
    if "until" in takes:
        p.add_argument("--until", metavar="WHEN", help="2d, 2026-12-24, 2026-12-24T18:00; without it, until a person wakes it")


def move(a: Namespace) -> int:
    takes = VERBS[a.verb].args
    with connect(a) as desk:
        args = {"reason": parser.reason(a)} if "reason" in takes else {}
        if "until" in takes:
            args["until"] = a.until
        if "claim" in takes:
            args |= parser.held(desk, a.task, a)
        task = getattr(desk, a.verb)(a.task, key=a.idempotency_key, **args)
        return out(a, task, lambda: result_lines(a, desk, task, a.done))

"""Claims on the command line."""

from __future__ import annotations

import os
from argparse import Namespace
from typing import Any

from ..core.errors import Usage
from . import parser
from .parser import connect, held, reason, task_and_reason
from .parser import show as out
from .tasks import result_lines


def worker(desk: Any, a: Namespace) -> str:
    """--worker-id, else YOURTURN_WORKER, else the actor's name."""
    return str(a.worker_id or os.environ.get("YOURTURN_WORKER") or desk.who.name.partition(":")[2])


def claimed_lines(got: dict[str, Any]) -> list[str]:
    from ..display import terminal

    task, claim = got["task"], got["claim"]
    branch = f"branch {terminal.safe(name)}" if (name := parser.branch(task)) else ""
    return [
        f"{task['key']} is {terminal.safe(claim['worker'])}'s: {terminal.one_line(task['title'])}",
        "   ".join(filter(None, (f"  lease until {terminal.clock(claim['expires_at'])}", branch, f"epoch {claim['epoch']}"))),
        f"  claim {claim['token']}",
        f"Next: turn complete {task['key']} --claim {claim['token']}",
    ]


def claim_args(p: Any) -> None:
    p.add_argument("task", metavar="KEY")
    p.add_argument("--worker-id", metavar="W", help="the worker that takes it (your name)")
    p.add_argument("--lease", metavar="TIME", help="for so long without a heartbeat (1h)")
    parser.keyed(p)


def claim(a: Namespace) -> int:
    with connect(a) as desk:
        got = desk.claim(a.task, worker(desk, a), lease=a.lease, key=a.idempotency_key)
    return out(a, got, lambda: claimed_lines(got))


def _held_args(p: Any) -> None:
    p.add_argument("task", metavar="KEY")
    parser.proof(p)
    parser.keyed(p)


heartbeat_args = _held_args


def heartbeat(a: Namespace) -> int:
    with connect(a) as desk:
        task = desk.heartbeat(a.task, key=a.idempotency_key, **held(desk, a.task, a))
    return out(a, task, lambda: [f"{task['key']} is yours until {_until(task)}."])


def _until(task: dict[str, Any]) -> str:
    from ..display.terminal import clock

    return clock(task["claim"]["expires_at"])


def complete_args(p: Any) -> None:
    _held_args(p)
    p.add_argument("words", nargs="?", metavar="SUMMARY")
    p.add_argument("--summary", metavar="TEXT", help="what was done; - reads standard input")
    _account_args(p)


def _account_args(p: Any) -> None:
    p.add_argument("--details", metavar="TEXT", help="what a reviewer should know; - reads standard input")
    p.add_argument("--issue", action="append", default=[], metavar="TEXT", help="a problem that you saw (again for more)")


def _account(a: Namespace) -> dict[str, Any]:
    return {"details": parser.read_text(a.details) or "", "issues": a.issue}


def complete(a: Namespace) -> int:
    with connect(a) as desk:
        summary = parser.read_text(a.summary) or parser.read_text(a.words) or ""
        mine = held(desk, a.task, a)
        if parser.step(mine):
            return _signalled(a, "DONE", summary=summary, **_account(a))
        task = desk.complete(a.task, summary, key=a.idempotency_key, **_account(a), **mine)
        return out(a, task, lambda: result_lines(a, desk, task, "Completed"))


def park_args(p: Any) -> None:
    _held_args(p)
    p.add_argument("--until", metavar="WHEN", help="sleep until then: 2d, 2026-12-24")


def park(a: Namespace) -> int:
    with connect(a) as desk:
        task = desk.park(a.task, a.until, key=a.idempotency_key, **held(desk, a.task, a))
        return out(a, task, lambda: result_lines(a, desk, task, "Parked"))


def decompose_args(p: Any) -> None:
    _held_args(p)
    p.add_argument("--child", action="append", default=[], metavar="TITLE", help="a part of it (again for more)")


def decompose(a: Namespace) -> int:
    if not a.child:
        raise Usage("turn decompose: no parts were named", hint=f'turn decompose {a.task} --child "A" --child "B"')
    with connect(a) as desk:
        task = desk.decompose(a.task, a.child, key=a.idempotency_key, **held(desk, a.task, a))
    return out(
        a,
        task,
        lambda: [
            f"{task['key']} waits for its parts: {', '.join(task['blocked_by'])}",
            f"Next: turn tree {task['key']}",
        ],
    )


def fail_args(p: Any) -> None:
    task_and_reason(p)
    parser.proof(p)
    p.add_argument(
        "--failure",
        choices=("error", "stuck", "timeout"),
        default="error",
        metavar="WORD",
        help="error, stuck or timeout",
    )
    _account_args(p)


def fail(a: Namespace) -> int:
    with connect(a) as desk:
        mine = held(desk, a.task, a)
        if parser.step(mine):
            return _signalled(a, "FAILED", reason=reason(a), **_account(a))
        task = desk.fail(a.task, reason(a), failure=a.failure, key=a.idempotency_key, **_account(a), **mine)
        return out(a, task, lambda: result_lines(a, desk, task, "Failed"))


def _signalled(a: Namespace, status: str, **fields: Any) -> int:
    """In a step of a run: its script goes on when the turn has ended."""
    from ..worker.claude.hook_question import signal

    result = signal(os.environ, status, **fields)
    return out(a, result, [f"Your step ends as {status}. End your turn now: the script of the run goes on."])


stop_args = task_and_reason


def stop(a: Namespace) -> int:
    with connect(a) as desk:
        task = desk.stop(a.task, reason(a), key=a.idempotency_key)
    return out(a, task, lambda: _stopped(task, a.task))


def _stopped(task: dict[str, Any], typed: str) -> list[str]:
    from ..display import followed
    from ..display.terminal import one_line

    words = f"marked as stuck{': ' if task['reason'] else ''}{one_line(task['reason'])}"
    if task["workflow"]:
        return [f"Run {typed} {words}", *followed(task), f"Next: turn resume {typed}"]
    return [f"{task['key']} is {words}", *followed(task), f"Next: turn reopen {task['key']}"]

"""`turn run`: creates a run of a script and works on it here until it waits or ends, or leaves it to workers."""

from __future__ import annotations

import os
import signal
from argparse import Namespace
from pathlib import Path
from typing import Any

from ..core.errors import StillWaiting
from . import parser
from .parser import connect
from .tasks import result_lines, text_fields
from .work import agent_args, stop_on_signal, worker_for


def run_args(p: Any) -> None:
    p.add_argument("script", metavar="FILE", help="feature.py, feature.py:FUNCTION, feature.lua or package.module:FUNCTION")
    p.add_argument("prompt", nargs="?", metavar="PROMPT", help="the task for the script; - reads standard input")
    p.add_argument("--detach", action="store_true", help="leave it to workers (turn work)")
    p.add_argument("--title", metavar="TEXT", help="its title (default: the first line of the prompt)")
    p.add_argument("-P", "--priority", metavar="0-4", help="0 is the most urgent (2)")
    p.add_argument("--parent", "--epic", metavar="KEY", help="its parent task")
    p.add_argument("-l", "--label", action="append", metavar="WORD", help="a label (again for more)")
    p.add_argument("--max-retries", metavar="N", help="tries before a person is asked (3)")
    p.add_argument("--branch", metavar="NAME", help="its branch")
    agent_args(p)
    parser.keyed(p)


def run(a: Namespace) -> int:
    from ..flow import script

    root = script.root(Path.cwd())
    ref = _script_ref(a.script, root)
    source = script.must_read(ref, root)
    prompt = (parser.read_text(a.prompt) or "").strip()
    with connect(a) as desk:
        fields = text_fields(a, "priority", "max_retries", "branch")
        title = a.title or _title(prompt) or (source.path or Path(source.file)).stem
        task = desk.create(
            title, description=prompt or None, workflow=ref, labels=a.label,
            parent=a.parent, program={"file": source.file, "body": source.body}, key=a.idempotency_key, **fields,
        )  # fmt: skip
        if a.detach:
            return parser.show(a, task, lambda: result_lines(a, desk, task, "Created"))
        return go(a, desk, task["key"])


def _script_ref(name: str, root: Path) -> str:
    """The name by which every worker finds the script: relative to the project's root if the file is below it."""
    from ..flow.script import split

    head, function = split(name)
    if (Path.cwd() / head).is_file():
        path = (Path.cwd() / head).resolve()
        below = path.is_relative_to(root.resolve())
        head = os.path.relpath(path, root.resolve()) if below else str(path)
    return f"{head}:{function}" if function else head


def _title(prompt: str) -> str:
    first = prompt.splitlines()[0].strip() if prompt else ""
    return first if len(first) <= 120 else f"{first[:119]}…"


def go(a: Namespace, desk: Any, key: str) -> int:
    """Works on a run here until it waits or ends, and prints what it waits for. Returns the exit code."""
    task = work_on(a, desk, key)
    pending = [q["id"] for q in task["questions"] if q["status"] == "pending"]
    effects = desk.effects(*pending) if pending and not a.json else {}
    parser.show(a, task, lambda: _ended(task, effects))
    if task["state"] == "done":
        return 0
    return 1 if task["ended_at"] else StillWaiting.exit_code


def work_on(a: Namespace, desk: Any, key: str) -> dict[str, Any]:
    """Works on a run here until it waits or ends, unless another worker claims it first. Returns the run."""
    from ..flow.script import actor_name

    worker = worker_for(a, desk, {}, only=key, drain=True, default=actor_name(desk.show(key)["workflow"]))
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    stop_on_signal(worker)
    try:
        worker.run()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return dict(desk.show(key))


def _ended(task: dict[str, Any], effects: dict[str, Any]) -> list[str]:
    from ..display import next_steps, option_lines, terminal
    from ..display.runs import status

    key, reason = task["key"], terminal.one_line(task["reason"] or "")
    if task["state"] == "done":
        summary = terminal.one_line(task["summary"] or "")
        return [f"✓ {key} is done{': ' if summary else ''}{summary}"]
    if task["ended_at"]:
        return [f"✗ {key} is {status(task)}{': ' if reason else ''}{reason}", *next_steps(task)]
    lines = [f"{key} sleeps until {terminal.clock(task['wake_at'])}."] if task["wake_at"] else []
    for q in task["questions"]:
        if q["status"] == "pending":
            text = terminal.safe(q["text"]).splitlines()
            mark = "✗" if q["reason"] == "run_failed" else "⏸"
            lines += [f"{mark} {key} waits for a person, {q['id']} ({q['kind']}):", *(f"  {line}" for line in text)]
            lines += [f"  {line}" for line in option_lines(q)]
            lines += [f"  {line}" for line in terminal.safe(str((q["context"] or {}).get("traceback") or "")).splitlines()]
    if task["claim"] and not lines:
        lines = [f"{terminal.safe(task['claim']['worker'])} works on {key}."]
    lines = lines or [f"{key} is '{task['state']}'."]
    return [*lines, "", *next_steps(task, effects)]

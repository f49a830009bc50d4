"""`turn work`: starts a worker that lets agents work on ready tasks."""

from __future__ import annotations

import os
import signal
import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..core.errors import Usage, YourturnError
from . import parser
from .parser import connect


def _money(text: str) -> float:
    try:
        amount = float(text.removeprefix("$"))
    except ValueError:
        amount = -1
    if not 0 < amount < 10**9:
        raise ArgumentTypeError(f"invalid amount {text[:20]!a}: a number like 2.50 is expected")
    return amount


def _count(text: str) -> int:
    digits = text.replace("_", "").lower().removesuffix("k")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 12 or int(digits) == 0:
        raise ArgumentTypeError(f"invalid number {text[:20]!a}: a whole number from 1 is expected (500k is 500000)")
    return int(digits) * (1000 if text.lower().endswith("k") else 1)


def _time(option: str) -> Callable[[str], float]:
    def parse(text: str) -> float:
        from ..core.fields import duration

        seconds = duration(text, option) / 1_000_000
        if not seconds:
            raise ArgumentTypeError(f"invalid time {text[:20]!a}: a time above zero like 90s, 30m or 2h is expected")
        return seconds

    return parse


def agent_args(p: Any) -> None:
    """Options about how agents run."""
    p.add_argument(
        "--exec", metavar="CMD", dest="command", help="use a command as the agent: it reads the brief and prints its message"
    )
    p.add_argument("--in-place", action="store_true", help="work in this checkout, not in a worktree; one task at a time")
    p.add_argument("--turns", type=_count, default=5, metavar="N", help="turns without a signal before a person is asked (5)")
    p.add_argument("--timeout", type=_time("--timeout"), default=3600.0, metavar="TIME", help="time limit of one turn (1h)")
    p.add_argument("--silence", type=_time("--silence"), default=900.0, metavar="TIME", help="time limit without output (15m)")


def work_args(p: Any) -> None:
    p.add_argument("--agent", metavar="NAME", help="only this agent of [agents.NAME] (default: as the task's role says)")
    agent_args(p)
    p.add_argument("--epic", metavar="KEY", help="only tasks of this epic")
    p.add_argument("--parallel", type=_count, default=1, metavar="N", help="how many agents run at the same time (1)")
    p.add_argument("--drain", action="store_true", help="end when no task is ready")
    p.add_argument("--watch", action="store_true", help="wait for more work (the default)")
    p.add_argument("--worker-id", metavar="W", help="this worker's name")
    budget = p.add_argument_group("budgets (the worker claims nothing more and ends when one is spent)")
    budget.add_argument("--budget-tasks", type=_count, metavar="N")
    budget.add_argument("--budget-iterations", type=_count, metavar="N", help="turns of agents")
    budget.add_argument("--budget-time", type=_time("--budget-time"), metavar="TIME", help="also ends the agents that run then")
    budget.add_argument("--budget-tokens", type=_count, metavar="N")
    budget.add_argument("--budget-cost", type=_money, metavar="USD")


def work(a: Namespace) -> int:
    from ..worker.budget import Budget

    agents, default = _agents(a)
    only = a.agent if a.command is None else None
    with connect(a) as desk:
        if a.drain and a.watch:
            raise Usage("turn work: --drain and --watch exclude each other")
        worker = worker_for(
            a, desk, agents, agent=only, default=default, epic=a.epic, parallel=a.parallel, drain=a.drain,
            budget=Budget(a.budget_tasks, a.budget_iterations, a.budget_time, a.budget_tokens, a.budget_cost),
            **({"name": a.worker_id} if a.worker_id else {}),
        )  # fmt: skip
        who = ", ".join(agents) or _only_runs(desk)
        stop_on_signal(worker)
        if a.epic:
            desk.show(a.epic)  # raises NotFound before the worker's first line
        if not a.json:
            print(f"Worker {worker.name}: {who}. Ctrl+C stops it.", flush=True)
        reason = worker.run()
        results = [{"task": key, "outcome": result.what, "words": result.words} for key, result in worker.results]
        report = {"ended": reason, "ended_code": worker.ended_code, "results": results, "spent": worker.budget.spent}
        parser.show(a, report, lambda: _summary(reason, worker))
        return YourturnError.exit_code if worker.trouble else 0


def _agents(a: Namespace) -> tuple[dict[str, Any], str]:
    """Agents by name, and the name of the default one, which takes tasks without a role."""
    from ..config import file
    from ..worker.agents import agent_for, exec_agent

    if a.command is not None:
        name = a.agent or "exec"
        return {name: exec_agent(a.command, name, Path.cwd())}, name
    config = file()
    configured = list(config.get("agents", {})) if isinstance(config.get("agents"), dict) else []
    agents = {name: agent_for(name, config, Path.cwd()) for name in ([a.agent] if a.agent else configured)}
    if not agents:
        return {}, "worker"
    return agents, a.agent or (next(iter(agents)) if len(agents) == 1 or "coder" not in agents else "coder")


def _only_runs(desk: Any) -> str:
    """A worker without agents takes only runs, whose scripts may need none. Raises if there are no runs either."""
    from ..config import file
    from ..worker.agents import agent_for

    if not desk.list(state="open", only_runs=True, limit=1):
        agent_for("coder", file(), Path.cwd())
    tasks = desk.ready(runs=False, limit=1)
    return "no agent, runs only" + (f" ({tasks[0]['key']} waits for an agent: see docs/agents.md)" if tasks else "")


def worker_for(a: Namespace, desk: Any, agents: dict[str, Any], **more: Any) -> Any:
    """A worker with the options of the command line."""
    from ..config import file, where
    from ..worker.agents import agent_for, exec_agent
    from ..worker.progress import ProgressDisplay
    from ..worker.worker import Worker

    address = where(a.db, os.environ)
    if "://" not in address:
        address = str(Path(address).resolve())
    live = sys.stdout.isatty() and not a.json and os.environ.get("TERM") != "dumb"
    command, here = getattr(a, "command", None), Path.cwd()
    options = {"in_place": "in_place", "turns": "turns", "time_limit": "timeout", "silence_limit": "silence"}
    return Worker(
        desk, agents, ProgressDisplay(sys.stderr if a.json else sys.stdout, live), address, root=here, logs=_logs(address),
        find=lambda name: exec_agent(command, name, here) if command else agent_for(name, file(), here),
        **{name: getattr(a, option) for name, option in options.items() if hasattr(a, option)}, **more,
    )  # fmt: skip


def _summary(reason: str, worker: Any) -> list[str]:
    from ..worker.budget import dollars

    counts = worker.counts
    tasks = ", ".join(f"{count} {what}" for what, count in counts.items()) or "no task"
    cost = f", {dollars(worker.budget.spent['cost'])}" if worker.budget.spent["cost"] else ""
    lines = [f"Ended: {reason}. {tasks}{cost}."]
    if "waiting" in counts:
        lines.append("Next: turn inbox")
    elif worker.next:
        lines.append(f"Next: {worker.next}")
    return lines


def _logs(address: str) -> Path:
    if "://" not in address:
        return Path(address).parent / "logs"
    home = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(home, "yourturn", "logs")


def stop_on_signal(worker: Any) -> None:
    """The first SIGINT or SIGTERM lets agents end their turns; the second ends the process, and agents die with it."""
    import threading
    from queue import SimpleQueue

    signals: SimpleQueue[int] = SimpleQueue()  # reentrant: a handler may interrupt code that holds a lock

    def stop() -> None:
        signals.get()
        worker.progress.report("", "Stopping: agents may end their turn. Ctrl+C again stops at once.")
        worker.stop()
        os._exit(128 + signals.get())

    threading.Thread(target=stop, daemon=True).start()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: signals.put(number))

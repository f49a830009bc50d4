"""`turn list`, `show`, `tree`, `ready` and `next`: reads tasks."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from . import parser
from .parser import connect
from .parser import show as out
from .tasks import text_fields


def list__args(p: Any) -> None:
    from ..core.rules import STATE_WORDS
    from ..core.task_fields import REQUIRES, TYPES

    p.add_argument("epic", nargs="?", metavar="EPIC", help="only tasks below this one")
    p.add_argument("-s", "--state", "--status", metavar="STATES", help="such as ready or open,blocked: " + ", ".join(STATE_WORDS))
    p.add_argument("--awaiting", nargs="?", const="", metavar="KINDS", help="only tasks that wait for a person; of these kinds")
    p.add_argument("--manual", action="store_const", dest="awaiting", const="work", help="the same as --awaiting work")
    p.add_argument("--blocked", action="store_true", help="only blocked tasks, with what they wait for")
    p.add_argument("--expiring", metavar="TIME", help="only claims that end within this time, like 15m")
    p.add_argument("--active", action="store_true", help="only tasks that have not ended")
    p.add_argument("--runs", action="store_true", help="only runs of workflows")
    p.add_argument("--parent", metavar="KEY", help="only direct children of this task")
    p.add_argument("-l", "--label", metavar="WORD")
    p.add_argument("-t", "--type", choices=TYPES, metavar="TYPE")
    p.add_argument("-P", "--priority", metavar="0-4")
    p.add_argument("--requires", choices=REQUIRES, metavar="GATE")
    p.add_argument("--role", metavar="NAME")
    p.add_argument("--search", metavar="WORDS", help="search key, old id, title and description")
    parser.paging(p)


def list_(a: Namespace) -> int:
    from .. import display
    from ..core.fields import priority
    from ..core.rules import KINDS

    epic, awaiting = a.epic, a.awaiting
    if awaiting and epic is None and awaiting.partition(",")[0] not in KINDS and any(c.isdigit() for c in awaiting):
        epic, awaiting = awaiting, ""  # list --awaiting EPIC
    states = [word for word, on in ((a.state, a.state), ("blocked", a.blocked), ("open", a.active)) if on]
    filters: dict[str, Any] = text_fields(a, "label", "type", "requires", "role", "search")
    if a.priority is not None:
        filters["priority"] = priority("priority", a.priority)
    with connect(a) as desk:
        tasks = desk.list(
            epic=epic, parent=a.parent, state=",".join(states) or None, awaiting=None if awaiting is None else awaiting or True,
            expiring=a.expiring, after=a.after, limit=a.limit, project=a.project, only_runs=a.runs, **filters,
        )  # fmt: skip
        complete = len(tasks) < a.limit or a.json
        other_filters = (epic, a.parent, awaiting, a.expiring, a.runs, *filters.values())
        countable = not complete and all(value in (None, False) for value in other_filters)
        total = _count(desk, a, states) if countable else None
    if a.awaiting is not None:
        return out(a, tasks, lambda: [*display.awaiting(tasks), *_more(tasks, a, total)])
    filtered = bool(states or filters or epic or a.parent or a.expiring or a.runs)
    return out(a, tasks, lambda: [*_tables(tasks, filtered), *_more(tasks, a, total), *_hint(tasks)])


def _count(desk: Any, a: Namespace, states: list[str]) -> int:
    """The number of tasks in these states."""
    from ..core.rules import STATE_WORDS

    wanted = {state for word in ",".join(states).split(",") for state in STATE_WORDS.get(word.strip(), ())}
    return sum(count for state, count in desk.counts(project=a.project).items() if not wanted or state in wanted)


def _tables(rows: list[dict[str, Any]], filtered: bool) -> list[str]:
    """Plain tasks, and below them runs, whose table has other columns."""
    from .. import display

    if not rows and filtered:
        return display.tasks(rows, "No tasks match.", "turn list")
    runs = [t for t in rows if t["workflow"]]
    tasks = [t for t in rows if not t["workflow"]]
    if not runs:
        return display.tasks(tasks)
    from ..display.runs import table

    return [*display.tasks(tasks), "", *table(runs)] if tasks else table(runs)


def _hint(tasks: list[dict[str, Any]]) -> list[str]:
    if not tasks:
        return []
    first = next((t for t in tasks if t["awaiting"]), tasks[0])
    return [f"Next: turn {'status' if first['workflow'] else 'show'} {first['key']}"]


def _more(tasks: list[dict[str, Any]], a: Namespace, total: int | None = None) -> list[str]:
    from .. import display

    if len(tasks) < a.limit or len(tasks) == total:
        return []
    return [display.more(len(tasks), total, f"--after {tasks[-1]['key']}")]


def show_args(p: Any) -> None:
    p.add_argument("what", metavar="KEY", help="a task (PROJ-1, 1) or a question (Q17)")


def show(a: Namespace) -> int:
    with connect(a) as desk:
        row = desk.show(a.what)
        return _show_question(a, desk, row) if "status" in row else _show_task(a, desk, row)


def _show_question(a: Namespace, desk: Any, q: dict[str, Any]) -> int:
    from .. import display

    hints = []
    if q["status"] == "pending" and not a.json:
        effects = desk.effects(q["id"]).get(q["id"], [])
        hints = display.answers(q, q["id"], effects, desk.show(q["task"]))
    hints = [*hints, (f"turn show {q['task']}", "the task that it is about")]
    return out(a, q, lambda: [*display.question(q, ""), "", *display.hints(hints)])


def _show_task(a: Namespace, desk: Any, task: dict[str, Any]) -> int:
    from .. import display

    if a.json:
        return out(a, task, [])
    pending = [q["id"] for q in task["questions"] if q["status"] == "pending"]
    effects = desk.effects(*pending) if pending else {}
    shown = {**task, "branch": parser.branch(task)}
    waiting = desk.holds_up(task["key"])
    return out(a, task, lambda: display.task(shown, waiting, effects, parser.unattended(a, desk, task)))


def tree_args(p: Any) -> None:
    p.add_argument("root", nargs="?", metavar="KEY")


def tree(a: Namespace) -> int:
    from .. import display

    with connect(a) as desk:
        nodes = desk.tree(a.root, project=a.project)
    return out(a, nodes, lambda: display.tree(nodes))


def ready_args(p: Any) -> None:
    p.add_argument("epic", nargs="?", metavar="EPIC")
    p.add_argument("--role", metavar="NAME")
    parser.paging(p)


def ready(a: Namespace) -> int:
    with connect(a) as desk:
        tasks = desk.ready(epic=a.epic, role=a.role, after=a.after, limit=a.limit, project=a.project)
        worker = parser.unattended(a, desk, tasks[0]) if tasks else []

    def lines() -> list[str]:
        from .. import display

        hint = [f"Next: turn claim {tasks[0]['key']}"] if tasks else []
        return [*display.tasks(tasks, "Nothing is ready."), *_more(tasks, a), *worker, *hint]

    return out(a, tasks, lines)


def next__args(p: Any) -> None:
    p.add_argument("epic", nargs="?", metavar="EPIC")
    p.add_argument("--claim", action="store_true", help="claim it")
    p.add_argument("--worker-id", metavar="W", help="the worker that claims it (default: your name)")
    p.add_argument("--lease", metavar="TIME", help="how long the claim lasts without a heartbeat (1h)")
    p.add_argument("--role", metavar="NAME")
    parser.keyed(p)


def next_(a: Namespace) -> int:
    from .. import display

    with connect(a) as desk:
        if not a.claim:
            task = desk.next(a.epic, role=a.role, project=a.project)
            return out(a, task, lambda: display.tasks([task]) if task else ["Nothing is ready."])
        from .claims import claimed_lines, worker

        key = a.idempotency_key
        result = desk.claim_next(worker(desk, a), project=a.project, epic=a.epic, role=a.role, lease=a.lease, key=key)
    return out(a, result, lambda: claimed_lines(result) if result else ["Nothing is ready."])

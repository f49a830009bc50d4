"""Looking at tasks on the command line: lists, one task or question, the tree, what is ready."""

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
    p.add_argument("-s", "--state", "--status", metavar="STATES", help="like ready or open,blocked: " + ", ".join(STATE_WORDS))
    p.add_argument("--awaiting", nargs="?", const="", metavar="KINDS", help="only what waits for a person; of these kinds")
    p.add_argument("--manual", action="store_const", dest="awaiting", const="work", help="the same as --awaiting work")
    p.add_argument("--blocked", action="store_true", help="only blocked tasks, with what they wait for")
    p.add_argument("--expiring", metavar="TIME", help="only claims that end within this time, like 15m")
    p.add_argument("--active", action="store_true", help="without what has ended")
    p.add_argument("--runs", action="store_true", help="only runs of workflows")
    p.add_argument("--parent", metavar="KEY", help="only direct children of this one")
    p.add_argument("-l", "--label", metavar="WORD")
    p.add_argument("-t", "--type", choices=TYPES, metavar="TYPE")
    p.add_argument("-P", "--priority", metavar="0-4")
    p.add_argument("--requires", choices=REQUIRES, metavar="GATE")
    p.add_argument("--role", metavar="NAME")
    p.add_argument("--search", metavar="WORDS", help="in key, old id, title and description")
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
        found = desk.list(
            epic=epic, parent=a.parent, state=",".join(states) or None, awaiting=None if awaiting is None else awaiting or True,
            expiring=a.expiring, after=a.after, limit=a.limit, project=a.project, only_runs=a.runs, **filters,
        )  # fmt: skip
        whole = len(found) < a.limit or a.json
        only = (epic, a.parent, awaiting, a.expiring, a.runs, *filters.values())
        total = None if whole or any(word not in (None, False) for word in only) else _counted(desk, a, states)
    if a.awaiting is not None:
        return out(a, found, lambda: [*display.awaiting(found), *_more(found, a, total)])
    narrowed = bool(states or filters or epic or a.parent or a.expiring or a.runs)
    return out(a, found, lambda: [*_listed(found, narrowed), *_more(found, a, total), *_look_at(found)])


def _counted(desk: Any, a: Namespace, states: list[str]) -> int:
    """How many tasks are in these states."""
    from ..core.rules import STATE_WORDS

    wanted = {state for word in ",".join(states).split(",") for state in STATE_WORDS.get(word.strip(), ())}
    return sum(count for state, count in desk.counts(project=a.project).items() if not wanted or state in wanted)


def _listed(found: list[dict[str, Any]], narrowed: bool) -> list[str]:
    """Tasks, and below them runs of workflows, which say more about whom they wait for."""
    from .. import display

    if not found and narrowed:
        return display.tasks(found, "No task is like that.", "turn list")
    tasks, runs = ([t for t in found if bool(t["workflow"]) is sort] for sort in (False, True))
    if not runs:
        return display.tasks(tasks)
    from ..display.runs import table

    return [*display.tasks(tasks), "", *table(runs)] if tasks else table(runs)


def _look_at(found: list[dict[str, Any]]) -> list[str]:
    if not found:
        return []
    first = next((t for t in found if t["awaiting"]), found[0])
    return [f"Next: turn {'status' if first['workflow'] else 'show'} {first['key']}"]


def _more(found: list[dict[str, Any]], a: Namespace, total: int | None = None) -> list[str]:
    from .. import display

    if len(found) < a.limit or len(found) == total:
        return []
    return [display.more(len(found), total, f"--after {found[-1]['key']}")]


def show_args(p: Any) -> None:
    p.add_argument("what", metavar="KEY", help="a task (PROJ-1, 1) or a question (Q17)")


def show(a: Namespace) -> int:
    from .. import display

    with connect(a) as desk:
        found = desk.show(a.what)
        if "status" in found:
            asked = found["status"] == "pending" and not a.json
            effects = desk.effects(found["id"]).get(found["id"], []) if asked else []
            steps = display.answers(found, found["id"], effects, desk.show(found["task"])) if asked else []
            steps = [*steps, (f"turn show {found['task']}", "the task that it is about")]
            return out(a, found, lambda: [*display.question(found, ""), "", *display.hints(steps)])
        waiting = [] if a.json else desk.holds_up(found["key"])
        asked_now = [] if a.json else [q["id"] for q in found["questions"] if q["status"] == "pending"]
        effects = desk.effects(*asked_now) if asked_now else {}
        shown = {**found, "branch": parser.branch(found)}
        return out(a, found, lambda: display.task(shown, waiting, effects, parser.unattended(a, desk, found)))


def tree_args(p: Any) -> None:
    p.add_argument("root", nargs="?", metavar="KEY")


def tree(a: Namespace) -> int:
    from .. import display

    with connect(a) as desk:
        found = desk.tree(a.root, project=a.project)
    return out(a, found, lambda: display.tree(found))


def ready_args(p: Any) -> None:
    p.add_argument("epic", nargs="?", metavar="EPIC")
    p.add_argument("--role", metavar="NAME")
    parser.paging(p)


def ready(a: Namespace) -> int:
    with connect(a) as desk:
        found = desk.ready(epic=a.epic, role=a.role, after=a.after, limit=a.limit, project=a.project)
        worker = parser.unattended(a, desk, found[0]) if found else []

    def lines() -> list[str]:
        from .. import display

        hint = [f"Next: turn claim {found[0]['key']}"] if found else []
        return [*display.tasks(found, "Nothing is ready."), *_more(found, a), *worker, *hint]

    return out(a, found, lines)


def next__args(p: Any) -> None:
    p.add_argument("epic", nargs="?", metavar="EPIC")
    p.add_argument("--claim", action="store_true", help="take it")
    p.add_argument("--worker-id", metavar="W", help="as this worker")
    p.add_argument("--lease", metavar="TIME", help="for so long (1h)")
    p.add_argument("--role", metavar="NAME")
    parser.keyed(p)


def next_(a: Namespace) -> int:
    from .. import display

    with connect(a) as desk:
        if not a.claim:
            found = desk.next(a.epic, role=a.role, project=a.project)
            return out(a, found, lambda: display.tasks([found]) if found else ["Nothing is ready."])
        from .claims import claimed_lines, worker

        key = a.idempotency_key
        got = desk.claim_next(worker(desk, a), project=a.project, epic=a.epic, role=a.role, lease=a.lease, key=key)
    return out(a, got, lambda: claimed_lines(got) if got else ["Nothing is ready."])

"""Tasks on the command line."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from ..core.errors import IllegalMove, NotAllowed, Usage
from . import parse
from .parse import connect
from .parse import show as out


def _text(args: Namespace, *names: str) -> dict[str, Any]:
    """The options that were given."""
    from ..core.canon import clean

    found = {}
    for name in names:
        value = getattr(args, name)
        if value is not None:
            found[name] = clean(str(parse.given(value)), name) if isinstance(value, str) else value
    return found


def _fields(p: Any) -> None:
    from ..core.actions import COMPLEXITIES, REQUIRES, TYPES

    p.add_argument("-d", "--description", metavar="TEXT", help="what is to be done; - reads standard input")
    p.add_argument("-P", "--priority", metavar="0-4", help="0 is the most urgent (2)")
    p.add_argument("-t", "--type", choices=TYPES, metavar="TYPE", help=", ".join(TYPES))
    p.add_argument("-c", "--complexity", choices=COMPLEXITIES, metavar="SIZE", help=", ".join(COMPLEXITIES))
    p.add_argument("--requires", metavar="GATE", help=f"finished work needs: {', '.join(REQUIRES)}")
    p.add_argument("--role", metavar="NAME", help="the agent that should do it")
    p.add_argument("--acceptance", metavar="TEXT", help="when it is done")
    p.add_argument("--max-retries", metavar="N", help="tries before a person is asked (3)")
    p.add_argument("--branch", metavar="NAME", help="its branch")
    parse.keyed(p)


_FIELDS = ("description", "priority", "type", "complexity", "requires", "role", "acceptance", "max_retries", "branch")
#: Words for "no person's turn".
_NOBODY = ("null", "none", "")


def _awaiting(p: Any, help: str) -> None:
    from ..core.rules import KINDS

    known = (*KINDS, *_NOBODY)
    p.add_argument("--awaiting", choices=known, metavar="KIND", help=f"{help}: {', '.join(KINDS)}; or null")
    p.add_argument("--manual", action="store_const", dest="awaiting", const="work", help="the same as --awaiting work")
    p.add_argument("--question", metavar="TEXT", help="what the person is asked, with --awaiting; - reads standard input")
    p.add_argument("--reviewer", metavar="WHO", help="the person or role that is asked, with --awaiting")


def _asked(a: Namespace, command: str) -> dict[str, Any]:
    """The question that goes with --awaiting. Without one, nothing may be said about it."""
    found = _text(a, "question", "reviewer")
    if found and a.awaiting in (None, *_NOBODY):
        raise Usage(f"turn {command}: --{next(iter(found))} goes with --awaiting KIND", hint=f"See: turn {command} --help")
    return found


def create_args(p: Any) -> None:
    p.add_argument("title")
    p.add_argument("--parent", "--epic", metavar="KEY", help="the task that this is a part of")
    p.add_argument(
        "--depends-on",
        "--blocked-by",
        "--needs",
        action="append",
        default=[],
        metavar="KEY",
        help="wait for this one first (again for more)",
    )
    p.add_argument("-l", "--label", action="append", metavar="WORD", help="a label (again for more)")
    p.add_argument("--draft", action="store_true", help="not to be worked on before a person vets it")
    _awaiting(p, "hand it to a person at once")
    p.add_argument("--external-id", metavar="ID", help="its id in another tracker")
    _fields(p)


def create(a: Namespace) -> int:
    with connect(a) as desk:
        needs = [key.strip() for word in a.depends_on for key in word.split(",") if key.strip()]
        fields = {**_text(a, *_FIELDS, "external_id"), **_asked(a, "create")}
        if a.awaiting not in _NOBODY:
            fields["awaiting"] = a.awaiting
        task = desk.create(
            parse.given(a.title),
            parent=a.parent,
            depends_on=needs,
            labels=a.label,
            draft=a.draft or None,
            key=a.idempotency_key,
            **fields,
        )
        unasked = [f"{task['key']} waits for no person."] if a.awaiting in _NOBODY else []
        return out(a, task, lambda: [*_said(a, desk, task, "Created"), *unasked])


def _said(a: Namespace, desk: Any, task: dict[str, Any], word: str) -> list[str]:
    from ..screen import one_line
    from ..view import WORDS, followed, next_steps

    first = f"{word} {task['key']}: {one_line(task['title'])} ({WORDS[task['state']]})"
    return [first, *followed(task), *parse.unattended(a, desk, task), *next_steps(task)]


def list__args(p: Any) -> None:
    from ..core.actions import REQUIRES, TYPES
    from ..core.rules import STATE_WORDS

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
    parse.paging(p)


def list_(a: Namespace) -> int:
    from .. import view
    from ..core.fields import priority
    from ..core.rules import KINDS

    epic, awaiting = a.epic, a.awaiting
    if awaiting and epic is None and awaiting.partition(",")[0] not in KINDS and any(c.isdigit() for c in awaiting):
        epic, awaiting = awaiting, ""  # list --awaiting EPIC
    states = [word for word, on in ((a.state, a.state), ("blocked", a.blocked), ("open", a.active)) if on]
    filters: dict[str, Any] = _text(a, "label", "type", "requires", "role", "search")
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
        return out(a, found, lambda: [*view.awaiting(found), *_more(found, a, total)])
    narrowed = bool(states or filters or epic or a.parent or a.expiring or a.runs)
    return out(a, found, lambda: [*_listed(found, narrowed), *_more(found, a, total), *_look_at(found)])


def _counted(desk: Any, a: Namespace, states: list[str]) -> int:
    """How many tasks are in these states."""
    from ..core.rules import STATE_WORDS

    wanted = {state for word in ",".join(states).split(",") for state in STATE_WORDS.get(word.strip(), ())}
    return sum(count for state, count in desk.counts(project=a.project).items() if not wanted or state in wanted)


def _listed(found: list[dict[str, Any]], narrowed: bool) -> list[str]:
    """Tasks, and below them runs of workflows, which say more about whom they wait for."""
    from .. import view

    if not found and narrowed:
        return view.tasks(found, "No task is like that.", "turn list")
    tasks, runs = ([t for t in found if bool(t["workflow"]) is sort] for sort in (False, True))
    if not runs:
        return view.tasks(tasks)
    from ..runs import table

    return [*view.tasks(tasks), "", *table(runs)] if tasks else table(runs)


def _look_at(found: list[dict[str, Any]]) -> list[str]:
    if not found:
        return []
    first = next((t for t in found if t["awaiting"]), found[0])
    return [f"Next: turn {'status' if first['workflow'] else 'show'} {first['key']}"]


def _more(found: list[dict[str, Any]], a: Namespace, total: int | None = None) -> list[str]:
    from .. import view

    if len(found) < a.limit or len(found) == total:
        return []
    return [view.more(len(found), total, f"--after {found[-1]['key']}")]


def show_args(p: Any) -> None:
    p.add_argument("what", metavar="KEY", help="a task (PROJ-1, 1) or a question (Q17)")


def show(a: Namespace) -> int:
    from .. import view

    with connect(a) as desk:
        found = desk.show(a.what)
        if "status" in found:
            asked = found["status"] == "pending" and not a.json
            effects = desk.effects(found["id"]).get(found["id"], []) if asked else []
            steps = view.answers(found, found["id"], effects, desk.show(found["task"])) if asked else []
            steps = [*steps, (f"turn show {found['task']}", "the task that it is about")]
            return out(a, found, lambda: [*view.question(found, ""), "", *view.hints(steps)])
        waiting = [] if a.json else desk.holds_up(found["key"])
        asked_now = [] if a.json else [q["id"] for q in found["questions"] if q["status"] == "pending"]
        effects = desk.effects(*asked_now) if asked_now else {}
        shown = {**found, "branch": parse.branch(found)}
        return out(a, found, lambda: view.task(shown, waiting, effects, parse.unattended(a, desk, found)))


def tree_args(p: Any) -> None:
    p.add_argument("root", nargs="?", metavar="KEY")


def tree(a: Namespace) -> int:
    from .. import view

    with connect(a) as desk:
        found = desk.tree(a.root, project=a.project)
    return out(a, found, lambda: view.tree(found))


def ready_args(p: Any) -> None:
    p.add_argument("epic", nargs="?", metavar="EPIC")
    p.add_argument("--role", metavar="NAME")
    parse.paging(p)


def ready(a: Namespace) -> int:
    with connect(a) as desk:
        found = desk.ready(epic=a.epic, role=a.role, after=a.after, limit=a.limit, project=a.project)
        worker = parse.unattended(a, desk, found[0]) if found else []

    def lines() -> list[str]:
        from .. import view

        hint = [f"Next: turn claim {found[0]['key']}"] if found else []
        return [*view.tasks(found, "Nothing is ready."), *_more(found, a), *worker, *hint]

    return out(a, found, lines)


def next__args(p: Any) -> None:
    p.add_argument("epic", nargs="?", metavar="EPIC")
    p.add_argument("--claim", action="store_true", help="take it")
    p.add_argument("--worker-id", metavar="W", help="as this worker")
    p.add_argument("--lease", metavar="TIME", help="for so long (1h)")
    p.add_argument("--role", metavar="NAME")


def next_(a: Namespace) -> int:
    from .. import view

    with connect(a) as desk:
        if not a.claim:
            found = desk.next(a.epic, role=a.role, project=a.project)
            return out(a, found, lambda: view.tasks([found]) if found else ["Nothing is ready."])
        from .claims import claimed_lines, worker

        got = desk.claim_next(worker(desk, a), project=a.project, epic=a.epic, role=a.role, lease=a.lease)
    return out(a, got, lambda: claimed_lines(got) if got else ["Nothing is ready."])


def update_args(p: Any) -> None:
    p.add_argument("task", metavar="KEY")
    p.add_argument("--title", metavar="TEXT")
    p.add_argument("-l", "--label", action="append", metavar="WORD", help="the labels it shall have (again for more)")
    p.add_argument("--session-id", metavar="ID")
    _awaiting(p, "make it a person's turn, in place of what it waits for; null hands it back to agents")
    p.add_argument("--verdict", choices=("approved", "rejected"), metavar="VERDICT", help="answer its open question")
    p.add_argument("-y", "--yes", action="store_true", help="do not ask before a task is cancelled")
    parse.proof(p)
    _fields(p)


def update(a: Namespace) -> int:
    fields = _text(a, *_FIELDS, "title", "session_id")
    if a.label is not None:
        fields["labels"] = [word for word in a.label if word]
    if not fields and a.awaiting is None and a.verdict is None:
        raise Usage("turn update: nothing to change was given", hint="See: turn update --help")
    asked = _asked(a, "update")
    if a.verdict is not None and (fields or a.awaiting is not None):
        raise Usage("turn update: --verdict answers a question and changes nothing else", hint="Say the rest in a second update.")
    from .questions import warn

    with connect(a) as desk:
        said: list[str] = []
        if a.verdict is not None:
            if a.verdict == "rejected":
                warn(desk, a, a.task, verdict=a.verdict)
            task = (desk.approve if a.verdict == "approved" else desk.reject)(a.task, key=a.idempotency_key)
        elif a.awaiting in _NOBODY:
            task, said = _handed_back(desk, a, fields)
        else:
            mine = parse.held(desk, a.task, a)
            proof = {"claim": mine["proof"], "worker": mine["worker"], "key": a.idempotency_key}
            if a.awaiting is None:
                task = desk.update(a.task, **proof, **fields)
            else:
                text, reviewer = asked.get("question"), asked.get("reviewer")
                task = desk.await_person(a.task, a.awaiting, text, reviewer=reviewer, fields=fields or None, **proof)
        return out(a, task, lambda: said or _said(a, desk, task, "Updated"))


def _handed_back(desk: Any, a: Namespace, fields: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The task, and what is said where it waits for no person already."""
    try:
        return desk.hand_back(a.task, fields=fields or None, key=a.idempotency_key), []
    except IllegalMove:
        task = desk.show(a.task)
        if task["awaiting"] is not None:
            raise
        if fields:
            return desk.update(a.task, key=a.idempotency_key, **fields), []
        return task, [f"{task['key']} waits for no person: nothing to hand back.", f"Next: turn show {task['key']}"]


def note_args(p: Any) -> None:
    p.add_argument("task", metavar="KEY")
    p.add_argument("text", help="- reads standard input")
    p.add_argument("--from", dest="sort", choices=("human", "agent"), help="who wrote it; narrows, never widens, what you are")
    parse.keyed(p)


def note(a: Namespace) -> int:
    with connect(a) as desk:
        who = desk.who
        if a.sort == "human" and not who.is_person:
            raise NotAllowed(f"{who.name} cannot write as a person", reason="the credential decides who wrote it")
        if a.sort == "agent" and who.is_person:
            desk = desk.as_(who.as_agent())
        task = desk.note(a.task, parse.given(a.text), key=a.idempotency_key)
    return out(a, task, [f"Noted on {task['key']}.", f"Next: turn show {task['key']}"])


def dep_args(p: Any) -> None:
    p.add_argument("what", choices=("add", "remove", "rm", "list"))
    p.add_argument("task", metavar="A")
    p.add_argument("needs", nargs="*", metavar="B", help="A waits for B")


def dep(a: Namespace) -> int:
    with connect(a) as desk:
        if a.what == "list":
            task = desk.show(a.task)
        elif not a.needs:
            raise Usage(f"turn dep {a.what}: for which task should {a.task} wait?", hint=f"turn dep {a.what} {a.task} KEY")
        else:
            task = (desk.depend if a.what == "add" else desk.undepend)(a.task, *a.needs)
    waits = ", ".join(f"{key}{'' if key in task['blocked_by'] else ' (resolved)'}" for key in task["depends_on"])
    lines = [f"{task['key']} waits for {waits or 'nothing'}."]
    for q in task["questions"] if a.what == "add" else ():
        if q["status"] == "pending" and q["reason"] == "dependency_failed":
            lines.append(f"One of them has failed, so {task['key']} is a person's turn now: {q['id']}.")
            lines.append(f"Next: turn show {q['id']}")
    return out(a, task, lines)


def _move(a: Namespace, verb: str, word: str, **args: Any) -> int:
    with connect(a) as desk:
        task = getattr(desk, verb)(a.task, **args)
        return out(a, task, lambda: _said(a, desk, task, word))


def _one_args(p: Any) -> None:
    p.add_argument("task", metavar="KEY")


def _reason_args(p: Any) -> None:
    p.add_argument("task", metavar="KEY")
    p.add_argument("why", nargs="?", metavar="REASON", help="why")
    p.add_argument("--reason", metavar="TEXT", help="the same")


def reason(a: Namespace) -> str:
    return parse.given(a.reason) or parse.given(a.why) or ""


vet_args = wake_args = _one_args
accept_args = resolve_args = cancel_args = close_args = reopen_args = _reason_args


def vet(a: Namespace) -> int:
    return _move(a, "vet", "Vetted")


def wake(a: Namespace) -> int:
    return _move(a, "wake", "Woke")


def accept(a: Namespace) -> int:
    return _move(a, "accept", "Accepted", reason=reason(a))


def resolve(a: Namespace) -> int:
    return _move(a, "resolve", "Resolved", reason=reason(a))


def cancel(a: Namespace) -> int:
    from .. import view

    with connect(a) as desk:
        task = desk.cancel(a.task, reason=reason(a))
        left = [] if a.json else desk.list(parent=task["key"], state="open", limit=8)
        said = _said(a, desk, task, "Cancelled")
    if left:
        keys = ", ".join(f"{t['key']} ({view.WORDS[t['state']]})" for t in left)
        said[-1:] = [f"Its children stay as they are: {keys}.", f"Next: turn tree {task['key']} | turn cancel {left[0]['key']}"]
    return out(a, task, said)


def close(a: Namespace) -> int:
    return _move(a, "close", "Closed", reason=reason(a))


def reopen(a: Namespace) -> int:
    return _move(a, "reopen", "Reopened", reason=reason(a))


def defer_args(p: Any) -> None:
    _reason_args(p)
    p.add_argument("--until", metavar="WHEN", help="2d, 2026-12-24, 2026-12-24T18:00; without it, until somebody wakes it")


def defer(a: Namespace) -> int:
    return _move(a, "defer", "Deferred", until=a.until, reason=reason(a))

"""`turn inbox`: lists, shows, sends and answers questions. A bare number is a question here, not a task."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from ..core.errors import Usage
from ..core.permissions import is_mine
from ..core.rules import KINDS, MESSAGE_TYPES
from . import parser
from .parser import connect
from .parser import show as out


def inbox_args(p: Any) -> None:
    p.add_argument(
        "what", nargs="?", choices=("list", "show", "send", "respond"), default="list", metavar="list|show|send|respond"
    )
    p.add_argument("name", nargs="?", metavar="ID", help="a question's number; for send, a task")
    p.add_argument("text", nargs="?", metavar="TEXT", help="- reads standard input")
    p.add_argument(
        "-t",
        "--type",
        choices=tuple(MESSAGE_TYPES),
        default="question",
        metavar="TYPE",
        help="for send: " + ", ".join(MESSAGE_TYPES),
    )
    p.add_argument("-k", "--kind", metavar="KINDS", help="only these kinds: " + ", ".join(KINDS))
    p.add_argument("--reviewer", metavar="WHO", help="only questions for this person or role")
    p.add_argument("--mine", action="store_true", help="only questions for you, for one of your roles, or without a reviewer")
    p.add_argument("--urgency", choices=("low", "normal", "high"))
    p.add_argument("--status", choices=("pending", "answered", "timeout", "cancelled", "all"), default="pending")
    parser.paging(p)
    parser.proof(p)
    parser.keyed(p)


def inbox(a: Namespace) -> int:
    return {"list": _list, "show": _show, "send": _send, "respond": _respond}[a.what](a)


def _list(a: Namespace) -> int:
    from .. import display

    with connect(a) as desk:
        filters = {"reviewer": a.reviewer, "urgency": a.urgency}
        questions = desk.inbox(
            kind=a.kind, project=a.project, task=a.name, status=a.status, after=a.after, limit=a.limit, mine=a.mine,
            **{name: value for name, value in filters.items() if value is not None},
        )  # fmt: skip
        pending, complete = a.status == "pending", len(questions) < a.limit
        total = _count(desk, a, filters) if pending and not complete and not a.json and a.name is None else None

    def lines() -> list[str]:
        shown = display.inbox(questions) if pending else [line for q in questions for line in display.question(q)]
        if complete or len(questions) == total:
            return shown
        return [*shown, display.more(len(questions), total, f"--after {questions[-1]['id']}")]

    return out(a, questions, lines)


def _count(desk: Any, a: Namespace, filters: dict[str, Any]) -> int:
    """The number of open questions that the filters match."""
    wanted = {name: value for name, value in filters.items() if value is not None}
    kinds = [word.strip() for word in a.kind.split(",")] if a.kind else []
    rows = [q for q in desk.waiting(project=a.project) if not a.mine or is_mine(desk.who, q["reviewer"])]
    return sum(all(q[name] == value for name, value in wanted.items()) and (not kinds or q["kind"] in kinds) for q in rows)


def _number(name: str | None, what: str) -> str:
    if name is None:
        raise Usage(f"turn inbox {what}: no question given", hint="List them with: turn inbox")
    return f"Q{name}" if name.isascii() and name.isdigit() else name


def _show(a: Namespace) -> int:
    from .lists import show

    a.what = _number(a.name, "show")
    return show(a)


def _respond(a: Namespace) -> int:
    from .answers import respond

    a.what, a.value = _number(a.name, "respond"), a.text
    a.all = a.edit = a.restart = False
    a.template = None
    return respond(a)


def _send(a: Namespace) -> int:
    if a.name is None or a.text is None:
        raise Usage("turn inbox send: no task or no text given", hint='turn inbox send PROJ-1 --type question "…"')
    message = MESSAGE_TYPES[a.type]
    with connect(a) as desk:
        if message is None:
            task = desk.note(a.name, parser.read_text(a.text), key=a.idempotency_key)
            return out(a, task, [f"Noted on {task['key']}."])
        kind, reason = message
        mine = parser.held(desk, a.name, a)
        task = desk.flag(
            a.name,
            parser.read_text(a.text),
            reason,
            kind,
            claim=mine["proof"],
            worker=mine["worker"],
            key=a.idempotency_key,
            reviewer=a.reviewer,
        )
    asked = task["questions"][-1]
    return out(
        a,
        asked,
        lambda: [
            f"Sent {asked['id']} about {task['key']}: it is a person's turn now.",
            f"Next: turn show {asked['id']}",
        ],
    )

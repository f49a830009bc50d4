"""`turn inbox`: what waits for a person. Under inbox, a bare number is a question."""

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
        help="of a message to send: " + ", ".join(MESSAGE_TYPES),
    )
    p.add_argument("-k", "--kind", metavar="KINDS", help="only these: " + ", ".join(KINDS))
    p.add_argument("--reviewer", metavar="WHO", help="only what is for this person or role")
    p.add_argument("--mine", action="store_true", help="only what is sent to you, to a role of yours, or to nobody in particular")
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
        found = desk.inbox(
            kind=a.kind, project=a.project, task=a.name, status=a.status, after=a.after, limit=a.limit, mine=a.mine,
            **{name: value for name, value in filters.items() if value is not None},
        )  # fmt: skip
        pending, whole = a.status == "pending", len(found) < a.limit
        total = _counted(desk, a, filters) if pending and not whole and not a.json and a.name is None else None

    def lines() -> list[str]:
        shown = display.inbox(found) if pending else [line for q in found for line in display.question(q)]
        last = [] if whole or len(found) == total else [display.more(len(found), total, f"--after {found[-1]['id']}")]
        return [*shown, *last]

    return out(a, found, lines)


def _counted(desk: Any, a: Namespace, filters: dict[str, Any]) -> int:
    """How many wait, of those that are asked for."""
    wanted = {name: value for name, value in filters.items() if value is not None}
    kinds = [word.strip() for word in a.kind.split(",")] if a.kind else []
    rows = [q for q in desk.waiting(project=a.project) if not a.mine or is_mine(desk.who, q["reviewer"])]
    return sum(all(q[name] == value for name, value in wanted.items()) and (not kinds or q["kind"] in kinds) for q in rows)


def _number(name: str | None, what: str) -> str:
    if name is None:
        raise Usage(f"turn inbox {what}: which one?", hint="See them with: turn inbox")
    return f"Q{name}" if name.isascii() and name.isdigit() else name


def _show(a: Namespace) -> int:
    from .lists import show

    a.what = _number(a.name, "show")
    return show(a)


def _respond(a: Namespace) -> int:
    from .questions import respond

    a.what, a.value = _number(a.name, "respond"), a.text
    a.all = a.edit = a.restart = False
    a.template = None
    return respond(a)


def _send(a: Namespace) -> int:
    if a.name is None or a.text is None:
        raise Usage("turn inbox send: about which task, and what?", hint='turn inbox send PROJ-1 --type question "…"')
    sort = MESSAGE_TYPES[a.type]
    with connect(a) as desk:
        if sort is None:
            task = desk.note(a.name, parser.given(a.text), key=a.idempotency_key)
            return out(a, task, [f"Noted on {task['key']}."])
        mine = parser.held(desk, a.name, a)
        task = desk.flag(
            a.name,
            parser.given(a.text),
            sort[1],
            sort[0],
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

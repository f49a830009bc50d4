"""Tasks on the command line."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from ..core.errors import IllegalMove, KeyReused, NotAllowed, Usage
from ..core.task_fields import TASK_FIELDS
from . import parser
from .parser import connect
from .parser import show as out


def text_fields(args: Namespace, *names: str) -> dict[str, Any]:
    """The options that were given."""
    from ..core.canonical_json import clean

    fields = {}
    for name in names:
        value = getattr(args, name)
        if value is not None:
            fields[name] = clean(str(parser.read_text(value)), name) if isinstance(value, str) else value
    return fields


def _fields(p: Any) -> None:
    for name, field in TASK_FIELDS.items():
        if field.option is not None:
            flags, metavar, help, choices = field.option
            p.add_argument(*flags, dest=name, metavar=metavar, help=help, choices=choices)
    parser.keyed(p)


#: Fields with an option of their own in both commands.
_FIELDS = tuple(name for name, field in TASK_FIELDS.items() if field.option is not None)
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
    """The question that goes with --awaiting. Raises Usage if there is a text or a reviewer without it."""
    fields = text_fields(a, "question", "reviewer")
    if fields and a.awaiting in (None, *_NOBODY):
        raise Usage(f"turn {command}: --{next(iter(fields))} goes with --awaiting KIND", hint=f"See: turn {command} --help")
    return fields


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
        fields = {**text_fields(a, *_FIELDS, "external_id"), **_asked(a, "create")}
        if a.awaiting not in _NOBODY:
            fields["awaiting"] = a.awaiting
        task = desk.create(
            parser.read_text(a.title),
            parent=a.parent,
            depends_on=needs,
            labels=a.label,
            draft=a.draft or None,
            key=a.idempotency_key,
            **fields,
        )
        unasked = [f"{task['key']} waits for no person."] if a.awaiting in _NOBODY else []
        return out(a, task, lambda: [*result_lines(a, desk, task, "Created"), *unasked])


def result_lines(a: Namespace, desk: Any, task: dict[str, Any], word: str) -> list[str]:
    from ..display import WORDS, followed, next_steps
    from ..display.terminal import one_line

    first = f"{word} {task['key']}: {one_line(task['title'])} ({WORDS[task['state']]})"
    theirs = bool(task["awaiting"]) and not desk.who.is_person
    steps = ["It is a person's turn now."] if theirs else next_steps(task)
    return [first, *followed(task), *parser.unattended(a, desk, task), *steps]


def update_args(p: Any) -> None:
    p.add_argument("task", metavar="KEY")
    p.add_argument("--title", metavar="TEXT")
    p.add_argument("-l", "--label", action="append", metavar="WORD", help="the labels it shall have (again for more)")
    p.add_argument("--session-id", metavar="ID")
    _awaiting(p, "make it a person's turn, in place of what it waits for; null hands it back to agents")
    p.add_argument("--verdict", choices=("approved", "rejected"), metavar="VERDICT", help="answer its open question")
    p.add_argument("-y", "--yes", action="store_true", help="do not ask before a task is cancelled")
    parser.proof(p)
    _fields(p)


def update(a: Namespace) -> int:
    fields = text_fields(a, *_FIELDS, "title", "session_id")
    if a.label is not None:
        fields["labels"] = [word for word in a.label if word]
    if not fields and a.awaiting is None and a.verdict is None:
        raise Usage("turn update: nothing to change was given", hint="See: turn update --help")
    asked = _asked(a, "update")
    if a.verdict is not None and (fields or a.awaiting is not None):
        hint = "Make the other changes in a second update."
        raise Usage("turn update: --verdict answers a question and changes nothing else", hint=hint)
    from .answers import warn

    with connect(a) as desk:
        lines: list[str] = []
        if a.verdict is not None:
            if a.verdict == "rejected":
                warn(desk, a, a.task, verdict=a.verdict)
            task = (desk.approve if a.verdict == "approved" else desk.reject)(a.task, key=a.idempotency_key)
        elif a.awaiting in _NOBODY:
            task, lines = _handed_back(desk, a, fields)
        else:
            mine = parser.held(desk, a.task, a)
            proof = {"claim": mine["proof"], "worker": mine["worker"], "key": a.idempotency_key}
            if a.awaiting is None:
                task = desk.update(a.task, **proof, **fields)
            else:
                text, reviewer = asked.get("question"), asked.get("reviewer")
                task = desk.await_person(a.task, a.awaiting, text, reviewer=reviewer, fields=fields or None, **proof)
        return out(a, task, lambda: lines or result_lines(a, desk, task, "Updated"))


def _handed_back(desk: Any, a: Namespace, fields: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The task, and the message if it does not wait for a person."""
    try:
        return desk.hand_back(a.task, fields=fields or None, key=a.idempotency_key), []
    except (IllegalMove, KeyReused):  # a repetition: the key belongs to the update below
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
    parser.keyed(p)


def note(a: Namespace) -> int:
    with connect(a) as desk:
        who = desk.who
        if a.sort == "human" and not who.is_person:
            raise NotAllowed(f"{who.name} cannot write as a person", reason="the credential decides who wrote it")
        if a.sort == "agent" and who.is_person:
            desk = desk.as_(who.as_agent())
        task = desk.note(a.task, parser.read_text(a.text), key=a.idempotency_key)
    return out(a, task, [f"Noted on {task['key']}.", f"Next: turn show {task['key']}"])


def dep_args(p: Any) -> None:
    p.add_argument("what", choices=("add", "remove", "rm", "list"))
    p.add_argument("task", metavar="A")
    p.add_argument("needs", nargs="*", metavar="B", help="A waits for B")
    parser.keyed(p)


def dep(a: Namespace) -> int:
    with connect(a) as desk:
        if a.what == "list":
            task = desk.show(a.task)
        elif not a.needs:
            raise Usage(f"turn dep {a.what}: for which task should {a.task} wait?", hint=f"turn dep {a.what} {a.task} KEY")
        else:
            task = (desk.depend if a.what == "add" else desk.undepend)(a.task, *a.needs, key=a.idempotency_key)
    waits = ", ".join(f"{key}{'' if key in task['blocked_by'] else ' (resolved)'}" for key in task["depends_on"])
    lines = [f"{task['key']} waits for {waits or 'nothing'}."]
    for q in task["questions"] if a.what == "add" else ():
        if q["status"] == "pending" and q["reason"] == "dependency_failed":
            lines.append(f"One of them has failed, so {task['key']} is a person's turn now: {q['id']}.")
            lines.append(f"Next: turn show {q['id']}")
    return out(a, task, lines)


cancel_args = parser.task_and_reason


def cancel(a: Namespace) -> int:
    with connect(a) as desk:
        task = desk.cancel(a.task, reason=parser.reason(a), key=a.idempotency_key)
        left = [] if a.json else parser.open_children(desk, task)
        lines = result_lines(a, desk, task, "Cancelled")
    if left:
        lines[-1:] = [*parser.left_open(left), f"Next: turn tree {task['key']} | turn cancel {left[0]['key']}"]
    return out(a, task, lines)

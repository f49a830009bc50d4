"""`turn respond`, `answer`, `approve`, `reject`, `withdraw`, `assign` and `hand-back`: a person settles a question."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

from ..core.errors import Invalid, NotFound, Usage, YourturnError
from . import parser
from .parser import connect, held
from .parser import show as out
from .questions import json_option


def _answer_args(p: Any) -> None:
    p.add_argument("what", nargs="?", metavar="KEY", help="a question (Q17), or a task with one open question")
    p.add_argument("value", nargs="?", metavar="ANSWER", help="- reads standard input")
    _restart_arg(p)
    parser.keyed(p)


def _restart_arg(p: Any) -> None:
    late = "if it is too late: store the answer as a note, and reopen the task if it has ended"
    p.add_argument("--restart", action="store_true", help=late)


def respond_args(p: Any) -> None:
    _answer_args(p)
    p.add_argument("-e", "--edit", action="store_true", help="write the answer in $EDITOR")
    p.add_argument("--all", action="store_true", help="answer all open questions, one after the other")
    p.add_argument("--template", metavar="NAME", help="use an answer from [responses] in .yourturn/config.toml")
    p.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation if the answer cancels a task")


def respond(a: Namespace) -> int:
    if a.template is not None:
        if a.value is not None or (a.all and a.what is not None):
            raise Usage("turn respond: give either an answer or a --template")
        a.value = _template(a.template)
    if a.all:
        from .respond_all import respond_to_all

        return respond_to_all(a)
    if a.what is None:
        raise Usage("turn respond: no question given", hint="List them with: turn inbox")
    with connect(a) as desk:
        value = parser.read_text(a.value)
        if a.edit or (value is None and sys.stdin.isatty()):
            from .editor import compose

            value = compose(desk, a.what)
        if value is None:
            raise Usage("turn respond: no answer given", hint=f'turn respond {a.what} "…", - for standard input, or --edit')
        if sys.stdout.isatty() and not a.json:
            _print_question(desk, a.what)
        warn(desk, a, a.what, value=value)
        q = desk.answer(a.what, value, restart=a.restart, key=a.idempotency_key)
        return _show_answer(a, desk, q)


def _print_question(desk: Any, what: str) -> None:
    from .. import display

    questions = _open_questions(desk.show(what))
    if len(questions) == 1:
        print("\n".join([*display.question(questions[0], ""), ""]), flush=True)


def _open_questions(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The row itself if it is a question, else the task's open questions."""
    return [row] if "status" in row else [q for q in row["questions"] if q["status"] == "pending"]


def _template(name: str) -> str:
    from ..config import file

    templates = file().get("responses", {})
    if not isinstance(templates, dict) or not isinstance(templates.get(name), str):
        names = ", ".join(sorted(templates)) if isinstance(templates, dict) else ""
        hint = f"Templates: {names}." if names else 'Add one to .yourturn/config.toml: [responses] lgtm = "Looks good."'
        raise NotFound(f"There is no template {name[:40]!a}", hint=hint)
    return str(templates[name])


def answer_args(p: Any) -> None:
    _answer_args(p)
    p.add_argument("--text", metavar="TEXT", help="a text in addition to the value")
    p.add_argument("--verdict", choices=("approved", "rejected"), help="yes or no (default: as the value says)")
    p.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation if the answer cancels a task")


def answer(a: Namespace) -> int:
    if a.what is None:
        raise Usage("turn answer: no question given", hint="List them with: turn inbox")
    with connect(a) as desk:
        text = parser.read_text(a.text)
        value = parser.read_text(a.value)
        if value is None and text is not None and not text.strip():
            raise Invalid("text must not be empty")
        warn(desk, a, a.what, value=value, text=text or "", verdict=a.verdict)
        q = desk.answer(a.what, value, text or "", a.verdict, restart=a.restart, key=a.idempotency_key)
        return _show_answer(a, desk, q)


def _show_answer(a: Namespace, desk: Any, q: dict[str, Any]) -> int:
    if a.json:
        return out(a, q, [])
    from .. import display

    task = desk.show(q["task"])
    late = a.restart and task["notes"] and task["notes"][-1]["text"].startswith(f"Late answer to {q['id']} ")
    first = f"too late for {q['id']}, stored as a note on {q['task']}" if late else f"{q['id']}: {display.result(q)}"
    left = parser.left_open(parser.open_children(desk, task))
    more = (state_line(task), *left, *display.followed(q), *parser.unattended(a, desk, task))
    return out(a, q, [f"✓ {first}", *(f"  {line}" for line in more)])


def _verdict_args(p: Any) -> None:
    p.add_argument("what", metavar="KEY", help="a question (Q17) or a task")
    p.add_argument("words", nargs="?", metavar="WORDS", help="your reason or feedback; - reads standard input")
    p.add_argument("--reason", "--feedback", metavar="TEXT", help="the same")
    p.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation if the answer cancels a task")
    _restart_arg(p)
    parser.keyed(p)


reject_args = _verdict_args


def approve_args(p: Any) -> None:
    _verdict_args(p)
    p.add_argument("--value", metavar="VALUE", help="the answer, if the question asks for a choice or a number")
    edited = "approve a permission with this input instead: JSON, a file, or - for standard input"
    p.add_argument("--edit-input", metavar="JSON", help=edited)


def approve(a: Namespace) -> int:
    with connect(a) as desk:
        value = a.value if a.edit_input is None else _edited_action(desk, a.what, a.edit_input)
        task = desk.approve(a.what, _reason(a), value, restart=a.restart, key=a.idempotency_key)
        return out(a, task, lambda: _verdict_lines(a, desk, task, "Approved"))


def _edited_action(desk: Any, what: str, text: str) -> Any:
    """The action of a permission, with its input replaced by the JSON `text` or the file of that name."""
    from ..core.questions import EDITABLE

    questions = _open_questions(desk.show(what))
    action = questions[0]["action"] if len(questions) == 1 else None
    field = next((name for name in EDITABLE if isinstance(action, dict) and name in action), None)
    if action is None or field is None:
        raise Invalid(f"{what} has no input to edit", hint="Name a permission, like Q17. See it with: turn show Q17")
    return {**action, field: json_option(_json_text(text), "--edit-input")}


def _json_text(text: str) -> str:
    if text == "-" or text.lstrip()[:1] in ("{", "["):
        return text
    from pathlib import Path

    try:
        return Path(text).read_text(encoding="utf-8")
    except (OSError, ValueError):
        raise Invalid(f"{text[:80]!a} is neither JSON nor a readable file") from None


def reject(a: Namespace) -> int:
    with connect(a) as desk:
        warn(desk, a, a.what, text=_reason(a), verdict="rejected")
        task = desk.reject(a.what, _reason(a), restart=a.restart, key=a.idempotency_key)
        return out(a, task, lambda: _verdict_lines(a, desk, task, "Rejected"))


def _verdict_lines(a: Namespace, desk: Any, task: dict[str, Any], word: str) -> list[str]:
    from ..display import followed

    late = any(note["text"].startswith("Late answer to ") for note in task["notes"])
    first = f"Too late, stored as a note on {task['key']}" if late else word
    left = parser.left_open(parser.open_children(desk, task))
    more = (*left, *followed(task), *parser.unattended(a, desk, task))
    return [f"✓ {first}. {state_line(task)}", *(f"  {line}" for line in more)]


def _reason(a: Namespace) -> str:
    return parser.read_text(a.reason) or parser.read_text(a.words) or ""


def warn(desk: Any, a: Namespace, what: str, **answer: Any) -> None:
    """Asks a person at a terminal for confirmation if the answer would cancel the task."""
    if getattr(a, "yes", False) or a.json or not sys.stdin.isatty() or not sys.stderr.isatty():
        return
    try:
        state = desk.lands(what, **answer)
    except YourturnError:
        return  # the answer itself will fail with this error
    if state != "cancelled":
        return
    row = desk.show(what)
    key = row.get("key") or row["task"]
    print(f"This answer cancels {key}. Type {key} to confirm: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().upper() != key:
        raise Invalid("Nothing was changed", hint=f"The question is still open. See what each answer does: turn show {what}")


def state_line(task: dict[str, Any]) -> str:
    """The task's state after an answer, and what happens next: "PROJ-1 is 'ready': a worker picks it up." """
    from ..core.hints import only_asks
    from ..display.terminal import safe

    if task["claim"] and not task["awaiting"]:
        return f"{task['key']} is '{task['state']}': {safe(task['claim']['worker'])} continues."
    asks = only_asks(task["created_by"], ((q["kind"], q["asked_by"]) for q in task["questions"]))
    ready = f"a worker picks it up, or turn resume {task['key']} does" if task["workflow"] else "a worker picks it up"
    still = ", ".join(q["id"] for q in task["questions"] if q["status"] == "pending" and q["blocking"])
    words = {
        "ready": ready, "human": f"{still} {'is' if ',' not in still else 'are'} still open", "done": "it is finished",
        "cancelled": "it is abandoned", "blocked": f"it waits for {', '.join(task['blocked_by'])}",
        "review": "a person has to accept it",
        "created": "it existed only for the question" if asks else "a person has to vet it",
    }  # fmt: skip
    return f"{task['key']} is '{task['state']}': {words.get(task['state'], 'nothing else happens')}."


def withdraw_args(p: Any) -> None:
    p.add_argument("what", metavar="KEY", help="a question (Q17), or a task with one open question")
    p.add_argument("--reason", metavar="TEXT")
    parser.proof(p)
    parser.keyed(p)


def withdraw(a: Namespace) -> int:
    with connect(a) as desk:
        mine = held(desk, a.what, a)
        proof = {"claim": mine["proof"], "worker": mine["worker"], "key": a.idempotency_key}
        q = desk.withdraw(a.what, parser.read_text(a.reason) or "", **proof)
        task = desk.show(q["task"])
        return out(a, q, lambda: [f"Withdrew {q['id']}. {state_line(task)}", *parser.unattended(a, desk, task)])


def assign_args(p: Any) -> None:
    p.add_argument("what", metavar="KEY")
    p.add_argument("reviewer", metavar="WHO", help="a person or a role")
    parser.keyed(p)


def assign(a: Namespace) -> int:
    with connect(a) as desk:
        q = desk.assign(a.what, a.reviewer, key=a.idempotency_key)
    return out(a, q, lambda: [f"{q['id']} is assigned to {a.reviewer}."])


def hand_back_args(p: Any) -> None:
    p.add_argument("task", metavar="KEY")
    parser.keyed(p)


def hand_back(a: Namespace) -> int:
    with connect(a) as desk:
        task = desk.hand_back(a.task, key=a.idempotency_key)
        return out(a, task, lambda: [f"Handed back. {state_line(task)}", *parser.unattended(a, desk, task)])

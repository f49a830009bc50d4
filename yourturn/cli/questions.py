"""Questions and answers on the command line."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

from ..core.errors import Invalid, NotFound, StillWaiting, Usage
from ..core.questions import RESPONSE_TYPES
from ..core.rules import KINDS, REASONS, SILENCE, outcome
from . import parse
from .parse import connect, held
from .parse import show as out


def overview(a: Namespace) -> int:
    """Whose turn is it?"""
    from .. import screen, view

    with connect(a) as desk:
        everything = desk.waiting(project=a.project)
        groups = view.inbox_groups(everything)
        order = [q["id"] for items in groups.values() for q in items]
        waiting = desk.inbox(project=a.project, limit=200) if a.json else desk.inbox(only=order[:10])
        counts = desk.counts(project=a.project)
        idle = not a.json and not counts.get("working") and bool(desk.ready(project=a.project, limit=1))

    def lines() -> list[str]:
        working, ready, total, soon = counts.get("working", 0), counts.get("ready", 0), len(order), len(groups["Running out"])
        tasks = f"{ready:,} {'task is' if ready == 1 else 'tasks are'} ready."
        agents = f"{working or 'No'} {'agents are' if working > 1 else 'agent is'} working, {tasks}"
        worker = ["Start a worker that lets agents take what is ready: turn work"] if idle else []
        if not order:
            return ["It's not your turn. Nothing waits for you.", agents, *worker, 'Next: turn create "…" | turn list']
        head = f"{total:,} {'waits' if total == 1 else 'wait'} for you"
        if soon:
            head += f", {soon:,} {'runs' if soon == 1 else 'run'} out within {view.SOON // 60_000_000} min"
        rows = screen.columns([row[:-1] for row in view.inbox_rows(waiting)], last=5)
        more = [f"  {len(waiting)} of {total:,} shown; more: turn inbox"] if len(waiting) < total else []
        return [screen.bold(head), "", *rows, *more, *worker, f"{agents} Next: turn show {order[0]}"]

    return out(a, {"waiting": waiting, "states": counts, "count": len(everything)}, lines)


def ask_args(p: Any) -> None:
    p.add_argument("task", metavar="KEY")
    p.add_argument("text", help="the question; - reads standard input")
    p.add_argument("-k", "--kind", choices=tuple(KINDS), default="input", metavar="KIND", help=", ".join(KINDS))
    p.add_argument(
        "-o",
        "--option",
        action="append",
        default=[],
        metavar="WORD",
        help="a choice: jwt, or 'jwt=signed token' (again for more)",
    )
    p.add_argument("--response-type", choices=RESPONSE_TYPES, metavar="TYPE", help=", ".join(RESPONSE_TYPES))
    p.add_argument("--multi", action="store_true", help="several options may be chosen")
    p.add_argument("--allow-other", action="store_true", help="or something else")
    p.add_argument("--default", metavar="VALUE", help="what silence means (input and recovery only)")
    p.add_argument("--timeout", metavar="TIME", help="how long to wait for a person: 30m, 24h")
    p.add_argument("--on-timeout", choices=tuple(SILENCE), metavar="WHAT", help=", ".join(SILENCE))
    p.add_argument("--non-blocking", action="store_true", help="the agent goes on with the default")
    p.add_argument(
        "--wait",
        type=parse.seconds,
        metavar="SECONDS",
        help="look so long for an answer (exit 7 while a blocking one is open)",
    )
    p.add_argument("--context", metavar="TEXT", help="what the person needs to know; text or a JSON object")
    p.add_argument("--reason", choices=REASONS, metavar="CODE", help=", ".join(REASONS))
    p.add_argument("--urgency", choices=("low", "normal", "high"))
    p.add_argument("--reviewer", metavar="WHO", help="a person or a role")
    p.add_argument("--group", metavar="NAME", help="questions asked together")
    p.add_argument("--confidence", metavar="0-1", help="how sure the agent is")
    p.add_argument("--action", metavar="JSON", help="the exact action, for a permission")
    p.add_argument("--metadata", metavar="JSON", help="given back with the answer")
    parse.proof(p)
    parse.keyed(p)


def ask(a: Namespace) -> int:
    from .. import screen, view

    with connect(a) as desk:
        fields = {
            "response_type": a.response_type, "multi": a.multi or None, "allow_other": a.allow_other or None,
            "default": a.default, "timeout": a.timeout, "on_timeout": a.on_timeout, "blocking": False if a.non_blocking else None,
            "context": _context(parse.given(a.context)), "reason": a.reason, "urgency": a.urgency, "reviewer": a.reviewer,
            "group": a.group, "confidence": a.confidence, "action": _json(a.action, "--action"),
            "metadata": _json(a.metadata, "--metadata"),
        }  # fmt: skip
        mine = held(desk, a.task, a)
        q = desk.ask(
            a.task, parse.given(a.text), a.kind, [_option(word) for word in a.option], a.wait,
            claim=mine["proof"], worker=mine["worker"], key=a.idempotency_key, step=parse.step(mine), **fields,
        )  # fmt: skip
    waits = bool(a.wait) and q["status"] == "pending" and q["blocking"]

    def lines() -> list[str]:
        if q["status"] != "pending":
            return [f"{q['id']}: {view.result(q)}"]
        if not q["blocking"]:
            return [f"Asked {q['id']}. Go on with {view.quoted(q['default'])}; a later answer will reach you."]
        return [
            f"Asked {q['id']} about {q['task']}: {', '.join(filter(None, (screen.left(q['timeout_at']), view.silence(q))))}.",
            f"Next: turn show {q['id']}",
        ]

    out(a, q, lines)
    return StillWaiting.exit_code if waits else 0


def _option(word: str) -> Any:
    value, equals, label = word.partition("=")
    return {"id": value, "label": value, "value": value, "description": label} if equals and value else word


def _json(text: str | None, what: str) -> Any:
    from ..core.canon import loads

    return None if text is None else loads(parse.given(text) or "", what)


def _context(text: str | None) -> Any:
    if text is not None and text.lstrip().startswith("{"):
        return _json(text, "--context")
    return text or None


def flag_args(p: Any) -> None:
    p.add_argument("task", metavar="KEY")
    p.add_argument("text", help="what is the matter; - reads standard input")
    p.add_argument("--reason", choices=REASONS, default="decision_needed", metavar="CODE", help=", ".join(REASONS))
    p.add_argument("-k", "--kind", choices=tuple(KINDS), default="escalation", metavar="KIND")
    p.add_argument("--context", metavar="TEXT")
    p.add_argument("--reviewer", metavar="WHO")
    p.add_argument("--urgency", choices=("low", "normal", "high"))
    parse.proof(p)
    parse.keyed(p)


def flag(a: Namespace) -> int:
    with connect(a) as desk:
        mine = held(desk, a.task, a)
        task = desk.flag(
            a.task, parse.given(a.text), a.reason, a.kind, claim=mine["proof"], worker=mine["worker"], key=a.idempotency_key,
            context=_context(parse.given(a.context)), reviewer=a.reviewer, urgency=a.urgency,
            **({"step": step, "hold": True} if (step := parse.step(mine)) else {}),
        )  # fmt: skip
    asked = task["questions"][-1]["id"]
    return out(a, task, lambda: [f"{task['key']} is a person's turn now: {asked}.", f"Next: turn show {asked}"])


def _answer_args(p: Any) -> None:
    p.add_argument("what", nargs="?", metavar="KEY", help="a question (Q17), or the task whose one question is meant")
    p.add_argument("value", nargs="?", metavar="ANSWER", help="- reads standard input")
    p.add_argument("--restart", action="store_true", help="too late? keep it as a note, and start the task again if it has ended")
    parse.keyed(p)


def respond_args(p: Any) -> None:
    _answer_args(p)
    p.add_argument("-e", "--edit", action="store_true", help="write the answer in $EDITOR")
    p.add_argument("--all", action="store_true", help="go through all open questions")
    p.add_argument("--template", metavar="NAME", help="an answer from [responses] in .yourturn/config.toml")


def respond(a: Namespace) -> int:
    if a.template is not None:
        if a.value is not None or (a.all and a.what is not None):
            raise Usage("turn respond: give an answer or a --template, not both")
        a.value = _template(a.template)
    if a.all:
        from .batch import respond_to_all

        return respond_to_all(a)
    if a.what is None:
        raise Usage("turn respond: which question?", hint="See them with: turn inbox")
    with connect(a) as desk:
        value = parse.given(a.value)
        if a.edit or (value is None and sys.stdin.isatty()):
            from .editor import compose

            value = compose(desk, a.what)
        if value is None:
            raise Usage("turn respond: what is the answer?", hint=f'turn respond {a.what} "…", - for standard input, or --edit')
        q = desk.answer(a.what, value, restart=a.restart, key=a.idempotency_key)
        return _answered(a, desk, q)


def _template(name: str) -> str:
    from ..config import file

    known = file().get("responses", {})
    if not isinstance(known, dict) or not isinstance(known.get(name), str):
        names = ", ".join(sorted(known)) if isinstance(known, dict) else ""
        hint = f"There is: {names}." if names else 'Write one into .yourturn/config.toml: [responses] lgtm = "Looks good."'
        raise NotFound(f"There is no answer named {name[:40]!a}", hint=hint)
    return str(known[name])


def answer_args(p: Any) -> None:
    _answer_args(p)
    p.add_argument("--text", metavar="TEXT", help="words beside the value")
    p.add_argument("--verdict", choices=("approved", "rejected"), default="approved")
    p.add_argument("-y", "--yes", action="store_true", help="do not ask before a task is cancelled")


def answer(a: Namespace) -> int:
    if a.what is None:
        raise Usage("turn answer: which question?", hint="See them with: turn inbox")
    with connect(a) as desk:
        text = parse.given(a.text)
        value = parse.given(a.value)
        if value is None and text is not None and not text.strip():
            raise Invalid("text must not be empty")
        if a.verdict == "rejected":
            warn(desk, a, a.what)
        q = desk.answer(a.what, value, text or "", a.verdict, restart=a.restart, key=a.idempotency_key)
        return _answered(a, desk, q)


def _answered(a: Namespace, desk: Any, q: dict[str, Any]) -> int:
    if a.json:
        return out(a, q, [])
    from .. import view

    task = desk.show(q["task"])
    late = a.restart and (q["status"] != "answered" or q["responded_by"] != desk.who.name)
    said = f"too late for {q['id']}, kept as a note on {q['task']}" if late else f"{q['id']}: {view.result(q)}"
    return out(a, q, lambda: [f"✓ {said}", f"  {after(task)}"])


def after(task: dict[str, Any]) -> str:
    """Where the task went."""
    from .. import screen

    if task["claim"]:
        return f"{task['key']} is 'working': {screen.safe(task['claim']['worker'])} goes on."
    picked = f"a worker picks it up, or turn resume {task['key']} does" if task["workflow"] else "a worker picks it up"
    words = {
        "ready": picked, "human": "other questions are still open", "done": "it is finished",
        "cancelled": "it is abandoned", "blocked": f"it waits for {', '.join(task['blocked_by'])}",
        "review": "it is to be accepted", "created": "it is to be vetted",
    }  # fmt: skip
    return f"{task['key']} is '{task['state']}': {words.get(task['state'], 'nothing else happens')}."


def _verdict_args(p: Any) -> None:
    p.add_argument("what", metavar="KEY", help="a question (Q17) or a task")
    p.add_argument("words", nargs="?", metavar="WORDS", help="what you want to say; - reads standard input")
    p.add_argument("--reason", "--feedback", metavar="TEXT", help="the same")
    p.add_argument("--value", metavar="VALUE", help="a choice or a number, where one is asked for")
    p.add_argument("-y", "--yes", action="store_true", help="do not ask before a task is cancelled")
    parse.keyed(p)


reject_args = _verdict_args


def approve_args(p: Any) -> None:
    _verdict_args(p)
    p.add_argument("--edit-input", metavar="JSON", help="allow it with this input instead: JSON, a file, or - for standard input")


def approve(a: Namespace) -> int:
    with connect(a) as desk:
        value = a.value if a.edit_input is None else _edited(desk, a.what, a.edit_input)
        task = desk.approve(a.what, _words(a), value, key=a.idempotency_key)
    return out(a, task, lambda: [f"✓ Approved. {after(task)}"])


def _edited(desk: Any, what: str, given: str) -> Any:
    """The action of a permission with another input."""
    from ..core.questions import EDITABLE

    found = desk.show(what)
    asked = [found] if "status" in found else [q for q in found["questions"] if q["status"] == "pending"]
    action = asked[0]["action"] if len(asked) == 1 else None
    field = next((name for name in EDITABLE if isinstance(action, dict) and name in action), None)
    if action is None or field is None:
        raise Invalid(f"{what} has no input that could be edited", hint="Name a permission, like Q17. See it with: turn show Q17")
    return {**action, field: _json(_content(given), "--edit-input")}


def _content(given: str) -> str:
    """JSON itself, or a file that holds it."""
    if given == "-" or given.lstrip()[:1] in ("{", "["):
        return given
    from pathlib import Path

    try:
        return Path(given).read_text(encoding="utf-8")
    except (OSError, ValueError):
        raise Invalid(f"{given[:80]!a} is neither JSON nor a file that can be read") from None


def use_args(p: Any) -> None:
    p.add_argument("what", metavar="Q17", help="a permission that was given")
    p.add_argument("--by", required=True, metavar="NAME", help="the one call that uses it; it may say so again")
    p.add_argument("--action", required=True, metavar="JSON", help="exactly what will be done; - reads standard input")
    parse.proof(p)


def use(a: Namespace) -> int:
    with connect(a) as desk:
        mine = held(desk, a.what, a)
        q = desk.use(a.what, a.by, _json(a.action, "--action"), claim=mine["proof"], worker=mine["worker"])
    return out(a, q, lambda: [f"{q['id']} is used by {q['used_by']}. Do it now."])


def reject(a: Namespace) -> int:
    with connect(a) as desk:
        warn(desk, a, a.what)
        task = desk.reject(a.what, _words(a), key=a.idempotency_key)
    return out(a, task, lambda: [f"✓ Rejected. {after(task)}"])


def _words(a: Namespace) -> str:
    return parse.given(a.reason) or parse.given(a.words) or ""


def warn(desk: Any, a: Namespace, what: str) -> None:
    """Say before it happens that a no ends the task, where somebody is there to read it."""
    if a.yes or a.json or not sys.stdin.isatty() or not sys.stderr.isatty():
        return
    found = desk.show(what)
    task = desk.show(found["task"]) if "status" in found else found
    open_ones = [found] if "status" in found else [q for q in task["questions"] if q["status"] == "pending"]
    if len(open_ones) != 1:
        return
    q = open_ones[0]
    if outcome(q["kind"], "rejected", q["blocking"], bool(task["workflow"])) == "cancelled":
        print(
            f"No to {q['id']} cancels {task['key']}. Type {task['key']} to go on: ",
            end="",
            file=sys.stderr,
            flush=True,
        )
        if sys.stdin.readline().strip().upper() != task["key"]:
            raise Invalid("Nothing was changed", hint=f'To answer instead: turn respond {what} "…"')


def withdraw_args(p: Any) -> None:
    p.add_argument("what", metavar="KEY", help="a question (Q17), or the task whose one question is meant")
    p.add_argument("--reason", metavar="TEXT")


def withdraw(a: Namespace) -> int:
    with connect(a) as desk:
        q = desk.withdraw(a.what, parse.given(a.reason) or "")
        task = desk.show(q["task"])
    return out(a, q, lambda: [f"Withdrew {q['id']}. {after(task)}"])


def assign_args(p: Any) -> None:
    p.add_argument("what", metavar="KEY")
    p.add_argument("reviewer", metavar="WHO", help="a person or a role")


def assign(a: Namespace) -> int:
    with connect(a) as desk:
        q = desk.assign(a.what, a.reviewer)
    return out(a, q, lambda: [f"{q['id']} is for {a.reviewer} now."])


def hand_back_args(p: Any) -> None:
    p.add_argument("task", metavar="KEY")


def hand_back(a: Namespace) -> int:
    with connect(a) as desk:
        task = desk.hand_back(a.task)
    return out(a, task, lambda: [f"Handed back. {after(task)}"])

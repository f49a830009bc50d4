"""Questions and answers on the command line."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

from ..core.errors import Invalid, NotFound, StillWaiting, StoreTrouble, Usage, YourturnError
from ..core.questions import RESPONSE_TYPES
from ..core.rules import KINDS, ON_TIMEOUT, REASONS, SYSTEM_REASONS
from . import parser
from .parser import connect, held
from .parser import show as out

#: Reasons that an asker can give.
_GIVEN = tuple(reason for reason in REASONS if reason not in SYSTEM_REASONS)


def overview(a: Namespace) -> int:
    """Whose turn is it?"""
    from .. import display
    from ..core.permissions import is_mine
    from ..display import terminal

    with connect(a) as desk:
        everyone = list(desk.waiting(project=a.project))
        others = [q for q in everyone if not is_mine(desk.who, q["reviewer"])]
        groups = display.inbox_groups(q for q in everyone if is_mine(desk.who, q["reviewer"]))
        order = [q["id"] for items in groups.values() for q in items]
        waiting = desk.inbox(project=a.project, mine=True, limit=200) if a.json else desk.inbox(only=order[:10])
        counts = desk.counts(project=a.project, workable=not a.json)
        waits = desk.waits(a.project, within=f"{display.SOON // 1_000_000}s")
        untaken = desk.unattended(a.project) if a.json else None
        worker = parser.unattended(a, desk)

    def lines() -> list[str]:
        working, ready, total, soon = counts.get("working", 0), counts.get("ready", 0), waits["mine"], waits["soon"]
        tasks = f"{ready:,} {'task is' if ready == 1 else 'tasks are'} ready."
        agents = f"{working or 'No'} {'agents are' if working > 1 else 'agent is'} working, {tasks}"
        names = sorted({terminal.safe(q["reviewer"] or "a person") for q in others})
        who = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if names[3:] else "")
        elsewhere = [f"{len(others):,} {'waits' if len(others) == 1 else 'wait'} for {who}: turn inbox"] if others else []
        if not order:
            idle_hint = 'Next: turn create "…" | turn list'
            return ["It's not your turn. Nothing waits for you.", *elsewhere, agents, *worker, idle_hint]
        head = f"{total:,} {'waits' if total == 1 else 'wait'} for you"
        if soon:
            head += f", {soon:,} {'runs' if soon == 1 else 'run'} out within {display.SOON // 60_000_000} min"
        rows = terminal.columns([row[:-1] for row in display.inbox_rows(waiting)], last=5)
        more = [f"  {len(waiting)} of {total:,} shown; more: turn inbox --mine"] if len(waiting) < total else []
        return [terminal.bold(head), "", *rows, *more, *elsewhere, *worker, agents, display.hint(f"turn show {order[0]}")]

    return out(a, {"waiting": waiting, "states": counts, "count": waits["mine"], "waits": waits, "unattended": untaken}, lines)


def _question_args(p: Any, text: str, kind: str, reason: str | None = None) -> None:
    from ..core.actions import URGENCIES

    p.add_argument("task", metavar="KEY")
    p.add_argument("text", help=f"{text}; - reads standard input")
    p.add_argument("-k", "--kind", choices=tuple(KINDS), default=kind, metavar="KIND", help=", ".join(KINDS))
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
    p.add_argument("--on-timeout", choices=ON_TIMEOUT, metavar="WHAT", help=", ".join(ON_TIMEOUT))
    p.add_argument("--context", metavar="TEXT", help="what the person needs to know; text or a JSON object")
    p.add_argument("--reason", choices=_GIVEN, default=reason, metavar="CODE", help=", ".join(_GIVEN))
    p.add_argument("--urgency", choices=URGENCIES)
    p.add_argument("--reviewer", metavar="WHO", help="a person or a role")
    p.add_argument("--group", metavar="NAME", help="questions asked together")
    p.add_argument("--confidence", metavar="0-1", help="how sure the agent is")
    p.add_argument("--action", metavar="JSON", help="the exact action, for a permission")
    p.add_argument("--metadata", metavar="JSON", help="given back with the answer")
    parser.proof(p)
    parser.keyed(p)


def _question_fields(a: Namespace, mine: dict[str, Any]) -> dict[str, Any]:
    return {
        "options": [_option(word) for word in a.option], "response_type": a.response_type, "multi": a.multi or None,
        "allow_other": a.allow_other or None, "default": a.default, "timeout": a.timeout, "on_timeout": a.on_timeout,
        "context": _context(parser.given(a.context)), "urgency": a.urgency, "reviewer": a.reviewer, "group": a.group,
        "confidence": a.confidence, "action": _json(a.action, "--action"), "metadata": _json(a.metadata, "--metadata"),
        "kind": a.kind, "reason": a.reason, "claim": mine["proof"], "worker": mine["worker"], "key": a.idempotency_key,
    }  # fmt: skip


def ask_args(p: Any) -> None:
    _question_args(p, "the question", "input")
    p.add_argument("--non-blocking", action="store_true", help="the agent goes on with the default")
    p.add_argument(
        "--wait",
        type=parser.seconds,
        metavar="SECONDS",
        help="look so long for an answer (exit 7 while a blocking one is open, or if the desk is gone meanwhile)",
    )


def ask(a: Namespace) -> int:
    from .. import display
    from ..client.commands import answer_unreadable
    from ..display import terminal
    from .main import report

    with connect(a) as desk:
        mine = held(desk, a.task, a)
        fields = {**_question_fields(a, mine), "blocking": False if a.non_blocking else None, "step": parser.step(mine)}
        q = desk.ask(a.task, parser.given(a.text), **fields)
        unread = None
        if a.wait:
            try:
                q = desk.wait_for(q, a.wait)
            except StoreTrouble as trouble:
                unread = answer_unreadable(q, trouble)
    waits = bool(a.wait) and q["status"] == "pending" and q["blocking"]

    def lines() -> list[str]:
        if q["status"] != "pending":
            return [f"{q['id']}: {display.result(q)}"]
        if not q["blocking"]:
            return [f"Asked {q['id']}. Go on with {display.quoted(q['default'])}; a later answer will reach you."]
        return [
            f"Asked {q['id']} about {q['task']}: "
            f"{', '.join(filter(None, (terminal.left(q['timeout_at']), display.timeout_effect(q))))}.",
            f"Next: turn show {q['id']}",
        ]

    if unread is not None:
        report(unread, a.json)
    out(a, q, lines)
    return StillWaiting.exit_code if waits else 0


def _option(word: str) -> Any:
    value, equals, label = word.partition("=")
    return {"id": value, "label": value, "value": value, "description": label} if equals and value else word


def _json(text: str | None, what: str) -> Any:
    from ..core.canonical_json import loads

    return None if text is None else loads(parser.given(text) or "", what)


def _context(text: str | None) -> Any:
    if text is not None and text.lstrip().startswith("{"):
        return _json(text, "--context")
    return text or None


def flag_args(p: Any) -> None:
    _question_args(p, "what is the matter", "escalation", "decision_needed")
    p.add_argument("--replace", action="store_true", help="in place of what the task waits for now")


def flag(a: Namespace) -> int:
    with connect(a) as desk:
        mine = held(desk, a.task, a)
        held_on = {"step": step, "hold": True} if (step := parser.step(mine)) else {}
        task = desk.flag(a.task, parser.given(a.text), replace=a.replace or None, **held_on, **_question_fields(a, mine))
    asked = task["questions"][-1]["id"]
    return out(a, task, lambda: [f"{task['key']} is a person's turn now: {asked}.", f"Next: turn show {asked}"])


def _answer_args(p: Any) -> None:
    p.add_argument("what", nargs="?", metavar="KEY", help="a question (Q17), or the task whose one question is meant")
    p.add_argument("value", nargs="?", metavar="ANSWER", help="- reads standard input")
    _restart_arg(p)
    parser.keyed(p)


def _restart_arg(p: Any) -> None:
    p.add_argument("--restart", action="store_true", help="too late? keep it as a note, and start the task again if it has ended")


def respond_args(p: Any) -> None:
    _answer_args(p)
    p.add_argument("-e", "--edit", action="store_true", help="write the answer in $EDITOR")
    p.add_argument("--all", action="store_true", help="go through all open questions")
    p.add_argument("--template", metavar="NAME", help="an answer from [responses] in .yourturn/config.toml")
    p.add_argument("-y", "--yes", action="store_true", help="do not ask before a task is cancelled")


def respond(a: Namespace) -> int:
    if a.template is not None:
        if a.value is not None or (a.all and a.what is not None):
            raise Usage("turn respond: give an answer or a --template, not both")
        a.value = _template(a.template)
    if a.all:
        from .respond_all import respond_to_all

        return respond_to_all(a)
    if a.what is None:
        raise Usage("turn respond: which question?", hint="See them with: turn inbox")
    with connect(a) as desk:
        value = parser.given(a.value)
        if a.edit or (value is None and sys.stdin.isatty()):
            from .editor import compose

            value = compose(desk, a.what)
        if value is None:
            raise Usage("turn respond: what is the answer?", hint=f'turn respond {a.what} "…", - for standard input, or --edit')
        if sys.stdout.isatty() and not a.json:
            _shown(desk, a.what)
        warn(desk, a, a.what, value=value)
        q = desk.answer(a.what, value, restart=a.restart, key=a.idempotency_key)
        return _answered(a, desk, q)


def _shown(desk: Any, what: str) -> None:
    """What is being answered: the question, before the answer is given."""
    from .. import display

    asked = _open_ones(desk.show(what))
    if len(asked) == 1:
        print("\n".join([*display.question(asked[0], ""), ""]), flush=True)


def _open_ones(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The question that was named, or the open ones of the task that was."""
    return [found] if "status" in found else [q for q in found["questions"] if q["status"] == "pending"]


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
    p.add_argument("--verdict", choices=("approved", "rejected"), help="without it, the value says yes or no")
    p.add_argument("-y", "--yes", action="store_true", help="do not ask before a task is cancelled")


def answer(a: Namespace) -> int:
    if a.what is None:
        raise Usage("turn answer: which question?", hint="See them with: turn inbox")
    with connect(a) as desk:
        text = parser.given(a.text)
        value = parser.given(a.value)
        if value is None and text is not None and not text.strip():
            raise Invalid("text must not be empty")
        warn(desk, a, a.what, value=value, text=text or "", verdict=a.verdict)
        q = desk.answer(a.what, value, text or "", a.verdict, restart=a.restart, key=a.idempotency_key)
        return _answered(a, desk, q)


def _answered(a: Namespace, desk: Any, q: dict[str, Any]) -> int:
    if a.json:
        return out(a, q, [])
    from .. import display

    task = desk.show(q["task"])
    late = a.restart and task["notes"] and task["notes"][-1]["text"].startswith(f"Late answer to {q['id']} ")
    said = f"too late for {q['id']}, kept as a note on {q['task']}" if late else f"{q['id']}: {display.result(q)}"
    left = parser.left_open(parser.open_children(desk, task))
    more = (after(task), *left, *display.followed(q), *parser.unattended(a, desk, task))
    return out(a, q, [f"✓ {said}", *(f"  {line}" for line in more)])


def after(task: dict[str, Any]) -> str:
    """Where the task went."""
    from ..core.hints import only_asks
    from ..display import terminal

    asks = only_asks(task["created_by"], ((q["kind"], q["asked_by"]) for q in task["questions"]))
    if task["claim"] and not task["awaiting"]:
        return f"{task['key']} is '{task['state']}': {terminal.safe(task['claim']['worker'])} goes on."
    picked = f"a worker picks it up, or turn resume {task['key']} does" if task["workflow"] else "a worker picks it up"
    still = ", ".join(q["id"] for q in task["questions"] if q["status"] == "pending" and q["blocking"])
    words = {
        "ready": picked, "human": f"{still} {'is' if ',' not in still else 'are'} still open", "done": "it is finished",
        "cancelled": "it is abandoned", "blocked": f"it waits for {', '.join(task['blocked_by'])}",
        "review": "it is to be accepted", "created": "it only carried the question" if asks else "it is to be vetted",
    }  # fmt: skip
    return f"{task['key']} is '{task['state']}': {words.get(task['state'], 'nothing else happens')}."


def _verdict_args(p: Any) -> None:
    p.add_argument("what", metavar="KEY", help="a question (Q17) or a task")
    p.add_argument("words", nargs="?", metavar="WORDS", help="what you want to say; - reads standard input")
    p.add_argument("--reason", "--feedback", metavar="TEXT", help="the same")
    p.add_argument("-y", "--yes", action="store_true", help="do not ask before a task is cancelled")
    _restart_arg(p)
    parser.keyed(p)


reject_args = _verdict_args


def approve_args(p: Any) -> None:
    _verdict_args(p)
    p.add_argument("--value", metavar="VALUE", help="a choice or a number, where one is asked for")
    p.add_argument("--edit-input", metavar="JSON", help="allow it with this input instead: JSON, a file, or - for standard input")


def approve(a: Namespace) -> int:
    with connect(a) as desk:
        value = a.value if a.edit_input is None else _edited(desk, a.what, a.edit_input)
        task = desk.approve(a.what, _words(a), value, restart=a.restart, key=a.idempotency_key)
        return out(a, task, lambda: _judged(a, desk, task, "Approved"))


def _kept(task: dict[str, Any]) -> str:
    """A late answer is the note that its move made."""
    late = [note["text"] for note in task["notes"] if note["text"].startswith("Late answer to ")]
    return f"Too late, so it is a note on {task['key']}" if late else ""


def _edited(desk: Any, what: str, given: str) -> Any:
    """The action of a permission with another input."""
    from ..core.questions import EDITABLE

    asked = _open_ones(desk.show(what))
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
    parser.proof(p)
    parser.keyed(p)


def use(a: Namespace) -> int:
    with connect(a) as desk:
        mine = held(desk, a.what, a)
        proof = {"claim": mine["proof"], "worker": mine["worker"], "key": a.idempotency_key}
        q = desk.use(a.what, a.by, _json(a.action, "--action"), **proof)
    return out(a, q, lambda: [f"{q['id']} is used by {q['used_by']}. Do it now."])


def reject(a: Namespace) -> int:
    with connect(a) as desk:
        warn(desk, a, a.what, text=_words(a), verdict="rejected")
        task = desk.reject(a.what, _words(a), restart=a.restart, key=a.idempotency_key)
        return out(a, task, lambda: _judged(a, desk, task, "Rejected"))


def _judged(a: Namespace, desk: Any, task: dict[str, Any], word: str) -> list[str]:
    from ..display import followed

    left = parser.left_open(parser.open_children(desk, task))
    more = (*left, *followed(task), *parser.unattended(a, desk, task))
    return [f"✓ {_kept(task) or word}. {after(task)}", *(f"  {line}" for line in more)]


def _words(a: Namespace) -> str:
    return parser.given(a.reason) or parser.given(a.words) or ""


def warn(desk: Any, a: Namespace, what: str, **answer: Any) -> None:
    """Say before it happens that an answer cancels the task, where a person is there to read it."""
    if getattr(a, "yes", False) or a.json or not sys.stdin.isatty() or not sys.stderr.isatty():
        return
    try:
        lands = desk.lands(what, **answer)
    except YourturnError:
        return  # the answer itself says what is wrong
    if lands != "cancelled":
        return
    found = desk.show(what)
    key = found.get("key") or found["task"]
    print(f"This answer cancels {key}. Type {key} to go on: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().upper() != key:
        raise Invalid("Nothing was changed", hint=f"The question is still open. See what each answer does: turn show {what}")


def withdraw_args(p: Any) -> None:
    p.add_argument("what", metavar="KEY", help="a question (Q17), or the task whose one question is meant")
    p.add_argument("--reason", metavar="TEXT")
    parser.proof(p)
    parser.keyed(p)


def withdraw(a: Namespace) -> int:
    with connect(a) as desk:
        mine = held(desk, a.what, a)
        proof = {"claim": mine["proof"], "worker": mine["worker"], "key": a.idempotency_key}
        q = desk.withdraw(a.what, parser.given(a.reason) or "", **proof)
        task = desk.show(q["task"])
        return out(a, q, lambda: [f"Withdrew {q['id']}. {after(task)}", *parser.unattended(a, desk, task)])


def assign_args(p: Any) -> None:
    p.add_argument("what", metavar="KEY")
    p.add_argument("reviewer", metavar="WHO", help="a person or a role")
    parser.keyed(p)


def assign(a: Namespace) -> int:
    with connect(a) as desk:
        q = desk.assign(a.what, a.reviewer, key=a.idempotency_key)
    return out(a, q, lambda: [f"{q['id']} is for {a.reviewer} now."])


def hand_back_args(p: Any) -> None:
    p.add_argument("task", metavar="KEY")
    parser.keyed(p)


def hand_back(a: Namespace) -> int:
    with connect(a) as desk:
        task = desk.hand_back(a.task, key=a.idempotency_key)
        return out(a, task, lambda: [f"Handed back. {after(task)}", *parser.unattended(a, desk, task)])

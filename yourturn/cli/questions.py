"""`turn ask`, `flag` and `use`: an agent asks a question and uses a permission."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from ..core.errors import StillWaiting, StoreTrouble
from ..core.questions import RESPONSE_TYPES
from ..core.rules import KINDS, ON_TIMEOUT, REASONS, SYSTEM_REASONS
from . import parser
from .parser import connect, held
from .parser import show as out

#: Reasons that `--reason` accepts.
_REASONS = tuple(reason for reason in REASONS if reason not in SYSTEM_REASONS)


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
    p.add_argument("--allow-other", action="store_true", help="an answer that is not an option is allowed too")
    p.add_argument("--default", metavar="VALUE", help="the answer if the question times out (input and recovery only)")
    p.add_argument("--timeout", metavar="TIME", help="how long to wait for a person: 30m, 24h")
    p.add_argument("--on-timeout", choices=ON_TIMEOUT, metavar="WHAT", help=", ".join(ON_TIMEOUT))
    p.add_argument("--context", metavar="TEXT", help="what the person needs to know; text or a JSON object")
    p.add_argument("--reason", choices=_REASONS, default=reason, metavar="CODE", help=", ".join(_REASONS))
    p.add_argument("--urgency", choices=URGENCIES)
    p.add_argument("--reviewer", metavar="WHO", help="a person or a role")
    p.add_argument("--group", metavar="NAME", help="the name of a group of questions")
    p.add_argument("--confidence", metavar="0-1", help="how sure the agent is, from 0 to 1")
    p.add_argument("--action", metavar="JSON", help="the exact action, for a permission (a JSON object)")
    p.add_argument("--metadata", metavar="JSON", help="stored with the question and returned with the answer")
    parser.proof(p)
    parser.keyed(p)


def _question_fields(a: Namespace, mine: dict[str, Any]) -> dict[str, Any]:
    return {
        "options": [_option(word) for word in a.option], "response_type": a.response_type, "multi": a.multi or None,
        "allow_other": a.allow_other or None, "default": a.default, "timeout": a.timeout, "on_timeout": a.on_timeout,
        "context": _context(parser.read_text(a.context)), "urgency": a.urgency, "reviewer": a.reviewer, "group": a.group,
        "confidence": a.confidence, "action": json_option(a.action, "--action"),
        "metadata": json_option(a.metadata, "--metadata"), "kind": a.kind, "reason": a.reason,
        "claim": mine["proof"], "worker": mine["worker"], "key": a.idempotency_key,
    }  # fmt: skip


def ask_args(p: Any) -> None:
    _question_args(p, "the question", "input")
    p.add_argument("--non-blocking", action="store_true", help="the agent continues with the default")
    p.add_argument(
        "--wait",
        type=parser.seconds,
        metavar="SECONDS",
        help="wait this long for the answer (exit code 7 if a blocking question is still open or the desk became unreachable)",
    )


def ask(a: Namespace) -> int:
    from .. import display
    from ..client.commands import answer_unreadable
    from ..display import terminal
    from .main import report

    with connect(a) as desk:
        mine = held(desk, a.task, a)
        fields = {**_question_fields(a, mine), "blocking": False if a.non_blocking else None, "step": parser.step(mine)}
        q = desk.ask(a.task, parser.read_text(a.text), **fields)
        unread = None
        if a.wait:
            try:
                q = desk.wait_for(q, a.wait)
            except StoreTrouble as error:
                unread = answer_unreadable(q, error)
    waits = bool(a.wait) and q["status"] == "pending" and q["blocking"]

    def lines() -> list[str]:
        if q["status"] != "pending":
            return [f"{q['id']}: {display.result(q)}"]
        if not q["blocking"]:
            return [f"Asked {q['id']}. Continue with {display.quoted(q['default'])}; a later answer will reach you."]
        timeout = ", ".join(filter(None, (terminal.left(q["timeout_at"]), display.timeout_effect(q))))
        return [f"Asked {q['id']} about {q['task']}: {timeout}.", f"Next: turn show {q['id']}"]

    if unread is not None:
        report(unread, a.json)
    out(a, q, lines)
    return StillWaiting.exit_code if waits else 0


def _option(word: str) -> Any:
    value, equals, label = word.partition("=")
    return {"id": value, "label": value, "value": value, "description": label} if equals and value else word


def json_option(text: str | None, option: str) -> Any:
    """The JSON value of an option; `-` reads standard input."""
    from ..core.canonical_json import loads

    return None if text is None else loads(parser.read_text(text) or "", option)


def _context(text: str | None) -> Any:
    if text is not None and text.lstrip().startswith("{"):
        return json_option(text, "--context")
    return text or None


def flag_args(p: Any) -> None:
    _question_args(p, "the problem", "escalation", "decision_needed")
    p.add_argument("--replace", action="store_true", help="withdraw the questions that the task waits for now")


def flag(a: Namespace) -> int:
    with connect(a) as desk:
        mine = held(desk, a.task, a)
        held_on = {"step": step, "hold": True} if (step := parser.step(mine)) else {}
        task = desk.flag(a.task, parser.read_text(a.text), replace=a.replace or None, **held_on, **_question_fields(a, mine))
    name = task["questions"][-1]["id"]
    return out(a, task, lambda: [f"{task['key']} is a person's turn now: {name}.", f"Next: turn show {name}"])


def use_args(p: Any) -> None:
    p.add_argument("what", metavar="Q17", help="an approved permission")
    p.add_argument("--by", required=True, metavar="NAME", help="a name for the call that uses it; no other name can use it")
    p.add_argument("--action", required=True, metavar="JSON", help="the exact action that will run; - reads standard input")
    parser.proof(p)
    parser.keyed(p)


def use(a: Namespace) -> int:
    with connect(a) as desk:
        mine = held(desk, a.what, a)
        proof = {"claim": mine["proof"], "worker": mine["worker"], "key": a.idempotency_key}
        q = desk.use(a.what, a.by, json_option(a.action, "--action"), **proof)
    return out(a, q, lambda: [f"{q['id']} is used by {q['used_by']}. Run the action now."])

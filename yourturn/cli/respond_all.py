"""`respond --all`: one question after the other; or one answer for all that it fits, never for what needs a yes or no."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

from ..core.answers import VERDICT_FORMS, verdict_of
from ..core.errors import Invalid, Usage, YourturnError
from . import parser
from .parser import connect
from .parser import show as out


def respond_to_all(a: Namespace) -> int:
    text = parser.given(a.value if a.value is not None else a.what)
    if text is None and not sys.stdin.isatty():
        raise Usage("turn respond --all: what is the answer?", hint='turn respond --all "…", or run it in a terminal')
    with connect(a) as desk:
        inbox = _open_questions(desk, a.project)
        left = [q for q in inbox if text is not None and q["response_type"] in VERDICT_FORMS]
        fitting = [q for q in inbox if q not in left]
        if text is not None:
            _confirm(a, fitting)
        done = [_one(desk, a, q, text) for q in fitting]
        results = [item for item in done if item is not None]
        lines = [_line(desk, item) for item in results]
    wrong = [item for item in results if "error" in item]
    if left:
        many = "1 question needs" if len(left) == 1 else f"{len(left)} questions need"
        lines += [f"{many} a yes or no each: {', '.join(q['id'] for q in left)}.", f"Next: turn approve {left[0]['id']}"]
    out(a, results, lines or ["Nothing waits for an answer."])
    return YourturnError.exit_code if wrong and len(wrong) == len(results) else 0


def _open_questions(desk: Any, project: str | None) -> list[dict[str, Any]]:
    """All open questions, page by page."""
    found: list[dict[str, Any]] = []
    while page := desk.inbox(project=project, after=found[-1]["id"] if found else None):
        found += page
    return found


def _confirm(a: Namespace, questions: list[dict[str, Any]]) -> None:
    """List what one answer goes to, where a person can read it."""
    from ..display.terminal import cut, one_line

    if a.yes or a.json or len(questions) < 2 or not sys.stdin.isatty() or not sys.stderr.isatty():
        return
    rows = [f"  {q['id']}  {q['task']}  {cut(one_line(q['text']), 60)}" for q in questions]
    print(*rows, f"Send this answer to {len(questions)} questions? [y/N] ", sep="\n", end="", file=sys.stderr, flush=True)
    if verdict_of(sys.stdin.readline()) is not True:
        raise Invalid("Nothing was sent", hint="All questions are still open.")


def _one(desk: Any, a: Namespace, q: dict[str, Any], text: str | None) -> dict[str, Any] | None:
    from .. import display
    from .questions import warn

    answer = text
    if answer is None:
        print("\n".join(["", *display.question(q, "")]))
        answer = input(f"{q['task']} {q['id']}, your answer (Enter skips): ").strip()
        if not answer:
            return None
    try:
        warn(desk, a, q["id"], value=answer)
        return dict(desk.answer(q["id"], answer, key=a.idempotency_key and f"{a.idempotency_key}/{q['id']}"))
    except YourturnError as error:
        return {"id": q["id"], "task": q["task"], **error.as_json()}


def _line(desk: Any, item: dict[str, Any]) -> str:
    from .. import display
    from ..display import terminal
    from .questions import after

    if "error" in item:
        return f"✗ {item['id']}: {item['error']['message']}"
    asked = terminal.cut(terminal.one_line(item["text"]), 60)
    came = " ".join([after(desk.show(item["task"])), *display.followed(item)])
    return f"✓ {item['id']} ({asked}): {display.result(item)}. {came}"

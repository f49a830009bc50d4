"""`turn respond --all`: prompts for one answer after the other, or gives one text to all questions that need no yes or no."""

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
    text = parser.read_text(a.value if a.value is not None else a.what)
    if text is None and not sys.stdin.isatty():
        raise Usage("turn respond --all: no answer given", hint='turn respond --all "…", or run it in a terminal')
    with connect(a) as desk:
        inbox = _open_questions(desk, a.project)
        verdicts = [q for q in inbox if text is not None and q["response_type"] in VERDICT_FORMS]
        others = [q for q in inbox if q not in verdicts]
        if text is not None:
            _confirm(a, others)
        replies = [_respond(desk, a, q, text) for q in others]
        results = [reply for reply in replies if reply is not None]
        lines = [_line(desk, result) for result in results]
    errors = [result for result in results if "error" in result]
    if verdicts:
        count = "1 question needs a yes or no" if len(verdicts) == 1 else f"{len(verdicts)} questions need a yes or no each"
        names = ", ".join(q["id"] for q in verdicts)
        lines += [f"{count}: {names}.", f"Next: turn approve {verdicts[0]['id']}"]
    out(a, results, lines or ["Nothing waits for an answer."])
    return YourturnError.exit_code if errors and len(errors) == len(results) else 0


def _open_questions(desk: Any, project: str | None) -> list[dict[str, Any]]:
    """All open questions, page by page."""
    questions: list[dict[str, Any]] = []
    while page := desk.inbox(project=project, after=questions[-1]["id"] if questions else None):
        questions += page
    return questions


def _confirm(a: Namespace, questions: list[dict[str, Any]]) -> None:
    """Lists the questions that one answer goes to and asks for confirmation, where a person can read it."""
    from ..display.terminal import cut, one_line

    if a.yes or a.json or len(questions) < 2 or not sys.stdin.isatty() or not sys.stderr.isatty():
        return
    rows = [f"  {q['id']}  {q['task']}  {cut(one_line(q['text']), 60)}" for q in questions]
    print(*rows, f"Send this answer to {len(questions)} questions? [y/N] ", sep="\n", end="", file=sys.stderr, flush=True)
    if verdict_of(sys.stdin.readline()) is not True:
        raise Invalid("Nothing was sent", hint="All questions are still open.")


def _respond(desk: Any, a: Namespace, q: dict[str, Any], text: str | None) -> dict[str, Any] | None:
    """The closed question, or its error; None if the person skipped it."""
    from .. import display
    from .answers import warn

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


def _line(desk: Any, result: dict[str, Any]) -> str:
    from .. import display
    from ..display import terminal
    from .answers import state_line

    if "error" in result:
        return f"✗ {result['id']}: {result['error']['message']}"
    question = terminal.cut(terminal.one_line(result["text"]), 60)
    after = " ".join([state_line(desk.show(result["task"])), *display.followed(result)])
    return f"✓ {result['id']} ({question}): {display.result(result)}. {after}"

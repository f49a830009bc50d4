"""`respond --all`: one question after the other; or one answer for all that it fits, never for what needs a yes or no."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

from ..core.answers import VERDICT_FORMS
from ..core.errors import Usage, YourturnError
from . import parse
from .parse import connect
from .parse import show as out


def respond_to_all(a: Namespace) -> int:
    text = parse.given(a.value if a.value is not None else a.what)
    if text is None and not sys.stdin.isatty():
        raise Usage("turn respond --all: what is the answer?", hint='turn respond --all "…", or run it in a terminal')
    with connect(a) as desk:
        open_ones = desk.inbox(project=a.project)
        waiting = [q for q in open_ones if text is None or q["response_type"] not in VERDICT_FORMS]
        done = [_one(desk, q, text) for q in waiting]
    results = [item for item in done if item is not None]
    wrong = [item for item in results if "error" in item]
    out(a, results, [line for item in results for line in _lines(item)] or [_nothing(open_ones)])
    return YourturnError.exit_code if wrong and len(wrong) == len(results) else 0


def _nothing(open_ones: list[dict[str, Any]]) -> str:
    if not open_ones:
        return "Nothing waits for an answer."
    return f"Nothing waits for words. {open_ones[0]['id']} takes a yes or a no: turn show {open_ones[0]['id']}"


def _one(desk: Any, q: dict[str, Any], text: str | None) -> dict[str, Any] | None:
    from .. import view

    answer = text
    if answer is None:
        print("\n".join(["", *view.question(q, "")]))
        answer = input(f"{q['task']} {q['id']}, your answer (Enter skips): ").strip()
        if not answer:
            return None
    try:
        return dict(desk.answer(q["id"], answer))
    except YourturnError as error:
        return {"id": q["id"], "task": q["task"], **error.as_json()}


def _lines(item: dict[str, Any]) -> list[str]:
    from .. import view

    if "error" in item:
        return [f"✗ {item['id']}: {item['error']['message']}"]
    return [f"✓ {item['id']}: {view.result(item)}"]

"""Calls as text, as a script would write them, and where two calls differ."""

from __future__ import annotations

from typing import Any

from .alignment import ASKS, WAIT_OPTIONS, Doubt

LONG = 60
Step = dict[str, Any]
#: Arguments that are shown first, without their names.
_FIRST = {
    "run": ("agent", "prompt"), "pause": ("text",), "ask": ("text",), "sleep": ("seconds",), "log": ("text",),
    "parallel": ("branches",),
}  # fmt: skip
#: Default values, which are not shown.
_USUAL = {("pause", "kind"): "checkpoint", ("ask", "kind"): "input"}


def call_text(step: Step | None, cut: bool = True) -> str:
    if step is None:
        return "the end of the script"
    name, call = step["name"], step["call"] if isinstance(step["call"], dict) else {}
    if name == "step":
        words = [str(call.get("function")), *(repr(_short(word, cut)) for word in call.get("args", ()))]
        words += [f"{key}={_short(value, cut)!r}" for key, value in call.get("kwargs", {}).items()]
        return f"step({', '.join(words)})"
    first = _FIRST.get(name, ())
    words = [repr(_short(call[field], cut)) for field in first if call.get(field) is not None]
    more = {field: value for field, value in call.items() if field not in (*first, *WAIT_OPTIONS) and value is not None}
    words += [f"{field}={_short(value, cut)!r}" for field, value in more.items() if _USUAL.get((name, field)) != value]
    return f"{name}({', '.join(words)})"


def doubt_text(doubt: Doubt) -> str:
    """Why a recorded step cannot be assigned to a call with certainty."""
    call, places = call_text(doubt.step), doubt.places
    several = len(places) > 1
    named = f"Steps {', '.join(places[:-1])} and {places[-1]} are" if several else f"Step {places[0]} is"
    if doubt.step["name"] in ASKS:
        return f"{named} all {call}: an answer may belong to another one of them now."
    return f"{named} {call}, {'functions' if several else 'a function'} without a name: it may be another one now."


def differing_calls(expected: Step | None, actual: Step | None) -> tuple[str, str]:
    """Both calls, cut so that the difference is visible."""
    old, new = call_text(expected), call_text(actual)
    if old != new:
        return old, new
    old, new = call_text(expected, cut=False), call_text(actual, cut=False)
    at = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    return _around(old, at), _around(new, at)


def _around(text: str, at: int) -> str:
    begin, end = max(0, at - LONG // 2), at + LONG // 2
    return f"{'…' * (begin > 0)}{text[begin:end]}{'…' * (end < len(text))}"


def _short(word: Any, cut: bool) -> Any:
    if isinstance(word, str):
        return f"{word[: LONG - 3]}…" if cut and len(word) > LONG else word
    return word if not cut or len(repr(word)) <= LONG else _Cut(word)


class _Cut:
    def __init__(self, word: Any) -> None:
        self.word = word

    def __repr__(self) -> str:
        return f"{repr(self.word)[: LONG - 3]}…"

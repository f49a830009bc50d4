"""One question as text, and its result."""

from __future__ import annotations

import json
from typing import Any

from ..core.field_text import as_lines as context_text
from .labels import person, quoted
from .terminal import ago, bold, columns, dim, left, one_line, safe
from .terminal import quoted as with_bar


def timeout_effect(q: dict[str, Any]) -> str:
    """The effect of the timeout, if the question has one."""
    if q["timeout_at"] is None:
        return ""
    default = q["default"]
    words = {
        "default": f"then {quoted(default)}" if default is not None else "then the task fails",
        "fail": "then the task fails", "stuck": "then the task ends as stuck", "defer": "then it is deferred",
        "remind": "then a reminder is sent", "escalate": "then another reviewer is asked", "keep": "then it stays open",
        "accept": "then it is accepted",
    }  # fmt: skip
    return words[q["on_timeout"]]


def context_lines(context: Any) -> list[str]:
    """An agent's context as text: the context itself first, then its other fields with labels."""
    return safe("\n".join(context_text(context))).splitlines() if context else []


def result(q: dict[str, Any]) -> str:
    """The result of a closed question, in a few words."""
    response = q["response"] or {}
    if q["status"] == "timeout":
        if response.get("value") is not None:
            return f"no answer, went on with {quoted(response['value'])}"
        return "no answer in time"
    if q["status"] == "cancelled":
        return f"cancelled by {person(q['responded_by'])}" + (f" ({one_line(why)})" if (why := q.get("close_reason")) else "")
    words = f": {quoted(response['text'])}" if response.get("text") else ""
    if response.get("verdict") == "rejected":
        return f"{person(q['responded_by'])} said no{words}"
    value = response.get("value")
    if "digest" in response:
        return f"{person(q['responded_by'])} said yes, with changes{words}"
    if value is None and response.get("type") == "text" and not words:
        return f"{person(q['responded_by'])} said yes without words"
    if value is None or value is True:
        return f"{person(q['responded_by'])} said yes{words}"
    return f"{person(q['responded_by'])}: {quoted(value)}" + (words if response.get("text") not in ("", value) else "")


def question(q: dict[str, Any], indent: str = "  ") -> list[str]:
    """A question with all its details."""
    time_left = f", {left(q['timeout_at'])}" + (f", {timeout_effect(q)}" if q["timeout_at"] else "")
    to = f", for {safe(q['reviewer'])}" if q["reviewer"] else ""
    sure = f", {q['confidence']:.0%} sure" if q["confidence"] is not None else ""
    head = f"{q['id']}  {q['kind']} question, asked by {person(q['asked_by'])}{sure} {ago(q['asked_at'])}{to}"
    if q["status"] != "pending":
        lines = [head + f"; {result(q)}"]
    else:
        lines = [head + (time_left if q["blocking"] else f", went on with {quoted(q['default'])}")]
    lines += [bold(line) for line in safe(q["text"]).splitlines()]
    if q["action"] is not None:
        lines += [f"This exact action, once{' ' * 4}{q['digest'][:12]}" if q["digest"] else "About this action"]
        lines += _as_json(q["action"])
        response = q["response"] or {}
        if "digest" in response:
            lines += [f"Changed by {person(q['responded_by'])} to{' ' * 4}{response['digest'][:12]}"]
            lines += _as_json(response["value"])
        if q["used_by"]:
            lines += [f"Used by {one_line(q['used_by'])}"]
    lines += option_lines(q)
    about = context_lines(q["context"])
    if about:
        lines += with_bar(about, "")
        lines += [dim(f"  {person(q['asked_by'])}'s own words, not checked")]
    return [indent + line for line in lines]


def option_lines(q: dict[str, Any]) -> list[str]:
    """The options: the id that answers, and its label and description."""
    rows = []
    for o in q["options"]:
        label = o["label"] if o["label"] != o["id"] else ""
        words = ": ".join(one_line(str(word)) for word in (label, o["description"]) if word)
        rows.append(["  " + safe(str(o["id"])), words, "(default)" if o["value"] == q["default"] else ""])
    return columns(rows)


def _as_json(value: Any) -> list[str]:
    return ["  " + line for line in safe(json.dumps(value, indent=2, ensure_ascii=False)).splitlines()]

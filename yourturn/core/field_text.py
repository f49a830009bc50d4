"""Structured fields of questions and results as plain text, for terminals, notes, briefs and commit messages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_CAMEL = re.compile(r"(?<=[a-z0-9])[A-Z]")


def snake(name: str) -> str:
    """snake_case for both questionContext and question_context."""
    return name if name.islower() else _CAMEL.sub(lambda letter: f"_{letter[0].lower()}", name)


def label(name: str) -> str:
    """question_context, questionContext: Question context."""
    words = " ".join(snake(name).replace("_", " ").split())
    return words[:1].upper() + words[1:]


def as_lines(fields: Any) -> list[str]:
    """A context as lines. The key `text` comes first and without a label."""
    if not isinstance(fields, dict):
        return _lines(fields)
    own = _lines(fields.get("text"))
    return [*own, *(line for name, value in fields.items() if name != "text" for line in _labelled(label(name), value))]


def _labelled(name: str, value: Any) -> list[str]:
    lines = _lines(value)
    if not lines:
        return []
    if isinstance(value, list) and len(lines) > 1:
        lines = [f"- {line}" for line in lines]
    return [f"{name}: {lines[0]}"] if len(lines) == 1 else [f"{name}:", *(f"  {line}".rstrip() for line in lines)]


def _lines(value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, dict):
        return as_lines(value)
    if isinstance(value, list):
        return [line for line in (line_of(item) for item in value) if line]
    if isinstance(value, bool):
        return ["yes" if value else "no"]
    return str(value).strip("\n").splitlines()


_OPTION = frozenset({"id", "label", "value"})


def option_label(value: Any) -> str:
    """The label of an option that has nothing else; otherwise ''."""
    return str(value["label"]) if isinstance(value, dict) and value.get("label") and value.keys() <= _OPTION else ""


def line_of(value: Any) -> str:
    """One entry of a list, on one line."""
    if option := option_label(value):
        return option
    return "; ".join(line.strip() for line in _lines(value) if line.strip())


def answered(value: Any, options: Iterable[Any] = ()) -> str:
    """The value of an answer as its person saw it: yes, no, or the label of an option."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(answered(item, options) for item in value)
    if value is None or isinstance(value, dict):
        return ""
    return next((str(o["label"]) for o in options if o["value"] == value), str(value))


def account(details: str = "", issues: Iterable[str] = ()) -> str:
    """An agent's account of finished or failed work as one text: details, then issues."""
    listed = "\n".join(f"- {issue}" for issue in issues)
    return "\n\n".join(part for part in (details.strip(), f"Issues:\n{listed}" if listed else "") if part)

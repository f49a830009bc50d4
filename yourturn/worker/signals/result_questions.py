"""The questions in a result whose status asks: their texts, options and context.

    {"status": "needs_input", "question": "JWT or sessions?", "options": ["jwt", "sessions"], "reviewer": "ana"}
    {"status": "needs_input", "summary": "The model is there.", "questions": ["Which port?", {"question": "Which region?", …}]}

camelCase and snake_case are the same. Fields that do not belong to a question become context. Invalid values raise Invalid.
"""

from __future__ import annotations

from typing import Any

from ...core.actions import VERBS
from ...core.canonical_json import dumps
from ...core.errors import Invalid
from ...core.field_text import snake
from ...core.rules import REASONS

#: The fields of a question beside text, kind and context: of one question, and of all questions in a result.
OWN = ("options", "default", "response_type", "multi", "allow_other")
COMMON = ("reviewer", "confidence", "timeout", "on_timeout", "urgency")
FIELDS = (*OWN, *COMMON)
_CONTEXT = ("question_context", "context")
_TOOLS = {"timeout_minutes": "timeout", "default_response": "default"}
_KNOWN = {*FIELDS, *_CONTEXT, "questions"}
#: Longest context of a result, in characters of JSON, that is copied to each of its questions.
_SHORT = 10_000

Question = dict[str, Any]


def read_questions(result: dict[str, Any], kind: str, reason: str | None, texts: tuple[str, ...]) -> list[Question]:
    """All questions, as arguments of `flag`. The text of the first is empty if the result has none."""
    fields = _snake(result)
    listed = fields.pop("questions", None)
    if listed is not None and not isinstance(listed, list):
        raise Invalid("questions must be a list")
    code = fields.get("reason") if fields.get("reason") in REASONS else None
    names = [name for name in texts if isinstance(fields.get(name), str) and fields[name].strip()]
    if code and len(names) > 1:
        names.remove("reason")
    if listed:
        names = [name for name in names if name == "question"]
    text = fields.pop(names[0]).strip() if names else ""
    options = _pop(fields, FIELDS)
    context = _context(fields, ("status", *(("reason",) if code else ())))
    common = {"kind": kind, "reason": code or reason, **{n: options.pop(n) for n in COMMON if n in options}}
    entries = [_entry(entry) for entry in listed or ()]
    if text or not entries:
        entries = [{"text": text, **options}, *(entry for entry in entries if entry["text"] != text)]
    elif options and len(entries) > 1:
        raise Invalid(f"{' and '.join(options)} beside several questions: which is meant?", hint="Write it into that question.")
    else:
        entries[0] = {**options, **entries[0]}
    shared = [context if n == 0 or len(dumps(context)) <= _SHORT else {} for n in range(len(entries))]
    return [_check({**common, **entry}, more) for entry, more in zip(entries, shared, strict=True)]


def _snake(result: dict[str, Any]) -> dict[str, Any]:
    """The fields that are not empty, with the known names in snake_case."""
    result = _renamed(result)
    names = {name: snake(name) if snake(name) in _KNOWN and snake(name) not in result else name for name in result}
    return {names[name]: value for name, value in result.items() if value not in (None, "", [], {})}


def _renamed(result: dict[str, Any]) -> dict[str, Any]:
    """The result with the argument names of the tool `ask_question` replaced."""
    renamed = dict(result)
    for name, value in result.items():
        field = _TOOLS.get(snake(name))
        if field and field not in result:
            del renamed[name]
            minutes = field == "timeout" and isinstance(value, int | float) and not isinstance(value, bool)
            renamed[field] = value * 60 if minutes else value
    return renamed


def _pop(fields: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: fields.pop(name) for name in names if name in fields}


def _context(fields: dict[str, Any], excluded: tuple[str, ...]) -> dict[str, Any]:
    """The context: the given one first, then all other fields."""
    context: dict[str, Any] = {}
    for value in _pop(fields, _CONTEXT).values():
        if isinstance(value, dict):
            context |= value
        else:
            context["text"] = f"{context['text']}\n{value}" if "text" in context else value
    return {**context, **{name: value for name, value in fields.items() if name not in excluded}}


def _entry(entry: Any) -> Question:
    """One of `questions`: a text, or an object like a result."""
    if isinstance(entry, str):
        entry = {"question": entry}
    if not isinstance(entry, dict):
        raise Invalid("questions must be texts or objects")
    fields = _snake(entry)
    text = fields.pop("question", None) or fields.pop("text", None)
    if not isinstance(text, str) or not text.strip():
        raise Invalid("One of the questions has no text")
    codes = {"kind": fields.pop("kind")} if "kind" in fields else {}
    if fields.get("reason") in REASONS:
        codes["reason"] = fields.pop("reason")
    return {"text": text.strip(), **codes, **_pop(fields, FIELDS), "context": _context(fields, ())}


def _check(question: Question, shared: dict[str, Any]) -> Question:
    own = question.pop("context", None) or {}
    more = {name: value for name, value in shared.items() if name not in own}
    if "text" in own and "text" in shared:
        more["background"] = shared["text"]
    question["context"] = {**own, **more} or None
    for name, value in question.items():
        if value is not None and (name != "text" or value):
            VERBS["flag"].args[name](name, value)
    return {name: value for name, value in question.items() if value is not None}

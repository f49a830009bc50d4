"""The questions in a result: what an object whose status asks says to the person, and how it wants to be asked.

    {"status": "needs_input", "question": "JWT or sessions?", "options": ["jwt", "sessions"], "reviewer": "ana"}
    {"status": "needs_input", "summary": "The model is there.", "questions": ["Which port?", {"question": "Which region?", …}]}

camelCase and snake_case mean the same. What is no field of a question is context. What does not fit raises Invalid.
"""

from __future__ import annotations

from typing import Any

from ...core.actions import MANY, VERBS
from ...core.canonical_json import dumps
from ...core.errors import Invalid
from ...core.field_text import snake
from ...core.rules import REASONS

#: How a question may be asked, beside its text, kind and context: of one question, and of all in a result.
OWN = ("options", "default", "response_type", "multi", "allow_other")
COMMON = ("reviewer", "confidence", "timeout", "on_timeout", "urgency")
FIELDS = (*OWN, *COMMON)
_CONTEXT = ("question_context", "context")
_TOOLS = {"timeout_minutes": "timeout", "default_response": "default"}
_KNOWN = {*FIELDS, *_CONTEXT, "questions"}
#: Up to here what a result says about all of its questions goes with each of them.
_SHORT = 10_000

Question = dict[str, Any]


def asked(found: dict[str, Any], kind: str, reason: str | None, texts: tuple[str, ...]) -> list[Question]:
    """All questions, as arguments of `flag`. The text of the first is empty where nothing is asked in words."""
    given = _snake(found)
    listed = given.pop("questions", None)
    if listed is not None and not isinstance(listed, list):
        raise Invalid("questions must be a list")
    code = given.get("reason") if given.get("reason") in REASONS else None
    used = [name for name in texts if isinstance(given.get(name), str) and given[name].strip()]
    if code and len(used) > 1:
        used.remove("reason")
    if listed:
        used = [name for name in used if name == "question"]
    text = given.pop(used[0]).strip() if used else ""
    fields = _taken(given, FIELDS)
    context = _context(given, ("status", *(("reason",) if code else ())))
    common = {"kind": kind, "reason": code or reason, **{n: fields.pop(n) for n in COMMON if n in fields}}
    entries = [_entry(entry) for entry in listed or ()]
    if text or not entries:
        entries = [{"text": text, **fields}, *(entry for entry in entries if entry["text"] != text)]
    elif fields and len(entries) > 1:
        raise Invalid(f"{' and '.join(fields)} beside several questions: which is meant?", hint="Write it into that question.")
    else:
        entries[0] = {**fields, **entries[0]}
    shared = [context if n == 0 or len(dumps(context)) <= _SHORT else {} for n in range(len(entries))]
    return [_checked({**common, **entry}, more) for entry, more in zip(entries, shared, strict=True)]


def _snake(found: dict[str, Any]) -> dict[str, Any]:
    """With the names of known fields as we write them, and without what is empty."""
    found = _renamed(found)
    names = {name: snake(name) if snake(name) in _KNOWN and snake(name) not in found else name for name in found}
    return {names[name]: value for name, value in found.items() if value not in (None, "", [], {})}


def _renamed(found: dict[str, Any]) -> dict[str, Any]:
    """A result may call its fields as the tool `ask_question` does."""
    given = dict(found)
    for name, value in found.items():
        ours = _TOOLS.get(snake(name))
        if ours and ours not in found:
            del given[name]
            minutes = ours == "timeout" and isinstance(value, int | float) and not isinstance(value, bool)
            given[ours] = value * 60 if minutes else value
    return given


def _taken(given: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: given.pop(name) for name in names if name in given}


def _context(given: dict[str, Any], without: tuple[str, ...]) -> dict[str, Any]:
    """What the person has to know for it, first; then everything else that was said."""
    found: dict[str, Any] = {}
    for value in _taken(given, _CONTEXT).values():
        if isinstance(value, dict):
            found |= value
        else:
            found["text"] = f"{found['text']}\n{value}" if "text" in found else value
    return {**found, **{name: value for name, value in given.items() if name not in without}}


def _entry(entry: Any) -> Question:
    """One of `questions`: words, or an object like a result of its own."""
    if isinstance(entry, str):
        entry = {"question": entry}
    if not isinstance(entry, dict):
        raise Invalid("questions must be texts or objects")
    given = _snake(entry)
    text = given.pop("question", None) or given.pop("text", None)
    if not isinstance(text, str) or not text.strip():
        raise Invalid("One of the questions has no text")
    named = {"kind": given.pop("kind")} if "kind" in given else {}
    if given.get("reason") in REASONS:
        named["reason"] = given.pop("reason")
    return {"text": text.strip(), **named, **_taken(given, FIELDS), "context": _context(given, ())}


def _checked(question: Question, shared: dict[str, Any]) -> Question:
    own = question.pop("context", None) or {}
    more = {name: value for name, value in shared.items() if name not in own}
    if "text" in own and "text" in shared:
        more["background"] = shared["text"]
    question["context"] = {**own, **more} or None
    for name, value in question.items():
        if value is not None and (name != "text" or value):
            VERBS["flag"].args[name](name, value)
    return {name: value for name, value in question.items() if value is not None}


__all__ = ["COMMON", "FIELDS", "MANY", "OWN", "asked"]

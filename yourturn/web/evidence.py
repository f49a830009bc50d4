"""What a person judges by: the exact action, a diff, an error, and what the agent says about them.

An action and a kept diff are what Yourturn knows. Whatever stands in a question's context was written by an agent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..core.field_text import label, option_label, snake
from ..core.questions import EDITABLE
from ..display.terminal import HIDDEN

#: Lines of a diff that are shown; and how many are shown unfolded.
MOST, FLAT = 4000, 200
#: Characters of JSON that stand in one line.
BRIEF = 72
#: Names under which an agent's context speaks of an error, a diff, its own choice, its own words.
ERRORS = ("error", "error_details", "errorDetails", "traceback", "exception")
DIFFS = ("diff", "patch")
CHOICES = ("suggestion", "suggested", "recommendation", "preferred")
WORDS = ("text", "summary", "message")


class Action(NamedTuple):
    tool: str
    command: str  #: what a shell would run, where that is what it is
    args: tuple[tuple[str, str], ...]
    facts: tuple[tuple[str, str], ...]
    digest: str

    @property
    def brief(self) -> str:
        """'9f2c 41ab 07d3'"""
        return " ".join(self.digest[at : at + 4] for at in (0, 4, 8)) if self.digest else ""


class Line(NamedTuple):
    sort: str  #: add, del, ctx, hunk
    number: str
    sign: str
    text: str


class File(NamedTuple):
    name: str
    added: int
    removed: int
    lines: tuple[Line, ...]


class Diff(NamedTuple):
    files: tuple[File, ...]
    source: str
    folded: bool
    cut: int  #: lines that are not shown


def as_text(value: Any) -> str:
    """A value as one reads it: text as it is, everything else as JSON in which no sign hides."""
    if isinstance(value, str):
        return value
    brief = json.dumps(value, ensure_ascii=False)
    text = brief if len(brief) <= BRIEF else json.dumps(value, indent=2, ensure_ascii=False)
    return HIDDEN.sub(lambda m: f"\\u{ord(m[0]):04x}", text)


def action(found: Any, digest: str | None) -> Action:
    """Everything that would run, in rows; nothing is left out and nothing is cut."""
    if not isinstance(found, dict):
        return Action("", as_text(found) if isinstance(found, str) else "", (("action", as_text(found)),), (), digest or "")
    given = next((found[name] for name in EDITABLE if isinstance(found.get(name), dict)), None)
    rest = {name: value for name, value in found.items() if value is not given or given is None}
    tool = rest.pop("tool", "")
    args = dict(given) if given is not None else {}
    command = args.pop("command") if isinstance(args.get("command"), str) else ""
    shown = [(name, as_text(value)) for name, value in args.items()]
    facts = [("Tool", as_text(tool))] if tool else []
    names = {"folder": "Folder", "cwd": "Folder", "timeout": "Time limit"}
    facts += [(names.get(name, name), as_text(value)) for name, value in rest.items() if value not in (None, "")]
    return Action(as_text(tool), command, tuple(shown), tuple(facts), digest or "")


def command_of(found: Any) -> str:
    """The action in one line, for a row."""
    it = action(found, None)
    return it.command or f"{it.tool} " + " ".join(f"{name}={text}" for name, text in it.args)


def error_of(context: Any) -> str:
    if not isinstance(context, dict):
        return ""
    return next((as_text(context[name]) for name in ERRORS if context.get(name)), "")


def suggestion_of(context: Any) -> Any:
    return next((context[name] for name in CHOICES if context.get(name) is not None), None) if isinstance(context, dict) else None


def diff_of(context: Any) -> str:
    if not isinstance(context, dict):
        return ""
    return next((context[name] for name in DIFFS if isinstance(context.get(name), str) and context[name].strip()), "")


def own_words(context: Any, options: Iterable[str] = ()) -> tuple[str, tuple[tuple[str, str], ...]]:
    """What the agent says, and what else it gives: all but what has a place of its own (its choice is a tag at the option)."""
    if not context:
        return "", ()
    if not isinstance(context, dict):
        return as_text(context), ()
    context = {snake(name): value for name, value in context.items()}
    taken = {next((n for n in names if context.get(n)), "") for names in (ERRORS, DIFFS)}
    known = set(options)
    taken |= {name for name in CHOICES if str(context.get(name)) in known}
    said = [as_text(context[name]) for name in WORDS if isinstance(context.get(name), str) and context[name].strip()]
    rest = [
        (label(name), _listed(value) if isinstance(value, list) else as_text(value))
        for name, value in context.items()
        if name not in taken and name not in WORDS and value not in (None, "", [], {})
    ]
    return "\n".join(said), tuple(rest)


def _listed(value: list[Any]) -> str:
    """One entry on a line, where the entries are words or options."""
    items = [option_label(item) or item for item in value]
    words = items and all(isinstance(item, str) for item in items)
    return "\n".join(f"- {item}" for item in items) if words and len(items) > 1 else items[0] if words else as_text(value)


def diff(text: str, source: str) -> Diff:
    files: list[tuple[str, list[Line]]] = []
    old = new = 0
    lines = text.splitlines()
    for raw in lines[:MOST]:
        if raw.startswith("diff --git ") or (raw.startswith("--- ") and (not files or files[-1][1])):
            files.append((_named(raw), []))
            if raw.startswith("diff "):
                continue
        if not files:
            files.append(("", []))
        into = files[-1][1]
        if raw.startswith("@@"):
            old, new = _hunk(raw)
            into.append(Line("hunk", "", "", raw))
        elif raw.startswith(("+++ ", "--- ")):
            if raw.startswith("+++ ") and raw[4:].strip() not in ("/dev/null", ""):
                files[-1] = (raw[4:].strip().removeprefix("b/"), into)
        elif raw.startswith("+"):
            into.append(Line("add", str(new or ""), "+", raw[1:]))
            new += 1
        elif raw.startswith("-"):
            into.append(Line("del", str(old or ""), "-", raw[1:]))
            old += 1
        elif not raw.startswith(("index ", "new file", "deleted file", "similarity", "rename ", "old mode", "new mode", "\\")):
            into.append(Line("ctx", str(new or ""), "", raw[1:] if raw.startswith(" ") else raw))
            old, new = old + 1, new + 1
    found = tuple(
        File(name, sum(x.sort == "add" for x in into), sum(x.sort == "del" for x in into), tuple(into))
        for name, into in files
        if into
    )
    return Diff(found, source, len(lines) > FLAT or len(found) > 8, max(0, len(lines) - MOST))


def _named(raw: str) -> str:
    return raw.rpartition(" b/")[2] if raw.startswith("diff --git ") else raw[4:].strip().removeprefix("a/")


def _hunk(raw: str) -> tuple[int, int]:
    """@@ -20,6 +21,8 @@"""
    numbers = []
    for word in raw.split()[1:3]:
        first = word.lstrip("+-").partition(",")[0]
        numbers.append(int(first) if first.isascii() and first.isdigit() else 0)
    return (numbers[0], numbers[1]) if len(numbers) == 2 else (0, 0)


def editable(found: Any) -> Mapping[str, Any] | None:
    """What a person may change before they allow it: the input, never the tool or the folder."""
    if not isinstance(found, dict):
        return None
    return next((found[name] for name in EDITABLE if isinstance(found.get(name), dict)), None)

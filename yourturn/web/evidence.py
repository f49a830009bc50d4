"""The evidence for an answer: the exact action, a diff, an error, and the agent's own words.

Yourturn recorded the action and the diff read from git. Everything in a question's context was written by an agent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..core.field_text import label, option_label, snake
from ..core.questions import EDITABLE
from ..display.terminal import HIDDEN

#: Lines of a diff that are shown, and that are shown unfolded.
MAX_LINES, MAX_UNFOLDED = 4000, 200
#: Files of a diff that are shown unfolded.
MAX_FILES_UNFOLDED = 8
#: Characters of JSON on one line.
MAX_JSON_LINE = 72
#: Keys of an agent's context that contain an error, a diff, its suggestion, its own words.
ERRORS = ("error", "error_details", "errorDetails", "traceback", "exception")
DIFFS = ("diff", "patch")
SUGGESTIONS = ("suggestion", "suggested", "recommendation", "preferred")
WORDS = ("text", "summary", "message")


class ActionView(NamedTuple):
    tool: str
    command: str  #: the shell command, if the action is one
    args: tuple[tuple[str, str], ...]
    facts: tuple[tuple[str, str], ...]
    digest: str

    @property
    def brief(self) -> str:
        """'9f2c 41ab 07d3'"""
        return " ".join(self.digest[at : at + 4] for at in (0, 4, 8)) if self.digest else ""


class DiffLine(NamedTuple):
    type: str  #: add, del, ctx, hunk
    number: str
    sign: str
    text: str


class DiffFile(NamedTuple):
    name: str
    added: int
    removed: int
    lines: tuple[DiffLine, ...]


class Diff(NamedTuple):
    files: tuple[DiffFile, ...]
    source: str
    folded: bool
    cut: int  #: lines that are not shown


def as_text(value: Any) -> str:
    """Text unchanged; everything else as JSON, with hidden characters escaped."""
    if isinstance(value, str):
        return value
    line = json.dumps(value, ensure_ascii=False)
    return escape_hidden(line if len(line) <= MAX_JSON_LINE else json.dumps(value, indent=2, ensure_ascii=False))


def escape_hidden(text: str) -> str:
    return HIDDEN.sub(lambda m: f"\\u{ord(m[0]):04x}", text)


def action(value: Any, digest: str | None) -> ActionView:
    """The whole action in rows; nothing is left out or cut."""
    if not isinstance(value, dict):
        text = as_text(value)
        return ActionView("", text if isinstance(value, str) else "", (("action", text),), (), digest or "")
    arguments = editable(value)
    rest = {name: item for name, item in value.items() if item is not arguments or arguments is None}
    tool = rest.pop("tool", "")
    args = dict(arguments) if arguments is not None else {}
    command = args.pop("command") if isinstance(args.get("command"), str) else ""
    facts = [("Tool", as_text(tool))] if tool else []
    labels = {"folder": "Folder", "cwd": "Folder", "timeout": "Time limit"}
    facts += [(labels.get(name, name), as_text(item)) for name, item in rest.items() if item not in (None, "")]
    shown = tuple((name, as_text(item)) for name, item in args.items())
    return ActionView(as_text(tool), command, shown, tuple(facts), digest or "")


def command_of(value: Any) -> str:
    """The action on one line, for a row."""
    parsed = action(value, None)
    return parsed.command or f"{parsed.tool} " + " ".join(f"{name}={text}" for name, text in parsed.args)


def editable(value: Any) -> Mapping[str, Any] | None:
    """The part of an action that a person may edit: its input, never the tool or the folder."""
    if not isinstance(value, dict):
        return None
    return next((value[name] for name in EDITABLE if isinstance(value.get(name), dict)), None)


def error_of(context: Any) -> str:
    if not isinstance(context, dict):
        return ""
    return next((as_text(context[name]) for name in ERRORS if context.get(name)), "")


def suggestion_of(context: Any) -> Any:
    if not isinstance(context, dict):
        return None
    return next((context[name] for name in SUGGESTIONS if context.get(name) is not None), None)


def diff_of(context: Any) -> str:
    if not isinstance(context, dict):
        return ""
    return next((context[name] for name in DIFFS if isinstance(context.get(name), str) and context[name].strip()), "")


def own_words(context: Any, options: Iterable[str] = ()) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The agent's words, and the other entries of its context that the page does not show elsewhere. (A suggestion that is one
    of the options is a tag at the option.)"""
    if not context:
        return "", ()
    if not isinstance(context, dict):
        return as_text(context), ()
    context = {snake(name): value for name, value in context.items()}
    shown = {next((n for n in names if context.get(n)), "") for names in (ERRORS, DIFFS)}
    known = set(options)
    shown |= {name for name in SUGGESTIONS if str(context.get(name)) in known}
    words = [as_text(context[name]) for name in WORDS if isinstance(context.get(name), str) and context[name].strip()]
    rest = [
        (label(name), _listed(value) if isinstance(value, list) else as_text(value))
        for name, value in context.items()
        if name not in shown and name not in WORDS and value not in (None, "", [], {})
    ]
    return "\n".join(words), tuple(rest)


def _listed(value: list[Any]) -> str:
    """One line per entry if the entries are texts or options, else JSON."""
    items = [option_label(item) or item for item in value]
    if not items or not all(isinstance(item, str) for item in items):
        return as_text(value)
    return "\n".join(f"- {item}" for item in items) if len(items) > 1 else str(items[0])


def diff(text: str, source: str) -> Diff:
    files: list[tuple[str, list[DiffLine]]] = []
    old = new = 0
    lines = text.splitlines()
    for raw in lines[:MAX_LINES]:
        if raw.startswith("diff --git ") or (raw.startswith("--- ") and (not files or files[-1][1])):
            files.append((_file_name(raw), []))
            if raw.startswith("diff "):
                continue
        if not files:
            files.append(("", []))
        into = files[-1][1]
        if raw.startswith("@@"):
            old, new = _hunk(raw)
            into.append(DiffLine("hunk", "", "", raw))
        elif raw.startswith(("+++ ", "--- ")):
            if raw.startswith("+++ ") and raw[4:].strip() not in ("/dev/null", ""):
                files[-1] = (raw[4:].strip().removeprefix("b/"), into)
        elif raw.startswith("+"):
            into.append(DiffLine("add", str(new or ""), "+", raw[1:]))
            new += 1
        elif raw.startswith("-"):
            into.append(DiffLine("del", str(old or ""), "-", raw[1:]))
            old += 1
        elif not raw.startswith(("index ", "new file", "deleted file", "similarity", "rename ", "old mode", "new mode", "\\")):
            into.append(DiffLine("ctx", str(new or ""), "", raw[1:] if raw.startswith(" ") else raw))
            old, new = old + 1, new + 1
    parsed = tuple(
        DiffFile(name, sum(line.type == "add" for line in into), sum(line.type == "del" for line in into), tuple(into))
        for name, into in files
        if into
    )
    return Diff(parsed, source, len(lines) > MAX_UNFOLDED or len(parsed) > MAX_FILES_UNFOLDED, max(0, len(lines) - MAX_LINES))


def _file_name(raw: str) -> str:
    return raw.rpartition(" b/")[2] if raw.startswith("diff --git ") else raw[4:].strip().removeprefix("a/")


def _hunk(raw: str) -> tuple[int, int]:
    """The first old and new line of '@@ -20,6 +21,8 @@'."""
    numbers = []
    for word in raw.split()[1:3]:
        first = word.lstrip("+-").partition(",")[0]
        numbers.append(int(first) if first.isascii() and first.isdigit() else 0)
    return (numbers[0], numbers[1]) if len(numbers) == 2 else (0, 0)

"""The fields of a task: one row per field, in the order in which replies show them.

From this table come the arguments of `create`, `import` and `update`, the JSON of a task, its schema in the OpenAPI document,
the options of `turn create` and `turn update`, what MCP tools show, the fields of the web form, facts on pages and terminals,
and the comparison of `turn doctor --strict`. A new field is a row here, a column in db/schema.sql and a migration, and an
attribute of `model.Task`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from . import fields as f
from .canonical_json import dumps
from .fields import Checker, Schema
from .model import STATES
from .rules import KINDS

TYPES = ("task", "epic", "bug", "feature", "chore", "docs", "test", "code", "design", "review")
COMPLEXITIES = ("trivial", "small", "medium", "large", "xlarge")
REQUIRES = ("approval", "review", "content")


#: An option of `turn create` and `turn update`: flags, metavar, help, choices.
Option = tuple[tuple[str, ...], str, str, tuple[str, ...] | None]


class Field:
    """One row. A plain class: a NamedTuple would add a third of a millisecond to the start of every command."""

    __slots__ = (
        "agents", "check", "child", "clears", "create", "default", "encode", "label", "option", "shown", "stored", "told",
        "update",
    )  # fmt: skip

    def __init__(
        self, shown: Schema | None, stored: str = "plain", *, check: Checker[Any] | None = None, update: str = "",
        create: bool = True, clears: bool = False, default: Any = None, encode: Callable[[Any], Any] | None = None,
        told: bool = True, agents: bool = False, child: str = "", option: Option | None = None, label: str = "",
    ) -> None:  # fmt: skip
        self.shown = shown  #: schema of the value in a reply; None: not part of the documented API
        self.stored = stored  #: the column holds the value itself (plain), JSON text (json) or a time (time); "": no column
        self.check = check  #: what `create`, `import` and `update` accept; None: only moves set it
        self.update = update  #: the right that `update` takes (rules.ROLES); "": `update` cannot change it
        self.create = create  #: `create` accepts it, if it has a check
        self.clears = clears  #: `update` accepts None, '', 'null' and 'none' as nothing
        self.default = default  #: of a new task
        self.encode = encode  #: from a checked value to its column
        self.told = told  #: its events name it: `turn doctor --strict` compares both
        self.agents = agents  #: MCP tools show it
        self.child = child  #: described to agents that split a task; "": they cannot set it
        self.option = option
        self.label = label  #: a plain fact on pages and terminals, and a line in the form of a new task


_text, _whole, _time = {"type": "string"}, {"type": "integer"}, {"type": "string", "format": "date-time"}
_texts: Schema = {"type": "array", "items": _text}
_objects: Schema = {"type": "array", "items": {"type": "object"}}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _option(flags: str, metavar: str, help: str, choices: tuple[str, ...] | None = None) -> Option:
    return tuple(flags.split()), metavar, help, choices


def _computed(schema: Schema, agents: bool = False) -> Field:
    """A value that the serializer computes."""
    return Field(schema, stored="", told=False, agents=agents)


#: An agent may change what describes its work (holder), but only people change limits and gates (human).
TASK_FIELDS: dict[str, Field] = {
    "key": Field(_text, told=False, agents=True),
    "title": Field(_text, check=f.line(), update="holder", agents=True, child="What is to be done, in one line."),
    "description": Field(
        _text, check=f.text(), update="holder", default="", agents=True, child="What whoever takes it needs to know.",
        option=_option("-d --description", "TEXT", "what is to be done; - reads standard input"),
    ),
    "state": Field({"type": "string", "enum": list(STATES)}, agents=True),
    "priority": Field(
        _whole, check=f.priority, update="human", default=2, agents=True, child="0 is the most urgent, 4 the least.",
        option=_option("-P --priority", "0-4", "0 is the most urgent (2)"),
    ),
    "type": Field(
        _text, check=f.choice(*TYPES), update="human", default="task", agents=True,
        option=_option("-t --type", "TYPE", ", ".join(TYPES), TYPES),
    ),
    "complexity": Field(
        _text, check=f.choice(*COMPLEXITIES), update="human", default="medium", agents=True, child="How big it is.",
        option=_option("-c --complexity", "SIZE", ", ".join(COMPLEXITIES), COMPLEXITIES),
    ),
    "parent": Field(_or_null(_text), stored="", agents=True),
    "depends_on": _computed(_texts, agents=True),
    "blocked_by": _computed(_texts, agents=True),
    "children": _computed(_texts),
    "requires": Field(
        _or_null(_text), check=f.choice(*REQUIRES), update="human", clears=True, agents=True,
        option=_option("--requires", "GATE", f"finished work needs: {', '.join(REQUIRES)}"),
    ),
    "role": Field(
        _or_null(_text), check=f.name, update="human", clears=True, agents=True, child="Which agent should take it.",
        option=_option("--role", "NAME", "the agent that should do it"),
    ),
    "labels": Field(_texts, "json", check=f.names, update="any", default=(), encode=json.dumps, agents=True, label="Labels"),
    "acceptance": Field(
        _text, check=f.text(), update="human", default="", agents=True, child="How one can tell that it is done.",
        option=_option("--acceptance", "TEXT", "when it is done"),
    ),
    "awaiting": _computed(_or_null({"type": "string", "enum": list(KINDS)}), agents=True),
    "retry_count": Field(_whole, agents=True),
    "max_retries": Field(
        _whole, check=f.integer(1, 100), update="human", agents=True,
        option=_option("--max-retries", "N", "tries before a person is asked (3)"),
    ),
    "branch": Field(
        _or_null(_text), check=f.name, update="holder", clears=True, agents=True,
        option=_option("--branch", "NAME", "its branch"),
    ),
    "session_id": Field(_or_null(_text), check=f.name, update="holder", create=False, clears=True),
    "workflow": Field(_or_null(_text)),
    "summary": Field(_text, agents=True),
    "failure": Field(_or_null(_text)),
    "reason": Field(_text, agents=True),
    "claim": _computed(_or_null({"type": "object"})),
    "questions": _computed({"type": "array", "items": {"$ref": "#/components/schemas/Question"}}),
    "notes": _computed(_objects),
    "steps": _computed(_objects),
    "wake_at": Field(None, "time"),
    "external_id": Field(_or_null(_text)),
    "created_by": Field(None),
    "created_at": Field(_time, "time"),
    "updated_at": Field(_time, "time", told=False),
    "completed_at": _computed(_or_null(_time)),
    "ended_at": Field(_or_null(_time), "time"),
    "version": Field(_whole, told=False),
    "extra": Field(None, "json"),
    "host": Field(None, check=f.name, update="holder", create=False, clears=True),
    "seat": Field(None, "json", check=f.mapping, update="holder", create=False, clears=True, encode=dumps),
    "journal": Field(None),
}  # fmt: skip

#: What a new task and each child of `decompose` may be given.
NEW: dict[str, Checker[Any]] = {name: field.check for name, field in TASK_FIELDS.items() if field.check and field.create}
#: What `update` may change: field -> the right that it takes.
UPDATES: dict[str, str] = {name: field.update for name, field in TASK_FIELDS.items() if field.update}


def encoded(values: dict[str, Any]) -> dict[str, Any]:
    """Checked values as their columns hold them."""
    return {name: _column(TASK_FIELDS[name], value) for name, value in values.items()}


def of_new_task(args: dict[str, Any]) -> dict[str, Any]:
    """The columns of a new task that its creator may set."""
    return encoded({name: TASK_FIELDS[name].default if args.get(name) is None else args[name] for name in NEW})


def _column(field: Field, value: Any) -> Any:
    return value if value is None or field.encode is None else field.encode(value)

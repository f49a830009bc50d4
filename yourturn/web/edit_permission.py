"""Edit a permission before it is given: the input of its action changes, and the edited action gets a digest of its own."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ..core.canonical_json import digest, loads
from ..core.errors import Invalid, NotFound
from ..core.model import PENDING
from ..display.terminal import HIDDEN
from . import evidence, times
from .question_view import Question, article, find_question
from .request import Page, PageRequest, PageResult, Redirect


class Argument(NamedTuple):
    """A field of the form: text, or JSON if the value is not a text or contains hidden characters."""

    name: str
    text: str
    is_json: bool
    rows: int


def _arguments(values: Any) -> list[Argument]:
    arguments = []
    for name, value in values.items():
        plain = isinstance(value, str) and not HIDDEN.search(value)
        text = value if plain else _quoted(value) if isinstance(value, str) else evidence.as_text(value)
        arguments.append(Argument(str(name), text, not plain, min(12, text.count("\n") + 1 + len(text) // 90)))
    return arguments


def _quoted(value: str) -> str:
    return evidence.escape_hidden(json.dumps(value, ensure_ascii=False))


def _permission(request: PageRequest) -> tuple[Question, Any]:
    q = find_question(request.client, request.path_params["id"])
    values = evidence.editable(q["action"])
    if q["kind"] != "permission" or values is None:
        raise NotFound(f"{q['id']} has nothing that could be edited")
    return q, values


def show(request: PageRequest) -> PageResult:
    q, values = _permission(request)
    if q["status"] != PENDING:
        return Redirect(f"/questions/{q['id']}")
    return _page(request, q, _arguments(values))


def preview(request: PageRequest) -> PageResult:
    """Both versions, and the digest of the edited one. Nothing is allowed yet."""
    q, values = _permission(request)
    if q["status"] != PENDING:
        return Redirect(f"/questions/{q['id']}")
    edited: dict[str, Any] = {}
    arguments, wrong = [], ""
    for index, argument in enumerate(_arguments(values)):
        text = request.field(f"arg{index}")
        arguments.append(argument._replace(text=text))
        try:
            edited[argument.name] = loads(text, argument.name) if argument.is_json else text
        except Invalid as error:
            wrong = f"{error}."
    if wrong:
        return _page(request, q, arguments, wrong, status=422)
    name = next(name for name, value in q["action"].items() if value is values)
    action = {**q["action"], name: edited}
    if digest(action) == q["digest"]:
        return _page(request, q, arguments, "Nothing was changed. Allow it as it is, or change something.")
    return _page(request, q, arguments, action=action)


def _page(
    request: PageRequest, q: Question, arguments: list[Argument], wrong: str = "", action: Any = None, status: int = 200
) -> Page:
    context = {
        "here": "inbox", "q": article(request.client, q, times.desk_time(request.client), "page"), "arguments": arguments,
        "edited": evidence.action(action, digest(action)) if action else None,
        "wrong": wrong, "action": json.dumps(action) if action else "",
    }  # fmt: skip
    return Page("edit.html", context, status)

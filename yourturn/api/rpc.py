"""Remote calls: each method of the client by its name, for clients with `YOURTURN_URL`.

    POST /api/desk/create   {"args": ["Add login"], "fields": {"priority": 1}, "project": "PROJ"}   →   {"result": {…}}

The signature of the method says what a request may contain. Methods that wait must not block a request: the caller repeats it.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from typing import Any

from ..client import Client
from ..client.refs import key_name
from ..core.actions import VERBS
from ..core.errors import Invalid, NotFound
from ..core.fields import project_key
from .request import ApiRequest, ApiResponse

#: Size limits of methods whose requests may be larger than others.
LARGE = {"keep_patch": 64_000_000, "write_output": 8_000_000}
#: Methods whose `**fields` are arguments of a verb. `update` and `set_preferences` leave the check of the names to the core.
_FIELDS_OF = {"create": "create", "ask": "ask", "check_question": "ask", "flag": "flag"}


@cache
def methods() -> list[str]:
    """Names of the methods that HTTP serves."""
    members = inspect.getmembers(Client, callable)
    return [name for name, method in members if not name.startswith("_") and getattr(method, "served", True)]


def call_method(request: ApiRequest) -> ApiResponse:
    method = request.path["method"]
    if method not in methods():
        raise NotFound(f"There is no method {method[:40]!a}")
    body = request.body("args", "fields", "project", "version")
    args, fields = body.get("args", []), body.get("fields", {})
    if not isinstance(args, list) or not isinstance(fields, dict):
        raise Invalid("args must be a list, and fields an object")
    name = key_name(getattr(Client, method))
    if request.key is not None and name and fields.get(name) is None:  # null counts as not given
        fields = {**fields, name: request.key}
    bound = _bound(method, args, fields)
    client = request.client
    if body.get("project") is not None:
        client = Client(client.desk, project_key("project", body["project"]))
    version = body.get("version")
    if version is not None:
        if isinstance(version, bool) or not isinstance(version, int):
            raise Invalid("version must be a number")
        client = client.at_version(version)
    return ApiResponse({"result": getattr(client, method)(*bound.args[1:], **bound.kwargs)})


@cache
def _signature(method: str) -> tuple[inspect.Signature, dict[str, Any]]:
    function = getattr(Client, method)
    return inspect.signature(function), typing.get_type_hints(function)


def _keyword_types(method: str, hint: Any) -> dict[str, Any] | None:
    """The keywords that the method's ** takes, with their types; None: any."""
    if typing.get_origin(hint) is typing.Unpack:
        return typing.get_type_hints(typing.get_args(hint)[0])
    return dict.fromkeys(VERBS[_FIELDS_OF[method]].args, Any) if method in _FIELDS_OF else None


def _bound(method: str, args: list[Any], fields: dict[str, Any]) -> inspect.BoundArguments:
    """The checked arguments of a call."""
    signature, hints = _signature(method)
    try:
        bound = signature.bind(None, *args, **fields)
    except TypeError as error:
        raise Invalid(f"{method} does not take that", reason=str(error)) from None
    for name, value in list(bound.arguments.items())[1:]:
        parameter, hint = signature.parameters[name], hints.get(name, Any)
        if parameter.kind is parameter.VAR_KEYWORD:
            bound.arguments[name] = _keywords(method, value, _keyword_types(method, hint))
        elif parameter.kind is parameter.VAR_POSITIONAL:
            bound.arguments[name] = tuple(_checked(name, item, hint) for item in value)
        elif value is None and parameter.default is not parameter.empty:  # null counts as not given
            bound.arguments[name] = parameter.default
        else:
            bound.arguments[name] = _checked(name, value, hint)
    if bound.arguments.get("wait") or bound.arguments.get("seconds"):
        raise Invalid("A request does not wait", hint="Ask again with wait_for and 0 seconds, or watch /api/events.")
    if method == "close" and bound.arguments.get("task") is None:
        raise Invalid("close needs a task")
    _check_limit(bound.arguments.get("limit"))
    return bound


def _keywords(method: str, fields: dict[str, Any], allowed: dict[str, Any] | None) -> dict[str, Any]:
    if allowed is None:
        return fields
    for name in fields:
        if name not in allowed:
            raise Invalid(f"{method} takes no {name[:40]!a}", hint=f"It takes: {', '.join(allowed)}.")
    _check_limit(fields.get("limit"))
    return {name: _checked(name, value, allowed[name]) for name, value in fields.items()}


def _check_limit(limit: Any) -> None:
    if isinstance(limit, int) and not 0 < limit <= 10_000:
        raise Invalid("limit must be a whole number from 1 to 10000")


def _checked(name: str, value: Any, hint: Any) -> Any:
    try:
        return _converted(value, hint)
    except TypeError:
        words = str(hint).replace("typing.", "") if typing.get_origin(hint) else getattr(hint, "__name__", str(hint))
        raise Invalid(f"{name} does not fit", reason=f"{words} is wanted") from None


def _converted(value: Any, hint: Any) -> Any:
    """The JSON value as a value of this type. Raises TypeError."""
    kind, inner = typing.get_origin(hint) or hint, typing.get_args(hint)
    if kind is Any:
        return value
    if kind in (typing.Union, types.UnionType):
        for option in inner:
            with suppress(TypeError):
                return _converted(value, option)
    elif kind in (tuple, list, Iterable):
        if isinstance(value, list) and (kind is not tuple or len(value) == len(inner)):
            items = [_converted(item, inner[at if kind is tuple else 0]) for at, item in enumerate(value)]
            return tuple(items) if kind is tuple else items
    elif isinstance(value, bool):
        if kind is bool:
            return value
    elif isinstance(value, (int, float) if kind is float else kind) and (kind is not int or abs(value) < 2**62):
        return value
    raise TypeError

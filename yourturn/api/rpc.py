"""Every method of the client by its name, for clients over HTTP: what `YOURTURN_URL` speaks.

    POST /api/desk/create   {"args": ["Add login"], "fields": {"priority": 1}, "project": "PROJ"}   →   {"result": {…}}

What a method takes is read from its signature, and checked before it is called. Waiting is the caller's: it asks again.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Iterable
from functools import cache
from typing import Any

from ..client import Client
from ..client.refs import key_name
from ..core.actions import VERBS
from ..core.errors import Invalid, NotFound
from ..core.fields import project_key
from .request import Answer, Call

#: Methods that are not said over HTTP: they speak of files and connections here, or last.
HERE = frozenset(
    {
        "as_",
        "at_version",
        "do",
        "start",
        "answer_and_claim",
        "journal",
        "export",
        "import_",
        "backup",
        "watch",
        "follow",
        "sleep_until_due",
        "login",
        "use_link",
        "whose_link",
        "logout",
    }
)
#: Limits, by method, where a request may be larger than others.
LARGE = {"keep_patch": 64_000_000, "write_output": 8_000_000}
_FILTERS: dict[str, Any] = {
    "role": str | None, "label": str | None, "type": str | None, "priority": int | None, "requires": str | None,
    "search": str | None, "runs": bool, "only_runs": bool, "newest": bool, "worker": str | None,
}  # fmt: skip
#: What stands behind the ** of a method.
_MORE: dict[str, dict[str, Any]] = {
    "list": {**_FILTERS, "workable": bool},
    "inbox": {"reviewer": str | None, "urgency": str | None, "blocking": bool | None},
    "history": {"project": str | None, "actor": str | None, "action": str | None, "before": int | None},
    **{verb: dict.fromkeys(VERBS[verb].args, Any) for verb in ("create", "ask", "flag")},
    "update": dict.fromkeys((*VERBS["create"].args, "session_id", "host", "seat"), Any),
    "check_question": dict.fromkeys(VERBS["ask"].args, Any),
}
_MORE["log"] = _MORE["history"]


def methods() -> list[str]:
    return sorted(n for n in dir(Client) if not n.startswith("_") and callable(getattr(Client, n)) and n not in HERE)


@cache
def _shape(method: str) -> tuple[inspect.Signature, dict[str, Any]]:
    function = getattr(Client, method)
    return inspect.signature(function), typing.get_type_hints(function)


def _more(method: str) -> dict[str, Any] | None:
    """None: anything goes."""
    if method in ("ready", "next"):
        hints = _shape("list")[1]
        own: dict[str, Any] = {
            n: hints[n] for n in ("state", "awaiting", "epic", "parent", "expiring", "project", "after", "limit") if n in hints
        }
        return {**_FILTERS, **own}
    return None if method == "set_preferences" else _MORE.get(method, {})


def speak(call: Call) -> Answer:
    method = call.path["method"]
    if method not in methods():
        raise NotFound(f"There is no method {method[:40]!a}")
    body = call.body("args", "fields", "project", "version")
    args, fields = body.get("args", []), body.get("fields", {})
    if not isinstance(args, list) or not isinstance(fields, dict):
        raise Invalid("args must be a list, and fields an object")
    name = key_name(getattr(Client, method))
    if call.key is not None and name and fields.get(name) is None:  # said as null, it is not said
        fields = {**fields, name: call.key}
    bound = _bound(method, args, fields)
    client = call.client
    if body.get("project") is not None:
        client = Client(client.desk, project_key("project", body["project"]))
    version = body.get("version")
    if version is not None:
        if isinstance(version, bool) or not isinstance(version, int):
            raise Invalid("version must be a number")
        client = client.at_version(version)
    return Answer({"result": getattr(client, method)(*bound.args[1:], **bound.kwargs)})


def _bound(method: str, args: list[Any], fields: dict[str, Any]) -> inspect.BoundArguments:
    signature, hints = _shape(method)
    try:
        bound = signature.bind(None, *args, **fields)
    except TypeError as error:
        raise Invalid(f"{method} does not take that", reason=str(error)) from None
    for name, value in list(bound.arguments.items())[1:]:
        sort, hint = signature.parameters[name].kind, hints.get(name, Any)
        if sort is inspect.Parameter.VAR_KEYWORD:
            bound.arguments[name] = _keywords(method, value)
        elif sort is inspect.Parameter.VAR_POSITIONAL:
            bound.arguments[name] = tuple(_fit(name, one, hint) for one in value)
        else:
            default = signature.parameters[name].default
            nothing = value is None and default is not inspect.Parameter.empty  # said as null, it is not said
            bound.arguments[name] = default if nothing else _fit(name, value, hint)
    if bound.arguments.get("wait") or bound.arguments.get("seconds"):
        raise Invalid("Nobody waits here", hint="Ask again with wait_for and 0 seconds, or watch /api/events.")
    if method == "close" and bound.arguments.get("task") is None:
        raise Invalid("close needs a task")
    _sized(bound.arguments.get("limit"))
    return bound


def _keywords(method: str, given: dict[str, Any]) -> dict[str, Any]:
    known = _more(method)
    if known is None:
        return given
    for name in given:
        if name not in known:
            raise Invalid(f"{method} takes no {name[:40]!a}", hint=f"It takes: {', '.join(known) or 'nothing else'}.")
    found = {name: _fit(name, value, known[name]) for name, value in given.items()}
    _sized(found.get("limit"))
    return found


def _sized(limit: Any) -> None:
    if limit is not None and not 0 < limit <= 10_000:
        raise Invalid("limit must be a whole number from 1 to 10000")


def _fit(name: str, value: Any, hint: Any) -> Any:
    """The value as the method wants it, or Invalid."""
    found, made = _as(value, hint)
    if not found:
        words = str(hint).replace("typing.", "") if typing.get_origin(hint) else getattr(hint, "__name__", str(hint))
        raise Invalid(f"{name} does not fit", reason=f"{words} is wanted")
    return made


def _as(value: Any, hint: Any) -> tuple[bool, Any]:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True, value
    if origin in (typing.Union, types.UnionType):
        tried = (_as(value, one) for one in inner)
        return next((one for one in tried if one[0]), (False, None))
    if hint is None or hint is type(None):
        return value is None, None
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool), value
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**62, value
    if hint in (str, bool):
        return isinstance(value, hint), value
    if origin is dict:
        return isinstance(value, dict), value
    if origin is tuple:
        fits = (
            isinstance(value, list) and len(value) == len(inner) and all(_as(v, h)[0] for v, h in zip(value, inner, strict=False))
        )
        return fits, tuple(value) if fits else None
    if origin in (Iterable, list):
        items = [_as(one, inner[0]) for one in value] if isinstance(value, list) else []
        return isinstance(value, list) and all(fits for fits, _ in items), [made for _, made in items]
    return False, None

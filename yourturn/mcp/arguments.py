"""Validator of the arguments of a tool: the part of JSON Schema that the tools use, with errors that help to repair."""

from __future__ import annotations

import math
from typing import Any

from ..core.errors import Invalid

_TYPES: dict[str, tuple[type | tuple[type, ...], str]] = {
    "string": (str, "text"),
    "number": ((int, float), "a number"),
    "integer": (int, "a whole number"),
    "boolean": (bool, "true or false"),
    "array": (list, "a list"),
    "object": (dict, "an object"),
}


def check(tool: str, schema: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments, without those that are null. Raises Invalid."""
    return dict(_object(tool, schema, {name: value for name, value in arguments.items() if value is not None}))


def _object(what: str, schema: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties", {})
    for name in values:
        if name not in properties and schema.get("additionalProperties", True) is False:
            raise Invalid(f"{what} takes no {name[:40]!a}", hint=f"It takes: {', '.join(properties)}.")
    for name in schema.get("required", ()):
        if values.get(name) is None:
            raise Invalid(f"{what} needs {name}", reason=properties[name].get("description", ""))
    for name, value in values.items():
        if name in properties:
            _value(f"{what}: {name}", properties[name], value)
    return values


def _value(what: str, schema: dict[str, Any], value: Any) -> None:
    if "enum" in schema and value not in schema["enum"]:
        raise Invalid(f"{what} cannot be {_short(value)}", hint=f"Choose one of: {', '.join(map(str, schema['enum']))}.")
    wanted = schema.get("type")
    if wanted in _TYPES:
        types, words = _TYPES[wanted]
        if not isinstance(value, types) or (isinstance(value, bool) and wanted != "boolean"):
            raise Invalid(f"{what} must be {words}", reason=f"got {_short(value)}")
    if wanted in ("number", "integer"):
        low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
        if not low <= value <= high:
            raise Invalid(f"{what} must be from {low} to {high}", reason=f"got {_short(value)}")
    elif wanted == "array":
        if len(value) < schema.get("minItems", 0):
            raise Invalid(f"{what} must not be empty")
        for number, item in enumerate(value, 1):
            _value(f"{what} {number}", schema.get("items", {}), item)
    elif wanted == "object":
        _object(what, schema, value)


def _short(value: Any) -> str:
    shown = ascii(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."

"""Checkers of values: a checker takes a field's name and a raw value, and returns the clean value or raises `Invalid`.

A checker also carries the JSON schema of what callers send, from which the documents of the HTTP API are generated.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from .canonical_json import check, clean, dumps
from .errors import Invalid
from .model import DAY, HOUR, MINUTE, SECOND

T = TypeVar("T")
Schema = dict[str, Any]


class Checker(Generic[T]):
    """A checking function and the JSON schema of its argument."""

    __slots__ = ("check", "schema")

    def __init__(self, check: Callable[[str, Any], T], schema: Schema) -> None:
        self.check = check
        self.schema = schema

    def __call__(self, field: str, value: Any) -> T:
        return self.check(field, value)


def takes(**schema: Any) -> Callable[[Callable[[str, Any], T]], Checker[T]]:
    """Make a checker of a function, with this schema; without one, any JSON is documented."""
    return lambda check: Checker(check, schema)


TITLE_LIMIT = 300
TEXT_LIMIT = 1_000_000
LONGEST = 10**10 * SECOND
#: Line breaks, terminal escapes and changes of the writing direction.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
NAME = re.compile(r"[\w][\w.@+:/-]{0,99}")
PROJECT_KEY = re.compile(r"[A-Z][A-Z0-9_]{0,19}")

_UNITS = {"ms": 1000, "s": SECOND, "m": MINUTE, "min": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d|w)?")


def duration(text: str | int | float, what: str = "duration") -> int:
    """'90s', '30m', '1h30m', '2d'; a bare number is seconds."""
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        if text != text or text < 0 or text > LONGEST // SECOND:
            raise Invalid(f"{what} must be a length of time", reason=f"got {text}")
        return round(text * SECOND)
    if not isinstance(text, str):
        raise Invalid(f"{what} must be a length of time", hint="Like 90s, 30m, 24h or 2d.")
    rest, total = text.strip().lower(), 0
    while rest:
        match = _DURATION.match(rest)
        if not match or len(match[1]) > 12:
            break
        total += round(float(match[1]) * _UNITS[match[2] or "s"])
        rest = rest[match.end() :].strip()
    if rest or not text.strip() or total > LONGEST:
        raise Invalid(f"{what} must be a length of time", reason=f"got {_quote(text)}", hint="Like 90s, 30m, 24h or 2d.")
    return total


def _quote(value: Any) -> str:
    """A bad value, shortened and harmless, for a message."""
    shown = ascii(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def line(limit: int = TITLE_LIMIT, blank: bool = False) -> Checker[str]:
    """One line: no control characters."""

    @takes(type="string")
    def checker(field: str, value: Any) -> str:
        if not isinstance(value, str):
            raise Invalid(f"{field} must be text")
        value = clean(value, field).strip()
        if not value and not blank:
            raise Invalid(f"{field} must not be empty")
        if len(value) > limit:
            raise Invalid(f"{field} is too long", reason=f"{len(value):,} characters; at most {limit:,}")
        bad = CONTROL.search(value)
        if bad:
            raise Invalid(f"{field} contains a control character", reason=f"U+{ord(bad[0]):04X}; one plain line is wanted")
        return str(value)

    return checker


def text(blank: bool = True) -> Checker[str]:
    """Free text of a person or an agent. The surfaces escape it when they show it."""

    @takes(type="string")
    def checker(field: str, value: Any) -> str:
        if not isinstance(value, str):
            raise Invalid(f"{field} must be text")
        if len(value) > TEXT_LIMIT:
            raise Invalid(f"{field} is too long", reason=f"{len(value):,} characters; at most {TEXT_LIMIT:,}")
        if not blank and not value.strip():
            raise Invalid(f"{field} must not be empty")
        return clean(value, field)

    return checker


@takes(type="string")
def name(field: str, value: Any) -> str:
    """The name of an actor or a thing, in one word."""
    if not isinstance(value, str) or not NAME.fullmatch(value) or ".." in value:
        raise Invalid(
            f"{field} must be one word", reason=f"got {_quote(value)}", hint="Letters, digits and . _ - @ + : / are fine."
        )
    return clean(value, field)


@takes(type="string")
def actor(field: str, value: Any) -> str:
    """The name of an actor: human:ana, agent:coder, system."""
    sort, _, who = name(field, value).partition(":")
    if value != "system" and (sort not in ("human", "agent") or not who or ":" in who):
        raise Invalid(f"{field} must name an actor", reason=f"got {_quote(value)}", hint="Like human:ana or agent:coder.")
    return str(value)


@takes(type="string", pattern="^[A-Za-z][A-Za-z0-9_]{0,19}$")
def project_key(field: str, value: Any) -> str:
    if not isinstance(value, str) or not PROJECT_KEY.fullmatch(value.upper()):
        raise Invalid(
            f"{field} must be a project key", reason=f"got {_quote(value)}", hint="Capital letters and digits, like PROJ."
        )
    return value.upper()


def choice(*words: str) -> Checker[str]:
    @takes(type="string", enum=list(words))
    def checker(field: str, value: Any) -> str:
        if value not in words:
            raise Invalid(f"{field} cannot be {_quote(value)}", hint=f"Choose one of: {', '.join(words)}.")
        return str(value)

    return checker


def some(*words: str) -> Checker[list[str]]:
    """One or more of these words, as a list or separated by commas."""

    @takes(type="array", items={"type": "string", "enum": list(words)})
    def checker(field: str, value: Any) -> list[str]:
        chosen = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
        if not isinstance(chosen, (list, tuple)) or not chosen or any(word not in words for word in chosen):
            raise Invalid(f"{field} cannot be {_quote(value)}", hint=f"Choose some of: {', '.join(words)}.")
        return [word for word in words if word in chosen]

    return checker


def integer(low: int, high: int) -> Checker[int]:
    @takes(type="integer", minimum=low, maximum=high)
    def checker(field: str, value: Any) -> int:
        if isinstance(value, str) and re.fullmatch(r"-?\d{1,18}", value.strip()):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise Invalid(f"{field} must be a whole number from {low} to {high}", reason=f"got {_quote(value)}")
        return value

    return checker


@takes(type="integer", minimum=0, maximum=4)
def priority(field: str, value: Any) -> int:
    """0 is the most urgent, 4 the least; P0 … P4 work too."""
    return int(integer(0, 4)(field, value[1:] if isinstance(value, str) and value[:1] in "pP" else value))


@takes(type="number", minimum=0, maximum=1)
def fraction(field: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = -1.0
    if not 0 <= number <= 1:
        raise Invalid(f"{field} must be a number from 0 to 1", reason=f"got {_quote(value)}")
    return number


@takes(type="boolean")
def flag(field: str, value: Any) -> bool:
    words = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
    if isinstance(value, str):
        value = words.get(value.strip().lower())
    if value in (0, 1):
        return bool(value)
    raise Invalid(f"{field} must be yes or no")


@takes()
def span(field: str, value: Any) -> int:
    length = duration(value, field)
    if length <= 0:
        raise Invalid(f"{field} must be longer than nothing")
    return length


@takes(type="string")
def instant(field: str, value: Any) -> int:
    """A time in microseconds since 1970. The client converts dates and spans such as '2d' before."""
    return int(integer(0, 4_102_444_800 * SECOND)(field, value))


@takes(type="array", items={"type": "string"})
def names(field: str, value: Any) -> list[str]:
    """Unique names such as labels, in their order."""
    if isinstance(value, str):
        value = [part for part in re.split(r"[,\s]+", value) if part]
    if not isinstance(value, Iterable):
        raise Invalid(f"{field} must be a list")
    return list(_sized(field, list(dict.fromkeys(name(field, item) for item in value))))


@takes(type="array", items={"type": "string"})
def texts(field: str, value: Any) -> list[str]:
    """Texts that are not blank; a single text is a list of one."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)):
        raise Invalid(f"{field} must be a list of texts")
    return list(_sized(field, [text(blank=False)(field, item) for item in items]))


@takes(type="array", items={"type": "string"})
def numbers(field: str, value: Any) -> list[int]:
    """Row ids, which the client has looked up from keys."""
    return list(dict.fromkeys(integer(0, 2**63 - 1)(field, item) for item in value))


@takes()
def anything(field: str, value: Any) -> Any:
    """Any JSON."""
    return _sized(field, check(value, field))


def _sized(field: str, value: Any) -> Any:
    size = len(dumps(value))
    if size > TEXT_LIMIT:
        raise Invalid(f"{field} is too long", reason=f"{size:,} characters of JSON; at most {TEXT_LIMIT:,}")
    return value


@takes(type="object")
def mapping(field: str, value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        value = {"text": value}
    if not isinstance(value, dict):
        raise Invalid(f"{field} must be an object")
    checked: dict[str, Any] = anything(field, value)
    return checked


@takes(type="array", items={"anyOf": [{"type": "string"}, {"type": "object"}]})
def options(field: str, value: Any) -> list[dict[str, Any]]:
    """Choices: 'jwt', or {"id", "label", "value", "description"}. An id must not be another option's id, label or value."""
    if not isinstance(value, (list, tuple)):
        raise Invalid(f"{field} must be a list")
    choices = [_option(field, item) for item in value]
    names_of = [[str(item[name]).strip().casefold() for name in ("id", "label", "value")] for item in choices]
    uses = Counter(word for words in names_of for word in set(words))
    for item, (own, *_) in zip(choices, names_of, strict=True):
        if uses[own] > 1:
            raise Invalid(f"{field} names {_quote(item['id'])} twice", hint="An answer could mean either of them.")
    return list(_sized(field, choices))


def _option(field: str, item: Any) -> dict[str, Any]:
    if isinstance(item, str):
        item = {"label": item}
    if not isinstance(item, dict):
        raise Invalid(f"{field} must be words or objects")
    value = item.get("value", item.get("id", item.get("label")))
    label = item.get("label", item.get("id", value))
    if value is None or isinstance(value, (dict, list)):
        raise Invalid(f"{field} has an entry without a plain value")
    return {
        "id": line(100)(field, str(item.get("id", value))),
        "label": line()(field, str(label)),
        "value": check(value, field),
        "description": text()(field, item.get("description") or ""),
    }

"""What may be written into a field. A checker takes the field's name and a raw value, and returns it clean or raises
`Invalid`, which names the field and says what is allowed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from .canonical_json import check, clean, dumps
from .errors import Invalid
from .model import DAY, HOUR, MINUTE, SECOND

Checker = Callable[[str, Any], Any]

TITLE_LIMIT = 300
TEXT_LIMIT = 1_000_000
LONGEST = 10**10 * SECOND
#: Line breaks, terminal escapes, and what turns the direction of writing around.
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
        found = _DURATION.match(rest)
        if not found or len(found[1]) > 12:
            break
        total += round(float(found[1]) * _UNITS[found[2] or "s"])
        rest = rest[found.end() :].strip()
    if rest or not text.strip() or total > LONGEST:
        raise Invalid(f"{what} must be a length of time", reason=f"got {_quote(text)}", hint="Like 90s, 30m, 24h or 2d.")
    return total


def _quote(value: Any) -> str:
    """A bad value, shortened and harmless, for a message."""
    shown = ascii(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def line(limit: int = TITLE_LIMIT, blank: bool = False) -> Checker:
    """One line: no control characters."""

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


def text(blank: bool = True) -> Checker:
    """Free text: anything a person or an agent may write. Made safe where it is shown, not here."""

    def checker(field: str, value: Any) -> str:
        if not isinstance(value, str):
            raise Invalid(f"{field} must be text")
        if len(value) > TEXT_LIMIT:
            raise Invalid(f"{field} is too long", reason=f"{len(value):,} characters; at most {TEXT_LIMIT:,}")
        if not blank and not value.strip():
            raise Invalid(f"{field} must not be empty")
        return clean(value, field)

    return checker


def name(field: str, value: Any) -> str:
    """A word that stands for somebody or something."""
    if not isinstance(value, str) or not NAME.fullmatch(value) or ".." in value:
        raise Invalid(
            f"{field} must be one word", reason=f"got {_quote(value)}", hint="Letters, digits and . _ - @ + : / are fine."
        )
    return clean(value, field)


def actor(field: str, value: Any) -> str:
    """Somebody who did something: human:ana, agent:coder, system."""
    sort, _, who = name(field, value).partition(":")
    if value != "system" and (sort not in ("human", "agent") or not who or ":" in who):
        raise Invalid(f"{field} must be somebody", reason=f"got {_quote(value)}", hint="Like human:ana or agent:coder.")
    return str(value)


def project_key(field: str, value: Any) -> str:
    if not isinstance(value, str) or not PROJECT_KEY.fullmatch(value.upper()):
        raise Invalid(
            f"{field} must be a project key", reason=f"got {_quote(value)}", hint="Capital letters and digits, like PROJ."
        )
    return value.upper()


def choice(*words: str) -> Checker:
    def checker(field: str, value: Any) -> str:
        if value not in words:
            raise Invalid(f"{field} cannot be {_quote(value)}", hint=f"Choose one of: {', '.join(words)}.")
        return str(value)

    return checker


def some(*words: str) -> Checker:
    """Several of some words: a list, or one text with commas between."""

    def checker(field: str, value: Any) -> list[str]:
        given = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
        if not isinstance(given, (list, tuple)) or not given or any(one not in words for one in given):
            raise Invalid(f"{field} cannot be {_quote(value)}", hint=f"Choose some of: {', '.join(words)}.")
        return [word for word in words if word in given]

    return checker


def integer(low: int, high: int) -> Checker:
    def checker(field: str, value: Any) -> int:
        if isinstance(value, str) and re.fullmatch(r"-?\d{1,18}", value.strip()):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise Invalid(f"{field} must be a whole number from {low} to {high}", reason=f"got {_quote(value)}")
        return value

    return checker


def priority(field: str, value: Any) -> int:
    """0 is the most urgent, 4 the least; P0 … P4 work too."""
    return int(integer(0, 4)(field, value[1:] if isinstance(value, str) and value[:1] in "pP" else value))


def fraction(field: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = -1.0
    if not 0 <= number <= 1:
        raise Invalid(f"{field} must be a number from 0 to 1", reason=f"got {_quote(value)}")
    return number


def flag(field: str, value: Any) -> bool:
    words = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
    if isinstance(value, str):
        value = words.get(value.strip().lower())
    if value in (0, 1):
        return bool(value)
    raise Invalid(f"{field} must be yes or no")


def span(field: str, value: Any) -> int:
    length = duration(value, field)
    if length <= 0:
        raise Invalid(f"{field} must be longer than nothing")
    return length


def instant(field: str, value: Any) -> int:
    """A moment in microseconds. Surfaces turn dates and '2d' into one before they say the action."""
    return int(integer(0, 4_102_444_800 * SECOND)(field, value))


def names(field: str, value: Any) -> list[str]:
    """Labels and the like: unique, in the order given."""
    if isinstance(value, str):
        value = [part for part in re.split(r"[,\s]+", value) if part]
    if not isinstance(value, Iterable):
        raise Invalid(f"{field} must be a list")
    return list(_sized(field, list(dict.fromkeys(name(field, item) for item in value))))


def texts(field: str, value: Any) -> list[str]:
    """Several texts, none of them blank; one text is a list of one."""
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, (list, tuple)):
        raise Invalid(f"{field} must be a list of texts")
    return list(_sized(field, [text(blank=False)(field, item) for item in given]))


def numbers(field: str, value: Any) -> list[int]:
    """Row ids, already looked up."""
    return list(dict.fromkeys(integer(0, 2**63 - 1)(field, item) for item in value))


def anything(field: str, value: Any) -> Any:
    """Any JSON."""
    return _sized(field, check(value, field))


def _sized(field: str, value: Any) -> Any:
    size = len(dumps(value))
    if size > TEXT_LIMIT:
        raise Invalid(f"{field} is too long", reason=f"{size:,} characters of JSON; at most {TEXT_LIMIT:,}")
    return value


def mapping(field: str, value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        value = {"text": value}
    if not isinstance(value, dict):
        raise Invalid(f"{field} must be an object")
    found: dict[str, Any] = anything(field, value)
    return found


def options(field: str, value: Any) -> list[dict[str, Any]]:
    """Choices: 'jwt', or {"id", "label", "value", "description"}; the id of one names no other."""
    if not isinstance(value, (list, tuple)):
        raise Invalid(f"{field} must be a list")
    found = [_option(field, item) for item in value]
    words = [[str(item[name]).strip().casefold() for name in ("id", "label", "value")] for item in found]
    named = Counter(word for each in words for word in set(each))
    for item, (own, *_) in zip(found, words, strict=True):
        if named[own] > 1:
            raise Invalid(f"{field} names {_quote(item['id'])} twice", hint="An answer could mean either of them.")
    return list(_sized(field, found))


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

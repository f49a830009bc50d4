"""Paths of steps in a script: a call index, or a dotted path inside parallel branches."""

from __future__ import annotations

from .errors import Invalid
from .model import SPARE

_DIGITS, _DEEPEST = 6, 20


def place(path: str) -> str:
    """The stored form of a path; sorts as text in call order. '3.1.0' -> '000003.000001.000000'."""
    parts = path.split(".")
    if not all(part.isascii() and part.isdigit() and len(part) <= _DIGITS for part in parts) or len(parts) > _DEEPEST:
        raise Invalid(f"There is no step {path[:60]!a}", hint="A step has a number, like 3; or 3.1.0 in a parallel().")
    return ".".join(f"{int(part):0{_DIGITS}d}" for part in parts)


def path(stored: str) -> str:
    """The path of a stored form."""
    return ".".join(str(int(part)) for part in stored.removeprefix(SPARE).split("."))

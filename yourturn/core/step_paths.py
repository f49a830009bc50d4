"""Where in a script a call stands: its index, or a path where calls go side by side."""

from __future__ import annotations

from .errors import Invalid
from .model import SPARE

_DIGITS, _DEEPEST = 6, 20


def place(path: str) -> str:
    """A path as it is stored: in the order of the calls, as text too. '3.1.0' -> '000003.000001.000000'."""
    parts = path.split(".")
    if not all(part.isascii() and part.isdigit() and len(part) <= _DIGITS for part in parts) or len(parts) > _DEEPEST:
        raise Invalid(f"There is no step {path[:60]!a}", hint="A step has a number, like 3; or 3.1.0 in a parallel().")
    return ".".join(f"{int(part):0{_DIGITS}d}" for part in parts)


def path(stored: str) -> str:
    """And back."""
    return ".".join(str(int(part)) for part in stored.removeprefix(SPARE).split("."))

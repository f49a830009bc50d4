"""Text for a terminal: escaping, widths, columns, and times in words. Colour never carries information."""

from __future__ import annotations

import os
import re
import sys
import time
from datetime import datetime
from textwrap import wrap
from unicodedata import combining, east_asian_width

COLOUR = False
#: Control characters, and characters that hide or reorder text: bidi, zero-width, soft hyphen, line separators, tags.
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_NAMES = {"\x1b": "ESC", "\x07": "BEL", "\x08": "BS", "\x7f": "DEL", "\r": "CR", "\x9b": "CSI"}


def safe(text: str) -> str:
    """Text without control characters; line ends and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return HIDDEN.sub(lambda m: f"<{name_of(m[0])}>", text.replace("\r\n", "\n"))


def name_of(character: str) -> str:
    """The name of an invisible character: ESC, U+202E."""
    return _NAMES.get(character) or f"U+{ord(character):04X}"


def one_line(text: str) -> str:
    return " ".join(safe(text).split())


def _paint(code: str, text: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if COLOUR else text


def bold(text: str) -> str:
    return _paint("1", text)


def dim(text: str) -> str:
    return _paint("2", text)


def width() -> int:
    """Columns of the terminal, 80 if it reports no size (a container, a script); 10,000 if the output is not a terminal."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (OSError, ValueError):
        return 10_000


def cells(text: str) -> int:
    """The width of a text on the screen."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) or c == "\ufe0f" else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def cut(text: str, room: int) -> str:
    if cells(text) <= room:
        return text
    while text and cells(text) > room - 1:
        text = text[:-1]
    return text.rstrip() + "…"


def pad(text: str, room: int) -> str:
    return text + " " * max(0, room - cells(text))


NARROW = 60  #: columns of a screen that has no room for a table


def columns(rows: list[list[str]], last: int | None = None, indent: str = "") -> list[str]:
    """Aligned columns without boxes. The column `last` is cut at the width of the terminal, never the numbers before it."""
    if not rows:
        return []
    count = max(len(row) for row in rows)
    wide = [max((cells(row[i]) for row in rows if i < len(row)), default=0) for i in range(count)]
    if last is not None:
        others = sum(wide) - wide[last] + 2 * count + len(indent)
        wide[last] = max(20, min(wide[last], width() - others))
        rows = [[cut(cell, wide[i]) if i == last else cell for i, cell in enumerate(row)] for row in rows]
    lines = ["  ".join(pad(cell, wide[i]) for i, cell in enumerate(row)).rstrip() for row in rows]
    return [f"{indent}{line}" for line in lines] if last is None else [cut(f"{indent}{line}", width()) for line in lines]


def quoted(lines: list[str], indent: str) -> list[str]:
    """An agent's text: each line, also a wrapped one, has a bar before it."""
    room = max(20, min(width(), 100) - len(indent) - 3)
    return [f"{indent}| {part}" for line in lines for part in (wrap(line, room) or [""])]


# --- time -----------------------------------------------------------------------------------------------------------


def micros(iso: str) -> int:
    return round(datetime.fromisoformat(iso).timestamp() * 1_000_000)


def seconds_from_now(iso: str) -> float:
    return micros(iso) / 1e6 - time.time()


def ago(iso: str) -> str:
    """'2 hours ago'"""
    return _age(-seconds_from_now(iso))


def _age(seconds: float) -> str:
    if seconds < 45:
        return "just now"
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= size or unit == "minute":
            count = max(1, int(seconds // size))
            return f"{count} {unit}{'s' * (count != 1)} ago"
    return "just now"


def left(iso: str | None) -> str:
    """'4:12 left', '1 h 20 min left', '3 h left', 'no limit'"""
    if iso is None:
        return "no limit"
    seconds = seconds_from_now(iso)
    return "time is up" if seconds <= 0 else f"{countdown(seconds)} left"


def countdown(seconds: float) -> str:
    """The remaining time: '4:12' under an hour, then the brief form of `length`."""
    return f"{int(seconds // 60)}:{int(seconds % 60):02d}" if seconds < 3600 else length(seconds, brief=True)


#: Rows of (limit, step, brief step), in seconds: a length below the limit is rounded to the step.
_ROUNDED = ((60, 1, 1), (3600, 1, 60), (7200, 60, 60), (172_800, 60, 3600), (float("inf"), 3600, 86400))


def length(seconds: float, *, brief: bool = False, compact: bool = False) -> str:
    """A length of time in at most two units, rounded to the smaller one: '4.2 s', '2 min 15 s', '1 h 20 min', '3 days 2 h'.

    `brief`: '2 min', '1 h 20 min', '3 h', '3 days'. `compact`: '2m 15s'. static/time.js uses the same words.
    """
    names = ("d", "h", "m", "s") if compact else (" days", " h", " min", " s")
    if seconds < 9.95 and not brief and not compact:
        return f"{max(0.0, seconds):.1f}".removesuffix(".0") + names[3]
    for limit, fine, coarse in _ROUNDED:
        step = coarse if brief else fine
        whole = int(max(0.0, seconds) / step + 0.5) * step
        if whole < limit:
            break
    sizes = (86400, 3600, 60, 1)
    first = 0 if whole >= 172_800 else 1 if whole >= 3600 else 2
    parts = ((whole // sizes[first], names[first]), (whole % sizes[first] // sizes[first + 1], names[first + 1]))
    return " ".join(f"{count}{name}" for count, name in parts if count) or f"0{names[3]}"


def clock(iso: str) -> str:
    """14:31 today, else with the date; in the local time zone."""
    at = micros(iso) / 1e6
    here = time.localtime(at)
    today = time.strftime("%Y-%m-%d", here) == time.strftime("%Y-%m-%d")
    return time.strftime("%H:%M" if today else "%Y-%m-%d %H:%M", here)

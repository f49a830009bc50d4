"""A terminal: what is safe to print on it, how wide it is, how times read. Colour is only ever an extra."""

from __future__ import annotations

import os
import re
import sys
import time

COLOUR = False
#: Controls, and signs that hide or turn text: bidi, zero-width, soft hyphen, line separators, tags.
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_NAMES = {"\x1b": "ESC", "\x07": "BEL", "\x08": "BS", "\x7f": "DEL", "\r": "CR", "\x9b": "CSI"}


def safe(text: str) -> str:
    """Harmless on any terminal; line ends and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return HIDDEN.sub(lambda m: f"<{name_of(m[0])}>", text.replace("\r\n", "\n"))


def name_of(sign: str) -> str:
    """What a sign is called that cannot be seen: ESC, U+202E."""
    return _NAMES.get(sign) or f"U+{ord(sign):04X}"


def one_line(text: str) -> str:
    return " ".join(safe(text).split())


def _paint(code: str, text: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if COLOUR else text


def bold(text: str) -> str:
    return _paint("1", text)


def dim(text: str) -> str:
    return _paint("2", text)


def width() -> int:
    """Columns of the terminal; endless when nobody looks."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        return 10_000


def cells(text: str) -> int:
    """How wide a text is on the screen."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

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
    """Aligned columns without boxes; the column `last` is cut where the terminal ends, never the numbers before it."""
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
    """An agent's words: every line of them, also a wrapped one, stands behind a bar."""
    from textwrap import wrap

    room = max(20, min(width(), 100) - len(indent) - 3)
    return [f"{indent}| {part}" for line in lines for part in (wrap(line, room) or [""])]


# --- time -----------------------------------------------------------------------------------------------------------


def micros(iso: str) -> int:
    from datetime import datetime

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
    """'4:12 left', '26 min left', '3 h left', 'no limit'"""
    if iso is None:
        return "no limit"
    seconds = seconds_from_now(iso)
    if seconds <= 0:
        return "time is up"
    if seconds < 3600:
        return f"{int(seconds // 60)}:{int(seconds % 60):02d} left"
    return f"{int(seconds // 3600)} h left" if seconds < 172800 else f"{int(seconds // 86400)} days left"


def length(seconds: float) -> str:
    """'90 s', '1 h', '2 days'"""
    for unit, size in (("days", 172_800), ("h", 3600), ("min", 60)):
        if seconds >= size and seconds % (86400 if unit == "days" else size) == 0:
            return f"{seconds / (86400 if unit == 'days' else size):g} {unit}"
    return f"{seconds:g} s"


def length_of(seconds: float) -> str:
    """'4s', '2m 15s', '12m', '3h 5m', '2d 1h': how long something took."""
    left, parts = max(0, int(seconds)), list[str]()
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or (unit == "s" and not parts):
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2])


def clock(iso: str) -> str:
    """14:31 today, else the date too; in the reader's own time zone."""
    at = micros(iso) / 1e6
    here = time.localtime(at)
    today = time.strftime("%Y-%m-%d", here) == time.strftime("%Y-%m-%d")
    return time.strftime("%H:%M" if today else "%Y-%m-%d %H:%M", here)

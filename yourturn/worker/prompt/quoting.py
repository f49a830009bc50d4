"""Quotes untrusted texts inside a brief.

A brief is instructions, and contains texts of other authors: titles, notes, answers, logs. None of them may look like a part of
the brief, and an agent that repeats its brief must not signal by accident that its task is done. So a text is either *plain*, a
short line without special characters, and may follow a label; or every line of it follows `> `, where it cannot be a heading, a
fence or a tag.
"""

from __future__ import annotations

import re

#: Characters that begin a tag, code or JSON; a line with one of them is quoted.
_SPECIAL = re.compile(r"[<>`{}~]")
#: Control characters, unusual line ends, and invisible characters, which can hide instructions.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\U000e0000-\U000e007f]")
_HARMLESS = str.maketrans({"<": "‹", ">": "›", "`": "'", "{": "(", "}": ")", "~": "-"})
SHORT = 200


def cleaned(text: str) -> str:
    """The text with "\\n" as its line end, and hidden characters shown as their code."""
    if text.isascii() and text.isprintable():
        return text
    return _HIDDEN.sub(lambda m: f"(U+{ord(m[0]):04X})", text.replace("\r\n", "\n").replace("\r", "\n"))


def size(text: str) -> int:
    """The length in bytes."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def is_plain(text: str) -> bool:
    return len(text) <= SHORT and text.strip() != "" and text == cleaned(text) and "\n" not in text and not _SPECIAL.search(text)


def inline(text: str, room: int = 120) -> str:
    """A name, label or option as one short line, with special characters replaced."""
    words = " ".join(cleaned(text[: 4 * room]).split()).translate(_HARMLESS)
    return words if len(words) <= room else words[: room - 1].rstrip() + "…"


def quoted(text: str, room: int, key: str = "") -> str:
    """Every line after `> `. The middle of a long text is left out, with a hint where to find it."""
    text = text.strip("\r\n")
    if len(text) > 2 * room:
        first, last, total = _bars(text[:room]), _bars(text[-room:]), len(text)
    else:
        first = last = _bars(text)
        if size("\n".join(first)) <= room:
            return "\n".join(first)
        total = sum(len(line) - 1 for line in first)
    head = _take(first, room * 2 // 3)
    tail = [line[::-1] for line in _take([line[::-1] for line in reversed(last)], room // 3)][::-1]
    tail = [line if line.startswith(">") else f"> …{line}" for line in tail]
    left_out = max(1, total - sum(len(line) - 1 for line in head + tail))
    where = f"; turn show {key} has all of it" if key else ""
    return "\n".join([*head, "", f"[{left_out:,} characters are left out here{where}]", "", *tail])


def _bars(text: str) -> list[str]:
    return [f"> {line}".rstrip() for line in cleaned(text).split("\n")]


def _take(lines: list[str], room: int) -> list[str]:
    """As many lines as fit, and the beginning of the next."""
    taken = []
    for line in lines:
        need = size(line) + 1
        if need > room:
            if room > 40:
                taken.append(line.encode(errors="replace")[:room].decode(errors="ignore"))
            break
        taken.append(line)
        room -= need
    return taken


def labelled(label: str, text: str, room: int = 4000, key: str = "") -> str:
    """`label text` on one line if the text is plain; else the label, and the quoted text below it."""
    text = text.strip()
    if not text:
        return f"{label} (no words)"
    return f"{label} {text}" if is_plain(text) else f"{label}\n\n{quoted(text, room, key)}"

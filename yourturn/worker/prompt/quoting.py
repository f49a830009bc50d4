"""Other people's words inside a text of our own.

A brief is instructions, and inside it stand texts that anybody may have written: titles, notes, answers, logs. None of them
may pose as a part of the brief, and an agent that repeats its brief must not say by accident that its task is done. So a text
is either *plain*, one short line without any sign that means something, and then it may stand beside a label; or every line
of it stands behind `> `, where no heading, fence or tag can get out.
"""

from __future__ import annotations

import re

#: Signs that begin a tag, code or JSON; a line with one of them is quoted.
_MEANS = re.compile(r"[<>`{}~]")
#: Controls, odd line ends, and the invisible letters in which orders can be hidden.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\U000e0000-\U000e007f]")
_TAME = str.maketrans({"<": "‹", ">": "›", "`": "'", "{": "(", "}": ")", "~": "-"})
SHORT = 200


def clean(text: str) -> str:
    """The same text with one sort of line end and nothing hidden in it."""
    if text.isascii() and text.isprintable():
        return text
    return _HIDDEN.sub(lambda m: f"(U+{ord(m[0]):04X})", text.replace("\r\n", "\n").replace("\r", "\n"))


def size(text: str) -> int:
    """In bytes, as a model's provider counts."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def plain(text: str) -> bool:
    return len(text) <= SHORT and text.strip() != "" and text == clean(text) and "\n" not in text and not _MEANS.search(text)


def inline(text: str, room: int = 120) -> str:
    """A name, a label, an option: always one short line, with its dangerous signs replaced."""
    words = " ".join(clean(text[: 4 * room]).split()).translate(_TAME)
    return words if len(words) <= room else words[: room - 1].rstrip() + "…"


def quote(text: str, room: int, key: str = "") -> str:
    """Every line behind a bar; a long text is cut in the middle, and says where the rest is."""
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
    gone = max(1, total - sum(len(line) - 1 for line in head + tail))
    where = f"; turn show {key} has all of it" if key else ""
    return "\n".join([*head, "", f"[{gone:,} characters are left out here{where}]", "", *tail])


def _bars(text: str) -> list[str]:
    return [f"> {line}".rstrip() for line in clean(text).split("\n")]


def _take(lines: list[str], room: int) -> list[str]:
    """As many lines as fit, and the beginning of the next one."""
    found = []
    for line in lines:
        need = size(line) + 1
        if need > room:
            if room > 40:
                found.append(line.encode(errors="replace")[:room].decode(errors="ignore"))
            break
        found.append(line)
        room -= need
    return found


def say(label: str, text: str, room: int = 4000, key: str = "") -> str:
    """`label text` on one line where that is harmless; else the label, and the text quoted below it."""
    text = text.strip()
    if not text:
        return f"{label} (no words)"
    return f"{label} {text}" if plain(text) else f"{label}\n\n{quote(text, room, key)}"

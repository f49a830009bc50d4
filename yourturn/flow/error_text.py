"""An exception of a script as plain data for people: type, message, place and traceback."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

PACKAGE = str(Path(__file__).parents[1])
TEXT, TRACE = 2000, 6000  #: characters that are kept of an error and of its traceback


def failure(error: BaseException) -> dict[str, Any]:
    """An exception as plain data: `error` (type and message), `type`, `place` and `traceback`."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(PACKAGE)]
    place = f"{_file(frames[-1].filename)}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""
    return {
        "error": _kept(f"{type(error).__name__}: {error}".rstrip(": "), TEXT),
        "type": type(error).__name__,
        "place": _kept(place, TEXT),
        "traceback": _kept("".join(_lines(error)).rstrip(), TRACE),
    }


def _lines(error: BaseException) -> list[str]:
    """The traceback as Python prints it, without frames of this package and without absolute folders."""
    printed = traceback.TracebackException(type(error), error, error.__traceback__, compact=True)
    seen: traceback.TracebackException | None = printed
    while seen is not None:
        own = [frame for frame in seen.stack if not frame.filename.startswith(PACKAGE)]
        for frame in own:
            frame.filename = _file(frame.filename)
        seen.stack = traceback.StackSummary.from_list(own)
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
    return list(printed.format())


def _file(name: str) -> str:
    """The path relative to the current folder, if the file is below it."""
    return name.removeprefix(f"{Path.cwd()}/")


def _kept(text: str, most: int) -> str:
    """Text that fits the journal: the beginning and, more of it, the end."""
    text = text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= most else f"{text[: most // 4]}\n…\n{text[-(most - most // 4) :]}"

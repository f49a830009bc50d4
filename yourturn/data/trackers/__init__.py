"""Readers of other trackers' files. They do not use a desk.

`read` finds the files and makes an `Item` of every record: the arguments of the `import` move, and the old ids of its parent
and dependencies. Problems are collected with file and line and raised together, so a person repairs a file once. Fields without
a counterpart are kept in `extra`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ...core.canonical_json import loads
from ...core.errors import Invalid, Usage
from . import beads, beehive, ticks
from .record import Item, Record

#: A single record larger than this is a mistake.
_LARGEST = 16 * 2**20


class Tracker(NamedTuple):
    places: tuple[str, ...]  #: paths of its files in a project's folder
    lines: bool  #: many records in one file, one per line
    item: Callable[[Record], Item]
    matches: Callable[[dict[str, object]], bool]  #: True for a record of this tracker


TRACKERS: dict[str, Tracker] = {
    "ticks": Tracker((".tick/issues", "issues", "."), False, ticks.item, lambda r: "status" in r and "issue_type" not in r),
    "beehive": Tracker((".bh/backlog.json", "backlog.json"), True, beehive.item, lambda r: "state" in r),
    "beads": Tracker((".beads/issues.jsonl", "issues.jsonl"), True, beads.item, lambda r: "status" in r),
}


def read(source: str, name: str | None = None) -> tuple[str, list[Item]]:
    """All tasks in a folder or a file. Raises one error with all problems."""
    if name is not None and name not in TRACKERS:
        raise Usage(f"There is no tracker {name[:40]!a}", hint=f"Choose one of: {', '.join(TRACKERS)}.")
    if not Path(source).exists():
        raise Invalid(f"There is no file or folder {source}")
    name, files = _locate(Path(source), name)
    problems: list[str] = []
    items: list[Item] = []
    for file in files:
        for place, text in _records(file, TRACKERS[name].lines, problems):
            item = _item(name, place, text, problems)
            if item is not None:
                items.append(item)
    problems += _duplicates(items)
    if problems:
        raise refusal(source, problems)
    if not items:
        raise Invalid(f"{source} holds no tasks")
    return name, items


def refusal(source: str, problems: list[str], way: str = "") -> Invalid:
    """One error for all problems, with an alternative if there is one."""
    count = "One thing is" if len(problems) == 1 else f"{len(problems):,} things are"
    reason = "\n  ".join([f"{count} wrong", *problems])
    return Invalid(f"Cannot import {source}", reason=reason, hint=f"Nothing was imported.{way and f' Instead: {way}'}")


def _locate(source: Path, name: str | None) -> tuple[str, list[Path]]:
    """The tracker and its files."""
    if source.is_file():
        return name or _guess(source), [source]
    by_tracker = {n: files for n in TRACKERS if name in (None, n) for files in [_files(source, n)] if files}
    if not by_tracker:
        where = ", ".join(place for n, t in TRACKERS.items() if name in (None, n) for place in t.places[:1])
        raise Invalid(f"{source} holds no tasks of {name or 'a tracker that is known here'}", hint=f"Looked for: {where}.")
    if len(by_tracker) > 1:
        raise Usage(f"{source} holds tasks of {' and of '.join(by_tracker)}", hint=f"Say which: --from {next(iter(by_tracker))}")
    return next(iter(by_tracker.items()))


def _files(folder: Path, name: str) -> list[Path]:
    for place in TRACKERS[name].places:
        path = folder / place
        if path.is_file():
            return [path]
        if path.is_dir() and not TRACKERS[name].lines:
            files = sorted(path.glob("*.json"))
            if files and (place != "." or _guess(files[0]) == name):
                return files
    return []


def _guess(file: Path) -> str:
    """The tracker by the fields of the first record, and by whether there are more."""
    problems: list[str] = []
    for lines in (True, False):
        texts = [text for _, text in islice(_records(file, lines, problems), 2)]
        several = len(texts) > 1 or file.suffix == ".jsonl"
        try:
            record = loads(texts[0] if texts else "")
        except Invalid:
            continue
        if isinstance(record, dict):
            for name, tracker in TRACKERS.items():
                if tracker.matches(record) and (tracker.lines or not (lines and several)):
                    return name
    raise Invalid(f"{file} is of no tracker that is known here", hint=f"Say which: --from {' or '.join(TRACKERS)}")


def _records(file: Path, lines: bool, problems: list[str]) -> Iterator[tuple[str, str]]:
    """(place, text) of every record."""
    try:
        with file.open("rb") as opened:
            number = 0
            while raw := opened.readline(_LARGEST) if lines else opened.read(_LARGEST):
                number += 1
                place = f"{file}:{number}" if lines else str(file)
                text = _text(raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw, place, problems)
                if text.strip():
                    yield place, text
                if len(raw) == _LARGEST:
                    problems.append(f"{place}: is larger than {_LARGEST // 2**20} MB")
                    return
            if not number and not lines:
                problems.append(f"{file}: is empty")
    except OSError as error:
        problems.append(f"{file}: cannot be read ({error.strerror or error})")


def _text(raw: bytes, place: str, problems: list[str]) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        problems.append(f"{place}: is not valid UTF-8 (byte {error.start})")
        return ""


def _item(name: str, place: str, text: str, problems: list[str]) -> Item | None:
    try:
        raw = loads(text, "the record")
    except Invalid as error:
        problems.append(f"{place}: {error}")
        return None
    if not isinstance(raw, dict):
        problems.append(f"{place}: is not an object")
        return None
    record = Record(name, place, raw)
    item = TRACKERS[name].item(record)
    problems += [f"{place}: {problem}" for problem in record.problems]
    return None if record.problems else item


def _duplicates(items: list[Item]) -> list[str]:
    first: dict[str, str] = {}
    problems = []
    for item in items:
        if item.id in first:
            problems.append(f"{item.place}: the id {item.id} stands in {first[item.id]} already")
        first.setdefault(item.id, item.place)
    return problems

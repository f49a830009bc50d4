"""Pictures: where each shape of a graph or a plot stands. Their words are in the templates, in HTML or in a title."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from ..core.model import RESOLVED
from ..display.terminal import one_line
from . import labels, view_models

# --- what waits for what ----------------------------------------------------------------------------------------------

#: A box, the room between two rows, how many stand side by side, and the width of all.
WIDE, HIGH, PITCH, SIDE, WIDTH = 136, 44, 78, 2, 304
ROOM = 15.5
#: Letters that are wider or narrower than most.
LETTERS = {**dict.fromkeys("mwMWOQ@%", 1.5), **dict.fromkeys("ABCDEGHKNRSTUVXYZ", 1.2), **dict.fromkeys("ijltfI.,:;|'!() ", 0.55)}


class Box(NamedTuple):
    x: int
    y: int
    key: str
    title: str
    look: str  #: done, here, wait, open
    label: str


class Graph(NamedTuple):
    boxes: list[Box]
    edges: list[tuple[str, int, int]]  #: a curve, and where its tip is
    height: int
    words: str
    more: bool


def graph(found: Mapping[str, Any]) -> Graph:
    here, tasks = found["task"], {t["key"]: t for t in found["tasks"]}
    needs: dict[str, list[str]] = {key: [] for key in tasks}
    for one, other in found["edges"]:
        needs[one].append(other)
    rows = _rows(needs)
    boxes: dict[str, Box] = {}
    for y, row in enumerate(rows):
        for x, key in enumerate(row):
            left = (WIDTH - WIDE) // 2 if len(row) == 1 else 8 + x * (WIDE + 16)
            boxes[key] = _box(tasks[key], left, 2 + y * PITCH, key == here)
    edges = [_edge(boxes[other], boxes[one]) for one, other in found["edges"]]
    return Graph(list(boxes.values()), edges, 4 + len(rows) * PITCH - (PITCH - HIGH), _told(here, tasks, needs), found["more"])


def _edge(a: Box, b: Box) -> tuple[str, int, int]:
    """From one box down to another; past the rows between them along the side."""
    x1, y1, x2, y2 = a.x + WIDE // 2, a.y + HIGH, b.x + WIDE // 2, b.y
    gap = PITCH - HIGH
    if y2 - y1 <= gap:
        bend = (y2 - y1) // 2
        return f"M{x1} {y1}C{x1} {y1 + bend} {x2} {y2 - bend} {x2} {y2 - 6}", x2, y2
    side, half = (3 if x1 + x2 <= WIDTH else WIDTH - 3), gap // 2
    out = f"M{x1} {y1}C{x1} {y1 + half} {side} {y1 + half} {side} {y1 + gap}"
    return f"{out}V{y2 - gap}C{side} {y2 - half} {x2} {y2 - half} {x2} {y2 - 6}", x2, y2


def _rows(needs: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Each below all that it waits for."""
    level: dict[str, int] = {}

    def depth(key: str, path: frozenset[str]) -> int:
        if key not in level:
            level[key] = 1 + max((depth(n, path | {key}) for n in needs[key] if n not in path), default=-1)
        return level[key]

    for key in needs:
        depth(key, frozenset())
    found: list[list[str]] = []
    for at in range(max(level.values(), default=0) + 1):
        row = [key for key in needs if level[key] == at]
        found += [row[i : i + SIDE] for i in range(0, len(row), SIDE)]
    return found


def _box(t: Mapping[str, Any], x: int, y: int, here: bool) -> Box:
    look = "here" if here else "done" if t["state"] in RESOLVED else "wait" if t["state"] == "blocked" else "open"
    title = one_line(t["title"])
    return Box(x, y, t["key"], _brief(title), look, f"{t['key']} {title}, {view_models.state(t['state']).label.lower()}")


def _brief(title: str) -> str:
    """As much of a title as a box has room for."""
    widths = list(accumulate(LETTERS.get(letter, 1.0 if letter.isascii() else 1.6) for letter in title))
    if not widths or widths[-1] <= ROOM:
        return title
    return f"{title[: sum(width <= ROOM - 1 for width in widths)].rstrip()}…"


def _told(here: str, tasks: Mapping[str, Any], needs: Mapping[str, Sequence[str]]) -> str:
    parts = []
    for key in sorted(needs, key=lambda key: (key != here, key)):
        if needs[key]:
            listed = [f"{n} ({view_models.state(tasks[n]['state']).label.lower()})" for n in needs[key]]
            parts.append(f"{key} depends on {_and(listed)}.")
    return " ".join(parts)


def _and(listed: Sequence[str]) -> str:
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} and {listed[-1]}"


# --- plots ------------------------------------------------------------------------------------------------------------


class Queue(NamedTuple):
    line: str
    area: str
    before: str
    marks: list[int]  #: the axis, from the top
    days: list[tuple[float, str]]  #: where, in percent, and which
    most: int
    words: str
    rows: list[tuple[str, int]]


#: The room in which the queue is drawn.
TALL, LONG = 150, 600


def queue(found: Sequence[Mapping[str, Any]], before: Sequence[int], days: int, most: int) -> Queue:
    """`most` waited at once, perhaps between two points of the line."""
    values = [int(point["waiting"]) for point in found]
    top = _round_up(max([*values, *before, most, 1]))
    line, last = _path(values, top), _path(before, top)
    marks = [top * n // 3 for n in (3, 2, 1, 0)] if top % 3 == 0 else [top, top // 2, 0]
    at = [(view_models.local(point["at"]), int(point["waiting"])) for point in found]
    ticks: list[tuple[float, str]] = []
    for i, (then, _) in enumerate(at[:-1]):
        new = i and (then.hour // 6 != at[i - 1][0].hour // 6 if days == 1 else then.date() != at[i - 1][0].date())
        if new:
            ticks.append(
                (
                    round(100 * i / (len(at) - 1), 2),
                    f"{then:%H}:00" if days == 1 else f"{then:%a}" if days <= 7 else f"{then.day} {then:%b}",
                )
            )
    keep = max(1, math.ceil(len(ticks) / 8))
    step = max(1, len(at) // 12)
    rows = [(f"{then:%a %H:%M}" if days <= 7 else f"{then.day} {then:%b} {then:%H:%M}", n) for then, n in at[::step]]
    told = f"Questions waiting: between {min(values, default=0)} and {most}, {values[-1] if values else 0} now"
    return Queue(line, f"{line}V{TALL}H0z", last, marks, ticks[::keep], most, told, rows)


def _path(values: Sequence[int], top: int) -> str:
    many = max(1, len(values) - 1)
    points = [f"{round(i * LONG / many, 1):g} {round(TALL - value * TALL / top, 1):g}" for i, value in enumerate(values)]
    return "M" + "L".join(points) if points else f"M0 {TALL}H{LONG}"


def _round_up(value: int) -> int:
    """A number that a scale may end with: 3, 6, 9, 12, 15, 30, 60, 90 …"""
    for ten in range(12):
        for n in (3, 6, 9, 12, 15, 21):
            if n * 10**ten >= value:
                return int(n * 10**ten)
    return value


class Bar(NamedTuple):
    name: str
    start: float
    width: float
    value: str
    bad: bool
    cells: tuple[str, ...]  #: of its row in the table


#: Seconds at the ends of the scale of answers, and what is written on it.
FAST, SLOW = 30.0, 36000.0
SCALE = ((60.0, "1 min"), (600.0, "10 min"), (3600.0, "1 h"), (21600.0, "6 h"))
ALERT = 0.2


def along(seconds: float) -> float:
    """Where a time stands on the scale, in percent."""
    share = math.log(min(max(seconds, FAST), SLOW) / FAST) / math.log(SLOW / FAST)
    return round(100 * share, 1)


def answers(kinds: Mapping[str, Mapping[str, Any]]) -> list[Bar]:
    found = []
    for kind, row in sorted(kinds.items(), key=lambda item: item[1]["answer_seconds"]["median"] or 0):
        times = row["answer_seconds"]
        if times["count"]:
            start, end = along(times["median"]), along(times["p90"])
            brief = view_models.about(times["median"])
            found.append(
                Bar(
                    kind.capitalize(),
                    start,
                    max(0.0, end - start),
                    brief,
                    False,
                    (brief, view_models.about(times["p90"]), str(times["count"])),
                )
            )
    return found


def longest(kinds: Mapping[str, Mapping[str, Any]]) -> float:
    """The share at the end of the scale: a bit more than what is worth a word."""
    return max([1.5 * ALERT, *(row["timeout_rate"] or 0 for row in kinds.values())])


def timeouts(kinds: Mapping[str, Mapping[str, Any]]) -> list[Bar]:
    found, end = [], longest(kinds)
    for kind, row in sorted(kinds.items(), key=lambda item: -(item[1]["timeout_rate"] or 0)):
        if row["timeout_rate"] is not None:
            rate = row["timeout_rate"]
            told = f"{round(100 * rate)} %"
            closed = row["answered"] + row["timeout"]
            found.append(
                Bar(
                    kind.capitalize(), 0, round(100 * rate / end, 1), told, rate > ALERT, (told, str(row["timeout"]), str(closed))
                )
            )
    return found


def per_task(spread: Sequence[int]) -> list[Bar]:
    most = max([*spread, 1])
    names = ("1 question", "2 questions", "3 questions", "4 questions", "5 or more")
    return [
        Bar(name, 0, round(100 * n / most, 1), labels.plural(n, "task"), False, (labels.plural(n, "task"),))
        for name, n in zip(names, spread, strict=True)
    ]

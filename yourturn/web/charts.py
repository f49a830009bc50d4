"""Coordinates of charts: the dependency graph of a task, and the plots of the statistics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from ..core.model import RESOLVED
from ..display.terminal import one_line
from . import labels, times, view_models

# --- dependency graph --------------------------------------------------------------------------------------------------

#: The size of a box, the distance of two rows, boxes in a row, and the width of the graph.
BOX_WIDTH, BOX_HEIGHT, ROW_HEIGHT, BOXES_PER_ROW, WIDTH = 136, 44, 78, 2, 304
#: The width of a box's title, in average letters.
TITLE_WIDTH = 15.5
#: Letters that are wider or narrower than the average.
LETTER_WIDTHS = {
    **dict.fromkeys("mwMWOQ@%", 1.5),
    **dict.fromkeys("ABCDEGHKNRSTUVXYZ", 1.2),
    **dict.fromkeys("ijltfI.,:;|'!() ", 0.55),
}


class Box(NamedTuple):
    x: int
    y: int
    key: str
    title: str
    style: str  #: done, here, wait, open
    label: str


class Graph(NamedTuple):
    boxes: list[Box]
    edges: list[tuple[str, int, int]]  #: a curve, and the position of its tip
    height: int
    text: str  #: the same facts for screen readers
    more: bool


def graph(reply: Mapping[str, Any]) -> Graph:
    here, tasks = reply["task"], {t["key"]: t for t in reply["tasks"]}
    needs: dict[str, list[str]] = {key: [] for key in tasks}
    for key, needed in reply["edges"]:
        needs[key].append(needed)
    rows = _rows(needs)
    boxes: dict[str, Box] = {}
    for y, row in enumerate(rows):
        for x, key in enumerate(row):
            left = (WIDTH - BOX_WIDTH) // 2 if len(row) == 1 else 8 + x * (BOX_WIDTH + 16)
            boxes[key] = _box(tasks[key], left, 2 + y * ROW_HEIGHT, key == here)
    edges = [_edge(boxes[needed], boxes[key]) for key, needed in reply["edges"]]
    height = 4 + len(rows) * ROW_HEIGHT - (ROW_HEIGHT - BOX_HEIGHT)
    return Graph(list(boxes.values()), edges, height, _graph_text(here, tasks, needs), reply["more"])


def _edge(a: Box, b: Box) -> tuple[str, int, int]:
    """A curve from one box down to another; along the side if there are rows between them."""
    x1, y1, x2, y2 = a.x + BOX_WIDTH // 2, a.y + BOX_HEIGHT, b.x + BOX_WIDTH // 2, b.y
    gap = ROW_HEIGHT - BOX_HEIGHT
    if y2 - y1 <= gap:
        bend = (y2 - y1) // 2
        return f"M{x1} {y1}C{x1} {y1 + bend} {x2} {y2 - bend} {x2} {y2 - 6}", x2, y2
    side, half = (3 if x1 + x2 <= WIDTH else WIDTH - 3), gap // 2
    out = f"M{x1} {y1}C{x1} {y1 + half} {side} {y1 + half} {side} {y1 + gap}"
    return f"{out}V{y2 - gap}C{side} {y2 - half} {x2} {y2 - half} {x2} {y2 - 6}", x2, y2


def _rows(needs: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """The rows of the graph: each task stands below all tasks that it depends on."""
    level: dict[str, int] = {}

    def depth(key: str, path: frozenset[str]) -> int:
        if key not in level:
            level[key] = 1 + max((depth(n, path | {key}) for n in needs[key] if n not in path), default=-1)
        return level[key]

    for key in needs:
        depth(key, frozenset())
    rows: list[list[str]] = []
    for number in range(max(level.values(), default=0) + 1):
        row = [key for key in needs if level[key] == number]
        rows += [row[i : i + BOXES_PER_ROW] for i in range(0, len(row), BOXES_PER_ROW)]
    return rows


def _box(t: Mapping[str, Any], x: int, y: int, here: bool) -> Box:
    style = "here" if here else "done" if t["state"] in RESOLVED else "wait" if t["state"] == "blocked" else "open"
    title = one_line(t["title"])
    return Box(x, y, t["key"], _shorten(title), style, f"{t['key']} {title}, {view_models.state(t['state']).label.lower()}")


def _shorten(title: str) -> str:
    """As much of a title as fits into a box."""
    widths = list(accumulate(LETTER_WIDTHS.get(letter, 1.0 if letter.isascii() else 1.6) for letter in title))
    if not widths or widths[-1] <= TITLE_WIDTH:
        return title
    return f"{title[: sum(width <= TITLE_WIDTH - 1 for width in widths)].rstrip()}…"


def _graph_text(here: str, tasks: Mapping[str, Any], needs: Mapping[str, Sequence[str]]) -> str:
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
    marks: list[int]  #: the labels of the vertical axis, from the top
    days: list[tuple[float, str]]  #: the horizontal axis: position in percent, and label
    peak: int
    text: str  #: the same facts for screen readers
    rows: list[tuple[str, int]]


#: The size of the plot of the queue.
PLOT_HEIGHT, PLOT_WIDTH = 150, 600


def queue(points: Sequence[Mapping[str, Any]], before: Sequence[int], days: int, peak: int) -> Queue:
    """`peak`: the most questions that waited at once, perhaps between two points of the line."""
    values = [int(point["waiting"]) for point in points]
    top = _round_up(max([*values, *before, peak, 1]))
    line = _path(values, top)
    marks = [top * n // 3 for n in (3, 2, 1, 0)] if top % 3 == 0 else [top, top // 2, 0]
    moments = [times.local_time(point["at"]) for point in points]
    step = max(1, len(points) // 12)
    rows = [
        (f"{then:%a %H:%M}" if days <= 7 else f"{then.day} {then:%b} {then:%H:%M}", n)
        for then, n in list(zip(moments, values, strict=True))[::step]
    ]
    text = f"Questions waiting: between {min(values, default=0)} and {peak}, {values[-1] if values else 0} now"
    return Queue(line, f"{line}V{PLOT_HEIGHT}H0z", _path(before, top), marks, _ticks(moments, days), peak, text, rows)


def _ticks(moments: Sequence[datetime], days: int) -> list[tuple[float, str]]:
    """Labels of the horizontal axis, at most eight: every six hours of one day, else the days."""
    ticks: list[tuple[float, str]] = []
    for i, (last, then) in enumerate(pairwise(moments[:-1]), start=1):
        if then.hour // 6 != last.hour // 6 if days == 1 else then.date() != last.date():
            label = f"{then:%H}:00" if days == 1 else f"{then:%a}" if days <= 7 else f"{then.day} {then:%b}"
            ticks.append((round(100 * i / (len(moments) - 1), 2), label))
    return ticks[:: max(1, math.ceil(len(ticks) / 8))]


def _path(values: Sequence[int], top: int) -> str:
    steps = max(1, len(values) - 1)
    points = [
        f"{round(i * PLOT_WIDTH / steps, 1):g} {round(PLOT_HEIGHT - value * PLOT_HEIGHT / top, 1):g}"
        for i, value in enumerate(values)
    ]
    return "M" + "L".join(points) if points else f"M0 {PLOT_HEIGHT}H{PLOT_WIDTH}"


def _round_up(value: int) -> int:
    """The end of the scale: 3, 6, 9, 12, 15, 30, 60, 90 …"""
    for exponent in range(12):
        for n in (3, 6, 9, 12, 15, 21):
            if n * 10**exponent >= value:
                return int(n * 10**exponent)
    return value


class Bar(NamedTuple):
    name: str
    start: float
    width: float
    value: str
    bad: bool
    cells: tuple[str, ...]  #: of its row in the plot's table


#: The ends of the (logarithmic) scale of answer times in seconds, and its labels.
MIN_SECONDS, MAX_SECONDS = 30.0, 36000.0
SCALE = ((60.0, "1 min"), (600.0, "10 min"), (3600.0, "1 h"), (21600.0, "6 h"))
#: The share of timeouts from which a kind is marked.
ALERT = 0.2


def position(seconds: float) -> float:
    """A time's position on the scale, in percent."""
    share = math.log(min(max(seconds, MIN_SECONDS), MAX_SECONDS) / MIN_SECONDS) / math.log(MAX_SECONDS / MIN_SECONDS)
    return round(100 * share, 1)


def answers(kinds: Mapping[str, Mapping[str, Any]]) -> list[Bar]:
    bars = []
    for kind, row in sorted(kinds.items(), key=lambda item: item[1]["answer_seconds"]["median"] or 0):
        seconds = row["answer_seconds"]
        if seconds["count"]:
            start, end = position(seconds["median"]), position(seconds["p90"])
            median = times.rough_duration(seconds["median"])
            cells = (median, times.rough_duration(seconds["p90"]), str(seconds["count"]))
            bars.append(Bar(kind.capitalize(), start, max(0.0, end - start), median, False, cells))
    return bars


def highest_rate(kinds: Mapping[str, Mapping[str, Any]]) -> float:
    """The end of the scale of timeout rates, a bit above ALERT at least."""
    return max([1.5 * ALERT, *(row["timeout_rate"] or 0 for row in kinds.values())])


def timeouts(kinds: Mapping[str, Mapping[str, Any]]) -> list[Bar]:
    bars, end = [], highest_rate(kinds)
    for kind, row in sorted(kinds.items(), key=lambda item: -(item[1]["timeout_rate"] or 0)):
        rate = row["timeout_rate"]
        if rate is not None:
            percent = f"{round(100 * rate)} %"
            cells = (percent, str(row["timeout"]), str(row["answered"] + row["timeout"]))
            bars.append(Bar(kind.capitalize(), 0, round(100 * rate / end, 1), percent, rate > ALERT, cells))
    return bars


def per_task(spread: Sequence[int]) -> list[Bar]:
    highest = max([*spread, 1])
    names = ("1 question", "2 questions", "3 questions", "4 questions", "5 or more")
    return [
        Bar(name, 0, round(100 * n / highest, 1), labels.plural(n, "task"), False, (labels.plural(n, "task"),))
        for name, n in zip(names, spread, strict=True)
    ]

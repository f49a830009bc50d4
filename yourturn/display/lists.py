"""Lists: the inbox, tasks, tasks that wait for a person, the tree of tasks."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from ..core.time_format import iso
from .commands import answer_commands, hint
from .labels import ICONS, WORDS, person, quoted
from .questions import context_lines, option_lines, timeout_effect
from .terminal import NARROW, ago, bold, cells, clock, columns, cut, left, one_line, pad, safe, width


def inbox_rows(items: list[dict[str, Any]]) -> list[list[str]]:
    return [
        [
            "  " + q["id"], q["kind"], _left_cell(q), q["task"], person(q["asked_by"]), one_line(q["text"]), _waits(q),
        ]
        for q in items
    ]  # fmt: skip


def _left_cell(q: dict[str, Any]) -> str:
    return left(q["timeout_at"]) if q["on_timeout"] != "keep" or q["timeout_at"] else "no limit"


def _waits(q: dict[str, Any]) -> str:
    if not q["blocking"]:
        return f"went on with {quoted(q['default'])}"
    return f"holds up {q['holds_up']}" if q.get("holds_up") else ""


#: The groups of the inbox, in order. A question runs out if its timeout is less than SOON away.
GROUPS = ("Running out", "Work is waiting", "No hurry")
SOON = 10 * 60_000_000


def inbox_groups(items: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Questions by urgency: see GROUPS."""
    return grouped(items, iso(time.time_ns() // 1000 + SOON))


def grouped(items: Iterable[dict[str, Any]], soon: str) -> dict[str, list[dict[str, Any]]]:
    """`soon`: questions that time out before it are running out. Times have one text form, so they compare as texts."""
    groups: dict[str, list[dict[str, Any]]] = {name: [] for name in GROUPS}
    for q in items:
        if q["timeout_at"] is not None and q["on_timeout"] != "keep" and q["timeout_at"] < soon:
            groups["Running out"].append(q)
        else:
            groups["Work is waiting" if q["blocking"] and q["on_timeout"] != "accept" else "No hurry"].append(q)
    groups["Running out"].sort(key=lambda q: q["timeout_at"])
    groups["Work is waiting"].sort(key=lambda q: -(q.get("holds_up") or 0))
    return groups


def more(shown: int, total: int | None, line: str) -> str:
    """The last line of a cut list; `total` is None if it is not known."""
    return f"{shown:,} of {total:,} shown; more: {line}" if total else f"The first {shown:,} are shown; more: {line}"


def inbox(items: list[dict[str, Any]]) -> list[str]:
    if not items:
        return ["It's not your turn. Nothing waits for you.", "Next: turn list"]
    lines: list[str] = []
    groups = {name: group for name, group in inbox_groups(items).items() if group}
    rows = {name: inbox_rows(group) for name, group in groups.items()}
    narrow = width() < NARROW
    table = iter(columns([row[:4] if narrow else row for group in rows.values() for row in group], last=None if narrow else 5))
    for name, group in rows.items():
        lines.append(bold(name))
        for row in group:
            lines.append(next(table))
            if narrow:
                lines.append(cut(f"      {row[5]}", width()))
    first = next(q for group in groups.values() for q in group)
    name = str(first["id"])
    return [*lines, hint(f"turn show {name}", *answer_commands(first, name))]


def task_rows(tasks: list[dict[str, Any]]) -> list[list[str]]:
    """Rows of a table. The ids from another tracker are a column if any task has one."""
    old = any(t["external_id"] for t in tasks)
    return [
        [
            f"{pad(ICONS[t['state']], 2)} {t['key']}", f"P{t['priority']}", state_of(t), *([cut(old_id(t), 24)] if old else []),
            one_line(t["title"]), _tail(t),
        ]
        for t in tasks
    ]  # fmt: skip


def old_id(t: dict[str, Any]) -> str:
    """The id of an imported task in its tracker, as commands accept it: ticks:201."""
    tracker = (t["extra"] or {}).get("source")
    return one_line(f"{tracker}:{t['external_id']}" if tracker else t["external_id"]) if t["external_id"] else ""


def state_of(t: dict[str, Any]) -> str:
    return f"{WORDS[t['state']]} ({t['awaiting']})" if t["awaiting"] else WORDS[t["state"]]


def _tail(t: dict[str, Any]) -> str:
    if t["claim"]:
        return f"{safe(t['claim']['worker'])}, {left(t['claim']['expires_at'])}"
    if t["blocked_by"]:
        shown = ", ".join(t["blocked_by"][:4])
        return f"waits for {shown}" + ("" if len(t["blocked_by"]) <= 4 else " …")
    if t["wake_at"]:
        return f"until {clock(t['wake_at'])}"
    return one_line(t["reason"]) if t["reason"] else ""


def tasks(shown: list[dict[str, Any]], empty: str = "No tasks.", next: str = 'turn create "What is to be done"') -> list[str]:
    if not shown:
        return [empty, f"Next: {next}"]
    rows = task_rows(shown)
    return columns(rows, last=len(rows[0]) - 2)


def awaiting(waiting: list[dict[str, Any]]) -> list[str]:
    """Tasks that wait for a person, with their open questions."""
    if not waiting:
        return ["Nothing awaits a person."]
    lines = ["Awaiting human input:", ""]
    room = max(cells(t["key"]) for t in waiting) + 3
    for t in waiting:
        lines.append(f"{pad(t['key'], room)}P{t['priority']}  {pad(t['complexity'], 6)}  {bold(one_line(t['title']))}")
        for q in t["questions"]:
            if q["status"] == "pending" and q["blocking"]:
                more = f" (until {clock(q['timeout_at'])}, {timeout_effect(q)})" if q["timeout_at"] else ""
                lines.append(" " * room + f"❓ {one_line(q['text'])}")
                lines += [" " * room + line for line in option_lines(q)]
                about = one_line(" ".join(context_lines(q["context"])))
                if about:
                    lines.append(" " * room + f"Context: {cut(about, max(40, min(width(), 120) - room - 9))}")
                lines.append(" " * room + f"Asked: {ago(q['asked_at'])} by {person(q['asked_by'])}, {q['kind']}, {q['id']}{more}")
        lines.append("")
    key = waiting[0]["key"]
    first = next(q for q in waiting[0]["questions"] if q["status"] == "pending" and q["blocking"])
    return [*lines, hint(answer_commands(first, key)[0], f"turn show {key}")]


def tree(nodes: list[dict[str, Any]]) -> list[str]:
    lines: list[str] = []

    def walk(node: dict[str, Any], lead: str, branch: str, below: str) -> None:
        title = cut(one_line(node["title"]), max(20, width() - len(lead + branch) - 30))
        script = f" ({safe(node['workflow'])})" if node["workflow"] else ""
        lines.append(f"{lead}{branch}{node['key']} [{node['state']}] {ICONS[node['state']]} {title}{script}")
        inner = lead + below
        asked = [q for q in node["questions"] if q["status"] == "pending"]
        kids = node["children"]
        for i, q in enumerate(asked):
            last = i == len(asked) - 1 and not kids
            lines.append(
                f"{inner}{'└── ' if last else '├── '}Question: {cut(one_line(q['text']), max(20, width() - len(inner) - 16))}"
            )
        for i, kid in enumerate(kids):
            last = i == len(kids) - 1
            walk(kid, inner, "└── " if last else "├── ", "    " if last else "│   ")

    for node in nodes:
        walk(node, "", "", "")
    return lines or ["No tasks."]

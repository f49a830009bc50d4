"""Tasks of another tracker, brought in through the door: all of them in one transaction, or none.

Each becomes one `import` move. A child comes after its parent; otherwise the oldest comes first, so that keys follow age. A
task can wait for one that comes later: it is told so (`waits`), and the later one ties the knot. When all are in, the
system pays what it owes to anybody, as after every move.

A task that was imported before is known by its old id, and is never touched again: the same record is counted as unchanged,
another one is reported. What a task refers to, and what is not there, counts as closed; it is reported too, and the name
stays in the task's `extra`. So is a tie of a closed task that is part of a circle: it holds nothing up any more, and the rest
of the project comes in without it. A circle of open tasks is refused.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import pairwise
from typing import Any, NamedTuple

from ..core.actions import say
from ..core.decide import decide, due, may_ever
from ..core.errors import Invalid
from ..core.model import ENDED, RESOLVED, REVIEW
from ..core.references import QUESTION
from ..db.unit_of_work import UnitOfWork
from ..desk.desk import Desk
from ..desk.move import Moves
from .trackers import read, refusal
from .trackers.record import Item

#: Records that were made for one run there, or to be copied.
PASSING = ("wisp", "template")


class _Undo(Exception):
    """Leaves the transaction without a trace, with what it would have done."""


class Known(NamedTuple):
    """A task that is here already."""

    id: int
    key: str
    state: str
    extra: str | None


def bring(desk: Desk, source: str, tracker: str | None, project: str, dry_run: bool = False) -> dict[str, Any]:
    may_ever("import", desk.who)
    name, items = read(source, tracker)
    items, problems = _unwound(_free(items))
    for item in items:
        try:
            say("import", desk.who, **_args(item))
        except Invalid as error:
            problems.append(f"{item.place}: {error}")
    if problems:
        raise refusal(source, problems)

    def move(tx: UnitOfWork) -> dict[str, Any]:
        found = {"format": name, "project": project, "found": len(items), **_Intake(desk, tx, source, project, items).run()}
        if dry_run:
            raise _Undo(found)
        return {**found, "dry_run": False}

    try:
        return desk.transact("import", move)
    except _Undo as undone:
        return {**undone.args[0], "dry_run": True}


def _args(item: Item) -> dict[str, Any]:
    return {name: value for name, value in item.args.items() if name not in ("blocked", "aside")}


def _unwound(items: list[Item]) -> tuple[list[Item], list[str]]:
    """The tasks without circles of closed ones; and the circles that are left, in words."""
    by_id = {item.id: item for item in items}
    while circles := _circles(list(by_id.values())):
        cuts = [cut for circle in circles if (cut := _cut(by_id, circle))]
        if not cuts:
            return list(by_id.values()), [f"{by_id[c[0]].place}: a circle: {' waits for '.join(c)}" for c in circles]
        for one in cuts:
            by_id[one.id] = one
    return list(by_id.values()), []


def _free(items: list[Item]) -> list[Item]:
    """The tasks, without waiting for records that no run will ever close: what waits for one would wait for good."""
    aside = {item.id: item.args["aside"] for item in items if item.args.get("aside") in PASSING}

    def free(item: Item) -> Item:
        dropped = [need for need in item.needs if need in aside] if item.id not in aside else []
        if not dropped:
            return item
        names = ", ".join(f"{need} ({aside[need]})" for need in dropped)
        words = f"waited for {names}, not work: comes without waiting for that"
        return _without(item, words, needs=[need for need in item.needs if need not in dropped])

    return [free(item) for item in items] if aside else items


def _cut(by_id: dict[str, Item], circle: list[str]) -> Item | None:
    """A task of the circle without a tie that holds nothing up: what waits, or what it waits for, is closed."""
    for waiter, needed in pairwise(circle):
        one, other = by_id[waiter], by_id[needed]
        over = [item.args["state"] in RESOLVED for item in (one, other)]
        said = f"is part of a circle ({' waits for '.join(circle)})"
        if any(over) and needed in one.needs:
            return _without(one, f"{said}: comes without waiting for {needed}", needs=[n for n in one.needs if n != needed])
        if over[1] and other.parent == waiter:
            return _without(other, f"{said}: comes without its parent {waiter}", parent=None)
    return None


def _without(item: Item, what: str, **less: Any) -> Item:
    kept = {"blocked_by": item.needs} if "needs" in less else {"parent": item.parent}
    extra = item.args["extra"]
    args = {**item.args, "extra": {**extra, "fields": {**kept, **extra["fields"]}}}
    return item._replace(args=args, warnings=[*item.warnings, what], **less)


def _circles(items: list[Item]) -> list[list[str]]:
    """Tasks that would wait for themselves: by needs, or as a parent that waits for its children."""
    by_id = {item.id: item for item in items}
    waits: dict[str, list[str]] = {item.id: [need for need in item.needs if need in by_id] for item in items}
    for item in items:
        if item.parent in waits:
            waits[item.parent].append(item.id)
    found, done = list[list[str]](), set[str]()
    for start in waits:
        path: dict[str, Any] = {}
        stack = [(start, iter(waits[start]))] if start not in done else []
        if stack:
            path[start] = None
        while stack:
            here, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                stack.pop()
                del path[here]
                done.add(here)
            elif following in path:
                names = list(path)
                found.append([*names[names.index(following) :], following])
            elif following not in done:
                path[following] = None
                stack.append((following, iter(waits[following])))
    return found


class _Intake:
    """One import, inside its transaction."""

    def __init__(self, desk: Desk, tx: UnitOfWork, source: str, project: str, items: list[Item]) -> None:
        self.desk, self.tx, self.project = desk, tx, project
        tx.store.lock_graph(tx.run, tx.workspace)
        row = tx.run(tx.q["project_for_update"], {"workspace": tx.workspace, "key": project}).fetchone()
        if row is None:
            tx.cases.no_project(project)
        self.project_id, self.now = row[0], desk.now(int(row[-1]))
        self.items = {item.id: item for item in items}
        self.known = {name: known for name in self._names() if (known := self._known(name))}
        self.new = {name: item for name, item in self.items.items() if name not in self.known}
        self.shadowed = self._shadowed(source)
        self.parents = {name: self._parent(item) for name, item in self.new.items()}
        self.children: dict[str, list[str]] = {}
        self.waiting: dict[str, list[str]] = {}
        for name, item in self.new.items():
            for shelf, others in ((self.children, [self.parents[name]]), (self.waiting, item.needs)):
                for other in others:
                    shelf.setdefault(str(other), []).append(name)
        self.ids: dict[str, int] = {name: known.id for name, known in self.known.items()}
        self.warnings: list[dict[str, str]] = []
        self.touched: set[int] = set()

    def _shadowed(self, source: str) -> set[str]:
        """Old ids that are keys or question numbers here to the letter, and so mean these. A first import is refused for keys."""
        rows = self.tx.run(self.tx.q["project_keys"], {"workspace": self.tx.workspace}).fetchall()
        key = re.compile(f"(?:{'|'.join(row[0] for row in rows)})-[1-9][0-9]*")
        keys = [item for item in self.new.values() if key.fullmatch(item.id)]
        if keys and len(self.new) == len(self.items):
            words = f"{keys[0].place}: the id {keys[0].id} would be the key of another task here"
            more = f", and so would {len(keys) - 1:,} more" if keys[1:] else ""
            raise refusal(source, [words + more], "turn project create OLD, then turn import … --project OLD")
        return {item.id for item in keys} | {name for name in self.new if name[0] == "Q" and QUESTION.fullmatch(name)}

    def run(self) -> dict[str, Any]:
        made = [self._make(item) for item in self._ordered()]
        Moves(self.tx, self.desk.now).settle(self.touched, self.now)
        rows = {row.id: row for row in self.tx.refs([task for _, task in made])} if made else {}
        differ = [name for name in self.items if name in self.known and not self._same(self.items[name])]
        return {
            "imported": len(made),
            "unchanged": len(self.items) - len(made) - len(differ),
            "differ": [{"id": name, "key": self.known[name].key} for name in differ],
            "tasks": [{"id": name, "key": rows[task].key, "state": rows[task].state} for name, task in made],
            "aside": dict(Counter(aside for name, _ in made if (aside := self.items[name].args.get("aside")))),
            "warnings": self.warnings,
        }

    def _names(self) -> set[str]:
        """Everybody who is imported or referred to."""
        return {n for i in self.items.values() for n in (i.id, *i.needs, *([i.parent] if i.parent else []))}

    def _known(self, name: str) -> Known | None:
        row = self.tx.run(self.tx.q["imported"], {"project": self.project_id, "external": name}).fetchone()
        return Known._make(row) if row else None

    def _same(self, item: Item) -> bool:
        return bool(json.loads(self.known[item.id].extra or "{}").get("digest") == item.args["extra"]["digest"])

    def _parent(self, item: Item) -> str | None:
        """Its parent, if it is there and can have this child: what has ended takes no open ones."""
        if item.parent in self.known:
            shut = self.known[item.parent].state in (*ENDED, REVIEW)
        elif item.parent in self.new:
            shut = self.new[item.parent].args["state"] in ENDED
        else:
            return None
        return None if shut and item.args["state"] not in ENDED else item.parent

    def _ordered(self) -> list[Item]:
        """Parents first, then by age."""
        found: dict[str, Item] = {}
        for item in sorted(self.new.values(), key=lambda i: (i.args.get("created_at") or self.now, i.id)):
            line: list[Item] = []
            here: str | None = item.id
            while here in self.new and here not in found:
                line.append(self.new[here])
                here = self.parents[here]
            found.update({i.id: i for i in reversed(line)})
        return list(found.values())

    def _open(self, name: str) -> bool:
        """Would somebody who needs it have to wait?"""
        state = self.known[name].state if name in self.known else self.new[name].args["state"]
        return state not in RESOLVED

    def _make(self, item: Item) -> tuple[str, int]:
        args, parent = _args(item), self.parents[item.id]
        self._tell(item, parent, args)
        needs = [name for name in item.needs if name in self.ids or name in self.new]
        waits = any(self._open(name) for name in (*needs, *self.children.get(item.id, ())))
        if item.args.get("blocked") and not waits:
            args["questions"] = [*args.get("questions", ()), _stuck(item)]
        if (args.get("wake_at") or self.now + 1) <= self.now:
            args |= {"wake_at": None, "state": "ready"}
        action = say("import", self.desk.who, project=self.project, **args, waits=waits)
        above = self.ids[parent] if parent else None
        there = [self.ids[name] for name in needs if name in self.ids]
        action.args["parent"] = above
        action.args["depends_on"] = there
        action.args["dependents"] = [self.ids[n] for n in self.waiting.get(item.id, ()) if n in self.ids]
        if parent in self.known:
            action.args["circle"] = [ref for ref in self.tx.refs(there) if self.tx.cases.reaches(ref.id, self.known[parent].id)]
        case, _ = self.tx.new_case(self.project, above, there)
        decision = self.tx.save(decide(case, action, self.now))
        self.ids[item.id] = decision.task.id
        self.touched |= set(decision.touch)
        if due(decision.case, self.now) is not None:  # or so it looks now: whom it waits for may come later
            self.touched.add(decision.task.id)
        return item.id, decision.task.id

    def _tell(self, item: Item, parent: str | None, args: dict[str, Any]) -> None:
        """What could not be kept as it was, in words; and in `extra`, as it was."""
        said, fields = list(item.warnings), dict[str, Any]()
        if item.id in self.shadowed:
            said.append(f"can mean something else here: say {args['extra']['source']}:{item.id}")
        missing = [name for name in item.needs if name not in self.items and name not in self.known]
        if missing:
            said.append(f"waited for {', '.join(missing)}, not in this import: counts as closed")
            fields["blocked_by"] = missing
        if item.parent and parent is None:
            there = item.parent in self.items or item.parent in self.known
            said.append(f"its parent {item.parent} {'has ended' if there else 'is not in this import'}: it has none here")
            fields["parent"] = item.parent
        if fields:
            args["extra"] = {**args["extra"], "fields": {**fields, **args["extra"]["fields"]}}
        self.warnings += [{"id": item.id, "place": item.place, "what": what} for what in said]


def _stuck(item: Item) -> dict[str, Any]:
    source = item.args["extra"]["source"]
    text = f"{item.id} was blocked in {source}, and nothing that came with it says by what. How should it go on?"
    return {"kind": "escalation", "reason": "blocked_external", "text": text, "author": "system"}

"""Imports the tasks of another tracker, all in one transaction.

Each task is one `import` move. Parents come before their children, otherwise older tasks first, so that keys follow age. If a
task waits for one that comes later, it is created as blocked (`waits`), and the later one adds the dependency. Due moves are
made at the end, as after every move.

A task that was imported before is recognized by its old id and never changed again: an equal record counts as unchanged, a
different one is reported. A reference to a missing task counts as closed; it is reported, and the name is kept in the task's
`extra`. So is a dependency of a closed task that is part of a cycle, which is dropped. A cycle of open tasks is refused.
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

#: Temporary records and templates.
TEMPORARY = ("wisp", "template")


class _DryRun(Exception):
    """Ends a dry run, with its result."""


class Existing(NamedTuple):
    """A task that was imported before."""

    id: int
    key: str
    state: str
    extra: str | None


def import_tasks(desk: Desk, source: str, tracker: str | None, project: str, dry_run: bool = False) -> dict[str, Any]:
    may_ever("import", desk.who)
    name, items = read(source, tracker)
    items, problems = _without_closed_cycles(_without_temporary_needs(items))
    for item in items:
        try:
            say("import", desk.who, **_args(item))
        except Invalid as error:
            problems.append(f"{item.place}: {error}")
    if problems:
        raise refusal(source, problems)

    def move(tx: UnitOfWork) -> dict[str, Any]:
        result = {"format": name, "project": project, "found": len(items), **_Import(desk, tx, source, project, items).run()}
        if dry_run:
            raise _DryRun(result)
        return {**result, "dry_run": False}

    try:
        return desk.transact("import", move)
    except _DryRun as rollback:
        return {**rollback.args[0], "dry_run": True}


def _args(item: Item) -> dict[str, Any]:
    return {name: value for name, value in item.args.items() if name not in ("blocked", "aside")}


def _without_closed_cycles(items: list[Item]) -> tuple[list[Item], list[str]]:
    """The tasks without cycles of closed ones, and an error for each cycle that is left."""
    by_id = {item.id: item for item in items}
    while cycles := _cycles(list(by_id.values())):
        cuts = [cut for cycle in cycles if (cut := _cut(by_id, cycle))]
        if not cuts:
            return list(by_id.values()), [f"{by_id[c[0]].place}: a circle: {' waits for '.join(c)}" for c in cycles]
        for item in cuts:
            by_id[item.id] = item
    return list(by_id.values()), []


def _without_temporary_needs(items: list[Item]) -> list[Item]:
    """Drop dependencies on temporary records and templates: nothing would ever close these."""
    aside = {item.id: item.args["aside"] for item in items if item.args.get("aside") in TEMPORARY}

    def free(item: Item) -> Item:
        dropped = [need for need in item.needs if need in aside] if item.id not in aside else []
        if not dropped:
            return item
        names = ", ".join(f"{need} ({aside[need]})" for need in dropped)
        words = f"waited for {names}, not work: comes without waiting for that"
        return _without(item, words, needs=[need for need in item.needs if need not in dropped])

    return [free(item) for item in items] if aside else items


def _cut(by_id: dict[str, Item], cycle: list[str]) -> Item | None:
    """A task of the cycle without one dependency of a closed task, or None if all are open."""
    for waiter, needed in pairwise(cycle):
        task, need = by_id[waiter], by_id[needed]
        over = [item.args["state"] in RESOLVED for item in (task, need)]
        why = f"is part of a circle ({' waits for '.join(cycle)})"
        if any(over) and needed in task.needs:
            return _without(task, f"{why}: comes without waiting for {needed}", needs=[n for n in task.needs if n != needed])
        if over[1] and need.parent == waiter:
            return _without(need, f"{why}: comes without its parent {waiter}", parent=None)
    return None


def _without(item: Item, what: str, **less: Any) -> Item:
    kept = {"blocked_by": item.needs} if "needs" in less else {"parent": item.parent}
    extra = item.args["extra"]
    args = {**item.args, "extra": {**extra, "fields": {**kept, **extra["fields"]}}}
    return item._replace(args=args, warnings=[*item.warnings, what], **less)


def _cycles(items: list[Item]) -> list[list[str]]:
    """Cycles of dependencies; a parent waits for its children."""
    by_id = {item.id: item for item in items}
    waits: dict[str, list[str]] = {item.id: [need for need in item.needs if need in by_id] for item in items}
    for item in items:
        if item.parent in waits:
            waits[item.parent].append(item.id)
    cycles, done = list[list[str]](), set[str]()
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
                cycles.append([*names[names.index(following) :], following])
            elif following not in done:
                path[following] = None
                stack.append((following, iter(waits[following])))
    return cycles


class _Import:
    """One import in its transaction."""

    def __init__(self, desk: Desk, tx: UnitOfWork, source: str, project: str, items: list[Item]) -> None:
        self.desk, self.tx, self.project = desk, tx, project
        tx.store.lock_graph(tx.run, tx.workspace)
        row = tx.run(tx.q["project_for_update"], {"workspace": tx.workspace, "key": project}).fetchone()
        if row is None:
            tx.cases.no_project(project)
        self.project_id, self.now = row[0], desk.now(int(row[-1]))
        self.items = {item.id: item for item in items}
        self.existing = {name: task for name in self._names() if (task := self._existing(name))}
        self.new = {name: item for name, item in self.items.items() if name not in self.existing}
        self.shadowed = self._shadowed(source)
        self.parents = {name: self._parent(item) for name, item in self.new.items()}
        self.children: dict[str, list[str]] = {}
        self.waiting: dict[str, list[str]] = {}
        for name, item in self.new.items():
            for index, others in ((self.children, [self.parents[name]]), (self.waiting, item.needs)):
                for other in others:
                    index.setdefault(str(other), []).append(name)
        self.ids: dict[str, int] = {name: task.id for name, task in self.existing.items()}
        self.warnings: list[dict[str, str]] = []
        self.touched: set[int] = set()

    def _shadowed(self, source: str) -> set[str]:
        """Old ids that are also keys or question numbers here, which take precedence. Refuses a first import with such keys."""
        rows = self.tx.run(self.tx.q["project_keys"], {"workspace": self.tx.workspace}).fetchall()
        key = re.compile(f"(?:{'|'.join(row[0] for row in rows)})-[1-9][0-9]*")
        keys = [item for item in self.new.values() if key.fullmatch(item.id)]
        if keys and len(self.new) == len(self.items):
            words = f"{keys[0].place}: the id {keys[0].id} would be the key of another task here"
            more = f", and so would {len(keys) - 1:,} more" if keys[1:] else ""
            raise refusal(source, [words + more], "turn project create OLD, then turn import … --project OLD")
        return {item.id for item in keys} | {name for name in self.new if name[0] == "Q" and QUESTION.fullmatch(name)}

    def run(self) -> dict[str, Any]:
        created = [self._create(item) for item in self._ordered()]
        Moves(self.tx, self.desk.now).settle(self.touched, self.now)
        rows = {row.id: row for row in self.tx.refs([task for _, task in created])} if created else {}
        differ = [name for name in self.items if name in self.existing and not self._same(self.items[name])]
        return {
            "imported": len(created),
            "unchanged": len(self.items) - len(created) - len(differ),
            "differ": [{"id": name, "key": self.existing[name].key} for name in differ],
            "tasks": [{"id": name, "key": rows[task].key, "state": rows[task].state} for name, task in created],
            "aside": dict(Counter(aside for name, _ in created if (aside := self.items[name].args.get("aside")))),
            "warnings": self.warnings,
        }

    def _names(self) -> set[str]:
        """All tasks that are imported or referred to."""
        return {n for i in self.items.values() for n in (i.id, *i.needs, *([i.parent] if i.parent else []))}

    def _existing(self, name: str) -> Existing | None:
        row = self.tx.run(self.tx.q["imported"], {"project": self.project_id, "external": name}).fetchone()
        return Existing._make(row) if row else None

    def _same(self, item: Item) -> bool:
        return bool(json.loads(self.existing[item.id].extra or "{}").get("digest") == item.args["extra"]["digest"])

    def _parent(self, item: Item) -> str | None:
        """The parent, if it exists and can have this child: an ended parent takes no open ones."""
        if item.parent in self.existing:
            ended = self.existing[item.parent].state in (*ENDED, REVIEW)
        elif item.parent in self.new:
            ended = self.new[item.parent].args["state"] in ENDED
        else:
            return None
        return None if ended and item.args["state"] not in ENDED else item.parent

    def _ordered(self) -> list[Item]:
        """Parents first, then by age."""
        ordered: dict[str, Item] = {}
        for item in sorted(self.new.values(), key=lambda i: (i.args.get("created_at") or self.now, i.id)):
            line: list[Item] = []
            here: str | None = item.id
            while here in self.new and here not in ordered:
                line.append(self.new[here])
                here = self.parents[here]
            ordered.update({i.id: i for i in reversed(line)})
        return list(ordered.values())

    def _open(self, name: str) -> bool:
        """True if its dependents have to wait."""
        state = self.existing[name].state if name in self.existing else self.new[name].args["state"]
        return state not in RESOLVED

    def _create(self, item: Item) -> tuple[str, int]:
        args, parent = _args(item), self.parents[item.id]
        self._add_warnings(item, parent, args)
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
        if parent in self.existing:
            goal = self.existing[parent].id
            action.args["circle"] = [ref for ref in self.tx.refs(there) if self.tx.cases.reaches(ref.id, goal)]
        case, _ = self.tx.new_case(self.project, above, there)
        decision = self.tx.save(decide(case, action, self.now))
        self.ids[item.id] = decision.task.id
        self.touched |= set(decision.touch)
        if due(decision.case, self.now) is not None:  # or not: what it waits for may come later
            self.touched.add(decision.task.id)
        return item.id, decision.task.id

    def _add_warnings(self, item: Item, parent: str | None, args: dict[str, Any]) -> None:
        """Report what an import changes, and keep the original in `extra`."""
        warnings, fields = list(item.warnings), dict[str, Any]()
        if item.id in self.shadowed:
            warnings.append(f"can mean something else here: say {args['extra']['source']}:{item.id}")
        missing = [name for name in item.needs if name not in self.items and name not in self.existing]
        if missing:
            warnings.append(f"waited for {', '.join(missing)}, not in this import: counts as closed")
            fields["blocked_by"] = missing
        if item.parent and parent is None:
            there = item.parent in self.items or item.parent in self.existing
            warnings.append(f"its parent {item.parent} {'has ended' if there else 'is not in this import'}: it has none here")
            fields["parent"] = item.parent
        if fields:
            args["extra"] = {**args["extra"], "fields": {**fields, **args["extra"]["fields"]}}
        self.warnings += [{"id": item.id, "place": item.place, "what": what} for what in warnings]


def _stuck(item: Item) -> dict[str, Any]:
    source = item.args["extra"]["source"]
    text = f"{item.id} was blocked in {source}, and nothing that came with it says by what. How should it go on?"
    return {"kind": "escalation", "reason": "blocked_external", "text": text, "author": "system"}

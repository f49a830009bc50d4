"""`turn watch`: a run as it happens. When its agent has finished with a person somewhere on this machine, it goes on here."""

from __future__ import annotations

import json
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

from .parser import connect
from .terminal import Terminal

LOOK = 0.5  #: seconds between two looks at the agent's signal, which has to stand still for one
PATIENCE = 1.0  #: seconds that a ready run is left to the workers


def watch_args(p: Any) -> None:
    from .work import agent_args

    p.add_argument("what", nargs="?", metavar="KEY", help="a run or a task; without it, everything")
    p.add_argument("--only-look", action="store_true", help="read no signals, and work on nothing")
    agent_args(p)


def watch(a: Namespace) -> int:
    with connect(a) as desk:
        if a.what is None:
            return _everything(a, desk)
        found = desk.show(a.what)
        return Watch(a, desk, found["task"] if "status" in found else found["key"]).go()


def _everything(a: Namespace, desk: Any) -> int:
    from .. import display

    for event in desk.watch(desk.desk_cursor()):
        print(json.dumps(event) if a.json else "\n".join(display.events([event])), flush=True)
    return 0


class Watch:
    def __init__(self, a: Namespace, desk: Any, key: str) -> None:
        self.a, self.desk, self.key = a, desk, key
        self.term = Terminal(a)
        self.cursor = desk.desk_cursor()
        self.seen: dict[str, Any] = {}  #: question -> how its agent's signal looked
        self.told: set[Any] = set()
        self.ready_since: float | None = None
        self.worked = -1  #: the version that was worked on here, and is still the same: it was told to stop

    def go(self) -> int:
        from ..display.runs import run_page

        task = self.desk.show(self.key)
        if not self.a.json:
            self.term.say(*run_page(task, self.key)[:-2])
        while True:
            self._events()
            task = self.desk.show(self.key)
            if task["ended_at"]:
                return self._ended(task)
            if not self.a.only_look and self.desk.who.is_person and task["workflow"]:
                self._look(task)
                self._work(task)
            self.desk.sleep_until_due(LOOK)

    def _events(self) -> None:
        from ..display.runs import event_lines

        for event in self.desk.watch(self.cursor, 0.0):
            self.cursor = event["cursor"]
            if event["task"] != self.key:
                continue
            if self.a.json:
                print(json.dumps(event), flush=True)
            elif lines := event_lines(event):
                self.term.say(*lines)

    def _ended(self, task: dict[str, Any]) -> int:
        from ..core.model import COUNTS
        from ..display.runs import run_page

        self._events()
        if not self.a.json:
            self.term.say("", *run_page(task, self.key))
        return 0 if task["state"] in COUNTS else 1

    def _look(self, task: dict[str, Any]) -> None:
        """Who writes a signal may not be through with it: it counts when it has stood still for a moment."""
        from ..core.errors import AlreadyClosed
        from ..display.run_facts import open_questions
        from ..worker import continue_session
        from .runs import heard

        for q in open_questions(task):
            location = continue_session.location_of(task, q)
            mark = continue_session.NewSignal(location).mark()
            before, self.seen[q["id"]] = self.seen.get(q["id"]), mark
            if mark is None or mark != before or mark in self.told:
                continue
            try:
                if heard(self.term, self.desk, location) is None:
                    self.told.add(mark)
            except AlreadyClosed:
                continue

    def _work(self, task: dict[str, Any]) -> None:
        """A run that can go on is the workers'; if none takes it, and its script is here, it goes on here."""
        if task["version"] == self.worked or not self._could(task):
            self.ready_since = None
            return
        now = time.monotonic()
        self.ready_since = self.ready_since or now
        if now - self.ready_since < PATIENCE:
            return
        from .run import worked_on

        self.ready_since, self.worked = None, worked_on(self.a, self.desk, self.key)["version"]
        if not self.a.json:
            self.cursor = self.desk.desk_cursor()  # it was said while it happened

    def _could(self, task: dict[str, Any]) -> bool:
        from ..flow import script

        if task["claim"] or task["awaiting"] or task["wake_at"] or task["blocked_by"]:
            return False
        return script.read(task["workflow"], script.root(Path.cwd())) is not None

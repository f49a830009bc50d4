"""`turn watch`: prints a run's events, applies new signals of its agents, and continues the run if no worker does."""

from __future__ import annotations

import json
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

from .parser import connect
from .terminal import Terminal

POLL_INTERVAL = 0.5  #: seconds; a signal file counts when it did not change for one interval
WORKER_HEAD_START = 1.0  #: seconds for which a ready run is left to other workers


def watch_args(p: Any) -> None:
    from .work import agent_args

    p.add_argument("what", nargs="?", metavar="KEY", help="a run or a task (default: all)")
    p.add_argument("--only-look", action="store_true", help="only print: apply no signals, continue nothing")
    agent_args(p)


def watch(a: Namespace) -> int:
    with connect(a) as desk:
        if a.what is None:
            return _watch_all(a, desk)
        row = desk.show(a.what)
        return Watch(a, desk, row["task"] if "status" in row else row["key"]).run()


def _watch_all(a: Namespace, desk: Any) -> int:
    from .. import display

    for event in desk.watch(desk.desk_cursor()):
        print(json.dumps(event) if a.json else "\n".join(display.events([event])), flush=True)
    return 0


class Watch:
    def __init__(self, a: Namespace, desk: Any, key: str) -> None:
        self.a, self.desk, self.key = a, desk, key
        self.term = Terminal(a)
        self.cursor = desk.desk_cursor()
        self.marks: dict[str, Any] = {}  #: question -> the mark of its agent's signal file at the last poll
        self.reported: set[Any] = set()  #: marks of signals that close nothing
        self.ready_since: float | None = None
        self.worked = -1  #: the version of the run when work on it here ended

    def run(self) -> int:
        from ..display.runs import run_page

        task = self.desk.show(self.key)
        if not self.a.json:
            self.term.print(*run_page(task, self.key)[:-2])
        while True:
            self._print_events()
            task = self.desk.show(self.key)
            if task["ended_at"]:
                return self._finish(task)
            if not self.a.only_look and self.desk.who.is_person and task["workflow"]:
                self._apply_signals(task)
                self._continue(task)
            self.desk.sleep_until_due(POLL_INTERVAL)

    def _print_events(self) -> None:
        from ..display.runs import event_lines

        for event in self.desk.watch(self.cursor, 0.0):
            self.cursor = event["cursor"]
            if event["task"] != self.key:
                continue
            if self.a.json:
                print(json.dumps(event), flush=True)
            elif lines := event_lines(event):
                self.term.print(*lines)

    def _finish(self, task: dict[str, Any]) -> int:
        from ..core.model import COUNTS
        from ..display.runs import run_page

        self._print_events()
        if not self.a.json:
            self.term.print("", *run_page(task, self.key))
        return 0 if task["state"] in COUNTS else 1

    def _apply_signals(self, task: dict[str, Any]) -> None:
        """A signal file may still be being written, so it counts only if it is the same at two polls."""
        from ..core.errors import AlreadyClosed
        from ..display.run_facts import open_questions
        from ..worker import continue_session
        from .runs import apply_signal

        for q in open_questions(task):
            location = continue_session.location_of(task, q)
            mark = continue_session.NewSignal(location).mark()
            before, self.marks[q["id"]] = self.marks.get(q["id"]), mark
            if mark is None or mark != before or mark in self.reported:
                continue
            try:
                if apply_signal(self.term, self.desk, location) is None:
                    self.reported.add(mark)
            except AlreadyClosed:
                continue

    def _continue(self, task: dict[str, Any]) -> None:
        """Works on the run here if it is ready, its script is here, and no worker has claimed it in the meantime."""
        if task["version"] == self.worked or not self._can_continue(task):
            self.ready_since = None
            return
        now = time.monotonic()
        self.ready_since = self.ready_since or now
        if now - self.ready_since < WORKER_HEAD_START:
            return
        from .run import work_on

        self.ready_since, self.worked = None, work_on(self.a, self.desk, self.key)["version"]
        if not self.a.json:
            self.cursor = self.desk.desk_cursor()  # the worker has printed these events already

    def _can_continue(self, task: dict[str, Any]) -> bool:
        from ..flow import script

        if task["claim"] or task["awaiting"] or task["wake_at"] or task["blocked_by"]:
            return False
        return script.read(task["workflow"], script.root(Path.cwd())) is not None

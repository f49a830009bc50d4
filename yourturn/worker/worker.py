"""The worker: take a task, let an agent work on it, say what came of it, take the next. It never waits for a person.

One thread takes tasks, one per running agent works on them, one beats for all claims and carries what agents say to the desk.
A task's trouble stays with its task (sitting.py). The worker itself ends when it is told to, when a budget is spent, or, with
`drain`, when nothing is left to take.

It speaks as the agents that it runs, never as the person who started it: so nothing that it does on an agent's word can be
more than the agent's own word.
"""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import Busy, IllegalMove, NotAllowed, NotFound, Precondition, StoreTrouble, Usage, YourturnError
from ..core.model import COUNTS, Who
from .agents.base import Agent, turn_command
from .budget import Budget
from .git import worktrees
from .progress import Progress
from .registration import Presence

if TYPE_CHECKING:
    from ..client import Client
    from .claim_holder import Holder, Result

LEASE, BEAT, CARRY = "90s", 30.0, 0.3
_NOTHING_LEFT = "nothing is left to take"


@dataclass
class Worker:
    desk: Client  #: of whoever started it
    agents: Mapping[str, Agent]
    progress: Progress
    address: str  #: of the database, for the agents
    root: Path
    logs: Path
    name: str = field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}")
    host: str = field(default_factory=socket.gethostname)
    agent: str | None = None  #: the only one; else the task's role says which
    default: str = ""
    epic: str | None = None
    only: str | None = None  #: nothing but this task or run
    find: Callable[[str], Agent] | None = None  #: agents that a script names, beyond those above; raises YourturnError
    parallel: int = 1
    drain: bool = False
    in_place: bool = False
    turns: int = 5  #: without a signal, before a person is asked
    time_limit: float | None = 3600.0
    silence_limit: float | None = 900.0
    budget: Budget = field(default_factory=Budget)
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def __post_init__(self) -> None:
        self._sittings: dict[str, tuple[Holder, threading.Thread]] = {}
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._begun = False
        self._beside: list[threading.Thread] = []
        self._presence: Presence | None = None
        self.idle = _NOTHING_LEFT
        self.ended_code = ""  #: why it ended, for programs: unable, budget, stopped, drained, held_up
        self._looked_on = ""  #: the worker that has the only one that is to be taken
        self.next = ""  #: what the person can do about it
        self.trouble = ""  #: why none of its agents can work
        self._unable: set[str] = set()
        self._ended = threading.Event()
        self._look_at = 0.0
        self._pause = 0.005
        self._tokens: dict[str, str] = {}
        self._token_names: list[str] = []
        self._unmerged: dict[str, tuple[worktrees.Workplace, bool]] = {}  #: and whether it is committed
        self.results: deque[tuple[str, Result]] = deque(maxlen=1000)  #: the last ones; it may work for months
        self.counts: Counter[str] = Counter()
        if self.in_place and self.parallel > 1:
            raise Usage("One checkout has room for one agent", hint="Leave --parallel or --in-place out.")

    # --- the loop -----------------------------------------------------------------------------------------------------

    def run(self) -> str:
        """Work until there is a reason to end; says which."""
        with ExitStack() as stack:
            stack.callback(self._leave)
            if self.only is None:  # who works on one task only is no worker for others
                self._appear()
            if not worktrees.room(self.root):
                self.in_place, self.parallel = True, 1
            self._beside = [threading.Thread(target=run, daemon=True) for run in (self._beat, self._carry, self._listen)]
            for thread in self._beside:
                thread.start()
            self._look_back()
            while True:
                spent = self.budget.over()
                over = self.trouble or spent or ("it was told to stop" if self._stop.is_set() else "")
                if self.budget.late():
                    self.stop()
                self._bury()
                if over and not self._sittings:
                    self.ended_code = "unable" if self.trouble else "budget" if spent else "stopped"
                    return over
                taken = None if over or len(self._sittings) >= self.parallel else self._take()
                if taken:
                    continue
                if self.drain and taken is False and not self._sittings:
                    self.ended_code = "drained" if self.idle == _NOTHING_LEFT else "held_up"
                    return self.idle
                self._merge_what_was_accepted()
                left = self.budget.left()
                self._wake.wait(min(5.0, 5.0 if left is None else left + 0.01))
                self._wake.clear()

    def stop(self) -> None:
        """Take nothing more; agents end their turn and go on later."""
        self._stop.set()
        for sitting, _ in list(self._sittings.values()):
            sitting.stop.set()
        self._wake.set()

    def unable(self, agent: str, why: str) -> None:
        """An agent cannot work here at all. Where that goes for all of them, the next task would only ask the same again."""
        self._unable.add(agent)
        if self._unable >= set(self.agents):
            self.trouble = why.splitlines()[0]

    def _take(self) -> bool | None:
        """Whether there was one; None: nobody knows just now."""
        try:
            got = self._next(self._as(self.agent or self.default))
            elsewhere = got is None and self.only is not None and self._elsewhere()
        except StoreTrouble as trouble:
            if not self._begun and not isinstance(trouble, Busy):
                raise
            self.progress.say("", f"{trouble}; it tries again")
            return None
        self._begun = True
        self._pause = 0.005 if got is not None else min(0.05, 2 * self._pause)  # on a busy desk it does not look all the time
        if got is None:
            return None if elsewhere else False
        self.budget.spend(tasks=1)
        sitting, name = self._seated(got)
        if self._stop.is_set():
            sitting.stop.set()
        thread = threading.Thread(target=self._sit, args=(sitting,), daemon=True)
        self._sittings[sitting.key] = (sitting, thread)
        self.progress.begin(sitting.key, name)
        again = got["task"]["workflow"] and got["claim"]["epoch"] > 1
        self.progress.say(sitting.key, f"{name} {'goes on' if again else 'begins'}: {got['task']['title']}")
        thread.start()
        return True

    def _elsewhere(self) -> bool:
        """The only one that is to be taken is in other hands: what comes of it is waited for."""
        task = self.desk.show(str(self.only))
        if task["claim"] and self._looked_on != task["claim"]["worker"]:
            self._looked_on = task["claim"]["worker"]
            self.progress.say(task["key"], f"{self._looked_on} works on it; it goes on here when that one leaves it")
        return bool(task["claim"])

    def _seated(self, got: dict[str, Any]) -> tuple[Holder, str]:
        """Who works on it, and the name."""
        script = got["task"]["workflow"]
        if script:
            from ..flow.script import called
            from .run_session import Running

            return Running(self, self._as(called(script)), got), str(script)
        from .task_session import Sitting

        agent = self.agents[self._agent_of(got["task"])]
        return Sitting(self, self._as(agent.name), got, agent), agent.name

    def _next(self, desk: Client) -> dict[str, Any] | None:
        """Unfinished work in the checkout itself is finished before anything else is begun there."""
        begun = worktrees.unfinished(self.root) if self.in_place else None
        if self.in_place and begun is None and (refused := worktrees.refused(self.root)):
            if not self._begun:
                raise refused
            self.idle = str(refused)
            return None
        if begun is None and self.only is None and not self.agents:
            return self._next_run(desk)
        if begun is None and self.only is None:
            return desk.claim_next(self.name, epic=self.epic, role=self.agent, host=self.host, lease=LEASE, runs=True)
        try:
            return desk.claim(self.only or begun, self.name, lease=LEASE)  # type: ignore[arg-type]
        except (IllegalMove, Precondition, NotFound) as no:
            if self.only is not None:
                self.idle = str(no)
                return None
            self.idle = f"the checkout holds unfinished work of {begun}, which cannot go on now ({no})"
            self.next = f"turn show {begun}"
            return None

    def _next_run(self, desk: Client) -> dict[str, Any] | None:
        """There is no agent that could take a task."""
        for run in desk.ready(only_runs=True, epic=self.epic, limit=50):
            try:
                return desk.claim(run["key"], self.name, lease=LEASE)
            except (IllegalMove, Precondition):
                continue  # somebody was faster
        return None

    def named(self, name: str) -> Agent:
        """The agent that a script names."""
        known = self.agents.get(name)
        if known is not None:
            return known
        if self.find is not None:
            return self.find(name)
        raise NotFound(f"There is no agent {name[:80]!a}", reason=f"this worker has: {', '.join(self.agents) or 'none'}")

    def _agent_of(self, task: dict[str, Any]) -> str:
        return self.agent or (task["role"] if task["role"] in self.agents else self.default)

    def _sit(self, sitting: Holder) -> None:
        result = sitting.run()
        self.progress.end(sitting.key)
        said = result.words if result.words.startswith(("waits", "sleeps")) else f"{result.what}: {result.words}"
        self.progress.say(sitting.key, said)
        self.results.append((sitting.key, result))
        self.counts["waiting" if result.person else result.what] += 1
        self._wake.set()

    def _bury(self) -> None:
        for key, (_, thread) in list(self._sittings.items()):
            if not thread.is_alive():
                thread.join()
                del self._sittings[key]

    def _as(self, agent: str) -> Client:
        """The desk as that agent; who already is one stays who it is."""
        if not self.desk.who.is_person:
            return self.desk
        return self.desk.as_(Who(f"agent:{agent}", "agent", direct=True))

    # --- what goes on beside it -----------------------------------------------------------------------------------------

    def _appear(self) -> None:
        """Tell who looks that there is a worker, also while it has nothing to do."""
        self._presence = Presence(
            self._as(self.agent or self.default), self.name, BEAT, host=self.host, agents=list(self.agents), role=self.agent,
            epic=self.epic, runs=True, parallel=self.parallel,
        )  # fmt: skip
        self._presence.begin()

    def _every(self, seconds: float, what: Callable[[Holder], None], *also: Callable[[], None]) -> None:
        while not self._ended.wait(seconds):
            todo: list[tuple[str, Callable[[], None]]] = [("", one) for one in also]
            todo += [(sitting.key, partial(what, sitting)) for sitting, _ in list(self._sittings.values())]
            for key, do in todo:
                try:
                    do()
                except Exception as error:  # one sitting's trouble is not the others'
                    self.progress.say(key, f"{type(error).__name__}: {error}")

    def _beat(self) -> None:
        self._every(BEAT, lambda sitting: sitting.beat(), *([self._presence.beat] if self._presence else []))

    def _carry(self) -> None:
        self._every(CARRY, lambda sitting: sitting.minutes.flush())

    def _listen(self) -> None:
        """Somebody changed something: there may be work."""
        while not self._ended.is_set():
            try:
                if self.desk.desk.wait(0.25):
                    self._wake.set()
                    self._ended.wait(self._pause)
            except Exception:
                self._ended.wait(1.0)

    # --- finished work ------------------------------------------------------------------------------------------------

    def finished(self, key: str, place: worktrees.Workplace, task: dict[str, Any]) -> None:
        """Committed and said. It is merged, if the project wants that, when the task is done: perhaps a person looks first."""
        self._unmerged[key] = (place, True)
        try:
            self._merge(key, task)
        except YourturnError as error:
            self.progress.say(key, f"not merged: {error}")

    def waits(self, key: str, place: worktrees.Workplace) -> None:
        """A person is asked. Their yes may end the task (an approval, say), and nobody else would commit its work then."""
        if place.own:
            self._unmerged[key] = (place, False)

    def _look_back(self) -> None:
        """Work of this machine that was left for a person when another worker ended; their yes may have come since."""
        for tree in () if self.in_place else worktrees.worktrees(self.root):
            try:
                if tree["task"] and tree["changes"] and self.desk.show(tree["task"])["branch"] == tree["branch"]:
                    self.waits(tree["task"], worktrees.prepare(self.root, tree["task"], tree["branch"]))
            except YourturnError:
                continue
        self._merge_what_was_accepted()

    def _merge_what_was_accepted(self) -> None:
        """However many wait, looking at them takes a fifth of the time at most."""
        began = time.monotonic()
        if began < self._look_at:
            return
        for key in list(self._unmerged):
            try:
                self._merge(key, self.desk.show(key))
            except YourturnError:
                continue
        now = time.monotonic()
        self._look_at = now + 4 * (now - began)

    def _merge(self, key: str, task: dict[str, Any]) -> None:
        if not task["ended_at"]:
            return
        place, committed = self._unmerged.pop(key, (None, False))
        if place is None or place.repo is None or task["state"] not in COUNTS:  # what was abandoned is nobody's to merge
            return
        if not committed and task["host"] != self.host:  # others went on with it elsewhere: what lies here is older
            return
        project = key.rpartition("-")[0]
        how = next(p["settings"]["merge"] for p in self.desk.projects() if p["key"] == project)
        if how == "none" and committed:
            return
        try:
            self.progress.say(key, worktrees.finish(place, f"{key}: {task['title']}\n", merge=how)["words"])
        except YourturnError as error:
            self.progress.say(key, f"not merged: {error}")
            self._as(self.agent or self.default).note(
                key, f"Its work on {place.branch} was not {'merged' if committed else 'committed'}: {error}"
            )

    # --- what agents are given ------------------------------------------------------------------------------------------

    def environment(self, agent: Agent) -> dict[str, str]:
        env = {name: value for name, value in self.env.items() if name not in _OURS}
        env["YOURTURN_URL" if self.address.startswith("http") else "YOURTURN_DB"] = self.address
        env["YOURTURN_TOKEN"] = self._token(agent.name)
        if agent.gate:
            import json

            env["YOURTURN_GATED"] = json.dumps(list(agent.gate))
        if shutil.which("turn", path=env.get("PATH")) is None:
            env["PATH"] = os.pathsep.join(filter(None, (env.get("PATH"), str(Path(turn_command()[0]).parent))))
        return env

    def _token(self, agent: str) -> str:
        """A credential of its own, for as long as this worker lives."""
        if not self.desk.who.is_person and "run" not in (self.desk.who.scopes or ()):
            return self.env.get("YOURTURN_TOKEN", "")
        if agent not in self._tokens:
            name = f"worker-{self.name}-{agent}-{os.urandom(3).hex()}"
            try:
                made = self.desk.create_token(name, "agent", actor=f"agent:{agent}", expires="30d")
            except NotAllowed:
                return ""
            self._tokens[agent] = made["token"]
            self._token_names.append(name)
        return self._tokens[agent]

    def _leave(self) -> None:
        """Nobody may be at the desk any more when it is closed."""
        self.stop()
        for _, thread in self._sittings.values():
            thread.join()
        self._ended.set()
        for thread in self._beside:
            thread.join()
        if self._presence:
            self._presence.end()
        for name in self._token_names:
            try:
                self.desk.revoke_token(name)
            except YourturnError:
                continue
        self.progress.close()


_OURS = {
    "YOURTURN_DB", "YOURTURN_TOKEN", "YOURTURN_TASK", "YOURTURN_AGENT", "YOURTURN_CLAIM", "YOURTURN_PROJECT", "YOURTURN_SESSION",
    "YOURTURN_SIGNALS", "YOURTURN_STEP", "YOURTURN_GATE", "YOURTURN_GATED", "YOURTURN_FAULT", "YOURTURN_URL", "YOURTURN_WORKER",
}  # fmt: skip

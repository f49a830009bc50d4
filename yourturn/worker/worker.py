"""The worker: claims tasks, runs agents on them, records the outcomes. It never waits for a person.

One thread claims tasks, each running agent has one, one renews all claims and one sends the agents' output to the desk. An error
in a session ends that session only (claim_holder.py). The worker ends when it is stopped, when a budget is spent, or, with
`drain`, when there is nothing left to claim.

On the desk it acts as the agents that it runs, never as the person who started it, so an agent can do nothing through its worker
that it could not do itself.
"""

from __future__ import annotations

import json
import os
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
from .agents.base import Agent, agent_environment
from .budget import Budget
from .git import worktrees
from .progress import ProgressDisplay
from .registration import Registration

if TYPE_CHECKING:
    from ..client import Client
    from .claim_holder import AgentSession, ClaimHolder, SessionResult

LEASE, HEARTBEAT_INTERVAL, OUTPUT_INTERVAL = "90s", 30.0, 0.3
_NOTHING_LEFT = "no task is left to take"


@dataclass
class Worker:
    desk: Client  #: of the person or token that started it
    agents: Mapping[str, Agent]
    progress: ProgressDisplay
    address: str  #: of the database, for the agents
    root: Path
    logs: Path
    name: str = field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}")
    host: str = field(default_factory=socket.gethostname)
    agent: str | None = None  #: the only agent; without it the task's role decides
    default: str = ""
    epic: str | None = None
    only: str | None = None  #: the only task or run to claim
    find: Callable[[str], Agent] | None = None  #: further agents that scripts may name; raises YourturnError
    parallel: int = 1
    drain: bool = False
    in_place: bool = False
    turns: int = 5  #: without a signal, before a person is asked
    time_limit: float | None = 3600.0
    silence_limit: float | None = 900.0
    budget: Budget = field(default_factory=Budget)
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def __post_init__(self) -> None:
        self._sessions: dict[str, tuple[AgentSession, threading.Thread]] = {}
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._ended = threading.Event()
        self._connected = False  #: the desk has answered at least once
        self._threads: list[threading.Thread] = []
        self._registration: Registration | None = None
        self.idle = _NOTHING_LEFT
        self.ended_code = ""  #: why it ended, for programs: unable, budget, stopped, drained, held_up
        self.next = ""  #: the command that helps, if something is in the way
        self.trouble = ""  #: why none of its agents can work
        self._unable: set[str] = set()
        self._other_holder = ""  #: the worker that holds the `only` task
        self._next_delivery = 0.0
        self._pause = 0.005
        self._tokens: dict[str, str] = {}
        self._token_names: list[str] = []
        self._undelivered: dict[str, tuple[worktrees.Workplace, bool]] = {}  #: the place, and whether it is committed
        self.results: deque[tuple[str, SessionResult]] = deque(maxlen=1000)  #: bounded, because a worker may run for months
        self.counts: Counter[str] = Counter()
        if self.in_place and self.parallel > 1:
            raise Usage("One checkout has room for one agent", hint="Leave --parallel or --in-place out.")

    # --- the loop -----------------------------------------------------------------------------------------------------

    def run(self) -> str:
        """Work until there is a reason to end; returns the reason."""
        with ExitStack() as stack:
            stack.callback(self._close)
            if self.only is None:  # a worker for one task is no worker for others
                self._register()
            if not worktrees.supports_parallel(self.root):
                self.in_place, self.parallel = True, 1
            loops = (self._send_heartbeats, self._send_output, self._listen)
            self._threads = [threading.Thread(target=loop, daemon=True) for loop in loops]
            for thread in self._threads:
                thread.start()
            self._recover_undelivered()
            while True:
                spent = self.budget.over()
                over = self.trouble or spent or ("it was stopped" if self._stop.is_set() else "")
                if self.budget.late():
                    self.stop()
                self._remove_ended_sessions()
                if over and not self._sessions:
                    self.ended_code = "unable" if self.trouble else "budget" if spent else "stopped"
                    return over
                started = None if over or len(self._sessions) >= self.parallel else self._start_next()
                if started:
                    continue
                if self.drain and started is False and not self._sessions:
                    self.ended_code = "drained" if self.idle == _NOTHING_LEFT else "held_up"
                    return self.idle
                self._deliver_accepted()
                remaining = self.budget.left()
                self._wake.wait(min(5.0, 5.0 if remaining is None else remaining + 0.01))
                self._wake.clear()

    def stop(self) -> None:
        """Claim nothing more; running agents end their turn, and a later worker goes on."""
        self._stop.set()
        for session, _ in list(self._sessions.values()):
            session.holder.stop.set()
        self._wake.set()

    def agent_unable(self, agent: str, why: str) -> None:
        """An agent cannot work here at all. If that holds for all, the worker ends: the next task would fail the same way."""
        self._unable.add(agent)
        if self._unable >= set(self.agents):
            self.trouble = why.splitlines()[0]

    def _start_next(self) -> bool | None:
        """Claim a task and start its session. False: there is none; None: unknown at the moment."""
        try:
            claimed = self._claim_next(self.desk_of(self.agent or self.default))
            elsewhere = claimed is None and self.only is not None and self._held_elsewhere()
        except StoreTrouble as trouble:
            if not self._connected and not isinstance(trouble, Busy):
                raise
            self.progress.report("", f"{trouble}; it tries again")
            return None
        self._connected = True
        self._pause = 0.005 if claimed is not None else min(0.05, 2 * self._pause)  # do not poll a busy desk all the time
        if claimed is None:
            return None if elsewhere else False
        self.budget.spend(tasks=1)
        session, name = self._session(claimed)
        if self._stop.is_set():
            session.holder.stop.set()
        key = session.holder.key
        thread = threading.Thread(target=self._run_session, args=(session,), daemon=True)
        self._sessions[key] = (session, thread)
        self.progress.begin(key, name)
        resumed = claimed["task"]["workflow"] and claimed["claim"]["epoch"] > 1
        self.progress.report(key, f"{name} {'goes on' if resumed else 'begins'}: {claimed['task']['title']}")
        thread.start()
        return True

    def _held_elsewhere(self) -> bool:
        """True if another worker holds the `only` task."""
        task = self.desk.show(str(self.only))
        if task["claim"] and self._other_holder != task["claim"]["worker"]:
            self._other_holder = task["claim"]["worker"]
            self.progress.report(task["key"], f"{self._other_holder} works on it; this worker continues when the claim ends")
        return bool(task["claim"])

    def _session(self, claimed: dict[str, Any]) -> tuple[AgentSession, str]:
        """The session, and the name of the agent or script."""
        # late: each of them loads what the other does not need, and takes 30 ms
        script = claimed["task"]["workflow"]
        if script:
            from ..flow.script import actor_name
            from .run_session import RunSession

            return RunSession(self, self.desk_of(actor_name(script)), claimed), str(script)
        from .task_session import TaskSession

        role = claimed["task"]["role"]
        agent = self.agents[self.agent or (role if role in self.agents else self.default)]
        return TaskSession(self, self.desk_of(agent.name), claimed, agent), agent.name

    def _claim_next(self, desk: Client) -> dict[str, Any] | None:
        """In the checkout itself, unfinished work comes first."""
        unfinished = worktrees.unfinished(self.root) if self.in_place else None
        if self.in_place and unfinished is None and (refused := worktrees.refused(self.root)):
            if not self._connected:
                raise refused
            self.idle = str(refused)
            return None
        if unfinished is None and self.only is None and not self.agents:
            return self._claim_next_run(desk)
        if unfinished is None and self.only is None:
            return desk.claim_next(self.name, epic=self.epic, role=self.agent, host=self.host, lease=LEASE, runs=True)
        try:
            return desk.claim(self.only or unfinished, self.name, lease=LEASE)  # type: ignore[arg-type]
        except (IllegalMove, Precondition, NotFound) as error:
            if self.only is not None:
                self.idle = str(error)
                return None
            self.idle = f"the checkout holds unfinished work of {unfinished}, which cannot go on now ({error})"
            self.next = f"turn show {unfinished}"
            return None

    def _claim_next_run(self, desk: Client) -> dict[str, Any] | None:
        """Without agents a worker takes runs only."""
        for run in desk.ready(only_runs=True, epic=self.epic, limit=50):
            try:
                return desk.claim(run["key"], self.name, lease=LEASE)
            except (IllegalMove, Precondition):
                continue  # another worker was faster
        return None

    def named_agent(self, name: str) -> Agent:
        """The agent that a script names."""
        agent = self.agents.get(name)
        if agent is not None:
            return agent
        if self.find is not None:
            return self.find(name)
        raise NotFound(f"There is no agent {name[:80]!a}", reason=f"this worker has: {', '.join(self.agents) or 'none'}")

    def _run_session(self, session: AgentSession) -> None:
        key, result = session.holder.key, session.run()
        self.progress.end(key)
        waits = result.words.startswith(("waits", "sleeps"))
        self.progress.report(key, result.words if waits else f"{result.what}: {result.words}")
        self.results.append((key, result))
        self.counts["waiting" if result.person else result.what] += 1
        self._wake.set()

    def _remove_ended_sessions(self) -> None:
        for key, (_, thread) in list(self._sessions.items()):
            if not thread.is_alive():
                thread.join()
                del self._sessions[key]

    def desk_of(self, agent: str) -> Client:
        """The desk as that agent. A worker that was started by an agent's token keeps that identity."""
        if not self.desk.who.is_person:
            return self.desk
        return self.desk.as_(Who(f"agent:{agent}", "agent", direct=True))

    # --- background threads -------------------------------------------------------------------------------------------

    def _register(self) -> None:
        self._registration = Registration(
            self.desk_of(self.agent or self.default), self.name, HEARTBEAT_INTERVAL, host=self.host, agents=list(self.agents),
            role=self.agent, epic=self.epic, runs=True, parallel=self.parallel,
        )  # fmt: skip
        self._registration.begin()

    def _every(self, seconds: float, do: Callable[[ClaimHolder], None], *also: Callable[[], None]) -> None:
        """Call `also`, and `do` for each session, until the worker ends."""
        while not self._ended.wait(seconds):
            calls: list[tuple[str, Callable[[], None]]] = [("", call) for call in also]
            calls += [(key, partial(do, session.holder)) for key, (session, _) in list(self._sessions.items())]
            for key, call in calls:
                try:
                    call()
                except Exception as error:  # an error concerns one session only
                    self.progress.report(key, f"{type(error).__name__}: {error}")

    def _send_heartbeats(self) -> None:
        also = [self._registration.renew] if self._registration else []
        self._every(HEARTBEAT_INTERVAL, lambda holder: holder.renew(), *also)

    def _send_output(self) -> None:
        self._every(OUTPUT_INTERVAL, lambda holder: holder.output.flush())

    def _listen(self) -> None:
        """Wake the loop when the desk changes: there may be work."""
        while not self._ended.is_set():
            try:
                if self.desk.desk.wait(0.25):
                    self._wake.set()
                    self._ended.wait(self._pause)
            except Exception:
                self._ended.wait(1.0)

    # --- delivery of finished work ------------------------------------------------------------------------------------

    def deliver(self, key: str, place: worktrees.Workplace, task: dict[str, Any]) -> None:
        """Merge committed work as the project's settings say; not before the task is done, because a person may review it."""
        self._undelivered[key] = (place, True)
        try:
            self._deliver(key, task)
        except YourturnError as error:
            self.progress.report(key, f"not merged: {error}")

    def deliver_later(self, key: str, place: worktrees.Workplace) -> None:
        """A person is asked. Their yes may end the task (an approval does); then this worker commits and merges the work."""
        if place.own:
            self._undelivered[key] = (place, False)

    def _recover_undelivered(self) -> None:
        """Uncommitted work that an earlier worker on this machine left for a person, who may have accepted it since."""
        for tree in () if self.in_place else worktrees.worktrees(self.root):
            try:
                if tree["task"] and tree["changes"] and self.desk.show(tree["task"])["branch"] == tree["branch"]:
                    self.deliver_later(tree["task"], worktrees.prepare(self.root, tree["task"], tree["branch"]))
            except YourturnError:
                continue
        self._deliver_accepted()

    def _deliver_accepted(self) -> None:
        """Check all undelivered tasks. The pauses between two checks are four times as long as a check."""
        began = time.monotonic()
        if began < self._next_delivery:
            return
        for key in list(self._undelivered):
            try:
                self._deliver(key, self.desk.show(key))
            except YourturnError:
                continue
        now = time.monotonic()
        self._next_delivery = now + 4 * (now - began)

    def _deliver(self, key: str, task: dict[str, Any]) -> None:
        if not task["ended_at"]:
            return
        place, committed = self._undelivered.pop(key, (None, False))
        if place is None or place.repo is None or task["state"] not in COUNTS:  # abandoned work is not merged
            return
        if not committed and task["host"] != self.host:  # another machine went on with it: this folder is outdated
            return
        project = key.rpartition("-")[0]
        merge = next(p["settings"]["merge"] for p in self.desk.projects() if p["key"] == project)
        if merge == "none" and committed:
            return
        try:
            self.progress.report(key, worktrees.finish(place, f"{key}: {task['title']}\n", merge=merge)["words"])
        except YourturnError as error:
            self.progress.report(key, f"not merged: {error}")
            self.desk_of(self.agent or self.default).note(
                key, f"Its work on {place.branch} was not {'merged' if committed else 'committed'}: {error}"
            )

    # --- the environment of agents ------------------------------------------------------------------------------------

    def environment(self, agent: Agent) -> dict[str, str]:
        env = agent_environment(self.env)
        env["YOURTURN_URL" if self.address.startswith("http") else "YOURTURN_DB"] = self.address
        env["YOURTURN_TOKEN"] = self._token(agent.name)
        if agent.gate:
            env["YOURTURN_GATED"] = json.dumps(list(agent.gate))
        return env

    def _token(self, agent: str) -> str:
        """A token of the agent's own, revoked when the worker ends."""
        if not self.desk.who.is_person and "run" not in (self.desk.who.scopes or ()):
            return self.env.get("YOURTURN_TOKEN", "")
        if agent not in self._tokens:
            name = f"worker-{self.name}-{agent}-{os.urandom(3).hex()}"
            try:
                reply = self.desk.create_token(name, "agent", actor=f"agent:{agent}", expires="30d")
            except NotAllowed:
                return ""
            self._tokens[agent] = reply["token"]
            self._token_names.append(name)
        return self._tokens[agent]

    def _close(self) -> None:
        """Stop all threads: none may use the desk after it is closed."""
        self.stop()
        for _, thread in self._sessions.values():
            thread.join()
        self._ended.set()
        for thread in self._threads:
            thread.join()
        if self._registration:
            self._registration.end()
        for name in self._token_names:
            try:
                self.desk.revoke_token(name)
            except YourturnError:
                continue
        self.progress.close()

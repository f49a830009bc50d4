"""One claimed run, from its claim to where it waits or ends: what task_session.py is for a task.

flow/engine.py replays the script, in a thread of its own; this is its host. Agents of the script's steps work in the run's
folder, one after another (step_session.py); those of a parallel() each in a folder of their own (git/branches.py). A run whose
script calls no agent touches no folder.

    done            the work is committed, and merged as the project's settings say
    failed, stuck   the work is stored under a ref that is reported, and restored if the run is resumed
    anything else   the work stays in the folder, and a patch of it on the desk for other machines

A worker that stops leaves a script at its next call. A script that does not come to a call is interrupted, or in the end
abandoned (script_interrupt.py).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from ..core.errors import ClaimLost, StoreTrouble, YourturnError
from ..flow import script
from ..flow.agent_step import Turn
from ..flow.engine import Ended, Engine
from ..flow.journal import Entry, current_branch
from ..flow.results import Halted, Interrupted, Stuck, Suspended
from . import script_interrupt
from .agents.base import Text
from .claim_holder import ClaimHolder, SessionResult, error_text
from .git import branches, patches, worktrees

if TYPE_CHECKING:
    from ..client import Client
    from ..flow.agent_step import AgentCall
    from .worker import Worker


class RunSession:
    """Runs a script; the `Host` of its engine."""

    def __init__(self, worker: Worker, desk: Client, claimed: dict[str, Any]) -> None:
        self.holder = ClaimHolder(worker, desk, claimed)
        self.worker, self.desk, self.stop = worker, desk, self.holder.stop
        self.task, self.claim, self.key = self.holder.task, self.holder.claim, self.holder.key
        self.script = str(self.task["workflow"])
        self._claimed = claimed
        self._lock = threading.RLock()
        self._places: dict[str, worktrees.Workplace] = {}  #: by branch; the run's own is ''
        self._patches: dict[str, str] | None = None  #: the patches that the desk has, by branch

    # --- the session --------------------------------------------------------------------------------------------------

    def run(self) -> SessionResult:
        try:
            return self.holder.guard(self._run)
        finally:
            with suppress(YourturnError, OSError):
                if "" in self._places:
                    worktrees.leave(self._places[""])
            self.holder.output.flush()

    def _run(self) -> SessionResult:
        try:
            return self._result(self._run_script())
        except ClaimLost as error:
            return self._lost(str(error))

    def _result(self, ended: Ended) -> SessionResult:
        place = self._places.get("")
        if ended.what == "lost":
            return self._lost(ended.words)
        if ended.what == "done":
            task = self.desk.show(self.key)
            if place is not None:
                self.worker.deliver(self.key, place, task)
            more = "" if task["ended_at"] else " (a person reviews it before it counts)"
            return SessionResult("done", f"{ended.words}{more}")
        if (ended.what == "waiting" or ended.person) and place is not None:
            self.worker.deliver_later(self.key, place)
        words = f"{ended.words}; a person is asked" if ended.what == "failed" and ended.person else ended.words
        return SessionResult(ended.what, words, ended.person)

    def _lost(self, words: str) -> SessionResult:
        """The run has ended meanwhile, or another worker holds it."""
        with suppress(YourturnError):
            task = self.desk.show(self.key)
            if task["ended_at"]:
                words = f"it is {task['failure'] or task['state']}: {task['reason'] or task['summary']}"
                return SessionResult("moved", words.rstrip(": "))
        return SessionResult("lost", words)

    # --- the script's thread ------------------------------------------------------------------------------------------

    def _run_script(self) -> Ended:
        engine = Engine(self.desk, self._claimed, self, script.root(self.worker.root))
        results: list[Ended | BaseException] = []
        over = threading.Event()

        def go() -> None:
            try:
                results.append(engine.go())
            except BaseException as error:
                results.append(error)
            finally:
                over.set()

        threading.Thread(target=go, name=self.key, daemon=True).start()
        if not script_interrupt.wait(over, self.stop, self.key):
            return self._park(f"{self.script} reached no next call in time, and was abandoned")
        ended = results[0]
        if isinstance(ended, Halted):  # the interruption hit the engine, because the script had just ended
            return self._park("it continues there next time")
        if isinstance(ended, Exception):
            raise ended
        if isinstance(ended, BaseException):
            raise RuntimeError(f"{type(ended).__name__}: {ended}") from ended
        return ended

    def _park(self, words: str) -> Ended:
        if self.holder.lost:
            return Ended("lost", words)
        self.desk.park(self.claim)
        return Ended("stopped", words)

    # --- the host of the engine ---------------------------------------------------------------------------------------

    def turns(self, call: AgentCall) -> Turn:
        # late: it loads agents, git and prompts, 30 ms that a run without agents does not need
        from .step_session import StepSession

        if self.stop.is_set() or self.worker.budget.over(taking=False):
            raise call.branch.suspend("stop")
        try:
            agent = self.worker.named_agent(call.agent)
        except YourturnError as error:
            raise self.needs(call, error_text(error), "access_required") from None
        try:
            call.desk = self.worker.desk_of(agent.name)
            return StepSession(self, call, agent, self._place(branches.branch_of(call.path))).run()
        except (ClaimLost, StoreTrouble) as error:
            raise Interrupted(error) from None
        except Exception as error:
            raise self.needs(call, error_text(error), "blocked_external") from None

    def needs(self, call: AgentCall, words: str, reason: str) -> Suspended:
        """Ask a person to make the agent able to work. The question is not the agent's own."""
        text = f"{call.agent} could not be called for step {call.path} of {self.key}.\n{words}"
        text += "\nWhen that is settled, answer: it is tried again."
        return self._ask(call.branch, call.entry, text, reason, **call.patience, desk=call.desk, session_id=call.session_id,
                         seat={**call.seat, "by_signal": True})  # fmt: skip

    def _ask(self, branch: Any, entry: Entry, text: str, reason: str, **more: Any) -> Suspended:
        self.leave()
        try:
            suspended: Suspended = branch.journal.ask(branch, entry, text, "escalation", reason=reason, **more)
        except YourturnError as error:
            raise Interrupted(error) from None
        return suspended

    def leave(self) -> None:
        """Store a patch of all folders on the desk."""
        with self._lock:
            if not self._places:
                return
            try:
                self.holder.store_patch(self._places[""].base or "", self._packed)
            except ClaimLost as error:
                raise Interrupted(error) from None

    def say(self, text: str) -> None:
        self.holder.output.write(Text(text))
        self.worker.progress.report(self.key, text)

    @contextmanager
    def fork(self, path: str, number: int) -> Iterator[None]:
        """Nothing to prepare: the folder of a branch is made when an agent needs it."""
        yield

    def join(self, path: str, number: int) -> None:
        """Merge the branches of a parallel() into the folder of the branch that called it."""
        branch = current_branch.get()
        assert branch is not None
        entry = Entry(path, "parallel", {"branches": number}, None)
        questions = branch.journal.questions(entry)
        if questions and (questions[-1]["response"] or {}).get("verdict") == "rejected":
            raise Stuck(questions[-1]["response"]["text"] or "the branches cannot be merged")
        try:
            with self._lock:
                conflict = self._merge(path, [f"{path}.{n}" for n in range(number)])
        except (ClaimLost, StoreTrouble) as error:
            raise Interrupted(error) from None
        except YourturnError as error:
            text = f"Step {path} of {self.key} could not be finished.\n{error_text(error)}"
            raise self._ask(branch, entry, text, "blocked_external") from None
        if conflict:
            raise self._ask(branch, entry, conflict.words, "irreconcilable_conflict", context=conflict.context)

    def _merge(self, path: str, names: list[str]) -> branches.MergeConflict | None:
        stored = [name for name in names if name in self._places or name in self._stored()]
        if not stored and not self._has_worked():
            return None
        parent = self._place(branches.parent_of(f"{path}.0"))
        parts = [name for name in names if name in stored or branches.exists(parent, name)]
        if not parent.own or not parts:
            return None
        conflict = branches.merge_all(parent, [(name, self._place(name)) for name in parts], self.key, path)
        if conflict is None:
            self._drop(parts)
        return conflict

    def _drop(self, names: list[str]) -> None:
        """Remove merged branches. Their stored patches go first, so that no other worker merges them again."""
        places = [self._places.pop(name) for name in names]
        if [name for name in names if self._stored().pop(name, None)]:
            self.leave()
        for place in places:
            branches.drop(place)

    def close(self, what: str, words: str) -> str:
        """The script has ended: commit the work of a finished run, store that of a failed one and reset the folder."""
        with self._lock:
            if not self._places and not self._has_worked():
                return words
            place = self._place()
            if what == "done":
                worktrees.finish(place, f"{self.key}: {self.task['title']}\n\n{words}".strip() + "\n")
                return words
            self.leave()
            for name in [name for name in self._places if name and self._places[name].own]:
                worktrees.finish(self._places[name], f"{self.key}: what was done in branch {name}\n")
            ref = worktrees.roll_back(place, self.key)
            return f"{words} (its work is kept as {ref})" if ref else words

    # --- folders ------------------------------------------------------------------------------------------------------

    def _place(self, branch: str = "") -> worktrees.Workplace:
        with self._lock:
            if branch not in self._places:
                self._places[branch] = self._branch_place(branch) if branch else self._own_place()
            return self._places[branch]

    def _own_place(self) -> worktrees.Workplace:
        body = self._stored().get("")
        place = self.holder.prepare_folder({"body": body, "base": self._base} if body else None)
        if body and place.repo and not worktrees.patch_of(place) and self._has_worked():
            worktrees.apply_patch(place, self.key, body)  # the folder was reset when the run failed, and the run was resumed
        return place

    def _branch_place(self, branch: str) -> worktrees.Workplace:
        parent = self._place(branches.parent_of(branch))
        return branches.prepare(self.worker.root, self.key, parent, branch, self._stored().get(branch))

    def _has_worked(self) -> bool:
        """True if a step of the run has called an agent."""
        return any(step["name"] == "run" for step in self.desk.steps(self.key))

    def _stored(self) -> dict[str, str]:
        """The patches that the desk has, by branch."""
        if self._patches is None:
            patch = self.desk.patch(self.key)
            self._base = patch["base"] if patch else None
            self._patches = patches.unpack(patch["body"]) if patch else {}
        return self._patches

    def _packed(self) -> str:
        """The patches of all folders in one text."""
        texts = self._patches or {}
        for name, place in self._places.items():
            if place.own or not name:
                texts[name] = worktrees.patch_of(place)
        return patches.pack(texts)

"""One claimed run, from its claim to where it waits or ends: what sitting.py is for a task.

The script is replayed by flow/engine.py, in a thread of its own; this is its host. Agents of its steps work in the run's
folder, one after another (stepping.py); those of a parallel() each in one of their own (branches.py). A run whose script
calls no agent touches no folder.

    done            the work is committed, and merged as the project says
    failed, stuck   it is put aside, under a name that is told, and brought back if the run is resumed
    anything else   it stays where it is, and a copy is left with the desk for other machines

Told to stop, a script is left at its next call. One that does not come to a call gets an exception after a while, and one
that sits where no exception reaches it is left behind: its claim is given back, so nothing that it still does can count.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from ..core.errors import ClaimLost, StoreTrouble, YourturnError
from ..flow import script, script_modules
from ..flow.agent_step import Turn
from ..flow.engine import Ended, Engine
from ..flow.journal import Entry, current_branch
from ..flow.results import Halted, Interrupted, Stuck, Suspended
from .agents.base import Text
from .claim_holder import Holder, Result, in_words
from .git import branches, patches, worktrees

if TYPE_CHECKING:
    from ..client import Client
    from ..flow.agent_step import AgentCall
    from .worker import Worker

GRACE = 5.0  #: seconds that a script has to come to its next call
PACKAGE = str(Path(__file__).parents[1])
_LUA = str(Path(PACKAGE, "flow", "lua.py"))  #: where our own code runs a script's
_STEP = (str(Path(PACKAGE, "flow", "api.py")), "_outcome")  #: and where it calls the function of a step()


class _Script(Engine):
    def close(self, what: str, words: str) -> str:
        assert isinstance(self.host, Running)
        return self.host.close(what, words)


class Running(Holder):
    def __init__(self, worker: Worker, desk: Client, got: dict[str, Any]) -> None:
        super().__init__(worker, desk, got)
        self.script = str(self.task["workflow"])
        self._lock = threading.RLock()
        self._places: dict[str, worktrees.Workplace] = {}  #: by branch; the run's own is ''
        self._parts: dict[str, str] | None = None  #: what was left of each with the desk
        self._got = got

    # --- the whole ----------------------------------------------------------------------------------------------------

    def run(self) -> Result:
        try:
            return self._result(self._play())
        except ClaimLost as error:
            return self._gone(str(error))
        except YourturnError as error:
            return self.hand_over(error, getattr(error, "flag", "") or "blocked_external")
        except Exception as bug:
            return self.hand_over(bug, "blocked_external")
        finally:
            with suppress(YourturnError, OSError):
                if "" in self._places:
                    worktrees.leave(self._places[""])
            self.minutes.flush()

    def _result(self, ended: Ended) -> Result:
        place = self._places.get("")
        if ended.what == "lost":
            return self._gone(ended.words)
        if ended.what == "done":
            task = self.desk.show(self.key)
            if place is not None:
                self.worker.finished(self.key, place, task)
            more = "" if task["ended_at"] else " (a person looks at it before it counts)"
            return Result("done", f"{ended.words}{more}")
        if (ended.what == "waiting" or ended.person) and place is not None:
            self.worker.waits(self.key, place)
        words = f"{ended.words}; a person is asked" if ended.what == "failed" and ended.person else ended.words
        return Result(ended.what, words, ended.person)

    def _gone(self, words: str) -> Result:
        """Somebody ended the run meanwhile, or somebody else has it."""
        with suppress(YourturnError):
            task = self.desk.show(self.key)
            if task["ended_at"]:
                words = f"it is {task['failure'] or task['state']}: {task['reason'] or task['summary']}"
                return Result("moved", words.rstrip(": "))
        return Result("lost", words)

    # --- the script's thread ---------------------------------------------------------------------------------------------

    def _play(self) -> Ended:
        engine = _Script(self.desk, self._got, self, script.root(self.worker.root))
        found: list[Ended | BaseException] = []
        over = threading.Event()

        def go() -> None:
            try:
                found.append(engine.go())
            except BaseException as error:
                found.append(error)
            finally:
                over.set()

        threading.Thread(target=go, name=self.key, daemon=True).start()
        if not self._attend(over):
            return self._let_go(f"{self.script} did not come to its next call, and was left behind")
        ended = found[0]
        if isinstance(ended, Halted):  # it came too late for the script, and hit what was behind it
            return self._let_go("it goes on where it was, next time")
        if isinstance(ended, Exception):
            raise ended
        if isinstance(ended, BaseException):
            raise RuntimeError(f"{type(ended).__name__}: {ended}") from ended
        return ended

    def _let_go(self, words: str) -> Ended:
        if self.lost:
            return Ended("lost", words)
        self.desk.park(self.claim)
        return Ended("stopped", words)

    def _attend(self, over: threading.Event) -> bool:
        """Whether it came to an end by itself, or by an exception."""
        since: float | None = None
        while not over.wait(0.05 if since else 0.25):
            now = time.monotonic()
            own = self._in_own_code() if self.stop.is_set() else []
            if not own:
                since = None
                continue
            since = since or now
            if now - since >= 2 * GRACE:
                return False
            if now - since >= GRACE:
                for thread in own:
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Halted))
        return True

    def _in_own_code(self) -> list[int]:
        """The threads in which the script itself runs right now, or what it called outside of our code."""
        frames = sys._current_frames()
        mine = [t for t in threading.enumerate() if t.name == self.key or t.name.startswith(f"{self.key}/")]
        return [t.ident for t in mine if t.ident in frames and _own(frames[t.ident])]

    # --- what the script's calls need --------------------------------------------------------------------------------------

    def turns(self, call: AgentCall) -> Turn:
        from .step_session import Step

        if self.stop.is_set() or self.worker.budget.over(taking=False):
            raise call.branch.suspend("stop")
        try:
            agent = self.worker.named(call.agent)
        except YourturnError as error:
            raise self.needs(call, in_words(error), "access_required") from None
        try:
            call.desk = self.worker._as(agent.name)
            step = Step(self, call, agent, self.place(branches.of(call.path)))
            return step.turn()
        except (ClaimLost, StoreTrouble) as error:
            raise Interrupted(error) from None
        except Exception as error:
            raise self.needs(call, in_words(error), getattr(error, "flag", "") or "blocked_external") from None

    def needs(self, call: AgentCall, words: str, reason: str) -> Suspended:
        """A person is needed before the agent can work at all: that is not the agent's question."""
        text = f"{call.agent} could not be called for step {call.path} of {self.key}.\n{words}"
        text += "\nWhen that is settled, answer: it is tried again."
        return self._ask(call.branch, call.entry, text, reason, **call.patience, desk=call.desk, session_id=call.session_id,
                         seat={**call.seat, "by_signal": True})  # fmt: skip

    def _ask(self, here: Any, entry: Entry, text: str, reason: str, **more: Any) -> Suspended:
        self.leave()
        try:
            found: Suspended = here.journal.ask(here, entry, text, "escalation", reason=reason, **more)
        except YourturnError as error:
            raise Interrupted(error) from None
        return found

    def leave(self) -> None:
        """A copy of all work for other machines."""
        with self._lock:
            if not self._places:
                return
            try:
                self.keep_patch(self._places[""].base or "", self._taken)
            except ClaimLost as error:
                raise Interrupted(error) from None

    def _taken(self) -> str:
        parts = self._parts or {}
        for name, place in self._places.items():
            if place.own or not name:
                parts[name] = worktrees.patch_of(place)
        return patches.packed(parts)

    def say(self, text: str) -> None:
        self.minutes.write(Text(text))
        self.worker.progress.say(self.key, text)

    # --- folders ------------------------------------------------------------------------------------------------------

    def place(self, branch: str = "") -> worktrees.Workplace:
        with self._lock:
            if branch not in self._places:
                self._places[branch] = self._beside(branch) if branch else self._own_place()
            return self._places[branch]

    def _left(self) -> dict[str, str]:
        if self._parts is None:
            left = self.desk.patch(self.key)
            self._base = left["base"] if left else None
            self._parts = patches.unpacked(left["body"]) if left else {}
        return self._parts

    def _own_place(self) -> worktrees.Workplace:
        body = self._left().get("")
        place = self.folder({"body": body, "base": self._base} if body else None)
        if body and place.repo and not worktrees.patch_of(place) and self._worked():
            worktrees.lay(place, self.key, body)  # it was put aside when the run failed, and the run goes on
        return place

    def _worked(self) -> bool:
        return any(step["name"] == "run" for step in self.desk.steps(self.key))

    def _beside(self, branch: str) -> worktrees.Workplace:
        above = self.place(branches.above(branch))
        return branches.prepare(self.worker.root, self.key, above, branch, self._left().get(branch))

    @contextmanager
    def fork(self, path: str, number: int) -> Iterator[None]:
        """Their folders are made when an agent needs one."""
        yield

    def join(self, path: str, number: int) -> None:
        names = [f"{path}.{n}" for n in range(number)]
        here = current_branch.get()
        assert here is not None
        entry = Entry(path, "parallel", {"branches": number}, None)
        asked = here.journal.questions(entry)
        if asked and (asked[-1]["response"] or {}).get("verdict") == "rejected":
            raise Stuck(asked[-1]["response"]["text"] or "what was done side by side does not fit together")
        try:
            with self._lock:
                made = [name for name in names if name in self._places or name in self._left()]
                if not made and not self._worked():
                    return
                above = self.place(branches.above(f"{path}.0"))
                made = [name for name in names if name in made or branches.exists(above, name)]
                if not above.own or not made:
                    return
                trouble = branches.bring(above, [(name, self.place(name)) for name in made], self.key, path)
                if not trouble:
                    self._merged(made)
        except (ClaimLost, StoreTrouble) as error:
            raise Interrupted(error) from None
        except YourturnError as error:
            raise self._ask(here, entry, f"Step {path} of {self.key} could not be finished.\n{in_words(error)}",
                            getattr(error, "flag", "") or "blocked_external") from None  # fmt: skip
        if trouble:
            raise self._ask(here, entry, trouble.words, "irreconcilable_conflict", context=trouble.context)

    def _merged(self, names: list[str]) -> None:
        """They are not needed any more. What was left of them with the desk goes first: nobody may merge that again."""
        places = [self._places.pop(name) for name in names]
        if [name for name in names if self._left().pop(name, None)]:
            self.leave()
        for place in places:
            branches.drop(place)

    def close(self, what: str, words: str) -> str:
        """The script has ended."""
        with self._lock:
            if not self._places and not self._worked():
                return words
            place = self.place()
            if what == "done":
                worktrees.finish(place, f"{self.key}: {self.task['title']}\n\n{words}".strip() + "\n")
                return words
            self.leave()
            for name in [name for name in self._places if name and self._places[name].own]:
                worktrees.finish(self._places[name], f"{self.key}: what was done in branch {name}\n")
            ref = worktrees.roll_back(place, self.key)
            return f"{words} (its work is kept as {ref})" if ref else words


def _own(frame: FrameType | None) -> bool:
    """Whose code is it in? The first frame that is the script's or ours says so; libraries belong to whoever called them.

    All that the function of a step() does is its own, also where it calls us: it may wait for a person there.
    """
    whose: bool | None = None
    while frame is not None:
        code = frame.f_code
        if (code.co_filename, code.co_name) == _STEP:
            return True
        if whose is None and code.co_filename.startswith(PACKAGE):
            whose = code.co_filename == _LUA
        elif whose is None and str(frame.f_globals.get("__name__")).startswith(script_modules.PREFIX):
            whose = True
        frame = frame.f_back
    return bool(whose)

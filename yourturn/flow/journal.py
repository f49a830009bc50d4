"""Replay: a script runs from its first line every time, and each durable call is looked up in the journal first.

The n-th call of the script is the n-th step of its journal. If the step is completed, the call returns its result and does
nothing; so the script reaches, in milliseconds, the line where it stopped, with the same values in its variables. The first call
without a result is executed. Each call is compared with its step, by name and arguments, to detect a changed script.

A `Branch` is one sequence of calls: the script itself, or one branch of a `parallel()`, whose calls have their own numbers
(`3.1.0`), so that the speed of the branches does not matter.

Results that cost nothing to compute again (the time, a random number, a log line) are buffered here and written in the same
commit as the next step that matters: nothing outside the process can have seen them before. A full buffer is written by itself.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from ..core.canonical_json import dumps
from ..core.errors import Invalid, NotAllowed, YourturnError
from ..core.journal import call_digest
from ..core.model import COMPLETED, ENDED, PENDING, RUNNING, WAITING
from ..display.run_facts import about_run, failed_at, made_again
from .alignment import ASKS, LOOSE, QUIET, Superseded, branch_of, doubts, last_number, matches, path_key
from .results import Diverged, Interrupted, Suspended
from .script_thread import ROUNDS, ScriptThread

if TYPE_CHECKING:
    from ..client import Client
    from .agent_step import Host

Step = dict[str, Any]
KEPT = 100  #: size of the buffer, in steps


class Branch:
    """One sequence of calls: the script, or one branch of a parallel()."""

    def __init__(self, journal: Journal, prefix: str = "", older: str | None = "", behind: str | None = "") -> None:
        self.journal, self.prefix = journal, prefix
        self.next = 0 if prefix else 1  # calls of the script are numbered from 1
        self.left: Suspended | None = None  #: set when it was suspended; raised again by its next call if the script caught it
        self.rounds = 0  #: how often the script caught it
        self.thread = threading.get_ident()
        self.older = older  #: the branch of the older script that this one continues, if any
        self.cursor = self.next - 1  #: the position in that one
        self.behind = behind  #: the path of the last call there; None: that call is new

    def path(self, number: int | None = None) -> str:
        number = self.next if number is None else number
        return f"{self.prefix}.{number}" if self.prefix else str(number)

    @property
    def alone(self) -> bool:
        """No other branch runs in parallel."""
        return not self.prefix

    def call(self, name: str, call: Any, agent: str | None = None) -> Entry:
        """The next call, with its step if it was made before."""
        self.check_exit()
        return self.journal.find(self, name, call, agent)

    def check_exit(self) -> None:
        """Raise the exception that ends the script, if there is one: a script that caught it makes no further call."""
        script_exit = self.journal.exit or self.left
        if script_exit is not None:
            if sys.exception() is not script_exit:  # not while it propagates through a finally
                self.journal.swallowed |= self.alone or script_exit is self.left
                self._swallowed(script_exit)
            raise script_exit

    def _swallowed(self, script_exit: BaseException) -> None:
        """Count how often the script caught it, and abandon a thread that does so in a loop."""
        self.rounds += 1
        thread = threading.current_thread()
        if self.rounds > ROUNDS and isinstance(thread, ScriptThread):
            self.journal.swallowed = True
            thread.leave(script_exit)

    def ended(self) -> None:
        """The branch makes no more calls: the journal must not contain later ones."""
        steps = list(self.journal.steps.items())  # a copy, because other branches add to it
        rest = [
            path for path, step in steps
            if branch_of(path) == self.prefix and last_number(path) >= self.next and step["name"] not in LOOSE
        ]  # fmt: skip
        if rest and self.left is None and self.journal.exit is None:
            first = min(rest, key=last_number)
            raise self.journal.differs(first, None)

    def suspend(self, why: str, until: str | None = None) -> Suspended:
        self.left = Suspended(why, until)
        return self.left

    def advance(self, name: str, old: str) -> None:
        """Note that a call was made, and its path in the older script, if it was there."""
        if old and branch_of(old) == self.older:
            self.cursor = max(self.cursor, last_number(old))
        if name not in QUIET:
            self.behind = old or None


#: The branch that this thread runs.
current_branch: ContextVar[Branch | None] = ContextVar("yourturn_branch", default=None)


class Entry:
    """One call, and its step if the call was made before."""

    def __init__(self, path: str, name: str, call: Any, agent: str | None) -> None:
        self.path, self.name, self.call, self.agent = path, name, call, agent
        self.step: Step | None = None
        self.in_place = True  #: it follows the same call as before the script was changed

    @property
    def done(self) -> bool:
        return self.step is not None and self.step["status"] == COMPLETED

    @property
    def waiting(self) -> bool:
        return self.step is not None and self.step["status"] == WAITING

    @property
    def result(self) -> Any:
        assert self.step is not None
        return self.step["result"]

    @property
    def seat(self) -> dict[str, Any]:
        return dict((self.step or {}).get("seat") or {})

    def row(self, status: str, **more: Any) -> Step:
        return {"path": self.path, "name": self.name, "call": self.call, "agent": self.agent, "status": status, **more}


class Journal:
    def __init__(
        self, desk: Client, claimed: dict[str, Any], host: Host, config: Any, program: dict[str, str] | None = None,
        doubtful: bool = False,
    ) -> None:  # fmt: skip
        self.desk, self.claim, self.host, self.config = desk, claimed["claim"], host, config
        self.program = program  #: the source, if it differs from the recorded one
        self.doubtful = doubtful  #: the script was changed, and no person has confirmed that steps still belong to their calls
        self.task: dict[str, Any] = claimed["task"]
        self.key: str = self.task["key"]
        self.number: int = self.task["journal"]
        steps: list[Step] = self.task["steps"]  # only the holder of the claim writes steps
        self.steps = {step["index"]: step for step in steps if not step["spare"]}
        self.superseded = Superseded(steps, self.number, failed_at(self.task), made_again(self.task))
        self.exit: BaseException | None = None  #: the exception that ends the script; its next call raises it again
        self.swallowed = False  #: the script caught it and made another call
        self.acted = False  #: an agent or a function ran since the claim: it may have asked a question by itself
        self._kept: dict[str, Step] = {}
        self._lock = threading.RLock()

    # --- reading ----------------------------------------------------------------------------------------------------

    def find(self, branch: Branch, name: str, call: Any, agent: str | None) -> Entry:
        number = self._recorded(branch, name, call)
        if number is None:
            return self._passed(branch, name, call)
        entry = Entry(branch.path(number), name, call, agent)
        branch.next = number + 1
        entry.step = self.steps.get(entry.path)
        if entry.step is not None:
            entry.call = entry.step["call"]  # its timeout and reviewer may have been others
        elif self.host.stop.is_set():
            branch.next = number
            raise branch.suspend("stop")
        else:
            self._take_over(branch, entry)
        old = self.superseded.old(entry.path, entry.step)
        if name == "parallel":
            entry.in_place = not old or self.superseded.in_place(old, branch.behind)
        branch.advance(name, old)
        if self._acts(entry):
            self.acted |= name in ("run", "step")
            self.check_doubts(entry)
            if branch.alone:  # other branches may still diverge
                self.record_program()
        return entry

    def _acts(self, entry: Entry) -> bool:
        """Whether the call has an effect that others can see. A wait that may be over by now is checked first."""
        waited = entry.waiting and entry.name in (*ASKS, "sleep")
        return not entry.done and not waited and entry.name not in (*QUIET, "parallel")

    def _recorded(self, branch: Branch, name: str, call: Any) -> int | None:
        """The number of a call in its branch; None if the call was inserted between two recorded calls.

        Calls of log() and now() may be added and removed without making it a changed script.
        """
        digest, number = call_digest(name, call), branch.next
        while (step := self.steps.get(branch.path(number))) is not None and not matches(step, name, call, digest):
            if step["name"] in LOOSE:
                number += 1
            elif name in LOOSE:
                return None
            else:
                raise self.differs(branch.path(number), Entry(branch.path(number), name, call, None).row(RUNNING))
        return number

    def _passed(self, branch: Branch, name: str, call: Any) -> Entry:
        """An inserted log() prints nothing, and an inserted now() returns the time of the neighbouring call."""
        entry = Entry("", name, call, None)
        neighbour = self.steps.get(branch.path(branch.next - 1)) or self.steps[branch.path()]
        at = neighbour.get("ended_at") or neighbour.get("started_at") or self.task["created_at"]
        entry.step = {"status": COMPLETED, "result": at}
        return entry

    def leave(self, script_exit: BaseException) -> BaseException:
        with self._lock:
            self.exit = self.exit or script_exit
            return self.exit

    def differs(self, path: str, actual: Step | None) -> BaseException:
        before = {other: step for other, step in list(self.steps.items()) if path_key(other) < path_key(path)}
        return self.leave(Diverged(path, self.steps[path], actual, doubts(before, actual) if self.doubtful else ()))

    def check_doubts(self, entry: Entry | None) -> None:
        """Before a changed script has any effect: check that all results it got so far are its own. `entry`: the next call."""
        with self._lock:
            new = entry.row(RUNNING) if entry is not None and entry.step is None else None
            uncertain = doubts(self.steps, new) if self.doubtful else []
            if uncertain:
                step = self.steps[uncertain[0].first]
                raise self.leave(Diverged(uncertain[0].first, step, step, uncertain))
            self.doubtful = False

    def ended(self) -> None:
        """The script has ended."""
        self.check_doubts(None)
        self.record_program()

    def record_program(self) -> None:
        """All recorded calls match the current script: record it as the run's script."""
        with self._lock:
            if self.program is not None:
                with self._taken(), suppress(NotAllowed):  # a remote worker may not replace the script: the recorded one stays
                    self.desk.record(self.claim, program=self.program)
                self.program = None

    def _take_over(self, branch: Branch, entry: Entry) -> None:
        """Reuse the step of the same call that the older script made.

        A parallel() is not reused as a whole: its branches may have changed, and their work has to be merged. Its branches only
        continue the branches of the older one.
        """
        with self._lock:
            reused = self.superseded.find(entry.name, entry.call, branch.older, branch.cursor, branch.behind)
            if reused is None:
                return
            self.superseded.taken.add(reused["index"])
            old = {"spare": [self.number, reused["index"]]}
            if entry.name == "parallel":
                self._keep(entry.row(RUNNING, seat=old))
                entry.step = {**entry.row(RUNNING), "seat": old}
                return
            entry.call = reused["call"]
            seat = dict(reused["seat"] or {})
            seat |= {"asked_as": [*seat.get("asked_as", ()), [self.number - 1, reused["index"]]], **old}
            more = {"result": reused["result"]} if reused["status"] == COMPLETED else {}
            self._keep(entry.row(reused["status"], seat=seat, session_id=reused["session_id"], **more))
            entry.step = {**reused, "seat": seat}

    def questions(self, entry: Entry) -> list[dict[str, Any]]:
        """The questions of this call, oldest first."""
        ours = [[self.number, entry.path], *entry.seat.get("asked_as", ())]
        return [q for q in self.task["questions"] if [q["journal"], q["step"]] in ours and not about_run(q)]

    def cut_off(self, q: dict[str, Any]) -> bool:
        """Whether a question was closed without a response because the run ended; the run was resumed since then."""
        if q["status"] == PENDING or q["response"] is not None:
            return False
        for event in reversed(self.desk.history(self.key)):
            if any(closed["id"] == q["id"] for closed in event["data"].get("closed", ())):
                return event["data"]["to"] in ENDED
        return False

    # --- writing ----------------------------------------------------------------------------------------------------

    def keep(self, entry: Entry, result: Any) -> Any:
        """Buffer the result of a call; it is written with the next step."""
        if entry.path:
            self._keep(entry.row(COMPLETED, result=plain(result, entry.name)))
        return result

    def _keep(self, step: Step) -> None:
        with self._lock:
            self._kept[step["path"]] = {**self._kept.get(step["path"], {}), **step}
            if len(self._kept) >= KEPT:
                self.write(None)

    def kept(self, *more: Step) -> list[Step]:
        """The steps for the next commit, each once, in its last state."""
        with self._lock:
            steps = dict(self._kept)
            for step in more:
                steps[step["path"]] = {**steps.get(step["path"], {}), **step}
            return list(steps.values())

    def _wrote(self, steps: list[Step]) -> None:
        self._kept = {}
        self.steps |= {step["path"]: {**self.steps.get(step["path"], {"result": None}), **step} for step in steps}

    def write(self, entry: Entry | None, status: str = COMPLETED, **more: Any) -> None:
        """Write a step now, with all buffered ones."""
        with self._lock:
            steps = self.kept() if entry is None else self.kept(entry.row(status, **more))
            if steps:
                with self._taken():
                    self.desk.record(self.claim, steps)
                self._wrote(steps)

    def complete(self, entry: Entry, result: Any, **more: Any) -> None:
        self.write(entry, COMPLETED, result=plain(result, entry.name), **more)

    def flush(self) -> None:
        """Write the buffer, before an effect that others can see."""
        if self._kept:
            self.write(None)

    def ask(self, branch: Branch, entry: Entry, text: str, kind: str, *, hold: bool = False, **fields: Any) -> Suspended:
        """Ask a person and suspend the run, in one commit. While other branches run, the claim is kept for them."""
        desk = fields.pop("desk", None) or self.desk
        more = {name: fields.pop(name) for name in ("seat", "session_id") if name in fields}
        with self._lock:
            steps = self.kept(entry.row(WAITING, **more))
            fields = {name: value for name, value in fields.items() if value is not None}
            reason = fields.pop("reason", None)
            with self._taken():
                held = hold or not branch.alone
                task = desk.flag(
                    self.key, text, reason, kind, claim=self.claim, step=entry.path, steps=steps, hold=held, **fields
                )
            self._moved(task)
            self._wrote(steps)
        return branch.suspend("person")

    def sleep(self, branch: Branch, entry: Entry, until: str) -> Suspended:
        with self._lock:
            if branch.alone:
                steps = self.kept(entry.row(WAITING, seat={"until": until}))
                with self._taken():
                    self._moved(self.desk.park(self.claim, until, steps=steps))
                self._wrote(steps)
            else:
                self.write(entry, WAITING, seat={"until": until})
        return branch.suspend("sleep", until)

    def _moved(self, task: dict[str, Any]) -> None:
        """Keep the answered questions for other branches: a move returns only the open ones."""
        asked = {q["id"]: q for q in (*self.task["questions"], *task["questions"])}
        self.task = {**task, "questions": list(asked.values())}

    @contextmanager
    def _taken(self) -> Iterator[None]:
        """Turn errors of the desk into exceptions that a script does not catch; invalid arguments stay its own errors."""
        try:
            yield
        except (Invalid, NotAllowed):
            raise
        except YourturnError as error:
            self.leave(lost := Interrupted(error))
            raise lost from None


def recorded(value: Any) -> Any:
    """The value as a replay gets it from the journal: no enum, no tuple, keys in order."""
    return json.loads(dumps(value))


def plain(value: Any, what: str) -> Any:
    """Check that a value is plain data, which the journal can hold."""
    from ..core.canonical_json import check

    try:
        return check(value, what)
    except (Invalid, TypeError, ValueError, RecursionError) as error:
        reason = error.message if isinstance(error, Invalid) else str(error)
        raise Invalid(
            f"{what}() can only take and return plain data", reason=reason, hint="Text, numbers, lists and dictionaries of those."
        ) from None

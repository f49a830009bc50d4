"""Replay: a script runs from its first line every time, and each durable call looks here first.

The n-th call of the script is the n-th step of its journal. If the step is completed, its result is returned and nothing
happens; so the script comes, in milliseconds, to where it was, with the same values in its variables. The first call without
a result is made for real. That the script is still the same is checked call by call, by name and arguments.

A `Scope` is one line of calls: the script itself, or one branch of a `parallel()`, whose calls are numbered by themselves
(`3.1.0`), so that it does not matter which branch is faster.

What costs nothing to do again (the time, a random number, a line for the log) is kept here until something that matters is
written, and goes with it in one commit: nobody outside can have seen it before that. Many of them are written by themselves.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from ..core.canon import dumps
from ..core.errors import Invalid, NotAllowed, YourturnError
from ..core.journal import call_digest
from ..core.model import COMPLETED, ENDED, PENDING, RUNNING, WAITING
from ..runs import about_run, failed_at, made_again
from .align import ASKS, LOOSE, QUIET, Spares, doubts, line_of, number, place, same
from .thread import ROUNDS, ScriptThread
from .values import Diverged, Interrupted, Suspended

if TYPE_CHECKING:
    from ..client import Client
    from .agentcall import Host

Step = dict[str, Any]
KEPT = 100  #: steps that are kept, at the most


class Scope:
    """One line of calls."""

    def __init__(self, journal: Journal, prefix: str = "", older: str | None = "", behind: str | None = "") -> None:
        self.journal, self.prefix = journal, prefix
        self.next = 0 if prefix else 1  # people count the calls of a script from 1
        self.left: Suspended | None = None  #: it was suspended: whoever swallowed that gets no further
        self.rounds = 0  #: times that it was swallowed
        self.thread = threading.get_ident()
        self.older = older  #: the line of the older script that this one continues, if any
        self.cursor = self.next - 1  #: how far that one is
        self.behind = behind  #: where the last call stood there; None: it is new

    def path(self, number: int | None = None) -> str:
        number = self.next if number is None else number
        return f"{self.prefix}.{number}" if self.prefix else str(number)

    @property
    def alone(self) -> bool:
        """Nothing goes on beside it."""
        return not self.prefix

    def call(self, name: str, call: Any, agent: str | None = None) -> Entry:
        """The next call, and what is known of it."""
        self.stay()
        return self.journal.find(self, name, call, agent)

    def stay(self) -> None:
        """Raises what leaves the script, if it is being left: whoever swallowed that gets no further."""
        way_out = self.journal.out or self.left
        if way_out is not None:
            if sys.exception() is not way_out:  # in a finally: it is still on its way
                self.journal.swallowed |= self.alone or way_out is self.left
                self._swallowed(way_out)
            raise way_out

    def _swallowed(self, way_out: BaseException) -> None:
        """Whoever catches it in a loop gets no further, and does not get round for ever."""
        self.rounds += 1
        thread = threading.current_thread()
        if self.rounds > ROUNDS and isinstance(thread, ScriptThread):
            self.journal.swallowed = True
            thread.leave(way_out)

    def ended(self) -> None:
        """No more calls: nothing may be left in the journal that this line of calls once made."""
        known = list(self.journal.steps.items())  # other branches write there
        rest = [
            path for path, step in known
            if line_of(path) == self.prefix and number(path) >= self.next and step["name"] not in LOOSE
        ]  # fmt: skip
        if rest and self.left is None and self.journal.out is None:
            first = min(rest, key=number)
            raise self.journal.differs(first, None)

    def suspend(self, why: str, until: str | None = None) -> Suspended:
        self.left = Suspended(why, until)
        return self.left

    def came_by(self, name: str, old: str) -> None:
        """A call was made that stood there in the older script, or nowhere."""
        if old and line_of(old) == self.older:
            self.cursor = max(self.cursor, number(old))
        if name not in QUIET:
            self.behind = old or None


#: The line of calls that this thread is in.
scope: ContextVar[Scope | None] = ContextVar("yourturn_scope", default=None)


class Entry:
    """One call, and its step if it was made before."""

    def __init__(self, path: str, name: str, call: Any, agent: str | None) -> None:
        self.path, self.name, self.call, self.agent = path, name, call, agent
        self.step: Step | None = None
        self.in_place = True  #: it stands behind the call behind which it stood before the script was changed

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
        self, desk: Client, got: dict[str, Any], host: Host, config: Any, program: dict[str, str] | None = None,
        doubtful: bool = False,
    ) -> None:  # fmt: skip
        self.desk, self.claim, self.host, self.config = desk, got["claim"], host, config
        self.program = program  #: the source, if it is not the one that is recorded
        self.doubtful = doubtful  #: it was changed, and nobody has said that what fits still belongs where it is
        self.task: dict[str, Any] = got["task"]
        self.key: str = self.task["key"]
        self.number: int = self.task["journal"]
        found: list[Step] = self.task["steps"]  # as they were when it was claimed: nobody else writes there
        self.steps = {step["index"]: step for step in found if not step["spare"]}
        self.spares = Spares(found, self.number, failed_at(self.task), made_again(self.task))
        self.out: BaseException | None = None  #: how the script is left for good: whoever swallowed that gets no further
        self.swallowed = False  #: the script has caught that, and gone on to its next call
        self.acted = False  #: an agent or a function was called since the claim: it may have asked something by itself
        self._kept: dict[str, Step] = {}
        self._lock = threading.RLock()

    # --- looking ----------------------------------------------------------------------------------------------------

    def find(self, scope: Scope, name: str, call: Any, agent: str | None) -> Entry:
        place = self._recorded(scope, name, call)
        if place is None:
            return self._passed(scope, name, call)
        entry = Entry(scope.path(place), name, call, agent)
        scope.next = place + 1
        entry.step = self.steps.get(entry.path)
        if entry.step is not None:
            entry.call = entry.step["call"]  # it may have had another patience
        elif self.host.stop.is_set():
            scope.next = place
            raise scope.suspend("stop")
        else:
            self._take_over(scope, entry)
        old = self.spares.old(entry.path, entry.step)
        if name == "parallel":
            entry.in_place = not old or self.spares.in_place(old, scope.behind)
        scope.came_by(name, old)
        if self._acts(entry):
            self.acted |= name in ("run", "step")
            self.sure(entry)
            if scope.alone:  # branches may still come to differ
                self.goes_on()
        return entry

    def _acts(self, entry: Entry) -> bool:
        """Something comes of this call that others can see. A wait that may be over by now is looked at first."""
        waited = entry.waiting and entry.name in (*ASKS, "sleep")
        return not entry.done and not waited and entry.name not in (*QUIET, "parallel")

    def _recorded(self, scope: Scope, name: str, call: Any) -> int | None:
        """Its number; None: it stands between two calls that were made before it was written into the script.

        A script may come to say more or less, and to look at the time more or less often: that makes it no other script.
        """
        digest, place = call_digest(name, call), scope.next
        while (step := self.steps.get(scope.path(place))) is not None and not same(step, name, call, digest):
            if step["name"] in LOOSE:
                place += 1
            elif name in LOOSE:
                return None
            else:
                raise self.differs(scope.path(place), Entry(scope.path(place), name, call, None).row(RUNNING))
        return place

    def _passed(self, scope: Scope, name: str, call: Any) -> Entry:
        """Nothing is said any more, and the time is that of the call beside it."""
        entry = Entry("", name, call, None)
        beside = self.steps.get(scope.path(scope.next - 1)) or self.steps[scope.path()]
        at = beside.get("ended_at") or beside.get("started_at") or self.task["created_at"]
        entry.step = {"status": COMPLETED, "result": at}
        return entry

    def leave(self, way_out: BaseException) -> BaseException:
        with self._lock:
            self.out = self.out or way_out
            return self.out

    def differs(self, path: str, actual: Step | None) -> BaseException:
        before = {known: step for known, step in list(self.steps.items()) if place(known) < place(path)}
        return self.leave(Diverged(path, self.steps[path], actual, doubts(before, actual) if self.doubtful else ()))

    def sure(self, entry: Entry | None) -> None:
        """Before a changed script does anything: all that it was told until now is its own. `entry`: the call that it makes."""
        with self._lock:
            new = entry.row(RUNNING) if entry is not None and entry.step is None else None
            found = doubts(self.steps, new) if self.doubtful else []
            if found:
                step = self.steps[found[0].first]
                raise self.leave(Diverged(found[0].first, step, step, found))
            self.doubtful = False

    def ended(self) -> None:
        """The script has come to its end."""
        self.sure(None)
        self.goes_on()

    def goes_on(self) -> None:
        """All that was done before is the same in the script as it is now: so that is the run's script from here on."""
        with self._lock:
            if self.program is not None:
                with self._taken(), suppress(NotAllowed):  # over a wire only an admin says what is run: it stays as recorded
                    self.desk.record(self.claim, program=self.program)
                self.program = None

    def _take_over(self, scope: Scope, entry: Entry) -> None:
        """The same call was made before the script was changed: what came of it still counts.

        A parallel() comes to nothing by itself: its branches may have changed, and their work has to come together. They only
        go on with the lines of calls of the one that stood there.
        """
        with self._lock:
            spare = self.spares.find(entry.name, entry.call, scope.older, scope.cursor, scope.behind)
            if spare is None:
                return
            self.spares.taken.add(spare["index"])
            old = {"spare": [self.number, spare["index"]]}
            if entry.name == "parallel":
                self._keep(entry.row(RUNNING, seat=old))
                entry.step = {**entry.row(RUNNING), "seat": old}
                return
            entry.call = spare["call"]
            seat = dict(spare["seat"] or {})
            seat |= {"asked_as": [*seat.get("asked_as", ()), [self.number - 1, spare["index"]]], **old}
            more = {"result": spare["result"]} if spare["status"] == COMPLETED else {}
            self._keep(entry.row(spare["status"], seat=seat, session_id=spare["session_id"], **more))
            entry.step = {**spare, "seat": seat}

    def questions(self, entry: Entry) -> list[dict[str, Any]]:
        """What this call has asked, oldest first."""
        ours = [[self.number, entry.path], *entry.seat.get("asked_as", ())]
        return [q for q in self.task["questions"] if [q["journal"], q["step"]] in ours and not about_run(q)]

    def cut_off(self, q: dict[str, Any]) -> bool:
        """Nobody has said anything about it: it was closed when the run ended, and since then the run goes on."""
        if q["status"] == PENDING or q["response"] is not None:
            return False
        for event in reversed(self.desk.history(self.key)):
            if any(closed["id"] == q["id"] for closed in event["data"].get("closed", ())):
                return event["data"]["to"] in ENDED
        return False

    # --- writing ----------------------------------------------------------------------------------------------------

    def keep(self, entry: Entry, result: Any) -> Any:
        """Its result, to be written with what comes next."""
        if entry.path:
            self._keep(entry.row(COMPLETED, result=plain(result, entry.name)))
        return result

    def _keep(self, step: Step) -> None:
        with self._lock:
            self._kept[step["path"]] = {**self._kept.get(step["path"], {}), **step}
            if len(self._kept) >= KEPT:
                self.write(None)

    def kept(self, *more: Step) -> list[Step]:
        """What has to go with the next commit. One step only once: what it came to last."""
        with self._lock:
            steps = dict(self._kept)
            for step in more:
                steps[step["path"]] = {**steps.get(step["path"], {}), **step}
            return list(steps.values())

    def _wrote(self, steps: list[Step]) -> None:
        self._kept = {}
        self.steps |= {step["path"]: {**self.steps.get(step["path"], {"result": None}), **step} for step in steps}

    def write(self, entry: Entry | None, status: str = COMPLETED, **more: Any) -> None:
        """Now, with what was kept."""
        with self._lock:
            steps = self.kept() if entry is None else self.kept(entry.row(status, **more))
            if steps:
                with self._taken():
                    self.desk.record(self.claim, steps)
                self._wrote(steps)

    def complete(self, entry: Entry, result: Any, **more: Any) -> None:
        self.write(entry, COMPLETED, result=plain(result, entry.name), **more)

    def flush(self) -> None:
        """Before something happens that others can see."""
        if self._kept:
            self.write(None)

    def ask(self, scope: Scope, entry: Entry, text: str, kind: str, *, hold: bool = False, **fields: Any) -> Suspended:
        """Ask a person, and be suspended by that: one commit. Where others go on beside it, the claim is kept for them."""
        desk = fields.pop("desk", None) or self.desk
        more = {name: fields.pop(name) for name in ("seat", "session_id") if name in fields}
        with self._lock:
            steps = self.kept(entry.row(WAITING, **more))
            fields = {name: value for name, value in fields.items() if value is not None}
            reason = fields.pop("reason", None)
            with self._taken():
                held = hold or not scope.alone
                task = desk.flag(
                    self.key, text, reason, kind, claim=self.claim, step=entry.path, steps=steps, hold=held, **fields
                )
            self._moved(task)
            self._wrote(steps)
        return scope.suspend("person")

    def sleep(self, scope: Scope, entry: Entry, until: str) -> Suspended:
        with self._lock:
            if scope.alone:
                steps = self.kept(entry.row(WAITING, seat={"until": until}))
                with self._taken():
                    self._moved(self.desk.park(self.claim, until, steps=steps))
                self._wrote(steps)
            else:
                self.write(entry, WAITING, seat={"until": until})
        return scope.suspend("sleep", until)

    def _moved(self, task: dict[str, Any]) -> None:
        """A move answers with the open questions only: other branches still look for answers that were known before."""
        asked = {q["id"]: q for q in (*self.task["questions"], *task["questions"])}
        self.task = {**task, "questions": list(asked.values())}

    @contextmanager
    def _taken(self) -> Iterator[None]:
        """A script cannot do anything about a lost claim, so it is no exception for it to catch. Bad arguments are its own."""
        try:
            yield
        except (Invalid, NotAllowed):
            raise
        except YourturnError as error:
            self.leave(lost := Interrupted(error))
            raise lost from None


def recorded(value: Any) -> Any:
    """As it comes back from the journal, whoever asks next: no enum, no tuple, keys in order."""
    return json.loads(dumps(value))


def plain(value: Any, what: str) -> Any:
    """What a journal can hold: plain data."""
    from ..core.canon import check

    try:
        return check(value, what)
    except (Invalid, TypeError, ValueError, RecursionError) as error:
        words = error.message if isinstance(error, Invalid) else str(error)
        raise Invalid(
            f"{what}() can only take and return plain data", reason=words, hint="Text, numbers, lists and dictionaries of those."
        ) from None

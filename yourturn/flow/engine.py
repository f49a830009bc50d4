"""One claimed run, from its first line to where it waits or ends.

    the person's word about changed code ─ load the script ─ replay and go on ─ waits | done | stuck | failed | asks for recovery

A run that waits is nothing but rows: the journal, and the question that was written in the same commit. Whoever claims it
next begins here again. So nothing has to be kept in memory, and nothing is lost with a process.

When the script calls something else than the journal says, it was changed while the run waited, or it is not the same twice.
Nobody can know what was meant, so a person is asked: the run goes on with the new script from there (what it calls again in
exactly the same way is not done again), goes back to a step, tries again, or stops. The answer that the run was waiting for
stays where it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.errors import ClaimLost, Invalid, YourturnError
from ..runs import about_code
from ..screen import clock
from . import program
from .durable import Config
from .journal import Entry, Journal, Scope, scope
from .values import Diverged, Interrupted, Released, Signal, Stuck, Suspended

if TYPE_CHECKING:
    from ..client import Client
    from .agentcall import Host

_FROM = re.compile(r"(?:from|back to|step)?[ :-]*(?:step )?(\d{1,6})(?:[.\d]*)", re.I)
SHOWN = 12  #: steps that are offered to go back to
SWALLOWED = (
    "caught what suspends or ends it, with a bare except:, except BaseException: or a return in finally:. "
    "It got no further than its next durable call, and nothing is lost. Catch Exception instead."
)


class Ended(NamedTuple):
    what: str  #: done, stuck, failed, waiting, asleep, stopped, released, lost
    words: str = ""
    person: bool = False  #: somebody is asked, because there are no tries left


class Engine:
    def __init__(self, desk: Client, got: dict[str, Any], host: Host, root: Path) -> None:
        self.desk, self.host, self.root = desk, host, root
        self.task: dict[str, Any] = got["task"]
        self.claim: dict[str, Any] = got["claim"]
        self.key: str = self.task["key"]
        self.ref = str(self.task["workflow"])
        self.file = program.split(self.ref)[0]
        self.changed = False

    def go(self) -> Ended:
        try:
            self.task = self.desk.show(self.key)  # a claim tells nothing of steps, answers and notes
            return self._recover() or self._run()
        except (ClaimLost, Interrupted) as error:
            return self._interrupted(error.error if isinstance(error, Interrupted) else error)

    # --- the script -------------------------------------------------------------------------------------------------

    def _run(self) -> Ended:
        try:
            source = self._source()
            function, where = self._load(source)
        except YourturnError as error:
            return self._ask_recovery("1", self._words(error), {"error": self._words(error)}, runs=False)
        news = {"file": source.file, "body": source.body} if self.changed else None
        self.journal = Journal(self.desk, {"task": self.task, "claim": self.claim}, self.host, Config(), news)
        top, value = Scope(self.journal), None
        raised: BaseException | None = None
        token = scope.set(top)
        try:
            value = function(self.task["description"])
            top.ended()
        except BaseException as error:
            raised = error
        finally:
            scope.reset(token)
        way_out = self.journal.out or top.left or raised
        if way_out is None:
            return self._done(value)
        found = self._left(way_out, where)
        if (way_out is not raised or self.journal.swallowed) and found.what != "lost":
            self._swallowed()
        return found

    def _load(self, source: program.Source) -> tuple[Callable[[str], Any], str]:
        """The function, and the name of its file in tracebacks."""
        return program.load(self.ref, source), str(source.path or source.file)

    def _read(self) -> program.Source | None:
        return program.read(self.ref, self.root)

    def _source(self) -> program.Source:
        """The file that is there now, else what was recorded."""
        known, here = self.desk.program(self.key), self._read()
        if here is None:
            if known is None:
                raise Invalid(f"There is no script {self.file} here", hint="Put it back, or stop the run.")
            return program.Source(known["file"], known["body"], None)
        self.changed = known is None or known["digest"] != here.digest
        return here

    # --- how it is left ---------------------------------------------------------------------------------------------

    def _left(self, way_out: BaseException, where: str) -> Ended:
        if isinstance(way_out, KeyboardInterrupt):
            way_out = Suspended("stop")
        if isinstance(way_out, Suspended):
            return self._suspended(way_out)
        if isinstance(way_out, Diverged):
            return self._diverged(way_out)
        if isinstance(way_out, Stuck):
            return self._fail("stuck", way_out.reason or "the script gave no reason", "stuck")
        if isinstance(way_out, Interrupted):
            return self._interrupted(way_out.error)
        if isinstance(way_out, Released):
            return self._released(way_out)
        return self._fail("failed", f"{self.file}: {program.trouble(way_out, where)}", "error")

    def _suspended(self, left: Suspended) -> Ended:
        ended = self._park(left.until if left.why == "sleep" else None)
        return Ended("stopped", "it goes on where it was, next time") if left.why == "stop" else ended

    def _park(self, until: str | None = None) -> Ended:
        """Let it go, unless that was done by what suspended it."""
        task = self.journal.task
        if self._holds(task) and self._holds(task := self.desk.show(self.key)):
            self.host.leave()
            task = self.desk.park(self.claim, None if task["awaiting"] else until, steps=self.journal.kept())
        if task["awaiting"]:
            open_ = next(q for q in task["questions"] if q["status"] == "pending" and q["blocking"])
            return Ended("waiting", f"waits for a person ({open_['kind']}): {open_['text'].splitlines()[0]}")
        until = task["wake_at"]
        return Ended("asleep", f"sleeps until {clock(until)}") if until else Ended("waiting", "goes on at once")

    def _holds(self, task: dict[str, Any]) -> bool:
        return bool(task["claim"] and task["claim"]["epoch"] == self.claim["epoch"])

    def _released(self, way_out: Released) -> Ended:
        self.host.leave()
        self.journal.flush()
        self.desk.note(self.key, f"Given back: {way_out}")
        if self.desk.show(self.key)["awaiting"]:  # another branch has asked: whoever goes on with the answer tries this again
            return self._park()
        task = self.desk.release(self.claim, str(way_out))
        person = bool(task["awaiting"])
        return Ended("released", f"{way_out}; {'a person is asked' if person else 'it is tried again'}", person)

    def _swallowed(self) -> None:
        """The script caught what leaves it. It got no further; but who wrote it should know."""
        text = f"{self.file} {SWALLOWED}"
        if all(note["text"] != text for note in self.task["notes"]):
            self.desk.note(self.key, text)

    def _interrupted(self, error: Exception) -> Ended:
        if isinstance(error, ClaimLost):
            return Ended("lost", str(error))
        raise error

    def close(self, what: str, words: str) -> str:
        """The run is about to end as done, failed or stuck: time to bring its work home. Returns what is told of it."""
        return words

    def _done(self, value: Any) -> Ended:
        self.journal.goes_on()
        summary = _summary(value) or next(
            (s["result"]["summary"] for s in reversed(list(self.journal.steps.values())) if _said(s["result"])), ""
        )
        if self.desk.show(self.key)["awaiting"]:
            return self._park()  # an agent has asked something, and did not wait for the answer
        summary = self.close("done", summary)
        self.desk.complete(self.claim, summary, steps=self.journal.kept(), journal=self.task["journal"])
        return Ended("done", summary or "finished")

    def _fail(self, what: str, words: str, failure: str) -> Ended:
        words = self.close(what, words)
        steps = self.journal.kept()
        self.desk.fail(self.claim, words, failure=failure, steps=steps, journal=self.task["journal"])
        return Ended(what, words)

    # --- changed code -----------------------------------------------------------------------------------------------

    def _diverged(self, other: Diverged) -> Ended:
        expected, actual = _call(other.expected), _call(other.actual)
        if self.changed:
            why = f"{self.file} was changed while {self.key} waited."
        else:
            why = f"{self.file} does not call the same every time. Use now(), random(), uuid() and step() for what changes."
        text = f"{why}\nStep {other.path} was {expected}, and now is {actual}. How should it go on?"
        return self._ask_recovery(other.path, text, {"expected": expected, "actual": actual, "step": other.path})

    def _ask_recovery(self, path: str, text: str, context: dict[str, Any], runs: bool = True) -> Ended:
        at = path.partition(".")[0]
        back = [s for s in self.desk.steps(self.key) if s["index"].isdigit() and not s["spare"] and int(s["index"]) <= int(at)]
        options = [{"id": "retry", "label": "Try again, because the script is mended"}, {"id": "stop", "label": "Stop the run"}]
        if runs:
            options = [
                {"id": "continue", "label": f"Go on with the script as it is now, from step {at}"},
                {"id": "retry", "label": "Try again, because the script is as it was"},
                *({"id": f"from-{s['index']}", "label": f"Go back to step {s['index']}: {_call(s)}"} for s in back[-SHOWN:]),
                {"id": "stop", "label": "Stop the run"},
            ]
        self.host.leave()
        self.desk.flag(
            self.key, text, "code_changed", "recovery", claim=self.claim, options=options, allow_other=True, context=context,
            step=at, steps=[],
        )  # fmt: skip
        return Ended("waiting", f"waits for a person (recovery): {text.splitlines()[0]}")

    def _recover(self) -> Ended | None:
        """What a person said about changed code, if they did since."""
        said = [q for q in self.task["questions"] if about_code(q)]
        if not said or said[-1]["status"] != "answered" or said[-1]["journal"] != self.task["journal"]:
            return None
        q, response = said[-1], said[-1]["response"]
        word = str(response["value"] or response["text"] or "").strip().lower()
        if response["verdict"] == "rejected" or word == "stop":
            words = self.close("stuck", response["text"] or f"stopped by {q['responded_by']}")
            self.desk.fail(self.claim, words, failure="stuck", journal=self.task["journal"])
            return Ended("stuck", words)
        if word in ("continue", "accept-new-code", "go on"):
            self.desk.rewind(self.key, q["step"], spare=True, claim=self.claim)
        elif found := _FROM.fullmatch(word.removeprefix("from-")):
            self.desk.rewind(self.key, found[1], claim=self.claim)
        else:
            return None
        self.task = self.desk.show(self.key)
        return None

    def _words(self, error: YourturnError) -> str:
        return "\n".join(error.lines()).removeprefix("Error: ")


def _call(step: dict[str, Any] | None) -> str:
    """A call as a script would write it."""
    if step is None:
        return "the end of the script"
    name, call = step["name"], step["call"] or {}
    if name == "run":
        words = [call.get("agent"), call.get("prompt")]
    elif name == "step":
        return f"step({call.get('function')}, …)" if call.get("args") else f"step({call.get('function')})"
    else:
        words = [call.get("text") or call.get("seconds") or call.get("branches")]
    return f"{name}({', '.join(repr(_short(word)) for word in words if word is not None)})"


def _short(word: Any) -> Any:
    return f"{word[:57]}…" if isinstance(word, str) and len(word) > 60 else word


def _summary(value: Any) -> str:
    if isinstance(value, Signal):
        return str(value.summary or value.message)
    return value if isinstance(value, str) else ""


def _said(result: Any) -> bool:
    return isinstance(result, dict) and isinstance(result.get("summary"), str) and bool(result["summary"])


__all__ = ["Ended", "Engine", "Entry"]

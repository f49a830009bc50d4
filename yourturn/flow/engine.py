"""One claimed run, from its first line to where it waits or ends.

    the decision about changed code ─ load the script ─ replay and go on ─ waits | done | stuck | failed | asks for recovery

A waiting run is only rows: the journal, and the question that was written in the same commit. The next holder of the claim starts
here again. So no process keeps anything in memory for it, and a crash loses nothing.

When the script makes another call than the journal recorded, it was changed while the run waited, or it is not deterministic. The
engine cannot know which calls were meant, so it asks a person: the run goes on with the new script from there (equal calls in the
same order are reused), goes back to a step, tries again, or stops. The answer that the run waited for is kept. A script that
fails asks in the same way: it is tried again from the call that failed, or ends.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..core.answers import signalled
from ..core.errors import ClaimLost, Invalid, YourturnError
from ..display.run_facts import about_run, response_word, retried
from ..display.terminal import clock
from . import script
from .alignment import SHORT, first_doubtful, path_key
from .api import Config
from .call_text import call_text, differing_calls, doubt_text
from .error_text import failure
from .journal import Branch, Entry, Journal, current_branch
from .results import Diverged, Interrupted, LuaError, Released, Signal, StepFailed, Stuck, Suspended
from .script_modules import setting
from .script_thread import ScriptThread

if TYPE_CHECKING:
    from ..client import Client
    from .agent_step import Host

_FROM = re.compile(r"(?:from|back to|step)?[ :-]*(?:step )?(\d{1,6})(?:[.\d]*)", re.I)
SHOWN = 12  #: how many steps are offered to go back to
SWALLOWED = (
    "caught what suspends or ends it, with a bare except:, except BaseException: or a return in finally:. "
    "It got no further than its next durable call, and nothing is lost. Catch Exception instead."
)


class Ended(NamedTuple):
    what: str  #: done, stuck, failed, waiting, asleep, stopped, released, lost
    words: str = ""
    person: bool = False  #: a person is asked, because no tries are left


class ScriptReader(Protocol):
    def read(self) -> script.Source | None:
        """The current source, if there is one."""

    def load(self, source: script.Source) -> tuple[Callable[[str], Any], str]:
        """The workflow function, and the name of its file in tracebacks."""


class Engine:
    """`scripts` reads and loads the script; by default from its file below `root`."""

    def __init__(
        self, desk: Client, claimed: dict[str, Any], host: Host, root: Path, scripts: ScriptReader | None = None
    ) -> None:
        self.desk, self.host = desk, host
        self.task: dict[str, Any] = claimed["task"]
        self.claim: dict[str, Any] = claimed["claim"]
        self.key: str = self.task["key"]
        self.ref = str(self.task["workflow"])
        self.file = script.split(self.ref)[0]
        self.scripts = scripts or script.ScriptFile(self.ref, root)
        self.changed = False
        self.doubtful = False  #: and the change is more than comments and layout
        self.file_name = ""  #: the script's file name in tracebacks
        self.not_understood = ""  #: a person's answer that is none of the options

    def go(self) -> Ended:
        """Run the script in a thread of its own, which is abandoned if the script cannot be ended."""
        thread = ScriptThread(self.go_here, f"{threading.current_thread().name}/script")
        thread.start()
        thread.wait()
        if (left := thread.left) is not None:
            return self._unless_lost(lambda: self._exited(left, None))
        raised, thread.raised = thread.raised, None
        if raised is not None:
            raise raised
        ended: Ended = thread.value
        return ended

    def go_here(self) -> Ended:
        """Run the script in the calling thread, which returns only if the script does."""
        return self._unless_lost(self._resume)

    def _resume(self) -> Ended:
        self._read_journal(self.task)
        return self._recover() or self._run()

    def _read_journal(self, task: dict[str, Any]) -> None:
        """Read steps, questions and source; `task` is the reply of the last move, which lacks them."""
        journal = self.desk.journal(self.key)
        self.recorded: dict[str, Any] | None = journal.pop("program")
        self.task = {**task, **journal}

    def _unless_lost(self, run: Callable[[], Ended]) -> Ended:
        try:
            return run()
        except (ClaimLost, Interrupted) as error:
            return self._interrupted(error.error if isinstance(error, Interrupted) else error)

    # --- the script -------------------------------------------------------------------------------------------------

    def _run(self) -> Ended:
        try:
            source = self._source()
            with setting(config := Config()):
                function, self.file_name = self.scripts.load(source)
        except YourturnError as error:
            return self._not_run(error)
        self.source, self.helpers = source, script.helpers(function)
        news = {"file": source.file, "body": source.body} if self.changed else None
        claimed, unsure = {"task": self.task, "claim": self.claim}, self.doubtful and not self._decided(source)
        self.journal = Journal(self.desk, claimed, self.host, config, news, unsure)
        top, value = Branch(self.journal), None
        raised: BaseException | None = None
        token = current_branch.set(top)
        try:
            value = function(self.task["description"])
            top.ended()
            self.journal.ended()
        except BaseException as error:
            raised = error
        finally:
            current_branch.reset(token)
            script.unload(function)
        script_exit = self.journal.exit or top.left or raised
        return self._done(value) if script_exit is None else self._exited(script_exit, raised)

    def _exited(self, script_exit: BaseException, raised: BaseException | None) -> Ended:
        ended = self._ended_by(script_exit)
        if (script_exit is not raised or self.journal.swallowed) and ended.what != "lost":
            self._swallowed()
        return ended

    def _source(self) -> script.Source:
        """The current file, else the recorded source."""
        recorded, current = self.recorded, self.scripts.read()
        if current is None:
            if recorded is None:
                raise Invalid(f"There is no script {self.file} here", hint="Put it back, or stop the run.")
            return script.Source(recorded["file"], recorded["body"], None)
        self.changed = recorded is None or recorded["body"] != current.body
        self.doubtful = self.changed and not (recorded and script.alike(self.ref, recorded["body"], current.body))
        return current

    def _decided(self, source: script.Source) -> bool:
        """Whether a person has decided about exactly this change."""
        asked = [q for q in self.task["questions"] if about_run(q) and (q["metadata"] or {}).get("program") == source.digest]
        return any(q["journal"] != self.task["journal"] or response_word(q) == "keep" for q in asked)

    # --- how the script ended ---------------------------------------------------------------------------------------

    def _ended_by(self, script_exit: BaseException) -> Ended:
        if isinstance(script_exit, KeyboardInterrupt) and self.host.stop.is_set():
            script_exit = Suspended("stop")
        if isinstance(script_exit, Suspended):
            return self._suspended(script_exit)
        if isinstance(script_exit, Diverged):
            return self._diverged(script_exit)
        if isinstance(script_exit, Stuck):
            return self._fail("stuck", script_exit.reason or "the script gave no reason", "stuck")
        if isinstance(script_exit, Interrupted):
            return self._interrupted(script_exit.error)
        if isinstance(script_exit, Released):
            return self._released(script_exit)
        if isinstance(script_exit, script.BadScript):
            return self._not_run(script_exit)
        return self._failed(script_exit)

    def _suspended(self, left: Suspended) -> Ended:
        ended = self._park(left.until if left.why == "sleep" else None)
        return Ended("stopped", "it continues there next time") if left.why == "stop" else ended

    def _park(self, until: str | None = None) -> Ended:
        """Give the claim back, unless the call that suspended the run has done so."""
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

    def _released(self, script_exit: Released) -> Ended:
        self.host.leave()
        self.journal.flush()
        self.desk.note(self.key, f"Given back: {script_exit}")
        if self.desk.show(self.key)["awaiting"]:  # another branch has asked: the next claim, after the answer, tries this again
            return self._park()
        task = self.desk.release(self.claim, str(script_exit))
        person = bool(task["awaiting"])
        return Ended("released", f"{script_exit}; {'a person is asked' if person else 'it is tried again'}", person)

    def _swallowed(self) -> None:
        """Note, for the script's author, that the script caught the exception that should end it."""
        text = f"{self.file} {SWALLOWED}"
        if all(note["text"] != text for note in self.desk.show(self.key)["notes"]):
            self.desk.note(self.key, text)

    def _interrupted(self, error: Exception) -> Ended:
        if isinstance(error, ClaimLost):
            return Ended("lost", str(error))
        raise error

    def _done(self, value: Any) -> Ended:
        summary = _summary(value) or next(
            (s["result"]["summary"] for s in reversed(list(self.journal.steps.values())) if _has_summary(s["result"])), ""
        )
        if self.journal.acted and self.desk.show(self.key)["awaiting"]:
            return self._park()  # an agent has asked a question and did not wait for the answer
        summary = self.host.close("done", summary)
        self.desk.complete(self.claim, summary, steps=self.journal.kept(), journal=self.task["journal"])
        return Ended("done", summary or "finished")

    def _fail(self, what: str, words: str, failure: str) -> Ended:
        words = self.host.close(what, words)
        steps = self.journal.kept()
        self.desk.fail(self.claim, words, failure=failure, steps=steps, journal=self.task["journal"])
        return Ended(what, words)

    # --- what a person decides --------------------------------------------------------------------------------------

    def _failed(self, error: BaseException) -> Ended:
        """The script raised an exception. A person decides: it is tried again from the call that failed, or ends."""
        words, at = f"{self.file}: {script.error_line(error, self.file_name)}", self._failed_at(error)
        again = "Try again" + (f", from step {at.partition('.')[0]}" if at else " from where it failed")
        text = f"{self.key} failed{self._times()}. {words}\nHow should it go on?"
        context = {"error": words, **({"step": at} if at else {}), **_failure_context(error)}
        options = {"retry": f"{again}: what it needs is there now, or the script is mended"}
        options |= {**self._back(None), "stop": "End the run as failed"}
        self._ask("run_failed", text, context, at or self._last(), options, self.journal.kept())
        return Ended("failed", words, person=True)

    def _failed_at(self, error: BaseException) -> str:
        """The call that failed: its result is recorded and the same on every replay, so the call has to be made again."""
        seen: BaseException | None = error
        while seen is not None:
            if isinstance(seen, StepFailed):
                return seen.step
            seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
        if isinstance(error, LuaError):  # Lua turned the exception into text
            for path, step in reversed(list(self.journal.steps.items())):
                result = step["result"] if step["name"] == "step" and isinstance(step["result"], dict) else {}
                if result.get("error") and result["error"] in str(error):
                    return str(path)
        return ""

    def _times(self) -> str:
        before = sum(q["reason"] == "run_failed" for q in self.task["questions"])
        return f" again ({before + 1} times now)" if before else ""

    def _last(self) -> str:
        return str(max((int(path.partition(".")[0]) for path in self.journal.steps), default=1))

    def _diverged(self, other: Diverged) -> Ended:
        lines, context, at = [self._why()], {"step": other.path}, other.path.partition(".")[0]
        if other.actual is not other.expected:
            expected, actual = differing_calls(other.expected, other.actual)
            context |= {"expected": expected, "actual": actual}
            lines.append(f"Step {other.path} was {expected}, and now is {actual}.")
        lines += [doubt_text(doubt) for doubt in other.doubts[:SHOWN]]
        options = {"continue": f"Go on with the script as it is now, from step {at}; what it calls in another way is done"}
        if other.doubts:
            options["continue"] += ", what is in doubt is asked and done again"
            options["keep"] = "Go on with the script as it is now; what is in doubt still belongs where it is"
        options |= {"retry": "Try again, because the script is as it was", **self._back(int(at)), "stop": "Stop the run"}
        metadata: dict[str, Any] = {"program": self.source.digest}
        if other.doubts:
            metadata["again"] = sorted({doubt.mark[:SHORT] for doubt in other.doubts})
            metadata["from"] = path_key(other.doubts[0].first)[0]
        return self._ask_recovery(other.path, "\n".join(lines) + " How should it go on?", context, options, metadata=metadata)

    def _why(self) -> str:
        if self.changed:
            return f"{self.file} was changed while {self.key} waited."
        why = f"{self.file} does not call the same every time. Use now(), random(), uuid() and step() for what changes."
        if self.helpers:
            changed = f"a module beside it was changed while {self.key} waited ({', '.join(self.helpers[:SHOWN])}), or"
            return f"{self.file} is as it was: {changed} {why.replace(self.file, 'it', 1)}"
        return why

    def _not_run(self, error: YourturnError) -> Ended:
        """The script cannot be loaded: ask a person."""
        options = {"retry": "Try again, because the script is mended", "stop": "Stop the run"}
        return self._ask_recovery("1", self._message(error), {"error": self._message(error)}, options)

    def _ask_recovery(self, path: str, text: str, context: dict[str, Any], options: dict[str, str], **more: Any) -> Ended:
        self._ask("code_changed", text, context, path, options, **more)
        return Ended("waiting", f"waits for a person (recovery): {text.splitlines()[0]}")

    def _back(self, at: int | None) -> dict[str, str]:
        """The options to go back to a step, by their ids."""
        steps = [s for s in self.desk.steps(self.key) if s["index"].isdigit() and not s["spare"]]
        earlier = [s for s in steps if at is None or int(s["index"]) <= at]
        return {f"from-{s['index']}": f"Go back to step {s['index']}: {call_text(s)}" for s in earlier[-SHOWN:]}

    def _ask(
        self, reason: str, text: str, context: dict[str, Any], path: str, options: dict[str, str], kept: Any = (), **more: Any
    ) -> None:
        if self.not_understood:
            names = ", ".join(options)
            text = f"“{self.not_understood}” was not understood. Choose one of: {names}.\n{text}"
        self.host.leave()
        self.desk.flag(
            self.key, text, reason, "recovery", claim=self.claim, allow_other=True, context=context, step=path.partition(".")[0],
            options=[{"id": word, "label": label} for word, label in options.items()], steps=list(kept), **more,
        )  # fmt: skip

    def _recover(self) -> Ended | None:
        """Act on a person's answer about changed code or a failure, if there is a new one."""
        q = next((q for q in reversed(self.task["questions"]) if about_run(q)), None)
        if q is None or q["status"] != "answered" or q["journal"] != self.task["journal"] or self._acted_upon(q):
            return None
        response = q["response"]
        word, at, metadata = response_word(q), int(q["step"]), q["metadata"] or {}
        if response["verdict"] == "rejected" or _is_no(word):
            return self._stopped(q, "" if _is_no(response["text"]) else response["text"])
        if word in ("continue", "accept-new-code", "go on") and q["reason"] == "code_changed":
            to = first_doubtful(self.task["steps"], min(at, metadata.get("from", at)))
            task = self.desk.rewind(self.key, to, spare=True, claim=self.claim)
        elif word == "keep" and metadata.get("again"):
            if "actual" not in q["context"]:
                return None
            task = self.desk.rewind(self.key, at, spare=True, claim=self.claim)
        elif step := _FROM.fullmatch(word.removeprefix("from-")):
            task = self.desk.rewind(self.key, step[1], claim=self.claim)
        elif retried(q):
            failed = (q["context"] or {}).get("step") if q["reason"] == "run_failed" else None
            if not failed:
                return None
            task = self.desk.rewind(self.key, failed, spare="." in failed, claim=self.claim)
        else:
            self.not_understood = word[:80]
            return None
        self._read_journal(task)
        return None

    def _acted_upon(self, q: dict[str, Any]) -> bool:
        """Whether that answer has stopped the run, and a person has resumed it since."""
        for event in reversed(self.desk.history(self.key, limit=1000)):
            if event["action"] == "rewind":
                return True
            if any(closed["id"] == q["id"] for closed in event["data"].get("closed", ())):
                return False
        return False

    def _stopped(self, q: dict[str, Any], text: str) -> Ended:
        """End the run: as failed, with its error, or as stuck."""
        words, what, kind = text or f"stopped by {q['responded_by']}", "stuck", "stuck"
        if q["reason"] == "run_failed":
            words, what, kind = f"{q['context']['error']}{f' ({text})' if text else ''}", "failed", "error"
        words = self.host.close(what, words)
        self.desk.fail(self.claim, words, failure=kind, journal=self.task["journal"])
        return Ended(what, words)

    def _message(self, error: YourturnError) -> str:
        return "\n".join(error.lines()).removeprefix("Error: ")


def _is_no(word: str) -> bool:
    return signalled(word) is False


def _failure_context(error: BaseException) -> dict[str, Any]:
    """The failure as context of the question. An error inside a step() has its own traceback, recorded in the step."""
    details = {name: value for name, value in failure(error).items() if name != "error" and value}
    if isinstance(error, StepFailed) and error.type:
        trace = f"{error.traceback}\n\nraised in step {error.step}, called here:\n\n{details.get('traceback', '')}"
        details |= {"type": error.type, "place": error.place or details.get("place", ""), "traceback": trace}
    return details


def _summary(value: Any) -> str:
    if isinstance(value, Signal):
        return str(value.summary or value.message)
    return value if isinstance(value, str) else ""


def _has_summary(result: Any) -> bool:
    return isinstance(result, dict) and isinstance(result.get("summary"), str) and bool(result["summary"])


__all__ = ["Ended", "Engine", "Entry"]

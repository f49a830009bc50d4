"""What a script can call: every effect and every wait goes through one of these, and is written into the run's journal.

They find the run that they belong to by the thread they are called in. Lua scripts call the same functions (lua.py).
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable
from contextvars import copy_context
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NoReturn, ParamSpec, TypeVar

from ..core.actions import VERBS
from ..core.errors import Invalid, Usage
from ..core.fields import duration
from ..display.runs import no_waiting
from .agent_step import AgentCall, conduct
from .error_text import failure
from .journal import Entry, Scope, plain, recorded, scope
from .results import Answer, Halted, Pause, Signal, StepFailed, Stuck, Suspended, WayOut, refusal
from .script_modules import loading
from .script_thread import ScriptThread

T = TypeVar("T")
P = ParamSpec("P")

#: What silence does: the words of scripts, and the desk's.
_ON_TIMEOUT = {"notify_again": "remind"}
DAY = 24 * 3600
#: What a script may say about a question.
ASKED = VERBS["ask"].args.keys() - VERBS["heartbeat"].args.keys() - {"text", "blocking", "step"}


class Config:
    """What `config(…)` can say, and what holds without it."""

    def __init__(self) -> None:
        self.human_escalation = True
        self.human_timeout: Any = DAY
        self.on_timeout = "stuck"
        self.notify_on_waiting: list[str] = []


def _here(name: str) -> Scope:
    found = scope.get()
    if found is None or found.thread != threading.get_ident():
        raise Usage(
            f"{name}() was called outside of a workflow",
            hint="Call it in the function that `turn run` runs, in its own thread, and not inside a step().",
        )
    return found


def config(**settings: Any) -> None:
    """Decide how this run waits: human_escalation, human_timeout ('2d', or None), on_timeout, notify_on_waiting."""
    known = loading.get() or _here("config").journal.config
    for name, value in settings.items():
        if not hasattr(known, name):
            raise Invalid(f"config() knows no {name[:40]!a}", hint=f"It knows: {', '.join(vars(known))}.")
        if name == "human_timeout" and value is not None:
            duration(value, name)
        if name == "on_timeout":
            value = _silence(value)
        if name == "notify_on_waiting":
            value = [value] if isinstance(value, str) else list(value or ())
        setattr(known, name, value)


def _silence(word: str) -> str:
    from ..core.rules import SILENCE

    word = _ON_TIMEOUT.get(word, word)
    if word not in SILENCE:
        raise Invalid(f"on_timeout cannot be {str(word)[:40]!a}", hint=f"Choose one of: {', '.join([*SILENCE, *_ON_TIMEOUT])}.")
    return word


def run(agent: str, prompt: Any = None, *, human: bool | None = None, **options: Any) -> Signal:
    """Let an agent work, and return its signal. If it needs a person, the run waits, and the agent goes on with the answer.

    human=False: what it wants to ask is returned as its signal instead. timeout, on_timeout: for whoever is asked.
    """
    here = _here("run")
    if not isinstance(agent, str) or not agent.strip():
        raise Invalid("run() needs the name of an agent", hint='Like: run("coder")')
    if isinstance(prompt, Signal):  # what another agent said
        prompt = prompt.summary or prompt.message or prompt.reason
    if isinstance(prompt, dict) and not options and human is None:  # as Lua has it
        options = dict(prompt)
        prompt, human = options.pop("prompt", None), options.pop("human", None)
    unknown = set(options) - {"timeout", "on_timeout", "urgency", "reviewer"}
    if unknown:
        raise Invalid(f"run() takes no {min(unknown)!a}", hint="It takes: human, timeout, on_timeout, urgency, reviewer.")
    said = {"agent": agent, "prompt": None if prompt is None else str(prompt), **_given(human=human, **options)}
    entry = here.call("run", plain(said, "run"), agent)
    if entry.done:
        return Signal(entry.result)
    asking = here.journal.config.human_escalation if human is None else human
    call = AgentCall(here, entry, agent, said["prompt"], _patience(here, options))
    said_last = dict(conduct(call, human=bool(asking)))
    try:
        signal = recorded(plain(said_last, "run"))
        here.journal.complete(entry, signal)
    except Invalid as error:
        signal = {"status": "ERROR", "reason": f"what {agent} said cannot be recorded: {error}"}
        here.journal.complete(entry, signal)
    return Signal(signal)


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _patience(here: Scope, options: dict[str, Any]) -> dict[str, Any]:
    """How long a person has, and what silence does."""
    known = here.journal.config
    fields = {"timeout": options.get("timeout", known.human_timeout), "on_timeout": known.on_timeout}
    if options.get("on_timeout") is not None:
        fields["on_timeout"] = _silence(options["on_timeout"])
    if known.notify_on_waiting:
        fields["metadata"] = {"notify": known.notify_on_waiting}
    return fields | {name: value for name, value in options.items() if name not in fields}


def pause(message: str, *, kind: str = "checkpoint", **options: Any) -> Pause:
    """Wait until a person lets the run go on, or stops it there."""
    if options.get("on_timeout") == "default" or "default" in options:
        hint = "Use ask() for what may go on by itself."
        raise Invalid("pause() takes no default", reason="silence never approves anything", hint=hint)
    if unknown := options.keys() - ASKED | options.keys() & _CHOICE:
        why = "it is answered with yes or no"
        raise Invalid(f"pause() takes no {min(unknown)!a}", reason=why, hint="Use ask() for anything else.")
    q = _asked("pause", message, kind, options, response_type="approval")
    words = q["text"]
    if q["status"] == "answered" and q["verdict"] == "approved" and q["value"] is not False:
        return Pause(True, "", words, q["by"])
    return Pause(False, words or q["why"] or refusal(q["by"], message), words, q["by"])


#: What makes a question one that yes and no do not answer.
_CHOICE = {"options", "response_type", "multi", "allow_other", "default"}


def ask(text: str, options: Iterable[Any] = (), *, kind: str = "input", **fields: Any) -> Answer:
    """Ask a person, and wait for the answer. With `default` and on_timeout="default", silence answers."""
    if unknown := fields.keys() - ASKED:
        raise Invalid(f"ask() takes no {min(unknown)!a}", hint=f"It takes: {', '.join(sorted(ASKED))}.")
    q = _asked("ask", text, kind, {**fields, **({"options": list(options)} if options else {})})
    return Answer(q["value"], q["text"], q["verdict"], q["by"], q["status"], q["type"])


def _asked(name: str, text: str, kind: str, options: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A question's end, in plain data."""
    here = _here(name)
    entry = here.call(name, plain({"text": str(text), "kind": kind, **options}, name), "_checkpoint" if name == "pause" else None)
    journal, wanted = here.journal, _type(kind, {**options, **more})
    if entry.done:
        return {"type": wanted, **(entry.result if "verdict" in entry.result else _settled(entry.result, wanted))}
    asked = journal.questions(entry)
    if not asked or journal.cut_off(asked[-1]):
        journal.host.leave()
        raise journal.ask(here, entry, str(text), kind, **_patience(here, {**options, **more}))
    if asked[-1]["status"] == "pending":
        raise here.suspend("person")
    return dict(journal.keep(entry, closed(asked[-1])))


def _type(kind: str, options: dict[str, Any]) -> str:
    """What answers it."""
    from ..core.rules import KINDS

    own = KINDS[kind].response_type if kind in KINDS else ""
    return str(options.get("response_type") or ("choice" if options.get("options") else own))


def _settled(signal: dict[str, Any], wanted: str) -> dict[str, Any]:
    """A signal in the place of an answer: somebody said CONTINUE or STOP."""
    from ..core.answers import signalled

    words = str(signal.get("message") or signal.get("reason") or signal.get("summary") or "")
    verdict = "rejected" if signalled(signal.get("status", "")) is False else "approved"
    value = signal.get("value", verdict == "approved" if wanted == "boolean" else words if verdict == "approved" else None)
    return {"status": "answered", "verdict": verdict, "value": value, "text": words, "by": str(signal.get("by") or ""), "why": ""}


def closed(q: dict[str, Any]) -> dict[str, Any]:
    """What came of a question."""
    response = q["response"] or {}
    return {
        "status": q["status"], "verdict": response.get("verdict"), "value": response.get("value"), "type": q["response_type"],
        "text": response.get("text") or "", "by": q["responded_by"] or "", "why": q["close_reason"] or "",
    }  # fmt: skip


def stuck(reason: str = "") -> NoReturn:
    """Give up: the run ends here, with this reason."""
    here = _here("stuck")
    here.stay()
    raise here.journal.leave(Stuck(str(reason)))


def step(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function once, and remember what it returned: for every effect and everything that is not the same twice.

    A crash between the call and its record calls it again. If it raises, StepFailed is raised, on every replay the same.
    """
    here = _here("step")
    if not callable(function):
        raise Invalid("step() needs a function", hint="Like: step(fetch, url), not step(fetch(url)).")
    name = getattr(function, "__qualname__", type(function).__name__).replace("<locals>.", "").replace("<lambda>", "lambda")
    if inspect.iscoroutinefunction(function):
        raise Invalid(f"step() needs a plain function, and {name} is async", hint="Like: step(lambda: asyncio.run(fetch(url)))")
    call = plain({"function": name, "args": list(args), **({"kwargs": kwargs} if kwargs else {})}, "step")
    entry = here.call("step", call)
    if entry.done:
        found = entry.result
    else:
        here.journal.flush()
        found = _outcome(here, function, args, kwargs, name)
        try:
            here.journal.complete(entry, found)
        except Invalid as error:  # too large, say: the deed is done, and its record says so
            found = failure(Invalid(f"what {name} returned cannot be recorded", reason=str(error)))
            here.journal.complete(entry, found)
    if "error" in found:
        raise StepFailed(**found, step=entry.path)
    value: T = found["value"]
    return value


def _outcome(here: Scope, function: Callable[..., Any], args: Any, kwargs: Any, name: str) -> dict[str, Any]:
    outside, waits = scope.set(None), no_waiting.set(Misplaced)
    try:
        return {"value": recorded(plain(function(*args, **kwargs), name))}
    except (Misplaced, WayOut):
        raise  # nothing came of it: so nothing stands in the way of a script that asks elsewhere, or of the next worker
    except BaseException as error:  # also an interrupt: that it is time to go is said by the worker, and nobody else
        if isinstance(error, KeyboardInterrupt) and here.journal.host.stop.is_set():
            raise
        return failure(error)
    finally:
        scope.reset(outside)
        no_waiting.reset(waits)


class Misplaced(Usage):
    """Something waits for a person inside of a step: the run would hold its worker up, for as long as that takes."""

    def __init__(self, tool: str) -> None:
        before = f'if pause("Run {tool}?", kind="approval"): step({tool.rpartition(".")[2]}.__wrapped__, …)'
        super().__init__(f"{tool} waits for a person, and a step cannot. Ask before it: {before}")


def sleep(length: Any) -> None:
    """Sleep for so long: seconds, or like '2d'. Nothing runs meanwhile."""
    here = _here("sleep")
    micros = duration(length.total_seconds() if isinstance(length, timedelta) else length, "sleep()")
    entry = here.call("sleep", {"seconds": micros / 1_000_000})
    if entry.done:
        return
    journal = here.journal
    if entry.waiting:
        if here.alone or datetime.fromisoformat(entry.seat["until"]) <= datetime.fromisoformat(journal.desk.now()):
            journal.keep(entry, None)
            return
        raise here.suspend("sleep", entry.seat["until"])
    until = datetime.fromisoformat(journal.desk.now()) + timedelta(microseconds=micros)
    journal.host.leave()
    raise journal.sleep(here, entry, until.isoformat())


def _once(name: str, make: Callable[[Scope], Any]) -> Any:
    """Something that is not the same twice, and costs nothing."""
    here = _here(name)
    entry = here.call(name, None)
    return entry.result if entry.done else here.journal.keep(entry, make(here))


def now() -> datetime:
    """The time, as it was when the script first asked."""
    return datetime.fromisoformat(_once("now", lambda here: here.journal.desk.now()))


def random() -> float:
    """A random number from 0 to 1, the same on every replay."""
    from random import random as number

    return float(_once("random", lambda here: number()))


def uuid() -> str:
    """A random id, the same on every replay."""
    from uuid import uuid4

    return str(_once("uuid", lambda here: str(uuid4())))


def log(*words: Any) -> None:
    """Say something to whoever watches, once."""
    here = _here("log")
    text = " ".join(map(str, words))
    entry = here.call("log", {"text": plain(text, "log")})
    if not entry.done:
        here.journal.host.say(text)
        here.journal.keep(entry, None)


def parallel(branches: Iterable[Callable[[], Any]]) -> list[Any]:
    """Do several things side by side, each a function without arguments; returns what they return, in their order.

    A branch that has to wait does not stop the others. The run goes on when all of them have ended.
    """
    here, todo = _here("parallel"), list(branches)
    if not all(callable(branch) for branch in todo):
        raise Invalid("parallel() needs functions", hint='Like: parallel([lambda: run("a"), lambda: run("b")])')
    entry = here.call("parallel", {"branches": len(todo)})
    older = here.journal.spares.old(entry.path, entry.step)
    behind = "" if entry.in_place else None
    scopes = [Scope(here.journal, f"{entry.path}.{n}", f"{older}.{n}" if older else None, behind) for n in range(len(todo))]
    if entry.step is None:
        here.journal.write(entry, "running")
    ends: list[tuple[bool, Any]] = [(False, Halted())] * len(todo)  # one that says nothing of its end was hit by that

    def go(number: int) -> None:
        scope.set(scopes[number])
        scopes[number].thread = threading.get_ident()
        try:
            ends[number] = (True, todo[number]())
            scopes[number].ended()
        except BaseException as error:
            ends[number] = (False, error)

    if entry.done:
        for number in range(len(todo)):
            copy_context().run(go, number)
    else:
        with here.journal.host.beside(entry.path, len(todo)):
            name = threading.current_thread().name
            threads = [ScriptThread(partial(go, n), f"{name}/{n}") for n in range(len(todo))]
            for thread in threads:
                thread.start()
            for number, thread in enumerate(threads):
                thread.wait()
                if thread.left is not None:
                    ends[number] = (False, thread.left)
    return _together(here, entry, scopes, ends)


def _together(here: Scope, entry: Entry, scopes: list[Scope], ends: list[tuple[bool, Any]]) -> list[Any]:
    """What the branches came to: whatever is not a result goes further up, the gravest first."""
    errors = [error for ok, error in ends if not ok]
    left = [each.left for each in scopes if each.left is not None] + [e for e in errors if isinstance(e, Suspended)]
    grave = [e for e in (here.journal.out, *errors) if e is not None and not isinstance(e, (Exception, Suspended))]
    if grave:
        raise grave[0]
    if left:
        whys = [each.why for each in left]
        why = "person" if "person" in whys else "stop" if "stop" in whys else "sleep"
        raise here.suspend(why, min((each.until for each in left if each.until), default=None))
    if errors:
        if not entry.done:
            here.journal.complete(entry, None)
        raise errors[0]
    if not entry.done:
        here.journal.host.together(entry.path, len(ends))
        here.journal.complete(entry, None)
    return [value for _, value in ends]


#: What scripts find without importing it.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (run, pause, ask, stuck, config, step, sleep, now, random, uuid, log, parallel)
}

"""The functions that a script calls. Every effect and every wait goes through one of them and is recorded in the run's journal.

They find their run by the thread in which they are called. Lua scripts call the same functions (lua.py).
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable
from contextvars import copy_context
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NoReturn, ParamSpec, TypeVar

from ..approval.call_binding import no_waiting
from ..core.actions import VERBS
from ..core.errors import Invalid, Usage
from ..core.fields import duration
from .agent_step import AgentCall, run_agent_step
from .error_text import failure
from .journal import Branch, Entry, current_branch, plain, recorded
from .results import Answer, Halted, Pause, ScriptExit, Signal, StepFailed, Stuck, Suspended, refusal
from .script_modules import loading
from .script_thread import ScriptThread

T = TypeVar("T")
P = ParamSpec("P")

#: Timeout policies: names in scripts, and the desk's names.
_ON_TIMEOUT = {"notify_again": "remind"}
DAY = 24 * 3600
#: Options of a question that a script may set.
ASK_OPTIONS = VERBS["ask"].args.keys() - VERBS["heartbeat"].args.keys() - {"text", "blocking", "step"}


class Config:
    """The settings of `config(…)`, with their defaults."""

    def __init__(self) -> None:
        self.human_escalation = True
        self.human_timeout: Any = DAY
        self.on_timeout = "stuck"
        self.notify_on_waiting: list[str] = []


def _current(name: str) -> Branch:
    branch = current_branch.get()
    if branch is None or branch.thread != threading.get_ident():
        raise Usage(
            f"{name}() was called outside of a workflow",
            hint="Call it in the function that `turn run` runs, in its own thread, and not inside a step().",
        )
    return branch


def config(**settings: Any) -> None:
    """Set how this run waits: human_escalation, human_timeout ('2d', or None), on_timeout, notify_on_waiting."""
    current = loading.get() or _current("config").journal.config
    for name, value in settings.items():
        if not hasattr(current, name):
            raise Invalid(f"config() has no setting {name[:40]!a}", hint=f"It has: {', '.join(vars(current))}.")
        if name == "human_timeout" and value is not None:
            duration(value, name)
        if name == "on_timeout":
            value = _timeout_policy(value)
        if name == "notify_on_waiting":
            value = [value] if isinstance(value, str) else list(value or ())
        setattr(current, name, value)


def _timeout_policy(policy: str) -> str:
    from ..core.rules import TIMEOUT_POLICIES

    policy = _ON_TIMEOUT.get(policy, policy)
    if policy not in TIMEOUT_POLICIES:
        names = [*TIMEOUT_POLICIES, *_ON_TIMEOUT]
        raise Invalid(f"on_timeout cannot be {str(policy)[:40]!a}", hint=f"Choose one of: {', '.join(names)}.")
    return policy


def run(agent: str, prompt: Any = None, *, human: bool | None = None, **options: Any) -> Signal:
    """Run an agent and return its signal. If the agent needs a person, the run waits, and the agent continues with the answer.

    human=False: a question of the agent is returned as its signal instead. timeout, on_timeout: of the agent's questions.
    """
    branch = _current("run")
    if not isinstance(agent, str) or not agent.strip():
        raise Invalid("run() needs the name of an agent", hint='Like: run("coder")')
    if isinstance(prompt, Signal):  # the signal of another agent
        prompt = prompt.summary or prompt.message or prompt.reason
    if isinstance(prompt, dict) and not options and human is None:  # as Lua has it
        options = dict(prompt)
        prompt, human = options.pop("prompt", None), options.pop("human", None)
    unknown = set(options) - {"timeout", "on_timeout", "urgency", "reviewer"}
    if unknown:
        raise Invalid(f"run() takes no {min(unknown)!a}", hint="It takes: human, timeout, on_timeout, urgency, reviewer.")
    arguments = {"agent": agent, "prompt": None if prompt is None else str(prompt), **_without_none(human=human, **options)}
    entry = branch.call("run", plain(arguments, "run"), agent)
    if entry.done:
        return Signal(entry.result)
    asking = branch.journal.config.human_escalation if human is None else human
    call = AgentCall(branch, entry, agent, arguments["prompt"], _wait_options(branch, options))
    final = dict(run_agent_step(call, human=bool(asking)))
    try:
        signal = recorded(plain(final, "run"))
        branch.journal.complete(entry, signal)
    except Invalid as error:
        signal = {"status": "ERROR", "reason": f"the signal of {agent} cannot be recorded: {error}"}
        branch.journal.complete(entry, signal)
    return Signal(signal)


def _without_none(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _wait_options(branch: Branch, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a question: timeout, timeout policy and notifications."""
    config = branch.journal.config
    fields = {"timeout": options.get("timeout", config.human_timeout), "on_timeout": config.on_timeout}
    if options.get("on_timeout") is not None:
        fields["on_timeout"] = _timeout_policy(options["on_timeout"])
    if config.notify_on_waiting:
        fields["metadata"] = {"notify": config.notify_on_waiting}
    return fields | {name: value for name, value in options.items() if name not in fields}


def pause(message: str, *, kind: str = "checkpoint", **options: Any) -> Pause:
    """Wait until a person approves that the run goes on, or rejects it."""
    if options.get("on_timeout") == "default" or "default" in options:
        hint = "Use ask() for what may go on by itself."
        raise Invalid("pause() takes no default", reason="silence never approves anything", hint=hint)
    if unknown := options.keys() - ASK_OPTIONS | options.keys() & _CHOICE:
        why = "it is answered with yes or no"
        raise Invalid(f"pause() takes no {min(unknown)!a}", reason=why, hint="Use ask() for anything else.")
    q = _question("pause", message, kind, options, response_type="approval")
    text = q["text"]
    if q["status"] == "answered" and q["verdict"] == "approved" and q["value"] is not False:
        return Pause(True, "", text, q["by"])
    return Pause(False, text or q["why"] or refusal(q["by"], message), text, q["by"])


#: Options that turn a question into one that yes or no does not answer.
_CHOICE = {"options", "response_type", "multi", "allow_other", "default"}


def ask(text: str, options: Iterable[Any] = (), *, kind: str = "input", **fields: Any) -> Answer:
    """Ask a person and wait for the answer. With on_timeout="default", the `default` is the answer after the timeout."""
    if unknown := fields.keys() - ASK_OPTIONS:
        raise Invalid(f"ask() takes no {min(unknown)!a}", hint=f"It takes: {', '.join(sorted(ASK_OPTIONS))}.")
    q = _question("ask", text, kind, {**fields, **({"options": list(options)} if options else {})})
    return Answer(q["value"], q["text"], q["verdict"], q["by"], q["status"], q["type"])


def _question(name: str, text: str, kind: str, options: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Ask, or return the outcome of the question, as plain data."""
    branch = _current(name)
    call = plain({"text": str(text), "kind": kind, **options}, name)
    entry = branch.call(name, call, "_checkpoint" if name == "pause" else None)
    journal, response_type = branch.journal, _type(kind, {**options, **more})
    if entry.done:
        return {"type": response_type, **(entry.result if "verdict" in entry.result else _signalled(entry.result, response_type))}
    questions = journal.questions(entry)
    if not questions or journal.cut_off(questions[-1]):
        journal.host.leave()
        raise journal.ask(branch, entry, str(text), kind, **_wait_options(branch, {**options, **more}))
    if questions[-1]["status"] == "pending":
        raise branch.suspend("person")
    return dict(journal.keep(entry, outcome_of(questions[-1])))


def _type(kind: str, options: dict[str, Any]) -> str:
    """The response type of the question."""
    from ..core.rules import KINDS

    own = KINDS[kind].response_type if kind in KINDS else ""
    return str(options.get("response_type") or ("choice" if options.get("options") else own))


def _signalled(signal: dict[str, Any], response_type: str) -> dict[str, Any]:
    """The outcome of a question that was settled by a signal (CONTINUE or STOP) instead of an answer."""
    from ..core.answers import signalled

    text = str(signal.get("message") or signal.get("reason") or signal.get("summary") or "")
    verdict = "rejected" if signalled(signal.get("status", "")) is False else "approved"
    value = signal.get("value", verdict == "approved" if response_type == "boolean" else text if verdict == "approved" else None)
    return {"status": "answered", "verdict": verdict, "value": value, "text": text, "by": str(signal.get("by") or ""), "why": ""}


def outcome_of(q: dict[str, Any]) -> dict[str, Any]:
    """The outcome of a closed question."""
    response = q["response"] or {}
    return {
        "status": q["status"], "verdict": response.get("verdict"), "value": response.get("value"), "type": q["response_type"],
        "text": response.get("text") or "", "by": q["responded_by"] or "", "why": q["close_reason"] or "",
    }  # fmt: skip


def stuck(reason: str = "") -> NoReturn:
    """End the run as stuck, with this reason."""
    branch = _current("stuck")
    branch.check_exit()
    raise branch.journal.leave(Stuck(str(reason)))


def step(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function once and record its result: for every effect and everything that is not deterministic.

    After a crash between the call and its record the function is called again. If it raises, StepFailed is raised, and the same
    one on every replay.
    """
    branch = _current("step")
    if not callable(function):
        raise Invalid("step() needs a function", hint="Like: step(fetch, url), not step(fetch(url)).")
    name = getattr(function, "__qualname__", type(function).__name__).replace("<locals>.", "").replace("<lambda>", "lambda")
    if inspect.iscoroutinefunction(function):
        raise Invalid(f"step() needs a plain function, and {name} is async", hint="Like: step(lambda: asyncio.run(fetch(url)))")
    call = plain({"function": name, "args": list(args), **({"kwargs": kwargs} if kwargs else {})}, "step")
    entry = branch.call("step", call)
    if entry.done:
        outcome = entry.result
    else:
        branch.journal.flush()
        outcome = _outcome(branch, function, args, kwargs, name)
        try:
            branch.journal.complete(entry, outcome)
        except Invalid as error:  # too large, for example: the function has run, so a failure is recorded
            outcome = failure(Invalid(f"the result of {name} cannot be recorded", reason=str(error)))
            branch.journal.complete(entry, outcome)
    if "error" in outcome:
        raise StepFailed(**outcome, step=entry.path)
    value: T = outcome["value"]
    return value


def _outcome(branch: Branch, function: Callable[..., Any], args: Any, kwargs: Any, name: str) -> dict[str, Any]:
    outside, waits = current_branch.set(None), no_waiting.set(Misplaced)
    try:
        return {"value": recorded(plain(function(*args, **kwargs), name))}
    except (Misplaced, ScriptExit):
        raise  # nothing is recorded: the next replay calls the function again
    except BaseException as error:  # also an interrupt, unless the worker itself stops
        if isinstance(error, KeyboardInterrupt) and branch.journal.host.stop.is_set():
            raise
        return failure(error)
    finally:
        current_branch.reset(outside)
        no_waiting.reset(waits)


class Misplaced(Usage):
    """A function of a step() waits for a person, which would block the worker for as long as that takes."""

    def __init__(self, tool: str) -> None:
        before = f'if pause("Run {tool}?", kind="approval"): step({tool.rpartition(".")[2]}.__wrapped__, …)'
        super().__init__(f"{tool} waits for a person, and a step cannot. Ask before it: {before}")


def sleep(duration_: Any) -> None:
    """Suspend the run for a length of time: seconds, or like '2d'."""
    branch = _current("sleep")
    micros = duration(duration_.total_seconds() if isinstance(duration_, timedelta) else duration_, "sleep()")
    entry = branch.call("sleep", {"seconds": micros / 1_000_000})
    if entry.done:
        return
    journal = branch.journal
    if entry.waiting:
        if branch.alone or datetime.fromisoformat(entry.seat["until"]) <= datetime.fromisoformat(journal.desk.now()):
            journal.keep(entry, None)
            return
        raise branch.suspend("sleep", entry.seat["until"])
    until = datetime.fromisoformat(journal.desk.now()) + timedelta(microseconds=micros)
    journal.host.leave()
    raise journal.sleep(branch, entry, until.isoformat())


def _record_once(name: str, make: Callable[[Branch], Any]) -> Any:
    """A value that is not deterministic and costs nothing to compute."""
    branch = _current(name)
    entry = branch.call(name, None)
    return entry.result if entry.done else branch.journal.keep(entry, make(branch))


def now() -> datetime:
    """The time of the first call, the same on every replay."""
    return datetime.fromisoformat(_record_once("now", lambda branch: branch.journal.desk.now()))


def random() -> float:
    """A random number from 0 to 1, the same on every replay."""
    from random import random as number

    return float(_record_once("random", lambda branch: number()))


def uuid() -> str:
    """A random id, the same on every replay."""
    from uuid import uuid4

    return str(_record_once("uuid", lambda branch: str(uuid4())))


def log(*words: Any) -> None:
    """Show a line to people who watch the run, once."""
    branch = _current("log")
    text = " ".join(map(str, words))
    entry = branch.call("log", {"text": plain(text, "log")})
    if not entry.done:
        branch.journal.host.say(text)
        branch.journal.keep(entry, None)


def parallel(branches: Iterable[Callable[[], Any]]) -> list[Any]:
    """Run functions without arguments in parallel; returns their results, in their order.

    A branch that waits does not stop the others. The run goes on when all branches have ended.
    """
    branch, functions = _current("parallel"), list(branches)
    if not all(callable(branch) for branch in functions):
        raise Invalid("parallel() needs functions", hint='Like: parallel([lambda: run("a"), lambda: run("b")])')
    entry = branch.call("parallel", {"branches": len(functions)})
    older = branch.journal.superseded.old(entry.path, entry.step)
    behind = "" if entry.in_place else None
    forked = [
        Branch(branch.journal, f"{entry.path}.{n}", f"{older}.{n}" if older else None, behind) for n in range(len(functions))
    ]
    if entry.step is None:
        branch.journal.write(entry, "running")
    ends: list[tuple[bool, Any]] = [(False, Halted())] * len(functions)  # of a branch whose thread was stopped by that exception

    def go(number: int) -> None:
        current_branch.set(forked[number])
        forked[number].thread = threading.get_ident()
        try:
            ends[number] = (True, functions[number]())
            forked[number].ended()
        except BaseException as error:
            ends[number] = (False, error)

    if entry.done:
        for number in range(len(functions)):
            copy_context().run(go, number)
    else:
        with branch.journal.host.fork(entry.path, len(functions)):
            name = threading.current_thread().name
            threads = [ScriptThread(partial(go, n), f"{name}/{n}") for n in range(len(functions))]
            for thread in threads:
                thread.start()
            for number, thread in enumerate(threads):
                thread.wait()
                if thread.left is not None:
                    ends[number] = (False, thread.left)
    return _join(branch, entry, forked, ends)


def _join(branch: Branch, entry: Entry, forked: list[Branch], ends: list[tuple[bool, Any]]) -> list[Any]:
    """The results of the branches. If there are exceptions instead, raise the most severe one."""
    errors = [error for ok, error in ends if not ok]
    left = [each.left for each in forked if each.left is not None] + [e for e in errors if isinstance(e, Suspended)]
    exits = [e for e in (branch.journal.exit, *errors) if e is not None and not isinstance(e, (Exception, Suspended))]
    if exits:
        raise exits[0]
    if left:
        whys = [each.why for each in left]
        why = "person" if "person" in whys else "stop" if "stop" in whys else "sleep"
        raise branch.suspend(why, min((each.until for each in left if each.until), default=None))
    if errors:
        if not entry.done:
            branch.journal.complete(entry, None)
        raise errors[0]
    if not entry.done:
        branch.journal.host.join(entry.path, len(ends))
        branch.journal.complete(entry, None)
    return [value for _, value in ends]


#: The functions that a script has without an import.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (run, pause, ask, stuck, config, step, sleep, now, random, uuid, log, parallel)
}

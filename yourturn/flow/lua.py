"""Lua scripts: the same durable functions, the same journal, in a sandbox.

What a script can see is made in sandbox.lua and library.lua, and nothing but text goes through the door between here and
there: a request comes out as a name and its arguments in JSON, an answer goes in as a line of Lua. So there is no Python object
that a script could get hold of, and no way to leave a run but through here.

A thread is a coroutine of Lua, driven by whatever thread of Python called it: the script itself, the function of a step(), a
branch of parallel(). Only one of them is in Lua at a time; what they ask for is done outside of it.

A script may use a limited amount of memory. Lua cannot be refused memory where it is not in a protected call, which is where
values are pushed to it, so that is done in a call of its own, without the limit.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Callable
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from lupa import lua54

from ..core.errors import Invalid, YourturnError
from . import api
from .journal import Scope, scope
from .results import Answer, LuaError, Pause, Signal
from .script import BadScript

MEMORY = 64 * 1024 * 1024
#: Instructions between two looks at whether to stop: a millisecond or so.
COUNT = 100_000
#: How often a script is looked at while it is being loaded, before there is a run that could be stopped: a second or so.
PATIENCE = 100

#: Calls that a script may make beside its functions before it is believed to have them.
CALLS = 100
#: What a script is told while it is only loaded.
_ANYTHING: dict[str, Any] = {
    "run": {"status": "DONE", "summary": "", "reason": "", "message": ""},
    "pause": {"continue": True, "reason": "", "message": "", "by": ""},
    "ask": {"value": "", "text": "", "approved": True, "verdict": "approved", "by": "", "status": "answered"},
    "now": 0, "random": 0.5, "uuid": "",
}  # fmt: skip

#: Functions with options, and how much they take beside those.
_OPTIONS = {"run": 2, "pause": 1, "ask": 2, "config": 0}
#: What other Lua programs have and scripts have not.
GONE = re.compile(r"global '(os|io|package|require|dofile|loadfile|debug|collectgarbage|warn)'")


def load(body: str, file: str, name: str = "") -> Callable[[str], Any]:
    """The function that is the workflow. Raises BadScript with the line that is wrong."""
    name = name or "workflow"
    _try(body, file, name)

    def script(prompt: str) -> Any:
        here = scope.get()
        assert here is not None
        value = Machine(body, file, here.journal.host.stop.is_set, here).call(0, [name, prompt], here)
        return Signal(value) if isinstance(value, dict) else value

    return script


def _try(body: str, file: str, name: str) -> None:
    """Load it once. What it calls beside its functions does nothing here: whatever it is told, there has to be the function."""
    looks = itertools.count(1)
    machine = Machine(body, file, lambda: next(looks) > PATIENCE)
    leg = machine.leg(0, _values(name), 0)
    calls = 0
    while leg.what == "call" and leg.first != "stuck" and calls < CALLS:
        calls += leg.first != "config"
        leg = machine.leg(0, _values(True, _ANYTHING.get(leg.first)))
    if leg.what == "halted" and isinstance(leg.first, BaseException):
        raise leg.first
    if calls and leg.what != "missing":
        return  # it was told something else than the run will be: so the rest of it is for the run to see
    if leg.what == "halted":
        raise BadScript(f"{file} does not come to an end while it is loaded", hint="Put what it does into its functions.")
    if leg.what == "error":
        raise BadScript(f"{file} cannot be loaded", reason=str(machine.trouble(leg.first)))
    if leg.what == "missing":
        raise machine.missing(name)


class Leg(NamedTuple):
    """From one resumption of a thread to the next request, or its end."""

    what: str  #: call, done, error, missing, halted
    first: Any
    text: bytes | None
    said: str


class Machine:
    def __init__(self, body: str, file: str, tick: Callable[[], bool], here: Scope | None = None) -> None:
        self.file, self.here = file, here
        self.chunk = Path(file).name[-50:]
        self.numbers = itertools.count(1)
        self.lock = threading.Lock()
        self.lua = lua54.LuaRuntime(
            encoding=None, source_encoding="utf-8", register_eval=False, register_builtins=False,
            attribute_filter=_refuse, max_memory=MEMORY,
        )  # fmt: skip
        self.lua.set_max_memory(0)
        self.post, self.advance, compile_ = self.lua.execute(_file("sandbox"), tick, COUNT, _file("library"), name=b"=sandbox")
        text = f"--{body}" if body.startswith("#") else body
        problem = compile_(text.encode("utf-8", "replace"), f"={self.chunk}".encode())
        if problem is not None:
            raise BadScript(f"{file} is not Lua", reason=str(self.trouble(_text(problem))))

    def call(self, function: int, args: list[Any], here: Scope | None) -> Any:
        """Call a function of the script, in a thread of its own, and do for it what it asks for."""
        thread = next(self.numbers)
        leg = self.leg(thread, _values(*args), function)
        while leg.what == "call":
            self._say(leg.said)
            leg = self.leg(thread, self._answer(leg.first, leg.text))
        self._say(leg.said)
        if leg.what == "done":
            return json.loads(leg.first)[0]
        if leg.what == "halted":
            found = here or self.here
            assert found is not None
            raise leg.first if isinstance(leg.first, BaseException) else found.suspend("stop")
        raise self.trouble(leg.first) if leg.what == "error" else self.missing(args[0])

    def leg(self, thread: int, reply: bytes, function: int | None = None) -> Leg:
        with self.lock:
            self.lua.set_max_memory(0)
            self.post(reply)
            self.lua.set_max_memory(MEMORY)
            try:
                what, first, text, said = self.advance(thread, function)
            except lua54.LuaError as error:
                return Leg("error", str(error) or "not enough memory", None, "")
        return Leg(_text(what), _text(first) if isinstance(first, bytes) else first, text, _text(said))

    # --- what it asks for -------------------------------------------------------------------------------------------

    def _answer(self, name: str, text: bytes | None) -> bytes:
        try:
            here = scope.get()
            if here is None:
                raise Invalid(f"{name}() cannot be called inside a step()", hint="Call it before, or after.")
            return _values(True, *_results(self._do(name, json.loads(text or b"[]"), here)))
        except LuaError as error:
            return _values(False, error.said, 0)
        except YourturnError as error:
            return _values(False, f"{error}. {error.hint}" if error.hint else str(error))
        except Exception as error:
            return _values(False, str(error) or type(error).__name__)

    def _do(self, name: str, args: list[Any], here: Scope) -> Any:
        if name == "step":
            number, called, *args = args
            return api.step(_Function(self, number, here, called), *args)
        if name == "parallel":
            api.parallel([_Branch(self, number) for number in args[0]])
            return None
        by_place, options = _given(name, args)
        return api.FUNCTIONS[name](*by_place, **options)

    def _say(self, said: str) -> None:
        """What it printed, unless it has come here before."""
        here = scope.get()
        if said and self.here is not None and (here is None or here.path() not in here.journal.steps):
            for line in said.split("\n"):
                self.here.journal.host.say(line)

    # --- what is wrong with it --------------------------------------------------------------------------------------

    def trouble(self, said: str) -> LuaError:
        line = re.match(rf"{re.escape(self.chunk)}:(\d+): ", said)
        words = f"line {line[1]}: {said[line.end() :]}" if line else re.sub(r"^sandbox:\d+: ", "", said)
        words = "an error without words" if words == "nil" else words
        gone = GONE.search(words)
        if gone:
            words += f"; there is no {gone[1]} in a workflow, which is the same on every replay"
        return LuaError(words, said)

    def missing(self, name: str) -> BadScript:
        return BadScript(f"{self.file} has no function {name}(prompt)", hint="A workflow is a function that takes the prompt.")


class _Function:
    """A function of the script, for step()."""

    def __init__(self, machine: Machine, number: int, here: Scope, name: str) -> None:
        self.machine, self.number, self.here, self.__qualname__ = machine, number, here, name

    def __call__(self, *args: Any) -> Any:
        return self.machine.call(self.number, list(args), self.here)


class _Branch:
    """A function of the script, for parallel(): it keeps its result to itself."""

    def __init__(self, machine: Machine, number: int) -> None:
        self.machine, self.number = machine, number

    def __call__(self) -> None:
        self.machine.call(self.number, [], scope.get())


# --- arguments ----------------------------------------------------------------------------------------------------------


def _given(name: str, args: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    """What is given by place, and the options: they come last, in a table."""
    while args and args[-1] is None:
        args.pop()
    options = dict(args.pop()) if name in _OPTIONS and args and isinstance(args[-1], dict) else {}
    most = _OPTIONS.get(name, len(args))
    if len(args) > most or (name == "run" and any(isinstance(item, (list, dict)) for item in args)):
        raise Invalid(f"{name}() takes its options in one table, at the end", hint="Like: { timeout = 3600 }")
    if name in ("pause", "ask") and not (args and isinstance(args[0], (str, int, float))):
        raise Invalid(f"{name}() needs a text", hint=f'Like: {name}("Deploy?")')
    return args, options


# --- values -------------------------------------------------------------------------------------------------------------


def _results(value: Any) -> tuple[Any, ...]:
    """What a durable function returned, as a script sees it."""
    if isinstance(value, Signal):
        return ({"status": "", "summary": "", "reason": "", "message": "", **value},)
    if isinstance(value, Pause):
        return ({"continue": value.continue_, "reason": value.reason, "message": value.message, "by": value.by},)
    if isinstance(value, Answer):
        said = {name: getattr(value, name) for name in ("value", "verdict", "by", "status")}
        return ({**said, "text": str(value), "approved": _approved(value)},)
    if isinstance(value, datetime):
        return int(value.timestamp()), value.isoformat()
    return (value,)


def _approved(answer: Answer) -> bool:
    """Lua has no error for whoever takes words for a yes: so a no in words is none."""
    from ..core.answers import verdict_of

    if answer.approved is not None:
        return answer.approved
    given = answer.verdict == "approved" or (answer.status == "timeout" and answer.value is not None)
    return given and verdict_of(str(answer)) is not False


def _values(*values: Any) -> bytes:
    """As Lua would write them."""
    return f"return {', '.join(map(_written, values))}".encode("utf-8", "replace")


def _written(value: Any) -> str:
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) < 2**63:
        return str(value)
    if isinstance(value, (int, float)):
        return repr(float(value))
    if isinstance(value, str):
        return f'"{_UNSAFE.sub(lambda found: f"{chr(92)}{ord(found[0]):03}", value)}"'
    if isinstance(value, dict):
        return f"{{{', '.join(f'[{_written(k)}]={_written(v)}' for k, v in value.items() if v is not None)}}}"
    return f"{{{', '.join(map(_written, value))}}}"


_UNSAFE = re.compile(r'[\x00-\x1f"\\\x7f]')


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _refuse(*_: Any) -> str:
    raise AttributeError("nothing of Python can be seen from here")


@cache
def _file(name: str) -> bytes:
    return Path(__file__).with_name(f"{name}.lua").read_bytes()

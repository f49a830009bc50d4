"""Lua scripts: the same durable functions, the same journal, in a sandbox.

sandbox.lua and library.lua define what a script can see. Only text passes between Python and Lua: a request comes out as a name
and its arguments in JSON, a reply goes in as a line of Lua. So a script never holds a Python object, and can leave a run only
through this module.

A thread is a Lua coroutine, driven by the Python thread that called it: the script itself, the function of a step(), a branch of
parallel(). Only one of them runs Lua at a time; their requests are executed outside of Lua.

The memory of a script is limited. Lua handles a failed allocation only inside a protected call, and pushing values is outside of
one, so that is done in a call of its own, without the limit.
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
from .journal import Branch, current_branch
from .results import Answer, LuaError, Pause, Signal
from .script import BadScript

MEMORY = 64 * 1024 * 1024
#: Instructions between two checks for a stop: about a millisecond.
COUNT = 100_000
#: The number of checks after which a script that is only loaded is stopped: about a second.
LOAD_CHECKS = 100

#: Calls at the top level of a script that are answered while it is checked.
CALLS = 100
#: Placeholder results while a script is only loaded.
_ANYTHING: dict[str, Any] = {
    "run": {"status": "DONE", "summary": "", "reason": "", "message": ""},
    "pause": {"continue": True, "reason": "", "message": "", "by": ""},
    "ask": {"value": "", "text": "", "approved": True, "verdict": "approved", "by": "", "status": "answered"},
    "now": 0, "random": 0.5, "uuid": "",
}  # fmt: skip

#: Functions with options, and the number of their other arguments.
_OPTIONS = {"run": 2, "pause": 1, "ask": 2, "config": 0}
#: Standard functions that scripts do not have.
GONE = re.compile(r"global '(os|io|package|require|dofile|loadfile|debug|collectgarbage|warn)'")


def load(body: str, file: str, name: str = "") -> Callable[[str], Any]:
    """The workflow function. Raises BadScript with the line of the error."""
    name = name or "workflow"
    _try(body, file, name)

    def script(prompt: str) -> Any:
        branch = current_branch.get()
        assert branch is not None
        value = Machine(body, file, branch.journal.host.stop.is_set, branch).call(0, [name, prompt], branch)
        return Signal(value) if isinstance(value, dict) else value

    return script


def _try(body: str, file: str, name: str) -> None:
    """Load the script once and check that it defines the function. Its top-level calls get placeholder results."""
    checks = itertools.count(1)
    machine = Machine(body, file, lambda: next(checks) > LOAD_CHECKS)
    segment = machine.segment(0, _values(name), 0)
    calls = 0
    while segment.what == "call" and segment.first != "stuck" and calls < CALLS:
        calls += segment.first != "config"
        segment = machine.segment(0, _values(True, _ANYTHING.get(segment.first)))
    if segment.what == "halted" and isinstance(segment.first, BaseException):
        raise segment.first
    if calls and segment.what != "missing":
        return  # its calls got placeholders, so errors behind them count only in a real run
    if segment.what == "halted":
        raise BadScript(f"{file} does not come to an end while it is loaded", hint="Put what it does into its functions.")
    if segment.what == "error":
        raise BadScript(f"{file} cannot be loaded", reason=str(machine.error(segment.first)))
    if segment.what == "missing":
        raise machine.missing(name)


class Segment(NamedTuple):
    """What a thread did between one resumption and its next request, or its end."""

    what: str  #: call, done, error, missing, halted
    first: Any
    text: bytes | None
    printed: str


class Machine:
    def __init__(self, body: str, file: str, tick: Callable[[], bool], branch: Branch | None = None) -> None:
        self.file, self.branch = file, branch
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
            raise BadScript(f"{file} is not Lua", reason=str(self.error(_text(problem))))

    def call(self, function: int, args: list[Any], branch: Branch | None) -> Any:
        """Call a function of the script in a Lua thread of its own, and execute its requests."""
        thread = next(self.numbers)
        segment = self.segment(thread, _values(*args), function)
        while segment.what == "call":
            self._print(segment.printed)
            segment = self.segment(thread, self._reply(segment.first, segment.text))
        self._print(segment.printed)
        if segment.what == "done":
            return json.loads(segment.first)[0]
        if segment.what == "halted":
            branch = branch or self.branch
            assert branch is not None
            raise segment.first if isinstance(segment.first, BaseException) else branch.suspend("stop")
        raise self.error(segment.first) if segment.what == "error" else self.missing(args[0])

    def segment(self, thread: int, reply: bytes, function: int | None = None) -> Segment:
        with self.lock:
            self.lua.set_max_memory(0)
            self.post(reply)
            self.lua.set_max_memory(MEMORY)
            try:
                what, first, text, printed = self.advance(thread, function)
            except lua54.LuaError as error:
                return Segment("error", str(error) or "not enough memory", None, "")
        return Segment(_text(what), _text(first) if isinstance(first, bytes) else first, text, _text(printed))

    # --- requests ---------------------------------------------------------------------------------------------------

    def _reply(self, name: str, text: bytes | None) -> bytes:
        try:
            branch = current_branch.get()
            if branch is None:
                raise Invalid(f"{name}() cannot be called inside a step()", hint="Call it before, or after.")
            return _values(True, *_results(self._execute(name, json.loads(text or b"[]"), branch)))
        except LuaError as error:
            return _values(False, error.raw, 0)
        except YourturnError as error:
            return _values(False, f"{error}. {error.hint}" if error.hint else str(error))
        except Exception as error:
            return _values(False, str(error) or type(error).__name__)

    def _execute(self, name: str, args: list[Any], branch: Branch) -> Any:
        if name == "step":
            number, called, *args = args
            return api.step(_Function(self, number, branch, called), *args)
        if name == "parallel":
            api.parallel([_ForkedFunction(self, number) for number in args[0]])
            return None
        args, options = _split_options(name, args)
        return api.FUNCTIONS[name](*args, **options)

    def _print(self, printed: str) -> None:
        """Show what the script printed, unless this is a replay."""
        branch = current_branch.get()
        if printed and self.branch is not None and (branch is None or branch.path() not in branch.journal.steps):
            for line in printed.split("\n"):
                self.branch.journal.host.say(line)

    # --- errors -----------------------------------------------------------------------------------------------------

    def error(self, raw: str) -> LuaError:
        line = re.match(rf"{re.escape(self.chunk)}:(\d+): ", raw)
        message = f"line {line[1]}: {raw[line.end() :]}" if line else re.sub(r"^sandbox:\d+: ", "", raw)
        message = "an error without words" if message == "nil" else message
        gone = GONE.search(message)
        if gone:
            message += f"; there is no {gone[1]} in a workflow, which is the same on every replay"
        return LuaError(message, raw)

    def missing(self, name: str) -> BadScript:
        return BadScript(f"{self.file} has no function {name}(prompt)", hint="A workflow is a function that takes the prompt.")


class _Function:
    """A function of the script, for step()."""

    def __init__(self, machine: Machine, number: int, branch: Branch, name: str) -> None:
        self.machine, self.number, self.branch, self.__qualname__ = machine, number, branch, name

    def __call__(self, *args: Any) -> Any:
        return self.machine.call(self.number, list(args), self.branch)


class _ForkedFunction:
    """A function of the script, for parallel(). Its result is not returned."""

    def __init__(self, machine: Machine, number: int) -> None:
        self.machine, self.number = machine, number

    def __call__(self) -> None:
        self.machine.call(self.number, [], current_branch.get())


# --- arguments ----------------------------------------------------------------------------------------------------------


def _split_options(name: str, args: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Positional arguments, and the options: a table in the last place."""
    while args and args[-1] is None:
        args.pop()
    options = dict(args.pop()) if name in _OPTIONS and args and isinstance(args[-1], dict) else {}
    positional = _OPTIONS.get(name, len(args))
    if len(args) > positional or (name == "run" and any(isinstance(item, (list, dict)) for item in args)):
        raise Invalid(f"{name}() takes its options in one table, at the end", hint="Like: { timeout = 3600 }")
    if name in ("pause", "ask") and not (args and isinstance(args[0], (str, int, float))):
        raise Invalid(f"{name}() needs a text", hint=f'Like: {name}("Deploy?")')
    return args, options


# --- values -------------------------------------------------------------------------------------------------------------


def _results(value: Any) -> tuple[Any, ...]:
    """The result of a durable function, as Lua values."""
    if isinstance(value, Signal):
        return ({"status": "", "summary": "", "reason": "", "message": "", **value},)
    if isinstance(value, Pause):
        return ({"continue": value.continue_, "reason": value.reason, "message": value.message, "by": value.by},)
    if isinstance(value, Answer):
        fields = {name: getattr(value, name) for name in ("value", "verdict", "by", "status")}
        return ({**fields, "text": str(value), "approved": _approved(value)},)
    if isinstance(value, datetime):
        return int(value.timestamp()), value.isoformat()
    return (value,)


def _approved(answer: Answer) -> bool:
    """Every table is true in Lua, so a text that means no counts as no here."""
    from ..core.answers import verdict_of

    if answer.approved is not None:
        return answer.approved
    has_answer = answer.verdict == "approved" or (answer.status == "timeout" and answer.value is not None)
    return has_answer and verdict_of(str(answer)) is not False


def _values(*values: Any) -> bytes:
    """Values as Lua source."""
    return f"return {', '.join(map(_lua_source, values))}".encode("utf-8", "replace")


def _lua_source(value: Any) -> str:
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) < 2**63:
        return str(value)
    if isinstance(value, (int, float)):
        return repr(float(value))
    if isinstance(value, str):
        return f'"{_UNSAFE.sub(lambda match: f"{chr(92)}{ord(match[0]):03}", value)}"'
    if isinstance(value, dict):
        return f"{{{', '.join(f'[{_lua_source(k)}]={_lua_source(v)}' for k, v in value.items() if v is not None)}}}"
    return f"{{{', '.join(map(_lua_source, value))}}}"


_UNSAFE = re.compile(r'[\x00-\x1f"\\\x7f]')


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _refuse(*_: Any) -> str:
    raise AttributeError("nothing of Python can be seen from here")


@cache
def _file(name: str) -> bytes:
    return Path(__file__).with_name(f"{name}.lua").read_bytes()

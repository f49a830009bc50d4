"""A person's yes before a function runs: `@requires_approval`, and `approved`, the plain function under it.

    @requires_approval(text="Deploy {version} to {to}?")
    def deploy(version: str, to: str = "staging") -> None: …

What is shown is what runs. The arguments are bound to the function's signature, defaults included, and written down as
JSON before anybody is asked; the function gets what was written down, not what the caller may have changed since. If the
person edited the arguments, it gets theirs. `self` and `cls` are not shown and passed on as they are.

With `show=` the function gets the caller's own objects, because JSON cannot hold them. Then they are shown once more just
before the call, and if that is no longer what the person saw, nothing runs. What `show` says of an argument as it is can
still be edited; what it translated cannot.

Every way but one leads to an exception: refused, timed out, withdrawn, used up, still open, desk gone. Only a yes to this
very call comes back.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import sys
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast, overload

from .client import Client, Named
from .config import connect
from .core.canon import DEPTH, check, digest, dumps
from .core.errors import Invalid, KeyReused, NobodyAnswered, Precondition, Refused, StillWaiting, Usage, YourturnError
from .core.fields import CONTROL, line
from .core.model import Who

F = TypeVar("F", bound=Callable[..., Any])
Said = str | Callable[..., str] | None

_PLAIN = (str, int, float, bool, type(None))


class Terms(NamedTuple):
    """How to ask."""

    task: Named | None = None
    text: Said = None
    reviewer: str | None = None
    timeout: Any = None
    wait: float | None = None
    key: Said = None
    agent: str | None = None


# --- the plain function ---------------------------------------------------------------------------------------------


def approved(
    desk: Client,
    tool: str,
    arguments: dict[str, Any],
    *,
    task: Named | None = None,
    text: str | None = None,
    reviewer: str | None = None,
    timeout: Any = None,
    wait: float | None = None,
    key: str | None = None,
    agent: str | None = None,
) -> dict[str, Any]:
    """Ask whether `tool` may run with `arguments`. Returns those to run it with, once: the same, or as a person edited them."""
    wish = _Wish(desk, tool, arguments, Terms(task, text, reviewer, timeout, wait, key, agent))
    asked = wish.ask()
    return wish.allowed(wish.desk.wait_for(asked, wish.seconds))


async def approved_async(
    desk: Client,
    tool: str,
    arguments: dict[str, Any],
    *,
    task: Named | None = None,
    text: str | None = None,
    reviewer: str | None = None,
    timeout: Any = None,
    wait: float | None = None,
    key: str | None = None,
    agent: str | None = None,
) -> dict[str, Any]:
    """The same, without holding up the event loop."""
    wish = _Wish(desk, tool, arguments, Terms(task, text, reviewer, timeout, wait, key, agent))
    aio = wish.desk.aio
    asked = await aio.in_thread(wish.ask)
    found: dict[str, Any] = await aio.in_thread(wish.allowed, await aio.wait_for(asked, wish.seconds))
    return found


class _Wish:
    """One exact call that somebody should allow."""

    def __init__(self, desk: Client, tool: str, arguments: dict[str, Any], terms: Terms) -> None:
        self.desk = _as_agent(desk, terms.agent)
        self.tool = line()("tool", tool)
        self.terms = terms
        if not isinstance(arguments, dict):
            raise Invalid(f"The arguments of {tool} must be named", hint="Give them as a dictionary.")
        self.action = {"tool": self.tool, "arguments": plain(tool, arguments), "folder": os.getcwd()}  # noqa: PTH109
        self.digest = digest(self.action)
        self.seconds = _seconds(terms.wait)

    def ask(self) -> dict[str, Any]:
        """The question; with a key, the one that was asked before."""
        terms, task, key = self.terms, self.terms.task or os.environ.get("YOURTURN_TASK"), None
        if terms.key is not None:
            key = f"approval/{digest([self.tool, terms.key])[:40]}"
        try:
            if not task:
                task = self._carrier(key)
            return self.desk.ask(
                task, str(terms.text or sentence(self.tool, self.action["arguments"])), "permission", action=self.action, key=key,
                reviewer=terms.reviewer, timeout=terms.timeout, claim=self._claim(task),
            )  # fmt: skip
        except KeyReused:
            raise KeyReused(
                f"The key {str(terms.key)[:60]!a} stands for another call of {self.tool}",
                reason="a person was asked about other arguments, or in another folder",
                hint="Use a new key for a new call.",
            ) from None

    def _carrier(self, key: str | None) -> dict[str, Any]:
        """A task that carries the question. It stays a draft, so that no agent takes it up."""
        about = "A program asks before it runs this. The task only carries the question: there is nothing to work on."
        title = CONTROL.sub(" ", f"Allow {self.tool}")[:300]
        return self.desk.create(title, description=about, draft=True, key=key and f"{key}/task")

    def _claim(self, task: Named) -> str | None:
        """A worker's process asks under its claim, and so keeps it."""
        token = os.environ.get("YOURTURN_CLAIM")
        return token if token and self.desk.claim_is_for(token, task) else None

    def allowed(self, q: dict[str, Any]) -> dict[str, Any]:
        """The arguments to run with, or the reason why not."""
        response = q["response"] or {}
        if q["status"] == "pending":
            again = "Call it again with the same key to go on waiting." if self.terms.key is not None else ""
            raise _about(q, StillWaiting(f"{self.tool} has not run", reason=f"{q['id']} still waits for a person", hint=again))
        if q["status"] == "timeout":
            raise _about(q, NobodyAnswered(f"{self.tool} has not run", reason=f"nobody answered {q['id']} in time"))
        if q["status"] != "answered" or response.get("verdict") != "approved":
            raise _refused(self.tool, q, response)
        if q["kind"] != "permission" or q["digest"] != self.digest or digest(q["action"]) != self.digest:
            raise Invalid(f"{self.tool} has not run", reason=f"{q['id']} allows something else")
        action = _edited(q)
        self._use(q, digest(action))
        found: dict[str, Any] = action["arguments"]
        return found

    def _use(self, q: dict[str, Any], allowed: str) -> None:
        """Each call is its own: a yes is used once, also by a program that was killed and starts again."""
        try:
            self.desk.use(q, f"{_program()}/{uuid.uuid4().hex}", digest=allowed)
        except Precondition as error:
            raise Precondition(f"{self.tool} has not run", reason=error.reason, hint="Ask again, with a new key.") from None


def _edited(q: dict[str, Any]) -> dict[str, Any]:
    """The action as the person allowed it. They may change what it runs with, not what runs, nor where."""
    asked: dict[str, Any] = q["action"]
    value = q["response"]["value"]
    if not isinstance(value, dict):
        return asked
    if {**value, "arguments": None} != {**asked, "arguments": None} or not isinstance(value["arguments"], dict):
        raise Invalid(f"{asked['tool']} has not run", reason=f"{q['responded_by']} allowed something else in {q['id']}")
    return value


def _refused(tool: str, q: dict[str, Any], response: dict[str, Any]) -> YourturnError:
    said_no = q["status"] == "answered"
    why = str((response.get("text") if said_no else q["close_reason"]) or "")
    error = Refused(f"{q['responded_by']} {'refused' if said_no else 'withdrew'} {tool} ({q['id']})", reason=why)
    error.who, error.at, error.why = q["responded_by"], q["responded_at"], why
    return _about(q, error)


def _about(q: dict[str, Any], error: Any) -> YourturnError:
    error.question = q["id"]
    return cast(YourturnError, error)


def _seconds(wait: float | None) -> float:
    if wait is None:
        return float("inf")
    if isinstance(wait, bool) or not isinstance(wait, (int, float)) or not wait >= 0:
        raise Invalid("wait must be a number of seconds", hint="None waits until somebody answers or the time is over.")
    return wait


def _as_agent(desk: Client, name: str | None) -> Client:
    """A program asks as an agent, whoever runs it. One that is an agent already stays the one that it is."""
    if not desk.who.is_person:
        return desk
    name = line(100)("agent", name or _program()).removeprefix("agent:")
    return desk.as_(Who(f"agent:{name}", "agent", direct=desk.who.direct))


def _program() -> str:
    """What runs here: the script, or the module after -m."""
    import re

    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    found = (spec.parent or spec.name) if spec else os.path.basename(getattr(main, "__file__", None) or "python")  # noqa: PTH119
    return re.sub(r"[^\w.@+-]", "-", found.removesuffix(".py")).lstrip(".@+-")[:100] or "program"


# --- showing --------------------------------------------------------------------------------------------------------


def plain(tool: str, arguments: Any, hint: str = "") -> Any:
    """A copy of what JSON says exactly. A tuple or an Enum would come back as something else, so it is refused."""

    def visit(value: Any, where: str, depth: int) -> None:
        if type(value) in _PLAIN or depth > DEPTH:
            return
        if type(value) is list:
            for item in value:
                visit(item, where, depth + 1)
        elif type(value) is dict and all(type(name) is str for name in value):
            for name, item in value.items():
                visit(item, where or name, depth + 1)
        else:
            what = "has keys that are not text" if type(value) is dict else f"is of type {type(value).__name__}"
            raise Invalid(
                f"The call of {tool} cannot be shown to a person",
                reason=f"{where or 'what should be shown'} {what}, which JSON cannot say exactly",
                hint=hint,
            )

    visit(arguments, "", 0)
    return check(arguments, f"the call of {tool}")


def sentence(tool: str, arguments: dict[str, Any]) -> str:
    shown = ", ".join(f"{name}={_short(value)}" for name, value in arguments.items())
    return f"Run {tool}({_short(shown, 1000)})?"


def _short(value: Any, most: int = 120) -> str:
    words = value if most > 120 else dumps(value)
    return words if len(words) <= most else words[:most] + "…"


# --- the decorator --------------------------------------------------------------------------------------------------


@overload
def requires_approval(function: F, /) -> F: ...
@overload
def requires_approval(
    *,
    desk: Client | str | None = None,
    task: Named | None = None,
    text: Said = None,
    reviewer: str | None = None,
    timeout: Any = None,
    wait: float | None = None,
    key: Said = None,
    show: Callable[..., dict[str, Any]] | None = None,
    agent: str | None = None,
) -> Callable[[F], F]: ...
def requires_approval(
    function: Any = None, /, *, desk: Client | str | None = None, show: Callable[..., dict[str, Any]] | None = None, **terms: Any
) -> Any:
    """Ask a person before each call. Raises Refused, NobodyAnswered or StillWaiting instead of running without a yes."""

    def guard(function: Callable[..., Any]) -> Callable[..., Any]:
        guarded = _Guarded(function, Terms(**terms), show)
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def later(*args: Any, **named: Any) -> Any:
                call = guarded.call(args, named)
                opened = None if isinstance(desk, Client) else await asyncio.to_thread(connect, desk)
                try:
                    at = opened or cast(Client, desk)
                    allowed = call.checked(await approved_async(at, guarded.tool, call.shown, **call.terms))
                finally:
                    if opened is not None:
                        await opened.aio.close()
                return await function(*allowed.args, **allowed.kwargs)

            return later

        @functools.wraps(function)
        def now(*args: Any, **named: Any) -> Any:
            call = guarded.call(args, named)
            opened = None if isinstance(desk, Client) else connect(desk)
            try:
                allowed = call.checked(approved(opened or cast(Client, desk), guarded.tool, call.shown, **call.terms))
            finally:
                if opened is not None:
                    opened.close()
            return function(*allowed.args, **allowed.kwargs)

        return now

    return guard if function is None else guard(function)


class _Guarded:
    """A function that somebody has to allow."""

    def __init__(self, function: Callable[..., Any], terms: Terms, show: Callable[..., dict[str, Any]] | None) -> None:
        name = getattr(function, "__qualname__", type(function).__qualname__)
        if isinstance(function, (classmethod, staticmethod, property)):
            what = type(function).__name__
            raise Usage(f"requires_approval cannot guard a {what}", hint=f"Put it below @{what}, next to the function.")
        if not callable(function):
            raise Usage(f"requires_approval cannot guard {function!r:.60}", reason="it is no function")
        if isinstance(function, type):
            raise Usage(f"requires_approval cannot guard the class {name}", hint="Guard the function that does the deed.")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise Usage(
                f"requires_approval cannot guard {name}: it is a generator",
                reason="it runs piece by piece, when nobody looks any more",
                hint="Guard the function that does the deed.",
            )
        self.signature = inspect.signature(function)
        module = getattr(function, "__module__", None) or "?"
        self.tool = f"{_program() if module == '__main__' else module}.{name}"
        self.terms = terms
        self.show = show
        first = next(iter(self.signature.parameters), "")
        inside = name.rpartition(".")[0]
        self.receiver = first if first in ("self", "cls") and inside and not inside.endswith("<locals>") else None

    def call(self, args: tuple[Any, ...], named: dict[str, Any]) -> _Call:
        bound = self.signature.bind(*args, **named)
        bound.apply_defaults()
        return _Call(self, bound)


class _Call:
    """One call: as it was made, as it is shown, and as it may run."""

    def __init__(self, of: _Guarded, bound: inspect.BoundArguments) -> None:
        self.of = of
        self.bound = bound
        self.shown: dict[str, Any] = self._shown()
        terms = of.terms
        self.terms = {**terms._asdict(), "text": self._said("text", terms.text), "key": self._said("key", terms.key)}

    def _shown(self) -> dict[str, Any]:
        of, hint = self.of, "Give show=, a function of the same arguments that returns what a person should see."
        if of.show is None:
            given = {name: value for name, value in self.bound.arguments.items() if name != of.receiver}
            for name, value in given.items():
                if of.signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
                    given[name] = list(value)
            found = plain(of.tool, given, hint)
        else:
            found = of.show(*self.bound.args, **self.bound.kwargs)
            if type(found) is not dict:
                raise Invalid(f"show for {of.tool} must return a dictionary", reason=f"got {type(found).__name__}")
            found = plain(of.tool, found)
        return cast(dict[str, Any], found)

    def _said(self, what: str, said: Said) -> str | None:
        """A text or key: words with {names} of arguments, or a function of the same arguments."""
        if said is None:
            return None
        if callable(said):
            found = said(*self.bound.args, **self.bound.kwargs)
            if not isinstance(found, str):
                raise Invalid(f"{what} for {self.of.tool} must be text", reason=f"got {type(found).__name__}")
            return found
        try:
            return said.format(**self.shown)
        except (LookupError, ValueError, AttributeError) as error:
            raise Invalid(f"{what} for {self.of.tool} does not fit its arguments", reason=str(error)) from None

    def checked(self, allowed: dict[str, Any]) -> inspect.BoundArguments:
        """The call that may run: with what was shown, or with what the person made of it."""
        if self.of.show is not None and digest(self._shown()) != digest(self.shown):
            raise Invalid(f"{self.of.tool} has not run", reason="its arguments have changed since a person saw them")
        if set(allowed) != set(self.shown):
            named = sorted(set(allowed) ^ set(self.shown))
            raise self._unfit(f"{', '.join(named)} {'is' if len(named) == 1 else 'are'} not what it takes")
        given = dict(self.bound.arguments)
        for name, value in allowed.items():
            if self.of.show is None:
                given[name] = self._fit(name, value)
            elif dumps(value) != dumps(self.shown[name]):
                given[name] = self._fit(name, self._translated(name, value))
        return inspect.BoundArguments(self.of.signature, given)

    def _translated(self, name: str, value: Any) -> Any:
        """An edit of what `show` says can only be followed where it says an argument as it is."""
        try:
            as_it_is = name in self.bound.arguments and dumps(plain("", self.bound.arguments[name])) == dumps(self.shown[name])
        except Invalid:
            as_it_is = False
        if not as_it_is:
            raise self._unfit(f"{name} is only shown: a change of it cannot be followed")
        return value

    def _fit(self, name: str, value: Any) -> Any:
        kinds = {n: p.kind for n, p in self.of.signature.parameters.items()}
        if kinds[name] is inspect.Parameter.VAR_POSITIONAL:
            if not isinstance(value, list):
                raise self._unfit(f"{name} must be a list")
            return tuple(value)
        if kinds[name] is inspect.Parameter.VAR_KEYWORD:
            if not isinstance(value, dict):
                raise self._unfit(f"{name} must be an object")
            twice = [n for n in value if kinds.get(n, inspect.Parameter.POSITIONAL_ONLY) is not inspect.Parameter.POSITIONAL_ONLY]
            if twice:
                raise self._unfit(f"{twice[0]} is named twice")
        return value

    def _unfit(self, why: str) -> Invalid:
        return Invalid(f"{self.of.tool} has not run: its edited arguments do not fit", reason=why)

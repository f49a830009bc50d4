"""Calls, before they are made: bound to a signature, shown as JSON, and checked again when somebody has allowed them.

Knows no desk. The arguments that are shown are those of the signature by name, defaults included; `*rest` is a list under its
name and `**more` an object under its own. The receiver of a method is left out and passed on as it is.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from ..client import Named
from ..core.canonical_json import DEPTH, check, digest, dumps
from ..core.errors import Invalid, Usage

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


class Guarded:
    """A function that somebody has to allow."""

    def __init__(self, function: Callable[..., Any], terms: Terms, show: Callable[..., dict[str, Any]] | None) -> None:
        name = getattr(function, "__qualname__", type(function).__qualname__)
        if isinstance(function, (classmethod, staticmethod, property)):
            what = type(function).__name__
            raise Usage(f"requires_approval cannot guard a {what}", hint=f"Put it below @{what}, next to the function.")
        if not callable(function):
            raise Usage(f"requires_approval cannot guard {function!r:.60}", reason="it is no function")
        if isinstance(function, functools.partial):
            raise Usage(
                "requires_approval cannot guard a partial",
                reason="nobody would see the arguments that it already has",
                hint="Guard the function that does the deed.",
            )
        if isinstance(function, type):
            raise Usage(f"requires_approval cannot guard the class {name}", hint="Guard the function that does the deed.")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise Usage(
                f"requires_approval cannot guard {name}: it is a generator",
                reason="it runs piece by piece, when nobody looks any more",
                hint="Guard the function that does the deed.",
            )
        self.later = any(map(inspect.iscoroutinefunction, (function, getattr(function, "__call__", None))))  # noqa: B004
        self.signature = inspect.signature(function)
        module = getattr(function, "__module__", None) or "?"
        self.tool = f"{program() if module == '__main__' else module}.{name}"
        self.terms = terms
        self.show = show
        first = next(iter(self.signature.parameters), "")
        inside = name.rpartition(".")[0]
        self.receiver = first if first in ("self", "cls") and inside and not inside.endswith("<locals>") else None

    def call(self, args: tuple[Any, ...], named: dict[str, Any]) -> Call:
        bound = self.signature.bind(*args, **named)
        bound.apply_defaults()
        return Call(self, bound)


class Call:
    """One call: as it was made, as it is shown, and as it may run."""

    def __init__(self, of: Guarded, bound: inspect.BoundArguments) -> None:
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


def program() -> str:
    """What runs here: the script, or the module after -m."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    found = (spec.parent or spec.name) if spec else os.path.basename(getattr(main, "__file__", None) or "python")  # noqa: PTH119
    return re.sub(r"[^\w.@+-]", "-", found.removesuffix(".py")).lstrip(".@+-")[:100] or "program"

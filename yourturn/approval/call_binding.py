"""Calls that need approval: bound to the function's signature, shown as JSON, and checked again after the approval.

Uses no desk. The arguments are shown by name, defaults included; `*rest` is a list under its name and `**more` an object under
its own. `self` and `cls` are not shown and are passed on unchanged.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypedDict, cast

from ..core.canonical_json import DEPTH, check, digest, dumps
from ..core.errors import Invalid, Usage

if TYPE_CHECKING:
    from ..client import Named

#: A text or key: a format with {names} of arguments, or a function of the same arguments.
Template = str | Callable[..., str] | None

#: Set while a function must not wait for a person, because a worker would block: creates the error for the call of that name.
no_waiting: ContextVar[Callable[[str], Exception] | None] = ContextVar("yourturn_no_waiting", default=None)

_PLAIN = (str, int, float, bool, type(None))
_GUARD_INSTEAD = "Guard the function that has the effect."


class AskOptions(TypedDict, total=False):
    """How `approved` asks."""

    task: Named | None
    text: str | None
    reviewer: str | None
    timeout: Any
    wait: float | None
    key: str | None
    agent: str | None


class GuardedFunction:
    """A function whose calls need approval. `templates`: its text and key."""

    def __init__(self, function: Callable[..., Any], templates: dict[str, Template], show: Callable[..., Any] | None) -> None:
        name = getattr(function, "__qualname__", type(function).__qualname__)
        _check_guardable(function, name)
        self.is_async = any(map(inspect.iscoroutinefunction, (function, getattr(function, "__call__", None))))  # noqa: B004
        self.signature = inspect.signature(function)
        module = getattr(function, "__module__", None) or "?"
        self.tool = f"{program() if module == '__main__' else module}.{name}"
        self.templates = templates
        self.show = show
        first = next(iter(self.signature.parameters), "")
        owner = name.rpartition(".")[0]
        self.receiver = first if first in ("self", "cls") and owner and not owner.endswith("<locals>") else None

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> BoundCall:
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return BoundCall(self, bound)


def _check_guardable(function: Any, name: str) -> None:
    if isinstance(function, (classmethod, staticmethod, property)):
        kind = type(function).__name__
        raise Usage(f"requires_approval cannot guard a {kind}", hint=f"Put it below @{kind}, next to the function.")
    if not callable(function):
        raise Usage(f"requires_approval cannot guard {function!r:.60}", reason="it is not a function")
    if isinstance(function, functools.partial):
        raise Usage(
            "requires_approval cannot guard a partial",
            reason="a person would not see the arguments that it already has",
            hint=_GUARD_INSTEAD,
        )
    if isinstance(function, type):
        raise Usage(f"requires_approval cannot guard the class {name}", hint=_GUARD_INSTEAD)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise Usage(
            f"requires_approval cannot guard {name}: it is a generator",
            reason="its code runs later, while it is iterated",
            hint=_GUARD_INSTEAD,
        )


class BoundCall:
    """One call: its arguments, what a person sees of them, and the question's text and key."""

    def __init__(self, function: GuardedFunction, bound: inspect.BoundArguments) -> None:
        self.function = function
        self.bound = bound
        self.shown: dict[str, Any] = self._show()
        self.texts = {field: self._text(field, template) for field, template in function.templates.items()}

    def _show(self) -> dict[str, Any]:
        function = self.function
        if function.show is None:
            arguments = {name: value for name, value in self.bound.arguments.items() if name != function.receiver}
            for name, value in arguments.items():
                if function.signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
                    arguments[name] = list(value)
            hint = "Give show=, a function of the same arguments that returns what a person should see."
            return cast(dict[str, Any], plain(function.tool, arguments, hint))
        shown = function.show(*self.bound.args, **self.bound.kwargs)
        if type(shown) is not dict:
            raise Invalid(f"show for {function.tool} must return a dictionary", reason=f"got {type(shown).__name__}")
        return cast(dict[str, Any], plain(function.tool, shown))

    def _text(self, field: str, template: Template) -> str | None:
        if template is None:
            return None
        if callable(template):
            text = template(*self.bound.args, **self.bound.kwargs)
            if not isinstance(text, str):
                raise Invalid(f"{field} for {self.function.tool} must be text", reason=f"got {type(text).__name__}")
            return text
        try:
            return template.format(**self.shown)
        except (LookupError, ValueError, AttributeError) as error:
            raise Invalid(f"{field} for {self.function.tool} does not fit its arguments", reason=str(error)) from None

    def approved_arguments(self, allowed: dict[str, Any]) -> inspect.BoundArguments:
        """The arguments to run with: as they were shown, or as the person edited them."""
        if self.function.show is not None and digest(self._show()) != digest(self.shown):
            raise Invalid(f"{self.function.tool} has not run", reason="its arguments have changed since a person saw them")
        if set(allowed) != set(self.shown):
            names = sorted(set(allowed) ^ set(self.shown))
            raise self._unfit(f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} not what it takes")
        arguments = dict(self.bound.arguments)
        for name, value in allowed.items():
            if self.function.show is None:
                arguments[name] = self._fit(name, value)
            elif dumps(value) != dumps(self.shown[name]):
                self._check_editable(name)
                arguments[name] = self._fit(name, value)
        return inspect.BoundArguments(self.function.signature, arguments)

    def _check_editable(self, name: str) -> None:
        """With show=, an edit can only be applied where `show` returned an argument unchanged."""
        try:
            unchanged = name in self.bound.arguments and dumps(plain("", self.bound.arguments[name])) == dumps(self.shown[name])
        except Invalid:
            unchanged = False
        if not unchanged:
            raise self._unfit(f"{name} is only shown: an edit of it cannot be applied")

    def _fit(self, name: str, value: Any) -> Any:
        kinds = {n: p.kind for n, p in self.function.signature.parameters.items()}
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
        return Invalid(f"{self.function.tool} has not run: its edited arguments do not fit", reason=why)


def plain(tool: str, arguments: Any, hint: str = "") -> Any:
    """A copy of the arguments as JSON. Refuses what JSON cannot hold exactly, such as a tuple or an Enum."""

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
            problem = "has keys that are not text" if type(value) is dict else f"is of type {type(value).__name__}"
            raise Invalid(
                f"The call of {tool} cannot be shown to a person",
                reason=f"{where or 'what should be shown'} {problem}, which JSON cannot hold exactly",
                hint=hint,
            )

    visit(arguments, "", 0)
    return check(arguments, f"the call of {tool}")


def program() -> str:
    """The name of the running program: the script, or the module after -m."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    name = (spec.parent or spec.name) if spec else os.path.basename(getattr(main, "__file__", None) or "python")  # noqa: PTH119
    return re.sub(r"[^\w.@+-]", "-", name.removesuffix(".py")).lstrip(".@+-")[:100] or "program"

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
import os
import uuid
from collections.abc import Callable
from typing import Any, TypeVar, cast, overload

from ..client import Client, Named
from ..config import connect
from ..core.canonical_json import digest, dumps
from ..core.errors import Invalid, KeyReused, NobodyAnswered, Precondition, Refused, StillWaiting, StoreTrouble, YourturnError
from ..core.fields import CONTROL, line
from ..core.model import Who
from ..display.runs import no_waiting
from .call_binding import Guarded, Said, Terms, plain, program

F = TypeVar("F", bound=Callable[..., Any])

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
    try:
        found = wish.desk.wait_for(asked, wish.seconds)
    except StoreTrouble as trouble:
        raise wish.unheard(asked, trouble) from None
    return wish.allowed(found)


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
    try:
        answered = await aio.wait_for(asked, wish.seconds)
    except StoreTrouble as trouble:
        raise wish.unheard(asked, trouble) from None
    found: dict[str, Any] = await aio.in_thread(wish.allowed, answered)
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
        if self.seconds and (refusal := no_waiting.get()):
            raise refusal(self.tool)

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
                reviewer=terms.reviewer, timeout=terms.timeout, **self._claim(task),
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

    def _claim(self, task: Named) -> dict[str, Any]:
        """A worker's process asks under its claim, and so keeps it; as the step of a run that it works in."""
        token = os.environ.get("YOURTURN_CLAIM")
        if not token or not self.desk.claim_is_for(token, task):
            return {"claim": None}
        return {"claim": token, "step": os.environ.get("YOURTURN_STEP") or None}

    def allowed(self, q: dict[str, Any]) -> dict[str, Any]:
        """The arguments to run with, or the reason why not."""
        response = q["response"] or {}
        if q["status"] == "pending":
            raise self._waits(q, f"{q['id']} still waits for a person")
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

    def unheard(self, q: dict[str, Any], trouble: StoreTrouble) -> YourturnError:
        """It was asked, and the desk is gone."""
        return self._waits(q, f"whether {q['id']} is answered cannot be read ({trouble})")

    def _waits(self, q: dict[str, Any], why: str) -> YourturnError:
        again = "Call it again with the same key to go on waiting." if self.terms.key is not None else ""
        return _about(q, StillWaiting(f"{self.tool} has not run", reason=why, hint=again or f"Look with: turn show {q['id']}"))

    def _use(self, q: dict[str, Any], allowed: str) -> None:
        """Each call is its own: a yes is used once, also by a program that was killed and starts again."""
        try:
            self.desk.use(q, f"{program()}/{uuid.uuid4().hex}", digest=allowed)
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
    name = line(100)("agent", name or program()).removeprefix("agent:")
    return desk.as_(Who(f"agent:{name}", "agent", direct=desk.who.direct))


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
        guarded = Guarded(function, Terms(**terms), show)
        if guarded.later:

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

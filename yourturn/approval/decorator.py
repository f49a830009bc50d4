"""A person's approval before a function runs: `@requires_approval`, and `approved`, the plain function that it uses.

    @requires_approval(text="Deploy {version} to {to}?")
    def deploy(version: str, to: str = "staging") -> None: …

The function runs with exactly the arguments that a person approved. They are bound to the signature, defaults included, and
recorded as JSON before the question is asked; the function gets the recorded ones, not what the caller may have changed since, or
the person's edited ones. `self` and `cls` are not shown and are passed on unchanged.

With `show=` the function gets the caller's own objects, because JSON cannot hold them. `show` is called again just before the
call; if it returns anything else than the person saw, the function does not run. An argument that `show` returns unchanged can be
edited, anything else cannot.

Every other outcome is an exception: rejected, timed out, withdrawn, already used, still open, desk not reachable.
"""

from __future__ import annotations

import asyncio
import functools
import os
import uuid
from collections.abc import Callable
from typing import Any, TypeVar, Unpack, cast, overload

from ..client import Client, Named
from ..config import connect
from ..core.canonical_json import digest, dumps
from ..core.errors import Invalid, KeyReused, NobodyAnswered, Precondition, Refused, StillWaiting, StoreTrouble, YourturnError
from ..core.fields import CONTROL, line
from ..core.model import Who
from .call_binding import AskOptions, GuardedFunction, Template, no_waiting, plain, program

F = TypeVar("F", bound=Callable[..., Any])

# --- the plain function ---------------------------------------------------------------------------------------------


def approved(desk: Client, tool: str, arguments: dict[str, Any], **options: Unpack[AskOptions]) -> dict[str, Any]:
    """Ask whether `tool` may run with `arguments`. Returns the arguments for one run: the same, or as a person edited them.

    Options: task, text, reviewer, timeout, wait, key, agent.
    """
    request = _Request(desk, tool, arguments, options)
    question = request.ask()
    try:
        question = request.desk.wait_for(question, request.seconds)
    except StoreTrouble as trouble:
        raise request.unreadable(question, trouble) from None
    return request.allowed(question)


async def approved_async(desk: Client, tool: str, arguments: dict[str, Any], **options: Unpack[AskOptions]) -> dict[str, Any]:
    """The same, without blocking the event loop."""
    request = _Request(desk, tool, arguments, options)
    aio = request.desk.aio
    question = await aio.in_thread(request.ask)
    try:
        question = await aio.wait_for(question, request.seconds)
    except StoreTrouble as trouble:
        raise request.unreadable(question, trouble) from None
    return cast(dict[str, Any], await aio.in_thread(request.allowed, question))


class _Request:
    """The request for one exact call."""

    def __init__(self, desk: Client, tool: str, arguments: dict[str, Any], options: AskOptions) -> None:
        if unknown := options.keys() - AskOptions.__annotations__.keys():
            raise TypeError(f"approved() got an unexpected keyword argument {min(unknown)!r}")
        self.desk = _as_agent(desk, options.get("agent"))
        self.tool = line()("tool", tool)
        self.options = options
        self.key = options.get("key")
        if not isinstance(arguments, dict):
            raise Invalid(f"The arguments of {tool} must be named", hint="Give them as a dictionary.")
        self.action = {"tool": self.tool, "arguments": plain(tool, arguments), "folder": os.getcwd()}  # noqa: PTH109
        self.digest = digest(self.action)
        self.seconds = _seconds(options.get("wait"))
        if self.seconds and (refusal := no_waiting.get()):
            raise refusal(self.tool)

    def ask(self) -> dict[str, Any]:
        """The question; with a key, the one that an earlier call asked."""
        task = self.options.get("task") or os.environ.get("YOURTURN_TASK")
        key = None if self.key is None else f"approval/{digest([self.tool, self.key])[:40]}"
        try:
            if not task:
                task = self._carrier(key)
            return self.desk.ask(
                task, str(self.options.get("text") or sentence(self.tool, self.action["arguments"])), "permission",
                action=self.action, key=key, reviewer=self.options.get("reviewer"), timeout=self.options.get("timeout"),
                **self._claim(task),
            )  # fmt: skip
        except KeyReused:
            raise KeyReused(
                f"The key {str(self.key)[:60]!a} stands for another call of {self.tool}",
                reason="a person was asked about other arguments, or in another folder",
                hint="Use a new key for a new call.",
            ) from None

    def _carrier(self, key: str | None) -> dict[str, Any]:
        """A task that carries the question. It stays a draft, so that no agent claims it."""
        about = "A program asks before it runs this. The task only carries the question: there is nothing to work on."
        title = CONTROL.sub(" ", f"Allow {self.tool}")[:300]
        return self.desk.create(title, description=about, draft=True, key=key and f"{key}/task")

    def _claim(self, task: Named) -> dict[str, Any]:
        """A worker's process asks under its claim, and so keeps it; inside a run, as the run's current step."""
        token = os.environ.get("YOURTURN_CLAIM")
        if not token or not self.desk.claim_is_for(token, task):
            return {"claim": None}
        return {"claim": token, "step": os.environ.get("YOURTURN_STEP") or None}

    def allowed(self, q: dict[str, Any]) -> dict[str, Any]:
        """The arguments to run with. Raises the reason if the function must not run."""
        response = q["response"] or {}
        if q["status"] == "pending":
            raise self._still_waiting(q, f"{q['id']} still waits for a person")
        if q["status"] == "timeout":
            raise _about(q, NobodyAnswered(f"{self.tool} has not run", reason=f"{q['id']} was not answered in time"))
        if q["status"] != "answered" or response.get("verdict") != "approved":
            raise _refused(self.tool, q, response)
        if q["kind"] != "permission" or q["digest"] != self.digest or digest(q["action"]) != self.digest:
            raise Invalid(f"{self.tool} has not run", reason=f"{q['id']} allows something else")
        action = _edited(q)
        self._use(q, digest(action))
        return cast(dict[str, Any], action["arguments"])

    def unreadable(self, q: dict[str, Any], trouble: StoreTrouble) -> YourturnError:
        """The error if the desk cannot be reached after the question was asked."""
        return self._still_waiting(q, f"whether {q['id']} is answered cannot be read ({trouble})")

    def _still_waiting(self, q: dict[str, Any], why: str) -> YourturnError:
        again = "Call it again with the same key to go on waiting." if self.key is not None else ""
        return _about(q, StillWaiting(f"{self.tool} has not run", reason=why, hint=again or f"Look with: turn show {q['id']}"))

    def _use(self, q: dict[str, Any], allowed: str) -> None:
        """Use up the approval. The user's name is new for each call, so that a restarted program cannot use it again."""
        try:
            self.desk.use(q, f"{program()}/{uuid.uuid4().hex}", digest=allowed)
        except Precondition as error:
            raise Precondition(f"{self.tool} has not run", reason=error.reason, hint="Ask again, with a new key.") from None


def _edited(q: dict[str, Any]) -> dict[str, Any]:
    """The action as the person approved it. An edit may change the arguments, not the tool or the folder."""
    asked: dict[str, Any] = q["action"]
    value = q["response"]["value"]
    if not isinstance(value, dict):
        return asked
    if {**value, "arguments": None} != {**asked, "arguments": None} or not isinstance(value["arguments"], dict):
        raise Invalid(f"{asked['tool']} has not run", reason=f"{q['responded_by']} allowed something else in {q['id']}")
    return value


def _refused(tool: str, q: dict[str, Any], response: dict[str, Any]) -> YourturnError:
    answered = q["status"] == "answered"
    why = str((response.get("text") if answered else q["close_reason"]) or "")
    error = Refused(f"{q['responded_by']} {'refused' if answered else 'withdrew'} {tool} ({q['id']})", reason=why)
    error.who, error.at, error.why = q["responded_by"], q["responded_at"], why
    return _about(q, error)


def _about(q: dict[str, Any], error: Any) -> YourturnError:
    error.question = q["id"]
    return cast(YourturnError, error)


def _seconds(wait: float | None) -> float:
    if wait is None:
        return float("inf")
    if isinstance(wait, bool) or not isinstance(wait, (int, float)) or not wait >= 0:
        raise Invalid("wait must be a number of seconds", hint="None waits until an answer comes or the question times out.")
    return wait


def _as_agent(desk: Client, name: str | None) -> Client:
    """A program asks as an agent, also on a person's desk. A client that is an agent already keeps its name."""
    if not desk.who.is_person:
        return desk
    name = line(100)("agent", name or program()).removeprefix("agent:")
    return desk.as_(Who(f"agent:{name}", "agent", direct=desk.who.direct))


def sentence(tool: str, arguments: dict[str, Any]) -> str:
    shown = ", ".join(f"{name}={_short(dumps(value), 120)}" for name, value in arguments.items())
    return f"Run {tool}({_short(shown, 1000)})?"


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + "…"


# --- the decorator --------------------------------------------------------------------------------------------------


@overload
def requires_approval(function: F, /) -> F: ...
@overload
def requires_approval(
    *,
    desk: Client | str | None = None,
    task: Named | None = None,
    text: Template = None,
    reviewer: str | None = None,
    timeout: Any = None,
    wait: float | None = None,
    key: Template = None,
    show: Callable[..., dict[str, Any]] | None = None,
    agent: str | None = None,
) -> Callable[[F], F]: ...
def requires_approval(
    function: Any = None,
    /,
    *,
    desk: Client | str | None = None,
    task: Named | None = None,
    text: Template = None,
    reviewer: str | None = None,
    timeout: Any = None,
    wait: float | None = None,
    key: Template = None,
    show: Callable[..., dict[str, Any]] | None = None,
    agent: str | None = None,
) -> Any:
    """Ask a person before each call. Raises Refused, NobodyAnswered or StillWaiting if the call was not approved."""
    asked: AskOptions = {"task": task, "reviewer": reviewer, "timeout": timeout, "wait": wait, "agent": agent}

    def guard(function: Callable[..., Any]) -> Callable[..., Any]:
        guarded = GuardedFunction(function, {"text": text, "key": key}, show)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            bound = guarded.bind(args, kwargs)
            own = None if isinstance(desk, Client) else connect(desk)
            try:
                arguments = approved(own or cast(Client, desk), guarded.tool, bound.shown, **asked, **bound.texts)
                allowed = bound.approved_arguments(arguments)
            finally:
                if own is not None:
                    own.close()
            return function(*allowed.args, **allowed.kwargs)

        @functools.wraps(function)
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            bound = guarded.bind(args, kwargs)
            own = None if isinstance(desk, Client) else await asyncio.to_thread(connect, desk)
            try:
                arguments = await approved_async(own or cast(Client, desk), guarded.tool, bound.shown, **asked, **bound.texts)
                allowed = bound.approved_arguments(arguments)
            finally:
                if own is not None:
                    await own.aio.close()
            return await function(*allowed.args, **allowed.kwargs)

        return call_async if guarded.is_async else call

    return guard if function is None else guard(function)

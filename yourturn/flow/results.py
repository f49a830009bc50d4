"""The results that a script gets from its calls, and the exceptions that end or suspend it.

These exceptions are BaseExceptions, so that a script's own `except Exception:` does not catch them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class ScriptExit(BaseException):
    """Ends or suspends a script. None of its subclasses is an error of the script itself."""


class Suspended(ScriptExit):
    """The run waits: for a person, for a date, or because the worker stops. A later replay continues it."""

    def __init__(self, why: str, until: str | None = None) -> None:
        super().__init__(why)
        self.why, self.until = why, until  #: person, sleep or stop


class Halted(Suspended):
    """The worker stops, and the script has not reached its next call in time."""

    def __init__(self) -> None:
        super().__init__("stop")


class Stuck(ScriptExit):
    """The script gives up, with a reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Diverged(ScriptExit):
    """The script was changed: its call differs from the recorded step, or a step may belong to another call (alignment.py)."""

    def __init__(
        self, path: str, expected: dict[str, Any] | None, actual: dict[str, Any] | None, doubts: Sequence[Any] = ()
    ) -> None:
        super().__init__(path)
        self.path, self.expected, self.actual, self.doubts = path, expected, actual, doubts


class Released(ScriptExit):
    """An agent could not continue, and a retry may succeed: the run is released, which costs a try."""


class Interrupted(ScriptExit):
    """The desk refused a write of the run: the claim is lost, or the database cannot be reached."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class StepFailed(Exception):
    """The function of a `step()` raised, or its result cannot be recorded. The same on every replay, so a script may catch it.

    `type` is the name of the exception's class, `place` the line that raised it, `step` the call's place in the journal.
    """

    def __init__(self, error: str, type: str = "", place: str = "", traceback: str = "", step: str = "") -> None:
        super().__init__(error)
        self.type, self.place, self.traceback, self.step = type, place, traceback, step


class LuaError(Exception):
    """An error in a Lua script, with its line; `raw` is Lua's own message."""

    def __init__(self, message: str, raw: str) -> None:
        super().__init__(message)
        self.raw = raw


class Signal(dict[str, Any]):
    """An agent's final signal: `status`, `summary`, `reason`, `message`, and every other field that it wrote."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name, "" if name in ("status", "summary", "reason", "message") else None)


def refusal(by: str, text: str) -> str:
    """The reason of a rejection without text: who rejected, and which question."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    question = first if len(first) <= 120 else f"{first[:119]}…"
    return f"{by.partition(':')[2] or by or 'a person'} said no to “{question}”"


class Pause:
    """A person's decision at a checkpoint. True if the run may go on."""

    def __init__(self, continue_: bool, reason: str = "", message: str = "", by: str = "") -> None:
        self.continue_, self.reason, self.message, self.by = continue_, reason, message, by

    def __bool__(self) -> bool:
        return self.continue_

    def __repr__(self) -> str:
        return f"Pause(continue_={self.continue_}, reason={self.reason!r}, message={self.message!r}, by={self.by!r})"


class Answer:
    """A person's answer: `value` is what they chose or wrote (None if they refused or gave none), `str()` of it their words,
    and of a yes or no without words "yes" or "no".

    The truth of a yes-or-no question is its answer. Any other answer has no truth: a choice of "no" is not a no.
    """

    def __init__(
        self, value: Any = None, text: str = "", verdict: str | None = None, by: str = "", status: str = "answered",
        type: str = "text",
    ) -> None:  # fmt: skip
        self.value, self.text, self.verdict, self.by, self.status, self.type = value, text, verdict, by, status, type

    @property
    def approved(self) -> bool | None:
        """Whether the person approved; None where the question was not a yes-or-no question."""
        if self.type == "boolean":
            return self.value is True and self.verdict != "rejected"
        return self.verdict == "approved" if self.type == "approval" else None

    def __bool__(self) -> bool:
        approved = self.approved
        if approved is None:
            raise TypeError(
                f"an answer of type {self.type} is neither true nor false: compare its .value"
                ' (None if there is none), or ask with response_type="boolean"'
            )
        return approved

    def __str__(self) -> str:
        if self.text or (self.value is None and self.verdict is None):
            return self.text
        if self.approved is not None:
            return "yes" if self.approved else "no"
        return "" if self.value is None else str(self.value)

    def __eq__(self, other: object) -> bool:
        return bool(self.value == (other.value if isinstance(other, Answer) else other))

    def __hash__(self) -> int:
        return hash(str(self.value))

    def __repr__(self) -> str:
        return f"Answer({self.value!r}, text={self.text!r}, verdict={self.verdict!r}, by={self.by!r})"

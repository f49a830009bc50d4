"""What a script gets back, and the ways in which it can be left.

The ways out are BaseExceptions, so that a script's own `except Exception:` does not catch them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class WayOut(BaseException):
    """How a script is left. None of them is an error of the script's own."""


class Suspended(WayOut):
    """The run waits: for a person, for a date, or because the worker was told to stop. It goes on by being replayed."""

    def __init__(self, why: str, until: str | None = None) -> None:
        super().__init__(why)
        self.why, self.until = why, until  #: person, sleep or stop


class Halted(Suspended):
    """It is time to go, and the script does not come to its next call."""

    def __init__(self) -> None:
        super().__init__("stop")


class Stuck(WayOut):
    """The script gives up, with a reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Diverged(WayOut):
    """The script was changed: it calls something else than the journal says, or what it says is in doubt (align.py)."""

    def __init__(
        self, path: str, expected: dict[str, Any] | None, actual: dict[str, Any] | None, doubts: Sequence[Any] = ()
    ) -> None:
        super().__init__(path)
        self.path, self.expected, self.actual, self.doubts = path, expected, actual, doubts


class Released(WayOut):
    """An agent could not go on, and the same again may go well: another try, if there is one."""


class Interrupted(WayOut):
    """The desk did not take what the run wrote: the claim is lost, or the database cannot be reached."""

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
    """What went wrong in a Lua script, with the line; `said` is how Lua says it."""

    def __init__(self, words: str, said: str) -> None:
        super().__init__(words)
        self.said = said


class Signal(dict[str, Any]):
    """What an agent said at the end: `status`, `summary`, `reason`, `message`, and whatever else it wrote."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name, "" if name in ("status", "summary", "reason", "message") else None)


def refusal(by: str, text: str) -> str:
    """A no without words: who said it, and to what."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    asked = first if len(first) <= 120 else f"{first[:119]}…"
    return f"{by.partition(':')[2] or by or 'a person'} said no to “{asked}”"


class Pause:
    """What a person said at a checkpoint. True if they let it go on."""

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
        """Did they say yes? None where no yes or no was asked for."""
        if self.type == "boolean":
            return self.value is True and self.verdict != "rejected"
        return self.verdict == "approved" if self.type == "approval" else None

    def __bool__(self) -> bool:
        found = self.approved
        if found is None:
            raise TypeError(
                f"an answer of type {self.type} is neither true nor false: compare its .value"
                ' (None if there is none), or ask with response_type="boolean"'
            )
        return found

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

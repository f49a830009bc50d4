"""Times and durations as a page shows them, in words; and the countdown to a question's deadline."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from ..client import Client
from ..core.time_format import iso
from ..display.terminal import countdown as remaining
from ..display.terminal import length, micros

MINUTE, HOUR, DAY = 60, 3600, 86400
#: Timeout policies that restart the time and leave the question open.
RESTARTING = frozenset({"remind", "escalate"})


class Moment(NamedTuple):
    words: str
    iso: str
    full: str


class Countdown(NamedTuple):
    """The time left for an answer. `seconds` is None where no time runs."""

    words: str
    seconds: int | None = None
    of: int = 0
    share: int = 0
    level: str = ""
    until: int = 0  #: the deadline in milliseconds of the desk's clock: however old a page is, it counts down to that
    closes: bool = True  #: the deadline closes the question; a reminder only restarts the time


def desk_time(client: Client) -> int:
    """The desk's time in microseconds."""
    return micros(client.now())


def local_time(timestamp: str) -> datetime:
    return datetime.fromisoformat(timestamp).astimezone()


def seconds_until(timestamp: str, now: int) -> int:
    return (micros(timestamp) - now) // 1_000_000


def milliseconds(timestamp: str | None) -> int:
    return micros(timestamp) // 1000 if timestamp else 0


# --- points in time ---------------------------------------------------------------------------------------------------


def moment(timestamp: str, now: int) -> Moment:
    return Moment(ago(timestamp, now), timestamp, f"{local_time(timestamp):%Y-%m-%d %H:%M:%S %Z}")


def ago(timestamp: str, now: int) -> str:
    """'11 min ago', '2 h ago', 'yesterday', 'Tuesday', '3 November'."""
    seconds = max(0, -seconds_until(timestamp, now))
    if seconds < 45:
        return "just now"
    if seconds < HOUR:
        return f"{max(1, seconds // MINUTE)} min ago"
    if seconds < 20 * HOUR:
        return f"{seconds // HOUR} h ago"
    then, today = local_time(timestamp), local_time(iso(now))
    days = (today.date() - then.date()).days
    if days <= 1:
        return "yesterday"
    return f"{then:%A}" if days < 7 else date(then, today)


def future_day(timestamp: str, now: int) -> str:
    """'today, 18:00', '24 December'."""
    then, today = local_time(timestamp), local_time(iso(now))
    days = (then.date() - today.date()).days
    return f"{('today', 'tomorrow')[max(0, days)]}, {then:%H:%M}" if days < 2 else date(then, today)


def past_day(timestamp: str, now: int) -> str:
    """'Today', 'Yesterday', 'Tuesday, 3 November'."""
    then, today = local_time(timestamp), local_time(iso(now))
    days = (today.date() - then.date()).days
    return ("Today", "Yesterday")[max(0, days)] if days < 2 else f"{then:%A}, {date(then, today)}"


def date(then: datetime, today: datetime) -> str:
    """'3 November', with the year if it is not this one."""
    return f"{then.day} {then:%B}" + (f" {then.year}" if then.year != today.year else "")


def clock(timestamp: str) -> str:
    return f"{local_time(timestamp):%H:%M}"


def clock_with_seconds(timestamp: str) -> str:
    return f"{local_time(timestamp):%H:%M:%S}"


# --- durations --------------------------------------------------------------------------------------------------------


def elapsed(seconds: float) -> str:
    """A duration that still grows, on a page that may be a minute old: '22 min', '3 h'."""
    return "a moment" if seconds < MINUTE else length(seconds, brief=True)


def elapsed_since(timestamp: str, now: int) -> str:
    return elapsed(max(0, -seconds_until(timestamp, now)))


def number_and_unit(seconds: float) -> tuple[str, str]:
    """('6', 'min'), ('1.6', 'h')."""
    for size, unit in ((DAY, "days"), (HOUR, "h"), (MINUTE, "min"), (1, "s")):
        if seconds >= size or size == 1:
            share = seconds / size
            return (f"{share:.1f}".removesuffix(".0") if share < 10 else str(round(share))), unit
    raise AssertionError


def rough_duration(seconds: float) -> str:
    """'1.6 min', '34 min', '4.3 h'."""
    return " ".join(number_and_unit(seconds))


# --- deadlines --------------------------------------------------------------------------------------------------------


def deadline(q: Mapping[str, Any]) -> str | None:
    """When the question's timeout has an effect, if ever."""
    timeout_at: str | None = q["timeout_at"] if q["on_timeout"] != "keep" else None
    return timeout_at


def countdown(q: Mapping[str, Any], now: int) -> Countdown:
    ends = deadline(q)
    if q["status"] == "timeout":
        return Countdown(f"timed out {ago(q['responded_at'], now)}")
    if ends is None or q["status"] != "pending":
        return Countdown("no limit" if q["blocking"] else "no hurry")
    left = max(0, seconds_until(ends, now))
    if left == 0:
        return Countdown("time is up")
    of = max(left, 1, (micros(ends) - micros(q["asked_at"])) // 1_000_000)
    level = "last" if left < 2 * MINUTE else "soon" if left < 10 * MINUTE else ""
    closes = q["on_timeout"] not in RESTARTING
    return Countdown(remaining(left), left, of, round(100 * left / of), level, milliseconds(ends), closes)

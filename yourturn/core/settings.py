"""Settings of workspaces and projects. A project's value overrides the workspace's, which overrides the defaults here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from . import fields
from .errors import Invalid
from .model import DAY, HOUR, MINUTE
from .rules import KINDS


class Setting(NamedTuple):
    default: Any
    check: Callable[[str, Any], Any]
    about: str
    words: tuple[str, ...] = ()  #: the allowed values, if they are few


def _review(field: str, value: Any) -> Any:
    if value in ("auto", 0):
        return 0
    try:
        return "ask" if value == "ask" else fields.span(field, value)
    except Invalid:
        raise Invalid("review must be auto, ask, or a length of time", hint="Like: turn project set review 2h") from None


def _optional_timeout(field: str, value: Any) -> int:
    return 0 if value in ("none", 0) else _timeout(field, value)


def _timeout(field: str, value: Any) -> int:
    length = fields.span(field, value)
    if length > CEILING:
        raise Invalid(f"{field} cannot be longer than 30 days")
    return length


CEILING = 30 * DAY
_POLICIES = ("fail", "stuck", "defer", "remind", "escalate", "keep")

SETTINGS: dict[str, Setting] = {
    "vetting": Setting(False, fields.flag, "new tasks wait in 'created' until a person vets them"),
    "review": Setting(0, _review, "finished work is accepted: auto, after a delay like 2h, or ask (a person accepts)"),
    "lease": Setting(HOUR, fields.span, "how long a claim lasts without a heartbeat"),
    "max_lease": Setting(DAY, fields.span, "the longest lease that a claim may ask for"),
    "max_retries": Setting(3, fields.integer(1, 100), "how often a task may be released or expire before a person is asked"),
    "approvals": Setting(
        "members", fields.choice("members", "approvers"), "who may answer approvals and other gates", ("members", "approvers")
    ),
    "min_timeout": Setting(5 * MINUTE, _timeout, "the shortest time that an agent may give a person"),
    "max_timeout": Setting(DAY, _timeout, "the longest time that an agent may give a person"),
    "signal_timeout": Setting(0, _optional_timeout, "timeout of questions at the end of a turn: none, or up to 30d"),
    "signal_on_timeout": Setting(
        "remind", fields.choice(*_POLICIES), "what that timeout does; a reminder repeats: " + ", ".join(_POLICIES), _POLICIES
    ),
    "question_rate": Setting(60, fields.integer(1, 100_000), "how many questions agents may ask about one task in an hour"),
    "question_rate_actor": Setting(600, fields.integer(1, 100_000), "how many questions one agent may ask in an hour"),
    "question_rate_workspace": Setting(
        6000, fields.integer(1, 1_000_000), "how many questions all agents of the workspace may ask in an hour"
    ),
    "task_rate": Setting(1000, fields.integer(1, 1_000_000), "how many tasks one agent may create in an hour"),
    "merge": Setting(
        "none",
        fields.choice("none", "ff", "pr"),
        "what happens to a finished branch: none, ff (fast-forward merge), pr (pull request)",
        ("none", "ff", "pr"),
    ),
    "escalate_to": Setting("admin", fields.name, "who is asked when on_timeout is escalate"),
}


def defaults() -> dict[str, Any]:
    return {name: setting.default for name, setting in SETTINGS.items()}


def row(name: str) -> Setting | None:
    """The setting with that name. `signal_timeout.input` is the setting for one kind of question."""
    base, dot, kind = name.partition(".")
    return SETTINGS.get(base) if not dot or (base.startswith("signal_") and kind in KINDS) else None


def of_kind(values: dict[str, Any], name: str, kind: str) -> Any:
    return values.get(f"{name}.{kind}", values[name])


def check(name: str, value: Any) -> Any:
    setting = row(name)
    if setting is None:
        raise Invalid(f"There is no setting {name!a}", hint=f"Choose one of: {', '.join(SETTINGS)}.")
    return setting.check(name, value)

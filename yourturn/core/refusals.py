"""Errors of refused moves: each names the state, the reason and what to do instead. decide.py raises them."""

from __future__ import annotations

import json

from .decision_builder import Draft
from .errors import AlreadyClosed, ClaimLost, IllegalMove, NotAllowed
from .field_text import answered
from .model import ANSWERED, REJECTED, TIMEOUT, Question, Task, Who
from .rules import TRANSITIONS, valid_from
from .time_format import when


def wrong_role(verb: str, who: Who, groups: frozenset[str], answers: bool) -> NotAllowed:
    """No state allows this verb to this role."""
    why = f"only {_people(groups)} can, and {who.name} is {'an' if who.role[0] in 'aeiou' else 'a'} {who.role}"
    if who.role == "viewer":
        why = "a viewer only looks"
    elif answers:
        why = "only people answer"
    return NotAllowed(f"{who.name} cannot {verb.replace('_', ' ')}", reason=why)


def wrong_actor(d: Draft, verb: str, groups: frozenset[str]) -> NotAllowed:
    """This state does not allow the verb to this role."""
    return NotAllowed(f"{d.action.who.name} cannot {verb} {d.key}", reason=f"only {_people(groups)} can, while it is '{d.state}'")


def _people(groups: frozenset[str]) -> str:
    words = {"human": "people", "admin": "an admin", "holder": "the claim's holder", "system": "the system", "any": "anybody"}
    return " or ".join(words[group] for group in ("holder", "human", "admin", "any", "system") if group in groups)


def illegal(d: Draft, verb: str) -> IllegalMove:
    held = verb == "claim" and d.get("holder")
    return IllegalMove(
        f"Cannot {verb.replace('_', ' ')} {d.key}: it is '{d.state}'",
        reason=f"{d.get('holder')} holds it until {when(d.get('lease_expires_at'))}" if held else "",
        hint=_valid(d),
    )


def _valid(d: Draft) -> str:
    return f"Valid from '{d.state}': {', '.join(valid_from(d.state)) or 'nothing'}"


# --- claims ---------------------------------------------------------------------------------------------------------


def not_holder(d: Draft, verb: str) -> ClaimLost:
    """The move is for the holder of the claim, and no claim was presented."""
    other = " or --worker-id" if d.action.who.direct else ", or claim"
    return ClaimLost(
        f"Cannot {verb} {d.key}",
        reason=f"{d.get('holder')} holds the claim" if d.get("holder") else "you hold no claim on it",
        hint=f"Prove yours with its token: --claim TOKEN, YOURTURN_CLAIM{other}.",
    )


def claim_lost(task: Task, d: Draft, alive: bool) -> ClaimLost:
    """The presented claim is not the current one. `alive`: there is a current one."""
    claimable = (task.state, "claim") in TRANSITIONS
    if task.epoch == 0:
        why = f"it was never claimed; it is '{task.state}'"
        return ClaimLost(
            f"Cannot {d.action.verb} {task.key}", reason=why, hint=f"Take it: turn claim {task.key}" if claimable else _valid(d)
        )
    again = "Whatever you did since is yours alone: claim the task again, or leave it."
    return ClaimLost(
        f"Cannot {d.action.verb} {task.key}: the claim is lost",
        reason=f"{task.holder} holds it now (epoch {task.epoch})" if alive else _how_it_ended(task, d),
        hint=again if alive or claimable else _valid(d),
    )


def _how_it_ended(task: Task, d: Draft) -> str:
    """Why the last claim is over, as far as the task's row tells."""
    state = f"it is '{task.state}'"
    if task.holder is not None:
        return f"the lease of {task.holder} ran out at {when(task.lease_expires_at or 0)} (epoch {task.epoch}); {state}"
    if task.ended_at is not None:
        why = f": {task.reason[:200]}" if task.reason else ""
        return f"{state} since {when(task.ended_at)}{why}"
    asked = [q.name for q in d.case.pending() if q.blocking]
    if asked:
        return f"it was given up (epoch {task.epoch}), and a person is asked now ({', '.join(asked[:8])}); {state}"
    if (task.state, "accept") in TRANSITIONS:
        return f"the work is finished and waits for a person's yes; {state}"
    return f"it was given back, or its lease ran out (epoch {task.epoch}; turn log {task.key} says which); {state}"


# --- questions ------------------------------------------------------------------------------------------------------


def already_closed(verb: str, key: str, q: Question, answers: bool) -> AlreadyClosed:
    """The first answer wins. The error has its author, time and words. `answers`: the refused verb is an answer."""
    at = when(q.responded_at or 0)
    if q.status == ANSWERED:
        message = f"{q.responded_by} {_in_words(q)} at {at}"
    elif q.status == TIMEOUT:
        message = f"it timed out at {at} ({q.close_reason})"
    else:
        message = f"it was cancelled by {q.responded_by} at {at} ({q.close_reason})"
    keep = f'Keep yours with: turn note {key} "…", or: turn respond {q.name} "…" --restart'
    return AlreadyClosed(f"Cannot {verb} {q.name}: {message}", hint=keep if answers else f"See: turn show {q.name}")


def _in_words(q: Question) -> str:
    """An answer as its person saw it: 'said no', 'rejected it “softer”', 'answered “JWT”'."""
    response = json.loads(q.response or "{}")
    value, text = response.get("value"), response.get("text") or ""
    if response.get("verdict") == REJECTED:
        verb, words = "rejected it", text
    elif isinstance(value, dict):
        verb, words = "said yes, with changes", text
    elif isinstance(value, bool):
        verb, words = f"said {answered(value)}", text
    else:
        verb, words = "answered", text or answered(value, json.loads(q.options))
    words = words if len(words) <= 80 else words[:79] + "…"
    return f"{verb} “{words}”" if words else verb

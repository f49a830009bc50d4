"""Choices that act: what an option of the system's own questions does. `CHOICES` in rules.py says which reason offers which.

Each returns an outcome (`cancelled`, or `human`: the task stays a person's turn), or "" for that of the kind.
"""

from __future__ import annotations

import json

from .decision_builder import Draft
from .model import FAILED, READY, SYSTEM, Action, Question, Ref
from .outcomes import open_question


def try_dependency_again(d: Draft, q: Question) -> str:
    """The task that failed is open again, and this one waits for it."""
    for ref in _failed(d, q):
        d.after.append(Action("reopen", SYSTEM, {}, ref.id))
        d.needs = [other._replace(state=READY) if other.id == ref.id else other for other in d.needs]
    return ""


def drop_dependency(d: Draft, q: Question) -> str:
    refs = _failed(d, q)
    d.needs = [ref for ref in d.needs if ref not in refs]
    d.needs_removed += [(d.id, ref.id) for ref in refs]
    return ""


def abandon(d: Draft, q: Question) -> str:
    return "cancelled"


def go_on(d: Draft, q: Question) -> str:
    return ""


def hand_to_person(d: Draft, q: Question) -> str:
    """Agents did not get it done, so a person does."""
    open_question(d, {"kind": "work"})
    return "human"


def _failed(d: Draft, q: Question) -> list[Ref]:
    """The dependency that the question is about, as long as it has failed and is waited for."""
    name = json.loads(q.metadata or "{}").get("failed")
    return [ref for ref in d.needs if ref.key == name and ref.state == FAILED]

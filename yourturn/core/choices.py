"""Effects of the options that the system offers in its own questions. `CHOICES` in rules.py maps reasons to options.

Each function returns an outcome (`cancelled`, or `human`: the task stays with a person), or "" for the outcome of the kind.
"""

from __future__ import annotations

import json

from .decision_builder import Draft
from .model import FAILED, READY, SYSTEM, Action, Question, Ref
from .outcomes import open_question


def try_dependency_again(d: Draft, q: Question) -> str:
    """Reopen the failed dependency and wait for it again."""
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
    """Ask a person to do the work."""
    open_question(d, {"kind": "work"})
    return "human"


def _failed(d: Draft, q: Question) -> list[Ref]:
    """The dependency that the question is about, if it is still failed and still a dependency."""
    name = json.loads(q.metadata or "{}").get("failed")
    return [ref for ref in d.needs if ref.key == name and ref.state == FAILED]


EFFECTS = {effect.__name__: effect for effect in (try_dependency_again, drop_dependency, abandon, go_on, hand_to_person)}

"""Previews of the answers to a question: each is tried with `decide`, and nothing is written.

So a button or a hint announces exactly what will happen, also with two open questions, a held claim, or in a run.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from .actions import say
from .answers import ANSWERS, CANCELS, Way
from .decide import decide, due
from .errors import YourturnError
from .model import CANCELLED, PENDING, Case, Question, Who
from .rules import CHOICES


class Effect(NamedTuple):
    """One possible answer, and the task after it."""

    way: Way
    option: Any  #: the chosen option, or None
    state: str
    holder: str | None  #: the worker whose session continues
    cancels: bool  #: it cancels the task: surfaces ask for confirmation
    waits_for: tuple[str, ...]  #: other open questions or open dependencies


#: The actor of the trial; every actor who may answer gets the same result.
_PERSON = Who("human:preview", "admin", direct=True)


def effects(case: Case, q: Question, now: int) -> list[Effect]:
    """One preview per answer in the order of the table, or one per option where options have effects. A no with the same
    effect as an option is left out."""
    previews: list[Effect] = []
    for way in ANSWERS[q.kind, q.response_type]:
        for option in _options(q) if way.name == "answer" else [None]:
            after = _after(case, q, way, option, now)
            if after is not None:
                previews.append(_effect(way, option, after, q))
    chosen = {e.state for e in previews if e.option is not None and (q.reason or "", str(e.option)) in CHOICES}
    return [e for e in previews if e.way.name != "no" or e.state not in chosen]


def lands(case: Case, now: int, question: int | None, **answer: Any) -> str:
    """The case after this answer; raises what `answer` would raise."""
    assert case.task is not None
    action = say("answer", _PERSON, task=case.task.id, question_id=question, **answer)
    after = _after_due_moves(decide(case, action, now).case, now).task
    assert after is not None
    return after.state


def _options(q: Question) -> list[Any]:
    """Sample values: each option of a choice, otherwise a value that fits the type."""
    if q.response_type == "number":
        return [0]
    return [option["value"] for option in json.loads(q.options)] or ["…"]


def _after(case: Case, q: Question, way: Way, option: Any, now: int) -> Case | None:
    value = [option] if q.multi and option is not None else option if way.name == "answer" else way.value
    try:
        answer = say("answer", _PERSON, task=q.task_id, question_id=q.id, value=value, verdict=way.verdict)
        return _after_due_moves(decide(case, answer, now).case, now)
    except YourturnError:
        return None


def _after_due_moves(case: Case, now: int) -> Case:
    """The case after all due moves of the system."""
    while (action := due(case, now)) is not None:
        case = decide(case, action, now).case
    return case


def _effect(way: Way, option: Any, case: Case, q: Question) -> Effect:
    task = case.task
    assert task is not None
    if way.label == CANCELS and task.state != CANCELLED:  # a non-blocking question: a no cancels nothing
        way = way._replace(label="No")
    others = tuple(o.name for o in case.questions if o.status == PENDING and o.blocking and o.id > 0 and o.id != q.id)
    return Effect(way, option, task.state, task.holder, task.state == CANCELLED, others or tuple(ref.key for ref in case.needs))


"""Where each answer to a question would lead: `decide` is asked, on trial. Nothing is written.

So what a button or a hint announces is what happens, also with two open questions, a held claim, or in a workflow.
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
    """One way to answer, and the task as it would be then."""

    way: Way
    option: Any  #: the option that is chosen, or None
    state: str
    holder: str | None  #: the worker whose session goes on with it
    cancels: bool  #: it ends the task, and nobody goes on with it: a person is asked once more
    waits_for: tuple[str, ...]  #: other questions that keep it a person's turn, or tasks that it waits for


#: Whoever may answer, it leads to the same.
_PERSON = Who("human:preview", "admin", direct=True)


def effects(case: Case, q: Question, now: int) -> list[Effect]:
    """In the order of the table; of a question whose options act, one for each of them. A no that does what an option does
    already is left out."""
    found: list[Effect] = []
    for way in ANSWERS[q.kind, q.response_type]:
        for option in _options(q) if way.name == "answer" else [None]:
            after = _after(case, q, way, option, now)
            if after is not None:
                found.append(_effect(way, option, after, q))
    chosen = {e.state for e in found if e.option is not None and (q.reason or "", str(e.option)) in CHOICES}
    return [e for e in found if e.way.name != "no" or e.state not in chosen]


def lands(case: Case, now: int, question: int | None, **answer: Any) -> str:
    """The state to which this answer would lead; raises what `answer` would."""
    assert case.task is not None
    after = _paid(decide(case, say("answer", _PERSON, task=case.task.id, question_id=question, **answer), now).case, now).task
    assert after is not None
    return after.state


def _options(q: Question) -> list[Any]:
    """What a person could give: each option of a choice, else some value that fits."""
    if q.response_type == "number":
        return [0]
    return [option["value"] for option in json.loads(q.options)] or ["…"]


def _after(case: Case, q: Question, way: Way, option: Any, now: int) -> Case | None:
    value = [option] if q.multi and option is not None else option if way.name == "answer" else way.value
    try:
        answer = say("answer", _PERSON, task=q.task_id, question_id=q.id, value=value, verdict=way.verdict)
        return _paid(decide(case, answer, now).case, now)
    except YourturnError:
        return None


def _paid(case: Case, now: int) -> Case:
    """With the moves that the system makes right after it."""
    while (owed := due(case, now)) is not None:
        case = decide(case, owed, now).case
    return case


def _effect(way: Way, option: Any, case: Case, q: Question) -> Effect:
    task = case.task
    assert task is not None
    if way.label == CANCELS and task.state != CANCELLED:  # nothing waits for it: the no is heard, and ends nothing
        way = way._replace(label="No")
    others = tuple(o.name for o in case.questions if o.status == PENDING and o.blocking and o.id > 0 and o.id != q.id)
    return Effect(way, option, task.state, task.holder, task.state == CANCELLED, others or tuple(ref.key for ref in case.needs))


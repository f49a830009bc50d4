"""The moves that a person could make on a task now. `decide` is tried for each verb; this module has no list of its own."""

from __future__ import annotations

from .actions import VERBS, say
from .decide import decide
from .errors import YourturnError
from .model import Case, Question, Who
from .rules import TRANSITIONS

#: The roles that the rules treat as a person.
_PEOPLE = frozenset({"human", "admin"})
#: Verbs about a question: pages show their own buttons for them.
_ANSWERING = frozenset({"answer", "withdraw", "assign"})


def restarts(case: Case, question: Question, who: Who, now: int) -> bool:
    """True if a late answer by `who` to this closed question would reopen its ended task."""
    task = case.task
    assert task is not None
    late = say("answer", who, task=task.id, question_id=question.id, text="late", restart=True)
    try:
        decision = decide(case._replace(questions=(*case.questions, question)), late, now)
    except YourturnError:
        return False
    return decision.task.state != task.state


def moves(case: Case, who: Who, now: int) -> list[str]:
    """Verbs without required arguments that would move the task, in the order of the rules."""
    task = case.task
    assert task is not None
    verbs = []
    for (state, verb), rule in TRANSITIONS.items():
        if state != task.state or not rule.who & _PEOPLE or rule.to == (state,) or verb in _ANSWERING or VERBS[verb].required:
            continue
        try:
            decide(case, say(verb, who, task=task.id), now)
        except YourturnError:
            continue
        verbs.append(verb)
    return verbs

"""decide(case, action, now) -> Decision: applies the rules to one case. Pure.

Checks run in the order in which errors help most: may this role use the verb at all, is the presented claim valid, is the
move legal from this state, may this actor make it here, does a guard object. Only then the effect runs on a draft. The
draft becomes a Decision; an error leaves nothing behind. refusals.py has the texts of the errors.

`due(case, now)` returns the next move, if any, that the system has to make for a case: an expired lease, a timeout, a
follow-up. Reconciliation, follow-ups and reads all use it, so a lease expires for all readers at the same moment.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from . import claims, creation, effects, guards, journal, outcomes, refusals
from .canonical_json import claim_hash, secret_hash
from .decision_builder import Draft
from .errors import Changed, Invalid, NotAllowed
from .guards import no_open_need, refused, too_large
from .model import (
    APPROVED,
    BLOCKED,
    DEFERRED,
    DEPENDENCY_FAILED,
    FAILED,
    FINISHED,
    HUMAN,
    PENDING,
    READY,
    REJECTED,
    RETRY_EXHAUSTED,
    REVIEW,
    SYSTEM,
    Action,
    Case,
    Decision,
    Question,
    Task,
    Who,
    altered,
)
from .outcomes import AT_ONCE
from .rules import ALIASES, RESTARTS, ROLES, TRANSITIONS, Rule, choice_of

_RULES = (*TRANSITIONS.values(), *RESTARTS.values())


def _named(name: str, *modules: ModuleType) -> Callable[[Draft], Any]:
    for module in modules:
        if name in vars(module):
            return vars(module)[name]  # type: ignore[no-any-return]
    raise AttributeError(f"the table of rules names {name!r}, and no module has a function of that name")


#: The functions behind the names in the table. A name without a function fails here, when the package is imported.
GUARDS: dict[str, Callable[[Draft], str]] = {name: _named(name, guards) for rule in _RULES for name in rule.guards}
EFFECTS: dict[str, Callable[[Draft], None]] = {
    rule.effect: _named(rule.effect, creation, claims, journal, outcomes, effects) for rule in _RULES
}

#: verb -> all groups that some row of the table names.
_GROUPS: dict[str, frozenset[str]] = {}
for (_, _verb), _rule in TRANSITIONS.items():
    _GROUPS[_verb] = _GROUPS.get(_verb, frozenset()) | _rule.who

#: (verb, role) pairs that are allowed in at least one state.
_MAY = {(verb, role) for role, names in ROLES.items() for verb, groups in _GROUPS.items() if groups & names}

_VERDICT = {"approve": APPROVED, "accept": APPROVED, "reject": REJECTED}
_VERB_OF = {alias: verb for (alias, _), verb in ALIASES.items()}
_ANSWERS = ("answer", *_VERDICT)
_TO_A_QUESTION = ("answer", "timeout", "withdraw", "assign")
_ABOUT_A_QUESTION = (*_ANSWERS, *_TO_A_QUESTION)


def may_ever(verb: str, who: Who) -> None:
    """Refuse a verb that the role may use in no state. Runs before anything is loaded."""
    own = verb if who.role == "system" and verb in _GROUPS else _VERB_OF.get(verb, verb)
    if (own, who.role) not in _MAY:
        raise refusals.wrong_role(verb, who, _GROUPS[own], verb in _ANSWERS)


def decide(case: Case, action: Action, now: int) -> Decision:
    task = case.task
    now = max(now, task.updated_at if task else 0, case.project.fenced_at or 0)  # decisions never go back in time
    d = Draft(case, action, now)
    may_ever(action.verb, action.who)
    if action.version is not None and task is not None and task.version != action.version:
        raise Changed(
            f"{task.key} has changed",
            reason=f"it is at version {task.version}, not {action.version}",
            hint="Look again, then decide.",
        )
    d.holds_claim = task is not None and _proof(task, d)
    about = action.verb in _ABOUT_A_QUESTION and (action.question is not None or action.who.role != "system")
    verb = _table_verb(d) if about else action.verb
    if verb == "use":
        d.question = next((q for q in d.questions if q.id == action.question), None)
    elif d.question is not None and d.question.status != PENDING:
        return _too_late(d)
    rule = TRANSITIONS.get((task.state if task else None, verb))
    if rule is None and verb == "claim" and d.needs:
        raise refused(f"Cannot claim {d.key}", no_open_need, d)
    if rule is None:
        raise refusals.illegal(d, action.verb)
    _may(d, rule, action.verb)
    _apply(d, rule, action.verb)
    return _decision(d)


def _table_verb(d: Draft) -> str:
    """The verb of the table for an alias that people use about a question. Sets the question on the draft."""
    alias = d.action.verb
    verb = ALIASES.get((alias, d.state), alias)
    if verb not in _TO_A_QUESTION:
        return verb
    d.question = _find_question(d)
    if alias in _VERDICT:
        d.args = {**d.args, "verdict": _VERDICT[alias], "text": d.args.get("reason") or d.args.get("text")}
    return verb


def _may(d: Draft, rule: Rule, verb: str) -> None:
    allowed = rule.who & ROLES[d.action.who.role]
    if allowed == {"holder"} and not d.holds_claim:
        raise refusals.not_holder(d, verb)
    if not allowed:
        raise refusals.wrong_actor(d, verb, rule.who)


def _apply(d: Draft, rule: Rule, verb: str) -> None:
    for name in rule.guards:
        guard = GUARDS[name]
        if guard(d):
            what = d.key if d.case.task else d.args.get("title")
            raise refused(f"Cannot {verb.replace('_', ' ')} {what}", guard, d)
    EFFECTS[rule.effect](d)
    assert d.state in rule.to, f"{verb} landed in {d.state}, not in {rule.to}"


def _proof(task: Task, d: Draft) -> bool:
    """True if the actor holds the claim. A presented claim is always verified."""
    if d.action.verb == "claim":
        return False
    token, worker, who = d.args.get("claim"), d.args.get("worker"), d.action.who
    alive = task.holder is not None and task.lease_expires_at is not None and task.lease_expires_at > d.now
    if token is not None:
        d.script = bool(alive and task.workflow and claim_hash(token, run=True) == task.claim_hash)
        if alive and (d.script or secret_hash(token) == task.claim_hash) and worker in (None, task.holder):
            return True
    elif worker is not None:
        if not who.direct:
            raise NotAllowed(
                f"Cannot {d.action.verb} {task.key}", reason="a worker's name is no proof here; show the claim's token"
            )
        if alive and worker == task.holder:
            return True
    else:
        return alive and who.direct and who.is_person and who.name == task.claimed_by
    raise refusals.claim_lost(task, d, alive)


def holds(task: Task, token: str, now: int) -> bool:
    """True if this is the token of the current claim."""
    hashes = (secret_hash(token), claim_hash(token, run=True)) if task.workflow else (secret_hash(token),)
    return task.claim_hash in hashes and (task.lease_expires_at or 0) > now


def held_last(task: Task, token: str, who: Who) -> bool:
    """True if this was the last claim and no other followed. Its hash is cleared; direct database users are trusted."""
    return who.direct and task.holder is None and token.startswith(f"{task.key}.{task.epoch}.")


def _find_question(d: Draft) -> Question | None:
    """The named question, or the open question of the task."""
    if d.action.question is not None:
        return next((q for q in d.questions if q.id == d.action.question), None)
    pending = d.case.pending()
    if len(pending) > 1:
        pending = [q for q in pending if q.blocking] or pending
    if len(pending) > 1:
        names = ", ".join(f"{q.name} ({q.kind})" for q in pending[:8])
        raise Invalid(
            f"{d.key} has {len(pending)} open questions",
            reason=names,
            hint=f"Name one: turn {d.action.verb.replace('_', '-')} {pending[0].name} …",
        )
    if pending:
        return pending[0]
    return d.questions[-1] if d.questions else None


def _too_late(d: Draft) -> Decision:
    """The first answer wins. Only `restart` keeps a late answer, and reopens a task that has ended."""
    q = d.question
    assert q is not None and d.case.task is not None
    if d.action.verb in _ANSWERS and d.args.get("restart"):
        effects.late_answer(d)
        rule = RESTARTS.get(d.case.task.state)
        if rule is not None:
            _may(d, rule, "reopen")
            _apply(d, rule, "reopen")
            d.action = d.action._replace(verb="reopen")
        return _decision(d)
    raise refusals.already_closed(d.action.verb, d.case.task.key, q, d.action.verb in _ANSWERS)


def _decision(d: Draft) -> Decision:
    task, changed = d.case.task, d.set
    due_at = _soonest(d.questions, d.get("lease_expires_at"), d.get("wake_at"))
    if task is not None:
        changed = {name: value for name, value in changed.items() if getattr(task, name) != value}
        if due_at != task.due_at:
            changed["due_at"] = due_at
    else:
        changed["due_at"] = due_at
    if not d.silent:
        changed["updated_at"] = d.now
    if task is not None and task.state == d.state == HUMAN and (d.opened or d.closed):
        was, asks = awaited(d.case.questions), awaited(d.questions)
        if was != asks:  # not visible in the state
            d.data["awaiting"] = {"from": was, "to": asks}
    action = d.action if d.args is d.action.args else d.action._replace(args=d.args)
    decision = Decision(d.case, action, altered(task, changed) if task is not None else Task(**changed), d.now, changed)
    decision.questions = tuple(d.questions)
    decision.needs = tuple(d.needs)
    decision.opened = tuple(d.opened)
    decision.closed = tuple(d.closed)
    decision.notes = tuple(d.notes)
    decision.needs_added = tuple(d.needs_added)
    decision.needs_removed = tuple(d.needs_removed)
    decision.after = tuple(d.after)
    decision.touch = tuple(d.touch)
    decision.data = d.data
    decision.claim = d.claim
    decision.used = d.used
    decision.silent = d.silent
    decision.steps = tuple(d.steps)
    decision.program = d.program
    decision.rewound = d.rewound
    return decision


def awaited(questions: Iterable[Question]) -> str | None:
    """The kind of the oldest open blocking question."""
    return next((q.kind for q in questions if q.status == PENDING and q.blocking), None)


def next_due(task: Task, questions: Iterable[Question]) -> int | None:
    """The next time at which `due` can return a move for this task."""
    unasked = task.state == REVIEW and not any(q.status == PENDING and q.reason == FINISHED for q in questions)
    return _soonest(questions, task.lease_expires_at, task.wake_at, task.updated_at if unasked else None)


def _soonest(questions: Iterable[Question], *moments: int | None) -> int | None:
    asked = [q.timeout_at for q in questions if q.timeout_at and q.status == PENDING and q.on_timeout != "keep"]
    return min([*asked, *[at for at in moments if at is not None]], default=None)


def due(case: Case, now: int) -> Action | None:
    """The move that the system has to make for this case now, or None."""
    task = case.task
    assert task is not None
    if task.lease_expires_at is not None and task.lease_expires_at <= now:
        return Action("expire", SYSTEM, {}, task.id)
    for q in case.questions:
        if q.status == PENDING and q.timeout_at is not None and q.timeout_at <= now and q.on_timeout != "keep":
            return Action("timeout", SYSTEM, {}, task.id, q.id)
    if task.state == DEFERRED and task.wake_at is not None and task.wake_at <= now:
        return Action("wake", SYSTEM, {}, task.id)
    if task.state == REVIEW and not case.children and not any(q.reason == FINISHED for q in case.pending()):
        verb, args = ("accept", {}) if case.project.settings["review"] == AT_ONCE else ("ask", {"reason": FINISHED})
        return Action(verb, SYSTEM, args, task.id)
    if task.state == HUMAN and (gone := _without_cause(case, task)) is not None:
        return gone
    if task.state == READY and case.needs:
        return Action("block", SYSTEM, {}, task.id)
    if task.state == READY and too_large(task.complexity, case.has_children):
        return Action("unvet", SYSTEM, {}, task.id)
    if task.state == BLOCKED:
        return _due_when_blocked(case, task)
    return None


def _due_when_blocked(case: Case, task: Task) -> Action | None:
    if not case.needs:
        return Action("parent" if task.type == "epic" and case.is_parent else "unblock", SYSTEM, {}, task.id)
    for ref in case.needs:
        if ref.state == FAILED:
            why = f": {ref.reason}" if ref.reason else ""
            text = f"{ref.key}, which {task.key} waits for, failed{why}. How should {task.key} go on?"
            return Action("flag", SYSTEM, choice_of(DEPENDENCY_FAILED, text, task=task.key, failed=ref.key), task.id)
    return None


def _without_cause(case: Case, task: Task) -> Action | None:
    """A question of the system whose cause is gone: the dependency is open, done or removed, or tries are left."""
    needed = {ref.key: ref.state for ref in case.needs}
    for q in case.pending():
        if q.asked_by != SYSTEM.name:
            continue
        about = json.loads(q.metadata or "{}").get("failed") if q.reason == DEPENDENCY_FAILED else None
        if about is not None and needed.get(about) != FAILED:
            why = f"{about} is open again" if about in needed else f"{task.key} no longer waits for {about}"
        elif q.reason == RETRY_EXHAUSTED and task.retry_count < task.max_retries:
            why = "it has tries left again"
        else:
            continue
        return Action("withdraw", SYSTEM, {"reason": why}, task.id, q.id)
    return None

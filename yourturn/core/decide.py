"""decide(case, action, now) -> Decision: applies the rules to one case. Pure.

Checks run in the order in which errors help most: may this role use the verb at all, is the presented claim valid, is the
move legal from this state, may this actor make it here, does a guard object. Only then the effect runs on a draft. The
draft becomes a Decision; an error leaves nothing behind.

`due(case, now)` returns the next move, if any, that the system has to make for a case: an expired lease, a timeout, a
follow-up. The clock, follow-ups and reads all use it, so a lease expires for all readers at the same moment.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from . import claims, creation, effects, guards, journal, outcomes
from .canonical_json import claim_hash, secret_hash
from .decision_builder import Draft
from .errors import AlreadyClosed, Changed, ClaimLost, IllegalMove, Invalid, NotAllowed
from .field_text import answered
from .guards import no_open_need, refused, too_large
from .model import (
    ANSWERED,
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
    TIMEOUT,
    Action,
    Case,
    Decision,
    Question,
    Task,
    Who,
    altered,
)
from .outcomes import AT_ONCE
from .rules import MEANS, RESTARTS, ROLES, TRANSITIONS, Rule, choice_of, valid_from
from .time_format import when

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
_EVER: dict[str, frozenset[str]] = {}
for (_, _verb), _rule in TRANSITIONS.items():
    _EVER[_verb] = _EVER.get(_verb, frozenset()) | _rule.who

#: (verb, role) pairs that are allowed in at least one state.
_MAY = {(verb, role) for role, names in ROLES.items() for verb, named in _EVER.items() if named & names}

_VERDICT = {"approve": APPROVED, "accept": APPROVED, "reject": REJECTED}
_MEANT = {word: verb for (word, _), verb in MEANS.items()}
_ANSWERS = ("answer", *_VERDICT)
_TO_A_QUESTION = ("answer", "timeout", "withdraw", "assign")
_ABOUT_A_QUESTION = (*_ANSWERS, *_TO_A_QUESTION)


def may_ever(verb: str, who: Who) -> None:
    """Refuse a verb that the role may use in no state. Runs before anything is loaded."""
    meant = verb if who.role == "system" and verb in _EVER else _MEANT.get(verb, verb)
    if (meant, who.role) not in _MAY:
        named = _EVER[meant]
        people = f"only {_people(named)} can, and {who.name} is {'an' if who.role[0] in 'aeiou' else 'a'} {who.role}"
        if who.role == "viewer":
            people = "a viewer only looks"
        elif verb in _ANSWERS:
            people = "only people answer"
        raise NotAllowed(f"{who.name} cannot {verb.replace('_', ' ')}", reason=people)


def _people(named: frozenset[str]) -> str:
    words = {"human": "people", "admin": "an admin", "holder": "the claim's holder", "system": "the system", "any": "anybody"}
    return " or ".join(words[w] for w in ("holder", "human", "admin", "any", "system") if w in named)


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
    verb = _meant(d) if about else action.verb
    if verb == "use":
        d.question = next((q for q in d.questions if q.id == action.question), None)
    elif d.question is not None and d.question.status != PENDING:
        return _too_late(d)
    rule = TRANSITIONS.get((task.state if task else None, verb))
    if rule is None and verb == "claim" and d.needs:
        raise refused(f"Cannot claim {d.key}", no_open_need, d)
    if rule is None:
        raise _illegal(d, action.verb)
    _may(d, rule, action.verb)
    _apply(d, rule, action.verb)
    return _decision(d)


def _meant(d: Draft) -> str:
    """The verb of the table for a word about a question. Sets the question on the draft."""
    spoken = d.action.verb
    verb = MEANS.get((spoken, d.state), spoken)
    if verb not in _TO_A_QUESTION:
        return verb
    d.question = _find_question(d)
    if spoken in _VERDICT:
        d.args = {**d.args, "verdict": _VERDICT[spoken], "text": d.args.get("reason") or d.args.get("text")}
    return verb


def _illegal(d: Draft, verb: str) -> IllegalMove:
    held = verb == "claim" and d.get("holder")
    return IllegalMove(
        f"Cannot {verb.replace('_', ' ')} {d.key}: it is '{d.state}'",
        reason=f"{d.get('holder')} holds it until {when(d.get('lease_expires_at'))}" if held else "",
        hint=_valid(d),
    )


def _valid(d: Draft) -> str:
    return f"Valid from '{d.state}': {', '.join(valid_from(d.state)) or 'nothing'}"


def _may(d: Draft, rule: Rule, verb: str) -> None:
    who = d.action.who
    allowed = rule.who & ROLES[who.role]
    if allowed == {"holder"} and not d.holds_claim:
        raise ClaimLost(
            f"Cannot {verb} {d.key}",
            reason=f"{d.get('holder')} holds the claim" if d.get("holder") else "you hold no claim on it",
            hint=f"Prove yours with its token: --claim TOKEN, YOURTURN_CLAIM{' or --worker-id' if who.direct else ', or claim'}.",
        )
    if not allowed:
        raise NotAllowed(f"{who.name} cannot {verb} {d.key}", reason=f"only {_people(rule.who)} can, while it is '{d.state}'")


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
    claimable = (task.state, "claim") in TRANSITIONS
    if task.epoch == 0:
        why = f"it was never claimed; it is '{task.state}'"
        hint = f"Take it: turn claim {task.key}" if claimable else _valid(d)
        raise ClaimLost(f"Cannot {d.action.verb} {task.key}", reason=why, hint=hint)
    again = "Whatever you did since is yours alone: claim the task again, or leave it."
    raise ClaimLost(
        f"Cannot {d.action.verb} {task.key}: the claim is lost",
        reason=f"{task.holder} holds it now (epoch {task.epoch})" if alive else _how_it_ended(task, d),
        hint=again if alive or claimable else _valid(d),
    )


def _how_it_ended(task: Task, d: Draft) -> str:
    """Why the last claim of a task is over, as far as its row tells."""
    was = f"it is '{task.state}'"
    if task.holder is not None:
        return f"the lease of {task.holder} ran out at {when(task.lease_expires_at or 0)} (epoch {task.epoch}); {was}"
    if task.ended_at is not None:
        why = f": {task.reason[:200]}" if task.reason else ""
        return f"{was} since {when(task.ended_at)}{why}"
    asked = [q.name for q in d.case.pending() if q.blocking]
    if asked:
        return f"it was given up (epoch {task.epoch}), and a person is asked now ({', '.join(asked[:8])}); {was}"
    if (task.state, "accept") in TRANSITIONS:
        return f"the work is finished and waits for a person's yes; {was}"
    return f"it was given back, or its lease ran out (epoch {task.epoch}; turn log {task.key} says which); {was}"


def holds(task: Task, token: str, now: int) -> bool:
    """True if this is the token of the current claim."""
    known = (secret_hash(token), claim_hash(token, run=True)) if task.workflow else (secret_hash(token),)
    return task.claim_hash in known and (task.lease_expires_at or 0) > now


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
    """The first answer wins; the error says who answered, when and how. Only `restart` keeps a late answer."""
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
    at = when(q.responded_at or 0)
    key = d.case.task.key
    if q.status == ANSWERED:
        message = f"{q.responded_by} {_in_words(q)} at {at}"
    elif q.status == TIMEOUT:
        message = f"it timed out at {at} ({q.close_reason})"
    else:
        message = f"it was cancelled by {q.responded_by} at {at} ({q.close_reason})"
    kept = f'Keep yours with: turn note {key} "…", or: turn respond {q.name} "…" --restart'
    raise AlreadyClosed(
        f"Cannot {d.action.verb} {q.name}: {message}", hint=kept if d.action.verb in _ANSWERS else f"See: turn show {q.name}"
    )


def _in_words(q: Question) -> str:
    """An answer as its person saw it: 'said no', 'rejected it “softer”', 'answered “JWT”'."""
    response = json.loads(q.response or "{}")
    value, text = response.get("value"), response.get("text") or ""
    if response.get("verdict") == REJECTED:
        how, said = "rejected it", text
    elif isinstance(value, dict):
        how, said = "said yes, with changes", text
    elif isinstance(value, bool):
        how, said = f"said {answered(value)}", text
    else:
        how, said = "answered", text or answered(value, json.loads(q.options))
    said = said if len(said) <= 80 else said[:79] + "…"
    return f"{how} “{said}”" if said else how


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
    found = Decision(d.case, action, altered(task, changed) if task is not None else Task(**changed), d.now, changed)
    found.questions = tuple(d.questions)
    found.needs = tuple(d.needs)
    found.opened = tuple(d.opened)
    found.closed = tuple(d.closed)
    found.notes = tuple(d.notes)
    found.needs_added = tuple(d.needs_added)
    found.needs_removed = tuple(d.needs_removed)
    found.after = tuple(d.after)
    found.touch = tuple(d.touch)
    found.data = d.data
    found.claim = d.claim
    found.used = d.used
    found.silent = d.silent
    found.steps = tuple(d.steps)
    found.program = d.program
    found.rewound = d.rewound
    return found


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
        return _owed_when_blocked(case, task)
    return None


def _owed_when_blocked(case: Case, task: Task) -> Action | None:
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

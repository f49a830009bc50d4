"""Effects of moves. Each writes fields, questions, notes and follow-up moves to a draft."""

from __future__ import annotations

import json
from typing import Any

from . import choices
from .decision_builder import Draft
from .errors import Invalid, Precondition
from .field_text import account as account_text
from .guards import may_lift, takes_off
from .journal import settle, write
from .model import (
    ANSWERED,
    APPROVED,
    BLOCKED,
    CANCELLED,
    CREATED,
    DEFERRED,
    DONE,
    FAILED,
    FINISHED,
    HUMAN,
    PENDING,
    READY,
    REJECTED,
    RESOLVED,
    SYSTEM,
    TIMEOUT,
    WITHDRAWN,
    Action,
    Note,
    Question,
)
from .outcomes import account, close, drop_claim, end, finished, leave_human, open_question, review, to_ready
from .questions import fit
from .rules import CHOICES
from .rules import outcome as outcome_of
from .task_fields import encoded

# --- questions ------------------------------------------------------------------------------------------------------


def ask(d: Draft) -> None:
    """A question of the claim's holder keeps the claim; a blocking question of another actor drops it."""
    if d.args.get("reason") == FINISHED:
        open_question(d, finished(d))
        return
    open_question(d, d.args, tool=True)
    if d.opened[0].blocking and not d.holds_claim:
        drop_claim(d)


def flag(d: Draft) -> None:
    write(d)
    if d.args.get("once") and any(q.kind == d.args.get("kind") for q in d.waiting()):
        update(d)
        d.silent = not (d.steps or d.program or d.args.get("fields"))  # the task waits for that person already
        return
    if d.args.get("replace"):
        _replace(d)
    update(d)
    also = d.args.get("also", ())
    group = d.args.get("group") or (f"{d.key}/{d.get('event_count') + 1}" if also else None)
    shared: dict[str, object] = {name: d.args[name] for name in ("step", "steps") if name in d.args}
    for question in (d.args, *also):
        open_question(d, {**shared, **question, "group": group})
    if not (d.args.get("hold") and d.holds_claim):
        drop_claim(d)


def _replace(d: Draft) -> None:
    """The new question replaces those that its asker may withdraw; others stay open."""
    for old in d.waiting():
        if takes_off(d, old):
            close(d, old, WITHDRAWN, why=f"replaced by a question of kind {d.args.get('kind') or 'input'}")


def answer(d: Draft) -> None:
    q = d.question
    assert q is not None
    verdict, response = fit(q, d.args)
    if settle(d):
        return
    outcome = outcome_of(q.kind, verdict, bool(q.blocking), bool(d.get("workflow")))
    if outcome == "refused":
        raise Precondition(
            f"Cannot reject {q.name}",
            reason=f"it asks a person to do {d.key} themselves",
            hint=f"Hand it back to agents with: turn update {d.key} --awaiting=null, or end it with: turn cancel {d.key}",
        )
    close(d, q, ANSWERED, response=response)
    d.data["verdict"] = verdict
    if verdict == REJECTED and str(response["text"]).strip():
        d.notes.append(Note(d.action.who.name, str(response["text"]), d.now))
    if not q.blocking:
        return
    d.put(retry_count=0, reason="")
    offered = q.asked_by == SYSTEM.name and q.response_type == "choice" and verdict == APPROVED  # schema 5 had no options
    choice = CHOICES.get((q.reason or "", str(response["value"]))) if offered else None
    if choice is not None:
        outcome = choices.EFFECTS[choice.effect](d, q) or outcome
    if outcome == "human":
        return
    if outcome == "cancelled":
        may_lift(d)
        end(d, CANCELLED, f"{d.key} was cancelled by the answer to {q.name}")
        chosen = "rejected" if verdict == REJECTED else f"answered: {response['value']}"
        d.put(reason=str(response["text"]) or f"{q.name} was {chosen}")
    elif q.reason == FINISHED and verdict == REJECTED:
        _sent_back(d, str(response["text"]))
    else:
        leave_human(d, outcome)
        if q.reason == FINISHED and d.state == DONE:
            d.put(reason=str(response["text"]))


def _sent_back(d: Draft, why: str) -> None:
    """Finished work was rejected: an agent works on it again; for a container a person says what is missing."""
    if d.state == HUMAN:
        d.put(return_state=READY)
    leave_human(d, "back")
    if d.case.is_parent:
        if d.state != HUMAN:
            d.put(state=READY, return_state=None, outcome=None)
        words = f": {why.strip()}" if why.strip() else ""
        text = f"{d.key} was sent back{words}. Add what is missing as children of {d.key}, then answer."
        open_question(d, {"kind": "escalation", "text": text})


def late_answer(d: Draft) -> None:
    """Keep a late answer as a note that names its question; decide() reopens a task that has ended."""
    q = d.question
    assert q is not None
    words = str(d.args.get("text") or "").strip()
    if d.args.get("value") is not None or d.args.get("verdict"):
        try:
            verdict, response = fit(q, d.args)
        except Invalid as error:
            hint = f'Or keep words only: turn answer {q.name} --text "…" --restart'
            raise Invalid(error.message, reason=error.reason, hint=hint) from None
        words = _answer_in_words(verdict, response)
    if not words:
        raise Invalid(f"A late answer to {q.name} needs words to be kept")
    asked = q.text.strip().partition("\n")[0]
    asked = asked if len(asked) <= 80 else asked[:79] + "…"
    d.notes.append(Note(d.action.who.name, f"Late answer to {q.name} ({asked}): {words}", d.now))


def _answer_in_words(verdict: str, response: dict[str, Any]) -> str:
    value, text = response["value"], str(response["text"]).strip()
    if verdict == REJECTED or value is False:
        first = "no"
    elif value is None or value is True:
        first = "yes"
    else:
        first = value if isinstance(value, str) else json.dumps(value)
    return f"{first}. {text}" if text and text != first else first


def outlived(q: Question, others: list[Question]) -> bool:
    """The timeout of an agent's question does not close questions of people."""
    return q.asked_by.startswith("agent:") and any(other.asked_by.startswith("human:") for other in others)


def time_out(d: Draft) -> None:
    q = d.question
    assert q is not None and q.timeout_at is not None
    how = q.on_timeout
    if how == "default" and q.default_value is None:
        how = "fail"
    d.data["on_timeout"] = how
    if how in ("remind", "escalate"):
        step = q.timeout or d.settings["max_timeout"]
        missed = (d.now - q.timeout_at) // step + 1
        changed = q._replace(timeout_at=q.timeout_at + missed * step)
        if how == "escalate":
            changed = changed._replace(reviewer=d.settings["escalate_to"], urgency="high")
        d.swap(changed)
        return
    response = json.loads(q.default_value) if how == "default" and q.default_value else None
    close(d, q, TIMEOUT, response=response, why=f"no answer: {how}")
    if how == "accept":
        end(d, DONE, f"{d.key} is done")
    elif how == "default":
        leave_human(d, "back")
    elif how == "defer" and d.waiting():
        leave_human(d, "back")  # another question is still open: only this one is closed
    elif how in ("fail", "stuck") and outlived(q, d.waiting()):
        leave_human(d, None)
    elif how == "defer":
        drop_claim(d)
        d.put(state=DEFERRED, return_state=_return_state(d), outcome=None, wake_at=None)
    else:
        end(d, FAILED, f"{d.key} failed when {q.name} timed out")
        d.put(failure="stuck" if how == "stuck" else "timeout", reason=f"no answer to {q.name} in time")


def _return_state(d: Draft) -> str:
    return CREATED if d.get("return_state") == CREATED else READY


def withdraw(d: Draft) -> None:
    q = d.question
    assert q is not None
    close(d, q, WITHDRAWN, why=d.args.get("reason") or "withdrawn")
    if q.blocking:
        leave_human(d, None if d.waiting() else d.get("outcome") or "back")


def hand_back(d: Draft) -> None:
    for q in d.questions:
        if q.status == PENDING and q.reason != FINISHED:
            close(d, q, WITHDRAWN, why="handed back")
    update(d)
    d.put(retry_count=0, reason="", outcome=None)
    leave_human(d, "back")


def use(d: Draft) -> None:
    """Record that a permission is being used. The same call may repeat it, as its reply may have been lost."""
    q = d.question
    assert q is not None
    if q.used_by is not None:
        d.silent = True
        return
    d.used = q._replace(used_by=d.args["by"])
    d.questions = [d.used if other.id == q.id else other for other in d.questions]
    d.data |= {"question": q.name, "used_by": d.args["by"], "digest": d.args["digest"]}


def assign(d: Draft) -> None:
    assert d.question is not None
    d.swap(d.question._replace(reviewer=d.args["reviewer"]))
    d.data["reviewer"] = d.args["reviewer"]


# --- endings --------------------------------------------------------------------------------------------------------


def complete(d: Draft) -> None:
    summary = (d.args.get("summary") or "").strip()
    d.put(summary=summary or d.get("summary"))
    write(d)
    _note_account(d)
    if d.get("workflow"):
        end(d, DONE, f"{d.key} is done")
        return
    drop_claim(d)
    _finished(d, summary or f"{d.get('title')} is finished.")


def _note_account(d: Draft) -> None:
    """Keep details and issues that the agent reports beside its summary."""
    text = account_text(d.args.get("details", ""), d.args.get("issues", ()))
    if text:
        d.notes.append(Note(d.action.who.name, text, d.now))


def complete_parent(d: Draft) -> None:
    """A container whose children have all ended becomes finished work."""
    _finished(d, f"All parts of {d.get('title')} are finished.")


def _finished(d: Draft, text: str) -> None:
    """Ask for the sign-off that the task requires, or else the review that the project's settings require."""
    if d.get("requires"):
        d.put(state=READY, return_state=None, outcome=None)
        open_question(d, {"kind": d.get("requires"), "text": text, "context": account(d)})
    else:
        review(d, text)


def finish(d: Draft) -> None:
    end(d, DONE, f"{d.key} is done")
    d.put(failure=None, reason=d.args.get("reason") or "")


def cancel(d: Draft) -> None:
    end(d, CANCELLED, f"{d.key} was cancelled")
    d.put(failure=None, reason=d.args.get("reason") or "")


def fail(d: Draft) -> None:
    write(d)
    _note_account(d)
    end(d, FAILED, f"{d.key} failed")
    d.put(failure=d.args.get("failure") or "error", reason=d.args.get("reason") or "")


def stop(d: Draft) -> None:
    end(d, FAILED, f"{d.key} was stopped")
    d.put(failure="stuck", reason=d.args.get("reason") or "")


def reopen(d: Draft) -> None:
    was_cancelled = d.state == CANCELLED
    if d.args.get("reason"):
        d.data["reason"] = d.args["reason"]
    d.put(ended_at=None, failure=None, reason="", retry_count=0, wake_at=None)
    if d.get("workflow"):
        d.put(journal=d.get("journal") + 1)
    to_ready(d)
    if was_cancelled:
        d.put(state=CREATED)
    d.touch += [ref.id for ref in d.case.dependents]


# --- shape ----------------------------------------------------------------------------------------------------------


def decompose(d: Draft) -> None:
    drop_claim(d)
    d.put(state=BLOCKED, return_state=None, outcome=None)
    for child in d.args["children"]:
        inherited = {"priority": d.get("priority"), "role": d.get("role"), "labels": json.loads(d.get("labels"))}
        fields = {**inherited, **child, "parent": d.id}
        d.after.append(Action("create", d.action.who, fields))


def defer(d: Draft) -> None:
    d.put(state=DEFERRED, return_state=CREATED if d.state == CREATED else READY, wake_at=d.args.get("until"))
    if d.args.get("reason"):
        d.put(reason=d.args["reason"])


def wake(d: Draft) -> None:
    was = d.get("return_state")
    d.put(wake_at=None, reason="")
    to_ready(d)
    if was == CREATED:
        d.put(state=CREATED)


def unvet(d: Draft) -> None:
    d.put(state=CREATED)


def note(d: Draft) -> None:
    d.notes.append(Note(d.action.who.name, d.args["text"], d.now))


def update(d: Draft) -> None:
    """Apply field changes that `flag` and `hand_back` carry, as `update` would, in the same move."""
    fields = encoded(d.args.get("fields", {}))
    d.put(**{name: value for name, value in fields.items() if value != d.get(name)})


def dep_add(d: Draft) -> None:
    existing = {ref.id for ref in d.needs}
    d.needs += [ref for ref in d.args["needs"] if ref.id not in existing and ref.state not in RESOLVED]
    d.needs_added += [(d.id, ref.id) for ref in d.args["needs"] if ref.id not in existing]
    d.data["needs"] = [ref.key for ref in d.args["needs"]]


def dep_remove(d: Draft) -> None:
    gone = {ref.id for ref in d.args["needs"]}
    d.needs = [ref for ref in d.needs if ref.id not in gone]
    d.needs_removed += [(d.id, other) for other in gone]
    d.data["needs"] = [ref.key for ref in d.args["needs"]]

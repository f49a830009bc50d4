"""State changes that effects are built from: to ready, to review, to an end; questions opened and closed."""

from __future__ import annotations

import json

from .decision_builder import Draft
from .guards import no_open_child, refused
from .model import BLOCKED, CREATED, DEFERRED, DONE, FINISHED, HUMAN, PENDING, READY, REVIEW, WITHDRAWN, WORKING, Question
from .questions import make

_CLAIM = ("holder", "claimed_by", "claim_hash", "lease", "lease_expires_at")


def to_ready(d: Draft) -> None:
    d.put(state=BLOCKED if d.needs or _finished_meanwhile(d) else READY, return_state=None, outcome=None)


def _finished_meanwhile(d: Draft) -> bool:
    """A container whose children all ended while it was deferred becomes blocked, so that it completes at once."""
    return d.case.is_parent and d.case.task is not None and d.case.task.state in (CREATED, HUMAN, DEFERRED)


def review(d: Draft, text: str = "") -> None:
    """Accept finished work if the project requires no review; otherwise ask a person, with the project's timeout."""
    d.put(state=REVIEW, return_state=None, outcome=None)
    if d.settings["review"] != AT_ONCE:
        open_question(d, finished(d, text))


AT_ONCE = 0  #: the setting `review`: no review


def finished(d: Draft, text: str = "") -> dict[str, object]:
    """The question about finished work."""
    policy = d.settings["review"]
    waits = {"on_timeout": "keep"} if policy == "ask" else {"on_timeout": "accept", "timeout": policy}
    words = text or d.get("summary") or f"{d.get('title')} is finished. Accept it?"
    return {"kind": "approval", "reason": FINISHED, "text": words, "context": account(d), **waits}


def account(d: Draft) -> dict[str, object] | None:
    """Details and issues that the agent reported, for the reviewer."""
    return {name: d.args[name] for name in ("details", "issues") if d.args.get(name)} or None


def return_from_human(d: Draft) -> None:
    """The state that follows `human`, recomputed from the dependencies."""
    was = d.get("return_state")
    if was == WORKING and d.get("holder"):
        d.put(state=WORKING, return_state=None, outcome=None)
    elif was == REVIEW and not d.case.children:
        review(d)
    elif was == CREATED:
        d.put(state=CREATED, return_state=None, outcome=None)
    else:
        to_ready(d)


def end(d: Draft, state: str, why: str) -> None:
    """End the task (done, failed, cancelled): close its questions and settle its dependents."""
    drop_claim(d)
    d.put(state=state, return_state=None, outcome=None, ended_at=d.now, wake_at=None)
    for q in d.questions:
        if q.status == PENDING:
            close(d, q, WITHDRAWN, why=why)
    d.touch += [ref.id for ref in d.case.dependents]


def drop_claim(d: Draft) -> None:
    if d.get("holder"):
        d.put(**dict.fromkeys(_CLAIM))


def open_question(
    d: Draft, args: dict[str, object], by: str | None = None, tool: bool = False, at: int | None = None
) -> None:
    q = make(d, args, by or d.action.who.name, tool)
    q = q if at is None else q._replace(asked_at=at)
    d.opened.append(q)
    d.questions.append(q)
    if q.blocking and d.state != HUMAN and not (q.reason == FINISHED and d.state == REVIEW):
        _hold_acceptance(d)
        d.put(state=HUMAN, return_state=d.state, outcome=None)


def _hold_acceptance(d: Draft) -> None:
    """Suspend the timeout of a review while another question is open."""
    for q in d.questions:
        if q.status == PENDING and q.reason == FINISHED and q.timeout_at is not None:
            d.swap(q._replace(timeout_at=None))


def _review_again(d: Draft, asked: Question) -> None:
    """No other question is open: restart the timeout of the review.

    If a child was added meanwhile, close the review; it is asked again when the child has ended.
    """
    if d.case.children:
        close(d, asked, WITHDRAWN, why=f"{d.key} has open children again")
        to_ready(d)
        return
    d.put(state=REVIEW, return_state=None, outcome=None)
    if asked.timeout is not None:
        d.swap(asked._replace(timeout_at=d.now + asked.timeout))


def close(
    d: Draft, q: Question, status: str, *, by: str = "", response: dict[str, object] | None = None, why: str | None = None
) -> None:
    d.swap(
        q._replace(
            status=status,
            response=json.dumps(response) if response is not None else None,
            close_reason=why,
            responded_by=by or d.action.who.name,
            responded_at=d.now,
        )
    )


def leave_human(d: Draft, outcome: str | None) -> None:
    """Leave `human` when no blocking question is open. Among the outcomes, `back` wins over `done`."""
    if outcome is not None and d.get("outcome") != "back":
        d.put(outcome=outcome)
    still_open = d.waiting()
    if still_open:
        if d.state == HUMAN and d.get("return_state") == REVIEW and all(q.reason == FINISHED for q in still_open):
            _review_again(d, still_open[0])
        return
    if d.get("outcome") == "done":
        if d.case.children:
            raise refused(f"Cannot {d.action.verb} {d.key}", no_open_child, d)
        end(d, DONE, f"{d.key} is done")
    else:
        return_from_human(d)

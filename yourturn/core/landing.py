"""Where a move can land: how a task rests, returns and ends, how a question is opened and closed. Effects are made of these."""

from __future__ import annotations

import json

from .draft import Draft
from .model import BLOCKED, CREATED, DEFERRED, DONE, HUMAN, PENDING, READY, REVIEW, WITHDRAWN, WORKING, Question

_CLAIM = ("holder", "claimed_by", "claim_hash", "lease", "lease_expires_at")


def rest(d: Draft) -> None:
    d.put(state=BLOCKED if d.needs or _finished_meanwhile(d) else READY, return_state=None, outcome=None)


def _finished_meanwhile(d: Draft) -> bool:
    """A container whose children all ended while it was put aside: blocked, so that it completes at once."""
    return d.case.is_parent and d.case.task is not None and d.case.task.state in (CREATED, HUMAN, DEFERRED)


def review(d: Draft) -> None:
    """To be accepted: at once, after the project's delay, or by a person."""
    policy = d.settings["review"]
    d.put(state=REVIEW, return_state=None, outcome=None, accept_at=None if policy == "ask" else d.now + policy)


def back(d: Draft) -> None:
    """From `human` to where it was, recomputed."""
    was = d.get("return_state")
    if was == WORKING and d.get("holder"):
        d.put(state=WORKING, return_state=None, outcome=None)
    elif was == REVIEW and not d.case.children:
        review(d)
    elif was == CREATED:
        d.put(state=CREATED, return_state=None, outcome=None)
    else:
        rest(d)


def end(d: Draft, state: str, why: str) -> None:
    """Done, failed or cancelled: nothing stays open behind it, and whoever waits is told."""
    drop_claim(d)
    d.put(state=state, return_state=None, outcome=None, ended_at=d.now, wake_at=None, accept_at=None)
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
    from .questions import make

    q = make(d, args, by or d.action.who.name, tool)
    q = q if at is None else q._replace(asked_at=at)
    d.opened.append(q)
    d.questions.append(q)
    if q.blocking and d.state != HUMAN:
        d.put(state=HUMAN, return_state=d.state, outcome=None, accept_at=None)


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


def leave(d: Draft, outcome: str) -> None:
    """One blocking question fewer. The task moves when none is left; among outcomes, `back` beats `done`."""
    if d.get("outcome") != "back":
        d.put(outcome=outcome)
    if d.waiting():
        return
    if d.get("outcome") == "done":
        if d.case.children:
            from .guards import no_open_child, refused

            raise refused(f"Cannot {d.action.verb} {d.key}", no_open_child, d)
        end(d, DONE, f"{d.key} is done")
    else:
        back(d)

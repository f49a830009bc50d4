"""Effects of moves on a claim: claim, heartbeat, release, expire, park, fence."""

from __future__ import annotations

import re

from .canonical_json import claim_hash
from .decision_builder import Draft
from .journal import write
from .model import DEFERRED, HUMAN, READY, RETRY_EXHAUSTED, SYSTEM, WORKING, Claim, Note
from .outcomes import drop_claim, open_question, to_ready
from .rules import choice_of
from .time_format import when


def claim(d: Draft) -> None:
    task = d.case.task
    assert task is not None
    epoch = max(task.epoch, d.case.project.fenced_at or 0) + 1  # higher than any epoch from before a restore
    lease = d.args.get("lease") or d.settings["lease"]
    token = f"{task.key}.{epoch}.{d.args['secret']}"
    d.claim = Claim(task.key, d.args["worker"], epoch, token, d.now + lease)
    d.put(
        state=WORKING,
        holder=d.args["worker"],
        claimed_by=d.action.who.name,
        epoch=epoch,
        claim_hash=claim_hash(token, bool(task.workflow)),
        lease=lease,
        lease_expires_at=d.now + lease,
        branch=task.branch or branch_name(task.key, task.title),
        reason="",
    )


def branch_name(key: str, title: str) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40].rstrip("-")
    return f"turn/{key}-{words}" if words else f"turn/{key}"


def heartbeat(d: Draft) -> None:
    d.put(lease_expires_at=d.now + d.get("lease"))
    d.silent = True


def release(d: Draft) -> None:
    d.data["reason"] = reason = d.args.get("reason", "")
    _spend_try(d, f"gave it back: {reason[:500]}" if reason.strip() else "gave it back")


def expire(d: Draft) -> None:
    _spend_try(d, f"was not heard of until its lease ran out at {when(d.get('lease_expires_at'))}")


def _spend_try(d: Draft, how: str) -> None:
    """Record why the try ended as the task's reason; the next claim or a person's decision clears it."""
    worker = d.get("holder")
    drop_claim(d)
    d.put(reason=f"{worker} {how}")
    d.put(host=None)  # the session is gone: no host is preferred
    d.put(retry_count=d.get("retry_count") + 1)
    to_ready(d)
    if d.get("retry_count") >= d.get("max_retries"):
        tries = d.get("max_retries")
        text = (
            f"{d.key} was tried {tries} time{'s' * (tries != 1)} without a result (last: {worker} {how}). How should it go on?"
        )
        open_question(d, choice_of(RETRY_EXHAUSTED, text, task=d.key), by=SYSTEM.name)


def park(d: Draft) -> None:
    """Drop the claim without counting a try: the task is deferred or ready again, or keeps waiting for a person."""
    write(d)
    drop_claim(d)
    if d.state == HUMAN:
        return
    to_ready(d)
    if d.args.get("until"):
        d.put(state=DEFERRED, return_state=READY, wake_at=d.args["until"])


def fence(d: Draft) -> None:
    """Void claims and permissions from before a restore."""
    worker, void = d.get("holder"), [f"Q{number}" for number in d.args.get("approvals", ())]
    drop_claim(d)
    if d.state == WORKING:
        to_ready(d)
    d.data |= {"worker": worker} if worker else {}
    if void:
        d.data["void"] = void
        text = f"This desk was restored from a backup. What was allowed before is void ({', '.join(void)}): ask again."
        d.notes.append(Note(d.action.who.name, text, d.now))

"""Idempotency keys: a repeated request with the same key gets the result of the first."""

from __future__ import annotations

from typing import Any

from ..core.canonical_json import claim_hash
from ..core.canonical_json import digest as digest_of
from ..core.errors import ClaimLost, KeyReused
from ..core.model import Action, Claim
from ..db.unit_of_work import UnitOfWork

#: Arguments that differ between equal requests, or that only prove a claim.
_IGNORED = frozenset({"secret", "claim", "needs", "circle", "proof", "until"})


def digest(action: Action) -> str:
    """The digest of a request, without secrets, proofs of claims, and dates computed from a duration."""
    args = {name: value for name, value in action.args.items() if name not in _IGNORED}
    needs = sorted(ref.id for ref in action.args.get("needs", ()))
    return digest_of([action.verb, action.task, action.question, args, needs])


def replay(tx: UnitOfWork, action: Action, request: str) -> Any:
    """Lock the key. Returns task, question, epoch and time of its first use, or None."""
    tx.store.lock_key(tx.run, tx.workspace, str(action.key))
    row = tx.reply(action)
    if row is not None and row[0] != request:
        raise KeyReused(f"The idempotency key {action.key} was used for something else", hint="Use a new key for a new request.")
    return row if row is None else row[1:]


def same_claim(tx: UnitOfWork, action: Action, task: int, epoch: int, now: Any) -> Claim:
    """The claim of the first request, if it is still alive, with a new token: only its hash is stored."""
    case, database = tx.case(task)
    held = case.task
    assert held is not None
    if held.epoch != epoch or held.lease_expires_at is None or held.lease_expires_at <= now(database):
        raise ClaimLost(f"The claim on {held.key} is over", reason=f"it is '{held.state}' (epoch {held.epoch})")
    token = f"{held.key}.{epoch}.{action.args['secret']}"
    tx.renew_claim(held, claim_hash(token, bool(held.workflow)))
    return Claim(held.key, str(held.holder), epoch, token, held.lease_expires_at)

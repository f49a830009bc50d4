"""How often is too often: allowances that all processes of a desk share through its database.

One row and one number for each: every use fills up a share of time, and an allowance is used up when that is too far ahead
of now. Nothing is decided by it but "not so fast", and no event tells of it, so it does not go through the table of moves.
"""

from __future__ import annotations

from .core.canon import secret_hash
from .core.errors import TooMany
from .core.model import DAY, HOUR, SECOND
from .desk import Desk
from .store.tx import Tx


def take(desk: Desk, what: str, whose: str, count: int, span: int, words: str = "") -> None:
    """Use an allowance of `count` in `span` microseconds. Raises TooMany, and then nothing is used."""
    args = {"workspace": desk.workspace, "name": _name(what, whose)}

    def move(tx: Tx) -> int:
        now = _now(desk, tx)
        cost = span // count
        if tx.run(tx.q["take_rate"], {**args, "now": now, "cost": cost, "room": span}).rowcount:
            return 0
        return int(tx.run(tx.q["rate"], args).fetchone()[0]) + cost - span - now

    wait = desk._transact("rate", move)
    if wait > 0:
        raise _too_many(words or f"Too often: {what}", count, span, wait)


def _too_many(words: str, count: int, span: int, wait: int) -> TooMany:
    error = TooMany(words, reason=f"at most {count} in {span // SECOND} seconds")
    error.retry_after = max(1, -(-wait // SECOND))
    error.hint = f"Try again in {error.retry_after} s."
    return error


def asked(desk: Desk, task: int) -> None:
    """A task asks only so many questions in an hour. They stand in the database, so nothing has to be counted beside them."""
    with desk.store.reading() as run:
        key, own, shared, database = run(desk.store.query["task_settings"], {"id": task}).fetchone()
        count = desk.store.settings(own, shared)["question_rate"]
        row = run(desk.store.query["asked_before"], {"id": task, "back": count - 1}).fetchone()
    wait = row[0] + HOUR - desk.now(database) if row else 0
    if wait > 0:
        raise _too_many(f"{key} asks too many questions", count, HOUR, wait)


def forget(desk: Desk, what: str, whose: str) -> None:
    """Give an allowance back."""
    args = {"workspace": desk.workspace, "name": _name(what, whose)}
    desk._transact("rate", lambda tx: tx.run.later(tx.q["drop_rate"], args))


def sweep(desk: Desk) -> None:
    """Take away what says nothing any more: allowances that are whole again, sessions and links that ended long ago."""

    def move(tx: Tx) -> None:
        now = _now(desk, tx)
        tx.run.later(tx.q["drop_rates"], {"workspace": desk.workspace, "before": now})
        for name in ("drop_logins", "drop_links"):
            tx.run.later(tx.q[name], {"workspace": desk.workspace, "before": now - 30 * DAY})

    desk._transact("rate", move)


def _name(what: str, whose: str) -> str:
    return f"{what} {secret_hash(whose)[:32]}"


def _now(desk: Desk, tx: Tx) -> int:
    return desk.now(tx.run(tx.q["now"]).fetchone()[0])

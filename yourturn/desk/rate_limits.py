"""Rate limits that all processes of a desk share through its database: logins, requests, questions.

A limit decides nothing about a task and writes no event, so it does not go through the table of moves. allowances.py has the
arithmetic, and what agents may ask and create.
"""

from __future__ import annotations

from typing import Any

from ..core.model import DAY, HOUR
from ..db.unit_of_work import UnitOfWork
from .allowances import for_questions, row_name, too_many
from .desk import Desk


def take(desk: Desk, what: str, whose: str, count: int, span: int, message: str = "") -> None:
    """Use an allowance of `count` in `span` microseconds. Raises TooMany if it is used up."""
    args = {"workspace": desk.workspace, "name": row_name(what, whose)}

    def use(tx: UnitOfWork) -> int:
        now = _now(desk, tx)
        cost = span // count
        if tx.run(tx.q["take_rate"], {**args, "now": now, "cost": cost, "room": span}).rowcount:
            return 0
        return int(tx.run(tx.q["rate"], args).fetchone()[0]) + cost - span - now

    wait = desk.transact("rate", use)
    if wait > 0:
        raise too_many(message or f"Too often: {what}", count, span, wait)


def check(desk: Desk, settings: dict[str, Any]) -> None:
    """Raises TooMany if the agent or the workspace has no question left. Uses none."""
    with desk.store.reading() as run:
        for name, allowance in for_questions(desk.who, settings).items():
            row = run(desk.store.query["rate"], {"workspace": desk.workspace, "name": name}).fetchone()
            now = desk.now(run(desk.store.query["now"]).fetchone()[0]) if row else 0
            if row and row[0] > now + HOUR - allowance.cost:
                raise allowance.too_many(int(row[0]), now)


def forget(desk: Desk, what: str, whose: str) -> None:
    """Reset an allowance."""
    args = {"workspace": desk.workspace, "name": row_name(what, whose)}
    desk.transact("rate", lambda tx: tx.run.later(tx.q["drop_rate"], args))


def sweep(desk: Desk) -> None:
    """Delete rows without effect: allowances that are whole again, sessions and links that ended long ago."""

    def delete(tx: UnitOfWork) -> None:
        now = _now(desk, tx)
        tx.run.later(tx.q["drop_rates"], {"workspace": desk.workspace, "before": now})
        for name in ("drop_logins", "drop_links"):
            tx.run.later(tx.q[name], {"workspace": desk.workspace, "before": now - 30 * DAY})

    desk.transact("rate", delete)


def _now(desk: Desk, tx: UnitOfWork) -> int:
    return desk.now(tx.run(tx.q["now"]).fetchone()[0])

"""How often is too often: allowances that all processes of a desk share through its database.

One row and one number for each: every use fills up a share of time, and an allowance is used up when that is too far ahead
of now. Nothing is decided by it but "not so fast", and no event tells of it, so it does not go through the table of moves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.canonical_json import secret_hash
from ..core.errors import TooMany
from ..core.model import DAY, HOUR, SECOND, Decision, Who
from ..core.rules import ASKING
from ..db.unit_of_work import UnitOfWork
from .desk import Desk


def take(desk: Desk, what: str, whose: str, count: int, span: int, words: str = "") -> None:
    """Use an allowance of `count` in `span` microseconds. Raises TooMany, and then nothing is used."""
    args = {"workspace": desk.workspace, "name": _name(what, whose)}

    def move(tx: UnitOfWork) -> int:
        now = _now(desk, tx)
        cost = span // count
        if tx.run(tx.q["take_rate"], {**args, "now": now, "cost": cost, "room": span}).rowcount:
            return 0
        return int(tx.run(tx.q["rate"], args).fetchone()[0]) + cost - span - now

    wait = desk.transact("rate", move)
    if wait > 0:
        raise _too_many(words or f"Too often: {what}", count, span, wait)


def _too_many(words: str, count: int, span: int, wait: int) -> TooMany:
    error = TooMany(words, reason=f"at most {count} in {span // SECOND} seconds")
    error.retry_after = max(1, -(-wait // SECOND))
    error.hint = f"Try again in {error.retry_after} s."
    return error


class Share(NamedTuple):
    """What questions, or new tasks, take of one allowance."""

    setting: str
    rate: int  #: in an hour
    words: str  #: who asks or creates too much
    number: int = 1

    @property
    def cost(self) -> int:
        return self.number * (HOUR // self.rate)

    def too_many(self, used_until: int, now: int) -> TooMany:
        error = _too_many(self.words, self.rate, HOUR, used_until + self.cost - HOUR - now)
        error.hint += f" An admin sets the limit: turn project set {self.setting} N."
        return error


def _shared(who: Who, settings: dict[str, Any]) -> dict[str, Share]:
    """The allowances that all questions of an agent take from, by name."""
    actor, workspace = "question_rate_actor", "question_rate_workspace"
    return {
        _name("asks", who.name): Share(actor, settings[actor], f"{who.name} asks too many questions"),
        "asks": Share(workspace, settings[workspace], "The agents here ask too many questions"),
    }


def spend(tx: UnitOfWork) -> None:
    """Take what an agent asks and creates in this transaction from what the task, the agent and the workspace have left.

    As many as the limit at once; then each share of the hour frees one more. Raises TooMany, and then nothing was asked. All in
    one statement, after everything else of the transaction, so that locks are always taken in the same order.

    Finished, failed and released work is never refused, though people may be asked about it: people gave that work to agents, or
    agents created it, and `task_rate` limits that.
    """
    shares: dict[str, Share] = {}
    for decision in tx.limited:
        for name, share in _taken(decision).items():
            shares[name] = share._replace(number=share.number + (shares[name].number if name in shares else 0))
    if not shares:
        return
    names, now = sorted(shares), tx.limited[0].now
    args: dict[str, Any] = {"workspace": tx.workspace, "now": now, "room": HOUR}
    for at, name in enumerate(names):
        args |= {f"name{at}": name, f"until{at}": now + shares[name].cost}
    rows = ", ".join(f"(:workspace, :name{at}, :until{at})" for at in range(len(names)))
    room = {row[0] for row in tx.run(tx.q["spend_rates"].replace("{spent}", rows), args).fetchall()}
    for name in names:
        if name not in room or shares[name].number > shares[name].rate:
            used = int(tx.run(tx.q["rate"], {"workspace": tx.workspace, "name": name}).fetchone()[0])
            raise shares[name].too_many(used, now)


def _taken(decision: Decision) -> dict[str, Share]:
    """What one move of an agent takes, by the allowance's name."""
    action, task, settings = decision.action, decision.task, decision.found.project.settings
    shares: dict[str, Share] = {}
    if decision.before is None:
        words = f"{action.who.name} creates too many tasks"
        shares[_name("creates", action.who.name)] = Share("task_rate", settings["task_rate"], words)
    asked = sum(q.asked_by == action.who.name for q in decision.opened)
    if action.verb in ASKING and asked and not decision.steps:
        own = Share("question_rate", settings["question_rate"], f"{task.key} asks too many questions")
        for name, share in {f"asks about {task.id}": own, **_shared(action.who, settings)}.items():
            shares[name] = share._replace(number=asked)
    return shares


def check(desk: Desk, settings: dict[str, Any]) -> None:
    """Has the agent, and has the workspace, a question left? Raises TooMany."""
    with desk.store.reading() as run:
        for name, share in _shared(desk.who, settings).items():
            row = run(desk.store.query["rate"], {"workspace": desk.workspace, "name": name}).fetchone()
            now = desk.now(run(desk.store.query["now"]).fetchone()[0]) if row else 0
            if row and row[0] > now + HOUR - share.cost:
                raise share.too_many(int(row[0]), now)


def forget(desk: Desk, what: str, whose: str) -> None:
    """Give an allowance back."""
    args = {"workspace": desk.workspace, "name": _name(what, whose)}
    desk.transact("rate", lambda tx: tx.run.later(tx.q["drop_rate"], args))


def sweep(desk: Desk) -> None:
    """Take away what says nothing any more: allowances that are whole again, sessions and links that ended long ago."""

    def move(tx: UnitOfWork) -> None:
        now = _now(desk, tx)
        tx.run.later(tx.q["drop_rates"], {"workspace": desk.workspace, "before": now})
        for name in ("drop_logins", "drop_links"):
            tx.run.later(tx.q[name], {"workspace": desk.workspace, "before": now - 30 * DAY})

    desk.transact("rate", move)


def _name(what: str, whose: str) -> str:
    return f"{what} {secret_hash(whose)[:32]}"


def _now(desk: Desk, tx: UnitOfWork) -> int:
    return desk.now(tx.run(tx.q["now"]).fetchone()[0])

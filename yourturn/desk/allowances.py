"""Allowances of agents for questions and new tasks, per hour.

Each is one row of the table `rates`, shared by all processes of a desk: a use moves `used_until` into the future by its share of
the hour, and an allowance is used up when that is an hour ahead. It allows as many uses at once as the limit; then each share
of the hour frees one more.

No allowance refuses finished, failed or released work, although it may open a question: people gave that work to agents,
or agents created it, and `task_rate` limits that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.canonical_json import secret_hash
from ..core.errors import TooMany
from ..core.model import HOUR, SECOND, Decision, Who
from ..core.rules import ASKING
from ..db.unit_of_work import UnitOfWork


class Allowance(NamedTuple):
    """The uses of one allowance in one transaction."""

    setting: str
    rate: int  #: per hour
    message: str
    uses: int = 1

    @property
    def cost(self) -> int:
        return self.uses * (HOUR // self.rate)

    def too_many(self, used_until: int, now: int) -> TooMany:
        error = too_many(self.message, self.rate, HOUR, used_until + self.cost - HOUR - now)
        error.hint += f" An admin sets the limit: turn project set {self.setting} N."
        return error


def too_many(message: str, count: int, span: int, wait: int) -> TooMany:
    error = TooMany(message, reason=f"at most {count} in {span // SECOND} seconds")
    error.retry_after = max(1, -(-wait // SECOND))
    error.hint = f"Try again in {error.retry_after} s."
    return error


def row_name(what: str, whose: str) -> str:
    """The name of an allowance's row."""
    return f"{what} {secret_hash(whose)[:32]}"


def for_questions(who: Who, settings: dict[str, Any]) -> dict[str, Allowance]:
    """The allowances that every question of an agent uses, by row name."""
    actor, workspace = "question_rate_actor", "question_rate_workspace"
    return {
        row_name("asks", who.name): Allowance(actor, settings[actor], f"{who.name} asks too many questions"),
        "asks": Allowance(workspace, settings[workspace], "The agents here ask too many questions"),
    }


def spend(tx: UnitOfWork) -> None:
    """Use the allowances for all that agents ask and create in this transaction. Raises TooMany, which rolls it back.

    One statement at the end of the transaction, so that locks are always taken in the same order.
    """
    used: dict[str, Allowance] = {}
    for decision in tx.limited:
        for name, allowance in _used_by(decision).items():
            used[name] = allowance._replace(uses=allowance.uses + (used[name].uses if name in used else 0))
    if not used:
        return
    names, now = sorted(used), tx.limited[0].now
    args: dict[str, Any] = {"workspace": tx.workspace, "now": now, "room": HOUR}
    for at, name in enumerate(names):
        args |= {f"name{at}": name, f"until{at}": now + used[name].cost}
    rows = ", ".join(f"(:workspace, :name{at}, :until{at})" for at in range(len(names)))
    with_room = {row[0] for row in tx.run(tx.q["spend_rates"].replace("{spent}", rows), args).fetchall()}
    for name in names:
        if name not in with_room or used[name].uses > used[name].rate:
            used_until = int(tx.run(tx.q["rate"], {"workspace": tx.workspace, "name": name}).fetchone()[0])
            raise used[name].too_many(used_until, now)


def _used_by(decision: Decision) -> dict[str, Allowance]:
    """The allowances that one move of an agent uses."""
    action, task, settings = decision.action, decision.task, decision.loaded.project.settings
    used: dict[str, Allowance] = {}
    if decision.before is None:
        message = f"{action.who.name} creates too many tasks"
        used[row_name("creates", action.who.name)] = Allowance("task_rate", settings["task_rate"], message)
    questions = sum(q.asked_by == action.who.name for q in decision.opened)
    if action.verb in ASKING and questions and not decision.steps:
        own = Allowance("question_rate", settings["question_rate"], f"{task.key} asks too many questions")
        for name, allowance in {f"asks about {task.id}": own, **for_questions(action.who, settings)}.items():
            used[name] = allowance._replace(uses=questions)
    return used

"""Agent output: the transcript of a session, and a patch of its uncommitted work.

No rule reads it and no event records it, so it does not go through the table of moves. But only the holder of the claim may
write it. Exception: after an agent has completed its task, its last lines are accepted until the task is claimed again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ..core.decide import held_last, holds
from ..core.errors import ClaimLost, Invalid
from ..db.unit_of_work import UnitOfWork
from .desk import Desk

#: Limits: characters of a line, lines of a task, characters of a patch.
LINE, LINES, PATCH = 8_000, 20_000, 50_000_000


class OutputLine(NamedTuple):
    id: int
    epoch: int
    at: int
    sort: str  #: kind of the line: said, tool, note, error …
    text: str


class StoredPatch(NamedTuple):
    epoch: int
    at: int
    base: str  #: the commit that it is made on
    body: str


def write(desk: Desk, task: int, claim: str, lines: Iterable[tuple[str, str]]) -> None:
    """Append lines (sort, text) to the transcript."""
    rows = [(sort[:20], cut(text)) for sort, text in lines]
    if rows:
        desk.transact("output", lambda tx: _write(desk, tx, task, claim, rows))


def _write(desk: Desk, tx: UnitOfWork, task: int, claim: str, rows: list[tuple[str, str]]) -> None:
    epoch, now = _check_claim(desk, tx, task, claim, last_words=True)
    for sort, text in rows:
        tx.run.later(tx.q["insert_output"], {"task": task, "epoch": epoch, "at": now, "sort": sort, "text": text})
    tx.run.later(tx.q["trim_output"], {"task": task, "kept": LINES})


def keep(desk: Desk, task: int, claim: str, base: str, body: str) -> None:
    """Replace the patch; an empty body deletes it."""
    if len(body) > PATCH:
        raise Invalid("The patch is too large", reason=f"{len(body):,} characters; at most {PATCH:,}")

    def move(tx: UnitOfWork) -> None:
        epoch, now = _check_claim(desk, tx, task, claim)
        tx.run.later(tx.q["drop_patch"], {"task": task})
        if body:
            tx.run.later(tx.q["insert_patch"], {"task": task, "epoch": epoch, "at": now, "base": base, "body": body})

    desk.transact("keep", move)


def _check_claim(desk: Desk, tx: UnitOfWork, task: int, claim: str, last_words: bool = False) -> tuple[int, int]:
    """The claim's epoch and the time, or ClaimLost."""
    case, database = tx.case(task)
    now, held = desk.now(database), case.task
    assert held is not None
    if not holds(held, claim, now) and not (last_words and held_last(held, claim, desk.who)):
        raise ClaimLost(f"Cannot write output of {held.key}", reason="the claim is over", hint="Nothing was stored.")
    return held.epoch, now


def lines(desk: Desk, task: int, after: int = 0, limit: int = 500) -> list[OutputLine]:
    """The lines after a line's id; with a negative id, the newest."""
    with desk.store.reading() as run:
        if after < 0:
            rows = run(desk.store.query["last_output"], {"task": task, "limit": limit}).fetchall()[::-1]
        else:
            rows = run(desk.store.query["output"], {"task": task, "after": after, "limit": limit}).fetchall()
    return [OutputLine._make(row) for row in rows]


def patch(desk: Desk, task: int) -> StoredPatch | None:
    with desk.store.reading() as run:
        row: Any = run(desk.store.query["patch"], {"task": task}).fetchone()
    return StoredPatch._make(row) if row else None


def cut(text: str) -> str:
    """A line as it is stored; idempotent."""
    text = text.replace("\x00", "\ufffd").encode(errors="replace").decode()
    return text if len(text) <= LINE + 40 else f"{text[:LINE]}… ({len(text):,} characters)"

"""What an agent's session leaves on the desk beside its moves: what it said, and the work in its folder.

Bulk, not history: nothing is decided by it and no event tells of it, so it does not go through the table of moves. But only
who holds the claim may write it: a late writer is refused here as at the door. Last words are heard: an agent that has
completed its task itself may finish its sentence, until somebody else takes the task.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ..core.decide import held_last, holds
from ..core.errors import ClaimLost, Invalid
from ..db.unit_of_work import UnitOfWork
from .desk import Desk

#: Characters of one line, lines of one session that are kept, and characters of a patch.
LINE, LINES, PATCH = 8_000, 20_000, 50_000_000


class Line(NamedTuple):
    id: int
    epoch: int
    at: int
    sort: str  #: said, tool, note, error …
    text: str


class Patch(NamedTuple):
    epoch: int
    at: int
    base: str  #: the commit that it is made on
    body: str


def write(desk: Desk, task: int, claim: str, lines: Iterable[tuple[str, str]]) -> None:
    """What the session said since: (sort, text)."""
    rows = [(sort[:20], cut(text)) for sort, text in lines]
    if rows:
        desk.transact("output", lambda tx: _write(desk, tx, task, claim, rows))


def _write(desk: Desk, tx: UnitOfWork, task: int, claim: str, rows: list[tuple[str, str]]) -> None:
    epoch, now = _held(desk, tx, task, claim, last_words=True)
    for sort, text in rows:
        tx.run.later(tx.q["insert_output"], {"task": task, "epoch": epoch, "at": now, "sort": sort, "text": text})
    tx.run.later(tx.q["trim_output"], {"task": task, "kept": LINES})


def keep(desk: Desk, task: int, claim: str, base: str, body: str) -> None:
    """The work that lies in the folder, in the place of what was kept before. An empty one: there is none."""
    if len(body) > PATCH:
        raise Invalid("The work in the folder is too large to keep", reason=f"{len(body):,} characters; at most {PATCH:,}")

    def move(tx: UnitOfWork) -> None:
        epoch, now = _held(desk, tx, task, claim)
        tx.run.later(tx.q["drop_patch"], {"task": task})
        if body:
            tx.run.later(tx.q["insert_patch"], {"task": task, "epoch": epoch, "at": now, "base": base, "body": body})

    desk.transact("keep", move)


def _held(desk: Desk, tx: UnitOfWork, task: int, claim: str, last_words: bool = False) -> tuple[int, int]:
    """The claim's epoch and the time, or ClaimLost."""
    case, database = tx.case(task)
    now, held = desk.now(database), case.task
    assert held is not None
    if not holds(held, claim, now) and not (last_words and held_last(held, claim, desk.who)):
        raise ClaimLost(f"Cannot write what was said about {held.key}", reason="the claim is over", hint="Nothing was kept.")
    return held.epoch, now


def lines(desk: Desk, task: int, after: int = 0, limit: int = 500) -> list[Line]:
    """After that line; or, with a negative one, the newest."""
    with desk.store.reading() as run:
        if after < 0:
            rows = run(desk.store.query["last_output"], {"task": task, "limit": limit}).fetchall()[::-1]
        else:
            rows = run(desk.store.query["output"], {"task": task, "after": after, "limit": limit}).fetchall()
    return [Line._make(row) for row in rows]


def patch(desk: Desk, task: int) -> Patch | None:
    with desk.store.reading() as run:
        row: Any = run(desk.store.query["patch"], {"task": task}).fetchone()
    return Patch._make(row) if row else None


def cut(text: str) -> str:
    """A line as it is kept. One that was cut before stays as it is."""
    text = text.replace("\x00", "\ufffd").encode(errors="replace").decode()
    return text if len(text) <= LINE + 40 else f"{text[:LINE]}… ({len(text):,} characters)"

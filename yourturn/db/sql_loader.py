"""Reads the SQL files and fills in the words of a dialect."""

from __future__ import annotations

import os
from functools import cache

from ..core.model import ENDED, RESOLVED, Program, Question, Step, Task

_HERE = os.path.dirname(__file__)  # noqa: PTH120

TASK = ", ".join(f"t.{name}" for name in Task._fields)
RESOLVED_STATES = ", ".join(f"'{state}'" for state in sorted(RESOLVED))
ENDED_STATES = ", ".join(f"'{state}'" for state in sorted(ENDED))
STEP = ", ".join(f"s.{name}" for name in Step._fields)
PROGRAM = ", ".join(f"m.{name}" for name in Program._fields)
QUESTION = ", ".join(f"q.{name}" for name in Question._fields)
#: Tasks that agents can claim: no containers, not too large, with tries left. The guards of `claim` are the same condition
#: (is_work and tries_left in core/guards.py); a test compares them.
WORKABLE = (
    "t.state = 'ready' AND t.state <> 'done' AND t.type <> 'epic' AND t.retry_count < t.max_retries "
    "AND (t.complexity <> 'xlarge' OR EXISTS (SELECT 1 FROM tasks c WHERE c.parent_id = t.id))"
)
#: True if any move is due by :now, or by the database's time. Its form forces planners to use the index on due_at.
_ANY_DUE = (
    "EXISTS (SELECT 1 FROM tasks o WHERE o.due_at <= coalesce(CAST(:now AS {big}), {moment}) "
    "AND (SELECT r.workspace_id FROM projects r WHERE r.id = o.project_id) = :workspace)"
)


@cache
def read(name: str) -> str:
    with open(os.path.join(_HERE, name), encoding="utf-8") as file:  # noqa: PTH118, PTH123 - pathlib costs the command 5 ms
        return file.read()


class _Words(dict[str, str]):
    def __missing__(self, word: str) -> str:
        return "{" + word + "}"  # filled in by the caller


def queries(words: dict[str, str]) -> dict[str, str]:
    """name -> SQL."""
    return dict(_queries(tuple(words.items())))


@cache
def _queries(pairs: tuple[tuple[str, str], ...]) -> dict[str, str]:
    words = dict(pairs)
    any_due = _ANY_DUE.format_map(_Words(words))
    columns = {"task": TASK, "question": QUESTION, "step": STEP, "program": PROGRAM}
    all_words = _Words(words, **columns, ended=ENDED_STATES, resolved=RESOLVED_STATES, any_due=any_due, workable=WORKABLE)
    texts = {}
    for part in read("queries.sql").split("-- name: ")[1:]:
        name, _, body = part.partition("\n")
        lines = [line for line in body.splitlines() if not line.startswith("--")]
        texts[name.strip()] = " ".join(" ".join(lines).split()).rstrip(";").format_map(all_words)
    return texts


def statements(script: str, words: dict[str, str]) -> list[str]:
    """The statements of a script; `;;` ends one with semicolons inside, such as a trigger."""
    bare = "\n".join(line.split("--")[0].rstrip() for line in script.splitlines()).format_map(words)
    parts = []
    for block in bare.split(";;"):
        if "$$" in block or "BEGIN" in block:
            parts.append(block.strip())
        else:
            parts += [part.strip() for part in block.split(";")]
    return [statement for statement in parts if statement]

"""Reads the SQL files: one text, filled with the words of a dialect."""

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
#: What agents are given: a container is not work itself, nor is what is too large, and its tries are not used up. The guards of
#: `claim` say the same (core/guards.py is_work, tries_left); a test compares them.
WORKABLE = (
    "t.state = 'ready' AND t.state <> 'done' AND t.type <> 'epic' AND t.retry_count < t.max_retries "
    "AND (t.complexity <> 'xlarge' OR EXISTS (SELECT 1 FROM tasks c WHERE c.parent_id = t.id))"
)
#: Is something due by :now, or by the database's time? Planners have no choice but the index on due_at, which is almost empty.
_OWED = (
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
    owed = _OWED.format_map(_Words(words))
    columns = {"task": TASK, "question": QUESTION, "step": STEP, "program": PROGRAM}
    all_words = _Words(words, **columns, ended=ENDED_STATES, resolved=RESOLVED_STATES, owed=owed, workable=WORKABLE)
    found = {}
    for part in read("queries.sql").split("-- name: ")[1:]:
        name, _, body = part.partition("\n")
        lines = [line for line in body.splitlines() if not line.startswith("--")]
        found[name.strip()] = " ".join(" ".join(lines).split()).rstrip(";").format_map(all_words)
    return found


def statements(script: str, words: dict[str, str]) -> list[str]:
    """A script's statements, filled in; `;;` ends one that has semicolons inside (a trigger)."""
    bare = "\n".join(line.split("--")[0].rstrip() for line in script.splitlines()).format_map(words)
    found = []
    for block in bare.split(";;"):
        if "$$" in block or "BEGIN" in block:
            found.append(block.strip())
        else:
            found += [part.strip() for part in block.split(";")]
    return [statement for statement in found if statement]

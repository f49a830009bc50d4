"""Does the suite notice when a guard is gone? `make mutants`, or `python -m tests.mutants [NAME …]`.

A mutant is a row of `MUTANTS` (table.py): one guard removed or weakened, as a text in a file and what to write instead, and
the few tests that should notice. The text must stand in the file exactly once; a row that the code has left behind fails
loudly, here and in `make test`.

Each mutant gets a copy of the package and the tests in a folder of its own, where it is applied, and its tests run with that
copy in front of everything else: in this process's children too, and for the `turn` command, which is proved first. Then all
chosen tests run on a copy without any mutant, and must pass: a test that always fails would notice anything.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Mutant(NamedTuple):
    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


class Unfit(Exception):
    """A row that does not fit the code."""


def mutated(m: Mutant, text: str) -> str:
    found = text.count(m.old)
    if found != 1:
        raise Unfit(f"{m.name}: the text to replace stands {found} times in {m.file}, not once: {m.old!r}")
    if m.old == m.new:
        raise Unfit(f"{m.name}: nothing would change in {m.file}")
    return text.replace(m.old, m.new)

"""The table of mutants follows the code: every row can be applied, and names tests that exist."""

from __future__ import annotations

import ast
from functools import cache

import pytest

from . import ROOT, Mutant, Unfit, mutated
from .table import MUTANTS


def test_every_mutant_applies_exactly_once_and_is_still_a_program():
    for m in MUTANTS:
        text = mutated(m, (ROOT / m.file).read_text())
        if m.file.endswith(".py"):
            ast.parse(text)


def test_a_row_that_the_code_has_left_behind_fails_loudly():
    m = Mutant("gone", "yourturn/desk/desk.py", "x", "y", ())
    with pytest.raises(Unfit, match="stands 2 times"):
        mutated(m, "x x")
    with pytest.raises(Unfit, match="stands 0 times"):
        mutated(m, "z")


def test_every_mutant_names_tests_that_exist():
    assert len({m.name for m in MUTANTS}) == len(MUTANTS) >= 24
    for m in MUTANTS:
        assert m.tests, m.name
        for selection in m.tests:
            file, _, name = selection.partition("::")
            assert not name or name.partition("[")[0] in _functions(file), selection


@cache
def _functions(file: str) -> set[str]:
    return {node.name for node in ast.parse((ROOT / file).read_text()).body if isinstance(node, ast.FunctionDef)}

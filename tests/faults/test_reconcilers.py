"""A taste of the section `reconcilers`: several at once have the effect of one."""

from __future__ import annotations

from . import Place
from .reconcilers import run


def test_several_reconcilers_do_what_one_does(dialect, new_db):
    found = run(Place(dialect, lambda: new_db(dialect), scale=0.02, seed=5))
    assert found.violations == []
    assert found.runs >= 2 and found.kills >= 2

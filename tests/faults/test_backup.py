"""A taste of the section `backup`."""

from __future__ import annotations

from . import Place
from .backup import run


def test_no_violation(dialect, new_db):
    tally = run(Place(dialect, lambda: new_db(dialect), scale=0.05, seed=7))
    assert tally.violations == []
    assert tally.runs >= 3

"""The short form: every operation is killed at every point once, on both databases."""

from __future__ import annotations

from yourturn.db.failpoints import POINTS

from . import Place
from .failpoints import run
from .operations import FOUNDING, OPERATIONS


def test_a_kill_at_any_point_leaves_all_or_nothing(dialect, new_db):
    found = run(Place(dialect, lambda: new_db(dialect), scale=0.05, seed=7))
    assert found.violations == []
    assert found.kills == (len(OPERATIONS) + len(FOUNDING) + len(["restore"])) * len(POINTS)

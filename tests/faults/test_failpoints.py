"""A taste of the section `failpoints`: operations are killed at one point each, all points in turn, on both databases."""

from __future__ import annotations

from yourturn.db.failpoints import POINTS

from . import Place
from .failpoints import numbers, points, run
from .operations import FOUNDING


def test_a_killed_operation_leaves_all_or_nothing(dialect, new_db):
    place = Place(dialect, lambda: new_db(dialect), scale=0.02, seed=7)
    assert {point for number in numbers(place) for point in points(place, number)} == set(POINTS)
    found = run(place)
    assert found.violations == []
    assert found.kills == len(numbers(place)) + len(FOUNDING) + len(["restore"])

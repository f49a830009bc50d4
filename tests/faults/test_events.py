"""A taste of the section `events`: killed readers see every event once, in causal order; tampering is found."""

from __future__ import annotations

from . import Place
from .events import run


def test_readers_miss_nothing_and_tampering_is_found(dialect, new_db):
    found = run(Place(dialect, lambda: new_db(dialect), scale=0.02, seed=5))
    assert found.violations == []
    assert found.runs >= 200 and found.kills >= 8

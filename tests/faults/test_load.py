"""A taste of the section `load`: processes are killed at random; nothing is lost, repeated or late."""

from __future__ import annotations

from . import Place
from .load import run


def test_random_kills_lose_nothing(dialect, new_db):
    found = run(Place(dialect, lambda: new_db(dialect), scale=0.03, seed=5))
    assert found.violations == []
    assert found.kills >= 12 and found.runs >= 30

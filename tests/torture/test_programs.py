"""The short form: a hundred random scripts on both databases, each killed at each of its commits."""

from __future__ import annotations

from yourturn.db.failpoints import POINTS

from . import Place
from .programs import explore


def test_scripts_that_are_killed_end_as_in_peace(dialect, new_db):
    found, kills = explore(Place(dialect, lambda: new_db(dialect), scale=0.1, seed=5))
    assert found.violations == []
    assert found.runs == 100 and found.kills > 900
    assert all(kills[f"{change}:{point}"] for change in ("step", "flag") for point in POINTS[:-1])
    assert {point.partition(":")[0] for point in kills} >= {"claim_next", "complete", "effect", "turn"}

"""A taste of the section `scripts`: a dozen random scripts on each database, killed again and again until they end."""

from __future__ import annotations

from yourturn.db.failpoints import POINTS

from . import Place
from .scripts import explore


def test_killed_scripts_end_as_undisturbed_ones(dialect, new_db):
    found, kills = explore(Place(dialect, lambda: new_db(dialect), scale=0.012, seed=5))
    assert found.violations == []
    assert found.runs == 12 and found.kills > 90
    assert all(kills[f"step:{point}"] for point in POINTS[:-1])
    assert any(kills[f"flag:{point}"] for point in POINTS[:-1])

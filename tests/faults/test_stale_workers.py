"""A taste of the section `stale_workers`: five late writes in ten situations, by processes that were really stopped."""

from __future__ import annotations

from . import Place
from .stale_workers import FEW, SITUATIONS, run


def test_a_stale_worker_is_refused(dialect, new_db):
    found = run(Place(dialect, lambda: new_db(dialect), scale=0.02, seed=5))
    assert found.violations == []
    assert found.runs == len(FEW) * len(SITUATIONS)

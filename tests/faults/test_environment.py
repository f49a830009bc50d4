"""A taste of the section `environment`: locked, full and damaged files; crashing servers; wrong clocks."""

from __future__ import annotations

from . import Place
from .environment import run


def test_environment_faults_are_reported_and_lose_nothing(dialect, new_db):
    found = run(Place(dialect, lambda: new_db(dialect), scale=0.02, seed=5))
    assert found.violations == []
    assert found.runs >= 10

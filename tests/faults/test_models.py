"""A taste of the section `models`: the same random walk every time, on both databases, and every cell of the table reached."""

from __future__ import annotations

import pytest

from tests.reference_model.coverage import ILLEGAL, LEGAL

from . import Place
from .models import explore


@pytest.mark.parametrize(("dialect", "scale"), [("sqlite", 0.06), ("postgres", 0.014)], ids=["sqlite", "postgres"])
def test_the_desk_equals_the_reference_model(dialect, scale, new_db):
    found, _, all_ = explore(Place(dialect, lambda: new_db(dialect), scale, seed=3))
    assert found.violations == []
    assert all_.legal() == LEGAL and all_.illegal() == ILLEGAL

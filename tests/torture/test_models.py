"""The short form: the same run every time, on both databases, and every cell of the table reached."""

from __future__ import annotations

from ..model.cells import ILLEGAL, LEGAL
from . import Place
from .models import explore


def test_two_machines_and_every_cell_of_the_table(dialect, new_db):
    found, chance, all_ = explore(Place(dialect, lambda: new_db(dialect), scale=0.16, seed=3))
    assert found.violations == []
    assert all_.legal() == LEGAL and all_.illegal() == ILLEGAL
    assert len(chance.legal()) >= 0.6 * len(LEGAL) and len(chance.illegal()) >= 0.6 * len(ILLEGAL), "chance reached too little"

"""Fixtures of the approval tests."""

from __future__ import annotations

import pytest


@pytest.fixture
def yes(desk):
    return lambda q: desk.approve(q["id"])


@pytest.fixture
def no(desk):
    return lambda q: desk.reject(q["id"], "Not on a Friday.")

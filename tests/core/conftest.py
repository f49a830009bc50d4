"""A bench: a desk with the tools to bring tasks into every state."""

from __future__ import annotations

import pytest

from .states import Bench


@pytest.fixture
def bench(desk, agent, clock) -> Bench:
    return Bench(desk, agent, clock)

"""Fixtures: workflows on a `Stage`, on both databases; the strict checks run after each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from yourturn.client import Client
from yourturn.strict import examine
from yourturn.testing import FakeClock, Stage


@pytest.fixture
def stage(desk: Client, clock: FakeClock) -> Iterator[Callable[..., Stage]]:
    def make(script: Any, agents: Any = None, person: Any = (), **more: Any) -> Stage:
        return Stage(script, agents, person, desk=desk, clock=clock, **more)

    yield make
    assert examine(desk) == []

"""Fixtures of the workflow tests, for tests of yourturn.testing."""

from tests.flow.conftest import stage

__all__ = ["stage"]

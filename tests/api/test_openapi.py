"""The document against the server, as each role: no bug and nothing undocumented. The long form is `make torture`, document."""

from __future__ import annotations

import logging

import pytest

from tests.api.openapi_fuzz import EVERYBODY, play

pytestmark = pytest.mark.long


@pytest.mark.parametrize("role", EVERYBODY)
def test_no_bug_and_nothing_undocumented(sqlite_site, role, caplog):
    """Each role takes a share of the operations."""
    caplog.set_level(logging.ERROR)
    seen = play(sqlite_site, role, share=EVERYBODY.index(role), examples=1)
    assert "a bug in the server" not in caplog.text
    assert set(seen) >= ({401} if role == "nobody" else {200, 422}), seen

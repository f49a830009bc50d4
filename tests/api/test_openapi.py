"""The OpenAPI document against the server, with generated requests as each role. The long form is `make torture`, document."""

from __future__ import annotations

import logging

import pytest

from tests.api.openapi_fuzz import EVERYBODY, play

pytestmark = pytest.mark.long


@pytest.mark.parametrize("role", EVERYBODY)
def test_fuzzed_requests_match_the_openapi_document(sqlite_site, role, caplog):
    """Each role takes a share of the operations."""
    caplog.set_level(logging.ERROR)
    seen = play(sqlite_site, role, share=EVERYBODY.index(role), examples=1)
    assert "a bug in the server" not in caplog.text
    assert set(seen) >= ({401} if role == "nobody" else {200, 422}), seen

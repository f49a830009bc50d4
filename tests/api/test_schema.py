"""The document against the server, with thousands of requests that nobody thought of: as each role, no bug and nothing undocumented."""

from __future__ import annotations

import logging

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.config import SchemathesisConfig

from tests.api.conftest import ROLES
from yourturn.api.document import document

load_all_checks()
WANTED = CHECKS.get_by_names(
    [
        "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
        "response_schema_conformance",
    ]
)  # fmt: skip
#: Streams last; what is said by a method's name has its own document, which is the client's.
LEFT_OUT = ("/api/events", "/api/changes")


def requests(role: str, examples: int):
    """Cases for every operation of the document, in turn."""
    schema = schemathesis.openapi.from_dict(document(), config=SchemathesisConfig())
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path not in LEFT_OUT:
            yield operation


@pytest.mark.parametrize("role", [*ROLES, "nobody"])
def test_no_bug_and_nothing_undocumented(sqlite_site, role, caplog):
    from hypothesis import given

    site = sqlite_site
    caplog.set_level(logging.ERROR)
    key = site.desk.create("Fuzz me")["key"]
    question = site.desk.ask(key, "Which?", blocking=False, default="x")["id"]
    headers = {"Authorization": f"Bearer {site.token(role)}"} if role != "nobody" else {}
    for operation in requests(role, 3):
        few = 4 if not operation.path.startswith("/api/desk") else 2

        @settings(
            max_examples=few, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(case=operation.as_strategy())
        def one(case):
            case.path_parameters = {"key": key, "id": question if "/questions/" in case.path else key, **{}}
            if "password" in case.path:
                return
            case.call_and_validate(base_url=site.url, headers=headers, checks=WANTED, timeout=20)

        one()
    assert "a bug in the server" not in caplog.text

"""The document against the server, with thousands of requests that nobody thought of: as each role, no bug and nothing undocumented."""

from __future__ import annotations

import logging
from collections import Counter

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.config import SchemathesisConfig

from tests.api.conftest import ROLES
from yourturn.api.document import document
from yourturn.api.routes import DEEDS

load_all_checks()
WANTED = CHECKS.get_by_names(
    [
        "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
        "response_schema_conformance",
    ]
)  # fmt: skip
EVERYBODY = (*ROLES, "nobody")
#: Streams last.
LEFT_OUT = ("/api/events", "/api/changes")


def requests(turn: int):
    """Every operation of the document: with what it asks for, and with something else; of what is many, each role takes a share."""
    schema = schemathesis.openapi.from_dict(document(), config=SchemathesisConfig())
    for at, found in enumerate(schema.get_all_operations()):
        operation, mine = found.ok(), at % len(EVERYBODY) == turn
        many = operation.path.startswith("/api/desk/") or operation.path.rpartition("/")[2] in DEEDS
        if operation.path in LEFT_OUT or (many and not mine):
            continue
        yield operation, GenerationMode.POSITIVE
        if mine and (operation.method == "post" or operation.query):
            yield operation, GenerationMode.NEGATIVE


@pytest.mark.parametrize("role", EVERYBODY)
def test_no_bug_and_nothing_undocumented(sqlite_site, role, caplog):
    site = sqlite_site
    caplog.set_level(logging.ERROR)
    key = site.desk.create("Fuzz me")["key"]
    question = site.desk.ask(key, "Which?", blocking=False, default="x")["id"]
    headers = {"Authorization": f"Bearer {site.token(role)}"} if role != "nobody" else {}
    seen: Counter[int] = Counter()
    names = {"key": key, "id": question}

    def play(operation, mode):
        @settings(
            max_examples=3, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(case=operation.as_strategy(generation_mode=mode))
        def one(case):
            if mode is GenerationMode.POSITIVE:
                known = names | ({} if "/questions/" in case.path else {"id": key})
                case.path_parameters = {name: known[name] for name in case.path_parameters or {}}
            reply = case.call_and_validate(base_url=site.url, headers=headers, checks=WANTED, timeout=20)
            seen[reply.status_code] += 1

        one()

    for operation, mode in requests(EVERYBODY.index(role)):
        play(operation, mode)
    assert "a bug in the server" not in caplog.text
    assert set(seen) >= ({401} if role == "nobody" else {200, 422}), seen

"""Generated requests for every operation of the OpenAPI document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.config import SchemathesisConfig

from tests.fixtures.server import ROLES, Site
from yourturn.api.openapi import document

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


def operations(share: int | None) -> Iterator[tuple[Any, GenerationMode]]:
    """Every operation of the document with valid and with invalid requests; or only every sixth, starting at `share`."""
    schema = schemathesis.openapi.from_dict(document(), config=SchemathesisConfig())
    for at, result in enumerate(schema.get_all_operations()):
        operation = result.ok()
        if operation.path in LEFT_OUT or share not in (None, at % len(EVERYBODY)):
            continue
        yield operation, GenerationMode.POSITIVE
        if operation.method == "post" or operation.query:
            yield operation, GenerationMode.NEGATIVE


def play(site: Site, role: str, *, share: int | None = None, examples: int = 3, chance: int | None = None) -> Counter[int]:
    """The count of each status. Raises for an undocumented or unexpected response. `chance`: a seed, for other requests each time."""
    key = site.desk.create("Fuzz me")["key"]
    question = site.desk.ask(key, "Which?", blocking=False, default="x")["id"]
    headers = {"Authorization": f"Bearer {site.token(role)}"} if role != "nobody" else {}
    seen: Counter[int] = Counter()
    usual = settings(
        max_examples=examples, deadline=None, database=None, derandomize=chance is None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip

    def tried(operation: Any, mode: GenerationMode) -> None:
        @given(case=operation.as_strategy(generation_mode=mode))
        def one(case: Any) -> None:
            if mode is GenerationMode.POSITIVE:
                ids = {"key": key, "id": question if "/questions/" in case.path else key}
                case.path_parameters = {name: ids[name] for name in case.path_parameters or {}}
            seen[case.call_and_validate(base_url=site.url, headers=headers, checks=WANTED, timeout=20).status_code] += 1

        usual(one if chance is None else seed(chance)(one))()

    for operation, mode in operations(share):
        tried(operation, mode)
    return seen

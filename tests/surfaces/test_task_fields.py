"""Every row of the table of task fields is on every surface that shows or takes fields, and every column has a row."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.argument_values import TASK
from yourturn.api.handlers import VERB_ROUTES
from yourturn.api.openapi import document
from yourturn.core.actions import VERBS
from yourturn.core.model import Task
from yourturn.core.task_fields import NEW, TASK_FIELDS, UPDATES
from yourturn.mcp import result_text, tool_schemas
from yourturn.web import board

#: Columns that no reply shows: ids, and the state of claims and of the log.
INTERNAL = {
    "id", "project_id", "return_state", "outcome", "parent_id", "holder", "claimed_by", "epoch", "claim_hash", "lease",
    "lease_expires_at", "due_at", "event_count", "event_head",
}  # fmt: skip


def test_every_column_is_a_field_or_internal():
    stored = {name for name, field in TASK_FIELDS.items() if field.stored}
    assert set(Task._fields) - INTERNAL == stored


def test_every_field_of_a_new_task_has_a_value_that_must_arrive():
    """Then test_arguments.py passes it through every surface that has the verb."""
    assert set(TASK) == set(NEW)


def test_a_reply_has_every_field(sqlite_site):
    key = sqlite_site.desk.create("Something")["key"]
    shown = sqlite_site.desk.show(key)
    assert set(shown) - {"follow_ups"} == set(TASK_FIELDS)
    assert sqlite_site.get(f"/api/tasks/{key}").json.keys() == shown.keys()


def test_the_openapi_document_has_every_field():
    schemas = document()["components"]["schemas"]
    assert [name for name, field in TASK_FIELDS.items() if field.shown is not None and name not in schemas["Task"]["properties"]] == []
    assert NEW.keys() <= schemas["NewTask"]["properties"].keys() and NEW.keys() <= VERBS["import"].args.keys()
    assert UPDATES.keys() <= VERB_ROUTES["update"].takes.keys()


def test_agents_see_the_fields_that_are_for_them():
    shown = {name for name, field in TASK_FIELDS.items() if field.agents}
    example: dict[str, Any] = dict.fromkeys(TASK_FIELDS, "") | {"questions": [], "notes": []}
    assert shown <= result_text.task(example).keys()
    children = tool_schemas.TOOLS["decompose_task"].schema["properties"]["children"]["items"]["properties"]
    assert {name for name, field in TASK_FIELDS.items() if field.child} <= children.keys()


@pytest.mark.parametrize("command", ["create", "update"])
def test_the_command_has_an_option_for_every_field(turn, command):
    options = set(re.findall(r"--[\w-]+", turn.run(command, "--help").stdout))
    own = {"title": "title", "labels": "label", "session_id": "session-id"}
    takes = NEW if command == "create" else {name: None for name in UPDATES if name not in ("host", "seat")}
    words = {f"--{own.get(name, name.replace('_', '-'))}" for name in takes} - ({"--title"} if command == "create" else set())
    assert words <= options


def test_the_form_of_a_new_task_takes_every_field_and_shows_the_plain_ones():
    form = (Path(board.__file__).parent / "templates" / "new_task.html").read_text()
    assert NEW.keys() <= set(board.FIELDS)
    assert board.PLAIN.keys() == {name for name, field in TASK_FIELDS.items() if field.label}
    assert "for name, label in plain.items()" in form

"""The contract is as its files say."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.contract.recording import told
from tests.db.processes import raw
from tests.fixtures.command import Turn

GOLDEN = Path(__file__).parent / "golden"


def same(name: str, found: str) -> None:
    file = GOLDEN / name
    if os.environ.get("GOLDEN") == "write":
        GOLDEN.mkdir(exist_ok=True)
        file.write_text(found)
    meant = "If that is meant: GOLDEN=write pytest tests/contract, and say it in CHANGELOG.md"
    assert file.read_text() == found, f"{name} differs. {meant}"


def as_json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def test_the_json_of_the_command_and_the_events(tmp_path: Path) -> None:
    same("commands.json", as_json(told(tmp_path)))


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="argparse lays help out otherwise in other versions of Python")
def test_the_help_of_every_command(tmp_path: Path) -> None:
    from yourturn.cli.command_table import COMMANDS

    turn = Turn(tmp_path)
    shown = [turn.run(*words, "--help", env={"COLUMNS": "120"}).stdout for words in ((), *((name,) for name in COMMANDS))]
    same("help.txt", "\n".join(shown))


def test_the_http_api() -> None:
    from yourturn.api.openapi import document

    parts = [(f"{part}.{name}", value) for part, found in document().items() for name, value in _items(found)]
    same("openapi.txt", "".join(f"{name} {json.dumps(value, ensure_ascii=False)}\n" for name, value in parts))


def _items(found: Any) -> list[tuple[str, Any]]:
    if not isinstance(found, dict):
        return [("", found)]
    deeper = all(isinstance(value, dict) for value in found.values())
    return [(f"{a}.{b}", one) for a, value in found.items() for b, one in value.items()] if deeper else list(found.items())


def test_the_tools_of_agents() -> None:
    from yourturn.mcp.tool_schemas import INSTRUCTIONS, TOOLS

    same("tools.json", as_json({"instructions": INSTRUCTIONS, "tools": [tool._asdict() for tool in TOOLS.values()]}))


#: What a PostgreSQL schema is made of, in an order of its own.
_POSTGRES = (
    "SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns "
    "WHERE table_schema = current_schema() ORDER BY 1, ordinal_position",
    "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint "
    "WHERE connamespace = current_schema()::regnamespace ORDER BY 1, 2",
    "SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema() ORDER BY 1",
    "SELECT pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
    "WHERE NOT tgisinternal AND c.relnamespace = current_schema()::regnamespace ORDER BY 1",
    "SELECT proname, regexp_replace(prosrc, '\\s+', ' ', 'g') FROM pg_proc "
    "WHERE pronamespace = current_schema()::regnamespace ORDER BY 1",
)


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_the_schema(dialect: str, address: str) -> None:
    with raw(address) as run:
        if dialect == "sqlite":
            lines = [str(row[0]) for row in run("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name")]
        else:
            here = next(iter(run("SELECT current_schema()")))[0]
            lines = [" | ".join(map(str, row)) for query in _POSTGRES for row in run(query)]
            lines = [re.sub(rf'"?{re.escape(here)}"?\.', "", line) for line in lines]
    same(f"schema.{dialect}.txt", "\n".join(lines) + "\n")

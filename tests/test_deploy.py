"""What `deploy/` and its page say can be typed: every line that begins with turn is understood by the command."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from yourturn.cli.command_table import COMMANDS
from yourturn.cli.parser import parser_for

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"


def said(text: str) -> list[list[str]]:
    """The words of each command, without comments; what stands for something of the reader's is left out."""
    bare = re.sub(r'\\?"|[\[\],]', " ", text)
    found = re.findall(r"(?:^|exec |bin/|server |&& |command: +|Of: ) *turn +([^#&\n`()]*)", bare, re.M)
    return [[word for word in line.split() if word != "…"] for line in found]


@pytest.mark.parametrize("page", [*sorted(DEPLOY.iterdir()), ROOT / "docs/deploy.md"], ids=lambda p: p.name)
def test_its_commands_are_understood(page):
    commands = said(page.read_text())
    assert commands or page.suffix == ".env"
    for words in commands:
        command = COMMANDS[words[0]]
        module = import_module(command.home)
        parser_for(words[0], command, getattr(module, f"{command.function}_args", None)).read(words[1:])


def test_compose_runs_a_database_a_server_and_a_worker():
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    assert set(services) == {"db", "server", "worker"}
    assert services["worker"]["environment"]["YOURTURN_URL"] == "http://server:8321"
    assert "--allow-host server" in services["server"]["command"][2], "or it would not answer to that name"
    names = set(re.findall(r"^(\w+)=", (DEPLOY / "example.env").read_text(), re.M))
    used = set(re.findall(r"\$\{(\w+)", (DEPLOY / "compose.yaml").read_text()))
    assert names == used

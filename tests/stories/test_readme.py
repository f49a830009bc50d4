"""The README's transcript happens as it is written, and every command it names exists."""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib
from pathlib import Path

from tests.fixtures.command import Turn
from yourturn.worker.agents import agent_for

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def _plain(text: str) -> str:
    """Without what differs from day to day: times, paths, secrets, the folder."""
    text = re.sub(r"PROJ-1\.1\.[0-9a-f…]+", "TOKEN", text)
    text = re.sub(r"at \S*\.yourturn/yourturn\.db", "at DB", text)
    return re.sub(r"\b(\d{4}-\d\d-\d\d )?\d{1,2}:\d\d\b", "TIME", text).strip()  # tomorrow has a date


def test_the_transcript(tmp_path: Path) -> None:
    turn = Turn(tmp_path)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)  # the folder of a project, as it says
    block = re.search(r"```console\n(.*?)```", README, re.S)
    assert block is not None
    shown = re.split(r"^\$ ", block[1], flags=re.M)[1:]
    assert len(shown) >= 6
    for part in shown:
        line, _, expected = part.partition("\n")
        done = turn.run(*shlex.split(line)[1:])
        assert done.returncode == 0, done.stderr
        assert _plain(done.stdout) == _plain(expected), line


def test_the_command_is_there_before_it_is_used() -> None:
    first = README.index("```console")
    assert 0 < README.index("make setup ") < README.index('export PATH="$PWD/.venv/bin:$PATH"') < first


def test_the_picture_is_there() -> None:
    picture = re.search(r"!\[[^\]]{20,}\]\((docs/\S+\.png)\)", README)
    assert picture is not None and README.index(picture[0]) < README.index("```console")
    found = Path(__file__).parents[2] / picture[1]
    assert found.read_bytes().startswith(b"\x89PNG") and 20_000 < found.stat().st_size < 400_000


def test_its_agent_ends_properly(here: Turn) -> None:
    """As it is written: one turn, and the task is done."""
    script = re.search(r"```sh\n(#!/bin/sh\n.*?)```", README, re.S)
    assert script is not None
    agent = here.folder / "agent.sh"
    agent.write_text(script[1])
    agent.chmod(0o755)
    here("create", "Add login")
    told = here("work", "--exec", "./agent.sh", "--drain")
    assert [(row["task"], row["outcome"]) for row in told["results"]] == [("PROJ-1", "done")]
    assert told["spent"]["iterations"] == 1 and here.state("PROJ-1") == "done"


def test_its_table_is_an_agent(tmp_path: Path) -> None:
    table = re.search(r"```toml\n(.*?)```", README, re.S)
    assert table is not None and "turn work --agent coder" in README
    (tmp_path / "claude").write_text("#!/bin/sh\n")
    (tmp_path / "claude").chmod(0o755)
    assert agent_for("coder", tomllib.loads(table[1]), path=str(tmp_path)).adapter == "claude"


def test_every_command_it_names_is_understood(here: Turn) -> None:
    lines = [line.split("#")[0] for block in re.findall(r"```sh\n(.*?)```", README, re.S) for line in block.splitlines()]
    named = {shlex.split(line)[1] for line in lines if line.startswith("turn ") and len(shlex.split(line)) > 1}
    assert len(named) >= 12
    for name in sorted(named):
        assert "usage: turn" in here.text(name, "--help")

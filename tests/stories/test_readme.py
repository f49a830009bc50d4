"""The README's transcript happens as it is written, and every command it names exists."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.stories.conftest import Turn

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def _plain(text: str) -> str:
    """Without what differs from day to day: times, paths, secrets, the folder."""
    text = re.sub(r"PROJ-1\.1\.[0-9a-f…]+", "TOKEN", text)
    text = re.sub(r"at \S*\.yourturn/yourturn\.db", "at DB", text)
    return re.sub(r"\b(\d{4}-\d\d-\d\d )?\d{1,2}:\d\d\b", "TIME", text).strip()  # tomorrow has a date


def test_the_transcript(tmp_path: Path) -> None:
    turn = Turn(tmp_path)
    block = re.search(r"```console\n(.*?)```", README, re.S)
    assert block is not None
    shown = re.split(r"^\$ ", block[1], flags=re.M)[1:]
    assert len(shown) >= 6
    for part in shown:
        line, _, expected = part.partition("\n")
        done = turn.run(*shlex.split(line)[1:])
        assert done.returncode == 0, done.stderr
        assert _plain(done.stdout) == _plain(expected), line


def test_every_command_it_names_is_understood(here: Turn) -> None:
    lines = [line.split("#")[0] for block in re.findall(r"```sh\n(.*?)```", README, re.S) for line in block.splitlines()]
    named = {shlex.split(line)[1] for line in lines if line.startswith("turn ") and len(shlex.split(line)) > 1}
    assert len(named) >= 12
    for name in sorted(named):
        assert "usage: turn" in here.text(name, "--help")

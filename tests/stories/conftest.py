"""Stories are told with the real command, one process per line, as people and agents use it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import forks

if TYPE_CHECKING:
    from tests.stories.crew import Crew
    from tests.stories.floor import Floor


class Turn:
    """turn("create", "Add login") runs the command and returns its JSON; turn.text(…) returns what a person reads."""

    def __init__(self, folder: Path, db: str | None = None) -> None:
        self.folder = folder
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("YOURTURN_")}
        self.env |= {"USER": "ana", "HOME": str(folder), **({"YOURTURN_DB": db} if db else {})}

    def run(self, *words: str, env: dict[str, str] | None = None, input: str | None = None) -> subprocess.CompletedProcess[str]:
        return forks.turn(words, self.folder, self.env | (env or {}), input)

    def __call__(self, *words: str, exit: int = 0, env: dict[str, str] | None = None, input: str | None = None) -> Any:
        done = self.run(*words, "--json", env=env, input=input)
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == exit, (words, done.returncode, done.stdout, done.stderr)
        if exit in (0, 7):
            return json.loads(done.stdout)
        assert done.stdout == ""
        error = json.loads(done.stderr)["error"]
        assert set(error) == {"code", "message", "hint"}
        return error

    def text(self, *words: str, exit: int = 0, env: dict[str, str] | None = None, input: str | None = None) -> str:
        done = self.run(*words, env=env, input=input)
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == exit, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout if exit in (0, 7) else done.stderr

    def as_agent(self, *words: str, exit: int = 0, name: str = "coder") -> Any:
        """The same line, said by a process that carries an agent's name."""
        return self(*words, exit=exit, env={"YOURTURN_AGENT": name})

    def state(self, key: str) -> str:
        return str(self("show", key)["state"])


@pytest.fixture
def turn(dialect: str, address: str, tmp_path: Path) -> Turn:
    """A desk with project PROJ, on both databases."""
    return Turn(tmp_path, address)


@pytest.fixture
def crew(turn: Turn, address: str, tmp_path: Path) -> Iterator[Crew]:
    """The same, with a worker at hand."""
    from tests.stories.crew import Crew

    found = Crew(tmp_path, address)
    yield found
    found.desk.close()


@pytest.fixture
def here(tmp_path: Path) -> Turn:
    """An embedded desk in a folder, made with `turn init`."""
    folder = tmp_path / "proj"
    folder.mkdir()
    found = Turn(folder)
    found("init", "--key", "PROJ")
    return found


@pytest.fixture
def editor(tmp_path: Path) -> Callable[[str], str]:
    """An $EDITOR that appends a text, as a person would."""

    def make(text: str) -> str:
        script = tmp_path / "editor.sh"
        script.write_text(f'#!/bin/sh\ncp "$1" {tmp_path}/seen.md\ncat >> "$1" <<\'EOF\'\n{text}\nEOF\n')
        script.chmod(0o755)
        return str(script)

    return make


@pytest.fixture
def floor(new_desk: Callable[[str], str], tmp_path: Path) -> Iterator[Floor]:
    """Runs that wait, on SQLite."""
    from tests.stories.crew import Crew
    from tests.stories.floor import Floor

    crew = Crew(tmp_path, new_desk("sqlite"))
    yield Floor(crew)
    crew.desk.close()


@pytest.fixture
def both(crew: Crew) -> Floor:
    """The same on either database."""
    from tests.stories.floor import Floor

    return Floor(crew)


@pytest.fixture
def works(floor: Floor) -> Floor:
    """The same, with agents that are commands and can be called here."""
    argv = json.dumps(["/bin/sh", str(floor.crew.place / "agent.sh")])
    names = ("architect", "coder")
    floor.crew.config("".join(f'[agents.{name}]\nadapter = "command"\nargv = {argv}\n' for name in names))
    return floor

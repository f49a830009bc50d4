"""Real repositories with a git configuration of their own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from yourturn.worker.git.worktrees import Workplace, prepare

B1, B2, B3 = "turn/PROJ-1-login", "turn/PROJ-2-tests", "turn/PROJ-3-docs"


class Repo:
    """A repository with a configured author, in a folder whose name is hard to quote."""

    def __init__(self, path: Path, *words: str) -> None:
        self.path = path
        path.mkdir(parents=True)
        self("init", "-q", "-b", "main", *words)

    def __call__(self, *words: str, at: str | Path | None = None) -> str:
        done = subprocess.run(["git", *words], cwd=at or self.path, capture_output=True)
        assert done.returncode == 0, (words, done.stderr)
        return os.fsdecode(done.stdout).rstrip("\n")

    def commit(self, message: str = "more", at: Path | None = None, **files: str) -> str:
        for name, text in files.items():
            ((at or self.path) / name).write_text(text)
        self("add", "-A", at=at)
        self("commit", "-qm", message, at=at)
        return self("rev-parse", "HEAD", at=at)

    def status(self, at: str | Path | None = None) -> list[str]:
        return self("status", "--porcelain", at=at).splitlines()

    def hook(self, name: str, script: str) -> None:
        path = self.path / ".git" / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)


@pytest.fixture(autouse=True)
def isolated_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A git configuration with one user, Ana, in a temporary home."""
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\n\tname = Ana\n\temail = ana@example.org\n")
    for name in [name for name in os.environ if name.startswith("GIT_") or name == "EMAIL"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    found = Repo(tmp_path / "Füße & so")
    found.commit("one", a="1\n", b="1\n")
    return found


def at(place: Workplace, name: str = "") -> Path:
    return Path(place.folder, name)


def worked(repo: Repo, key: str = "PROJ-1", branch: str = B1, **files: str) -> Workplace:
    place = prepare(repo.path, key, branch)
    for name, text in (files or {"a": "2\n"}).items():
        at(place, name).write_text(text)
    return place

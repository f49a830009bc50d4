"""Unfinished work survives a roll back, a deleted folder, and the move to another machine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.worker.git.conftest import B1, B2, at, worked
from yourturn.core.errors import Precondition
from yourturn.worker.git.worktrees import finish, patch_of, prepare, roll_back


# --- failing ------------------------------------------------------------------------------------------------------------
def test_rolling_back_keeps_everything(repo):
    place = prepare(repo.path, "PROJ-1", B1)
    repo.commit(at=at(place), a="committed\n")
    at(place, "b").write_text("staged\n")
    repo("add", "b", at=place.folder)
    at(place, "new").write_text("untracked\n")
    (repo.path / ".git/info/exclude").open("a").write("ignored\n")
    at(place, "ignored").write_text("stays\n")
    kept = roll_back(place, "PROJ-1")
    assert kept == "refs/yourturn/failed/PROJ-1-1"
    assert [repo("show", f"{kept}:{name}") for name in ("a", "b", "new")] == ["committed", "staged", "untracked"]
    assert repo.status(place.folder) == [] and repo("rev-parse", B1) == repo("rev-parse", "main")
    assert [at(place, name).exists() for name in ("new", "ignored")] == [False, True]
    assert roll_back(place, "PROJ-1") is None
    at(place, "a").write_text("again\n")
    assert roll_back(place, "PROJ-1") == "refs/yourturn/failed/PROJ-1-2"
    assert prepare(repo.path, "PROJ-1", B1) == place


# --- patches ------------------------------------------------------------------------------------------------------------
def test_a_deleted_worktree_is_rebuilt_from_branch_and_patch(repo):
    place = prepare(repo.path, "PROJ-1", B1)
    repo.commit(at=at(place), a="committed\n")
    at(place, "b").unlink()
    at(place, "crlf").write_bytes(b"one\r\ntwo\r\n")
    at(place, "latin").write_bytes("Grüße\n".encode("latin-1"))
    at(place, "data").write_bytes(bytes(range(256)) * 4)
    at(place, "run").write_text("#!/bin/sh\n")
    at(place, "run").chmod(0o755)
    at(place, "link").symlink_to("a")
    at(place, "empty").write_text("")
    patch = patch_of(place)
    assert patch.isprintable() or ("\r" not in patch and "\0" not in patch and patch.encode())
    assert repo.status(place.folder), "taking it changes nothing"
    subprocess.run(["rm", "-rf", place.folder], check=True)
    repo.commit(b="main goes on\n")
    assert prepare(repo.path, "PROJ-1", B1, patch=patch) == place
    assert repo.status(place.folder) == [" D b", "?? crlf", "?? data", "?? empty", "?? latin", "?? link", "?? run"]
    assert at(place, "a").read_text() == "committed\n"
    assert at(place, "latin").read_bytes() == "Grüße\n".encode("latin-1")
    assert at(place, "crlf").read_bytes() == b"one\r\ntwo\r\n"
    assert at(place, "data").read_bytes() == bytes(range(256)) * 4
    assert at(place, "run").stat().st_mode & 0o111 and os.readlink(at(place, "link")) == "a"
    assert patch_of(place) == patch


def test_change_of_equal_size_in_the_same_second_is_detected(repo):
    """Git detects changes by size and mtime, unless its index is as new as the file."""
    repo("config", "core.trustctime", "false")
    place = prepare(repo.path, "PROJ-1", B1)
    index = Path(repo("rev-parse", "--absolute-git-dir", at=place.folder), "index")
    at(place, "a").write_text("2\n")
    os.utime(at(place, "a"), (1_700_000_000, 1_700_000_000))
    repo("add", "a", at=place.folder)
    at(place, "a").write_text("3\n")
    for path in (at(place, "a"), index):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    assert "+3" in patch_of(place)


def test_another_machine_goes_on_with_the_patch(repo, tmp_path):
    repo("clone", "-q", str(repo.path), str(tmp_path / "elsewhere"))
    place = prepare(repo.path, "PROJ-1", B1)
    repo.commit(at=at(place), a="committed\n")
    at(place, "new").write_text("new\n")
    patch = patch_of(place)
    repo.commit(at=tmp_path / "elsewhere", b="went on there\n")
    there = prepare(tmp_path / "elsewhere", "PROJ-1", B1, patch=patch)
    assert repo.status(there.folder) == [" M a", "?? new"]
    assert at(there, "b").read_text() == "1\n", "on the commit where it began"
    assert finish(there, "x")["commit"]


def test_patch_whose_commits_are_missing(repo, tmp_path):
    repo("clone", "-q", str(repo.path), str(tmp_path / "elsewhere"))
    repo.commit(c="only here\n")
    place = prepare(repo.path, "PROJ-1", B1)
    at(place, "new").write_text("new\n")
    there = prepare(tmp_path / "elsewhere", "PROJ-1", B1, patch=patch_of(place))
    assert repo.status(there.folder) == ["?? new"] and not at(there, "c").exists()
    at(place, "c").write_text("changed\n")
    before = repo("for-each-ref", at=tmp_path / "elsewhere")
    with pytest.raises(Precondition, match="The unfinished work of PROJ-2 cannot be applied any more"):
        prepare(tmp_path / "elsewhere", "PROJ-2", B2, patch=patch_of(place))
    assert repo("for-each-ref", at=tmp_path / "elsewhere") == before
    assert not (tmp_path / "elsewhere/.yourturn/worktrees/PROJ-2").exists()


def test_an_old_patch_does_not_undo_newer_commits(repo):
    place = worked(repo, a="half\n")
    patch = patch_of(place)
    at(place, "a").write_text("whole\n")
    finish(place, "x")
    repo("worktree", "remove", place.folder)
    assert at(prepare(repo.path, "PROJ-1", B1, patch=patch), "a").read_text() == "whole\n"
    assert repo.status(place.folder) == []


def test_branch_pushed_by_another_machine(repo, tmp_path):
    finish(worked(repo), "x")
    repo("clone", "-q", str(repo.path), str(tmp_path / "elsewhere"))
    there = prepare(tmp_path / "elsewhere", "PROJ-1", B1)
    assert at(there, "a").read_text() == "2\n"
    assert "-1" in patch_of(there), "its work began where it left main"

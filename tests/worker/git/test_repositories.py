"""All sorts of repositories, and work in the checkout itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.worker.git.conftest import B1, B2, Repo, at, worked
from yourturn.core.errors import GitTrouble, Invalid, Precondition
from yourturn.worker.git import in_place
from yourturn.worker.git.command import git
from yourturn.worker.git.worktrees import Workplace, clean, finish, leave, patch_of, prepare, roll_back, worktrees


# --- repositories of all sorts ------------------------------------------------------------------------------------------
def test_a_folder_without_a_repository(tmp_path):
    place = prepare(tmp_path, "PROJ-1", B1, patch="whatever")
    assert place == Workplace(str(tmp_path), None, None, None, False)
    assert finish(place, "x", "ff") == {
        "commit": None, "merged": False, "url": None, "words": "There is no repository here: the files are as they were left.",
    }  # fmt: skip
    assert (roll_back(place, "PROJ-1"), patch_of(place), worktrees(tmp_path), clean(tmp_path, bool)) == (None, "", [], [])
    leave(place)


def test_without_git(repo, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert prepare(repo.path, "PROJ-1", B1).repo is None


def test_a_folder_that_its_repository_ignores(repo):
    (repo.path / ".gitignore").write_text("scratch/\n")
    (repo.path / "scratch").mkdir()
    assert prepare(repo.path / "scratch", "PROJ-1", B1).repo is None


def test_the_first_commit(tmp_path):
    repo = Repo(tmp_path / "new")
    (repo.path / "mine").write_text("mine\n")
    place = prepare(repo.path, "PROJ-1", B1)
    assert (place.folder, place.branch, place.own) == (str(repo.path), "main", False)
    assert finish(place, "x")["commit"] is None, "the agent did nothing"
    place = prepare(repo.path, "PROJ-1", B1)
    at(place, "new").write_text("new\n")
    at(place, "mine").write_text("changed\n")
    assert "+changed" in patch_of(place)
    kept = roll_back(place, "PROJ-1")
    assert (repo.path / "mine").read_text() == "mine\n" and not at(place, "new").exists()
    assert repo("show", f"{kept}:new") == "new" and repo.status() == ["?? mine"]
    place = prepare(repo.path, "PROJ-1", B1)
    at(place, "new").write_text("new\n")
    done = finish(place, "First")
    assert repo("rev-parse", "main") == done["commit"]
    assert prepare(repo.path, "PROJ-2", B2).own


def test_a_bare_repository(repo, tmp_path):
    bare = tmp_path / "bare.git"
    repo("clone", "-q", "--bare", str(repo.path), str(bare))
    place = prepare(bare, "PROJ-1", B1)
    at(place, "a").write_text("2\n")
    assert finish(place, "x", "ff")["merged"] and repo("show", "main:a", at=bare) == "2"
    assert [row["removed"] for row in clean(bare, lambda key: True)] == [True]
    with pytest.raises(Invalid, match="bare"):
        prepare(bare, "PROJ-2", B2, in_place=True)


def test_nested_repositories_are_left_out_and_left_alone(repo):
    place = worked(repo)
    for name in ("empty one", "deep/full"):
        Repo(at(place, name))
    repo.commit(at=at(place, "deep/full"), x="1")
    at(place, "deep/file").write_text("x")
    done = finish(place, "x")
    assert "Left out: deep/full, empty one, a repository of its own." in done["words"]
    assert repo("ls-tree", "-r", "--name-only", B1).split() == ["a", "b", "deep/file"]
    at(place, "deep/file").write_text("y")
    assert patch_of(place) and roll_back(place, "PROJ-1")
    assert at(place, "deep/full/x").exists()
    row = clean(repo.path, lambda key: True)[0]
    assert (row["removed"], row["why"]) == (False, "2 files are not committed: deep/full, empty one")


def test_submodules_are_not_broken(repo, tmp_path):
    part = Repo(tmp_path / "part")
    part.commit(p="1\n")
    repo("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(part.path), "part")
    before = repo.commit("with a part")
    repo("config", "submodule.recurse", "true")
    place = worked(repo)
    done = finish(place, "x", "ff")
    assert done["merged"] and repo("rev-parse", f"{B1}:part") == repo("rev-parse", f"{before}:part")
    repo("-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", at=place.folder)
    assert clean(repo.path, lambda key: True)[0]["why"].startswith("it has submodules of its own")


def test_ten_thousand_new_files(repo):
    place = prepare(repo.path, "PROJ-1", B1)
    for n in range(100):
        at(place, f"d{n}").mkdir()
    for n in range(10_000):
        at(place, f"d{n % 100}/f{n}").touch()
    assert finish(place, "x")["commit"] and repo("ls-tree", "-r", "--name-only", B1).count("\n") == 10_001


# --- in the checkout itself ---------------------------------------------------------------------------------------------
def test_in_place_one_task_at_a_time(repo):
    start = repo("rev-parse", "HEAD")
    place = prepare(repo.path, "PROJ-1", B1, in_place=True)
    assert place == Workplace(str(repo.path), "main", start, str(repo.path), False)
    with pytest.raises(Precondition, match="PROJ-1 is being worked on in"):
        prepare(repo.path, "PROJ-2", B2, in_place=True)
    at(place, "a").write_text("half\n")
    patch = patch_of(place)
    leave(place)
    with pytest.raises(Precondition, match="holds unfinished work of PROJ-1: a"):
        prepare(repo.path, "PROJ-2", B2, in_place=True)
    assert prepare(repo.path, "PROJ-1", B1, in_place=True, patch=patch) == place and at(place, "a").read_text() == "half\n"
    done = finish(place, "Half and half")
    assert (repo("rev-parse", "main"), done["merged"]) == (done["commit"], True)
    place = prepare(repo.path, "PROJ-2", B2, in_place=True)
    at(place, "new").write_text("x")
    assert roll_back(place, "PROJ-2") == "refs/yourturn/failed/PROJ-2-1"
    assert repo.status() == [] and repo("rev-parse", "main") == done["commit"]
    assert not in_place._locks


def test_in_place_refuses_a_persons_changes(repo):
    (repo.path / "mine").write_text("x")
    with pytest.raises(Precondition, match="has changes that are not committed: mine"):
        prepare(repo.path, "PROJ-1", B1, in_place=True)
    (repo.path / "mine").unlink()
    leave(prepare(repo.path, "PROJ-1", B1, in_place=True))


def test_in_place_roll_back_keeps_a_persons_commits(repo):
    start = repo("rev-parse", "HEAD")
    place = prepare(repo.path, "PROJ-1", B1, in_place=True)
    repo.commit("the agent's", a="2\n")
    at(place, "b").write_text("half\n")
    leave(place)
    place = prepare(repo.path, "PROJ-1", B1, in_place=True)
    assert place.base == start, "nobody was there"
    leave(place)
    theirs = repo.commit("a person's", c="1\n")
    place = prepare(repo.path, "PROJ-1", B1, in_place=True)
    at(place, "new").write_text("x")
    assert roll_back(place, "PROJ-1") and repo("rev-parse", "main") == theirs


def test_in_place_with_a_detached_head(repo):
    repo("switch", "-q", "--detach")
    place = prepare(repo.path, "PROJ-1", B1, in_place=True)
    at(place, "a").write_text("2\n")
    done = finish(place, "x")
    assert place.branch is None and f"git branch NAME {done['commit'][:10]}" in done["words"]
    place = prepare(repo.path, "PROJ-1", B1, in_place=True)
    at(place, "a").write_text("3\n")
    assert roll_back(place, "PROJ-1") and (repo.path / "a").read_text() == "2\n"


def test_in_place_lock_ends_with_a_killed_worker(repo):
    script = """
import os, sys; from pathlib import Path; from yourturn.worker.git.worktrees import prepare
root = Path(sys.argv[1]); prepare(root, "PROJ-1", "turn/PROJ-1", in_place=True); (root / "half").touch(); os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", script, str(repo.path)]).returncode == -9
    leave(prepare(repo.path, "PROJ-1", B1, in_place=True))


# --- what git says ------------------------------------------------------------------------------------------------------
def test_git_errors_have_a_cause_and_gits_output(repo, tmp_path):
    (tmp_path / "plain").mkdir()
    with pytest.raises(GitTrouble) as error:
        git(str(tmp_path / "plain"), "log")
    assert error.value.message.startswith("The history could not be read in ") and error.value.hint
    assert error.value.reason.startswith("this is not a git repository (any more) (git: not a git repository")
    with pytest.raises(GitTrouble) as error:
        git(str(repo.path), "read-tree", "nowhere")
    assert error.value.reason == "git: Not a valid object name nowhere"


def test_output_of_a_hook_is_quoted(repo):
    repo.hook("pre-commit", "echo 'the linter is not happy' >&2; exit 1")
    place = worked(repo)
    with pytest.raises(Precondition) as error:
        finish(place, "x")
    assert error.value.reason == "the linter is not happy"

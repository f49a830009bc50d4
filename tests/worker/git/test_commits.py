"""Commits and their delivery, with all sorts of hooks, authors and settings."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.worker.git.conftest import B1, B2, B3, Repo, at, worked
from yourturn.core.errors import GitTrouble, Invalid, Precondition
from yourturn.worker.git import worktrees
from yourturn.worker.git.worktrees import finish, patch_of, prepare


# --- merging ------------------------------------------------------------------------------------------------------------
def test_fast_forward_moves_the_checkout_too(repo):
    (repo.path / "untracked").write_text("mine")
    done = finish(worked(repo), "x", "ff")
    assert (done["merged"], repo("rev-parse", "main")) == (True, done["commit"])
    assert (repo.path / "a").read_text() == "2\n"
    assert repo.status() == ["?? untracked"]


def test_fast_forward_of_a_branch_that_is_not_checked_out(repo):
    repo("switch", "-qc", "wip")
    done = finish(worked(repo), "x", "ff")
    assert (done["merged"], repo("rev-parse", "main")) == (True, done["commit"])
    assert (repo.path / "a").read_text() == "1\n"


def test_fast_forward_never_touches_a_dirty_checkout(repo):
    (repo.path / "b").write_text("mine\n")
    done = finish(worked(repo), "x", "ff")
    assert not done["merged"] and f"git -C '{repo.path}' merge {B1}" in done["words"]
    assert "uncommitted changes" in done["words"] and repo("rev-parse", "main") != done["commit"]
    repo("checkout", "-q", "b")
    (repo.path / "new").write_text("mine\n")
    done = finish(worked(repo, "PROJ-2", B2, new="theirs\n"), "x", "ff")
    assert not done["merged"] and "would be overwritten" in done["words"]
    assert (repo.path / "new").read_text() == "mine\n"


def test_merge_is_fast_forward_only(repo):
    place = worked(repo)
    repo.commit(b="main goes on\n")
    done = finish(place, "x", "ff")
    assert not done["merged"] and "main has moved on. Next: git switch main && git merge" in done["words"]
    with pytest.raises(Invalid, match="'squash' is not a way to merge"):
        finish(place, "x", "squash")


def test_a_pull_request(repo, tmp_path, monkeypatch):
    assert "the repository has no remote" in finish(worked(repo), "x", "pr")["words"]
    repo("clone", "-q", "--bare", str(repo.path), str(tmp_path / "server.git"))
    repo("remote", "add", "origin", str(tmp_path / "server.git"))
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "git").symlink_to(subprocess.run(["which", "git"], capture_output=True, text=True).stdout.strip())
    monkeypatch.setenv("PATH", f"{tools}:/bin")
    if not any(Path(folder, "gh").exists() for folder in (tools, "/bin")):
        done = finish(worked(repo, "PROJ-2", B2), "x", "pr")
        assert "Pushed to origin" in done["words"] and repo("rev-parse", B2, at=tmp_path / "server.git") == done["commit"]
    gh = tools / "gh"
    gh.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > "{tmp_path}/asked"\necho https://example.org/pull/7\n')
    gh.chmod(0o755)
    done = finish(worked(repo, "PROJ-3", B3), "Write docs\n\nAll of them.", "pr")
    assert (done["url"], done["merged"]) == ("https://example.org/pull/7", False)
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == ["pr", "create", "--head", B3, "--base", "main", "--title=Write docs", "--body=All of them."]
    repo("remote", "set-url", "origin", str(tmp_path / "gone.git"))
    done = finish(worked(repo, "PROJ-4", "turn/PROJ-4"), "x", "pr")
    assert done["commit"] and done["words"].count("Not pushed:") == 1


# --- hooks, names, settings ---------------------------------------------------------------------------------------------
def test_a_hook_that_refuses_loses_nothing(repo):
    repo.hook("pre-commit", 'grep -q 2 a && { echo "no twos, please" >&2; exit 1; }; exit 0')
    place = worked(repo, a="2\n", new="x")
    with pytest.raises(Precondition) as caught:
        finish(place, "x")
    assert caught.value.reason == "no twos, please" and "Nothing is lost" in caught.value.hint
    assert at(place, "a").read_text() == "2\n" and at(place, "new").exists()
    at(place, "a").write_text("3\n")
    assert finish(place, "x")["commit"]


def test_background_process_of_a_hook_does_not_block(repo):
    repo.hook("post-commit", f"sleep 600 & echo $! > '{repo.path}/.git/left'")
    try:
        assert finish(worked(repo), "x")["commit"]
    finally:
        os.kill(int((repo.path / ".git/left").read_text()), 9)


def test_hanging_git_call_is_killed(repo):
    from yourturn.worker.git.command import attempt

    repo("config", "alias.hang", f"!echo $$ > '{repo.path}/.git/pid'; sleep 600")
    with pytest.raises(GitTrouble, match="took too long"):
        attempt(str(repo.path), "hang", limit=0.5)
    left = subprocess.run(
        ["ps", "-o", "stat=", "-p", (repo.path / ".git/pid").read_text().strip()], capture_output=True, text=True
    )
    assert left.stdout.strip()[:1] in ("", "Z"), "what it had started is ended with it"


def test_commit_without_a_configured_author(repo, tmp_path, monkeypatch):
    config = tmp_path / "home/.gitconfig"
    config.write_text("")
    before = (repo.path / ".git/config").read_text()
    assert set(worktrees.identity(str(repo.path)).values()) == {"Yourturn", "yourturn@localhost"}
    done = finish(worked(repo), "x")
    who = repo("log", "-1", "--format=%an <%ae>, %cn <%ce>", done["commit"])
    assert who == "Yourturn <yourturn@localhost>, Yourturn <yourturn@localhost>"
    assert ((repo.path / ".git/config").read_text(), config.read_text()) == (before, "")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Ben")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "ben@example.org")
    done = finish(worked(repo, "PROJ-2", B2), "x")
    assert repo("log", "-1", "--format=%an <%ae>, %cn", done["commit"]) == "Ben <ben@example.org>, Yourturn"


def test_failed_signing_is_reported_and_commits_unsigned(repo):
    repo("config", "commit.gpgsign", "true")
    repo("config", "gpg.program", "/bin/false")
    done = finish(worked(repo), "x")
    assert done["commit"] and "It is not signed" in done["words"]


def test_personal_settings_and_hook_environment_are_ignored(repo, tmp_path, monkeypatch):
    other = Repo(tmp_path / "other")
    other.commit("other", c="1")
    for name, value in {
        "diff.noprefix": "true", "diff.external": "/bin/false", "color.ui": "always", "core.pager": "false", "diff.context": "0",
        "status.showUntrackedFiles": "no", "apply.whitespace": "error", "diff.renames": "copies", "core.editor": "false",
        "commit.verbose": "true", "commit.cleanup": "strip", "merge.ff": "false", "diff.submodule": "log",
        "diff.mnemonicPrefix": "yes", "commit.template": "/nowhere", "push.default": "nothing",
    }.items():  # fmt: skip
        repo("config", name, value)
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.path))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.path / ".git/index"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "/bin/false")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    place = worked(repo, a="2  \n", new="x")
    patch = patch_of(place)
    assert "diff --git a/new b/new" in patch
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name)
    repo("worktree", "remove", "--force", place.folder)
    assert prepare(repo.path, "PROJ-1", B1, patch=patch) == place
    assert at(place, "a").read_text() == "2  \n" and at(place, "new").exists()
    done = finish(place, "# Add", "ff")
    assert done["merged"] and repo("log", "-1", "--format=%s") == "# Add"
    assert repo("for-each-ref", at=other.path).count("\n") == 0

"""Git care, with real repositories: each task has its place, a question touches nothing, and nothing is ever lost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from yourturn.core.errors import GitTrouble, Invalid, Precondition
from yourturn.worker import gitwork, inplace
from yourturn.worker.gitwork import Workplace, clean, finish, leave, patch_of, prepare, roll_back, worktrees

B1, B2, B3 = "turn/PROJ-1-login", "turn/PROJ-2-tests", "turn/PROJ-3-docs"


class Repo:
    """A repository of somebody who has a name, in a folder whose name is hard to quote."""

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
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which git knows nobody but Ana, and she only where a test says so."""
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


# --- a place of its own -------------------------------------------------------------------------------------------------


def test_a_task_gets_a_worktree_and_a_branch(repo):
    place = prepare(repo.path, "PROJ-1", B1)
    assert place == Workplace(str(repo.path / ".yourturn/worktrees/PROJ-1"), B1, "main", str(repo.path), True)
    assert repo("branch", "--show-current", at=place.folder) == B1
    assert at(place, "a").read_text() == "1\n"
    assert repo.status() == [], "the person's checkout shows nothing of it"
    assert not (repo.path / ".gitignore").exists()


def test_the_desks_folder_holds_the_worktrees(repo):
    (repo.path / "app" / ".yourturn").mkdir(parents=True)
    repo.commit(**{"app/x": "1"})
    place = prepare(repo.path / "app", "PROJ-1", B1)
    assert place.folder == str(repo.path / "app/.yourturn/worktrees/PROJ-1/app"), "in the same folder of the checkout"
    assert at(place, "x").read_text() == "1"
    assert repo.status() == []


def test_signals_are_never_committed(repo):
    place = prepare(repo.path, "PROJ-1", B1)
    at(place, ".agents/signals").mkdir(parents=True)
    at(place, ".agents/signals/coder.json").write_text("{}")
    assert finish(place, "x")["commit"] is None


def test_partial_work_is_there_when_the_task_resumes(repo):
    place = prepare(repo.path, "PROJ-1", B1)
    at(place, "a").write_text("half\n")
    at(place, "new").write_text("new\n")
    repo("add", "a", at=place.folder)
    before = repo.status(place.folder)
    leave(place)
    repo.commit(a="main goes on\n")
    assert prepare(repo.path, "PROJ-1", B1, needs=[B2], patch="nonsense") == place
    assert repo.status(place.folder) == before == ["M  a", "?? new"]
    assert at(place, "a").read_text() == "half\n"


def test_finish_commits_everything_on_the_branch(repo):
    place = prepare(repo.path, "PROJ-1", B1)
    at(place, "a").unlink()
    at(place, "-n").write_text("a name like an option")
    at(place, "ünïcode \n x").write_text("x")
    at(place, "link").symlink_to("nowhere")
    at(place, "sub").mkdir()
    at(place, "sub/data.bin").write_bytes(bytes(range(256)))
    done = finish(place, "Add login\n\n# not a comment")
    assert done["words"] == f"Committed {done['commit'][:10]} on {B1}. Next: git merge {B1}"
    assert (done["merged"], done["url"]) == (False, None)
    assert repo("rev-parse", B1) == done["commit"]
    assert repo.status(place.folder) == []
    names = repo("ls-tree", "-rz", "--name-only", B1).split("\0")
    assert sorted(filter(None, names)) == sorted(["-n", "b", "link", "sub/data.bin", "ünïcode \n x"])
    assert repo("log", "-1", "--format=%B%an", B1) == "Add login\n\n# not a comment\nAna"
    assert repo("rev-parse", "main") != done["commit"]


def test_nothing_to_commit_is_said(repo):
    place = prepare(repo.path, "PROJ-1", B1)
    assert finish(place, "x") == {"commit": None, "merged": False, "url": None, "words": "Nothing was changed."}


def test_an_agent_that_commits_by_itself(repo):
    place = prepare(repo.path, "PROJ-1", B1)
    own = repo.commit(at=at(place), a="2\n")
    assert finish(place, "x")["commit"] == own


@pytest.mark.parametrize("switch", [("switch", "-qc", "feature"), ("switch", "-q", "--detach")])
def test_an_agent_that_stands_elsewhere_is_brought_home(repo, switch):
    place = prepare(repo.path, "PROJ-1", B1)
    repo(*switch, at=place.folder)
    at(place, "a").write_text("2\n")
    done = finish(place, "x")
    assert repo("rev-parse", B1) == done["commit"]
    assert repo("branch", "--show-current", at=place.folder) == B1


def test_two_ways_are_not_silently_one(repo):
    place = prepare(repo.path, "PROJ-1", B1)
    repo.commit(at=at(place), a="2\n")
    repo("switch", "-qc", "other", "main", at=place.folder)
    at(place, "b").write_text("2\n")
    with pytest.raises(Precondition, match="is on other, not on turn/PROJ-1-login"):
        finish(place, "x")
    assert "b" in repo("show", "--name-only", "--format=", "other")


def test_conflicts_and_rebases_are_never_committed(repo):
    place = prepare(repo.path, "PROJ-1", B1)
    repo.commit(at=at(place), a="mine\n")
    repo.commit(a="theirs\n")
    subprocess.run(["git", "merge", "-q", "main"], cwd=place.folder, capture_output=True)
    with pytest.raises(Precondition, match=r"Conflicts are left in .*: a$"):
        finish(place, "x")
    assert repo.status(place.folder) == ["UU a"]
    at(place, "a").write_text("both\n")
    repo("add", "a", at=place.folder)
    assert len(repo("log", "-1", "--format=%P", finish(place, "x")["commit"]).split()) == 2
    repo.commit(a="again\n")
    subprocess.run(["git", "rebase", "-q", "main"], cwd=place.folder, capture_output=True)
    with pytest.raises(Precondition, match="rebase"):
        finish(place, "x")
    kept = roll_back(place, "PROJ-1")
    assert kept and repo.status(place.folder) == []
    assert repo("branch", "--show-current", at=place.folder) == B1


# --- built on others ------------------------------------------------------------------------------------------------------


def test_a_task_is_based_on_what_it_waited_for(repo):
    for key, branch, name in (("PROJ-1", B1, "x"), ("PROJ-2", B2, "y")):
        place = prepare(repo.path, key, branch)
        at(place, name).write_text(name)
        finish(place, name)
    repo("config", "merge.ff", "only")
    place = prepare(repo.path, "PROJ-3", B3, needs=[B1, B2, "turn/never-was", B3])
    assert at(place, "x").exists() and at(place, "y").exists()
    assert patch_of(place) == "", "what others did is not this task's work"
    assert finish(place, "x")["commit"] is None
    at(place, "z").write_text("z")
    assert roll_back(place, "PROJ-3") == "refs/yourturn/failed/PROJ-3-1"
    assert at(place, "x").exists() and not at(place, "z").exists()


def test_branches_that_do_not_fit_are_named_with_their_files(repo):
    for key, branch in (("PROJ-1", B1), ("PROJ-2", B2)):
        place = prepare(repo.path, key, branch)
        at(place, "a").write_text(key)
        finish(place, key)
    before = (repo("worktree", "list"), repo("for-each-ref"))
    with pytest.raises(Precondition) as caught:
        prepare(repo.path, "PROJ-3", B3, needs=[B1, B2])
    assert caught.value.message == "PROJ-3 cannot start: what it depends on does not fit together"
    assert caught.value.reason == f"{B2} conflicts in a"
    assert (repo("worktree", "list"), repo("for-each-ref")) == before, "as if nobody had tried"
    repo("switch", "-qc", B3, B1)
    repo("merge", "-q", "-s", "ours", "--no-edit", B2)
    with pytest.raises(Precondition, match=f"The branch {B3} is checked out at"):
        prepare(repo.path, "PROJ-3", B3, needs=[B1, B2])
    repo("switch", "-q", "main")
    assert at(prepare(repo.path, "PROJ-3", B3, needs=[B1, B2]), "a").read_text() == "PROJ-1"


def test_the_default_branch(repo, tmp_path):
    repo("switch", "-qc", "wip")
    repo.commit(a="wip\n")
    assert at(prepare(repo.path, "PROJ-1", B1), "a").read_text() == "1\n", "main, wherever the checkout stands"
    assert prepare(repo.path, "PROJ-2", B2, base="wip").base == "wip"
    with pytest.raises(Precondition, match="no branch or commit 'nope'"):
        prepare(repo.path, "PROJ-3", B3, base="nope")
    repo("branch", "-m", "main", "stable")
    assert prepare(repo.path, "PROJ-3", B3).base == "wip", "failing main and master, where the checkout stands"
    repo("clone", "-q", "-b", "wip", str(repo.path), str(tmp_path / "clone"))
    repo("remote", "set-head", "origin", "stable", at=tmp_path / "clone")
    assert prepare(tmp_path / "clone", "PROJ-9", "turn/PROJ-9").base == "origin/stable", "the remote's"
    repo("switch", "-q", "--detach", at=tmp_path / "clone")
    repo("remote", "remove", "origin", at=tmp_path / "clone")
    repo("branch", "-D", "wip", at=tmp_path / "clone")
    assert prepare(tmp_path / "clone", "PROJ-8", "turn/PROJ-8").base == repo("rev-parse", "HEAD", at=tmp_path / "clone")


# --- merging ---------------------------------------------------------------------------------------------------------------


def worked(repo: Repo, key: str = "PROJ-1", branch: str = B1, **files: str) -> Workplace:
    place = prepare(repo.path, key, branch)
    for name, text in (files or {"a": "2\n"}).items():
        at(place, name).write_text(text)
    return place


def test_fast_forward_moves_the_checkout_too(repo):
    (repo.path / "untracked").write_text("mine")
    done = finish(worked(repo), "x", "ff")
    assert (done["merged"], repo("rev-parse", "main")) == (True, done["commit"])
    assert (repo.path / "a").read_text() == "2\n"
    assert repo.status() == ["?? untracked"]


def test_fast_forward_of_a_branch_that_nobody_looks_at(repo):
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


def test_fast_forward_only(repo):
    place = worked(repo)
    repo.commit(b="main goes on\n")
    done = finish(place, "x", "ff")
    assert not done["merged"] and "main has moved on. Next: git switch main && git merge" in done["words"]
    with pytest.raises(Invalid, match="'squash' is no way to merge"):
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


# --- hooks, names, settings ------------------------------------------------------------------------------------------------


def test_a_hook_that_refuses_loses_nothing(repo):
    repo.hook("pre-commit", 'grep -q 2 a && { echo "no twos, please" >&2; exit 1; }; exit 0')
    place = worked(repo, a="2\n", new="x")
    with pytest.raises(Precondition) as caught:
        finish(place, "x")
    assert caught.value.reason == "no twos, please" and "Nothing is lost" in caught.value.hint
    assert at(place, "a").read_text() == "2\n" and at(place, "new").exists()
    at(place, "a").write_text("3\n")
    assert finish(place, "x")["commit"]


def test_a_hook_that_leaves_something_running_does_not_hold_us(repo):
    repo.hook("post-commit", f"sleep 600 & echo $! > '{repo.path}/.git/left'")
    try:
        assert finish(worked(repo), "x")["commit"]
    finally:
        os.kill(int((repo.path / ".git/left").read_text()), 9)


def test_a_call_that_hangs_is_ended(repo):
    from yourturn.worker.git import attempt

    repo("config", "alias.hang", f"!echo $$ > '{repo.path}/.git/pid'; sleep 600")
    with pytest.raises(GitTrouble, match="took too long"):
        attempt(str(repo.path), "hang", limit=0.5)
    left = subprocess.run(
        ["ps", "-o", "stat=", "-p", (repo.path / ".git/pid").read_text().strip()], capture_output=True, text=True
    )
    assert left.stdout.strip()[:1] in ("", "Z"), "what it had started is ended with it"


def test_without_a_name_there_is_still_an_author(repo, tmp_path, monkeypatch):
    config = tmp_path / "home/.gitconfig"
    config.write_text("")
    before = (repo.path / ".git/config").read_text()
    assert set(gitwork.identity(str(repo.path)).values()) == {"Yourturn", "yourturn@localhost"}
    done = finish(worked(repo), "x")
    who = repo("log", "-1", "--format=%an <%ae>, %cn <%ce>", done["commit"])
    assert who == "Yourturn <yourturn@localhost>, Yourturn <yourturn@localhost>"
    assert ((repo.path / ".git/config").read_text(), config.read_text()) == (before, "")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Ben")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "ben@example.org")
    done = finish(worked(repo, "PROJ-2", B2), "x")
    assert repo("log", "-1", "--format=%an <%ae>, %cn", done["commit"]) == "Ben <ben@example.org>, Yourturn"


def test_signing_that_fails_is_said_and_does_not_stop_the_work(repo):
    repo("config", "commit.gpgsign", "true")
    repo("config", "gpg.program", "/bin/false")
    done = finish(worked(repo), "x")
    assert done["commit"] and "It is not signed" in done["words"]


def test_settings_for_eyes_and_a_calling_hooks_environment_do_not_matter(repo, tmp_path, monkeypatch):
    other = Repo(tmp_path / "other")
    other.commit("other", c="1")
    for name, value in {
        "diff.noprefix": "true", "diff.external": "/bin/false", "color.ui": "always", "core.pager": "false", "diff.context": "0",
        "status.showUntrackedFiles": "no", "apply.whitespace": "error", "diff.renames": "copies", "core.editor": "false",
        "commit.verbose": "true", "commit.cleanup": "strip", "merge.ff": "false", "diff.submodule": "log", "status.branch": "true",
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


# --- failing ---------------------------------------------------------------------------------------------------------------


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


# --- patches ----------------------------------------------------------------------------------------------------------------


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


def test_a_change_of_the_same_size_in_the_same_second_is_seen(repo):
    """Git takes a file for unchanged by its size and time, unless its own index is as young as the file."""
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


def test_a_patch_on_commits_that_are_not_here(repo, tmp_path):
    repo("clone", "-q", str(repo.path), str(tmp_path / "elsewhere"))
    repo.commit(c="only here\n")
    place = prepare(repo.path, "PROJ-1", B1)
    at(place, "new").write_text("new\n")
    there = prepare(tmp_path / "elsewhere", "PROJ-1", B1, patch=patch_of(place))
    assert repo.status(there.folder) == ["?? new"] and not at(there, "c").exists()
    at(place, "c").write_text("changed\n")
    before = repo("for-each-ref", at=tmp_path / "elsewhere")
    with pytest.raises(Precondition, match="The unfinished work of PROJ-2 does not fit any more"):
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


def test_a_branch_that_was_pushed_from_elsewhere(repo, tmp_path):
    finish(worked(repo), "x")
    repo("clone", "-q", str(repo.path), str(tmp_path / "elsewhere"))
    there = prepare(tmp_path / "elsewhere", "PROJ-1", B1)
    assert at(there, "a").read_text() == "2\n"
    assert "-1" in patch_of(there), "its work began where it left main"


# --- killed in the middle, and in the way --------------------------------------------------------------------------------------


@pytest.mark.parametrize("branch_exists", [False, True])
def test_a_worktree_that_was_never_finished_making_is_made_again(repo, branch_exists):
    path = repo.path / ".yourturn/worktrees/PROJ-1"
    if branch_exists:
        repo("branch", B1)
    repo(
        "worktree",
        "add",
        "-q",
        "--lock",
        "--no-checkout",
        *(() if branch_exists else ("--detach",)),
        str(path),
        *([B1] * branch_exists),
    )
    (path / "a").write_text("half a checkout")
    place = prepare(repo.path, "PROJ-1", B1)
    assert at(place, "a").read_text() == "1\n" and repo.status(place.folder) == []
    assert "locked" not in repo("worktree", "list", "--porcelain")


def test_what_is_in_the_way_is_set_aside_not_removed(repo):
    path = repo.path / ".yourturn/worktrees/PROJ-1"
    path.mkdir(parents=True)
    (path / "mine").write_text("precious")
    assert prepare(repo.path, "PROJ-1", B1).folder == str(path)
    assert (path.parent / "PROJ-1.aside-1/mine").read_text() == "precious"
    assert [(row["task"], row["removed"]) for row in clean(repo.path, lambda key: True)] == [
        ("PROJ-1", True),
        ("PROJ-1.aside-1", False),
    ]


def test_worktrees_of_others_are_left_alone(repo, tmp_path):
    repo("worktree", "add", "-q", str(tmp_path / "stick"), "-b", "on-a-stick")
    (tmp_path / "stick").rename(tmp_path / "unplugged")
    place = prepare(repo.path, "PROJ-1", B1)
    subprocess.run(["rm", "-rf", place.folder], check=True)
    prepare(repo.path, "PROJ-1", B1)
    clean(repo.path, lambda key: True)
    (tmp_path / "unplugged").rename(tmp_path / "stick")
    assert repo.status(tmp_path / "stick") == []


def test_bad_names_are_refused(repo):
    for key in ("../x", "", "-x", ".git", "a/b"):
        with pytest.raises(Invalid):
            prepare(repo.path, key, B1)
    for branch in ("-f", "a..b", "", "a b", "x.lock", "/x"):
        with pytest.raises(Invalid, match="cannot be a branch"):
            prepare(repo.path, "PROJ-1", branch)


# --- repositories of all sorts --------------------------------------------------------------------------------------------------


def test_a_folder_without_a_repository(tmp_path):
    place = prepare(tmp_path, "PROJ-1", B1, patch="whatever")
    assert place == Workplace(str(tmp_path), None, None, None, False)
    assert finish(place, "x", "ff") == {
        "commit": None, "merged": False, "url": None, "words": "There is no repository here: the files are as they were left.",
    }  # fmt: skip
    assert (roll_back(place, "PROJ-1"), patch_of(place), worktrees(tmp_path), clean(tmp_path, bool)) == (None, "", [], [])
    leave(place)


def test_without_git_at_all(repo, monkeypatch):
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
    assert patch_of(place).count("new file mode") == 10_000
    assert finish(place, "x")["commit"] and repo("ls-tree", "-r", "--name-only", B1).count("\n") == 10_001


# --- in the checkout itself -----------------------------------------------------------------------------------------------------


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
    assert not inplace._held


def test_in_place_never_takes_a_persons_changes(repo):
    (repo.path / "mine").write_text("x")
    with pytest.raises(Precondition, match="has changes that are not committed: mine"):
        prepare(repo.path, "PROJ-1", B1, in_place=True)
    (repo.path / "mine").unlink()
    leave(prepare(repo.path, "PROJ-1", B1, in_place=True))


def test_in_place_on_no_branch(repo):
    repo("switch", "-q", "--detach")
    place = prepare(repo.path, "PROJ-1", B1, in_place=True)
    at(place, "a").write_text("2\n")
    done = finish(place, "x")
    assert place.branch is None and f"git branch NAME {done['commit'][:10]}" in done["words"]
    place = prepare(repo.path, "PROJ-1", B1, in_place=True)
    at(place, "a").write_text("3\n")
    assert roll_back(place, "PROJ-1") and (repo.path / "a").read_text() == "2\n"


def test_in_place_a_killed_worker_holds_nothing(repo):
    script = """
import os, sys; from pathlib import Path; from yourturn.worker.gitwork import prepare
root = Path(sys.argv[1]); prepare(root, "PROJ-1", "turn/PROJ-1", in_place=True); (root / "half").touch(); os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", script, str(repo.path)]).returncode == -9
    leave(prepare(repo.path, "PROJ-1", B1, in_place=True))


# --- many at once ------------------------------------------------------------------------------------------------------------------


def crowd(script: str, root: Path, count: int) -> list[str]:
    head = "import sys; from pathlib import Path; from yourturn.worker.gitwork import *\n"
    head += "root, n = Path(sys.argv[1]), sys.argv[2]; sys.stdin.read()\n"
    everyone = [
        subprocess.Popen([sys.executable, "-c", head + script, str(root), str(n)], stdin=-1, stdout=-1, stderr=-1, text=True)
        for n in range(count)
    ]
    for one in everyone:  # ready, set, go
        assert one.stdin is not None
        one.stdin.close()
        one.stdin = None
    said = [one.communicate(timeout=120) for one in everyone]
    assert all(one.returncode == 0 for one in everyone), [err for _, err in said if err]
    return [out.strip() for out, _ in said]


def test_eight_workers_at_once_in_one_repository(repo):
    script = """
place = prepare(root, f"PROJ-{n}", f"turn/PROJ-{n}", needs=["main"])
Path(place.folder, f"file{n}").write_text(n)
done = finish(place, f"work {n}", "ff")
print(done["commit"])
"""
    commits = crowd(script, repo.path, 8)
    assert [repo("rev-parse", f"turn/PROJ-{n}") for n in range(8)] == commits
    assert repo("rev-parse", "main") in commits, "one of them was first"
    assert repo.status() == [] and repo("fsck", "--no-dangling") == ""
    lines = (repo.path / ".git/info/exclude").read_text().splitlines()
    assert lines.count("**/.yourturn/worktrees/") == 1
    assert list((repo.path / ".git/yourturn").iterdir()) == []


def test_two_workers_prepare_the_same_task(repo):
    folders = crowd("print(prepare(root, 'PROJ-1', 'turn/PROJ-1').folder)", repo.path, 4)
    assert set(folders) == {str(repo.path / ".yourturn/worktrees/PROJ-1")} and repo.status(folders[0]) == []


# --- cleaning ------------------------------------------------------------------------------------------------------------------------


def test_clean_removes_only_what_is_safe(repo, tmp_path):
    def mess(name: str, do: Callable[[Workplace], object]) -> None:
        do(prepare(repo.path, name, f"turn/{name}"))

    def lost(place: Workplace) -> None:
        repo("switch", "-q", "--detach", at=place.folder)
        repo.commit(at=at(place), a="on no branch\n")

    mess("GOOD", lambda place: (at(place, "a").write_text("2\n"), finish(place, "x")))
    mess("OPEN", lambda place: None)
    mess("DIRTY", lambda place: at(place, "a").write_text("2\n"))
    mess("NEW", lambda place: at(place, "new").write_text("2\n"))
    mess("LOST", lost)
    mess("GONE", lambda place: subprocess.run(["rm", "-rf", place.folder], check=True))
    mess("LOCKED", lambda place: repo("worktree", "lock", "--reason", "mine", place.folder))
    before = repo("worktree", "list")
    wanted = {
        "DIRTY": (False, "1 file is not committed: a"),
        "GONE": (True, "its folder was gone"),
        "GOOD": (True, "GOOD has ended, and everything is committed"),
        "LOCKED": (False, "it is locked: mine"),
        "LOST": (False, "its last commit is on no branch"),
        "NEW": (False, "1 file is not committed: new"),
        "OPEN": (False, "OPEN has not ended"),
    }
    for dry_run in (True, False):
        rows = clean(repo.path, lambda key: key != "OPEN", dry_run)
        assert {row["task"]: (row["removed"], row["why"]) for row in rows} == wanted
        assert (repo("worktree", "list") == before) is dry_run
    assert repo("show", "turn/GOOD:a") == "2", "the branch stays"
    assert {row["task"]: row["changes"] for row in worktrees(repo.path)} == {
        "DIRTY": 1,
        "LOCKED": 0,
        "LOST": 0,
        "NEW": 1,
        "OPEN": 0,
    }

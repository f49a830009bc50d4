"""The worktree of a task: made once, reused, based on the task's dependencies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.worker.git.conftest import B1, B2, B3, at, worked
from yourturn.core.errors import GitTrouble, Invalid, Precondition
from yourturn.worker.git.worktrees import Workplace, clean, finish, leave, patch_of, prepare, roll_back


# --- a place of its own -------------------------------------------------------------------------------------------------
def test_a_task_gets_a_worktree_and_a_branch(repo):
    place = prepare(repo.path, "PROJ-1", B1)
    assert place == Workplace(str(repo.path / ".yourturn/worktrees/PROJ-1"), B1, "main", str(repo.path), True)
    assert repo("branch", "--show-current", at=place.folder) == B1
    assert at(place, "a").read_text() == "1\n"
    assert repo.status() == [], "the person's checkout shows nothing of it"
    assert not (repo.path / ".gitignore").exists()


def test_worktrees_are_in_the_desks_folder(repo):
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


def test_partial_work_survives_a_resume(repo):
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


def test_finish_without_changes_reports_so(repo):
    place = prepare(repo.path, "PROJ-1", B1)
    assert finish(place, "x") == {"commit": None, "merged": False, "url": None, "words": "Nothing was changed."}


def test_an_agent_that_commits_by_itself(repo):
    place = prepare(repo.path, "PROJ-1", B1)
    own = repo.commit(at=at(place), a="2\n")
    assert finish(place, "x")["commit"] == own


@pytest.mark.parametrize("switch", [("switch", "-qc", "feature"), ("switch", "-q", "--detach")])
def test_commits_on_another_branch_move_to_the_tasks_branch(repo, switch):
    place = prepare(repo.path, "PROJ-1", B1)
    repo(*switch, at=place.folder)
    at(place, "a").write_text("2\n")
    done = finish(place, "x")
    assert repo("rev-parse", B1) == done["commit"]
    assert repo("branch", "--show-current", at=place.folder) == B1


def test_agent_removes_its_own_folder(repo):
    (repo.path / "app").mkdir()
    repo.commit(**{"app/x": "1"})
    place = prepare(repo.path / "app", "PROJ-1", B1)
    repo("mv", "app", "web", at=at(place).parent)
    assert "rename" in repo("show", "--summary", "--format=", finish(place, "x")["commit"])


@pytest.mark.parametrize("gone", [".git", ""])
def test_missing_worktree_is_not_replaced_by_the_checkout(repo, gone):
    place = worked(repo)
    (repo.path / ".git/info/exclude").write_text("")
    (repo.path / "mine").write_text("mine")
    subprocess.run(["rm", "-rf", str(at(place, gone))], check=True)
    for do in (lambda: finish(place, "x"), lambda: roll_back(place, "PROJ-1"), lambda: patch_of(place)):
        with pytest.raises(GitTrouble, match="There is no worktree at"):
            do()
    assert repo("log", "--format=%s") == "one" and (repo.path / "mine").exists()
    assert prepare(repo.path, "PROJ-1", B1) == place


def test_diverged_branches_are_refused(repo):
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


# --- built on others ----------------------------------------------------------------------------------------------------
def test_task_is_based_on_its_dependencies(repo):
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


def test_conflicting_dependencies_are_reported_with_files(repo):
    for key, branch in (("PROJ-1", B1), ("PROJ-2", B2)):
        place = prepare(repo.path, key, branch)
        at(place, "a").write_text(key)
        finish(place, key)
    before = (repo("worktree", "list"), repo("for-each-ref"))
    with pytest.raises(Precondition) as caught:
        prepare(repo.path, "PROJ-3", B3, needs=[B1, B2])
    assert caught.value.message == "PROJ-3 cannot start: its dependencies conflict"
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


# --- killed in the middle, and in the way -------------------------------------------------------------------------------
@pytest.mark.parametrize("branch_exists", [False, True])
def test_incomplete_worktree_is_made_again(repo, branch_exists):
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


@pytest.mark.parametrize(
    "word",
    ["add", "checkout", "merge", "update-ref", "symbolic-ref", "unlock", "patch read-tree", "patch write-tree", "patch reset"],
)
def test_killed_worker_leaves_no_incomplete_worktree(repo, tmp_path, word):
    """A git that kills its caller after one kind of call."""
    finish(worked(repo, "PROJ-1", B1, x="x\n"), "x")
    place = prepare(repo.path, "PROJ-3", B3, needs=[B1])
    at(place, "half").write_text("half\n")
    stored = patch_of(place) if "patch" in word else ""
    repo("worktree", "remove", "--force", place.folder)
    repo("update-ref", "-d", f"refs/heads/{B3}")
    tool = tmp_path / "tools" / "git"
    tool.parent.mkdir()
    tool.write_text(f"""#!/bin/sh
{shutil.which("git")} "$@"; code=$?
for word; do [ "$word" = {word.split()[-1]} ] && kill -9 $PPID; done
exit $code
""")
    tool.chmod(0o755)
    script = """
import sys; from pathlib import Path; from yourturn.worker.git.worktrees import prepare
prepare(Path(sys.argv[1]), "PROJ-3", sys.argv[2], needs=[sys.argv[3]], patch=sys.argv[4] or None)
"""
    env = {**os.environ, "PATH": f"{tool.parent}:{os.environ['PATH']}"}
    assert subprocess.run([sys.executable, "-c", script, str(repo.path), B3, B1, stored], env=env).returncode == -9
    assert prepare(repo.path, "PROJ-3", B3, needs=[B1], patch=stored or None) == place
    assert at(place, "x").read_text() == "x\n" and repo("branch", "--show-current", at=place.folder) == B3
    assert repo.status(place.folder) == ["?? half"] * bool(stored)


def test_obstacle_is_moved_not_removed(repo):
    path = repo.path / ".yourturn/worktrees/PROJ-1"
    path.mkdir(parents=True)
    (path / "mine").write_text("precious")
    assert prepare(repo.path, "PROJ-1", B1).folder == str(path)
    assert (path.parent / "PROJ-1.aside-1/mine").read_text() == "precious"
    assert [(row["task"], row["removed"]) for row in clean(repo.path, lambda key: True)] == [
        ("PROJ-1", True),
        ("PROJ-1.aside-1", False),
    ]


def test_foreign_worktrees_are_left_alone(repo, tmp_path):
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


# --- many at once -------------------------------------------------------------------------------------------------------
def crowd(script: str, root: Path, count: int) -> list[str]:
    head = "import sys; from pathlib import Path; from yourturn.worker.git.worktrees import *\n"
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

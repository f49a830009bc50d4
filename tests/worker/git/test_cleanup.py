"""Cleanup removes the worktrees of ended tasks, and keeps those with unsaved work."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

from tests.fixtures.command import Turn
from tests.worker.git.conftest import B1, at
from yourturn.worker.git.command import locked
from yourturn.worker.git.repository import repository_at as at_repo
from yourturn.worker.git.worktrees import Workplace, clean, finish, prepare, worktrees


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


def test_clean_command_removes_worktrees_of_ended_tasks(repo, address, open_desk):
    turn, desk = Turn(repo.path, address), open_desk(fake=False)
    assert turn.text("worktree", "clean") == "No task has a worktree here.\n"
    for title in ("done", "open", "half done"):
        desk.create(title)
    for key in ("PROJ-1", "PROJ-2", "PROJ-3", "WEB-7"):
        place = prepare(repo.path, key, f"turn/{key}")
        at(place, "a").write_text(f"{key}\n")
        if key != "PROJ-3":
            finish(place, key)
    desk.close("PROJ-1")
    desk.cancel("PROJ-3")
    rows = [(row["task"], row["state"], row["changes"], row["branch"]) for row in turn("worktree", "list")]
    assert rows == [
        ("PROJ-1", "done", 0, "turn/PROJ-1"),
        ("PROJ-2", "ready", 0, "turn/PROJ-2"),
        ("PROJ-3", "cancelled", 1, "turn/PROJ-3"),
        ("WEB-7", None, 0, "turn/WEB-7"),
    ]
    text = turn.text("worktree", "list")
    assert "1 file not committed" in text and "not on this desk" in text and text.endswith("clean --dry-run\n")
    said = turn.text("worktree", "clean", "--dry-run").splitlines()
    assert said[0] == "Would remove PROJ-1: PROJ-1 has ended, and everything is committed"
    assert said[1:4] == [
        "Kept PROJ-2: PROJ-2 has not ended",
        "Kept PROJ-3: 1 file is not committed: a",
        "Kept WEB-7: WEB-7 has not ended",
    ]
    assert [row["removed"] for row in turn("worktree", "clean")] == [True, False, False, False]
    assert [row["task"] for row in worktrees(repo.path)] == ["PROJ-2", "PROJ-3", "WEB-7"]


def test_a_worktree_is_kept_while_a_process_is_in_it(repo, monkeypatch):
    place = prepare(repo.path, "PROJ-1", B1)
    monkeypatch.chdir(place.folder)
    assert clean(repo.path, lambda key: True)[0]["why"] == "you are in it"


def test_a_worktree_is_kept_while_a_worker_prepares_it(repo):
    place = prepare(repo.path, "PROJ-1", B1)
    with locked(at_repo(place.folder).lock("PROJ-1")):
        assert clean(repo.path, lambda key: True)[0]["why"] == "a worker is preparing it"

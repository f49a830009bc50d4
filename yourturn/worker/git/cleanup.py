"""Lists worktrees and removes those of ended tasks. A worktree that may hold unsaved work stays, with the reason."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...core.errors import Busy, GitTrouble
from .command import LONG, attempt, locked, reason_of
from .repository import Repository, Worktree, find, list_worktrees, remove_worktree, status_of, worktrees_folder

_UNFINISHED = {
    "MERGE_HEAD": "a merge", "CHERRY_PICK_HEAD": "a cherry-pick", "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase", "rebase-apply": "a rebase", "BISECT_LOG": "a bisection",
}  # fmt: skip


def worktrees(root: Path) -> list[dict[str, Any]]:
    """The worktrees of tasks, with the number of uncommitted files in each."""
    repo = find(root)
    if repo is None:
        return []
    rows = []
    for tree in _task_worktrees(repo):
        exists = Path(tree.path).is_dir()
        rows.append(_row(tree) | {"there": exists, "changes": _changes(tree) if exists else 0})
    return rows


def clean(root: Path, ended: Callable[[str], bool], dry_run: bool = False) -> list[dict[str, Any]]:
    """Remove the worktrees of ended tasks whose work is committed on a branch. The branches stay."""
    repo = find(root)
    if repo is None:
        return []
    rows = []
    for tree in _task_worktrees(repo):
        try:
            with locked(repo.lock(tree.key or ""), patience=0):
                removed, why = _clean(repo, tree, ended, dry_run)
        except Busy:
            removed, why = False, "a worker is preparing it"
        except GitTrouble as error:
            removed, why = False, str(error)
        rows.append(_row(tree) | {"removed": removed, "why": why})
    remaining = list_worktrees(repo)
    paths = {os.path.realpath(tree.path) for tree in remaining} | {row["folder"] for row in rows}
    folder = worktrees_folder(root, remaining[0])
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.is_dir() and str(path) not in paths:
            why = "it is no worktree of this repository; look at it, then remove it yourself"
            rows.append({"task": path.name, "branch": None, "folder": str(path), "removed": False, "why": why})
    return rows


def _task_worktrees(repo: Repository) -> list[Worktree]:
    return [tree for tree in list_worktrees(repo)[1:] if tree.key]


def _row(tree: Worktree) -> dict[str, Any]:
    return {"task": tree.task, "branch": tree.branch, "folder": tree.path}


def _changes(tree: Worktree) -> int | None:
    try:
        return len(status_of(tree.path).dirty)
    except GitTrouble:
        return None


def _clean(repo: Repository, tree: Worktree, ended: Callable[[str], bool], dry_run: bool) -> tuple[bool, str]:
    if not ended(tree.task or ""):
        return False, f"{tree.task} has not ended"
    missing = not Path(tree.path).is_dir()
    if tree.lock is not None and not tree.half_made:
        return False, f"it is locked: {tree.lock or 'no reason given'}"
    if missing or tree.half_made:
        if not dry_run:
            remove_worktree(repo, tree.path)
        return True, "its folder was gone" if missing else "it was never finished making"
    why = _loss(repo, tree)
    if why:
        return False, why
    if not dry_run:
        with locked(repo.lock("worktrees")):
            result = attempt(repo.top, "worktree", "remove", tree.path, limit=LONG)  # git checks once more
        if result.code != 0:
            return False, reason_of(result, 2)
    return True, f"{tree.task} has ended, and everything is committed"


def _loss(repo: Repository, tree: Worktree) -> str:
    """Why removing the worktree would lose something, or ''."""
    here = find(tree.path)
    if here is None or here.common != repo.common:
        return "its link to the repository is broken"
    if Path.cwd().is_relative_to(tree.path):
        return "you are in it"
    for name, what in _UNFINISHED.items():
        if Path(here.gitdir, name).exists():
            return f"{what} in it is not finished"
    if Path(here.gitdir, "modules").exists():
        return "it has submodules of its own; remove it yourself: git worktree remove --force"
    status = status_of(tree.path)
    if status.dirty:
        names = ", ".join(status.dirty[:3]) + (" …" if len(status.dirty) > 3 else "")
        return f"{len(status.dirty)} {'file is' if len(status.dirty) == 1 else 'files are'} not committed: {names}"
    if status.branch is None and status.head and not _named(repo, status.head):
        return "its last commit is on no branch"
    return ""


def _named(repo: Repository, commit: str) -> bool:
    return bool(attempt(repo.top, "for-each-ref", "--count=1", f"--contains={commit}").text)

"""Worktrees that nobody needs any more. When in doubt one stays, and the reason is said."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...core.errors import Busy, GitTrouble
from .command import LONG, attempt, locked, said
from .repository import Repository, Tree, find, forget, home, look, trees

_UNFINISHED = {
    "MERGE_HEAD": "a merge", "CHERRY_PICK_HEAD": "a cherry-pick", "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase", "rebase-apply": "a rebase", "BISECT_LOG": "a bisection",
}  # fmt: skip


def worktrees(root: Path) -> list[dict[str, Any]]:
    """The worktrees of tasks, and how many files in each are not committed."""
    repo = find(root)
    if repo is None:
        return []
    rows = []
    for tree in _ours(repo):
        there = Path(tree.path).is_dir()
        rows.append(_row(tree) | {"there": there, "changes": _changes(tree) if there else 0})
    return rows


def clean(root: Path, ended: Callable[[str], bool], dry_run: bool = False) -> list[dict[str, Any]]:
    """Remove the worktrees of ended tasks whose work is safe: all committed, on a branch. Branches stay."""
    repo = find(root)
    if repo is None:
        return []
    rows = []
    for tree in _ours(repo):
        try:
            with locked(repo.lock(tree.key or ""), patience=0):
                removed, why = _cleaned(repo, tree, ended, dry_run)
        except Busy:
            removed, why = False, "a worker is preparing it"
        except GitTrouble as error:
            removed, why = False, str(error)
        rows.append(_row(tree) | {"removed": removed, "why": why})
    left = trees(repo)
    known = {os.path.realpath(tree.path) for tree in left} | {row["folder"] for row in rows}
    place = home(root, left[0])
    for path in sorted(place.iterdir()) if place.is_dir() else ():
        if path.is_dir() and str(path) not in known:
            why = "it is no worktree of this repository; look at it, then remove it yourself"
            rows.append({"task": path.name, "branch": None, "folder": str(path), "removed": False, "why": why})
    return rows


def _ours(repo: Repository) -> list[Tree]:
    return [tree for tree in trees(repo)[1:] if tree.key]


def _row(tree: Tree) -> dict[str, Any]:
    return {"task": tree.task, "branch": tree.branch, "folder": tree.path}


def _changes(tree: Tree) -> int | None:
    try:
        return len(look(tree.path).dirty)
    except GitTrouble:
        return None


def _cleaned(repo: Repository, tree: Tree, ended: Callable[[str], bool], dry_run: bool) -> tuple[bool, str]:
    if not ended(tree.task or ""):
        return False, f"{tree.task} has not ended"
    gone = not Path(tree.path).is_dir()
    if tree.lock is not None and not tree.half_made:
        return False, f"it is locked: {tree.lock or 'no reason given'}"
    if gone or tree.half_made:
        if not dry_run:
            forget(repo, tree.path)
        return True, "its folder was gone" if gone else "it was never finished making"
    why = _unsafe(repo, tree)
    if why:
        return False, why
    if not dry_run:
        with locked(repo.lock("worktrees")):
            done = attempt(repo.top, "worktree", "remove", tree.path, limit=LONG)  # git looks once more
        if done.code != 0:
            return False, said(done, 2)
    return True, f"{tree.task} has ended, and everything is committed"


def _unsafe(repo: Repository, tree: Tree) -> str:
    """Why removing it would lose something."""
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
    seen = look(tree.path)
    if seen.dirty:
        names = ", ".join(seen.dirty[:3]) + (" …" if len(seen.dirty) > 3 else "")
        return f"{len(seen.dirty)} {'file is' if len(seen.dirty) == 1 else 'files are'} not committed: {names}"
    if seen.branch is None and seen.head and not _named(repo, seen.head):
        return "its last commit is on no branch"
    return ""


def _named(repo: Repository, commit: str) -> bool:
    return bool(attempt(repo.top, "for-each-ref", "--count=1", f"--contains={commit}").text)

"""Branches of a parallel(): a worktree and a git branch for each, merged when all have ended.

The run's own work is committed first, so that all branches start from it. At the end each branch is committed and merged into the
run's folder, in order. After a conflict every branch stays in its folder, for a person to resolve.

A branch is named by the path of the call and its number: 3.1 is the second branch of the third call, PROJ-42.3.1 its worktree.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from ...core.errors import Precondition
from . import worktrees
from .command import git, locked, reason_of
from .commits import merge_commit
from .repository import refs, remove_worktree, repository_at, status_of


class MergeConflict(NamedTuple):
    words: str
    context: dict[str, Any]


def branch_of(path: str) -> str:
    """The branch that makes a call; '' for the script itself."""
    return path.rpartition(".")[0]


def parent_of(branch: str) -> str:
    """The branch that called the parallel()."""
    return branch_of(branch_of(branch))


def prepare(root: Path, key: str, place: worktrees.Workplace, branch: str, patch: str | None) -> worktrees.Workplace:
    """The folder of a branch. Without a worktree of the run, all branches share the run's folder."""
    if not place.own or place.branch is None:
        return place
    if not exists(place, branch):
        worktrees.finish(place, f"{key}: before step {branch_of(branch)}\n")
    return worktrees.prepare(root, f"{key}.{branch}", _named(place, branch), patch=patch, base=place.branch)


def exists(place: worktrees.Workplace, branch: str) -> bool:
    if not place.own:
        return False
    name = f"refs/heads/{_named(place, branch)}"
    return name in refs(repository_at(place.folder).top, name)


def _named(place: worktrees.Workplace, branch: str) -> str:
    """The name of the git branch: the parent's name and the last part of the path."""
    last = ".".join(branch.split(".")[-2:])
    return f"{place.branch}.{last}"


def merge_all(
    parent: worktrees.Workplace, parts: list[tuple[str, worktrees.Workplace]], key: str, path: str
) -> MergeConflict | None:
    """Merge the branches in order. Merging one again changes nothing."""
    top = repository_at(parent.folder).top
    if unmerged := status_of(top).unmerged:
        return _conflict(key, path, "a merge that was begun there", parent, unmerged, parts)
    worktrees.finish(parent, f"{key}: step {path}\n")
    for name, place in parts:
        worktrees.finish(place, f"{key}: branch {name}\n")
        result = merge_commit(top, f"{key}: branch {name}", str(place.branch))
        if result.code == 0:
            continue
        files = [word for word in git(top, "diff", "--name-only", "--diff-filter=U", "-z").text.split("\0") if word]
        git(top, "merge", "--abort")
        if not files:
            raise Precondition(f"{place.branch} cannot be merged", reason=reason_of(result))
        return _conflict(key, path, str(place.branch), parent, files, parts)
    return None


def _conflict(
    key: str, path: str, name: str, parent: worktrees.Workplace, files: list[str], parts: list[tuple[str, worktrees.Workplace]]
) -> MergeConflict:
    listed = ", ".join(files[:20])
    words = (
        f"The branches of step {path} of {key} cannot be merged: {name} conflicts in {listed}.\n"
        f"Merge it in {parent.folder} (git merge {parts[-1][1].branch if name not in _names(parts) else name}), resolve the "
        "conflicts, commit, and answer: the run continues from there. A no ends it."
    )
    return MergeConflict(words, {"files": files[:100], "branches": _names(parts), "folder": parent.folder})


def _names(parts: list[tuple[str, worktrees.Workplace]]) -> list[str]:
    return [str(place.branch) for _, place in parts]


def drop(place: worktrees.Workplace) -> None:
    """Remove the folder and the name of a merged branch."""
    if not place.own or place.repo is None:
        return
    repo, top = repository_at(place.repo), repository_at(place.folder).top
    with locked(repo.lock(Path(top).name)):
        remove_worktree(repo, top)
        lines = f"delete refs/heads/{place.branch}\ndelete refs/yourturn/base/{place.branch}\n"
        git(repo.top, "update-ref", "--stdin", input=lines.encode())

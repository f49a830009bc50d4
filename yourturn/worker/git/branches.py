"""Branches of a parallel(): a worktree and a git branch for each, and back together when all have ended.

The run's own work is committed first, so that all branches start from it. Afterwards each is committed and merged into the
run's folder, in their order. What does not fit together is left as it is, every branch in its folder, for a person to look at.

A branch is named by the path of the call and its number: 3.1 is the second branch of the third call, PROJ-42.3.1 its worktree.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from ...core.errors import Precondition
from . import worktrees
from .command import git, locked, said
from .commits import merged
from .repository import at, forget, look, refs


class Conflict(NamedTuple):
    words: str
    context: dict[str, Any]


def of(path: str) -> str:
    """The branch that a call is made in; '' where nothing goes on beside it."""
    return path.rpartition(".")[0]


def above(branch: str) -> str:
    """The branch that the parallel() itself was called in."""
    return of(of(branch))


def prepare(root: Path, key: str, place: worktrees.Workplace, branch: str, patch: str | None) -> worktrees.Workplace:
    """The folder of a branch. Where there is no worktree to start from, all share the run's."""
    if not place.own or place.branch is None:
        return place
    if not exists(place, branch):
        worktrees.finish(place, f"{key}: before step {of(branch)}\n")
    return worktrees.prepare(root, f"{key}.{branch}", _named(place, branch), patch=patch, base=place.branch)


def exists(place: worktrees.Workplace, branch: str) -> bool:
    if not place.own:
        return False
    name = f"refs/heads/{_named(place, branch)}"
    return name in refs(at(place.folder).top, name)


def _named(place: worktrees.Workplace, branch: str) -> str:
    """Beside the run's own; in a branch of a branch only the rest of the path is new."""
    last = ".".join(branch.split(".")[-2:])
    return f"{place.branch}.{last}"


def bring(into: worktrees.Workplace, parts: list[tuple[str, worktrees.Workplace]], key: str, path: str) -> Conflict | None:
    """Merge them in their order. What was merged before is not merged again."""
    top = at(into.folder).top
    if unmerged := look(top).unmerged:
        return _conflict(key, path, "a merge that was begun there", into, unmerged, parts)
    worktrees.finish(into, f"{key}: step {path}\n")
    for name, place in parts:
        worktrees.finish(place, f"{key}: branch {name}\n")
        found = merged(top, f"{key}: branch {name}", str(place.branch))
        if found.code == 0:
            continue
        files = [word for word in git(top, "diff", "--name-only", "--diff-filter=U", "-z").text.split("\0") if word]
        git(top, "merge", "--abort")
        if not files:
            raise Precondition(f"{place.branch} cannot be merged", reason=said(found))
        return _conflict(key, path, str(place.branch), into, files, parts)
    return None


def _conflict(
    key: str, path: str, name: str, into: worktrees.Workplace, files: list[str], parts: list[tuple[str, worktrees.Workplace]]
) -> Conflict:
    shown = ", ".join(files[:20])
    words = (
        f"What was done side by side in step {path} of {key} does not fit together: {name} conflicts in {shown}.\n"
        f"Merge it in {into.folder} (git merge {parts[-1][1].branch if name not in _names(parts) else name}), settle the "
        "conflicts, commit, and answer: the run goes on from there. A no ends it."
    )
    return Conflict(words, {"files": files[:100], "branches": _names(parts), "folder": into.folder})


def _names(parts: list[tuple[str, worktrees.Workplace]]) -> list[str]:
    return [str(place.branch) for _, place in parts]


def drop(place: worktrees.Workplace) -> None:
    """It is merged: neither its folder nor its name is needed any more."""
    if not place.own or place.repo is None:
        return
    repo, top = at(place.repo), at(place.folder).top
    with locked(repo.lock(Path(top).name)):
        forget(repo, top)
        lines = f"delete refs/heads/{place.branch}\ndelete refs/yourturn/base/{place.branch}\n"
        git(repo.top, "update-ref", "--stdin", input=lines.encode())

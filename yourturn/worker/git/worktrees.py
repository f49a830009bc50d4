"""A folder and a branch for each task; no work of an agent is lost.

    prepare    a worktree at .yourturn/worktrees/PROJ-42, on the task's branch; the same one again when the task resumes
    finish     commits everything, and merges as the project's settings say
    roll_back  stores everything under refs/yourturn/failed/PROJ-42-1, and resets the folder
    patch_of   unfinished work as text, for another machine
    clean      removes the worktrees of ended tasks whose work is committed

A question changes nothing in the folder. Without a repository the folder itself is the workplace, and the other functions do
nothing and report so.

A worker may be killed at any point while it makes a worktree. So the worktree is made locked and detached; dependencies are
merged, a stored patch is applied; then the branch is created in one step, and last the worktree is unlocked. A branch that exists
is therefore complete, and a worktree that still has our lock was never used by an agent and is made again. The commit where the
work began is stored in refs/yourturn/base/BRANCH.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ...core.errors import GitTrouble, Precondition
from . import in_place as checkout
from . import patches
from .cleanup import clean, worktrees
from .command import LONG, attempt, git, identity, locked, reason_of, trouble
from .commits import check_merge, commit_all, deliver, merge_commit, move_to_branch
from .repository import (
    Repository,
    Worktree,
    check_names,
    commit_of,
    default_branch,
    exclude_own_folders,
    find,
    list_worktrees,
    refs,
    remove_worktree,
    repository_at,
    snapshot,
    status_of,
    tree_of,
    worktrees_folder,
)

__all__ = [
    "Workplace", "apply_patch", "clean", "finish", "identity", "leave", "patch_of", "prepare", "refused", "roll_back",
    "supports_parallel", "unfinished", "worktrees",
]  # fmt: skip

_NO_REPOSITORY = "There is no repository here: the files are as they were left."


class Workplace(NamedTuple):
    folder: str  #: where the agent works
    branch: str | None  #: the branch of its commits
    base: str | None  #: a branch's name; in the checkout itself, a commit
    repo: str | None  #: the person's checkout
    own: bool  #: it is a worktree of its own


def prepare(
    root: Path,
    key: str,
    branch: str,
    *,
    needs: Sequence[str] = (),
    patch: str | None = None,
    base: str | None = None,
    in_place: bool = False,
) -> Workplace:
    """The folder of a task. One that exists is returned unchanged."""
    repo = find(root)
    if repo is None:
        return Workplace(os.path.realpath(root), None, None, None, False)
    check_names(key, branch)
    base_commit = _base_commit(repo, base)
    if in_place or base_commit is None:
        start = checkout.take(repo, key, patch, fresh=base_commit is None)
        return Workplace(str(Path(repo.top, repo.prefix)), status_of(repo.top).branch, start, repo.top, False)
    with locked(repo.lock(key)):
        existing = list_worktrees(repo)
        path = Path(os.path.realpath(worktrees_folder(root, existing[0]) / key))
        if not _is_usable(repo, existing, path, branch):
            _create(repo, path, key, branch, base_commit, needs, patch)
    folder = path / repo.prefix
    folder.mkdir(parents=True, exist_ok=True)
    return Workplace(str(folder), branch, base_commit[0], repo.top, True)


def supports_parallel(root: Path) -> bool:
    """True if several agents can work at once. Before the first commit they would share the checkout."""
    repo = find(root)
    return repo is None or default_branch(repo) is not None


def unfinished(root: Path) -> str | None:
    """The task whose unfinished work is in the checkout itself."""
    repo = find(root)
    return None if repo is None or repo.bare else checkout.unfinished(repo)


def refused(root: Path) -> Precondition | None:
    """Why the checkout itself cannot be used: it has changes that belong to no task, or cannot be written."""
    repo = find(root)
    try:
        return None if repo is None or repo.bare or default_branch(repo) is None else checkout.refused(repo)
    except OSError as error:
        where = f"{error.filename}: {error.strerror}"
        return Precondition(f"{root} cannot be worked in", reason=where, hint="Work in a folder that you may write to.")


def leave(place: Workplace) -> None:
    """The session ends, the work stays. A shared checkout is released."""
    if place.repo is not None and not place.own:
        checkout.leave(place.repo)


def finish(place: Workplace, message: str, merge: str = "none") -> dict[str, Any]:
    """Commit everything, then merge: none, ff or pr. If the merge fails, `words` says why, and the branch keeps the commit."""
    check_merge(merge)
    nothing = {"commit": None, "merged": False, "url": None, "words": "Nothing was changed."}
    if place.repo is None:
        return nothing | {"words": _NO_REPOSITORY}
    repo = _repository_of(place)
    status = status_of(repo.top)
    start = _start_of(repo, place)
    if status.head is None and start and snapshot(repo, status) == tree_of(repo.top, start):
        sha, words = None, ""  # the files were there before the agent
    else:
        sha, words = commit_all(repo, status, place.branch if place.own else status.branch, message)
    if place.own and place.branch and sha and status.branch != place.branch:
        move_to_branch(repo, place.branch, status.branch, sha)
    if not place.own:
        checkout.done(place.repo)
    if sha is None or sha == start:
        return nothing
    if not place.own or not place.branch:
        return nothing | {"commit": sha, "merged": True, "words": words}
    more = deliver(place.repo, place.branch, place.base, message, merge)
    return nothing | {"commit": sha, **more, "words": f"{words} {more['words']}"}


def roll_back(place: Workplace, key: str) -> str | None:
    """Reset the folder to the start of the work. Returns the ref that stores the work, or None without any."""
    if place.repo is None:
        return None
    repo = _repository_of(place)
    status = status_of(repo.top)
    start = _start_of(repo, place)
    tree = snapshot(repo, status)
    ref = None
    if start is None or status.head != start or tree != tree_of(repo.top, start):
        ref = _store(repo, key, status.head, tree)
        for folder in ("rebase-merge", "rebase-apply"):
            if Path(repo.gitdir, folder).exists():
                attempt(repo.top, "rebase", "--quit")
        if start is not None:
            git(repo.top, "read-tree", "--reset", tree)
            checkout.reset(repo, start, place.branch)
    if not place.own:
        checkout.done(place.repo)
    return ref


def patch_of(place: Workplace) -> str:
    """All changes since the work began, committed or not, with new and binary files; '' without any."""
    if place.repo is None:
        return ""
    repo = _repository_of(place)
    start = _start_of(repo, place)
    return patches.create(repo, start) if start else ""


def apply_patch(place: Workplace, key: str, patch: str) -> None:
    """Apply stored work to a folder without changes."""
    patches.apply(_repository_of(place), key, patch)


def _repository_of(place: Workplace) -> Repository:
    """The repository of a place. The agent may have removed the folder, or the whole worktree."""
    folder = Path(place.folder)
    while not folder.is_dir():
        folder = folder.parent
    if not place.own:
        return repository_at(str(folder))
    repo = find(folder)
    if repo is None or repo.gitdir == repo.common or not Path(place.folder).is_relative_to(repo.top):
        raise GitTrouble(
            f"There is no worktree at {place.folder} any more",
            reason="it was removed, with everything that was not committed",
            hint="It is made again when the task is next worked on.",
        )
    return repo


# --- making a worktree --------------------------------------------------------------------------------------------------


def _base_commit(repo: Repository, base: str | None) -> tuple[str, str] | None:
    """The name and commit that new work is based on."""
    if base is None:
        return default_branch(repo)
    sha = commit_of(repo.top, base)
    if sha is None:
        raise Precondition(f"There is no branch or commit {base!a} in {repo.top}", hint="See: git branch --all")
    return base, sha


def _is_usable(repo: Repository, existing: list[Worktree], path: Path, branch: str) -> bool:
    """True if the worktree exists and is complete. Otherwise clears the way for a new one, or raises."""
    mine = next((tree for tree in existing if os.path.realpath(tree.path) == str(path)), None)
    if mine is not None and path.is_dir() and not mine.half_made:
        return True
    other = next((tree for tree in existing if tree.branch == branch and tree is not mine), None)
    if other is not None:
        raise Precondition(
            f"The branch {branch} is checked out at {other.path}",
            reason="a branch can be worked on in one place only",
            hint=f"Leave it there: git -C '{other.path}' switch --detach",
        )
    if mine is not None:
        remove_worktree(repo, mine.path)
    if path.is_dir() and any(path.iterdir()):  # not a worktree of this repository, so it is kept
        number = next(n for n in range(1, 10_000) if not path.with_name(f"{path.name}.aside-{n}").exists())
        path.rename(path.with_name(f"{path.name}.aside-{number}"))
    return False


def _create(
    repo: Repository, path: Path, key: str, branch: str, base_commit: tuple[str, str], needs: Sequence[str], patch: str | None
) -> None:
    start_ref, full = f"refs/yourturn/base/{branch}", f"refs/heads/{branch}"
    remote_branch = f"refs/remotes/origin/{branch}"
    existing = refs(repo.top, full, start_ref, remote_branch)
    exists = full in existing
    patch_base = patches.read(patch).base if patch else None
    if patch_base is not None and not exists and commit_of(repo.top, patch_base) is None:
        patch_base = None
    fresh = not exists and remote_branch not in existing and patch_base is None
    point = existing.get(full) or patch_base or existing.get(remote_branch) or base_commit[1]
    with locked(repo.lock("worktrees")):
        exclude_own_folders(repo)
        words = (str(path), branch) if exists else ("--detach", str(path), point)
        git(repo.top, "worktree", "add", "--lock", "--no-checkout", *words)
    try:
        result = attempt(str(path), "checkout", "--quiet", "--force", limit=LONG)
        if result.code != 0:
            raise trouble(f"The worktree of {key} could not be filled", result)
        if fresh:
            for need in needs:
                _merge_dependency(str(path), key, branch, need)
        if patch:
            patches.apply(repository_at(str(path)), key, patch)
        if not exists:
            head = (commit_of(str(path), "HEAD") if needs else None) or point
            start = head if remote_branch not in existing or patch_base else _merge_base(str(path), base_commit[1], head)
            lines = f"update {start_ref} {start}\ncreate {full} {head}\n"
            git(repo.top, "update-ref", "-m", f"turn: {key}", "--stdin", input=lines.encode())
            git(str(path), "symbolic-ref", "-m", f"turn: {key}", "HEAD", full)
        git(repo.top, "worktree", "unlock", str(path))
    except BaseException:
        with suppress(Exception):
            remove_worktree(repo, str(path))
        raise


def _merge_base(folder: str, commit: str, other: str) -> str:
    result = attempt(folder, "merge-base", commit, other)
    return result.text if result.code == 0 else other


def _merge_dependency(folder: str, key: str, branch: str, need: str) -> None:
    """Merge the branch of a dependency, if it exists: it may be merged and removed, or never have had commits."""
    names = (f"refs/heads/{need}", f"refs/remotes/origin/{need}")
    commits = refs(folder, *names)
    sha = next((commits[name] for name in names if name in commits), None)
    if sha is None or need == branch:
        return
    result = merge_commit(folder, f"Bring in {need} for {key}", sha)
    if result.code == 0:
        return
    files = [os.fsdecode(name) for name in git(folder, "diff", "--name-only", "--diff-filter=U", "-z").out.split(b"\0") if name]
    raise Precondition(
        f"{key} cannot start: its dependencies conflict",
        reason=f"{need} conflicts in {', '.join(files[:20])}" if files else f"{need} cannot be merged: {reason_of(result)}",
        hint=f"Make the branch {branch} yourself, merge {need} into it, commit, leave it; then the task starts from there.",
    )


# --- rolling back -------------------------------------------------------------------------------------------------------


def _start_of(repo: Repository, place: Workplace) -> str | None:
    """The commit where the work of a place began."""
    if not place.own:
        return place.base
    name = f"refs/yourturn/base/{place.branch}"
    start = refs(repo.top, name).get(name)
    if start is None and place.base:
        base = attempt(repo.top, "merge-base", "HEAD", place.base)
        start = base.text if base.code == 0 else None
    return start or commit_of(repo.top, "HEAD")


def _store(repo: Repository, key: str, head: str | None, tree: str) -> str:
    """Commit a tree under the first free number."""
    words = ("commit-tree", tree, *(("-p", head) if head else ()), "-m", f"What {key} had when it was rolled back")
    sha = git(repo.top, *words, env=identity(repo.top)).text
    create = set(git(repo.top, "for-each-ref", "--format=%(refname)", "refs/yourturn/failed/").lines)
    for number in range(1, 100_000):
        name = f"refs/yourturn/failed/{key}-{number}"
        if name not in create and attempt(repo.top, "update-ref", name, sha, "0" * len(sha)).code == 0:
            return name
    raise Precondition(f"There are too many failed tries of {key}", hint="Remove some: git update-ref -d refs/yourturn/failed/…")

"""Git care: every task works in a folder and on a branch of its own, and nothing that an agent did is ever lost.

    prepare    a worktree at .yourturn/worktrees/PROJ-42, on the task's branch; the same one again when the task resumes
    finish     commits everything, and merges as the project says
    roll_back  keeps everything under refs/yourturn/failed/PROJ-42-1, and starts clean
    patch_of   unfinished work as text, to go on elsewhere
    clean      removes the worktrees of ended tasks whose work is safe

A question touches nothing: whoever asks just stops, and finds the folder as it was. Where there is no repository the folder
itself is the workplace, and the rest does nothing and says so.

How a worktree comes to be is the delicate part, because a worker may be killed at any moment of it. It is made locked and
detached; dependencies are merged into it, stored work is laid on it; then the branch is created in one step, and
last the lock is opened. So a branch that exists has everything below it, and a worktree that is still locked by us was never
given to an agent and is made again. Where the work began stands in refs/yourturn/base/BRANCH.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ...core.errors import GitTrouble, Precondition
from . import in_place as inplace
from . import patches
from .cleanup import clean, worktrees
from .command import LONG, attempt, git, identity, locked, said, trouble
from .commits import check, committed, delivered, home_again, merged
from .repository import (
    Repository,
    Tree,
    at,
    check_names,
    commit_of,
    default,
    find,
    forget,
    hide,
    home,
    look,
    refs,
    snapshot,
    tree_of,
    trees,
)

__all__ = [
    "Workplace", "clean", "finish", "identity", "lay", "leave", "patch_of", "prepare", "refused", "roll_back", "room",
    "unfinished", "worktrees",
]  # fmt: skip

_NOBODY = "There is no repository here: the files are as they were left."


class Workplace(NamedTuple):
    folder: str  # where the agent works
    branch: str | None  # what its work is committed on
    base: str | None  # what it is based on: a branch's name, or a commit in the checkout itself
    repo: str | None  # the checkout of the person
    own: bool  # a worktree of its own


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
    """A folder to work in. Made before, it comes back as it is."""
    repo = find(root)
    if repo is None:
        return Workplace(os.path.realpath(root), None, None, None, False)
    check_names(key, branch)
    ground = _ground(repo, base)
    if in_place or ground is None:
        start = inplace.settle(repo, key, patch, fresh=ground is None)
        return Workplace(str(Path(repo.top, repo.prefix)), look(repo.top).branch, start, repo.top, False)
    with locked(repo.lock(key)):
        known = trees(repo)
        path = Path(os.path.realpath(home(root, known[0]) / key))
        if not _usable(repo, known, path, branch):
            _make(repo, path, key, branch, ground, needs, patch)
    folder = path / repo.prefix
    folder.mkdir(parents=True, exist_ok=True)
    return Workplace(str(folder), branch, ground[0], repo.top, True)


def room(root: Path) -> bool:
    """Can several tasks work here at once? Where there are no commits yet, they would share one checkout."""
    repo = find(root)
    return repo is None or default(repo) is not None


def unfinished(root: Path) -> str | None:
    """The task whose unfinished work lies in the checkout itself."""
    repo = find(root)
    return None if repo is None or repo.bare else inplace.unfinished(repo)


def refused(root: Path) -> Precondition | None:
    """Why the checkout itself cannot be worked in: somebody's changes lie there, and they belong to no task."""
    repo = find(root)
    try:
        return None if repo is None or repo.bare or default(repo) is None else inplace.refused(repo)
    except OSError as error:
        where = f"{error.filename}: {error.strerror}"
        return Precondition(f"{root} cannot be worked in", reason=where, hint="Work in a folder that you may write to.")


def leave(place: Workplace) -> None:
    """The session ends and the work stays. Only a checkout that is shared has to be told."""
    if place.repo is not None and not place.own:
        inplace.leave(place.repo)


def finish(place: Workplace, message: str, merge: str = "none") -> dict[str, Any]:
    """Commit everything, then merge: none, ff or pr. What cannot be merged is said, and stays committed on its branch."""
    check(merge)
    nothing = {"commit": None, "merged": False, "url": None, "words": "Nothing was changed."}
    if place.repo is None:
        return nothing | {"words": _NOBODY}
    repo = _here(place)
    seen = look(repo.top)
    start = _start(repo, place)
    if seen.head is None and start and snapshot(repo, seen) == tree_of(repo.top, start):
        sha, words = None, ""  # what lies there is not the agent's to commit
    else:
        sha, words = committed(repo, seen, place.branch if place.own else seen.branch, message)
    if place.own and place.branch and sha and seen.branch != place.branch:
        home_again(repo, place.branch, seen.branch, sha)
    if not place.own:
        inplace.done(place.repo)
    if sha is None or sha == start:
        return nothing
    if not place.own or not place.branch:
        return nothing | {"commit": sha, "merged": True, "words": words}
    more = delivered(place.repo, place.branch, place.base, message, merge)
    return nothing | {"commit": sha, **more, "words": f"{words} {more['words']}"}


def roll_back(place: Workplace, key: str) -> str | None:
    """Back to where the work began. Everything that was there is kept; the name under which, or None if there was nothing."""
    if place.repo is None:
        return None
    repo = _here(place)
    seen = look(repo.top)
    start = _start(repo, place)
    tree = snapshot(repo, seen)
    kept = None
    if start is None or seen.head != start or tree != tree_of(repo.top, start):
        kept = _keep(repo, key, seen.head, tree)
        for folder in ("rebase-merge", "rebase-apply"):
            if Path(repo.gitdir, folder).exists():
                attempt(repo.top, "rebase", "--quit")
        if start is not None:
            git(repo.top, "read-tree", "--reset", tree)
            inplace.reset(repo, start, place.branch)
    if not place.own:
        inplace.done(place.repo)
    return kept


def patch_of(place: Workplace) -> str:
    """Everything that is not merged since the work began: committed or not, new and binary files too. Empty if nothing."""
    if place.repo is None:
        return ""
    repo = _here(place)
    start = _start(repo, place)
    return patches.taken(repo, start) if start else ""


def lay(place: Workplace, key: str, patch: str) -> None:
    """Bring work back that was put aside, into a folder that has none."""
    patches.laid(_here(place), key, patch)


def _here(place: Workplace) -> Repository:
    """The checkout of a place. An agent may have removed the folder that it stood in, or all of it."""
    folder = Path(place.folder)
    while not folder.is_dir():
        folder = folder.parent
    if not place.own:
        return at(str(folder))
    repo = find(folder)
    if repo is None or repo.gitdir == repo.common or not Path(place.folder).is_relative_to(repo.top):
        raise GitTrouble(
            f"There is no worktree at {place.folder} any more",
            reason="somebody removed it, and what was not committed went with it",
            hint="It is made again when the task is next worked on.",
        )
    return repo


# --- making a worktree --------------------------------------------------------------------------------------------------


def _ground(repo: Repository, base: str | None) -> tuple[str, str] | None:
    """What new work is based on, by name and commit."""
    if base is None:
        return default(repo)
    sha = commit_of(repo.top, base)
    if sha is None:
        raise Precondition(f"There is no branch or commit {base!a} in {repo.top}", hint="See: git branch --all")
    return base, sha


def _usable(repo: Repository, known: list[Tree], path: Path, branch: str) -> bool:
    """Is the worktree there, and whole? What is in the way of a new one is cleared, or named."""
    mine = next((tree for tree in known if os.path.realpath(tree.path) == str(path)), None)
    if mine is not None and path.is_dir() and not mine.half_made:
        return True
    other = next((tree for tree in known if tree.branch == branch and tree is not mine), None)
    if other is not None:
        raise Precondition(
            f"The branch {branch} is checked out at {other.path}",
            reason="a branch can be worked on in one place only",
            hint=f"Leave it there: git -C '{other.path}' switch --detach",
        )
    if mine is not None:
        forget(repo, mine.path)
    if path.is_dir() and any(path.iterdir()):  # not a worktree of this repository, so not ours to remove
        number = next(n for n in range(1, 10_000) if not path.with_name(f"{path.name}.aside-{n}").exists())
        path.rename(path.with_name(f"{path.name}.aside-{number}"))
    return False


def _make(
    repo: Repository, path: Path, key: str, branch: str, ground: tuple[str, str], needs: Sequence[str], patch: str | None
) -> None:
    start_ref, full = f"refs/yourturn/base/{branch}", f"refs/heads/{branch}"
    elsewhere = f"refs/remotes/origin/{branch}"
    there = refs(repo.top, full, start_ref, elsewhere)
    exists = full in there
    begun = patches.read(patch).base if patch else None
    if begun is not None and not exists and commit_of(repo.top, begun) is None:
        begun = None
    fresh = not exists and elsewhere not in there and begun is None
    point = there.get(full) or begun or there.get(elsewhere) or ground[1]
    with locked(repo.lock("worktrees")):
        hide(repo)
        words = (str(path), branch) if exists else ("--detach", str(path), point)
        git(repo.top, "worktree", "add", "--lock", "--no-checkout", *words)
    try:
        found = attempt(str(path), "checkout", "--quiet", "--force", limit=LONG)
        if found.code != 0:
            raise trouble(f"The worktree of {key} could not be filled", found)
        if fresh:
            for need in needs:
                _bring_in(str(path), key, branch, need)
        if patch:
            patches.laid(at(str(path)), key, patch)
        if not exists:
            head = (commit_of(str(path), "HEAD") if needs else None) or point
            start = head if elsewhere not in there or begun else _fork(str(path), ground[1], head)
            lines = f"update {start_ref} {start}\ncreate {full} {head}\n"
            git(repo.top, "update-ref", "-m", f"turn: {key}", "--stdin", input=lines.encode())
            git(str(path), "symbolic-ref", "-m", f"turn: {key}", "HEAD", full)
        git(repo.top, "worktree", "unlock", str(path))
    except BaseException:
        with suppress(Exception):
            forget(repo, str(path))
        raise


def _fork(folder: str, one: str, other: str) -> str:
    found = attempt(folder, "merge-base", one, other)
    return found.text if found.code == 0 else other


def _bring_in(folder: str, key: str, branch: str, need: str) -> None:
    """Merge a dependency's branch. One that does not exist has been merged and removed, or never had any work."""
    names = (f"refs/heads/{need}", f"refs/remotes/origin/{need}")
    found = refs(folder, *names)
    sha = next((found[name] for name in names if name in found), None)
    if sha is None or need == branch:
        return
    done = merged(folder, f"Bring in {need} for {key}", sha)
    if done.code == 0:
        return
    files = [os.fsdecode(name) for name in git(folder, "diff", "--name-only", "--diff-filter=U", "-z").out.split(b"\0") if name]
    raise Precondition(
        f"{key} cannot start: what it depends on does not fit together",
        reason=f"{need} conflicts in {', '.join(files[:20])}" if files else f"{need} cannot be merged: {said(done)}",
        hint=f"Make the branch {branch} yourself, merge {need} into it, commit, leave it; then the task starts from there.",
    )


# --- rolling back -------------------------------------------------------------------------------------------------------


def _start(repo: Repository, place: Workplace) -> str | None:
    """The commit where the work began."""
    if not place.own:
        return place.base
    name = f"refs/yourturn/base/{place.branch}"
    found = refs(repo.top, name).get(name)
    if found is None and place.base:
        fork = attempt(repo.top, "merge-base", "HEAD", place.base)
        found = fork.text if fork.code == 0 else None
    return found or commit_of(repo.top, "HEAD")


def _keep(repo: Repository, key: str, head: str | None, tree: str) -> str:
    """A commit of everything, under the first free number."""
    words = ("commit-tree", tree, *(("-p", head) if head else ()), "-m", f"What {key} had when it was rolled back")
    sha = git(repo.top, *words, env=identity(repo.top)).text
    taken = set(git(repo.top, "for-each-ref", "--format=%(refname)", "refs/yourturn/failed/").lines)
    for number in range(1, 100_000):
        name = f"refs/yourturn/failed/{key}-{number}"
        if name not in taken and attempt(repo.top, "update-ref", name, sha, "0" * len(sha)).code == 0:
            return name
    raise Precondition(f"There are too many failed tries of {key}", hint="Remove some: git update-ref -d refs/yourturn/failed/…")

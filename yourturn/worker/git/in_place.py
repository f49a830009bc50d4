"""Work in the checkout itself: one task at a time, on the branch that is checked out.

A lock marks a task that is being worked on; it ends with the process that holds it. A mark, a file beside it, names the task
whose unfinished work is in the checkout. A checkout with other changes is refused, so that no task commits or rolls back what is
not its own.
"""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from pathlib import Path

from ...core.errors import Busy, Invalid, Precondition
from . import patches
from .command import LONG, acquire, attempt, git, identity
from .repository import Repository, Status, exclude_own_folders, repository_at, snapshot, status_of

FIRST = "Yourturn: what was there before the first commit"
_locks: dict[str, int] = {}
_locks_guard = threading.Lock()


def take(repo: Repository, key: str, patch: str | None, fresh: bool) -> str:
    """Take the checkout for a task; returns the commit where its work begins."""
    if repo.bare:
        raise Invalid(f"{repo.top} has no files to work in", reason="it is a bare repository", hint="Work in a clone of it.")
    handle = _acquire_lock(repo)
    try:
        exclude_own_folders(repo)
        mark = _read(repo)
        status = status_of(repo.top)
        if mark.get("task") != key:
            if status.dirty and not fresh:
                raise _refusal(repo, mark.get("task"), status)
            mark = {}
        start = mark.get("start")
        if start is None or (mark.get("head"), mark.get("branch")) != (status.head, status.branch):
            start = status.head or _first_commit(repo, key, status)  # commits since then are not the task's to roll back
        _write(repo, {"task": key, "start": start, "head": status.head, "branch": status.branch})
        if patch and not mark and not status.dirty:
            patches.apply(repo, key, patch)
    except BaseException:
        os.close(handle)
        raise
    with _locks_guard:
        _locks[repo.top] = handle
    return start


def unfinished(repo: Repository) -> str | None:
    """The task whose uncommitted work is in the checkout."""
    key = _read(repo).get("task")
    return key if key and status_of(repo.top).dirty else None


def refused(repo: Repository) -> Precondition | None:
    """The error for changes that belong to no task, if there are some."""
    exclude_own_folders(repo)
    status = status_of(repo.top)
    return _refusal(repo, None, status) if status.dirty and not _read(repo).get("task") else None


def leave(top: str) -> None:
    """Release the checkout. The mark keeps the task's unfinished work and commits as its own."""
    with _locks_guard:
        handle = _locks.pop(top, None)
    if handle is not None:
        try:
            repo = repository_at(top)
            mark = _read(repo)
            if mark:
                status = status_of(top)
                _write(repo, mark | {"head": status.head, "branch": status.branch})
        finally:
            os.close(handle)


def done(top: str) -> None:
    """Remove the mark: the checkout has no unfinished work of a task."""
    repo = repository_at(top)
    key = _read(repo).get("task")
    with suppress(OSError):
        _mark(repo).unlink()
    if key:
        attempt(top, "update-ref", "-d", f"refs/yourturn/start/{key}")
    leave(top)


def reset(repo: Repository, start: str, branch: str | None) -> None:
    """Reset the checkout to a commit. The index must have all files that are to be removed; ignored files stay."""
    if git(repo.top, "log", "-1", "--format=%s", start).text == FIRST and branch:
        git(repo.top, "read-tree", "-u", "--reset", start, limit=LONG)
        git(repo.top, "symbolic-ref", "HEAD", f"refs/heads/{branch}")
        attempt(repo.top, "update-ref", "-d", f"refs/heads/{branch}")
        git(repo.top, "read-tree", "--empty")
        return
    if branch:
        git(repo.top, "symbolic-ref", "-m", "turn: roll back", "HEAD", f"refs/heads/{branch}")
    git(repo.top, "reset", "--quiet", "--hard", start, limit=LONG)


def _acquire_lock(repo: Repository) -> int:
    try:
        return acquire(Path(repo.gitdir, "yourturn-in-place.lock"))
    except Busy:
        raise Precondition(
            f"{_read(repo).get('task') or 'Another task'} is being worked on in {repo.top}",
            reason="one task at a time can use the checkout itself",
            hint="Wait for it, or let each task have a worktree of its own.",
        ) from None


def _refusal(repo: Repository, before: str | None, status: Status) -> Precondition:
    files = ", ".join(status.dirty[:5]) + (f" and {len(status.dirty) - 5} more" if len(status.dirty) > 5 else "")
    if before:
        hint = f"Finish {before} first, or let each task have a worktree of its own."
        return Precondition(f"{repo.top} holds unfinished work of {before}", reason=files, hint=hint)
    hint = "Commit or stash it first, or let each task have a worktree of its own."
    return Precondition(f"{repo.top} has changes that are not committed", reason=files, hint=hint)


def _first_commit(repo: Repository, key: str, status: Status) -> str:
    """Store the files as a commit on no branch: before the first commit there is nothing else to roll back to."""
    sha = git(repo.top, "commit-tree", snapshot(repo, status), "-m", FIRST, env=identity(repo.top)).text
    git(repo.top, "update-ref", f"refs/yourturn/start/{key}", sha)
    return sha


def _mark(repo: Repository) -> Path:
    return Path(repo.gitdir, "yourturn-in-place")


def _read(repo: Repository) -> dict[str, str | None]:
    """The mark: the task, the commit where its work began, and the commit and branch when it was left."""
    try:
        mark = json.loads(_mark(repo).read_text())
    except (OSError, ValueError):
        return {}
    return mark if isinstance(mark, dict) else {}


def _write(repo: Repository, mark: dict[str, str | None]) -> None:
    new = _mark(repo).with_suffix(".new")
    new.write_text(json.dumps(mark))
    new.replace(_mark(repo))

"""Working in the checkout itself: one task at a time, on whatever branch it stands.

A lock says that a task is being worked on there right now; it goes with the process that holds it. A file beside it says whose
unfinished work lies there, also when nobody works. A tree with anybody else's changes is refused, so that no task ever
commits or rolls back what is not its own.
"""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from pathlib import Path

from ...core.errors import Busy, Invalid, Precondition
from . import patches
from .command import LONG, attempt, git, identity, take
from .repository import Look, Repository, at, hide, look, snapshot

FIRST = "Yourturn: what was there before the first commit"
_held: dict[str, int] = {}
_guard = threading.Lock()


def settle(repo: Repository, key: str, patch: str | None, fresh: bool) -> str:
    """Take the checkout for a task; returns the commit where its work begins."""
    if repo.bare:
        raise Invalid(f"{repo.top} has no files to work in", reason="it is a bare repository", hint="Work in a clone of it.")
    handle = _taken(repo)
    try:
        hide(repo)
        mark = _read(repo)
        seen = look(repo.top)
        if mark.get("task") != key:
            if seen.dirty and not fresh:
                raise _refused(repo, mark.get("task"), seen)
            mark = {}
        start = mark.get("start")
        if start is None or (mark.get("head"), mark.get("branch")) != (seen.head, seen.branch):
            start = seen.head or _first(repo, key, seen)  # what was committed meanwhile is not ours to roll back
        _write(repo, {"task": key, "start": start, "head": seen.head, "branch": seen.branch})
        if patch and not mark and not seen.dirty:
            patches.laid(repo, key, patch)
    except BaseException:
        os.close(handle)
        raise
    with _guard:
        _held[repo.top] = handle
    return start


def unfinished(repo: Repository) -> str | None:
    """The task whose work lies in the checkout and is not committed."""
    key = _read(repo).get("task")
    return key if key and look(repo.top).dirty else None


def refused(repo: Repository) -> Precondition | None:
    """Changes that no task has left there."""
    hide(repo)
    seen = look(repo.top)
    return _refused(repo, None, seen) if seen.dirty and not _read(repo).get("task") else None


def leave(top: str) -> None:
    """Others may come. What lies there, and what was committed, is still marked as the task's own."""
    with _guard:
        handle = _held.pop(top, None)
    if handle is not None:
        try:
            repo = at(top)
            mark = _read(repo)
            if mark:
                seen = look(top)
                _write(repo, mark | {"head": seen.head, "branch": seen.branch})
        finally:
            os.close(handle)


def done(top: str) -> None:
    """Nothing of the task lies there any more."""
    repo = at(top)
    key = _read(repo).get("task")
    with suppress(OSError):
        _mark(repo).unlink()
    if key:
        attempt(top, "update-ref", "-d", f"refs/yourturn/start/{key}")
    leave(top)


def reset(repo: Repository, start: str, branch: str | None) -> None:
    """Make the checkout what it was at a commit. Its index must hold everything that is to go; ignored files stay."""
    if git(repo.top, "log", "-1", "--format=%s", start).text == FIRST and branch:
        git(repo.top, "read-tree", "-u", "--reset", start, limit=LONG)
        git(repo.top, "symbolic-ref", "HEAD", f"refs/heads/{branch}")
        attempt(repo.top, "update-ref", "-d", f"refs/heads/{branch}")
        git(repo.top, "read-tree", "--empty")
        return
    if branch:
        git(repo.top, "symbolic-ref", "-m", "turn: roll back", "HEAD", f"refs/heads/{branch}")
    git(repo.top, "reset", "--quiet", "--hard", start, limit=LONG)


def _taken(repo: Repository) -> int:
    try:
        return take(Path(repo.gitdir, "yourturn-in-place.lock"))
    except Busy:
        raise Precondition(
            f"{_read(repo).get('task') or 'Another task'} is being worked on in {repo.top}",
            reason="one task at a time can use the checkout itself",
            hint="Wait for it, or let each task have a worktree of its own.",
        ) from None


def _refused(repo: Repository, before: str | None, seen: Look) -> Precondition:
    files = ", ".join(seen.dirty[:5]) + (f" and {len(seen.dirty) - 5} more" if len(seen.dirty) > 5 else "")
    if before:
        hint = f"Finish {before} first, or let each task have a worktree of its own."
        return Precondition(f"{repo.top} holds unfinished work of {before}", reason=files, hint=hint)
    hint = "Commit or stash it first, or let each task have a worktree of its own."
    return Precondition(f"{repo.top} has changes that are not committed", reason=files, hint=hint)


def _first(repo: Repository, key: str, seen: Look) -> str:
    """Before the first commit there is nothing to go back to, so what lies there is remembered as a commit on no branch."""
    sha = git(repo.top, "commit-tree", snapshot(repo, seen), "-m", FIRST, env=identity(repo.top)).text
    git(repo.top, "update-ref", f"refs/yourturn/start/{key}", sha)
    return sha


def _mark(repo: Repository) -> Path:
    return Path(repo.gitdir, "yourturn-in-place")


def _read(repo: Repository) -> dict[str, str | None]:
    """Whose work lies in the checkout, where it began, and where it stood when it was left."""
    try:
        found = json.loads(_mark(repo).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(repo: Repository, mark: dict[str, str | None]) -> None:
    new = _mark(repo).with_suffix(".new")
    new.write_text(json.dumps(mark))
    new.replace(_mark(repo))

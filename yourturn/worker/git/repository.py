"""Reads a repository: its folders, default branch, worktrees, refs and uncommitted changes."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from ...core.errors import GitTrouble, Invalid
from .command import LONG, attempt, git, locked, trouble

FOLDER, TREES = ".yourturn", "worktrees"
_IGNORED = (f"**/{FOLDER}/{TREES}/", "**/.agents/signals/")
_USUAL = ("main", "master", "trunk")
#: The lock reasons of a worktree that is being made: git's own, and that of `git worktree add --lock`.
_MAKING = ("initializing", "added with --lock")


class Repository(NamedTuple):
    top: str  #: the checkout, or the bare repository itself
    prefix: str  #: the path from `top` to the requested folder
    gitdir: str  #: of this checkout
    common: str  #: shared by all checkouts
    bare: bool

    def lock(self, name: str) -> Path:
        return Path(self.common, "yourturn", f"{name}.lock")


class Worktree(NamedTuple):
    """A checkout of a repository. The first in the list is the main checkout."""

    path: str
    head: str | None
    branch: str | None
    bare: bool
    lock: str | None

    @property
    def key(self) -> str | None:
        """The name of its folder, if it belongs to a task or a branch of a run."""
        parts = Path(self.path).parts
        return parts[-1] if parts[-3:-1] == (FOLDER, TREES) else None

    @property
    def task(self) -> str | None:
        """The task's key; PROJ-42.3.1, a branch of a run, belongs to PROJ-42."""
        return self.key and self.key.partition(".")[0]

    @property
    def half_made(self) -> bool:
        """It was never completed, so no agent has worked in it."""
        return self.lock in _MAKING


class Status(NamedTuple):
    """The uncommitted changes of a checkout."""

    head: str | None
    branch: str | None
    changed: list[str]
    unmerged: list[str]
    nested: list[str]  #: repositories inside it, which cannot be committed

    @property
    def dirty(self) -> list[str]:
        return sorted({*self.changed, *self.unmerged, *self.nested})


def find(root: str | Path) -> Repository | None:
    """The repository of a folder; None without one, or without git."""
    folder = os.path.realpath(root)
    if not _may_be(folder):
        return None
    names = ("--is-bare-repository", "--is-inside-work-tree", "--absolute-git-dir", "--git-common-dir", "--show-prefix")
    try:
        result = attempt(folder, "rev-parse", *names, "--show-toplevel")
    except GitTrouble as error:
        if error.message == "There is no git":
            return None
        raise
    if result.code != 0 and "not a git repository" in result.err:
        return None
    lines = result.lines
    if len(lines) < 5 or (result.code != 0 and lines[0] != "true"):
        raise trouble(f"The repository at {folder} cannot be read", result)
    bare, inside, gitdir, common, prefix = lines[:5]
    common = os.path.realpath(os.path.join(folder, common))  # noqa: PTH118
    if bare == "true":
        return Repository(gitdir, "", gitdir, common, True)
    if inside != "true":
        return None
    if prefix and attempt(folder, "check-ignore", "-q", ".").code == 0:
        return None  # the repository ignores this folder
    return Repository(os.path.realpath(lines[5]), prefix.rstrip("/"), gitdir, common, False)


def _may_be(folder: str) -> bool:
    """False if no folder upward looks like a repository: saves a git process."""
    while True:
        if any(os.path.lexists(os.path.join(folder, name)) for name in (".git", "HEAD")):  # noqa: PTH118
            return True
        parent = os.path.dirname(folder)  # noqa: PTH120
        if parent == folder:
            return False
        folder = parent


def repository_at(folder: str) -> Repository:
    """The repository of a folder. Raises GitTrouble without one."""
    repo = find(folder)
    if repo is None:
        raise GitTrouble(f"{folder} belongs to no repository any more", hint="Prepare it again, or restore its .git.")
    return repo


def list_worktrees(repo: Repository) -> list[Worktree]:
    worktrees: list[Worktree] = []
    for block in git(repo.top, "worktree", "list", "--porcelain").text.split("\n\n"):
        lines = {word: rest for word, _, rest in (line.partition(" ") for line in block.splitlines())}
        if "worktree" in lines:
            branch = lines.get("branch")
            worktrees.append(
                Worktree(
                    lines["worktree"],
                    lines.get("HEAD"),
                    branch.removeprefix("refs/heads/") if branch else None,
                    "bare" in lines,
                    lines.get("locked"),
                )
            )
    return worktrees


def remove_worktree(repo: Repository, path: str) -> None:
    """Remove a worktree with its files. Unlike `git worktree prune` it leaves other worktrees alone."""
    with locked(repo.lock("worktrees")):
        git(repo.top, "worktree", "remove", "--force", "--force", path, limit=LONG)


def worktrees_folder(root: str | Path, main: Worktree) -> Path:
    """The folder of all worktrees: in the nearest .yourturn upward, else in the main checkout."""
    folder = Path(os.path.realpath(root))
    for parent in (folder, *folder.parents):
        if (parent / FOLDER).is_dir():
            return parent / FOLDER / TREES
    return Path(main.path, FOLDER, TREES)


def exclude_own_folders(repo: Repository) -> None:
    """Make git ignore our folders, in info/exclude, because a .gitignore would be committed."""
    path = Path(repo.common, "info", "exclude")
    text = path.read_text(errors="surrogateescape") if path.exists() else ""
    missing = [line for line in _IGNORED if line not in text.splitlines()]
    if missing:
        path.parent.mkdir(exist_ok=True)
        with path.open("a") as file:
            file.write("\n" * bool(text and not text.endswith("\n")) + "".join(f"{line}\n" for line in missing))


# --- names ------------------------------------------------------------------------------------------------------------


def refs(folder: str, *names: str) -> dict[str, str]:
    """The commits of full ref names; names that do not exist are left out."""
    if not names:
        return {}
    lines = git(folder, "for-each-ref", "--format=%(objectname) %(refname)", *names).lines
    commits = {name: sha for sha, _, name in (line.partition(" ") for line in lines)}
    return {name: commits[name] for name in names if name in commits}


def commit_of(folder: str, name: str) -> str | None:
    result = attempt(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return result.text if result.code == 0 else None


def tree_of(folder: str, commit: str) -> str:
    return git(folder, "rev-parse", "--verify", "--end-of-options", f"{commit}^{{tree}}").text


def is_ancestor(folder: str, older: str, newer: str) -> bool:
    """True if the older commit is in the history of the newer one."""
    return older == newer or attempt(folder, "merge-base", "--is-ancestor", older, newer).code == 0


def default_branch(repo: Repository) -> tuple[str, str] | None:
    """The name and commit of the default branch; None before the first commit.

    The remote's default branch as it is here; else main, master or trunk; else the checked-out branch.
    """
    usual = [f"refs/heads/{name}" for name in _USUAL]
    lines = git(repo.top, "for-each-ref", "--format=%(objectname) %(refname) %(symref)", "refs/remotes/origin/HEAD", *usual).lines
    commits = {name: (sha, target) for sha, name, target in (line.split(" ", 2) for line in lines)}
    sha, target = commits.pop("refs/remotes/origin/HEAD", ("", ""))
    name = target.removeprefix("refs/remotes/origin/")
    if name:
        here = refs(repo.top, f"refs/heads/{name}")
        return (name, here[f"refs/heads/{name}"]) if here else (f"origin/{name}", sha)
    for full in usual:
        if full in commits:
            return full.removeprefix("refs/heads/"), commits[full][0]
    head = commit_of(repo.top, "HEAD")
    return (attempt(repo.top, "symbolic-ref", "--quiet", "--short", "HEAD").text or head, head) if head else None


#: What git forbids in a branch's name.
_NO_BRANCH = re.compile(r"^[-/]|^@?$|[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|(^|/)\.|(\.lock|\.|/)(/|$)")


def check_names(key: str, branch: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_][\w.-]*", key) or key.endswith(".lock"):
        raise Invalid(f"{key[:60]!a} is not a task's key")
    if _NO_BRANCH.search(branch):
        raise Invalid(f"{branch[:80]!a} cannot be a branch", hint=f"Give it another: turn update {key} --branch turn/{key}")


# --- uncommitted changes ----------------------------------------------------------------------------------------------


def status_of(folder: str) -> Status:
    """The status of a checkout, file by file."""
    head = branch = None
    changed: list[str] = []
    unmerged: list[str] = []
    nested: list[str] = []
    status = ("status", "--porcelain=v2", "-z", "--branch", "--untracked-files=all", "--no-renames", "--ignore-submodules=none")
    for line in os.fsdecode(git(folder, *status, limit=LONG).out).split("\0"):
        if line.startswith("# branch.oid "):
            head = line[13:] if line[13:] != "(initial)" else None
        elif line.startswith("# branch.head "):
            branch = line[14:] if line[14:] != "(detached)" else None
        elif line.startswith("1 "):
            changed.append(line.split(" ", 8)[8])
        elif line.startswith("u "):
            unmerged.append(line.split(" ", 10)[10])
        elif line.startswith("? "):
            (nested if line.endswith("/") else changed).append(line[2:])
    return Status(head, branch, changed, unmerged, [path.rstrip("/") for path in nested])


def add_all(top: str, status: Status, index: str | None = None) -> None:
    """Stage everything but nested repositories, into the given index."""
    env = {"GIT_INDEX_FILE": index} if index else None
    if not status.nested:
        git(top, "add", "--all", env=env, limit=LONG)
        return
    spec = [":(top)", *(f":(top,exclude,literal){path}" for path in status.nested)]
    words = ("add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul")
    git(top, *words, input=b"\0".join(os.fsencode(word) for word in spec), env=env, limit=LONG)


@contextmanager
def temporary_index(repo: Repository, copy: bool = False) -> Iterator[str]:
    """A temporary index: empty, or a copy of the checkout's."""
    handle, path = tempfile.mkstemp(prefix="yourturn-index-", dir=repo.gitdir)
    os.close(handle)
    try:
        own = Path(repo.gitdir, "index")
        if copy and own.exists():
            shutil.copy2(own, path)  # with its mtime, which git compares with those of files to detect changes
        else:
            Path(path).unlink()
        yield path
    finally:
        with suppress(OSError):
            Path(path).unlink()


def snapshot(repo: Repository, status: Status) -> str:
    """A git tree of all files in the checkout. The checkout and its index stay unchanged."""
    with temporary_index(repo, copy=True) as index:
        add_all(repo.top, status, index)
        return git(repo.top, "write-tree", env={"GIT_INDEX_FILE": index}).text

"""What there is to know about a repository before anything is done to it: where it is, what it calls main, who works where."""

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
#: How git words the lock of a worktree that is being made, by itself and by us.
_MAKING = ("initializing", "added with --lock")


class Repository(NamedTuple):
    top: str  # the checkout, or the bare repository itself
    prefix: str  # from there to the folder that was asked about
    gitdir: str  # of this checkout
    common: str  # shared by all checkouts
    bare: bool

    def lock(self, name: str) -> Path:
        return Path(self.common, "yourturn", f"{name}.lock")


class Tree(NamedTuple):
    """A checkout of a repository. The first of them is the main one."""

    path: str
    head: str | None
    branch: str | None
    bare: bool
    lock: str | None

    @property
    def key(self) -> str | None:
        """Its name, if it is one of ours."""
        parts = Path(self.path).parts
        return parts[-1] if parts[-3:-1] == (FOLDER, TREES) else None

    @property
    def task(self) -> str | None:
        """The same; a branch of a run, PROJ-42.3.1, belongs to the run."""
        return self.key and self.key.partition(".")[0]

    @property
    def half_made(self) -> bool:
        """Nobody was given it yet."""
        return self.lock in _MAKING


class Look(NamedTuple):
    """What a checkout holds beside its last commit."""

    head: str | None
    branch: str | None
    changed: list[str]
    unmerged: list[str]
    nested: list[str]  # repositories of their own inside it, which no commit can hold

    @property
    def dirty(self) -> list[str]:
        return sorted({*self.changed, *self.unmerged, *self.nested})


def find(root: str | Path) -> Repository | None:
    """The repository that a folder belongs to; None where there is none, or no git."""
    folder = os.path.realpath(root)
    if not _may_be(folder):
        return None
    wanted = ("--is-bare-repository", "--is-inside-work-tree", "--absolute-git-dir", "--git-common-dir", "--show-prefix")
    try:
        found = attempt(folder, "rev-parse", *wanted, "--show-toplevel")
    except GitTrouble as error:
        if error.message == "There is no git":
            return None
        raise
    if found.code != 0 and "not a git repository" in found.err:
        return None
    lines = found.lines
    if len(lines) < 5 or (found.code != 0 and lines[0] != "true"):
        raise trouble(f"The repository at {folder} cannot be read", found)
    bare, inside, gitdir, common, prefix = lines[:5]
    common = os.path.realpath(os.path.join(folder, common))  # noqa: PTH118
    if bare == "true":
        return Repository(gitdir, "", gitdir, common, True)
    if inside != "true":
        return None
    if prefix and attempt(folder, "check-ignore", "-q", ".").code == 0:
        return None  # a folder that the repository around it does not want to know
    return Repository(os.path.realpath(lines[5]), prefix.rstrip("/"), gitdir, common, False)


def _may_be(folder: str) -> bool:
    """Whether to ask git at all: it takes a process, and where there is nothing to be seen it says no."""
    while True:
        if any(os.path.lexists(os.path.join(folder, name)) for name in (".git", "HEAD")):  # noqa: PTH118
            return True
        above = os.path.dirname(folder)  # noqa: PTH120
        if above == folder:
            return False
        folder = above


def at(folder: str) -> Repository:
    """The repository of a folder that was prepared in one."""
    found = find(folder)
    if found is None:
        raise GitTrouble(f"{folder} belongs to no repository any more", hint="Prepare it again, or restore its .git.")
    return found


def trees(repo: Repository) -> list[Tree]:
    found: list[Tree] = []
    for block in git(repo.top, "worktree", "list", "--porcelain").text.split("\n\n"):
        lines = {word: rest for word, _, rest in (line.partition(" ") for line in block.splitlines())}
        if "worktree" in lines:
            branch = lines.get("branch")
            found.append(
                Tree(
                    lines["worktree"],
                    lines.get("HEAD"),
                    branch.removeprefix("refs/heads/") if branch else None,
                    "bare" in lines,
                    lines.get("locked"),
                )
            )
    return found


def forget(repo: Repository, path: str) -> None:
    """Remove a worktree, whatever is in it. Other worktrees are not looked at, unlike with `git worktree prune`."""
    with locked(repo.lock("worktrees")):
        git(repo.top, "worktree", "remove", "--force", "--force", path, limit=LONG)


def home(root: str | Path, main: Tree) -> Path:
    """Where worktrees are kept: in the nearest .yourturn upward, else in the main checkout."""
    folder = Path(os.path.realpath(root))
    for above in (folder, *folder.parents):
        if (above / FOLDER).is_dir():
            return above / FOLDER / TREES
    return Path(main.path, FOLDER, TREES)


def hide(repo: Repository) -> None:
    """Git should not see our folders. This is said in the repository's own list, never in a file that is committed."""
    path = Path(repo.common, "info", "exclude")
    text = path.read_text(errors="surrogateescape") if path.exists() else ""
    missing = [line for line in _IGNORED if line not in text.splitlines()]
    if missing:
        path.parent.mkdir(exist_ok=True)
        with path.open("a") as file:
            file.write("\n" * bool(text and not text.endswith("\n")) + "".join(f"{line}\n" for line in missing))


# --- names ------------------------------------------------------------------------------------------------------------


def refs(folder: str, *names: str) -> dict[str, str]:
    """The commits behind full names; those that do not exist are left out."""
    if not names:
        return {}
    lines = git(folder, "for-each-ref", "--format=%(objectname) %(refname)", *names).lines
    found = {name: sha for sha, _, name in (line.partition(" ") for line in lines)}
    return {name: found[name] for name in names if name in found}


def commit_of(folder: str, name: str) -> str | None:
    found = attempt(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return found.text if found.code == 0 else None


def tree_of(folder: str, commit: str) -> str:
    return git(folder, "rev-parse", "--verify", "--end-of-options", f"{commit}^{{tree}}").text


def is_in(folder: str, older: str, newer: str) -> bool:
    """Is one commit part of the other's history?"""
    return older == newer or attempt(folder, "merge-base", "--is-ancestor", older, newer).code == 0


def default(repo: Repository) -> tuple[str, str] | None:
    """What everybody's work is based on, by name and commit; None before the first commit.

    The remote's default branch as it is here; else main, master or trunk; else what the checkout stands on.
    """
    usual = [f"refs/heads/{name}" for name in _USUAL]
    lines = git(repo.top, "for-each-ref", "--format=%(objectname) %(refname) %(symref)", "refs/remotes/origin/HEAD", *usual).lines
    found = {name: (sha, target) for sha, name, target in (line.split(" ", 2) for line in lines)}
    sha, target = found.pop("refs/remotes/origin/HEAD", ("", ""))
    name = target.removeprefix("refs/remotes/origin/")
    if name:
        here = refs(repo.top, f"refs/heads/{name}")
        return (name, here[f"refs/heads/{name}"]) if here else (f"origin/{name}", sha)
    for full in usual:
        if full in found:
            return full.removeprefix("refs/heads/"), found[full][0]
    head = commit_of(repo.top, "HEAD")
    return (attempt(repo.top, "symbolic-ref", "--quiet", "--short", "HEAD").text or head, head) if head else None


#: What git allows in no branch's name.
_NO_BRANCH = re.compile(r"^[-/]|^@?$|[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|(^|/)\.|(\.lock|\.|/)(/|$)")


def check_names(key: str, branch: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_][\w.-]*", key) or key.endswith(".lock"):
        raise Invalid(f"{key[:60]!a} is no task's key")
    if _NO_BRANCH.search(branch):
        raise Invalid(f"{branch[:80]!a} cannot be a branch", hint=f"Give it another: turn update {key} --branch turn/{key}")


# --- what is there ----------------------------------------------------------------------------------------------------


def look(folder: str) -> Look:
    """Everything that is not committed in a checkout, file by file."""
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
    return Look(head, branch, changed, unmerged, [path.rstrip("/") for path in nested])


def add_all(top: str, seen: Look, index: str | None = None) -> None:
    """Stage everything but nested repositories, into the given index."""
    env = {"GIT_INDEX_FILE": index} if index else None
    if not seen.nested:
        git(top, "add", "--all", env=env, limit=LONG)
        return
    spec = [":(top)", *(f":(top,exclude,literal){path}" for path in seen.nested)]
    words = ("add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul")
    git(top, *words, input=b"\0".join(os.fsencode(word) for word in spec), env=env, limit=LONG)


@contextmanager
def scratch(repo: Repository, copy: bool = False) -> Iterator[str]:
    """An index to try things in."""
    handle, path = tempfile.mkstemp(prefix="yourturn-index-", dir=repo.gitdir)
    os.close(handle)
    try:
        own = Path(repo.gitdir, "index")
        if copy and own.exists():
            shutil.copy2(own, path)  # with its time: git compares it with the times of files to see which it must read again
        else:
            Path(path).unlink()
        yield path
    finally:
        with suppress(OSError):
            Path(path).unlink()


def snapshot(repo: Repository, seen: Look) -> str:
    """A tree of everything that is in the checkout now. Nothing is staged, nothing moves."""
    with scratch(repo, copy=True) as index:
        add_all(repo.top, seen, index)
        return git(repo.top, "write-tree", env={"GIT_INDEX_FILE": index}).text

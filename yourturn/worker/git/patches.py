"""Unfinished work as a text, for another folder or another machine.

A patch has all differences to the commit where the work began, committed or not, and the ids of its commits. It is an ordinary
`git diff --binary` after four lines that `git apply` skips. A diff with bytes that are not UTF-8 is encoded as base64, so that it
can be stored as text.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import NamedTuple

from ...core.errors import Precondition
from .command import LONG, attempt, git, reason_of
from .repository import Repository, commit_of, is_ancestor, snapshot, status_of, temporary_index

_HEAD = re.compile(r"Yourturn patch\nbase ([0-9a-f]{40,64})\nhead ([0-9a-f]{40,64})\nencoding (utf-8|base64)\n\n")


class Patch(NamedTuple):
    base: str | None
    head: str | None
    diff: bytes


def read(text: str) -> Patch:
    head = _HEAD.match(text)
    if not head:
        return Patch(None, None, text.encode())
    rest = text[head.end() :]
    return Patch(head[1], head[2], base64.b64decode(rest) if head[3] == "base64" else rest.encode())


def write(patch: Patch) -> str:
    try:
        rest, encoding = patch.diff.decode(), "utf-8"
    except UnicodeDecodeError:
        rest = "\0"
    if "\0" in rest or "\r" in rest:  # a carriage return could be lost in transit
        rest, encoding = base64.encodebytes(patch.diff).decode("ascii"), "base64"
    return f"Yourturn patch\nbase {patch.base}\nhead {patch.head}\nencoding {encoding}\n\n{rest}"


def create(repo: Repository, start: str) -> str:
    """The patch from a commit to the files in the checkout; '' without differences."""
    status = status_of(repo.top)
    tree = snapshot(repo, status)
    how = ("--binary", "--full-index", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv", "--submodule=short")
    plain = ("-U3", "--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules=none")
    diff = git(repo.top, "diff", *how, *plain, start, tree, limit=LONG).out
    return write(Patch(start, status.head or start, diff)) if diff else ""


def apply(repo: Repository, key: str, text: str) -> None:
    """Apply a patch to a clean checkout, uncommitted. Raises an error and changes nothing if it does not apply."""
    patch = read(text)
    head = commit_of(repo.top, "HEAD")
    commits = {sha for sha in (patch.base, patch.head) if sha and commit_of(repo.top, sha)}
    if head and patch.head in commits and patch.head != head and is_ancestor(repo.top, patch.head or "", head):
        return  # the commits here are newer than the patch
    base = patch.base if patch.base in commits and patch.head == head else head
    tree = _applied(repo, key, base, patch.diff)
    git(repo.top, "read-tree", "-m", "-u", *([head] if head else []), tree, limit=LONG)
    git(repo.top, "reset", "--quiet", limit=LONG)


def _applied(repo: Repository, key: str, base: str | None, diff: bytes) -> str:
    """The tree of a commit with a diff applied."""
    how = ("apply", "--cached", "--whitespace=nowarn", "--no-ignore-whitespace", "-p1")
    with temporary_index(repo) as index:
        env = {"GIT_INDEX_FILE": index}
        for more in ((), ("--3way",)):
            git(repo.top, "read-tree", base or "--empty", env=env)
            result = attempt(repo.top, *how, *more, "-", input=diff, env=env, limit=LONG)
            if result.code == 0:
                return git(repo.top, "write-tree", env=env).text
    raise Precondition(
        f"The unfinished work of {key} cannot be applied any more",
        reason=reason_of(result),
        hint="It was begun on other commits: fetch them here and try again, or start without it.",
    )


# --- patches of a run with branches -----------------------------------------------------------------------------------

#: No line of a diff begins with this.
_PART = re.compile(r"^Yourturn branch ([\d.]+)\n", re.M)


def pack(parts: Mapping[str, str]) -> str:
    """The patches of a run and its branches in one text."""
    more = [f"Yourturn branch {name}\n{body}" for name, body in sorted(parts.items()) if name and body]
    return "".join([parts.get("", ""), *more])


def unpack(text: str) -> dict[str, str]:
    own, *rest = _PART.split(text)
    return {"": own, **dict(zip(rest[::2], rest[1::2], strict=True))}

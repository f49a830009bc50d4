"""Unfinished work as text: enough to go on in another folder, or on another machine.

A patch says everything that differs from the commit where the work began, committed or not, and which commits it belongs to.
It is an ordinary `git diff --binary` behind four lines that `git apply` skips. Where a file's bytes are no text, the diff
is packed as base64, so that it can be kept wherever text can.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import NamedTuple

from ...core.errors import Precondition
from .command import LONG, attempt, git, said
from .repository import Repository, commit_of, is_in, look, scratch, snapshot

_HEAD = re.compile(r"Yourturn patch\nbase ([0-9a-f]{40,64})\nhead ([0-9a-f]{40,64})\nencoding (utf-8|base64)\n\n")


class Patch(NamedTuple):
    base: str | None
    head: str | None
    diff: bytes


def read(text: str) -> Patch:
    found = _HEAD.match(text)
    if not found:
        return Patch(None, None, text.encode())
    rest = text[found.end() :]
    return Patch(found[1], found[2], base64.b64decode(rest) if found[3] == "base64" else rest.encode())


def write(patch: Patch) -> str:
    try:
        rest, encoding = patch.diff.decode(), "utf-8"
    except UnicodeDecodeError:
        rest = "\0"
    if "\0" in rest or "\r" in rest:  # a carriage return may be lost on the way
        rest, encoding = base64.encodebytes(patch.diff).decode("ascii"), "base64"
    return f"Yourturn patch\nbase {patch.base}\nhead {patch.head}\nencoding {encoding}\n\n{rest}"


def taken(repo: Repository, start: str) -> str:
    """What the checkout holds beyond a commit; empty if nothing."""
    seen = look(repo.top)
    tree = snapshot(repo, seen)
    how = ("--binary", "--full-index", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv", "--submodule=short")
    plain = ("-U3", "--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules=none")
    diff = git(repo.top, "diff", *how, *plain, start, tree, limit=LONG).out
    return write(Patch(start, seen.head or start, diff)) if diff else ""


def laid(repo: Repository, key: str, text: str) -> None:
    """Put the work of a patch into a clean checkout, uncommitted. All of it, or an error and nothing."""
    patch = read(text)
    head = commit_of(repo.top, "HEAD")
    known = {sha for sha in (patch.base, patch.head) if sha and commit_of(repo.top, sha)}
    if head and patch.head in known and patch.head != head and is_in(repo.top, patch.head or "", head):
        return  # what is committed here is newer than the patch
    ground = patch.base if patch.base in known and patch.head == head else head
    tree = _applied(repo, key, ground, patch.diff)
    git(repo.top, "read-tree", "-m", "-u", *([head] if head else []), tree, limit=LONG)
    git(repo.top, "reset", "--quiet", limit=LONG)


def _applied(repo: Repository, key: str, ground: str | None, diff: bytes) -> str:
    """The tree that a diff makes of a commit."""
    how = ("apply", "--cached", "--whitespace=nowarn", "--no-ignore-whitespace", "-p1")
    with scratch(repo) as index:
        env = {"GIT_INDEX_FILE": index}
        for more in ((), ("--3way",)):
            git(repo.top, "read-tree", ground or "--empty", env=env)
            found = attempt(repo.top, *how, *more, "-", input=diff, env=env, limit=LONG)
            if found.code == 0:
                return git(repo.top, "write-tree", env=env).text
    raise Precondition(
        f"The unfinished work of {key} does not fit any more",
        reason=said(found),
        hint="It was begun on other commits: fetch them here and try again, or start without it.",
    )


# --- several in one -----------------------------------------------------------------------------------------------------

#: No line of a diff begins like this.
_PART = re.compile(r"^Yourturn branch ([\d.]+)\n", re.M)


def packed(parts: Mapping[str, str]) -> str:
    """The patch of a run, and those of its branches."""
    more = [f"Yourturn branch {name}\n{body}" for name, body in sorted(parts.items()) if name and body]
    return "".join([parts.get("", ""), *more])


def unpacked(text: str) -> dict[str, str]:
    own, *rest = _PART.split(text)
    return {"": own, **dict(zip(rest[::2], rest[1::2], strict=True))}

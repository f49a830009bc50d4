"""Runs git unattended.

Git expects a person at a terminal. Here a worker calls it, which a git hook may have started, in a repository with a person's
settings. So every call

- drops the variables that a calling hook left in the environment (GIT_DIR, GIT_INDEX_FILE …) and keeps those that reach a server
  or name a person (GIT_SSH_COMMAND, GIT_AUTHOR_NAME …);
- produces English messages, never prompts, opens no editor, starts no maintenance in the background;
- ends: it has a time limit and a process group that is killed with it, and writes into files, because a process that a hook left
  behind would keep a pipe open;
- is retried for some seconds if another git holds a lock.

The repository's other settings apply, above all its hooks and filters.
"""

from __future__ import annotations

import fcntl
import os
import random
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from ...core.errors import Busy, GitTrouble

QUICK, LONG = 60.0, 900.0

#: The prefixes of GIT_ variables that are kept.
_KEPT = (
    "GIT_SSH", "GIT_ASKPASS", "GIT_SSL_", "GIT_HTTP", "GIT_PROXY", "GIT_LFS_", "GIT_EXEC_PATH", "GIT_TEMPLATE_DIR",
    "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_ALLOW_PROTOCOL",
    "GIT_CEILING_DIRECTORIES",
    "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_",
)  # fmt: skip

#: Settings that are useful for a person and harmful for a program.
_SETTINGS = (
    "gc.auto=0", "maintenance.auto=false", "core.fsmonitor=false", "core.quotePath=false", "submodule.recurse=false",
    "advice.detachedHead=false", "advice.addEmbeddedRepo=false", "rerere.autoUpdate=false", "merge.autoStash=false",
)  # fmt: skip

#: Signs that another git holds a lock.
_LOCKED = (".lock': File exists", "cannot lock ref", "could not lock", "failed to read")


class GitResult(NamedTuple):
    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return os.fsdecode(self.out).strip()

    @property
    def lines(self) -> list[str]:
        return os.fsdecode(self.out).splitlines()


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name.startswith(_KEPT)}
    env |= {"LC_ALL": "C", "LANGUAGE": "", "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true", "GIT_OPTIONAL_LOCKS": "0"}
    return env | dict(extra or {})


def attempt(
    folder: str,
    *words: str,
    input: bytes | None = None,
    env: Mapping[str, str] | None = None,
    limit: float = QUICK,
    patience: float = 10.0,
) -> GitResult:
    """Run git in a folder and return its result, also after a failure. Raises if git or the folder is missing, or time is up."""
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    argv = ["git", *settings, *words]
    ends = time.monotonic() + patience
    pause = 0.01
    while True:
        result = run(argv, folder, input=input, env=environment(env), limit=limit)
        if result.code == 0 or not any(word in result.err for word in _LOCKED) or time.monotonic() > ends:
            return result
        time.sleep(pause * random.uniform(0.5, 1.5))
        pause = min(pause * 2, 0.5)


def git(
    folder: str,
    *words: str,
    input: bytes | None = None,
    env: Mapping[str, str] | None = None,
    limit: float = QUICK,
) -> GitResult:
    """Run git in a folder. Raises GitTrouble if it fails."""
    result = attempt(folder, *words, input=input, env=env, limit=limit)
    if result.code != 0:
        raise trouble(f"{_DOING.get(words[0], 'Git could not be used')} in {folder} (git {words[0]})", result)
    return result


#: What a failed git command means for the worker.
_DOING = {
    "add": "The work could not be gathered", "commit-tree": "The work could not be committed",
    "diff": "The changes could not be read", "log": "The history could not be read", "merge": "The branches could not be merged",
    "read-tree": "The files could not be read", "reset": "The folder could not be reset",
    "update-ref": "The branch could not be moved", "worktree": "The worktree could not be made",
    "write-tree": "The work could not be written",
}  # fmt: skip


def trouble(message: str, result: GitResult) -> GitTrouble:
    return GitTrouble(message, reason=reason_of(result), hint=_advice(result.err))


class Cause(NamedTuple):
    """Why git failed."""

    sign: str  #: in git's message
    words: str
    advice: str = ""


CAUSES = (
    Cause("dubious ownership", "the repository belongs to another user",
          "If you trust it: git config --global --add safe.directory FOLDER"),
    Cause("not a git repository", "this is not a git repository (any more)", "Restore its .git, or run the worker elsewhere."),
    Cause(".lock': File exists", "another git is at work there, or one was killed and left its lock",
          "See whether it still runs, then remove that lock file."),
    Cause("No space left", "the disk is full", "Make room on the disk, then try again."),
    Cause("Permission denied (publickey", "the remote does not know this machine's key", "Check with: git fetch"),
    Cause("Permission denied", "files there may not be written by this user"),
    Cause("is already used by worktree", "the branch is checked out in another worktree", "See: git worktree list"),
    Cause("is already checked out", "the branch is checked out in another worktree", "See: git worktree list"),
    Cause("would be overwritten", "changes that are not committed are in the way", "Commit or stash them, then try again."),
    Cause("Could not resolve host", "the remote cannot be reached"),
    Cause("Could not read from remote", "the remote cannot be reached, or refuses access"),
    Cause("unable to access", "the remote cannot be reached, or refuses access"),
    Cause("non-fast-forward", "the branch there has commits that are not here", "Fetch and merge them, then try again."),
    Cause("bad object", "the repository is damaged", "Check it with: git fsck"),
    Cause("is corrupt", "the repository is damaged", "Check it with: git fsck"),
)  # fmt: skip
_PREFIX = re.compile(r"(?:fatal|error): ")


def reason_of(result: GitResult, lines: int = 12) -> str:
    """Why git failed: the known cause, if there is one, and the end of the output of git or a hook."""
    text = [line.rstrip() for line in (result.err.strip() or result.text).splitlines() if not line.startswith("hint:")]
    shown = "\n".join(_PREFIX.sub("", line, count=1) if _PREFIX.match(line) else line for line in text[-lines:])
    cause = _cause(result.err)
    if cause is not None:
        return f"{cause.words} (git: {shown.strip()})"
    if not shown.strip():
        return f"it ended with {result.code} and printed nothing"
    return f"git: {shown}" if any(_PREFIX.match(line) for line in text[-lines:]) else shown


def _cause(err: str) -> Cause | None:
    return next((cause for cause in CAUSES if cause.sign in err), None)


def _advice(err: str) -> str:
    cause = _cause(err)
    return cause.advice if cause is not None else ""


def run(
    argv: Sequence[str], folder: str, *, input: bytes | None = None, env: Mapping[str, str] | None = None, limit: float = QUICK
) -> GitResult:
    """Run any program with a time limit and its output in files."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as stdin_file:
        if input is not None:
            stdin_file.write(input)
            stdin_file.seek(0)
        try:
            process = subprocess.Popen(
                argv,
                cwd=folder,
                env=env,
                stdin=stdin_file if input is not None else subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        except FileNotFoundError as error:
            missing = folder if error.filename == folder or not os.path.isdir(folder) else argv[0]  # noqa: PTH112
            raise GitTrouble(f"There is no {missing}", hint="" if missing == folder else f"Install {missing}.") from None
        except OSError as error:
            raise GitTrouble(f"{argv[0]} could not be started in {folder}", reason=error.strerror or str(error)) from None
        try:
            code = process.wait(limit)
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise GitTrouble(f"{' '.join(_bare(argv))} took too long in {folder}", reason=f"more than {limit:g} s") from None
            raise
        out.seek(0)
        err.seek(0)
        return GitResult(code, out.read(), err.read().decode(errors="replace"))


def _bare(argv: Sequence[str]) -> list[str]:
    """A git command without the settings that `attempt` adds."""
    words = [word for i, word in enumerate(argv) if word != "-c" and (i == 0 or argv[i - 1] != "-c")]
    return words[:3]


# --- the author -------------------------------------------------------------------------------------------------------


def identity(folder: str) -> dict[str, str]:
    """Variables that name an author if git's configuration and the environment name none; usually empty."""
    result = attempt(folder, "config", "--get-regexp", r"^(user|author|committer)\.(name|email)$")
    names = {name for line in result.lines for name, space, value in [line.partition(" ")] if space and value.strip()}
    env: dict[str, str] = {}
    for who in ("author", "committer"):
        for part, word in (("name", "Yourturn"), ("email", "yourturn@localhost")):
            variable = f"GIT_{who}_{part}".upper()
            set_elsewhere = os.environ.get(variable) or (part == "email" and os.environ.get("EMAIL"))
            if not set_elsewhere and not {f"{who}.{part}", f"user.{part}"} & names:
                env[variable] = word
    return env


# --- locks ------------------------------------------------------------------------------------------------------------


@contextmanager
def locked(path: Path, patience: float = LONG) -> Iterator[None]:
    """Allow one process or thread at a time. The file is removed afterwards; a killed process releases its lock."""
    handle = acquire(path, patience)
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(handle)


def acquire(path: Path, patience: float = 0.0) -> int:
    """The handle of the lock; closing it, or the end of the process, releases it. Raises Busy if another process holds it."""
    ends = time.monotonic() + patience
    path.parent.mkdir(parents=True, exist_ok=True)
    pause = 0.001
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _same(handle, path):
                return handle
        except BlockingIOError:
            if time.monotonic() >= ends:
                os.close(handle)
                raise Busy(f"{path} is locked by another worker", hint="Try again in a moment.") from None
            time.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(pause * 2, 0.05)
        os.close(handle)


def _same(handle: int, path: Path) -> bool:
    """True if the handle is still the file at that path: the last holder may have removed it."""
    try:
        there, here = path.stat(), os.fstat(handle)
    except OSError:
        return False
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)

"""Commits the changes in a checkout, and merges or pushes the commit as the project's settings say."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from ...core.errors import GitTrouble, Invalid, Precondition
from .command import LONG, GitResult, attempt, environment, git, identity, locked, reason_of, run
from .repository import Repository, Status, add_all, commit_of, default_branch, is_ancestor, list_worktrees, refs, repository_at

_REMOTE = 180.0


def check_merge(merge: str) -> None:
    if merge not in ("none", "ff", "pr"):
        raise Invalid(f"{merge!a} is not a way to merge", hint="Choose one of: none, ff, pr.")


def commit_all(repo: Repository, status: Status, branch: str | None, message: str) -> tuple[str | None, str]:
    """Commit all changes of a checkout; returns the commit and a report. If a hook refuses, the changes stay uncommitted."""
    for name in ("rebase-merge", "rebase-apply"):
        if Path(repo.gitdir, name).exists():
            raise Precondition(f"A rebase was begun in {repo.top} and not finished", hint="git rebase --continue, or --abort")
    if status.unmerged:
        files = ", ".join(status.unmerged[:20])
        raise Precondition(f"Conflicts are left in {repo.top}", reason=files, hint="Resolve them, then finish again.")
    left_out = f" Left out: {', '.join(status.nested)}, a repository of its own." if status.nested else ""
    pending = Path(repo.gitdir, "MERGE_HEAD").exists()
    if not status.changed and not pending:
        return status.head, _where(status.head, branch) + left_out
    add_all(repo.top, status)
    unsigned = ""
    result = _commit(repo, message)
    if result.code != 0 and not pending and attempt(repo.top, "diff", "--cached", "--quiet").code == 0:
        return status.head, _where(status.head, branch) + left_out
    if result.code != 0 and attempt(repo.top, "config", "--type=bool", "commit.gpgsign").text == "true":
        unsigned_result = _commit(repo, message, "--no-gpg-sign")
        if unsigned_result.code == 0:
            unsigned = f" It is not signed: {reason_of(result, 1)}"
        result = unsigned_result
    if result.code != 0:
        raise Precondition(
            f"The work in {repo.top} could not be committed",
            reason=reason_of(result),
            hint="Nothing is lost, everything is still there. If a hook refused it, mend what it names and finish again.",
        )
    sha = commit_of(repo.top, "HEAD")
    return sha, _where(sha, branch or status.branch) + left_out + unsigned


def _commit(repo: Repository, message: str, *more: str) -> GitResult:
    text = message.replace("\0", "").strip() or "Work of an agent"
    words = ("commit", "--quiet", "--file=-", "--cleanup=whitespace", "--no-edit", *more)
    return attempt(repo.top, *words, input=text.encode(errors="replace"), env=identity(repo.top), limit=LONG)


def _where(sha: str | None, branch: str | None) -> str:
    if sha is None:
        return ""
    return f"Committed {sha[:10]} on {branch}." if branch else f"Committed {sha[:10]}, on no branch: git branch NAME {sha[:10]}"


def move_to_branch(repo: Repository, branch: str, standing: str | None, head: str) -> None:
    """Move the task's branch to the agent's commits, if the agent has checked out another branch."""
    full = f"refs/heads/{branch}"
    tip = refs(repo.top, full).get(full)
    if tip is not None and not is_ancestor(repo.top, tip, head):
        raise Precondition(
            f"The work in {repo.top} is on {standing or 'no branch'}, not on {branch}",
            reason="the two have gone different ways",
            hint=f"Everything is committed. Merge one into the other there, then: git switch {branch}",
        )
    git(repo.top, "update-ref", "-m", "turn: finish", full, head, tip or "0" * len(head))
    git(repo.top, "symbolic-ref", "-m", "turn: finish", "HEAD", full)


def merge_commit(folder: str, message: str, commit: str) -> GitResult:
    """Merge a commit into the checked-out branch; conflicts are left to the caller."""
    how = ("--ff", "--no-edit", "--no-verify", "--no-gpg-sign", "--no-verify-signatures", "--no-stat", "--quiet")
    return attempt(folder, "merge", *how, "-m", message, commit, env=identity(folder), limit=LONG)


# --- merge and push ---------------------------------------------------------------------------------------------------


def deliver(top: str, branch: str, base: str | None, message: str, merge: str) -> dict[str, Any]:
    """Merge or propose the branch. The `words` say what happened, or why not and which command helps."""
    if merge == "none":
        return {"words": f"Next: git merge {branch}"}
    repo = repository_at(top)
    target_refs = refs(top, f"refs/heads/{base}") if base else {}
    default = default_branch(repo) if not target_refs else None
    target = base if target_refs and base else default[0].removeprefix("origin/") if default else ""
    return _fast_forward(repo, branch, target) if merge == "ff" else _pull_request(repo, branch, target, message)


def _fast_forward(repo: Repository, branch: str, target: str) -> dict[str, Any]:
    full, mine = f"refs/heads/{target}", f"refs/heads/{branch}"
    with locked(repo.lock("merge")):
        commits = refs(repo.top, full, mine)
        if full not in commits:
            return {"words": f"Not merged: there is no branch {target} here. Next: git branch {target} {branch}"}
        if is_ancestor(repo.top, commits[mine], commits[full]):
            return {"merged": True, "words": f"{target} has it already."}
        if not is_ancestor(repo.top, commits[full], commits[mine]):
            return {"words": f"Not merged: {target} has moved on. Next: git switch {target} && git merge {branch}"}
        path = next((tree.path for tree in list_worktrees(repo) if tree.branch == target and not tree.bare), None)
        if path is None:
            git(repo.top, "update-ref", "-m", f"merge {branch}: Fast-forward", full, commits[mine], commits[full])
            return {"merged": True, "words": f"{target} has it now."}
        if attempt(path, "diff", "--quiet", "HEAD").code != 0:
            return {"words": f"Not merged: {target} has uncommitted changes at {path}. Next: git -C '{path}' merge {branch}"}
        result = attempt(path, "merge", "--ff-only", "--quiet", "--no-stat", mine, limit=LONG)
        if result.code != 0:
            return {"words": f"Not merged: {reason_of(result, 4)} Next: git -C '{path}' merge {branch}"}
    return {"merged": True, "words": f"{target} has it now."}


def _pull_request(repo: Repository, branch: str, target: str, message: str) -> dict[str, Any]:
    remotes = git(repo.top, "remote").lines
    remote = "origin" if "origin" in remotes else remotes[0] if len(remotes) == 1 else None
    if remote is None:
        why = "several remotes, none of them origin" if remotes else "no remote"
        return {"words": f"No pull request: the repository has {why}. Next: git merge {branch}"}
    try:
        push = attempt(repo.top, "push", "--quiet", remote, f"refs/heads/{branch}:refs/heads/{branch}", limit=_REMOTE)
    except GitTrouble as error:
        return {"words": f"Not pushed: {error}. Next: git push {remote} {branch}"}
    if push.code != 0:
        return {"words": f"Not pushed: {reason_of(push, 4)} Next: git push {remote} {branch}"}
    if shutil.which("gh") is None:
        return {"words": f"Pushed to {remote}. Next: open a pull request from {branch} (gh is not installed)."}
    title, _, body = message.strip().partition("\n")
    words = ["gh", "pr", "create", "--head", branch, "--base", target, f"--title={title or branch}", f"--body={body.strip()}"]
    try:
        result = run(words, repo.top, env={**environment(), "GH_PROMPT_DISABLED": "1", "NO_COLOR": "1"}, limit=_REMOTE)
    except GitTrouble as error:
        return {"words": f"Pushed to {remote}, but no pull request: {error}. Next: gh pr create --head {branch}"}
    url = next((word for word in f"{result.text} {result.err}".split() if word.startswith("https://")), None)
    if result.code == 0 or (url and "already exists" in result.err):
        return {"url": url, "words": f"Pull request: {url or 'made'}"}
    why = reason_of(result, 4)
    return {"url": None, "words": f"Pushed to {remote}, but no pull request: {why} Next: gh pr create --head {branch}"}

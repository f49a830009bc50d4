"""From a folder with changes to a commit on the right branch, and from there to where the project wants it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from ...core.errors import GitTrouble, Invalid, Precondition
from .command import LONG, Result, attempt, environment, git, identity, locked, run, said
from .repository import Look, Repository, add_all, at, commit_of, default, is_in, refs, trees

_REMOTE = 180.0


def check(merge: str) -> None:
    if merge not in ("none", "ff", "pr"):
        raise Invalid(f"{merge!a} is no way to merge", hint="Choose one of: none, ff, pr.")


def committed(repo: Repository, seen: Look, branch: str | None, message: str) -> tuple[str | None, str]:
    """Commit all that is in a checkout. Its hooks decide as they always do; when they refuse, everything stays as it is."""
    for name in ("rebase-merge", "rebase-apply"):
        if Path(repo.gitdir, name).exists():
            raise Precondition(f"A rebase was begun in {repo.top} and not finished", hint="git rebase --continue, or --abort")
    if seen.unmerged:
        files = ", ".join(seen.unmerged[:20])
        raise Precondition(f"Conflicts are left in {repo.top}", reason=files, hint="Resolve them, then finish again.")
    aside = f" Left out: {', '.join(seen.nested)}, a repository of its own." if seen.nested else ""
    pending = Path(repo.gitdir, "MERGE_HEAD").exists()
    if not seen.changed and not pending:
        return seen.head, _where(seen.head, branch) + aside
    add_all(repo.top, seen)
    unsigned = ""
    found = _commit(repo, message)
    if found.code != 0 and not pending and attempt(repo.top, "diff", "--cached", "--quiet").code == 0:
        return seen.head, _where(seen.head, branch) + aside
    if found.code != 0 and attempt(repo.top, "config", "--type=bool", "commit.gpgsign").text == "true":
        again = _commit(repo, message, "--no-gpg-sign")
        if again.code == 0:
            unsigned = f" It is not signed: {said(found, 1)}"
        found = again
    if found.code != 0:
        raise Precondition(
            f"The work in {repo.top} could not be committed",
            reason=said(found),
            hint="Nothing is lost, everything is still there. If a hook refused it, mend what it names and finish again.",
        )
    sha = commit_of(repo.top, "HEAD")
    return sha, _where(sha, branch or seen.branch) + aside + unsigned


def _commit(repo: Repository, message: str, *more: str) -> Result:
    text = message.replace("\0", "").strip() or "Work of an agent"
    words = ("commit", "--quiet", "--file=-", "--cleanup=whitespace", "--no-edit", *more)
    return attempt(repo.top, *words, input=text.encode(errors="replace"), env=identity(repo.top), limit=LONG)


def _where(sha: str | None, branch: str | None) -> str:
    if sha is None:
        return ""
    return f"Committed {sha[:10]} on {branch}." if branch else f"Committed {sha[:10]}, on no branch: git branch NAME {sha[:10]}"


def home_again(repo: Repository, branch: str, standing: str | None, head: str) -> None:
    """Whatever branch the agent chose to stand on: its commits belong on the task's."""
    full = f"refs/heads/{branch}"
    tip = refs(repo.top, full).get(full)
    if tip is not None and not is_in(repo.top, tip, head):
        raise Precondition(
            f"The work in {repo.top} is on {standing or 'no branch'}, not on {branch}",
            reason="the two have gone different ways",
            hint=f"Everything is committed. Merge one into the other there, then: git switch {branch}",
        )
    git(repo.top, "update-ref", "-m", "turn: finish", full, head, tip or "0" * len(head))
    git(repo.top, "symbolic-ref", "-m", "turn: finish", "HEAD", full)


def merged(folder: str, message: str, commit: str) -> Result:
    """Merge a commit into what is checked out; conflicts are left for whoever called."""
    how = ("--ff", "--no-edit", "--no-verify", "--no-gpg-sign", "--no-verify-signatures", "--no-stat", "--quiet")
    return attempt(folder, "merge", *how, "-m", message, commit, env=identity(folder), limit=LONG)


# --- and on -----------------------------------------------------------------------------------------------------------


def delivered(top: str, branch: str, base: str | None, message: str, merge: str) -> dict[str, Any]:
    """Merged, or the words for why not and what to type."""
    if merge == "none":
        return {"words": f"Next: git merge {branch}"}
    repo = at(top)
    found = refs(top, f"refs/heads/{base}") if base else {}
    ground = default(repo) if not found else None
    target = base if found and base else ground[0].removeprefix("origin/") if ground else ""
    return _forward(repo, branch, target) if merge == "ff" else _proposed(repo, branch, target, message)


def _forward(repo: Repository, branch: str, target: str) -> dict[str, Any]:
    full, mine = f"refs/heads/{target}", f"refs/heads/{branch}"
    with locked(repo.lock("merge")):
        found = refs(repo.top, full, mine)
        if full not in found:
            return {"words": f"Not merged: there is no branch {target} here. Next: git branch {target} {branch}"}
        if is_in(repo.top, found[mine], found[full]):
            return {"merged": True, "words": f"{target} has it already."}
        if not is_in(repo.top, found[full], found[mine]):
            return {"words": f"Not merged: {target} has moved on. Next: git switch {target} && git merge {branch}"}
        where = next((tree.path for tree in trees(repo) if tree.branch == target and not tree.bare), None)
        if where is None:
            git(repo.top, "update-ref", "-m", f"merge {branch}: Fast-forward", full, found[mine], found[full])
            return {"merged": True, "words": f"{target} has it now."}
        if attempt(where, "diff", "--quiet", "HEAD").code != 0:
            return {"words": f"Not merged: {target} has uncommitted changes at {where}. Next: git -C '{where}' merge {branch}"}
        done = attempt(where, "merge", "--ff-only", "--quiet", "--no-stat", mine, limit=LONG)
        if done.code != 0:
            return {"words": f"Not merged: {said(done, 4)} Next: git -C '{where}' merge {branch}"}
    return {"merged": True, "words": f"{target} has it now."}


def _proposed(repo: Repository, branch: str, target: str, message: str) -> dict[str, Any]:
    remotes = git(repo.top, "remote").lines
    remote = "origin" if "origin" in remotes else remotes[0] if len(remotes) == 1 else None
    if remote is None:
        why = "several remotes, none of them origin" if remotes else "no remote"
        return {"words": f"No pull request: the repository has {why}. Next: git merge {branch}"}
    try:
        pushed = attempt(repo.top, "push", "--quiet", remote, f"refs/heads/{branch}:refs/heads/{branch}", limit=_REMOTE)
    except GitTrouble as error:
        return {"words": f"Not pushed: {error}. Next: git push {remote} {branch}"}
    if pushed.code != 0:
        return {"words": f"Not pushed: {said(pushed, 4)} Next: git push {remote} {branch}"}
    if shutil.which("gh") is None:
        return {"words": f"Pushed to {remote}. Next: open a pull request from {branch} (gh is not installed)."}
    title, _, body = message.strip().partition("\n")
    words = ["gh", "pr", "create", "--head", branch, "--base", target, f"--title={title or branch}", f"--body={body.strip()}"]
    try:
        made = run(words, repo.top, env={**environment(), "GH_PROMPT_DISABLED": "1", "NO_COLOR": "1"}, limit=_REMOTE)
    except GitTrouble as error:
        return {"words": f"Pushed to {remote}, but no pull request: {error}. Next: gh pr create --head {branch}"}
    url = next((word for word in f"{made.text} {made.err}".split() if word.startswith("https://")), None)
    if made.code == 0 or (url and "already exists" in made.err):
        return {"url": url, "words": f"Pull request: {url or 'made'}"}
    return {"url": None, "words": f"Pushed to {remote}, but no pull request: {said(made, 4)} Next: gh pr create --head {branch}"}

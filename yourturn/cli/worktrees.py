"""Worktrees on the command line: git knows what lies in them, the desk knows which tasks have ended."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from ..core.errors import NotFound
from .parser import connect
from .parser import show as out


def worktree_args(p: Any) -> None:
    p.add_argument("what", nargs="?", choices=("list", "clean"), default="list", metavar="list|clean")
    p.add_argument("--dry-run", action="store_true", help="for clean: only say what would happen")


def worktree(a: Namespace) -> int:
    from ..worker.git.cleanup import clean, worktrees

    with connect(a) as desk:
        if a.what == "clean":
            found = clean(Path.cwd(), lambda key: bool((_task(desk, key) or {}).get("ended_at")), a.dry_run)
            return out(a, found, lambda: _cleaned(found, a.dry_run))
        found = [{**tree, "state": (_task(desk, tree["task"]) or {}).get("state")} for tree in worktrees(Path.cwd())]
    return out(a, found, lambda: _listed(found))


def _task(desk: Any, key: str) -> dict[str, Any] | None:
    try:
        task: dict[str, Any] = desk.show(key)
    except NotFound:
        return None
    return task if task.get("key") == key else None


def _listed(found: list[dict[str, Any]]) -> list[str]:
    from ..display.terminal import columns, one_line

    if not found:
        return ["No task has a worktree here."]
    rows = []
    for tree in found:
        count = tree["changes"]
        lies = "its folder is gone" if not tree["there"] else "cannot be read" if count is None else _files(count)
        state = tree["state"] or "not on this desk"
        rows.append([tree["task"], state, lies, one_line(tree["branch"] or "no branch"), one_line(tree["folder"])])
    return [*columns(rows), "Next: turn worktree clean --dry-run"]


def _files(count: int) -> str:
    return f"{count:,} {'file' if count == 1 else 'files'} not committed" if count else "all committed"


def _cleaned(found: list[dict[str, Any]], dry_run: bool) -> list[str]:
    from ..display.terminal import one_line

    if not found:
        return ["No task has a worktree here."]
    would = "Would remove" if dry_run else "Removed"
    lines = [f"{would if tree['removed'] else 'Kept'} {one_line(tree['task'])}: {one_line(tree['why'])}" for tree in found]
    kept = any(not tree["removed"] for tree in found)
    return [*lines, *(["Next: turn worktree list"] if kept else []), *(["Next: turn worktree clean"] if dry_run else [])]

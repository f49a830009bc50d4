"""`turn worktree`: lists the worktrees of tasks, and removes those whose task has ended."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from ..core.errors import NotFound
from .parser import connect
from .parser import show as out


def worktree_args(p: Any) -> None:
    p.add_argument("what", nargs="?", choices=("list", "clean"), default="list", metavar="list|clean")
    p.add_argument("--dry-run", action="store_true", help="for clean: print what would be removed, and change nothing")


def worktree(a: Namespace) -> int:
    from ..worker.git.cleanup import clean, worktrees

    with connect(a) as desk:
        if a.what == "clean":
            cleaned = clean(Path.cwd(), lambda key: bool((_task(desk, key) or {}).get("ended_at")), a.dry_run)
            return out(a, cleaned, lambda: _clean_lines(cleaned, a.dry_run))
        trees = [{**tree, "state": (_task(desk, tree["task"]) or {}).get("state")} for tree in worktrees(Path.cwd())]
    return out(a, trees, lambda: _list_lines(trees))


def _task(desk: Any, key: str) -> dict[str, Any] | None:
    try:
        task: dict[str, Any] = desk.show(key)
    except NotFound:
        return None
    return task if task.get("key") == key else None


def _list_lines(trees: list[dict[str, Any]]) -> list[str]:
    from ..display.terminal import columns, one_line

    if not trees:
        return ["No task has a worktree here."]
    rows = []
    for tree in trees:
        count = tree["changes"]
        changes = "its folder is missing" if not tree["there"] else "unreadable" if count is None else _files(count)
        state = tree["state"] or "not on this desk"
        rows.append([tree["task"], state, changes, one_line(tree["branch"] or "no branch"), one_line(tree["folder"])])
    return [*columns(rows), "Next: turn worktree clean --dry-run"]


def _files(count: int) -> str:
    return f"{count:,} {'file' if count == 1 else 'files'} not committed" if count else "all committed"


def _clean_lines(trees: list[dict[str, Any]], dry_run: bool) -> list[str]:
    from ..display.terminal import one_line

    if not trees:
        return ["No task has a worktree here."]
    removed = "Would remove" if dry_run else "Removed"
    lines = [f"{removed if tree['removed'] else 'Kept'} {one_line(tree['task'])}: {one_line(tree['why'])}" for tree in trees]
    kept = any(not tree["removed"] for tree in trees)
    return [*lines, *(["Next: turn worktree list"] if kept else []), *(["Next: turn worktree clean"] if dry_run else [])]

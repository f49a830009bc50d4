"""`turn export`, `import`, `backup` and `restore`."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable
from typing import Any

from ..core.errors import Usage
from ..core.references import TRACKERS
from .parser import connect
from .parser import show as out


def export__args(p: Any) -> None:
    p.add_argument("file", nargs="?", metavar="FILE", help="where to write (default: standard output); gzipped if it ends in .gz")


def export_(a: Namespace) -> int:
    if a.file in (None, "-"):
        if a.json:
            raise Usage("turn export: no FILE given", hint="With --json, name a FILE; the export itself is JSON lines.")
        with connect(a) as desk:
            desk.export(sys.stdout, progress=_progress("exported"))
        return 0
    with connect(a) as desk:
        result = desk.export(a.file, progress=_progress("exported"))
    return out(a, result, [f"Exported {result['rows']:,} rows to {a.file}.", f"Next: turn import {a.file} --db …"])


def import__args(p: Any) -> None:
    p.add_argument("source", metavar="FILE|FOLDER", help="an export, or the file or folder of another tracker")
    p.add_argument("--from", dest="tracker", choices=TRACKERS, metavar="TRACKER", help="ticks, beehive or beads")
    p.add_argument("--dry-run", action="store_true", help="print what would be imported, and change nothing")


def import_(a: Namespace) -> int:
    with connect(a) as desk:
        result = desk.import_(a.source, from_=a.tracker, dry_run=a.dry_run, progress=_progress("imported"))
    return out(a, result, lambda: _import_lines(result))


def _import_lines(result: dict[str, Any]) -> list[str]:
    from ..display.terminal import columns, one_line

    verb = "Would import" if result["dry_run"] else "Imported"
    count = result["imported"]
    into = f" into {result['project']}" if "project" in result else ""
    source = "the export" if result["format"] == "yourturn" else result["format"]
    lines = [f"{verb} {count:,} {'task' if count == 1 else 'tasks'} from {source}{into}."]
    if result["unchanged"]:
        lines.append(f"{result['unchanged']:,} {'was' if result['unchanged'] == 1 else 'were'} imported before.")
    if result.get("fenced"):
        lines.append(f"{result['fenced']:,} with a claim or a permission, which are void here: claim or ask again.")
    lines += columns([[f"  {t['id']}", t["key"], t["state"]] for t in result.get("tasks", ())])
    if aside := result.get("aside"):
        types = ", ".join(f"{count:,} {one_line(type_)}" for type_, count in sorted(aside.items()))
        total = sum(aside.values())
        are = "is" if total == 1 else "are"
        lines.append(f"  {total:,} {are} not work ({types}): deferred, not offered to agents")
    lines += [f"  {d['id']} differs from {d['key']}, which was imported before: not changed" for d in result.get("differ", ())]
    lines += [f"  {one_line(w['id'])} {one_line(w['what'])}" for w in result.get("warnings", ())]
    return [*lines, "Next: turn list"]


def backup_args(p: Any) -> None:
    formats = "where to write; JSON lines if it ends in .jsonl or .gz, else a copy of the database"
    p.add_argument("file", metavar="FILE", help=formats)


def backup(a: Namespace) -> int:
    with connect(a) as desk:
        result = desk.backup(a.file, progress=_progress("saved"))
    lines = [f"Saved everything in {a.file} ({result['bytes']:,} bytes).", f"Next: turn restore {a.file} --into …"]
    return out(a, result, lines)


def restore_args(p: Any) -> None:
    p.add_argument("file", metavar="FILE", help="a backup, an export, or a desk's database")
    p.add_argument("--into", metavar="DB", help="the desk to replace or create (the same as --db)")
    p.add_argument("--force", action="store_true", help="replace a desk that contains tasks; the old database is kept beside it")


def restore(a: Namespace) -> int:
    from ..config import restore

    if os.environ.get("YOURTURN_URL") and not (a.into or a.db):
        raise Usage("YOURTURN_URL names a server", reason="a restore needs a database", hint="Unset it, or give --into.")
    result = restore(a.file, a.into or a.db, force=a.force, as_=a.as_)
    lines = [f"Restored {result['tasks']:,} {'task' if result['tasks'] == 1 else 'tasks'} into {result['db']}."]
    lines.append("Claims, links, sessions and approvals from before are void.")
    if result["aside"]:
        lines.append(f"The old database is kept in {result['aside']}.")
    return out(a, result, [*lines, "Next: turn doctor"])


def _progress(word: str) -> Callable[[int], None] | None:
    """Prints the number of rows, on a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        return None

    def print_progress(rows: int) -> None:
        if rows % 20_000 == 0:
            print(f"\r{rows:,} rows {word} …", end="", file=sys.stderr, flush=True)

    return print_progress

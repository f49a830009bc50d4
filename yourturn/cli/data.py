"""Data in and out on the command line."""

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
    p.add_argument("file", nargs="?", metavar="FILE", help="where to (standard output); packed if it ends in .gz")


def export_(a: Namespace) -> int:
    if a.file in (None, "-"):
        if a.json:
            raise Usage("turn export: where to?", hint="With --json, name a FILE; the export itself is JSON lines.")
        with connect(a) as desk:
            desk.export(sys.stdout, progress=_progress("exported"))
        return 0
    with connect(a) as desk:
        found = desk.export(a.file, progress=_progress("exported"))
    return out(a, found, [f"Exported {found['rows']:,} rows to {a.file}.", f"Next: turn import {a.file} --db …"])


def import__args(p: Any) -> None:
    p.add_argument("source", metavar="FILE|FOLDER", help="an export, or where another tracker keeps its tasks")
    p.add_argument("--from", dest="tracker", choices=TRACKERS, metavar="TRACKER", help="ticks, beehive or beads")
    p.add_argument("--dry-run", action="store_true", help="only say what would happen")


def import_(a: Namespace) -> int:
    with connect(a) as desk:
        found = desk.import_(a.source, from_=a.tracker, dry_run=a.dry_run, progress=_progress("imported"))
    return out(a, found, lambda: _imported(found))


def _imported(found: dict[str, Any]) -> list[str]:
    from ..display.terminal import columns, one_line

    would = "Would import" if found["dry_run"] else "Imported"
    count = found["imported"]
    into = f" into {found['project']}" if "project" in found else ""
    source = "the export" if found["format"] == "yourturn" else found["format"]
    lines = [f"{would} {count:,} {'task' if count == 1 else 'tasks'} from {source}{into}."]
    if found["unchanged"]:
        lines.append(f"{found['unchanged']:,} {'was' if found['unchanged'] == 1 else 'were'} here already.")
    if found.get("fenced"):
        lines.append(f"{found['fenced']:,} claimed or permitted: void here, ask again.")
    lines += columns([[f"  {t['id']}", t["key"], t["state"]] for t in found.get("tasks", ())])
    if aside := found.get("aside"):
        sorts = ", ".join(f"{count:,} {one_line(sort)}" for sort, count in sorted(aside.items()))
        many = sum(aside.values())
        verb = "is not" if many == 1 else "are not"
        lines.append(f"  {many:,} {verb} work there ({sorts}): deferred, not offered to agents")
    lines += [f"  {d['id']} differs from {d['key']}, which was imported before: left as it is" for d in found.get("differ", ())]
    lines += [f"  {one_line(w['id'])} {one_line(w['what'])}" for w in found.get("warnings", ())]
    return [*lines, "Next: turn list"]


def backup_args(p: Any) -> None:
    p.add_argument("file", metavar="FILE", help="where to; JSON lines if it ends in .jsonl or .gz, else a copy of the database")


def backup(a: Namespace) -> int:
    with connect(a) as desk:
        found = desk.backup(a.file, progress=_progress("saved"))
    return out(a, found, [f"Saved everything in {a.file} ({found['bytes']:,} bytes).", f"Next: turn restore {a.file} --into …"])


def restore_args(p: Any) -> None:
    p.add_argument("file", metavar="FILE", help="a backup, an export, or a desk's database")
    p.add_argument("--into", metavar="DB", help="the desk to replace, or to make (the same as --db)")
    p.add_argument("--force", action="store_true", help="replace a desk that holds work; it is kept in a file beside it")


def restore(a: Namespace) -> int:
    from ..config import restore

    if os.environ.get("YOURTURN_URL") and not (a.into or a.db):
        raise Usage("YOURTURN_URL names a server", reason="a restore opens a database", hint="Unset it, or give --into.")
    found = restore(a.file, a.into or a.db, force=a.force, as_=a.as_)
    lines = [f"Restored {found['tasks']:,} {'task' if found['tasks'] == 1 else 'tasks'} into {found['db']}."]
    lines.append("Claims, links, sessions and approvals from before are void.")
    if found["aside"]:
        lines.append(f"What was there is in {found['aside']}.")
    return out(a, found, [*lines, "Next: turn doctor"])


def _progress(word: str) -> Callable[[int], None] | None:
    """On a terminal, long work shows that it goes on."""
    if sys.stderr is None or not sys.stderr.isatty():
        return None

    def tell(rows: int) -> None:
        if rows % 20_000 == 0:
            print(f"\r{rows:,} rows {word} …", end="", file=sys.stderr, flush=True)

    return tell

"""A whole desk in one file, and back.

The file is JSON lines. The first says what it is, the last how many rows came before and the SHA-256 of all their bytes,
so that a file that was cut off or edited is told from a whole one. Between them stands one row per line, with the name of
its table and its columns as they are stored: JSON stays text, because the hashes of the history cover its exact bytes.
The same desk gives the same bytes, whichever database it lives in.

An *export* leaves secrets out: tokens, and the hashes that prove claims. A *backup* holds them. On SQLite it is a copy of
the database itself, elsewhere an export with secrets; both are written beside the name, checked, and then renamed.

A file goes in whole or not at all, into a desk that holds no work yet: rows keep their numbers, so they cannot be mixed
with others. A desk that holds everything in the file already is left as it is. Claims that were live are void in the new
place. If there were any, or permissions that were given, the desk is fenced in the same commit (`restore` in the table);
if there were none, nothing is added, and an export of the new desk is the same file again.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from ..core.canonical_json import dumps, loads
from ..core.errors import Invalid, NotAllowed, Precondition, StoreTrouble
from ..core.model import Action, Who
from ..db import dump, schema
from ..db.backend import Store
from ..db.dump import Row
from ..db.unit_of_work import UnitOfWork
from ..desk import admin as office
from ..desk.desk import Desk

FORMAT, VERSION = "yourturn", 1
Progress = Callable[[int], None]

#: A line longer than this is not ours.
_LONGEST = 64 * 2**20
_SQLITE = b"SQLite format 3\x00"
_GZIP = b"\x1f\x8b"


# --- out --------------------------------------------------------------------------------------------------------------


def lines(store: Store, run: Any, secrets: bool = False, progress: Progress | None = None) -> Iterator[str]:
    """The file, line by line, from one snapshot."""
    sum_, counts = hashlib.sha256(), dict[str, int]()

    def line(value: dict[str, Any]) -> str:
        text = dumps(value) + "\n"
        sum_.update(text.encode())
        return text

    version = run(store.query["version"]).fetchone()[0]
    yield line({"format": FORMAT, "version": VERSION, "schema": version, "secrets": secrets})
    for n, (table, row) in enumerate(dump.dump(store, run, secrets), 1):
        yield line({"table": table, **row})
        counts[table] = counts.get(table, 0) + 1
        if progress is not None and n % 1000 == 0:
            progress(n)
    yield dumps({"end": True, "rows": counts, "sha256": sum_.hexdigest()}) + "\n"


def export(store: Store, who: Who, out: IO[str] | None, path: str | None = None, progress: Progress | None = None) -> int:
    """Write everything but secrets. Says how many rows."""
    admin(who, "export everything")
    count = 0
    with store.begin(write=False) as run:
        if path is not None:
            count = write(path, lines(store, run, progress=progress))
        else:
            assert out is not None
            for line in lines(store, run, progress=progress):
                out.write(line)
                count += 1
    return count - 2


def backup(store: Store, who: Who, path: str, progress: Progress | None = None) -> dict[str, Any]:
    """Everything, secrets too, as it was at one moment; others may go on writing."""
    admin(who, "make a backup")
    with _fresh(path) as temporary:
        if path.endswith((".jsonl", ".gz")) or not store.copy(temporary):
            with store.begin(write=False) as run:
                _write(temporary, path, lines(store, run, True, progress))
            check(temporary)
    return {"backup": path, "bytes": Path(path).stat().st_size}


def admin(who: Who, what: str) -> None:
    from ..core.rules import ROLES

    if "admin" not in ROLES[who.role]:
        raise NotAllowed(f"{who.name} cannot {what}", reason="only an admin can")


def write(path: str, found: Iterator[str]) -> int:
    """A new file, complete or not there at all. Says how many lines."""
    with _fresh(path) as temporary:
        return _write(temporary, path, found)


def _write(temporary: str, path: str, found: Iterator[str]) -> int:
    count = 0
    with Path(temporary).open("wb") as raw:
        packed = gzip.GzipFile("", "wb", 6, raw, mtime=0) if path.endswith(".gz") else None
        out: Any = packed or raw
        for line in found:
            out.write(line.encode())
            count += 1
        if packed is not None:
            packed.close()
    return count


@contextmanager
def _fresh(path: str) -> Iterator[str]:
    """A name beside the file, which takes its place only when all is written and on the disk."""
    target = Path(path)
    if target.is_dir():
        raise Invalid(f"{path} is a folder", hint="Name a file.")
    if target.exists() and target.stat().st_size and sort_of(path) is None:
        raise Invalid(f"{path} is there already, and is neither a backup nor an export", hint="Name another file.")
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with suppress(FileNotFoundError):
            temporary.unlink()
        yield str(temporary)
        temporary.chmod(0o600)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(target)
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise StoreTrouble(f"{path} cannot be written", reason=error.strerror or str(error)) from None
    finally:
        with suppress(OSError):
            temporary.unlink()


# --- in ---------------------------------------------------------------------------------------------------------------


def sort_of(path: str) -> str | None:
    """'sqlite' (a desk or a copy of one), 'export', or None."""
    try:
        with Path(path).open("rb") as file:
            start = file.read(16)
        if start == _SQLITE:
            return "sqlite"
        with _opened(path) as file:
            first = file.readline(1000)
    except (OSError, EOFError):
        return None
    return "export" if first.startswith(b'{"format":"' + FORMAT.encode() + b'"') else None


def _opened(path: str) -> Any:
    with Path(path).open("rb") as file:
        packed = file.read(2) == _GZIP
    return gzip.open(path, "rb") if packed else Path(path).open("rb")


def _raw(path: str) -> Iterator[tuple[int, bytes]]:
    number = 0
    try:
        with _opened(path) as file:
            while line := file.readline(_LONGEST):
                number += 1
                if not line.endswith(b"\n"):
                    raise Invalid(f"{path} was cut off", reason=f"line {number} has no end")
                yield number, line
    except (OSError, EOFError) as error:
        raise Invalid(f"{path} cannot be read", reason=f"after line {number}: {error}") from None


def check(path: str) -> dict[str, Any]:
    """Is it a whole file of ours, unchanged, that this program can read? Returns the counts of its last line."""
    sum_, last, ended = hashlib.sha256(), {}, False
    for number, line in _raw(path):
        if ended:
            raise Invalid(f"{path} goes on after its end", reason=f"line {number}")
        if number == 1:
            _readable(path, line)
        if line.startswith(b'{"end":true,'):
            last, ended = loads(line.decode(), f"{path}:{number}"), True
        else:
            sum_.update(line)
    if not ended:
        raise Invalid(f"{path} was cut off", reason="its last line is missing")
    if last.get("sha256") != sum_.hexdigest():
        raise Invalid(f"{path} was changed after it was written", reason=_changed(path), hint="Export it again.")
    found: dict[str, Any] = last["rows"]
    return found


def _changed(path: str) -> str:
    """Where, if that can be seen."""
    for number, line in _raw(path):
        try:
            loads(line.decode())
        except (Invalid, UnicodeDecodeError):
            return f"line {number} is no JSON"
    return "its SHA-256 does not fit"


def _readable(path: str, line: bytes) -> None:
    try:
        head = loads(line.decode(), path)
    except UnicodeDecodeError:
        head = {}
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise Invalid(f"{path} is no export of Yourturn")
    if head.get("version") != VERSION or head.get("schema", 0) > schema.VERSION:
        raise Invalid(f"{path} was written by a newer Yourturn", hint="pip install --upgrade yourturn")


def read(path: str, progress: Progress | None = None) -> Iterator[Row]:
    """The rows of a file that was checked."""
    for number, line in _raw(path):
        row = loads(line.decode(), f"{path}:{number}")
        if progress is not None and number % 1000 == 0:
            progress(number)
        if "table" in row:
            yield row.pop("table"), row


def bring_in(desk: Desk, path: str, dry_run: bool = False, progress: Progress | None = None) -> dict[str, Any]:
    """Import a file of ours into a desk that holds no work, exactly; or find that it is here already."""
    admin(desk.who, "import")
    counts = check(path)
    found = {"format": FORMAT, "found": counts.get("tasks", 0), "dry_run": dry_run}

    def move(tx: UnitOfWork) -> dict[str, Any]:
        dump.lock_tables(tx.store, tx.run)
        work = dump.holds_work(tx.store, tx.run)
        if work:
            other = _other(tx, path)
            if other:
                raise Precondition(
                    f"Cannot import {path}", reason=f"{work}, and {other} is not among it",
                    hint=f"Make an empty desk for it, or replace this one: turn restore {path} --force",
                )  # fmt: skip
            return {**found, "imported": 0, "unchanged": counts.get("tasks", 0), "fenced": 0}
        if dry_run:
            return {**found, "imported": counts.get("tasks", 0), "unchanged": 0, "fenced": 0}
        fenced = replace(tx.store, tx.run, read(path, progress), desk.who, desk.now(_time(tx)), path, always=False)
        row = tx.run(tx.q["workspace"], {"name": desk.workspace_name}).fetchone()
        if row is None:
            raise Precondition(f"Cannot import {path}", reason=f"it holds no workspace {desk.workspace_name}")
        desk.workspace = row[0]
        return {**found, "imported": counts.get("tasks", 0), "unchanged": 0, "fenced": fenced}

    return desk.transact("import", move)


def _time(tx: UnitOfWork) -> int:
    return int(tx.run(tx.q["now"]).fetchone()[0])


def _other(tx: UnitOfWork, path: str) -> str:
    """The first thing in the file that is not here: of every chain, the event that ends it in the file must be."""
    for table, row in read(path):
        if table == "projects" and not tx.run(tx.q["project_named"], row).fetchone():
            return f"project {row['key']}"
        if table == "tasks" and not tx.run(tx.q["chain_goes_through"], row).fetchone():
            return str(row["key"])
    return ""


def replace(store: Store, run: Any, found: Iterator[Row], who: Who, now: int, source: str, *, always: bool) -> int:
    """Put these rows in the place of all that is there. Returns how many tasks were fenced."""
    dump.rebuild(store, run)
    dump.load(store, run, found)
    fenced = 0
    for (workspace,) in run("SELECT id FROM workspaces ORDER BY id").fetchall():
        tx = UnitOfWork(store, run, workspace)
        void = office.standing(tx)
        fenced += len(void)
        if always or void:
            office.manage(tx, Action("restore", who, {"source": Path(source).name}), now or time.time_ns() // 1000)
            tx.write()
    return fenced

"""Archive: exports and backups of a desk, and the import of an export.

The file is JSON lines. The first line has the format, the last one the number of rows and the SHA-256 of all lines before, so
a truncated or edited file is detected. Each line between is one row: the name of its table, and its columns as they are
stored. JSON stays text, because the hashes of the event log cover its bytes. The same desk gives the same bytes on every
database.

An *export* leaves secrets out: tokens, and the hashes of claims. A *backup* includes them. On SQLite it is a copy of the
database, on PostgreSQL an export with secrets; both are written to a temporary file, checked, and then renamed.

An import is all or nothing, into a desk without work: rows keep their ids, so they cannot be merged. A desk that has all of the
file already stays as it is. If the file has claims or granted permissions, the commit of the import voids them (`restore` in
the table); otherwise it adds nothing, and an export of the new desk is the same file.
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
from ..core.rules import ROLES
from ..db import dump, schema
from ..db.backend import Store
from ..db.dump import Row
from ..db.unit_of_work import UnitOfWork
from ..desk import admin
from ..desk.desk import Desk

FORMAT, VERSION = "yourturn", 1
Progress = Callable[[int], None]

#: Maximum length of a line.
_LONGEST = 64 * 2**20
_SQLITE = b"SQLite format 3\x00"
_GZIP = b"\x1f\x8b"


# --- out --------------------------------------------------------------------------------------------------------------


def lines(store: Store, run: Any, secrets: bool = False, progress: Progress | None = None) -> Iterator[str]:
    """The lines of the file, from one snapshot."""
    checksum, counts = hashlib.sha256(), dict[str, int]()

    def line(value: dict[str, Any]) -> str:
        text = dumps(value) + "\n"
        checksum.update(text.encode())
        return text

    version = run(store.query["version"]).fetchone()[0]
    yield line({"format": FORMAT, "version": VERSION, "schema": version, "secrets": secrets})
    for n, (table, row) in enumerate(dump.dump(store, run, secrets), 1):
        yield line({"table": table, **row})
        counts[table] = counts.get(table, 0) + 1
        if progress is not None and n % 1000 == 0:
            progress(n)
    yield dumps({"end": True, "rows": counts, "sha256": checksum.hexdigest()}) + "\n"


def export(store: Store, who: Who, out: IO[str] | None, path: str | None = None, progress: Progress | None = None) -> int:
    """Write everything but secrets. Returns the number of rows."""
    require_admin(who, "export everything")
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
    """Write everything, with secrets, from one snapshot. Does not block writers."""
    require_admin(who, "make a backup")
    with _new_file(path) as temporary:
        if path.endswith((".jsonl", ".gz")) or not store.copy(temporary):
            with store.begin(write=False) as run:
                _write(temporary, path, lines(store, run, True, progress))
            check(temporary)
    return {"backup": path, "bytes": Path(path).stat().st_size}


def require_admin(who: Who, what: str) -> None:
    if "admin" not in ROLES[who.role]:
        raise NotAllowed(f"{who.name} cannot {what}", reason="only an admin can")


def write(path: str, lines: Iterator[str]) -> int:
    """Write a file completely or not at all. Returns the number of lines."""
    with _new_file(path) as temporary:
        return _write(temporary, path, lines)


def _write(temporary: str, path: str, lines: Iterator[str]) -> int:
    count = 0
    with Path(temporary).open("wb") as raw:
        packed = gzip.GzipFile("", "wb", 6, raw, mtime=0) if path.endswith(".gz") else None
        out: Any = packed or raw
        for line in lines:
            out.write(line.encode())
            count += 1
        if packed is not None:
            packed.close()
    return count


@contextmanager
def _new_file(path: str) -> Iterator[str]:
    """The name of a temporary file, which replaces `path` when it is complete and synced."""
    target = Path(path)
    if target.is_dir():
        raise Invalid(f"{path} is a folder", hint="Name a file.")
    if target.exists() and target.stat().st_size and file_type(path) is None:
        raise Invalid(f"{path} exists, and is neither a backup nor an export", hint="Name another file.")
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


def file_type(path: str) -> str | None:
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
    """Raises Invalid unless this is a complete, unchanged export that this program can read. Returns its counts of rows."""
    checksum, last, ended = hashlib.sha256(), {}, False
    for number, line in _raw(path):
        if ended:
            raise Invalid(f"{path} goes on after its end", reason=f"line {number}")
        if number == 1:
            _readable(path, line)
        if line.startswith(b'{"end":true,'):
            last, ended = loads(line.decode(), f"{path}:{number}"), True
        else:
            checksum.update(line)
    if not ended:
        raise Invalid(f"{path} was cut off", reason="its last line is missing")
    if last.get("sha256") != checksum.hexdigest():
        raise Invalid(f"{path} was changed after it was written", reason=_changed(path), hint="Export it again.")
    counts: dict[str, Any] = last["rows"]
    return counts


def _changed(path: str) -> str:
    """The first line that is not JSON, if there is one."""
    for number, line in _raw(path):
        try:
            loads(line.decode())
        except (Invalid, UnicodeDecodeError):
            return f"line {number} is not JSON"
    return "its SHA-256 does not fit"


def _readable(path: str, line: bytes) -> None:
    try:
        head = loads(line.decode(), path)
    except UnicodeDecodeError:
        head = {}
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise Invalid(f"{path} is not an export of Yourturn")
    if head.get("version") != VERSION or head.get("schema", 0) > schema.VERSION:
        raise Invalid(f"{path} was written by a newer Yourturn", hint="pip install --upgrade yourturn")


def read(path: str, progress: Progress | None = None) -> Iterator[Row]:
    """The rows of a checked file."""
    for number, line in _raw(path):
        row = loads(line.decode(), f"{path}:{number}")
        if progress is not None and number % 1000 == 0:
            progress(number)
        if "table" in row:
            yield row.pop("table"), row


def import_archive(desk: Desk, path: str, dry_run: bool = False, progress: Progress | None = None) -> dict[str, Any]:
    """Import an export into a desk without work. Changes nothing if the desk has all of it already."""
    require_admin(desk.who, "import")
    counts = check(path)
    result = {"format": FORMAT, "found": counts.get("tasks", 0), "dry_run": dry_run}

    def move(tx: UnitOfWork) -> dict[str, Any]:
        dump.lock_tables(tx.store, tx.run)
        work = dump.holds_work(tx.store, tx.run)
        if work:
            missing = _first_missing(tx, path)
            if missing:
                raise Precondition(
                    f"Cannot import {path}", reason=f"{work}, and {missing} is not among it",
                    hint=f"Make an empty desk for it, or replace this one: turn restore {path} --force",
                )  # fmt: skip
            return {**result, "imported": 0, "unchanged": counts.get("tasks", 0), "fenced": 0}
        if dry_run:
            return {**result, "imported": counts.get("tasks", 0), "unchanged": 0, "fenced": 0}
        fenced = replace(tx.store, tx.run, read(path, progress), desk.who, desk.now(_time(tx)), path, always=False)
        row = tx.run(tx.q["workspace"], {"name": desk.workspace_name}).fetchone()
        if row is None:
            raise Precondition(f"Cannot import {path}", reason=f"it holds no workspace {desk.workspace_name}")
        desk.workspace = row[0]
        return {**result, "imported": counts.get("tasks", 0), "unchanged": 0, "fenced": fenced}

    return desk.transact("import", move)


def _time(tx: UnitOfWork) -> int:
    return int(tx.run(tx.q["now"]).fetchone()[0])


def _first_missing(tx: UnitOfWork, path: str) -> str:
    """The first project or task of the file that this desk does not have: it must have the last event of each chain."""
    for table, row in read(path):
        if table == "projects" and not tx.run(tx.q["project_named"], row).fetchone():
            return f"project {row['key']}"
        if table == "tasks" and not tx.run(tx.q["chain_goes_through"], row).fetchone():
            return str(row["key"])
    return ""


def replace(store: Store, run: Any, rows: Iterator[Row], who: Who, now: int, source: str, *, always: bool) -> int:
    """Replace the whole desk by these rows. Returns the number of tasks whose claims or permissions are void."""
    dump.rebuild(store, run)
    dump.load(store, run, rows)
    fenced = 0
    for (workspace,) in run("SELECT id FROM workspaces ORDER BY id").fetchall():
        tx = UnitOfWork(store, run, workspace)
        void = admin.standing(tx)
        fenced += len(void)
        if always or void:
            admin.manage(tx, Action("restore", who, {"source": Path(source).name}), now or time.time_ns() // 1000)
            tx.write()
    return fenced

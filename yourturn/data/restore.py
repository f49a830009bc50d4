"""`turn restore`: replaces a desk by a backup or an export.

Since the backup, workers may have claimed tasks with epochs that it does not have, and people may have granted permissions that
were used. So a restore **fences** the past: the commit that writes the rows also drops every claim (without counting a try),
voids granted permissions and notes that on their tasks, and sets the workspace's `fenced_at`. That is later than any time in the
backup; new claims get higher epochs, and approvals, links and sessions from before are void.

It is one transaction: other processes see the old desk and then the new one. A desk with work is replaced only with --force,
and is first written to a file beside it, under the same lock. A damaged database file is moved aside.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..config import FILE, FOLDER, identity, locate, open_store, person
from ..config.init_desk import make_folder
from ..core.errors import BadDatabase, Busy, Invalid, NoDesk, NotAllowed, Precondition, SchemaMismatch
from ..core.model import Who
from ..db import dump, schema
from ..db.backend import Conflict, Store
from ..db.dump import Row
from ..desk.desk import Desk
from . import archive

_ATTEMPTS = 12
Source = Callable[[], Iterator[Row]]


def restore(
    file: str, into: str | None, *, force: bool, as_: str | None, env: Mapping[str, str], progress: archive.Progress | None = None
) -> dict[str, Any]:
    with ExitStack() as stack:
        source = stack.enter_context(_source(file, progress))
        address = _address(into, env)
        aside = _move_damaged(address, force)
        store = open_store(address, create=True)
        stack.callback(store.close)
        who = _who(store, as_, env)
        return _replace(store, source, who, file, force) | ({"aside": aside} if aside else {})


@contextmanager
def _source(file: str, progress: archive.Progress | None) -> Iterator[Source]:
    """The rows of a backup or an export. An older backup is copied and the copy upgraded."""
    file_type = archive.file_type(file)
    if file_type == "export":
        archive.check(file)
        yield lambda: archive.read(file, progress)
    elif file_type == "sqlite":
        with tempfile.TemporaryDirectory(prefix="yourturn-restore-") as folder:
            copy = str(Path(folder) / FILE)
            shutil.copyfile(file, copy)
            if Path(f"{file}-wal").exists():  # a desk that is or was open, not a backup
                shutil.copyfile(f"{file}-wal", f"{copy}-wal")
            store = open_store(copy)
            try:
                schema.create(store, upgrade=True)
                problems = store.check()
                if problems:
                    raise BadDatabase(f"{file} is damaged", reason="; ".join(problems[:5]))
                yield lambda: _rows(store)
            finally:
                store.close()
    elif not Path(file).is_file():
        raise Invalid(f"There is no file {file}")
    else:
        raise Invalid(f"{file} is neither a backup nor an export of Yourturn")


def _rows(store: Store) -> Iterator[Row]:
    with store.begin(write=False) as run:
        yield from dump.dump(store, run, secrets=True)


def _address(into: str | None, env: Mapping[str, str]) -> str:
    """The address of the desk, or of a new one."""
    try:
        address = locate(into, env)
    except NoDesk:
        address = str(Path.cwd() / FOLDER / FILE)
    make_folder(address)
    return address


def _move_damaged(address: str, force: bool) -> str:
    """Move a damaged database file aside. Returns its new name."""
    path = Path(address.removeprefix("sqlite:///"))
    if "://" in str(path) or not path.is_file() or not path.stat().st_size:
        return ""
    store = open_store(address)
    try:
        with store.reading() as run:
            store.tables(run)
            run("SELECT 1").fetchone()
        problems = store.check() if schema.version_of(store) else []
    except BadDatabase as error:
        if "another program" in error.message:
            raise
        problems = [error.reason or error.message]
    finally:
        store.close()
    if not problems:
        return ""
    if not force:
        hint = f"Say --force to move it aside and restore in its place: turn restore FILE --into {address} --force"
        raise Precondition(f"Cannot restore into {path}", reason=f"it is damaged ({problems[0]})", hint=hint)
    aside = path.with_name(f"{path.name}.{_stamp()}.damaged")
    for ending in ("-wal", "-shm", ""):
        if path.with_name(path.name + ending).exists():
            path.with_name(path.name + ending).rename(f"{aside}{ending}")
    return str(aside)


def _who(store: Store, as_: str | None, env: Mapping[str, str]) -> Who:
    """The actor, who must be an admin of the existing desk. Without a readable desk, any person."""
    if schema.version_of(store):
        try:
            schema.check(store)
            who = identity(Desk(store, Who("nobody", "viewer")), as_, env)
        except (SchemaMismatch, BadDatabase):
            who = _any_person(as_, env)
    else:
        who = _any_person(as_, env)
    archive.require_admin(who, "restore")
    return who


def _any_person(as_: str | None, env: Mapping[str, str]) -> Who:
    name = as_ or f"human:{person(env)}"
    name = name if ":" in name else f"human:{name}"
    if env.get("YOURTURN_AGENT") or env.get("YOURTURN_TOKEN") or not name.startswith("human:"):
        raise NotAllowed("An agent cannot restore", reason="only an admin can")
    return Who(name, "admin", direct=True)


def _replace(store: Store, source: Source, who: Who, file: str, force: bool) -> dict[str, Any]:
    for attempt in range(_ATTEMPTS):
        try:
            return _attempt(store, source, who, file, force)
        except Conflict:
            time.sleep(0.01 * 2**attempt)
    raise Busy("Too many other processes write to this desk", hint="Nothing was changed. Try again.")


def _attempt(store: Store, source: Source, who: Who, file: str, force: bool) -> dict[str, Any]:
    aside = _aside(store)
    try:
        return _transaction(store, source, who, file, aside if force else None)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise


def _transaction(store: Store, source: Source, who: Who, file: str, aside: str | None) -> dict[str, Any]:
    kept = None
    with store.begin("restore") as run:
        dump.lock_tables(store, run)
        work = dump.holds_work(store, run)
        if work and aside is None:
            hint = "Say --force to replace it; it is written to a file beside it first."
            raise Precondition(f"Cannot restore into {store.url}", reason=work, hint=hint)
        if work and aside is not None:
            archive.write(aside, archive.lines(store, run, secrets=True))
            kept = aside
        now = int(run(store.query["now"]).fetchone()[0])
        fenced = archive.replace(store, run, source(), who, now, file, always=True)
        tasks = run("SELECT count(*) FROM tasks").fetchone()[0]
    return {"db": store.url, "tasks": tasks, "fenced": fenced, "aside": kept}


def _aside(store: Store) -> str:
    """A new file beside the database; for a server, in the current folder."""
    place = Path(store.url) if store.dialect == "sqlite" else Path.cwd() / FILE
    return str(place.with_name(f"{place.stem}.{_stamp()}.before-restore.jsonl.gz"))


def _stamp() -> str:
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")

"""`turn restore`: a backup or an export in the place of a desk.

A backup knows a moment that is past. Since then workers have claimed tasks with epochs that it has never seen, people have
given permissions that were used, links were sent. So a restore **fences** the past: in the same commit in which the rows
come in, every claim in them is dropped (without costing a try), permissions that were given are void and say so in a note,
and the workspace remembers the moment, `fenced_at`. It is later than any time in the backup; new claims get epochs beyond
it, and an approval, link or session from before it does not count.

Everything is one transaction of the database that is there: whoever has it open sees the old desk, then the new one. A desk
that holds work is replaced only when that is asked for, and is written to a file beside it first, under the same lock. A
file that is no database any more is moved aside.
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

from ..config import FILE, FOLDER, identity, locate, open_store
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


def restored(
    file: str, into: str | None, *, force: bool, as_: str | None, env: Mapping[str, str], progress: archive.Progress | None = None
) -> dict[str, Any]:
    with ExitStack() as stack:
        found = stack.enter_context(_source(file, progress))
        address = _address(into, env)
        aside = _clear(address, force)
        store = open_store(address, create=True)
        stack.callback(store.close)
        who = _who(store, as_, env)
        return _replaced(store, found, who, file, force) | ({"aside": aside} if aside else {})


@contextmanager
def _source(file: str, progress: archive.Progress | None) -> Iterator[Source]:
    """The rows of a backup or an export; a copy of it is upgraded, never the file itself."""
    sort = archive.sort_of(file)
    if sort == "export":
        archive.check(file)
        yield lambda: archive.read(file, progress)
    elif sort == "sqlite":
        with tempfile.TemporaryDirectory(prefix="yourturn-restore-") as folder:
            copy = str(Path(folder) / FILE)
            shutil.copyfile(file, copy)
            if Path(f"{file}-wal").exists():  # not a backup but a desk that is, or was, open
                shutil.copyfile(f"{file}-wal", f"{copy}-wal")
            store = open_store(copy)
            try:
                schema.create(store, upgrade=True)
                wrong = store.check()
                if wrong:
                    raise BadDatabase(f"{file} is damaged", reason="; ".join(wrong[:5]))
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
    """Where a desk is, or where one would be made."""
    try:
        address = locate(into, env)
    except NoDesk:
        address = str(Path.cwd() / FOLDER / FILE)
    make_folder(address)
    return address


def _clear(address: str, force: bool) -> str:
    """Move a file aside that is no database any more. Returns where it is now."""
    path = Path(address.removeprefix("sqlite:///"))
    if "://" in str(path) or not path.is_file() or not path.stat().st_size:
        return ""
    store = open_store(address)
    try:
        with store.reading() as run:
            store.tables(run)
            run("SELECT 1").fetchone()
        wrong = store.check() if schema.version_of(store) else []
    except BadDatabase as error:
        if "another program" in error.message:
            raise
        wrong = [error.reason or error.message]
    finally:
        store.close()
    if not wrong:
        return ""
    if not force:
        hint = f"Say --force to move it aside and restore in its place: turn restore FILE --into {address} --force"
        raise Precondition(f"Cannot restore into {path}", reason=f"it is damaged ({wrong[0]})", hint=hint)
    aside = path.with_name(f"{path.name}.{_stamp()}.damaged")
    for ending in ("-wal", "-shm", ""):
        if path.with_name(path.name + ending).exists():
            path.with_name(path.name + ending).rename(f"{aside}{ending}")
    return str(aside)


def _who(store: Store, as_: str | None, env: Mapping[str, str]) -> Who:
    """Somebody whom the desk that is there calls an admin; where there is none, whoever is at the keyboard."""
    if schema.version_of(store):
        try:
            schema.check(store)
            who = identity(Desk(store, Who("nobody", "viewer")), as_, env)
        except (SchemaMismatch, BadDatabase):
            who = _anybody(as_, env)
    else:
        who = _anybody(as_, env)
    archive.admin(who, "restore")
    return who


def _anybody(as_: str | None, env: Mapping[str, str]) -> Who:
    from ..config import person

    name = as_ or f"human:{person(env)}"
    name = name if ":" in name else f"human:{name}"
    if env.get("YOURTURN_AGENT") or env.get("YOURTURN_TOKEN") or not name.startswith("human:"):
        raise NotAllowed("An agent cannot restore", reason="only an admin can")
    return Who(name, "admin", direct=True)


def _replaced(store: Store, found: Source, who: Who, file: str, force: bool) -> dict[str, Any]:
    for attempt in range(_ATTEMPTS):
        try:
            return _once(store, found, who, file, force)
        except Conflict:
            time.sleep(0.01 * 2**attempt)
    raise Busy("Too many others are at this desk", hint="Nothing was changed. Try again.")


def _once(store: Store, found: Source, who: Who, file: str, force: bool) -> dict[str, Any]:
    aside = _aside(store)
    try:
        return _in_one_go(store, found, who, file, aside if force else None)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise


def _in_one_go(store: Store, found: Source, who: Who, file: str, aside: str | None) -> dict[str, Any]:
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
        fenced = archive.replace(store, run, found(), who, now, file, always=True)
        tasks = run("SELECT count(*) FROM tasks").fetchone()[0]
    return {"db": store.url, "tasks": tasks, "fenced": fenced, "aside": kept}


def _aside(store: Store) -> str:
    """Beside a file; for a server, in the folder where you are."""
    place = Path(store.url) if store.dialect == "sqlite" else Path.cwd() / FILE
    return str(place.with_name(f"{place.stem}.{_stamp()}.before-restore.jsonl.gz"))


def _stamp() -> str:
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")

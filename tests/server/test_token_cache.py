"""Recently used tokens are cached, and every change of a token or its user takes effect at once."""

from __future__ import annotations

import uuid

import pytest

from tests.fixtures.server import Site
from yourturn.config import connect
from yourturn.core.errors import NotKnown
from yourturn.core.model import Who
from yourturn.http.desks import Desks
from yourturn.testing import FakeClock


def elsewhere(site: Site, method: str, *args: str) -> None:
    """From another process, as far as the server can tell."""
    with connect(site.address, as_="human:ana", project="PROJ", env={}) as desk:
        getattr(desk, method)(*args)


def here(site: Site, method: str, *args: str) -> None:
    """By a request: in the server's own event loop, where that is the way."""
    assert site.post(f"/api/desk/{method}", {"args": list(args)}).status == 200


@pytest.fixture(params=[elsewhere, here], ids=["elsewhere", "here"])
def say(request):
    return request.param


def status(site: Site, token: str) -> int:
    """Of a look that is short: 404, if they may look."""
    return site.call("GET", "/api/tasks/NONE-1", token=token).status


def test_a_token_that_is_revoked(site, say):
    name = f"t-{uuid.uuid4().hex[:8]}"
    token = site.desk.create_token(name, "member")["token"]
    assert [status(site, token) for _ in range(3)] == [404] * 3
    say(site, "revoke_token", name)
    assert status(site, token) == 401


def test_a_person_whose_role_changes(site, say):
    person = f"p{uuid.uuid4().hex[:8]}"
    site.desk.set_user(person, "admin")
    token = site.desk.create_token(f"of-{person}", "admin", actor=f"human:{person}")["token"]

    def made() -> int:
        return site.call("POST", "/api/tasks", {"title": "By whom?"}, token=token).status

    assert [made() for _ in range(3)] == [201] * 3
    say(site, "set_user", person, "viewer")
    assert made() == 403
    say(site, "set_user", person, "member")
    assert made() == 201
    say(site, "remove_user", person)
    assert made() == 401


def test_a_token_whose_time_is_over(new_address):
    clock = FakeClock()
    site = Site(new_address("sqlite"), clock=clock)
    try:
        token = site.desk.create_token("short", "member", expires="1h")["token"]
        assert [status(site, token) for _ in range(3)] == [404] * 3
        clock.advance(hours=1)
        assert status(site, token) == 401
    finally:
        site.close()


def test_what_was_said_on_the_same_connection(new_address):
    """Of its own writing a connection is not told."""
    desks = Desks(new_address("sqlite"))
    try:
        ana = desks.client(Who("human:ana", "admin"))
        token = ana.create_token("mine", "member")["token"]
        assert {desks.by_token(token).who.role for _ in range(3)} == {"member"}
        ana.revoke_token("mine")
        with pytest.raises(NotKnown, match="revoked"):
            desks.by_token(token)
    finally:
        desks.close()


def test_a_token_is_looked_up_once(sqlite_site, monkeypatch):
    """Unless somebody has written since: then the row is looked at."""
    asked = []
    desk = type(sqlite_site.desk.desk)
    holder = desk.holder
    monkeypatch.setattr(desk, "holder", lambda self, known: asked.append(known) or holder(self, known))
    token, key = sqlite_site.token("member"), sqlite_site.desk.create("Look at me")["key"]

    def look() -> int:
        return sqlite_site.call("POST", f"/api/tasks/{key}/note", {"text": "Seen"}, token=token).status

    assert [look() for _ in range(5)] == [200] * 5
    assert len(asked) == 1
    elsewhere(sqlite_site, "create", "Something else")
    assert look() == 200
    assert len(asked) == 2

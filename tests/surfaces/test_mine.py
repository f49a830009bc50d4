"""Whose turn is it: one meaning of "mine", and one count, on the command line, in Python, over HTTP and on the page."""

from __future__ import annotations

import json
import os
import re
import subprocess

import pytest

from tests.conftest import TURN
from tests.fixtures.server import Site
from yourturn.config import connect
from yourturn.core.model import Who
from yourturn.core.permissions import is_mine

PEOPLE = {"ana": "admin", "ben": "member", "ida": "approver", "vera": "viewer"}
#: Reviewer of each question, and the people who see it as theirs.
SENT = {
    None: {"ana", "ben", "ida"}, "admin": {"ana"}, "ana": {"ana"}, "ben": {"ben"}, "human:ben": {"ben"},
    "approver": {"ana", "ida"}, "member": {"ana", "ben", "ida"}, "anybody": {"ana", "ben", "ida"}, "zoe": set(),
}  # fmt: skip


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def there(request, new_address):
    found = Site(new_address(request.param))
    for name, role in PEOPLE.items():
        found.desk.set_user(name, role)
    for to in SENT:
        found.desk.ask(found.desk.create("A")["key"], f"For {to}", reviewer=to)
    for at in range(3):
        found.desk.ask(found.desk.create("B")["key"], f"No hurry {at}", reviewer="zoe", blocking=False, default="x")
    yield found
    found.close()


def turn(site, name, *words):
    env = {"YOURTURN_DB": site.address, "PATH": os.environ["PATH"], "HOME": "/"}
    found = subprocess.run([TURN, *words, "--as", f"human:{name}"], env=env, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.mark.parametrize("name", PEOPLE)
def test_every_surface_means_the_same(there, name):
    wanted = {f"For {to}" for to, whose in SENT.items() if name in whose}
    with connect(there.address, as_=f"human:{name}", project="PROJ", env={}) as desk:
        assert {q["text"] for q in desk.inbox(mine=True)} == wanted
        counts = desk.waits()
        assert (counts["mine"], counts["all"], counts["soon"]) == (len(wanted), len(SENT) + 3, 0)
        assert desk.waits(within="31m")["soon"] == len(wanted)
    assert {q["text"] for q in json.loads(turn(there, name, "inbox", "--mine", "--json"))} == wanted
    overview = json.loads(turn(there, name, "--json"))
    assert {q["text"] for q in overview["waiting"]} == wanted and overview["waits"]["mine"] == len(wanted)
    said = turn(there, name)
    assert said.startswith(f"{len(wanted)} questions wait for you" if wanted else "It's not your turn")
    assert f"{len(SENT) + 3 - len(wanted)} wait for " in said, "what is sent to others is not forgotten"
    session = there.desk.use_link(there.desk.create_link(name)["link"])["session"]
    cookie = {"Cookie": f"yourturn={session}"}
    found = there.get("/api/questions?mine=1&limit=500", role=None, headers=cookie).json["questions"]
    assert {q["text"] for q in found} == wanted
    assert len(there.get("/api/questions?mine=no&limit=500", role=None, headers=cookie).json["questions"]) == len(SENT) + 3
    page = there.get("/inbox/counts", role=None, headers={**cookie, "Accept": "application/json"}).json
    assert (page["mine"], page["all"]) == (len(wanted), len(SENT) + 3)
    text = there.get("/inbox", role=None, headers={**cookie, "Accept": "text/html"}).raw.decode()
    assert "None" not in re.sub(r"For None", "", text)


def test_an_agent_answers_nothing(there):
    assert there.get("/api/questions?mine=1", role="agent").json["questions"] == []
    assert not is_mine(Who("agent:coder", "agent"), None)


def test_a_flag_is_yes_or_no(there):
    assert there.get("/api/questions?mine=perhaps").status == 422


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_counts_are_true_beyond_every_page(new_address, dialect):
    site = Site(new_address(dialect))
    try:
        desk = site.desk
        key = desk.create("A")["key"]
        for at in range(600):
            desk.ask(key, f"Which, {at}?", blocking=False, default="x", reviewer=None if at % 2 else "ben")
        assert desk.waits() == {"all": 600, "mine": 300, "soon": 0}
        assert turn(site, "ana").startswith("300 questions wait for you")
        cookie = {"Cookie": f"yourturn={desk.use_link(desk.create_link('ana')['link'])['session']}"}
        page = site.get("/inbox/counts", role=None, headers={**cookie, "Accept": "application/json"}).json
        assert (page["mine"], page["all"]) == (300, 600)
        stats = site.get("/api/stats").json
        assert stats["questions"]["pending"] == stats["waiting"]["all"] == stats["queue"][-1]["waiting"] == 600
        tile = site.get("/stats", role=None, headers={**cookie, "Accept": "text/html"}).raw.decode()
        assert re.search(r"Waiting now.{0,200}600", tile, re.DOTALL)
        seen, cursor = 0, ""
        while cursor is not None:
            found = site.get(f"/api/questions?mine=1&limit=100&cursor={cursor}").json
            seen, cursor = seen + len(found["questions"]), found["next_cursor"]
        assert seen == 300
    finally:
        site.close()

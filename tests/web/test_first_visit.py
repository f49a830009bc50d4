"""The first visit: the login page explains itself, a ready task without a worker shows how to start one, a wrong address leads to pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.conftest import Web
from tests.web.test_pages import Caller
from yourturn.config import init
from yourturn.testing import FakeClock

START = "Start one where the code is: <code"


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Web]:
    """An empty desk."""
    address = str(tmp_path / "fresh.db")
    init(address, "API", None, {"USER": "ana"})[0].close()
    web = Web(address, FakeClock(), {})
    web.desk.set_user("ana", "admin")
    yield web
    web.close()


def test_login_page_explains_and_accepts_links(web):
    nobody = Caller(web, None)
    door = nobody.text("/login?next=/tasks")
    for words in ("within 15 minutes", "turn serve", "turn user link NAME", "Members", "turn user password NAME", 'name="link"'):
        assert words in door, words
    for pasted in (web.secret("ben"), f"  {web.link('ben')}\n"):  # the secret, or the whole address
        came = nobody.post("/enter", link=pasted, next="/tasks")
        assert came.status == 303 and came.headers["location"] == "/tasks" and "ys_" in came.headers["set-cookie"]
        again = nobody.post("/enter", link=pasted, next="/tasks")
        assert again.status == 401 and b"not valid any more" in again.raw and b'name="link"' in again.raw
    outside = nobody.post("/enter", link=web.secret("ben"), next="//evil.example")
    assert outside.headers["location"] == "/inbox"
    for wrong in ("", "yt_0123", "x" * 5000, "yl_" + "z" * 48):
        assert nobody.post("/enter", link=wrong).status == 401, wrong


def test_unattended_task_shows_how_to_start_a_worker(fresh):
    ana = Caller(fresh, None)
    reply = fresh.site.enter(fresh.secret("ana"))
    ana.cookie = reply.headers["set-cookie"].partition(";")[0]
    assert START not in ana.text("/inbox") and START not in ana.text("/tasks")
    assert "turn work" in ana.text("/tasks") and "An agent takes it, and asks" not in ana.text("/tasks")
    assert "No worker runs now." in ana.text("/tasks/new")
    desk = fresh.as_("human:ana")
    desk.create("Add login")
    desk.create("Add logout", draft=True)
    pages = ("/inbox", "/tasks", "/tasks/API-1")
    for path in pages:
        assert "1 task is ready, and no worker runs." in ana.text(path) and START in ana.text(path), path
    assert START not in ana.text("/tasks/API-2")
    worker = fresh.as_("agent:coder")
    worker.register_worker("w1", host="box", agents=["coder"], role="coder")  # it is idle
    for path in (*pages, "/tasks/new"):
        assert "turn work" not in ana.text(path), path
    desk.create("Look at it", role="reviewer")
    for path in ("/inbox", "/tasks", "/tasks/API-3"):
        text = ana.text(path)
        assert "API-3 is ready, and no worker that runs takes it." in text and "turn work --agent reviewer</code>" in text, path
    assert START not in ana.text("/tasks/API-1")
    fresh.clock.advance(minutes=4)  # it was killed
    for path in pages:
        assert "2 tasks are ready, and no worker runs." in ana.text(path), path
    worker.claim("API-1", "another")
    for path in ("/inbox", "/tasks", "/tasks/API-3"):
        assert START not in ana.text(path), path
    assert "No worker runs now." not in ana.text("/tasks/new")


def test_not_found_page_offers_pages_not_commands(web):
    gone = Caller(web).get("/tasks/API-999")
    assert gone.status == 404 and b"There is no task API-999" in gone.raw
    assert b"turn list" not in gone.raw and b'<a class="btn plain" href="/tasks">Tasks</a>' in gone.raw


def test_names_keep_their_spelling(web):
    web.ask("Is the draft fine so far?", "checkpoint", web.desk.create("Draft", project="DOC")["key"])
    inbox = Caller(web).text("/inbox?kind=checkpoint")
    assert "coder goes on" in inbox and "Coder goes on" not in inbox


def test_shortcut_hint_is_hidden_without_javascript(visit):
    page = visit("ana", js=False)
    assert page.locator(".hint").count() == 1
    assert not page.locator(".hint").is_visible()
    assert not page.locator(".search kbd").is_visible()


def test_current_section_is_marked_without_scrolling(visit):
    page = visit("ana", "/tasks/API-4", width=1280)
    shadow = "h => getComputedStyle(h).boxShadow"
    heading = page.locator("#events-h")
    assert heading.evaluate(shadow) == "none"
    page.locator(".subnav a[href='#events']").click()
    assert heading.evaluate(shadow) != "none"
    assert page.locator("#log-h").evaluate(shadow) == "none"

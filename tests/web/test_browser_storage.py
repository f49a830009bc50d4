"""The browser's storage belongs to one desk since its last restore: another desk at the same address, or a restored one, gets no
queued answer and no stored result."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import DAY, Web, live, until, widths
from tests.web.sample_desk import fill
from tests.web.test_answer_form import say, sent
from tests.web.test_sending_answers import bad_gateway
from yourturn.config import connect, init, restore
from yourturn.testing import FakeClock


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    address = tmp_path_factory.mktemp("other") / "yourturn.db"
    init(str(address), "API", None, {"USER": "ana"})[0].close()
    fill(str(address), FakeClock(time.time_ns() // 1000 - 2 * DAY))
    return address


@pytest.fixture
def second(other: Path, tmp_path: Path) -> Path:
    """Another desk with the same questions under the same numbers."""
    return Path(shutil.copy(other, tmp_path / "second.db"))


def move_in(web: Web, address: Path) -> None:
    """Serves another desk at the same address."""
    web.stop()
    web.site.desk.close()
    web.address = str(address)
    web.site.desk = connect(web.address, as_="human:ana", project="API", env={}, clock=web.clock)
    web.start()


def back_to(web: Web, file: Path) -> None:
    restore(str(file), web.address, force=True, as_="human:ana", env={})


def enter(page: Page, web: Web, path: str) -> None:
    """Signs in and opens the path."""
    page.context.request.post(f"{web.url}/enter", form={"link": web.secret()}, max_redirects=0).dispose()
    page.goto(web.url + path)
    live(page)


def queue(page: Page, q: str) -> None:
    """Sends an answer that does not arrive."""
    page.route("**/questions/*/answer", bad_gateway)
    page.get_by_text("Sessions", exact=True).click()
    say(page, "Send “Sessions”")
    expect(page.locator(".unsent .what")).to_have_text("“Sessions”")


def asked(page: Page) -> list[str]:
    """Records the requests of the page."""
    urls: list[str] = []
    page.on("request", lambda one: urls.append(one.url))
    return urls


def quiet(page: Page) -> None:
    """Waits until the page sends no more requests."""
    page.wait_for_load_state("networkidle")


@widths
def test_answer_is_not_sent_to_another_desk(web, visit, width, second):
    q = web.q["choice"]
    page = live(visit("ana", f"/questions/{q}", width=width))
    queue(page, q)
    move_in(web, second)
    page.unroute_all()
    enter(page, web, f"/questions/{q}")
    expect(page.get_by_role("radio", name="Sessions")).not_to_be_checked()
    expect(page.locator(".answer .unsent")).to_have_count(0)  # another question
    expect(page.locator(".strip")).to_contain_text("1 answer could not be sent.")
    page.locator(".strip").get_by_role("link", name="Look").click()
    box = page.locator("[data-outbox] .unsent")
    expect(box).to_contain_text("Not sent. It was for another desk, which was served at this address before.")
    expect(box.locator(".what")).to_have_text("“Sessions”")
    expect(page.locator("[data-outbox] h3")).to_have_text("JWT or server sessions for the login?")
    expect(page.locator("[data-outbox] a")).to_have_count(0)  # this desk has no such question
    page.get_by_text("Try now").wait_for(state="detached")
    quiet(page)
    assert web.desk.show(q)["status"] == "pending"
    box.get_by_role("button", name="Drop it").click()
    expect(page.locator("[data-outbox], .strip")).to_have_count(0)
    page.goto(f"{web.url}/questions/{q}")
    page.get_by_text("JWT", exact=True).click()
    say(page, "Send “JWT”")
    sent(page)
    assert web.desk.show(q)["response"]["value"] == "jwt"


def test_queued_answer_waits_for_its_desk(web, visit, second):
    first, q = Path(web.address), web.q["choice"]
    page = live(visit("ana", f"/questions/{q}"))
    queue(page, q)
    move_in(web, second)
    enter(page, web, "/inbox")  # no retry of the old page may arrive with the new session's cookie
    page.unroute_all()
    expect(page.locator("[data-outbox] .unsent")).to_be_visible()
    move_in(web, first)
    enter(page, web, "/inbox")
    sent(page, f"Sent {q}.")
    assert web.desk.show(q)["response"]["value"] == "sessions"


def test_page_of_a_previous_desk_changes_nothing(web, visit, second):
    """The page is open in one tab and retries, while its user has signed in at the new desk in another tab."""
    q = web.q["choice"]
    page = live(visit("ana", f"/questions/{q}"))
    queue(page, q)
    move_in(web, second)
    tab = page.context.new_page()
    enter(tab, web, "/inbox")
    page.unroute_all()
    page.evaluate("() => { dispatchEvent(new Event('online')); }")  # retries at once
    expect(page.locator(".strip").filter(has_text="Another desk is served here now")).to_be_visible()
    expect(page.locator(".unsent .why")).to_contain_text("Not sent.")
    assert web.desk.show(q)["status"] == "pending"
    tab.close()


@widths
def test_another_desk_shows_its_own_question(web, visit, width, second):
    """The question has the number of one that was answered at the previous desk."""
    q = web.q["choice"]
    page = live(visit("ana", f"/questions/{q}", width=width))
    page.get_by_text("JWT", exact=True).click()
    say(page, "Send “JWT”")
    sent(page)
    move_in(web, second)
    went = asked(page)
    enter(page, web, f"/questions/{q}")
    expect(page.locator(".answer .say").first).to_be_visible()
    quiet(page)
    assert len([url for url in went if f"/questions/{q}" in url]) == 1, went
    page.get_by_text("Sessions", exact=True).click()
    say(page, "Send “Sessions”")
    sent(page)
    assert web.desk.show(q)["response"]["value"] == "sessions"


@widths
def test_restored_desk_shows_its_own_question(web, visit, width, tmp_path):
    q = web.q["choice"]
    web.desk.backup(str(tmp_path / "desk.backup"))
    page = live(visit("ana", f"/questions/{q}", width=width))
    page.get_by_text("JWT", exact=True).click()
    say(page, "Send “JWT”")
    sent(page)
    back_to(web, tmp_path / "desk.backup")
    assert web.desk.show(q)["status"] == "pending"
    went = asked(page)
    enter(page, web, f"/questions/{q}")
    expect(page.locator(".answer .say").first).to_be_visible()
    quiet(page)
    assert len([url for url in went if f"/questions/{q}" in url]) == 1, went
    page.goto(f"{web.url}/inbox")
    expect(page.locator(f".row[data-id={q}]")).not_to_have_class(re.compile("over"))
    page.goto(f"{web.url}/questions/{q}")
    page.get_by_text("Sessions", exact=True).click()
    say(page, "Send “Sessions”")
    sent(page)
    assert web.desk.show(q)["response"]["value"] == "sessions"


@widths
def test_answer_from_before_a_restore_is_not_sent(web, visit, width, tmp_path):
    q = web.q["choice"]
    web.desk.backup(str(tmp_path / "desk.backup"))
    page = live(visit("ana", f"/questions/{q}", width=width))
    queue(page, q)
    back_to(web, tmp_path / "desk.backup")
    page.unroute_all()
    enter(page, web, "/inbox")
    box = page.locator("[data-outbox] .unsent")
    expect(box).to_contain_text("Not sent. This desk was restored from a backup since.")
    expect(box.locator(".what")).to_have_text("“Sessions”")
    quiet(page)
    assert web.desk.show(q)["status"] == "pending"
    box.get_by_role("link", name="Look at it").click()
    expect(page.get_by_role("heading", name="JWT or server sessions for the login?")).to_be_visible()
    expect(page.get_by_role("radio", name="Sessions")).not_to_be_checked()


def test_storage_of_other_desks_is_deleted(web, visit):
    page = live(visit("ana"))
    page.evaluate("""q => {
        const old = "yt:ana@default:", item = { id: q, url: `/questions/${q}/answer`, body: "say=approved", key: "k", words: "“Old”", title: "An old one", tries: 1, next: 0 };
        for (const at of [old, `${old}1f.0:`]) {
            for (const name of ["closed", "noticed"]) localStorage.setItem(at + name, JSON.stringify([[q, "You answered."]]));
            localStorage.setItem(`${at}clock`, "5");
            localStorage.setItem(`${at}draft:${q}`, JSON.stringify({ at: 0, texts: { text: "old" }, options: [] }));
            localStorage.setItem(`${at}outbox`, JSON.stringify(at === old ? [item] : []));
        }
        localStorage.setItem("yt:ben@default:1f.0:outbox", "[]");
    }""", web.q["choice"])  # fmt: skip
    page.reload()
    live(page)
    kept = page.evaluate("() => Object.keys(localStorage).filter(key => /^yt:ana@default:(?!\\w+\\.\\w+:)|:1f\\.0:/.test(key)).sort()")
    assert kept == ["yt:ana@default:outbox", "yt:ben@default:1f.0:outbox"]
    box = page.locator("[data-outbox] .unsent")
    expect(box.locator(".what")).to_have_text("“Old”")
    box.get_by_role("button", name="Drop it").click()
    until(page, "localStorage.getItem('yt:ana@default:outbox') === null")
    expect(page.locator("[data-outbox]")).to_have_count(0)
    assert web.desk.show(web.q["choice"])["status"] == "pending"


@widths
def test_contradicting_page_is_checked_once(web, visit, width):
    """The storage contains a wrong result: the server's page counts, and it is requested only once."""
    q = web.q["choice"]
    page = live(visit("ana", f"/questions/{q}", width=width))
    page.evaluate("""q => {
        const { me, desk } = document.querySelector("meta[name=yourturn]").dataset;
        localStorage.setItem(`yt:${me}:${desk}:closed`, JSON.stringify([[q, "You answered “red”."]]));
    }""", q)  # fmt: skip
    went = asked(page)
    page.reload()
    live(page)
    quiet(page)
    expect(page.locator(".answer .say").first).to_be_visible()
    assert len([url for url in went if f"/questions/{q}" in url]) == 1, went
    page.goto(f"{web.url}/inbox")
    expect(page.locator(f".row[data-id={q}]")).not_to_have_class(re.compile("over"))

"""The inbox: rows, filters, countdowns, and keys without a pane."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import live, ways, widths
from tests.web.test_answer_form import say, sent


def ids(page: Page) -> list[str]:
    return list(page.locator(".row").evaluate_all("rows => rows.map(row => row.dataset.id)"))


@ways
def test_filters_and_search(web, visit, width, js):
    page = visit("ana", width=width, js=js)
    headings = page.locator("h2.group").all_inner_texts()
    assert [text.splitlines()[0].split("answer")[0].split("most")[0].strip() for text in headings[:2]] == [
        "Running out",
        "Work is waiting",
    ]
    assert ids(page)[:3] == [web.q[name] for name in ("recovery", "permission", "choice")], (
        "what runs out, then who holds up most"
    )
    soon = page.locator("h2.group + ul").first
    expect(soon.locator(".row")).to_have_count(1)  # the others have more than ten minutes left
    assert ids(page).index(web.q["approval"]) < ids(page).index(web.q["escalation"]), "most unblocked first"
    page.locator(".filters summary").click()
    page.locator(".filters").get_by_role("link", name="Permission").click()
    expect(page.locator(".row")).to_have_count(1)
    page.get_by_role("link", name="Remove filter Permission").click()
    page.locator(".filters summary").click()
    page.locator(".filters").get_by_role("link", name="OPS").click()
    assert set(ids(page)) == {web.q[name] for name in ("recovery", "checkpoint", "boolean")}
    page.get_by_label("Search questions").fill("upload")
    page.keyboard.press("Enter")
    page.wait_for_url("**search=upload**")
    assert ids(page) == [web.q["recovery"]] and "project=OPS" in page.url
    expect(page.locator(".nav [data-waiting]")).to_have_text("11")
    page.goto(f"{web.url}/inbox")
    page.get_by_role("link", name=re.compile("^All")).click()
    assert web.q["for_ben"] in ids(page)


@widths
def test_countdown_updates(web, visit, width):
    page = live(visit("ana", f"/questions/{web.q['recovery']}", width=width))
    left = page.locator(".five .left")
    expect(left).to_have_class("left soon")
    expect(left).to_contain_text("5:5")
    page.route("**/inbox/counts*", lambda route: route.abort())  # the desk's clock stands still
    page.evaluate("() => { const now = Date.now.bind(Date); Date.now = () => now() + 5 * 60000; }")
    expect(left).to_have_class("left last")
    expect(page.locator("#live")).to_have_text("2 minutes left")
    page.evaluate("() => { const now = Date.now.bind(Date); Date.now = () => now() + 60000; }")
    expect(left).to_contain_text("0:00")
    expect(page.locator("#live")).to_have_text("The time is over")


def test_countdown_of_hours_matches_the_server(web, visit):
    asked = {web.ask("Which?", timeout=f"{minutes}m", on_timeout="fail"): words for minutes, words in ((120, "2 h"), (90, "1 h 30 min"))}
    web.clock.advance(seconds=1)
    plain, page = visit("ana", "/inbox", js=False), live(visit("ana", "/inbox"))
    for id, words in asked.items():
        for shown in (plain, page):
            expect(shown.locator(f'.row[data-id="{id}"] .left .w').first).to_have_text(words)


def test_short_timeout_shows_its_duration(web, visit):
    web.desk.set("min_timeout", "1s")
    asked = web.ask("Quick?", timeout="20s", on_timeout="fail")
    web.clock.advance(seconds=30)
    expect(visit("ana", f"/questions/{asked}", js=False).get_by_text("No answer in 20 s.").first).to_be_visible()


@widths
def test_reload_updates_the_countdown_without_javascript(web, visit, width):
    page = visit("ana", f"/questions/{web.q['recovery']}", width=width, js=False)
    left = page.locator(".five .left")
    expect(left).to_have_class("left soon")
    web.clock.advance(minutes=5)
    page.get_by_role("link", name="Reload").click()
    expect(left).to_have_class("left last")
    web.clock.advance(minutes=2)
    page.reload()
    expect(page.get_by_text("No answer in 10 min.").first).to_be_visible()
    assert page.locator(".answer button").count() == 0


@pytest.mark.parametrize("width", [800, 390])
def test_keys_choose_in_a_row_and_enter_sends(web, visit, width):
    page = visit("ana", width=width)
    assert page.locator(".pane").is_hidden()
    row = page.locator(f".row[data-id={web.q['checkpoint']}]")
    row.locator("h3 a").focus()
    page.keyboard.press("r")
    page.keyboard.press("Tab")
    page.keyboard.type("Not on a Friday.")
    page.keyboard.press("Enter")
    expect(row.locator(".result")).to_contain_text("You sent this back: “Not on a Friday.”")
    assert web.desk.show(web.q["checkpoint"])["response"]["verdict"] == "rejected"
    page.locator(f".row[data-id={web.q['permission']}] h3 a").focus()
    page.keyboard.press("a")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/questions/{web.q['permission']}$"))
    assert web.desk.show(web.q["permission"])["status"] == "pending", "it has to be read first"


def test_event_may_arrive_before_the_reply(web, visit):
    """The row shows the result at once, and the scroll position stays."""
    page = visit("ana", width=390)
    held: list[Any] = []
    went: list[str] = []
    page.route(f"**/questions/{web.q['checkpoint']}/**", lambda route: held.append((route, route.fetch())))
    page.on("framenavigated", lambda frame: went.append(frame.url))
    row = page.locator(f".row[data-id={web.q['checkpoint']}]")
    row.locator("h3 a").focus()
    for key in ("a", "Enter"):
        page.keyboard.press(key)
    expect(row.locator(".result")).to_be_visible()
    ((route, answer),) = held
    route.fulfill(response=answer)
    expect(page.locator("#live")).to_contain_text("Sent.")
    web.ask("And this?")
    expect(page.get_by_text("1 new question")).to_be_visible()
    assert went == []


@ways
def test_empty_inbox(web, visit, width, js):
    for name, q in web.q.items():
        if name == "finished":
            web.desk.approve(q)
        else:
            web.desk.withdraw(q)
    page = visit("ana", width=width, js=js)
    expect(page.get_by_role("heading", name="It's not your turn")).to_be_visible()
    expect(page.locator(".nav .count")).to_be_hidden()
    assert not page.title().startswith("(")


def test_answer_in_the_pane(web, visit):
    page = live(visit("ana"))
    rows = ids(page)
    assert rows[0] == web.q["recovery"]
    pane = page.locator("[data-pane]")
    pane.get_by_text("Skip tonight").click()
    pane.get_by_role("button", name="Send “Skip tonight”").click()
    expect(pane).to_contain_text("Sent. keeper goes on with OPS-1.")
    expect(page.locator(f".row[data-id={rows[0]}] .result")).to_have_text("You answered “Skip tonight”. keeper goes on with it.")
    assert ids(page) == rows, "nothing moves"
    page.keyboard.press("Enter")  # the next one has the focus
    expect(pane.locator("form[data-q]")).to_have_attribute("data-q", rows[1])
    expect(page.locator(".nav [data-waiting]")).to_have_text(str(len(rows) - 1))


def test_answer_in_the_pane_without_javascript(web, visit):
    page = visit("ana", js=False)
    pane = page.locator("[data-pane]")
    pane.get_by_text("Skip tonight").click()
    say(page, "Send")
    sent(page, "Sent. keeper goes on with OPS-1.")
    expect(page.get_by_text("goes on")).to_have_count(1)  # shown once
    expect(page.get_by_text("You answered “Skip tonight”.")).to_be_visible()


@widths
def test_a_row_leads_to_its_question_and_back(web, visit, width):
    page = visit("ana", width=width, js=False)
    page.locator(f".row[data-id={web.q['choice']}] h3 a").click()
    expect(page.locator("h1")).to_contain_text("JWT or server sessions")
    page.get_by_role("link", name="Inbox").first.click()
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()


@ways
def test_login_link_works_once_in_the_browser(web, visit, width, js):
    """On localhost the page submits itself; under another host name, as in a mail, a person presses the button."""
    page = visit("ana", width=width, js=js)
    page.context.clear_cookies()
    requests: list[tuple[str, str, str]] = []
    page.on("request", lambda r: requests.append((r.method, r.url, r.headers.get("referer", ""))))
    link = web.link("ben")
    page.goto(link)
    if not js:
        assert web.as_("human:ben").sessions() == []
        page.get_by_role("button", name="Sign in as ben").click()
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    expect(page).to_have_url(re.compile("/inbox$"))
    secret = link.rpartition("/")[2]
    assert [what for what in requests if secret in what[1] + what[2]] == [("GET", link, "")], "in the address once, nowhere else"
    if js:
        page.go_back()
        assert secret not in page.url, "it is not in the history"
    page.context.clear_cookies()
    page.goto(link)
    expect(page.get_by_text("This link is not valid any more.")).to_be_visible()


@ways
def test_login_link_on_another_host_waits_for_the_button(web, visit, width, js):
    web.site.app.state.shared.address = web.site.app.state.shared.address._replace(hosts=frozenset({"127.0.0.1", "desk.localhost"}))
    page = visit("ana", width=width, js=js)
    page.context.clear_cookies()
    page.goto(web.link("ben").replace("127.0.0.1", "desk.localhost"))
    page.wait_for_load_state("networkidle")
    assert web.as_("human:ben").sessions() == []
    page.get_by_role("button", name="Sign in as ben").click()
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    assert len(web.as_("human:ben").sessions()) == 1


@ways
def test_deep_link_returns_after_the_login(web, visit, width, js):
    web.desk.set_password("ben", "a long password")
    page = visit("ben", width=width, js=js)
    page.context.clear_cookies()
    page.goto(f"{web.url}/questions/{web.q['permission']}")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert "migration" not in page.content(), "the door says nothing about what waits"
    page.get_by_label("Name").fill("ben")
    page.get_by_label("Password").fill("a long passwort")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("Wrong name or password.")).to_be_visible()
    page.get_by_label("Password").fill("a long password")
    page.keyboard.press("Enter")
    expect(page.get_by_text("This exact action, once")).to_be_visible()
    bottom = page.locator(".act").bounding_box()
    assert bottom and bottom["y"] + bottom["height"] < page.locator(".answer").bounding_box()["y"], "it is seen without scrolling"

"""Closed questions have no live buttons: after another person's answer, a timeout, Back, and from a cache. Countdowns are right on old
pages too."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.web.conftest import live, until, ways, widths
from tests.web.test_answer_form import say, sent

BACK = "() => dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))"


def worked(page: Page) -> None:
    """Waits until the service worker controls the page."""
    until(page, "navigator.serviceWorker.controller !== null")


def seconds(text: str) -> int:
    match = re.search(r"(\d+):(\d\d)", text)
    assert match, text
    return 60 * int(match[1]) + int(match[2])


@widths
def test_an_answer_by_another_person_removes_the_buttons(web, visit, width):
    q = web.q["choice"]
    page = live(visit("ana", f"/questions/{q}", width=width))
    page.get_by_text("Sessions", exact=True).click()
    web.as_("human:ben").answer(q, "jwt")
    expect(page.locator(".say, .five [data-until]")).to_have_count(0)
    expect(page.locator(".alert")).to_contain_text("ben answered “JWT”.")
    expect(page.locator(".leftover")).to_contain_text("Sessions")
    page.reload()  # the draft is still there
    expect(page.locator(".leftover")).to_contain_text("Sessions")
    page.get_by_role("button", name="Drop it").click()
    expect(page.locator(".leftover")).to_have_count(0)


@widths
def test_draft_for_a_closed_question_can_be_kept_as_a_note(web, visit, width):
    q = web.q["permission"]
    page = live(visit("ana", f"/questions/{q}", width=width))
    page.locator("details.words > summary").click()
    page.locator("textarea[name=text]").fill("Only after the backup.")
    web.as_("human:ben").reject(q)
    page.locator(".leftover").get_by_role("button", name="Keep it as a note").click()
    expect(page.get_by_text("Kept as a note on API-1.")).to_be_visible()
    assert web.desk.show("API-1")["notes"][-1]["text"] == f"Late answer to {q}: Only after the backup."


@widths
def test_timeout_shows_the_state_of_the_task(web, visit, width):
    q = web.q["permission"]
    page = live(visit("ana", f"/questions/{q}", width=width))
    web.clock.advance(minutes=16)
    web.desk.reconcile()
    expect(page.locator(".answer, .five")).to_have_count(0)
    expect(page.locator(".alert")).to_contain_text("No answer in 15 min. API-1 has failed.")
    expect(page.locator(".say")).to_have_text(re.compile("^Restart API-1 with it"))  # the only button
    page.goto(f"{web.url}/questions/{q}")
    expect(page.locator(".alert")).to_contain_text("No answer in 15 min. API-1 has failed.")


@ways
def test_a_question_that_timed_out_is_answered_on_its_page(web, visit, width, js):
    q = web.timed_out("Which logo goes on the invoice?", options=["Round", "Square"])
    key = web.desk.show(q)["task"]
    page = visit("ana", f"/questions/{q}", width=width, js=js)
    field = page.get_by_label("Answer it now")
    expect(field).to_have_accessible_description("It offered: Round, Square.")
    button = page.get_by_role("button", name=f"Restart {key} with it")
    button.click()  # with an empty field
    assert page.evaluate("document.activeElement.validity.valueMissing") and web.desk.show(key)["state"] == "failed"
    field.fill("Square, in grey")
    if js and width > 1000:  # with the keyboard
        field.press("Control+Enter")
    else:
        button.click()
    expect(page.get_by_text(f"{key} begins again, with your words.")).to_be_visible()
    expect(page.locator(".leftover, .say")).to_have_count(0)
    task = web.desk.show(key)
    assert task["state"] == "ready"
    assert task["notes"][-1]["text"] == f"Late answer to {q} (Which logo goes on the invoice?): Square, in grey"


@widths
def test_draft_at_the_timeout_is_kept_in_the_field(web, visit, width):
    key = web.as_("human:ana").create("Print invoices")["key"]
    q = web.ask("Which city?", task=key, response_type="text", timeout="10m", on_timeout="fail")
    page = live(visit("ana", f"/questions/{q}", width=width))
    page.get_by_label("Your answer").fill("Lyon, as in")
    web.clock.advance(minutes=11)
    web.desk.reconcile()
    field = page.get_by_label("Answer it now")
    expect(field).to_have_value("Lyon, as in")
    expect(page.locator(".leftover")).to_have_count(0)  # shown once
    field.fill("Lyon, as in the contract")
    page.get_by_role("button", name=f"Restart {key} with it").click()
    expect(page.get_by_text(f"{key} begins again, with your words.")).to_be_visible()
    expect(page.locator(".leftover")).to_have_count(0)  # it was sent
    assert web.desk.show(key)["notes"][-1]["text"] == f"Late answer to {q} (Which city?): Lyon, as in the contract"


@widths
def test_back_navigation_shows_the_current_state(web, visit, width):
    q = web.q["permission"]
    page = live(visit("ana", f"/questions/{q}", width=width))
    say(page, "Allow once")
    sent(page)
    page.go_back()
    expect(page.get_by_text("You allowed this.").first).to_be_visible()
    expect(page.locator(".say")).to_have_count(0)
    page.goto(f"{web.url}/inbox")
    page.goto(f"{web.url}/questions/{web.q['choice']}")
    web.as_("human:ben").answer(web.q["choice"], "jwt")
    page.go_back()
    row = page.locator(f".row[data-id={web.q['choice']}]")
    expect(row.filter(has_not_text="ben answered “JWT”.")).to_have_count(0)


@widths
def test_page_from_the_history_is_reloaded(web, visit, width):
    """A page from the history got no events meanwhile."""
    q = web.q["permission"]
    page = visit("ana", f"/questions/{q}", width=width)
    page.route("**/api/events*", lambda route: route.abort())
    page.reload()
    page.route("**/inbox/counts*", lambda route: route.abort())
    web.as_("human:ben").reject(q)
    expect(page.locator(".say").first).to_be_visible()
    page.unroute("**/inbox/counts*")
    page.evaluate(BACK)
    expect(page.locator(".say")).to_have_count(0)
    expect(page.locator(".alert")).to_contain_text("ben denied this.")
    page.goto(f"{web.url}/inbox")
    new = web.ask("Which logo?", options=["round", "square"])
    web.as_("human:ben").approve(web.q["approval"])
    page.evaluate(BACK)
    expect(page.locator(f".row[data-id={new}]")).to_be_visible()
    expect(page.locator(f".row[data-id={web.q['approval']}]")).to_have_count(0)


@widths
def test_cached_page_of_a_closed_question_has_no_buttons(web, visit, width):
    q = web.q["permission"]
    page = visit("ana", worker=True, width=width)
    worked(page)
    page.goto(f"{web.url}/questions/{q}")
    live(page)
    page.goto(f"{web.url}/inbox")
    live(page)
    web.as_("human:ben").reject(q)
    expect(page.locator(f".row[data-id={q}]")).to_contain_text("ben denied this.")
    page.context.set_offline(True)
    page.goto(f"{web.url}/questions/{q}")
    expect(page.locator("html")).to_have_attribute("data-copy", "")
    expect(page.locator(".answer")).to_contain_text("ben denied this.")
    expect(page.locator(".say")).to_have_count(0)
    page.goto(f"{web.url}/inbox")
    expect(page.locator(f".row[data-id={q}]")).to_contain_text("ben denied this.")


@widths
def test_deadline_passes_while_offline(web, visit, width):
    q = web.q["permission"]
    page = live(visit("ana", f"/questions/{q}", width=width))
    page.context.set_offline(True)
    expect(page.locator("html")).to_have_attribute("data-live", "lost")
    expect(page.locator(".say").first).to_be_visible()
    page.evaluate("() => { const now = Date.now.bind(Date); Date.now = () => now() + 20 * 60000; }")
    expect(page.locator(".answer")).to_contain_text(
        "The time is over. This page shows the state of API-1 when it is live again."
    )
    expect(page.locator(".say")).to_have_count(0)


# --- deadlines --------------------------------------------------------------------------------------------------------


def test_a_row_and_its_pane_agree(web, visit):
    page = visit("ana", f"/inbox?at={web.q['permission']}")
    page.route("**/inbox/counts*", lambda route: route.abort())
    page.reload()  # no pending request updates its clock
    live(page)
    page.evaluate("() => { const now = Date.now.bind(Date); Date.now = () => now() + 90 * 1000; }")
    row = page.locator(f".row[data-id={web.q['recovery']}]")
    expect(row.locator(".left")).to_contain_text("4:2")  # some seconds of the ten minutes have passed
    row.locator("h3 a").click()
    pane = page.locator(f"[data-pane] form[data-q={web.q['recovery']}] .left")
    expect(pane).to_be_visible()
    both = "() => [...document.querySelectorAll('.row[aria-current] .left .w, [data-pane] .left .w')].map(at => at.textContent)"
    first, second = page.evaluate(both)
    assert first == second


@widths
def test_cached_page_counts_down_to_the_same_deadline(web, visit, width):
    """A cached page of an hour ago, without a network: its deadline has passed."""
    q = web.q["choice"]
    page = visit("ana", worker=True, width=width)
    worked(page)
    page.goto(f"{web.url}/questions/{q}")
    live(page)
    left = page.locator(".five .left")
    expect(left).to_contain_text("25:")
    page.goto(f"{web.url}/inbox")
    live(page)
    page.context.set_offline(True)
    page.add_init_script("{ const now = Date.now.bind(Date); Date.now = () => now() + 15 * 60000; }")
    page.goto(f"{web.url}/questions/{q}")
    expect(page.locator("html")).to_have_attribute("data-copy", "")
    expect(left).to_contain_text("10:")


@widths
def test_countdown_with_a_wrong_device_clock(web, visit, width):
    page = visit("ana", "/stats", width=width, locale="en-GB")  # a new window
    page.add_init_script("{ const now = Date.now.bind(Date); Date.now = () => now() - 7 * 3600000; }")
    page.goto(f"{web.url}/questions/{web.q['choice']}")
    live(page)
    expect(page.locator(".five .left")).to_contain_text("25:")
    drift = seconds(page.locator(".five .left").inner_text())
    assert 25 * 60 < drift < 26 * 60


@widths
def test_a_moved_deadline_is_shown(web, visit, width):
    q = web.ask("Which logo?", options=["round", "square"], timeout="20m", on_timeout="remind")
    page = live(visit("ana", f"/questions/{q}", width=width))
    expect(page.locator(".five .left")).to_contain_text("19:5")
    web.clock.advance(minutes=21)
    web.desk.reconcile()
    page.evaluate(BACK)
    expect(page.locator(".five .left")).to_contain_text("18:5")
    expect(page.locator(".say").first).to_be_visible()


# --- offline pages ----------------------------------------------------------------------------------------------------


@widths
def test_first_page_is_available_offline(web, visit, width):
    page = visit("ana", f"/questions/{web.q['permission']}", worker=True, width=width)
    worked(page)
    kept = "caches.open('pages-1').then(c => c.keys()).then(all => all.map(one => new URL(one.url).pathname))"
    until(page, f"{kept}.then(all => all.includes('/inbox') && all.some(one => one.startsWith('/questions/')))")
    until(page, "caches.match('/offline').then(Boolean)")
    page.context.set_offline(True)
    page.reload()
    expect(page.get_by_text("This exact action, once")).to_be_visible()
    page.goto(f"{web.url}/inbox")
    expect(page.locator(".row").first).to_be_visible()
    for path in ("/stats", "/settings", f"/questions/{web.q['choice']}"):
        page.goto(web.url + path)
        expect(page.get_by_role("heading", name="Not live")).to_be_visible()
        expect(page.get_by_role("link", name="Try again")).to_be_visible()
        assert page.evaluate("getComputedStyle(document.querySelector('.signed-out')).display") == "grid", "in its clothes"


@widths
def test_lost_connection_is_shown_on_every_screen(web, visit, width):
    page = live(visit("ana", width=width))
    web.stop()
    expect(page.locator(".strip")).to_contain_text(re.compile(r"Not live since \d\d:\d\d, trying again\."))
    web.start()
    page.locator(".strip").get_by_role("button", name="Try now").click()
    live(page)
    expect(page.locator("[data-strip=net]")).to_have_count(0)

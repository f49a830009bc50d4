"""Two people at the same question, and lost requests or replies: a person answers only the question on the screen, no text is lost,
and pages show the truth."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, Route, expect

from tests.web.conftest import PATIENCE, live, until, widths
from tests.web.test_answer_form import say, sent
from tests.web.test_closed_questions import BACK
from tests.web.test_pages import Caller
from tests.web.test_sending_answers import PAUSE, bad_gateway, fails, posts, reply_is_lost, unsent

#: A page whose clock stands still, so that typing has no pauses.
STILL = "{ const now = Date.now(); window.ahead = 0; Date.now = () => now + window.ahead; }"


def still(page: Page) -> Page:
    page.evaluate(f"() => {STILL}")
    return page


def deaf(page: Page) -> Page:
    """Blocks the event stream."""
    page.route("**/api/events*", lambda route: route.abort())
    page.reload()
    return page


def soon(page: Page, so: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE / 1000
    while not so():
        assert time.monotonic() < ends
        page.wait_for_timeout(20)


def answered_by(web: Any, name: str) -> list[str]:
    return [q for q in web.q.values() if web.desk.show(q)["responded_by"] == f"human:{name}"]


def chosen(page: Page) -> str:
    return str(page.evaluate("document.activeElement.closest('.say, .row')?.className ?? ''"))


# --- keys that were meant for a field ---------------------------------------------------------------------------------


@widths
def test_keys_for_a_closed_field_press_nothing(web, visit, width):
    q = web.q["text"]
    page = still(live(visit("chidi", f"/inbox?at={q}" if width > 1000 else f"/questions/{q}", width=width)))
    where, before = page.url, answered_by(web, "chidi")
    page.get_by_label("Your answer").click()
    page.keyboard.type("I would call it")
    web.as_("human:ben").answer(q, "Business")
    expect(page.locator("form.q .answer")).to_have_count(0)
    page.keyboard.type(" just a plan, and also r ")
    for key in ("Enter", "Tab", "a", "Enter", " "):
        page.keyboard.press(key)
    expect(page.locator(".leftover")).to_contain_text("I would call it")
    assert page.url == where and chosen(page) == "" and answered_by(web, "chidi") == before
    page.evaluate("window.ahead = 5000")  # after a pause keys are shortcuts again
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()


@widths
def test_keys_for_a_replaced_page_press_nothing(web, visit, width):
    page = visit("chidi", f"/questions/{web.q['text']}", width=width, locale="en-GB")  # a new window
    page.add_init_script(STILL)
    page.reload()
    page.get_by_label("Your answer").click()
    page.keyboard.type("I would")
    page.evaluate(f"location.assign('/questions/{web.q['checkpoint']}')")
    expect(page.get_by_role("heading", name="Approve deployment to production?")).to_be_visible()
    live(page)
    page.keyboard.type(" call a ")
    page.keyboard.press("Enter")
    assert chosen(page) == "" and web.desk.show(web.q["checkpoint"])["status"] == "pending"
    page.locator("h1").click()  # a click ends the typing
    page.keyboard.press("a")
    assert "say" in chosen(page)


@widths
def test_keys_work_as_soon_as_a_field_loses_focus(web, visit, width):
    page = still(live(visit("chidi", f"/questions/{web.q['text']}", width=width)))
    page.get_by_label("Your answer").click()
    page.keyboard.type("Team Plus")
    page.keyboard.press("Escape")
    page.keyboard.press("a")
    assert "say" in chosen(page)
    page.get_by_label("Your answer").click()
    page.keyboard.press("Control+Enter")
    sent(page)
    page.keyboard.press("j")
    expect(page).not_to_have_url(re.compile(web.q["text"]))


@widths
def test_space_bar_does_not_press_the_chosen_button(web, visit, width):
    q = web.q["checkpoint"]
    page = live(visit("chidi", f"/questions/{q}", width=width))
    went = posts(page)
    page.keyboard.press("a")
    page.keyboard.press(" ")
    page.keyboard.press("e")
    assert went == [] and web.desk.show(q)["status"] == "pending"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")  # reached with Tab it is an ordinary button
    page.keyboard.press(" ")
    sent(page)


def test_late_answer_does_not_navigate(web, visit):
    """The reply arrives while the next question is being answered."""
    first, second = web.q["boolean"], web.q["text"]
    page = still(deaf(visit("chidi", f"/inbox?at={first}")))
    held: list[Route] = []
    went: list[str] = []
    page.route(f"**/questions/{first}/answer", lambda route: held.append(route))
    page.locator("[data-pane]").get_by_role("button", name="Yes").click()
    page.locator(f".row[data-id={second}] h3 a").click()
    page.locator("[data-pane]").get_by_label("Your answer").click()
    page.keyboard.type("I would")
    page.on("framenavigated", lambda frame: went.append(frame.url))
    web.as_("human:ben").answer(first, "no")
    held[0].continue_()
    expect(page.locator(".toast")).to_contain_text(f"{first} came too late. ben was faster")
    page.keyboard.type(" call it a plan")
    expect(page.locator("[data-pane]").get_by_label("Your answer")).to_have_value("I would call it a plan")
    row = page.locator(f".row[data-id={first}]")
    expect(row.locator(".unsent")).to_contain_text("Too late. ben was faster")
    expect(row.locator(".unsent .what")).to_have_text("Yes")
    assert went == [] and answered_by(web, "chidi") == []


@widths
def test_reloaded_list_keeps_the_draft(web, visit, width):
    q = web.q["approval"]
    page = still(live(visit("chidi", f"/inbox?at={q}" if width > 1000 else "/inbox", width=width)))
    held: list[Route] = []
    page.route(re.compile(r"/inbox(\?(at|search)=.*)?$"), lambda route: held.append(route), times=1)
    page.evaluate(BACK)
    soon(page, lambda: bool(held))
    if width > 1000:
        page.locator("[data-pane] details.words > summary").click()
        field = page.locator("[data-pane] [name=text]")
    else:
        field = page.get_by_placeholder("Search")
    field.click()
    page.keyboard.type("No, this is no")
    web.ask("Which logo?", options=["round", "square"])
    held[0].continue_()
    if width > 1000:
        expect(page.locator(".row", has_text="Which logo?")).to_be_visible()
        expect(page.locator(".row[aria-current]")).to_have_attribute("data-id", q)
    page.keyboard.type("t good at all")
    page.keyboard.press("Enter" if width > 1000 else "Escape")
    if width > 1000:
        expect(field).to_have_value("No, this is not good at all\n")
    else:
        expect(page.locator(".row", has_text="Which logo?")).to_be_visible()  # after the field loses the focus
    assert answered_by(web, "chidi") == []


# --- a late answer is kept until the person decides -------------------------------------------------------------------


@widths
def test_late_answer_survives_a_failed_request_of_its_page(web, visit, width):
    q = web.q["text"]
    page = deaf(visit("chidi", f"/questions/{q}", width=width))
    page.get_by_label("Your answer").fill("My long and careful words")
    web.as_("human:ben").answer(q, "Business")
    say(page, "Send answer")
    expect(unsent(page)).to_contain_text("Too late. ben was faster: “Business”")
    expect(page.locator(".say")).to_have_count(0)
    expect(page.locator("[data-strip=late]")).to_have_count(0)  # reported once
    page.route(f"**/questions/{q}/answer", bad_gateway)
    unsent(page).get_by_role("button", name="What now?").click()
    expect(page.get_by_text("Bad gateway")).to_be_visible()
    page.unroute(f"**/questions/{q}/answer")
    page.goto(f"{web.url}/questions/{q}?kept=note")  # the address alone does not keep it
    expect(unsent(page).locator(".what")).to_contain_text("My long and careful words")
    unsent(page).get_by_role("button", name="What now?").click()
    expect(page.locator(".mine")).to_contain_text("My long and careful words")
    expect(page.locator(".strip")).to_have_count(0)  # the page itself reports it
    page.route(f"**/questions/{q}/late", bad_gateway)
    say(page, "Keep it as a note")
    expect(page.get_by_text("Bad gateway")).to_be_visible()
    page.unroute(f"**/questions/{q}/late")
    page.goto(f"{web.url}/questions/{q}")
    unsent(page).get_by_role("button", name="What now?").click()
    say(page, "Keep it as a note")
    expect(page.get_by_text("Kept as a note on DOC-1.")).to_be_visible()
    expect(page.locator(".unsent, .strip, .leftover")).to_have_count(0)
    assert web.desk.show("DOC-1")["notes"][-1]["text"] == f"Late answer to {q}: My long and careful words"


# --- a refused answer keeps its text ----------------------------------------------------------------------------------


@widths
def test_refused_answer_becomes_a_draft(web, visit, width):
    q = web.ask("How many words?", response_type="number")
    page = live(visit("chidi", f"/questions/{q}", width=width))
    page.get_by_label("A number").fill("twelve, because of the load")
    say(page, "Send answer")
    expect(page.locator(".wrong")).to_contain_text("number")
    page.reload()
    expect(page.get_by_label("A number")).to_have_value("twelve, because of the load")
    expect(page.locator(".unsent, .strip")).to_have_count(0)


@widths
def test_draft_survives_the_reload_of_an_expired_page(web, visit, width):
    q = web.q["text"]
    page = live(visit("chidi", f"/questions/{q}", width=width))
    page.get_by_label("Your answer").fill("Team Plus")
    form = {"link": web.secret("chidi")}
    page.context.clear_cookies()
    page.context.request.post(f"{web.url}/enter", form=form, max_redirects=0).dispose()  # in another tab
    say(page, "Send answer")
    expect(page.locator(".wrong")).to_contain_text("Load it again.")
    page.reload()
    expect(page.get_by_label("Your answer")).to_have_value("Team Plus")
    say(page, "Send answer")
    sent(page)
    assert web.desk.show(q)["response"]["value"] == "Team Plus"


def test_refused_answer_is_reported_on_the_next_question(web, visit):
    q = web.ask("How many words?", response_type="number")
    page = live(visit("chidi", f"/inbox?at={q}"))
    held: list[Route] = []
    page.route(f"**/questions/{q}/answer", lambda route: held.append(route))
    page.locator("[data-pane]").get_by_label("A number").fill("twelve")
    say(page, "Send answer")
    page.locator(f".row[data-id={web.q['text']}] h3 a").click()
    expect(page.locator("[data-pane] form")).to_have_attribute("data-q", web.q["text"])
    held[0].continue_()
    expect(page.locator(".toast")).to_contain_text(f"{q} was not sent.")
    box = page.locator(f".row[data-id={q}] .unsent")
    expect(box).to_contain_text("Not sent.")
    expect(box.locator(".what")).to_have_text("“twelve”")


# --- reports about an answer in flight --------------------------------------------------------------------------------


@widths
def test_answer_taken_back_in_flight_may_still_arrive(web, visit, width):
    q = web.q["choice"]
    page = live(visit("ana", f"/questions/{q}", width=width))
    sent_on: list[Route] = []

    def second(route: Route) -> None:
        sent_on.append(route)
        if len(sent_on) == 1:
            bad_gateway(route)

    page.route("**/questions/*/answer", second)
    page.get_by_text("JWT", exact=True).click()
    say(page, "Send “JWT”")
    expect(unsent(page)).to_be_visible()
    soon(page, lambda: len(sent_on) == 2)
    rows: list[Route] = []
    page.route("**/questions/*as=row", lambda route: rows.append(route))
    unsent(page).get_by_role("button", name="Take back").click()
    toast = page.locator(".toast")
    expect(toast).to_contain_text("“JWT” is taken back, unless it had arrived. Looking…")
    soon(page, lambda: bool(rows))
    rows[0].continue_()
    expect(toast).to_contain_text("“JWT” has not arrived so far. If it still does, this page shows it.")
    page.unroute("**/questions/*as=row")
    sent_on[1].fetch()  # it arrives
    expect(page.get_by_text("You answered “JWT”.").first).to_be_visible()
    expect(page.locator(".say")).to_have_count(0)


@widths
def test_unsent_answer_is_taken_back(web, visit, width):
    page = live(visit("ana", f"/questions/{web.q['choice']}", width=width))
    page.context.set_offline(True)
    page.get_by_text("JWT", exact=True).click()
    say(page, "Send “JWT”")
    unsent(page).get_by_role("button", name="Take back").click()
    expect(page.locator(".toast")).to_contain_text("“JWT” was taken back.")


@widths
def test_row_is_consistent_after_a_lost_reply(web, visit, width):
    q = web.q["checkpoint"]
    page = live(visit("ana", width=760 if width > 1000 else width))
    page.evaluate(PAUSE)
    keys = fails(page, 1, reply_is_lost)
    row = page.locator(f".row[data-id={q}]")
    row.get_by_text("Continue", exact=True).first.click()
    row.locator(".sure .btn:visible").click()
    expect(row.locator(".result")).to_contain_text("You let it continue.")
    expect(page.locator(".unsent, .strip")).to_have_count(0)
    soon(page, lambda: len(keys) == 2)  # it is sent again at once


@widths
def test_lost_reply_is_requested_again_after_the_event(web, visit, width):
    q = web.q["checkpoint"]
    page = live(visit("ana", width=760 if width > 1000 else width))
    page.evaluate(PAUSE)
    row = page.locator(f".row[data-id={q}]")

    def lost_after_the_news(route: Route) -> None:
        route.fetch()
        row.locator(".result").wait_for()
        route.abort()

    keys = fails(page, 1, lost_after_the_news)
    row.get_by_text("Continue", exact=True).first.click()
    row.locator(".sure .btn:visible").click()
    soon(page, lambda: len(keys) == 2)
    expect(page.locator(".unsent, .strip")).to_have_count(0)


def test_repeated_batch_shows_its_results(web):
    ana, both = Caller(web), [web.q["approval"], web.q["checkpoint"]]
    send = [f"{q} key-{q}" for q in both]
    first, again = (ana.post("/inbox/send", send=send).raw.decode() for _ in range(2))
    for text in (first, again):
        assert "2 sent" in text
    assert "You approved this." in again and "You let it continue." in again


@widths
def test_sent_answer_is_not_shown_as_queued_when_the_next_page_fails(web, visit, width):
    q = web.q["boolean"]
    page = visit("ana", worker=True, width=width)
    until(page, "navigator.serviceWorker.controller !== null")
    until(page, "caches.match('/offline').then(Boolean)")
    page.goto(f"{web.url}/questions/{q}")
    live(page)

    def the_network_goes(route: Route) -> None:
        reply = route.fetch()
        page.context.set_offline(True)
        route.fulfill(response=reply)

    page.route("**/questions/*/answer", the_network_goes)
    say(page, "Yes")
    expect(page).to_have_url(re.compile("sent=1"))
    expect(page.locator(".answer")).to_contain_text("You answered “Yes”.")
    expect(page.locator(".say")).to_have_count(0)
    assert web.desk.show(q)["response"]["value"] is True
    page.goto(f"{web.url}/stats")  # a page that is not cached
    expect(page.get_by_text("An answer that has not arrived is kept on this device")).to_be_visible()
    page.context.set_offline(False)

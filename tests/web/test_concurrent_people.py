"""Two people at the same question, and networks that lose half of what is said: nobody answers what they have not read, nothing that
was written is lost, and what a page says is so."""

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

#: The clock of the page stands still: nobody who types here pauses.
STILL = "{ const now = Date.now(); window.ahead = 0; Date.now = () => now + window.ahead; }"


def still(page: Page) -> Page:
    page.evaluate(f"() => {STILL}")
    return page


def deaf(page: Page) -> Page:
    """It hears nothing of what others do."""
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


# --- letters that were meant for a field -----------------------------------------------------------------------------------------


@widths
def test_letters_for_a_field_that_was_closed_press_nothing(web, visit, width):
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
    page.evaluate("window.ahead = 5000")  # after a pause keys are keys
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()


@widths
def test_letters_for_a_page_that_was_replaced_press_nothing(web, visit, width):
    page = visit("chidi", f"/questions/{web.q['text']}", width=width, locale="en-GB")  # a window of its own
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
    page.locator("h1").click()  # a click says that the page was seen
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
def test_the_space_bar_does_not_press_what_a_key_has_chosen(web, visit, width):
    q = web.q["checkpoint"]
    page = live(visit("chidi", f"/questions/{q}", width=width))
    went = posts(page)
    page.keyboard.press("a")
    page.keyboard.press(" ")
    page.keyboard.press("e")
    assert went == [] and web.desk.show(q)["status"] == "pending"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")  # gone to with the browser's own keys, it is a button like any other
    page.keyboard.press(" ")
    sent(page)


def test_a_late_answer_leaves_its_writer_where_they_are(web, visit):
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
def test_a_list_that_is_drawn_again_leaves_what_is_being_written(web, visit, width):
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
        expect(page.locator(".row", has_text="Which logo?")).to_be_visible()  # once the field is left
    assert answered_by(web, "chidi") == []


# --- a late answer is kept until somebody decides --------------------------------------------------------------------------------


@widths
def test_a_late_answer_survives_that_its_page_does_not_come(web, visit, width):
    q = web.q["text"]
    page = deaf(visit("chidi", f"/questions/{q}", width=width))
    page.get_by_label("Your answer").fill("My long and careful words")
    web.as_("human:ben").answer(q, "Business")
    say(page, "Send answer")
    expect(unsent(page)).to_contain_text("Too late. ben was faster: “Business”")
    expect(page.locator(".say")).to_have_count(0)
    expect(page.locator("[data-strip=late]")).to_have_count(0)  # it is said once
    page.route(f"**/questions/{q}/answer", bad_gateway)
    unsent(page).get_by_role("button", name="What now?").click()
    expect(page.get_by_text("Bad gateway")).to_be_visible()
    page.unroute(f"**/questions/{q}/answer")
    page.goto(f"{web.url}/questions/{q}?kept=note")  # an address alone has not kept anything
    expect(unsent(page).locator(".what")).to_contain_text("My long and careful words")
    unsent(page).get_by_role("button", name="What now?").click()
    expect(page.locator(".mine")).to_contain_text("My long and careful words")
    expect(page.locator(".strip")).to_have_count(0)  # it is said on the page
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


# --- a refused answer keeps its words --------------------------------------------------------------------------------------------


@widths
def test_a_refused_answer_is_a_draft_again(web, visit, width):
    q = web.ask("How many words?", response_type="number")
    page = live(visit("chidi", f"/questions/{q}", width=width))
    page.get_by_label("A number").fill("twelve, because of the load")
    say(page, "Send answer")
    expect(page.locator(".wrong")).to_contain_text("number")
    page.reload()
    expect(page.get_by_label("A number")).to_have_value("twelve, because of the load")
    expect(page.locator(".unsent, .strip")).to_have_count(0)


@widths
def test_words_on_a_page_that_is_too_old_survive_that_it_is_loaded_again(web, visit, width):
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


def test_an_answer_that_is_refused_behind_the_next_question_says_so(web, visit):
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


# --- what is said of an answer on its way ----------------------------------------------------------------------------------------


@widths
def test_what_is_taken_back_on_its_way_may_still_arrive(web, visit, width):
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
    expect(toast).to_contain_text("“JWT” has not arrived so far. If it still does, this page says so.")
    page.unroute("**/questions/*as=row")
    sent_on[1].fetch()  # it arrives
    expect(page.get_by_text("You answered “JWT”.").first).to_be_visible()
    expect(page.locator(".say")).to_have_count(0)


@widths
def test_what_never_left_is_taken_back_for_certain(web, visit, width):
    page = live(visit("ana", f"/questions/{web.q['choice']}", width=width))
    page.context.set_offline(True)
    page.get_by_text("JWT", exact=True).click()
    say(page, "Send “JWT”")
    unsent(page).get_by_role("button", name="Take back").click()
    expect(page.locator(".toast")).to_contain_text("“JWT” was taken back.")


@widths
def test_a_row_says_one_thing_after_a_lost_reply(web, visit, width):
    q = web.q["checkpoint"]
    page = live(visit("ana", width=760 if width > 1000 else width))
    page.evaluate(PAUSE)
    keys = fails(page, 1, reply_is_lost)
    row = page.locator(f".row[data-id={q}]")
    row.get_by_text("Continue", exact=True).first.click()
    row.locator(".sure .btn:visible").click()
    expect(row.locator(".result")).to_contain_text("You let it continue.")
    expect(page.locator(".unsent, .strip")).to_have_count(0)
    soon(page, lambda: len(keys) == 2)  # it asks at once what became of it


@widths
def test_a_reply_that_is_lost_after_the_news_is_asked_for_at_once(web, visit, width):
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


def test_a_batch_that_is_sent_again_says_what_came_of_it(web):
    ana, both = Caller(web), [web.q["approval"], web.q["checkpoint"]]
    send = [f"{q} key-{q}" for q in both]
    first, again = (ana.post("/inbox/send", send=send).raw.decode() for _ in range(2))
    for text in (first, again):
        assert "2 sent" in text
    assert "You approved this." in again and "You let it continue." in again


@widths
def test_an_answer_that_arrived_is_not_said_to_wait_when_the_next_page_does_not_come(web, visit, width):
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
    page.goto(f"{web.url}/stats")  # a page that is not kept
    expect(page.get_by_text("An answer that has not arrived is kept on this device")).to_be_visible()
    page.context.set_offline(False)

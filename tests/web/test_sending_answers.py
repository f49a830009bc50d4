"""Sending answers over slow networks, with lost requests and replies, edits and reloads: an answer counts once, and the page shows what
is sent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.web.conftest import live, until, widths
from tests.web.test_answer_form import say, sent

#: Retry pauses that no test reaches.
PAUSE = "() => { const later = window.setTimeout; window.setTimeout = (run, ms, ...more) => ms > 500 && ms <= 2000 ? 0 : later(run, ms, ...more); }"


@contextmanager
def slow(page: Page, milliseconds: int) -> Iterator[None]:
    """Delays every request."""
    line = page.context.new_cdp_session(page)
    line.send(
        "Network.emulateNetworkConditions",
        {"offline": False, "latency": milliseconds, "downloadThroughput": -1, "uploadThroughput": -1},
    )
    try:
        yield
    finally:
        line.detach()


def posts(page: Page) -> list[str]:
    """Records the questions to which answers were sent."""
    questions: list[str] = []
    page.on("request", lambda one: questions.append(one.url.rpartition("/questions/")[2]) if one.method == "POST" else None)
    return questions


def fails(page: Page, times: int, how: Any) -> list[str]:
    """Fails that many answers. Returns the idempotency keys of all."""
    keys: list[str] = []

    def one(route: Route) -> None:
        keys.append((re.findall(r"key=([^&]*)", route.request.post_data or "") or [""])[0])
        if len(keys) <= times:
            how(route)
        else:
            route.continue_()

    page.route("**/questions/*/answer", one)
    return keys


def bad_gateway(route: Route) -> None:
    route.fulfill(status=502, content_type="text/html", body="<h1>Bad gateway</h1>")


def reply_is_lost(route: Route) -> None:
    route.fetch()
    route.abort()


def unsent(page: Page) -> Any:
    return page.locator(".unsent")


# --- keys and buttons apply to the marked question --------------------------------------------------------------------


def test_keys_do_not_answer_the_previous_question(web, visit):
    page = live(visit("ana"))
    rows = page.locator(".row").evaluate_all("rows => rows.map(row => row.dataset.id)")
    at = rows.index(web.q["permission"])
    page.goto(f"{web.url}/inbox?at={web.q['permission']}")
    live(page)
    went = posts(page)
    with slow(page, 400):
        page.locator(f".row[data-id={rows[at]}] h3 a").focus()
        page.keyboard.press("j")
        page.keyboard.press("a")
        assert page.evaluate("document.activeElement.closest('.row')?.dataset.id") == rows[at + 1], (
            "the yes of the one before is not chosen"
        )
        pane = page.locator("[data-pane]")
        assert page.evaluate("document.querySelector('[data-pane]').inert")
        expect(pane.locator(".say")).to_have_count(0)
        page.keyboard.press("Enter")
        expect(pane.locator("form[data-q]")).to_have_attribute("data-q", rows[at + 1])
        assert went == [] and web.desk.show(web.q["permission"])["status"] == "pending"
        assert not page.evaluate("document.querySelector('[data-pane]').inert")


def test_click_does_not_answer_the_previous_question(web, visit):
    page = live(visit("ana", f"/inbox?at={web.q['permission']}"))
    went = posts(page)
    with slow(page, 400):
        allow = page.locator("[data-pane] .say.go").bounding_box()
        assert allow
        page.locator(f".row[data-id={web.q['choice']}] h3 a").click()
        page.mouse.click(allow["x"] + 10, allow["y"] + 10)
        expect(page.locator("[data-pane] form[data-q]")).to_have_attribute("data-q", web.q["choice"])
        assert went == [] and web.desk.show(web.q["permission"])["status"] == "pending"


def test_reply_of_the_previous_question_keeps_the_pane(web, visit):
    """The reply arrives while the next question is open."""
    page = live(visit("ana", f"/inbox?at={web.q['permission']}"))
    held: list[Route] = []
    page.route("**/questions/*/answer", lambda route: held.append(route))
    page.locator("[data-pane] .say.go").click()
    page.locator(f".row[data-id={web.q['choice']}] h3 a").click()
    pane = page.locator("[data-pane] form[data-q]")
    expect(pane).to_have_attribute("data-q", web.q["choice"])
    held[0].continue_()
    expect(page.locator(f".row[data-id={web.q['permission']}] .result")).to_be_visible()
    sent(page, "Sent. coder goes on with API-1.")
    page.wait_for_load_state("networkidle")
    expect(pane).to_have_attribute("data-q", web.q["choice"])
    page.keyboard.press("1")
    expect(pane.get_by_role("radio", name="Sessions")).to_be_checked()


def test_failed_load_of_a_question_is_shown(web, visit):
    page = live(visit("ana", f"/inbox?at={web.q['permission']}"))
    page.route("**/questions/*as=pane", lambda route: route.abort())
    page.locator(f".row[data-id={web.q['choice']}] h3 a").click()
    pane = page.locator("[data-pane]")
    expect(pane).to_contain_text(f"{web.q['choice']} is not loaded")
    expect(pane.locator("form, .say")).to_have_count(0)
    page.keyboard.press("a")
    assert page.evaluate("document.activeElement.className") != "say go"
    page.unroute_all()
    pane.get_by_role("button", name="Try again").click()
    expect(pane.locator("form[data-q]")).to_have_attribute("data-q", web.q["choice"])
    assert web.desk.show(web.q["permission"])["status"] == "pending"


# --- one request fails ------------------------------------------------------------------------------------------------


@widths
def test_answer_is_retried_after_a_bad_gateway(web, visit, width):
    q = web.q["choice"]
    page = live(visit("ana", f"/questions/{q}", width=width))
    keys = fails(page, 1, bad_gateway)
    page.get_by_text("JWT", exact=True).click()
    say(page, "Send “JWT”")
    expect(unsent(page)).to_contain_text("Not sent yet, trying again.")
    expect(unsent(page).locator(".what")).to_have_text("“JWT”")
    sent(page, f"Sent {q}. architect goes on with API-5.")
    assert web.desk.show(q)["response"]["value"] == "jwt"
    assert len(keys) == 2 and keys[0] == keys[1] != ""
    expect(page.locator(".unsent, .strip, .answer")).to_have_count(0)
    expect(page.get_by_text("You answered “JWT”.").first).to_be_visible()


@widths
def test_try_now(web, visit, width):
    q = web.q["boolean"]
    page = live(visit("ana", f"/questions/{q}", width=width))
    page.evaluate(PAUSE)
    keys = fails(page, 1, bad_gateway)
    say(page, "Yes")
    expect(unsent(page)).to_contain_text("Not sent yet, trying again.")
    expect(page.locator(".strip")).to_have_count(0)  # reported once
    unsent(page).get_by_role("button", name="Try now").click()
    sent(page, f"Sent {q}.")
    assert web.desk.show(q)["response"]["value"] is True and len(set(keys)) == 1


@widths
def test_an_answer_whose_reply_was_lost_counts_once(web, visit, width):
    q = web.q["permission"]
    page = live(visit("ana", f"/questions/{q}", width=width))
    keys = fails(page, 1, reply_is_lost)
    say(page, "Allow once")
    sent(page, f"Sent {q}. coder goes on with API-1.")
    assert len(keys) == 2 and len(set(keys)) == 1
    answers = [event for event in web.desk.history("API-1") if event["action"] == "answer"]
    assert len(answers) == 1 and web.desk.show(q)["response"]["verdict"] == "approved"


@pytest.mark.parametrize("in_hidden_pane", [False, True], ids=["row", "row-and-hidden-pane"])
@widths
def test_a_quick_answer_is_tried_again_in_its_row(web, visit, width, in_hidden_pane):
    q = web.q["checkpoint"]
    page = live(visit("ana", f"/inbox?at={q}" if in_hidden_pane else "/inbox", width=760 if width > 1000 else width))
    expect(page.locator(f"[data-pane] form[data-q={q}]")).to_have_count(int(in_hidden_pane))
    page.evaluate(PAUSE)
    fails(page, 1, bad_gateway)
    row = page.locator(f".row[data-id={q}]")
    row.get_by_text("Continue", exact=True).first.click()
    row.locator(".sure .btn:visible").click()
    expect(row.locator(".unsent")).to_contain_text("Not sent yet, trying again.")
    expect(row.locator(".quick")).to_be_hidden()
    row.get_by_role("button", name="Try now").click()
    expect(row.locator(".result")).to_contain_text("You let it continue.")
    expect(row.locator(".unsent")).to_have_count(0)


# --- what is shown as saved is what is sent ---------------------------------------------------------------------------


@widths
def test_a_queued_answer_that_is_changed_is_replaced(web, visit, width):
    q = web.ask("Which colour?", options=["red", "blue"])
    page = live(visit("ana", f"/questions/{q}", width=width, worker=True))
    until(page, "navigator.serviceWorker.controller !== null")
    page.reload()
    live(page)
    page.context.set_offline(True)
    page.get_by_text("red", exact=True).click()
    say(page, "Send “red”")
    expect(unsent(page).locator(".what")).to_have_text("“red”")
    page.reload()  # the form shows the queued answer
    expect(unsent(page).locator(".what")).to_have_text("“red”")
    expect(page.get_by_role("radio", name="red")).to_be_checked()
    page.get_by_text("blue", exact=True).click()
    expect(unsent(page)).to_have_count(0)  # changed: the queued answer was taken back
    page.reload()
    expect(page.get_by_role("radio", name="blue")).to_be_checked()
    expect(page.locator(".unsent")).to_have_count(0)
    say(page, "Send “blue”")
    expect(unsent(page).locator(".what")).to_have_text("“blue”")
    page.reload()
    expect(page.get_by_role("radio", name="blue")).to_be_checked()
    expect(unsent(page).locator(".what")).to_have_text("“blue”")
    page.context.set_offline(False)
    page.reload()
    sent(page, f"Sent {q}.")
    assert web.desk.show(q)["response"]["value"] == "blue"


@widths
def test_a_queued_answer_is_taken_back(web, visit, width):
    q = web.q["text"]
    page = live(visit("ana", f"/questions/{q}", width=width))
    page.context.set_offline(True)
    page.get_by_label("Your answer").fill("Team Plus\nfor all")
    say(page, "Send answer")
    expect(unsent(page).locator(".what")).to_have_text("“Team Plus\nfor all”")
    unsent(page).get_by_role("button", name="Take back").click()
    expect(unsent(page)).to_have_count(0)
    expect(page.get_by_label("Your answer")).to_have_value("")
    page.context.set_offline(False)
    live(page)
    expect(page.locator(".strip")).to_have_count(0)
    assert web.desk.show(q)["status"] == "pending"
    page.get_by_label("Your answer").fill("Business")
    say(page, "Send answer")
    sent(page)
    assert web.desk.show(q)["response"]["value"] == "Business"


@widths
def test_change_keeps_the_text(web, visit, width):
    q = web.q["text"]
    page = live(visit("ana", f"/questions/{q}", width=width))
    page.context.set_offline(True)
    page.get_by_label("Your answer").fill("Team Plus")
    say(page, "Send answer")
    unsent(page).get_by_role("button", name="Change").click()
    expect(page.get_by_label("Your answer")).to_be_focused()
    expect(page.get_by_label("Your answer")).to_have_value("Team Plus")
    page.get_by_label("Your answer").fill("Team Plus and more")
    say(page, "Send answer")
    page.context.set_offline(False)
    sent(page, f"Sent {q}.")
    assert web.desk.show(q)["response"]["value"] == "Team Plus and more"


@widths
def test_late_take_back_is_reported(web, visit, width):
    """The first request arrived, only its reply was lost."""
    q = web.q["permission"]
    page = live(visit("ana", f"/questions/{q}", width=width))
    page.route("**/api/events*", lambda route: route.abort())
    page.reload()
    page.evaluate(PAUSE)
    fails(page, 1, reply_is_lost)
    say(page, "Allow once")
    unsent(page).get_by_role("button", name="Take back").click()
    expect(page.get_by_text("You allowed this.").first).to_be_visible()
    expect(page.locator(".answer .say")).to_have_count(0)


@widths
def test_outbox_is_shown_above_the_list(web, visit, width):
    q = web.q["choice"]
    page = live(visit("ana", f"/questions/{q}", width=width))
    page.route("**/questions/*/answer", bad_gateway)
    page.get_by_text("Sessions", exact=True).click()
    say(page, "Send “Sessions”")
    expect(unsent(page)).to_be_visible()
    page.goto(f"{web.url}/stats")
    expect(page.locator(".strip")).to_contain_text("1 answer is not sent yet, trying again.")
    page.goto(f"{web.url}/inbox?kind=permission")
    box = page.locator("[data-outbox] .unsent")
    expect(box.locator(".what")).to_have_text("“Sessions”")
    box.get_by_role("button", name="Take back").click()
    expect(page.locator("[data-outbox]")).to_have_count(0)
    page.goto(f"{web.url}/inbox")
    live(page)
    assert web.desk.show(q)["status"] == "pending"


@widths
def test_a_late_answer_stays_until_a_person_decides(web, visit, width):
    q = web.q["choice"]
    page = live(visit("ana", f"/questions/{q}", width=width))
    page.context.set_offline(True)
    page.get_by_text("Sessions", exact=True).click()
    say(page, "Send “Sessions”")
    web.as_("human:ben").answer(q, "jwt")
    page.context.set_offline(False)
    expect(page.locator(".toast")).to_contain_text(f"{q} came too late.")
    page.goto(f"{web.url}/inbox")
    box = page.locator("[data-outbox] .unsent")
    expect(box).to_contain_text(re.compile("Too late. ben was faster: “JWT”"))
    box.get_by_role("button", name="What now?").click()
    expect(page.get_by_role("button", name="Keep it as a note")).to_be_visible()
    expect(page.locator(".mine")).to_contain_text("Sessions")
    page.goto(f"{web.url}/inbox")
    expect(box).to_be_visible()  # undecided
    box.get_by_role("button", name="What now?").click()
    page.get_by_role("link", name="Drop it").click()
    expect(page).to_have_url(f"{web.url}/inbox")
    expect(page.locator("[data-outbox], .strip")).to_have_count(0)


@widths
def test_signed_out_person_keeps_the_answer(web, visit, width):
    q = web.q["text"]
    page = live(visit("ana", f"/questions/{q}", width=width))
    page.get_by_label("Your answer").fill("Team Plus")
    page.context.clear_cookies()
    say(page, "Send answer")
    expect(unsent(page)).to_contain_text("you were signed out")
    page.goto(web.link("ana"))
    sent(page, f"Sent {q}.")
    assert web.desk.show(q)["response"]["value"] == "Team Plus"


@widths
def test_strips_do_not_cover_the_answer_bar(web, visit, width):
    page = live(visit("ana", "/inbox" if width > 1000 else f"/questions/{web.q['permission']}", width=width))
    page.context.set_offline(True)
    expect(page.locator(".strip")).to_contain_text("Offline.")
    height = page.evaluate("innerHeight")
    for button in page.locator(".answer .say").all():
        box = button.bounding_box()
        assert box and box["y"] + box["height"] <= height, "whole"
    assert page.evaluate("document.documentElement.scrollHeight <= innerHeight") or width < 1000

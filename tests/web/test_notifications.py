"""Toasts and announcements of new questions: once, also after a lost request and while a person types, without covering anything."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, Route, expect

from tests.web.conftest import live, until, widths
from tests.web.test_sending_answers import bad_gateway

#: Texts, fields and buttons of the page that the toast covers.
COVERED = """toast => {
    const b = toast.getBoundingClientRect();
    return [...document.querySelectorAll('.main :is(a, button, summary, label, h1, h2, h3, p, dt, dd, li, .field, .answer), .nav a')]
        .filter(at => !at.closest('.toasts') && at.checkVisibility({ visibilityProperty: true }) && !at.closest('.sr'))
        .filter(at => { const a = at.getBoundingClientRect();
            return a.width && a.left < b.right - .5 && b.left < a.right - .5 && a.top < b.bottom - .5 && b.top < a.bottom - .5; })
        .map(at => at.outerHTML.slice(0, 120));
}"""
#: The first visible line of the page: position and text.
FIRST = """() => {
    const at = [...document.querySelectorAll('.main > .q p, .main > .q h1, .main > .q h2, .main > .q legend, .main > .q dd')]
        .find(at => at.checkVisibility() && at.getBoundingClientRect().top >= 0);
    at.dataset.first = '';
    return at.getBoundingClientRect().top;
}"""


def once(page: Page, where: str, how=bad_gateway) -> list[str]:
    """Fails the first request to the path."""
    went: list[str] = []

    def one(route: Route) -> None:
        went.append(route.request.url)
        if len(went) == 1:
            how(route)
        else:
            route.continue_()

    page.route(where, one)
    return went


@widths
@pytest.mark.parametrize("how", [bad_gateway, lambda route: route.abort()], ids=["gateway", "lost"])
def test_one_lost_request_does_not_hide_a_question(web, visit, width, how):
    page = live(visit("ana", width=width))
    went = once(page, "**/questions/*as=toast", how)
    q = web.ask("Which logo?", options=["round", "square"])
    expect(page.get_by_role("button", name="1 new question")).to_be_visible()
    if width > 1000:
        expect(page.locator(".toast")).to_contain_text("Which logo?")
    assert len([url for url in went if q in url]) == 2


@pytest.mark.parametrize("how", [bad_gateway, lambda route: route.abort()], ids=["gateway", "lost"])
def test_one_lost_request_does_not_keep_a_pane_empty(web, visit, how):
    page = live(visit("ana", f"/inbox?at={web.q['permission']}"))
    went = once(page, "**/questions/*as=pane", how)
    page.locator(f".row[data-id={web.q['choice']}] h3 a").click()
    expect(page.locator("[data-pane] form[data-q]")).to_have_attribute("data-q", web.q["choice"])
    assert len(went) == 2


@widths
def test_a_question_about_the_open_task_is_announced_while_writing(web, visit, width):
    page = live(visit("ana", "/tasks/API-4", width=width))
    page.locator("#note").fill("half a thou")
    q = web.ask("Which logo?", options=["round", "square"])
    toast = page.locator(".toast")
    if width < 1000:  # the toast would cover the text
        expect(page.locator("#live")).to_have_text("New choice from coder, API-4")
        expect(toast).to_have_count(0)
        page.locator("#note").blur()
    expect(toast).to_contain_text("Which logo?")
    expect(page.locator("dialog[open]")).to_have_count(0)
    expect(page.locator("#note")).to_have_value("half a thou")
    toast.get_by_role("link", name="Answer").click()
    expect(page.locator(f"dialog.sheet form[data-q={q}]")).to_be_visible()


@pytest.mark.parametrize("path", ["/tasks", "/tasks?view=list", "/tasks/API-5", "/activity", "/stats", "/settings", "choice", "text"])
def test_on_a_phone_a_toast_covers_nothing(web, visit, path):
    page = live(visit("ana", path if path.startswith("/") else f"/questions/{web.q[path]}", width=390))
    web.ask("Which logo goes on the invoice, and which one on the letters?", options=["round", "square"])
    toast = page.locator(".toast")
    expect(toast).to_be_visible()
    assert toast.evaluate(COVERED) == []
    toast.get_by_role("button", name="Later").click()
    expect(toast).to_have_count(0)


def test_on_a_phone_a_toast_covers_nothing_of_a_page_that_was_scrolled(web, visit):
    page = live(visit("ana", f"/questions/{web.q['choice']}", width=390))
    page.evaluate("scrollTo(0, 300)")
    top = page.evaluate(FIRST)
    web.ask("Which logo?", options=["round", "square"])
    toast = page.locator(".toast")
    expect(toast).to_be_visible()
    first, bar = page.locator("[data-first]"), page.locator(".answer")
    assert first.evaluate("at => at.getBoundingClientRect().top") - toast.evaluate("at => at.getBoundingClientRect().bottom") == pytest.approx(top, abs=1)
    assert bar.evaluate("at => at.getBoundingClientRect().bottom") == pytest.approx(844, abs=1), "the answers stay where they are"
    toast.get_by_role("button", name="Later").click()
    expect(toast).to_have_count(0)


def test_on_a_phone_a_tap_does_not_hit_what_a_toast_has_moved(web, visit):
    """The tap was meant for what was at this place before."""
    page = live(visit("ana", f"/questions/{web.q['choice']}", width=390))
    page.evaluate("""() => {
        const later = window.setTimeout;
        window.setTimeout = (run, ms, ...more) => ms === 400 ? (window.settle = run, 0) : later(run, ms, ...more);
    }""")
    web.ask("Which logo?", options=["round", "square"])
    expect(page.locator(".toast")).to_be_visible()
    box = page.locator(".opt").first.bounding_box()
    assert box
    page.mouse.click(box["x"] + 40, box["y"] + 10)
    expect(page.locator(".opt input:checked")).to_have_count(0)
    page.evaluate("() => { window.settle(); }")
    page.mouse.click(box["x"] + 40, box["y"] + 10)
    expect(page.locator(".opt input:checked")).to_have_count(1)


def test_on_a_phone_the_head_of_a_list_stays_below_a_toast(web, visit):
    """A toast about a sent answer appears while the list is scrolled."""
    q = web.q["choice"]
    page = live(visit("ana", f"/questions/{q}", width=390))
    page.route("**/questions/*/answer", bad_gateway)
    page.get_by_text("JWT", exact=True).click()
    page.locator(".answer").get_by_role("button", name="Send “JWT”").click()
    expect(page.locator(".unsent")).to_be_visible()
    page.goto(f"{web.url}/inbox")
    live(page)
    page.evaluate("scrollTo(0, 400)")
    page.unroute_all()
    page.locator(".strip, .unsent").get_by_role("button", name="Try now").first.dispatch_event("click")
    toast = page.locator(".toast")
    expect(toast).to_contain_text(f"Sent {q}.")
    until(page, "document.querySelector('.list-head').getBoundingClientRect().top >= document.querySelector('.toast').getBoundingClientRect().bottom - 1")

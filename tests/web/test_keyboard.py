"""Keyboard shortcuts: one key chooses, Enter sends, and no single key answers."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.web.conftest import until, widths
from tests.web.test_answer_form import sent


def current(page: Page) -> str:
    return str(page.evaluate("document.activeElement.closest('.row')?.dataset.id ?? ''"))


def test_list_and_pane_with_keys(web, visit):
    page = visit("ana")  # there is room for both
    rows = page.locator(".row").evaluate_all("rows => rows.map(row => row.dataset.id)")
    page.keyboard.press("j")
    assert current(page) == rows[1]
    expect(page.locator("[data-pane] form[data-q]")).to_have_attribute("data-q", rows[1])
    expect(page).to_have_url(re.compile(f"at={rows[1]}"))
    page.keyboard.press("k")
    expect(page.locator("[data-pane] form[data-q]")).to_have_attribute("data-q", rows[0])
    page.keyboard.press("Enter")
    until(page, "document.activeElement.classList.contains('h1')")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.type("ja")  # while typing, keys are letters
    expect(page.get_by_placeholder("Search")).to_have_value("ja")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.tagName") == "BODY"
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()
    page.reload()
    expect(page.locator("[data-pane] form[data-q]")).to_have_attribute("data-q", rows[0])


def test_list_without_pane_with_keys(web, visit):
    page = visit("ana", width=390)
    rows = page.locator(".row").evaluate_all("rows => rows.map(row => row.dataset.id)")
    page.keyboard.press("j")
    assert current(page) == rows[1]
    page.keyboard.press("k")
    assert current(page) == rows[0]
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/questions/{rows[0]}")


def test_a_number_key_does_not_reach_a_hidden_pane(web, visit):
    page = visit("ana", f"/inbox?at={web.q['choice']}", width=760)
    pane = page.locator("[data-pane]")
    expect(pane).to_be_hidden()
    page.keyboard.press("1")
    expect(pane.locator(".opt input:checked")).to_have_count(0)


@widths
def test_keys_choose_and_enter_sends(web, visit, width):
    page = visit("ana", f"/questions/{web.q['choice']}", width=width)
    page.keyboard.press("2")
    expect(page.get_by_role("radio", name="JWT")).to_be_checked()
    page.keyboard.press("a")
    assert page.evaluate("document.activeElement.dataset.key") == "a"
    assert web.desk.show(web.q["choice"])["status"] == "pending"
    page.keyboard.press("Enter")
    sent(page)
    assert web.desk.show(web.q["choice"])["response"]["value"] == "jwt"


@widths
def test_keys_for_yes_no_and_edit(web, visit, width):
    page = visit("ana", f"/questions/{web.q['permission']}", width=width)
    for key in ("r", "a", "e"):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.dataset.key") == key
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/edit$"))
    assert web.desk.show(web.q["permission"])["status"] == "pending"
    page.goto(f"{web.url}/questions/{web.q['permission']}")
    page.keyboard.press("j")
    page.wait_for_url(lambda url: web.q["permission"] not in url)
    page.keyboard.press("g")
    page.keyboard.press("i")
    page.wait_for_url("**/inbox")


@widths
def test_keys_select_and_preview(web, visit, width):
    page = visit("ana", width=width)
    for name in ("approval", "checkpoint"):
        page.locator(f".row[data-id={web.q[name]}] h3 a").focus()
        page.keyboard.press("x")
    expect(page.locator(".pickbar")).to_contain_text("2 selected")
    page.keyboard.press("a")
    expect(page.get_by_role("heading", name="Answer 2 together")).to_be_visible()
    page.keyboard.press("a")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="2 sent")).to_be_visible()


@widths
def test_no_single_key_answers(web, visit, width):
    page = visit("ana", f"/questions/{web.q['checkpoint']}", width=width)
    for key in "abcdefhilmnopqrstuvwxyz0123456789":  # the others leave the page
        page.locator("h1").focus()
        page.keyboard.press(key)
        page.keyboard.press("Escape")
    assert web.desk.show(web.q["checkpoint"])["status"] == "pending"


@widths
def test_keys_can_be_switched_off(web, visit, width):
    web.desk.set_preferences(keys=False)
    page = visit("ana", f"/questions/{web.q['permission']}", width=width)
    page.keyboard.press("a")
    assert page.evaluate("document.activeElement.tagName") == "BODY"
    expect(page.locator(".answer kbd").first).to_be_hidden()


@widths
def test_browser_keys_answer_without_javascript(web, visit, width):
    page = visit("ana", f"/questions/{web.q['choice']}", width=width, js=False)
    page.keyboard.press("a")
    assert page.evaluate("document.activeElement.tagName") == "BODY", "no key of ours does anything"
    expect(page.locator(".answer kbd").first).to_be_hidden()
    for wanted in ("option", "say"):
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.name") == wanted:
                break
        if wanted == "option":
            page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    sent(page)
    assert web.desk.show(web.q["choice"])["response"]["value"] == "jwt"

"""Activity and statistics: words and pictures of what happened."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.web.conftest import live
from tests.web.workdesk import week
from yourturn.web.telling import DID


def test_activity_is_told_filtered_and_paged(web, visit):
    page = visit("ana", "/activity", js=False)
    events = page.locator(".happened > li")
    expect(events).to_have_count(60)
    expect(page.get_by_text("ana came in by a link").first).to_be_visible()
    seen = events.first.inner_text()
    page.get_by_role("link", name="Older").click()
    assert events.first.inner_text() != seen
    page.get_by_role("link", name="Newest").click()
    page.get_by_label("Task").fill("API-5")
    page.get_by_label("Who").fill("architect")
    page.get_by_role("button", name="Filter").click()
    found = events.all_inner_texts()
    assert found and all("API-5" in text and "architect" in text for text in found)
    page.get_by_role("link", name="Remove filter architect").click()
    page.get_by_label("Who").fill("ana")
    page.get_by_role("button", name="Filter").click()
    assert all(text.startswith("A") and "ana" in text for text in events.all_inner_texts())
    page.goto(f"{web.url}/activity?project=OPS")
    assert all("OPS-" in text for text in events.all_inner_texts())
    assert page.goto(f"{web.url}/activity?project=NOPE").status == 404
    assert page.goto(f"{web.url}/activity?task=API-999").status == 404
    assert page.goto(f"{web.url}/activity?before=x").status == 422


def test_what_happens_is_announced_not_moved(web, visit):
    page = live(visit("ana", "/activity?task=API-5"))
    told = page.locator("[data-activity]")
    before = told.inner_text()
    web.as_("human:ben").answer(web.q["text"], "Team")
    web.as_("human:ben").answer(web.q["choice"], "jwt")
    pill = page.locator("[data-stale]")
    expect(pill).to_contain_text("Show")
    assert told.inner_text() == before
    pill.click()
    expect(page.locator(".happened").first).to_contain_text("ben answered")


def test_every_verb_has_words():
    from yourturn.core.actions import VERBS

    assert set(VERBS) - {"heartbeat", "approve"} <= set(DID)


@pytest.mark.parametrize(("width", "js"), [(1280, False), (390, True)], ids=["plain", "phone"])
def test_statistics_are_numbers_words_and_tables(web, visit, width, js):
    desk = web.as_("human:ana")
    week(desk, web.clock)
    page = visit("vera", "/stats?range=month", width=width, js=js)
    found = desk.stats(days=30)  # of project API, as `as_` says
    page.goto(f"{web.url}/stats?range=month&project=API")
    tiles = page.locator(".tile")
    expect(tiles).to_have_count(4)
    assert tiles.nth(0).locator("dd").first.inner_text() == str(found["questions"]["pending"])
    assert tiles.nth(2).locator("dd").first.inner_text().split()[0] == str(round(100 * found["timeout_rate"]))
    assert tiles.nth(3).locator("dd").first.inner_text() == f"{found['questions_per_task']['mean']:.1f}"
    figures = page.locator("figure")
    expect(figures).to_have_count(4)
    for figure in figures.all():
        figure.locator("summary").click()
        assert figure.locator("tbody tr").count() > 0
        assert figure.locator("svg").count() > 0
    assert page.locator("[role=img]").get_attribute("aria-label").startswith("Questions waiting: between 0 and")
    rows = {row.locator("th").inner_text(): row for row in figures.nth(2).locator("tbody tr").all()}
    for name, kind in found["kinds"].items():
        if kind["timeout_rate"] is not None:
            expect(rows[name.capitalize()]).to_contain_text(f"{round(100 * kind['timeout_rate'])} %")
    assert found["timeout_rate"], "there is something to see"
    page.get_by_role("link", name="Day").click()
    expect(page.locator("nav[aria-label=Range] [aria-current]")).to_have_text("Day")
    assert page.goto(f"{web.url}/stats?range=year").status == 422

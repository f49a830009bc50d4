"""The activity and statistics pages."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.web.conftest import live, ways, widths
from tests.web.sample_work import week
from tests.web.test_pages import Caller
from yourturn.core.actions import VERBS


def test_activity_is_filtered_and_paged(web):
    ana = Caller(web)

    def events(query: str = "") -> list[str]:
        items = re.findall(r"<li>(.*?)</li>", ana.text(f"/activity{query}").partition("data-activity")[2], re.S)
        return [" ".join(re.sub(r"<[^>]+>", " ", one).split()) for one in items]

    newest = events()
    assert len(newest) == 60 and "ana signed in with a link" in newest[0]
    older = re.search(r'href="/activity(\?before=\d+)"', ana.text("/activity"))
    assert older and not set(events(older[1])) & set(newest[:1])
    both = events("?task=API-5&actor=architect")
    assert both and all("API-5" in line and "architect" in line for line in both)
    assert all(line.startswith("A") and "ana" in line for line in events("?actor=ana"))
    assert all("OPS-" in line for line in events("?project=OPS"))
    statuses = {path: ana.get(f"/activity?{path}").status for path in ("project=NOPE", "task=API-999", "before=x")}
    assert list(statuses.values()) == [404, 404, 422]


@ways
def test_activity_is_filtered_by_a_form(web, visit, width, js):
    page = visit("ana", "/activity", js=js, width=width)
    page.get_by_label("Task").fill("API-5")
    page.get_by_label("Who").fill("architect")
    page.get_by_role("button", name="Filter").click()
    page.get_by_role("link", name="Remove filter architect").click()
    page.wait_for_url("**/activity?task=API-5")


@widths
def test_new_events_are_counted_not_inserted(web, visit, width):
    page = live(visit("ana", "/activity?task=API-5", width=width))
    activity = page.locator("[data-activity]")
    before = activity.inner_text()
    web.as_("human:ben").answer(web.q["text"], "Team")
    web.as_("human:ben").answer(web.q["choice"], "jwt")
    pill = page.locator("[data-stale]")
    expect(pill).to_contain_text("Show")
    assert activity.inner_text() == before
    pill.click()
    expect(page.locator(".happened").first).to_contain_text("ben answered")


def test_every_event_has_a_text():
    assert [name for name, verb in VERBS.items() if not verb.event] == ["heartbeat"]


@ways
def test_statistics_page(web, visit, width, js):
    desk = web.as_("human:ana")
    week(desk, web.clock)
    stats = desk.stats(days=30)  # of project API
    page = visit("vera", "/stats?range=month&project=API", js=js, width=width)
    tiles = page.locator(".tile")
    expect(tiles).to_have_count(4)
    assert tiles.nth(0).locator("dd").first.inner_text() == str(stats["questions"]["pending"])
    assert tiles.nth(2).locator("dd").first.inner_text().split()[0] == str(round(100 * stats["timeout_rate"]))
    assert tiles.nth(3).locator("dd").first.inner_text() == f"{stats['questions_per_task']['mean']:.1f}"
    figures = page.locator("figure")
    expect(figures).to_have_count(4)
    for figure in figures.all():
        figure.locator("summary").click()
        assert figure.locator("tbody tr").count() > 0
        assert figure.locator("svg").count() > 0
    assert page.locator("[role=img]").get_attribute("aria-label").startswith("Questions waiting: between 0 and")
    rows = {row.locator("th").inner_text(): row for row in figures.nth(2).locator("tbody tr").all()}
    for name, kind in stats["kinds"].items():
        if kind["timeout_rate"] is not None:
            expect(rows[name.capitalize()]).to_contain_text(f"{round(100 * kind['timeout_rate'])} %")
    assert stats["timeout_rate"], "there is something to see"
    page.get_by_role("link", name="Day").click()
    expect(page.locator("nav[aria-label=Range] [aria-current]")).to_have_text("Day")
    assert page.goto(f"{web.url}/stats?range=year").status == 422

"""The event stream of a page: a dead stream, a refused connection, and catching up after it."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect

from tests.web.conftest import live, widths
from tests.web.test_concurrent_people import soon
from tests.web.test_sending_answers import bad_gateway


def counted(visit: Any, url: str, width: int, **more: Any) -> Page:
    """A page in a new window, whose timers the test advances."""
    page = visit("chidi", "/stats", width=width, locale="en-GB", **more)
    page.clock.install()
    page.goto(url)
    return page


@widths
def test_silent_stream_is_not_live(web, visit, width):
    page = live(counted(visit, f"{web.url}/inbox", width))
    asked: list[str] = []
    page.route("**/api/events*", lambda route: (asked.append(route.request.url), route.abort()))
    page.clock.fast_forward(30_000)
    live(page)
    page.clock.fast_forward(15_000)
    expect(page.locator("html")).to_have_attribute("data-live", "lost")
    expect(page.locator(".strip")).to_contain_text("Not live since")
    assert asked, "it asks for another one"
    page.unroute_all()
    page.locator(".strip").get_by_role("button", name="Try now").click()
    live(page)


@widths
def test_unopened_stream_is_not_live(web, visit, width):
    page = visit("chidi", "/stats", width=width, locale="en-GB")
    page.clock.install()
    page.route("**/api/events*", lambda route: None)
    page.goto(f"{web.url}/inbox")
    expect(page.locator("html")).not_to_have_attribute("data-live", "live")
    with page.expect_request("**/api/events*"):
        page.clock.fast_forward(20_000)
    expect(page.locator("html")).to_have_attribute("data-live", "lost")
    expect(page.locator(".strip")).to_contain_text("Not live since")


def test_heartbeat_keeps_a_quiet_stream_live(web, visit, monkeypatch):
    monkeypatch.setattr("yourturn.server.broadcast.HEARTBEAT", 0.05)
    page = visit("chidi", "/stats", locale="en-GB")
    page.clock.install()
    beats: list[str] = []
    line = page.context.new_cdp_session(page)
    line.send("Network.enable")
    line.on("Network.eventSourceMessageReceived", lambda e: beats.append(e["eventName"]))
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.url) if "/api/events" in one.url else None)
    page.goto(f"{web.url}/inbox")
    live(page)
    for _ in range(4):
        beats.clear()
        soon(page, lambda: "beat" in beats)
        page.clock.fast_forward(30_000)
    live(page)
    assert len(asked) == 1


@widths
def test_question_during_a_refused_connection_is_not_missed(web, visit, width):
    page = visit("chidi", width=width)
    page.route("**/api/events*", bad_gateway)
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-live", "lost")
    web.ask("Which logo?", options=["round", "square"])
    page.unroute_all()
    live(page)
    expect(page.get_by_text("1 new question")).to_be_visible()


@widths
def test_task_page_catches_up_after_a_refused_connection(web, visit, width):
    page = visit("chidi", "/tasks/API-4", width=width)
    page.route("**/api/events*", bad_gateway)
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-live", "lost")
    web.ask("Which logo?", options=["round", "square"], blocking=False, default="round")
    page.unroute_all()
    live(page)
    expect(page.locator("[data-part=waits]")).to_contain_text("Which logo?")

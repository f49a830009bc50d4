"""Screenshots of every page and its states: `make screenshots` writes them to screenshots/."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.web.conftest import DAY, FLAGS, SIZES, Web, chromium, live, until
from tests.web.sample_desk import fill
from yourturn.config import init
from yourturn.testing import FakeClock

LONG = (
    "Should the importer keep rows whose customer is unknown, write them to a table of their own, or stop at the first one "
    "and say which file and line it was, as it does today when the header is wrong?\n"
    "There are 1,204 such rows in the export of last week, nearly all of them from before the merger. "
)
WAYS = [
    {
        "id": f"w{at}",
        "label": f"{what} the rows",
        "description": f"{what} them, and write down how many there were. " * (at % 3 + 1),
    }
    for at, what in enumerate(
        ("Keep", "Skip", "Count", "Move", "Archive", "Send back", "Delete", "Merge", "Mark", "Ask about each of")
    )
]


def pages(web: Web) -> dict[str, str]:
    q = web.q
    paths = {"inbox": "/inbox", "inbox-filter": "/inbox?kind=permission", "inbox-nothing-fits": "/inbox?search=zzz"}
    paths |= {f"question-{name}": f"/questions/{number}" for name, number in q.items()}
    paths |= {"question-cancel": f"/questions/{q['choice']}/cancel", "question-edit": f"/questions/{q['permission']}/edit"}
    return paths | {"question-timed-out": "/questions/Q2", "question-answered": "/questions/Q1", "nothing": "/questions/Q999"}


# --- states of pages --------------------------------------------------------------------------------------------------


def chosen(page: Page, web: Web) -> None:
    page.goto(f"{web.url}/questions/{web.q['choice']}")
    page.get_by_text("JWT", exact=True).click()


def missing(page: Page, web: Web) -> None:
    page.goto(f"{web.url}/questions/{web.q['approval']}")
    page.locator(".answer").get_by_role("button", name="Send back").click()


def filters(page: Page, web: Web) -> None:
    page.goto(f"{web.url}/inbox")
    page.locator(".filters summary").click()


def selected(page: Page, web: Web) -> None:
    page.goto(f"{web.url}/inbox")
    page.get_by_role("button", name="Select").click()
    for name in ("permission", "approval", "checkpoint"):
        page.locator(f".row[data-id={web.q[name]}] .pick").check()
    page.locator(f".row[data-id={web.q['permission']}]").scroll_into_view_if_needed()


def previewed(page: Page, web: Web) -> None:
    selected(page, web)
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("heading", name="Answer 3 together")).to_be_visible()


def sure(page: Page, web: Web) -> None:
    page.set_viewport_size({"width": min(900, page.viewport_size["width"]), "height": 844})  # type: ignore[index]
    page.goto(f"{web.url}/inbox")
    row = page.locator(f".row[data-id={web.q['approval']}]")
    row.get_by_text("Approve", exact=True).click()
    row.scroll_into_view_if_needed()


def keys(page: Page, web: Web) -> None:
    page.goto(f"{web.url}/inbox")
    page.evaluate("document.getElementById('keys').showModal()")


def offline(page: Page, web: Web) -> None:
    chosen(page, web)
    page.context.set_offline(True)
    page.locator(".answer").get_by_role("button", name="Send “JWT”").click()
    expect(page.locator(".strip")).to_be_visible()


def busy(page: Page, web: Web) -> None:
    page.goto(f"{web.url}/questions/{web.q['choice']}")
    live(page)
    web.ask("Which logo goes on the invoice?", options=["Round", "Square"])
    expect(page.locator(".toast")).to_be_visible()


def sheet(page: Page, web: Web) -> None:
    page.goto(f"{web.url}/tasks/API-4")
    live(page)
    web.ask(
        "Delete the old bucket?", "permission", timeout="9m", on_timeout="fail",
        action={"tool": "Bash", "input": {"command": "aws s3 rb s3://old-invoices --force"}, "folder": "worktrees/API-4"},
    )  # fmt: skip
    expect(page.locator("dialog.sheet .say.go")).to_be_visible()
    until(page, "!document.querySelector('dialog.sheet').inert")


def too_late(page: Page, web: Web) -> None:
    asked = web.ask("Sessions or tokens?", options=["Sessions", "Tokens"])
    page.route("**/api/events*", lambda route: route.abort())  # before the page opens its event stream
    page.goto(f"{web.url}/questions/{asked}")
    page.get_by_text("Sessions", exact=True).click()
    page.get_by_placeholder("Add a word").fill("Support has to lock an account at once.")
    web.as_("human:ben").answer(asked, "Tokens")
    page.locator(".answer").get_by_role("button", name="Send").click()
    page.get_by_role("button", name="What now?").click()
    expect(page.get_by_text("ben was faster")).to_be_visible()


def stray(page: Page, web: Web) -> None:
    """Answers in the outbox for another desk of this address, and from before a restore."""
    page.goto(f"{web.url}/inbox")
    page.evaluate(
        """q => {
            const item = { id: q, key: "1", words: "“Sessions”\\n“Support has to lock an account at once.”", title: "JWT or server sessions for the login?" };
            const { me, desk } = document.querySelector("meta[name=yourturn]").dataset;
            localStorage.setItem(`yt:${me}:1f.0:outbox`, JSON.stringify([item]));
            localStorage.setItem(`yt:${me}:${desk.split(".")[0]}.1:outbox`, JSON.stringify([{ ...item, words: "“JWT”" }]));
        }""",
        web.q["choice"],
    )
    page.goto(f"{web.url}/inbox?whose=all")
    expect(page.locator("[data-outbox]")).to_be_visible()


def long(page: Page, web: Web) -> None:
    command = "python tools/import.py " + " ".join(f"--table customers_{n} --from exports/2026-{n:02d}.csv" for n in range(1, 13))
    context = {"text": LONG * 3, "error": "Traceback:\n" + "  File “import.py”, line 12, in read\n" * 12, "rows": list(range(12))}
    asked = web.ask(
        LONG, options=WAYS, multi=True, context=context, action={"tool": "Bash", "input": {"command": command}, "folder": "."}
    )
    page.goto(f"{web.url}/questions/{asked}")


def long_in_a_list(page: Page, web: Web) -> None:
    for _ in range(30):
        web.ask(LONG, context={"text": LONG})
    page.goto(f"{web.url}/inbox?search=importer")


def wrong_password(page: Page, web: Web) -> None:
    page.context.clear_cookies()
    page.goto(f"{web.url}/login")
    page.get_by_label("Name").fill("ana")
    page.get_by_label("Password").fill("let me in")
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#wrong")).to_be_visible()


STATES: dict[str, Callable[[Page, Web], None]] = {
    "question-chosen": chosen, "question-missing": missing, "inbox-filters": filters, "inbox-selected": selected,
    "batch": previewed, "inbox-sure": sure, "keys": keys, "toast": busy, "sheet": sheet, "question-late": too_late,
    "inbox-not-sent": stray, "question-long": long, "inbox-long": long_in_a_list, "offline": offline, "login-wrong": wrong_password,
}  # fmt: skip


def shoot(browser: Browser, web: Web, empty: Web, out: Path, width: int, scheme: str) -> None:
    def page_at(address: str, **more: Any) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": SIZES[width]}, color_scheme=scheme, service_workers="block", reduced_motion="reduce",
            has_touch=width < 500, **more,
        )  # fmt: skip
        page = context.new_page()
        page.goto(address)
        return page

    def enter(page: Page, site: Web) -> None:
        """The page of the login link submits itself."""
        page.goto(site.link())
        page.wait_for_url("**/inbox")

    def keep(page: Page, name: str) -> None:
        page.screenshot(path=out / f"{name}-{width}-{scheme}.png")

    page = page_at(web.link(), java_script_enabled=False)
    keep(page, "enter")
    page.context.close()
    page = page_at(web.url + "/login")
    keep(page, "login")
    enter(page, web)
    for name, path in pages(web).items():
        page.goto(web.url + path)
        keep(page, name)
    ana = web.as_("human:ana")
    before = {q["id"] for q in ana.waiting()}
    for name, happens in STATES.items():
        happens(page, web)
        keep(page, name)
        page.evaluate("localStorage.clear()")
        page.goto("about:blank")
        for asked in {q["id"] for q in ana.waiting()} - before:
            ana.withdraw(asked)
        page.context.set_offline(False)
        page.unroute_all()
        page.set_viewport_size({"width": width, "height": SIZES[width]})
    page.context.close()
    page = page_at(empty.url + "/login")
    enter(page, empty)
    keep(page, "inbox-empty")
    late = empty.timed_out("Which logo goes on the invoice?", options=["Round", "Square"], confidence=0.4)
    page.goto(f"{empty.url}/questions/{late}")
    keep(page, "question-restart")
    page.context.close()


def main(folder: str = "screenshots", *only: str) -> int:
    out = Path(folder)
    out.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="yourturn-shots-") as home, sync_playwright() as playwright:
        clock = FakeClock(time.time_ns() // 1000 - 2 * DAY)
        address, other = str(Path(home) / "yourturn.db"), str(Path(home) / "empty.db")
        for one in (address, other):
            init(one, "API", None, {"USER": "ana"})[0].close()
        web, empty = Web(address, clock, fill(address, clock)), Web(other, FakeClock(clock.micros), {})
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        try:
            for width in (1280, 390):
                for scheme in ("light", "dark"):
                    if not only or f"{width}-{scheme}" in only:
                        shoot(browser, web, empty, out, width, scheme)
        finally:
            browser.close()
            web.close()
            empty.close()
    print(f"{len(list(out.glob('*.png')))} pictures in {out}/")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

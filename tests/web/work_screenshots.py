"""Screenshots of tasks, activity, statistics and settings for `make screenshots`: of the demo's desk and of an empty one."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from tests.web.conftest import DAY, FLAGS, SIZES, Web, chromium
from tests.web.sample_work import lively
from yourturn.config import init
from yourturn.testing import FakeClock


def work(web: Web) -> dict[str, str]:
    t = web.q
    paths = {name: f"/{name.replace('board', 'tasks')}" for name in ("board", "activity", "stats", "settings")}
    paths |= {"board-project": "/tasks?project=OPS", "tasks": "/tasks?view=list", "tasks-empty": "/tasks?search=zzz"}
    paths |= {"tasks-new": "/tasks/new", "stats-day": "/stats?range=day", "stats-empty": "/stats?project=EMPTY"}
    paths |= {
        f"task-{name}": f"/tasks/{t[name]}"
        for name in ("prices", "fares", "old", "search", "backup", "news", "winter", "run", "speech")
    }
    paths |= {"task-log": f"/tasks/{t['prices']}/log", "task-cancel": f"/tasks/{t['prices']}/cancel"}
    return paths | {"board-empty": "/tasks?project=EMPTY", "activity-empty": "/activity?actor=nobody"}


def nothing(web: Web) -> dict[str, str]:
    return {"new-board": "/tasks", "new-stats": "/stats", "new-settings": "/settings", "new-activity": "/activity"}


def token(page: Page) -> None:
    """A new token, which is shown once."""
    page.locator("#t-name").fill("laptop")
    page.get_by_role("button", name="Create token").click()


def moves(page: Page) -> None:
    page.locator(".moves > summary").click()


def projects(page: Page) -> None:
    page.locator(".tools .menu > summary").click()


def filters(page: Page) -> None:
    page.locator(".filter > summary").click()


def member(page: Page) -> None:
    page.locator("#members .menu > summary").nth(1).click()


#: States of pages: name -> page, and the action that leads there.
DEEDS: dict[str, tuple[str, Callable[[Page], None]]] = {
    "settings-token": ("settings", token),
    "task-moves": ("task-prices", moves),
    "board-projects": ("board", projects),
    "tasks-filter": ("tasks", filters),
    "settings-member": ("settings", member),
}


@contextmanager
def desk(key: str, fill: Any, home: Path) -> Iterator[Web]:
    address = str(home / f"{key}.db")
    init(address, key, None, {"USER": "ana"})[0].close()
    clock = FakeClock(time.time_ns() // 1000 - 2 * DAY)
    web = Web(address, clock, fill(address, clock) if fill else {})
    try:
        yield web
    finally:
        web.close()


def shoot(web: Web, browser: Browser, paths: dict[str, str], out: Path, wanted: str) -> None:
    shown = {name: (path, None) for name, path in paths.items()}
    shown |= {name: (paths[page], deed) for name, (page, deed) in DEEDS.items() if page in paths}
    shown = {name: state for name, state in shown.items() if wanted in name}
    if not shown:
        return
    for width in (1280, 390):
        for scheme in ("light", "dark"):
            context = browser.new_context(
                viewport={"width": width, "height": SIZES[width]}, color_scheme=scheme, service_workers="block"
            )
            page = context.new_page()
            page.goto(web.link())
            page.wait_for_url("**/inbox")
            for name, (path, deed) in shown.items():
                page.goto(web.url + path)
                if deed:
                    deed(page)
                page.screenshot(path=out / f"{name}-{width}-{scheme}.png", full_page=deed is None)
            context.close()


def main(folder: str = "screenshots", wanted: str = "") -> int:
    out = Path(folder)
    out.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="yourturn-shots-") as home, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        try:
            for key, filled, pages in (("BOOK", lively, work), ("NEW", None, nothing)):
                with desk(key, filled, Path(home)) as web:
                    shoot(web, browser, pages(web), out, wanted)
        finally:
            browser.close()
            shutil.rmtree(home, ignore_errors=True)
    print(f"{len(list(out.glob('*.png')))} pictures in {out}/")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

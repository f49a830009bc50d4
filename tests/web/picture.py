"""Takes the README's screenshot of the demo, docs/inbox.png: `python -m tests.web.picture`."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.web.conftest import FLAGS, Web, chromium, live
from yourturn.config import init
from yourturn.demo.sample import fill
from yourturn.testing import FakeClock

PICTURE = Path(__file__).parents[2] / "docs" / "inbox.png"
SIZE = {"width": 1280, "height": 800}


def main(out: str = str(PICTURE)) -> int:
    with tempfile.TemporaryDirectory(prefix="yourturn-picture-") as home, sync_playwright() as playwright:
        address, now = str(Path(home, "yourturn.db")), time.time_ns() // 1000
        init(address, "BOOK", "Booking", {"USER": "ana"})[0].close()
        ids = fill(address, "ana", now)
        web = Web(address, FakeClock(now), ids)
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        try:
            page = browser.new_page(viewport=SIZE, color_scheme="light", service_workers="block")
            page.context.request.post(f"{web.url}/enter", form={"link": web.secret()}, max_redirects=0).dispose()
            page.goto(f"{web.url}/inbox?at={ids['refund?']}")
            live(page).screenshot(path=out)
        finally:
            browser.close()
            web.close()
    print(f"{out}, {Path(out).stat().st_size // 1024} KB")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

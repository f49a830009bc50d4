"""Pictures of every page, for people to look at: `make screenshots` writes them to screenshots/."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.web.conftest import DAY, FLAGS, SIZES, Web, chromium
from tests.web.sample import fill
from yourturn.config import init
from yourturn.testing import FakeClock


def pages(web: Web) -> dict[str, str]:
    q = web.q
    found = {"login": "/login", "inbox": "/inbox", "inbox-filter": "/inbox?kind=permission", "inbox-empty": "/inbox?search=zzz"}
    found |= {f"question-{name}": f"/questions/{number}" for name, number in q.items()}
    found |= {"question-cancel": f"/questions/{q['choice']}/cancel", "question-edit": f"/questions/{q['permission']}/edit"}
    return found | {"nothing": "/questions/Q999"}


def main(folder: str = "screenshots") -> int:
    out = Path(folder)
    out.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="yourturn-shots-") as home, sync_playwright() as playwright:
        address = str(Path(home) / "yourturn.db")
        init(address, "API", None, {"USER": "ana"})[0].close()
        clock = FakeClock(time.time_ns() // 1000 - 2 * DAY)
        web = Web(address, clock, fill(address, clock))
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        try:
            for width in (1280, 390):
                for scheme in ("light", "dark"):
                    context = browser.new_context(
                        viewport={"width": width, "height": SIZES[width]}, color_scheme=scheme, service_workers="block"
                    )
                    page = context.new_page()
                    for name, path in pages(web).items():
                        if name == "inbox":
                            page.goto(web.link())
                        page.goto(web.url + path)
                        page.screenshot(path=out / f"{name}-{width}-{scheme}.png")
                    context.close()
        finally:
            browser.close()
            web.close()
            shutil.rmtree(home, ignore_errors=True)
    print(f"{len(list(out.glob('*.png')))} pictures in {out}/")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

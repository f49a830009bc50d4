"""Fixtures of the browser tests: one browser for each test process, a desk and a server for each test.

A new browser window costs more CPU than most tests, so the next test reuses it. The next server has another port, which is another
site for the browser, with storage, locks and channels of its own. Only cookies ignore ports, so they are deleted.

chromium-headless-shell needs a third less CPU for the same pages. If it is installed, it is used wherever its features suffice.
"""

from __future__ import annotations

import asyncio
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.fixtures.server import Site
from tests.web.sample_desk import fill
from yourturn.client import Client
from yourturn.config import connect, init
from yourturn.server.app import create_app
from yourturn.server.run import Server, listen, uvicorn_config
from yourturn.testing import FakeClock

#: Width and height of the windows: desk, phone, smallest phone.
SIZES = {1280: 800, 390: 844, 320: 640}
#: Flows run on a desk and a phone, with and without JavaScript; those that need JavaScript run on both sizes.
ways = pytest.mark.parametrize(
    ("width", "js"), [(1280, True), (390, True), (1280, False), (390, False)],
    ids=["desk-js", "phone-js", "desk-plain", "phone-plain"],
)  # fmt: skip
widths = pytest.mark.parametrize("width", [1280, 390], ids=["desk", "phone"])
PATIENCE = 15_000
DAY = 24 * 3600 * 1_000_000
expect.set_options(timeout=PATIENCE)
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--mute-audio",
    # less CPU for the same pages
    "--in-process-gpu", "--disable-software-rasterizer", "--disable-site-isolation-trials", "--renderer-process-limit=1",
]  # fmt: skip


def chromium() -> str:
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    assert path, "these tests need a Chromium: make browser"
    return path


class Browsers:
    """The headless shell and the full browser, launched on demand; and the event loop that Playwright leaves running."""

    def __init__(self) -> None:
        self._playwright = sync_playwright().start()
        self.loop = asyncio._get_running_loop()
        self._launched: dict[str, Browser] = {}

    @property
    def usual(self) -> Browser:
        return self._launch(shutil.which("chromium-headless-shell") or chromium())

    @property
    def whole(self) -> Browser:
        return self._launch(chromium())

    def _launch(self, path: str) -> Browser:
        if path not in self._launched:
            self._launched[path] = self._playwright.chromium.launch(executable_path=path, args=FLAGS)
        return self._launched[path]

    def close(self) -> None:
        for browser in self._launched.values():
            browser.close()
        self._playwright.stop()


@pytest.fixture(scope="session")
def launched() -> Iterator[Browsers]:
    """Playwright's event loop is set aside between tests, because other tests run their own."""
    browsers = Browsers()
    asyncio._set_running_loop(None)
    yield browsers
    asyncio._set_running_loop(browsers.loop)
    browsers.close()


@pytest.fixture
def browser(launched: Browsers) -> Iterator[Browser]:
    asyncio._set_running_loop(launched.loop)
    yield launched.usual
    asyncio._set_running_loop(None)


@pytest.fixture(scope="session")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, dict[str, str]]:
    """A filled desk that tests copy, its time, and the ids of its questions by name."""
    address = tmp_path_factory.mktemp("pattern") / "yourturn.db"
    init(str(address), "API", None, {"USER": "ana"})[0].close()
    clock = FakeClock(time.time_ns() // 1000 - 2 * DAY)
    return address, (ids := fill(str(address), clock)) and clock.micros, ids


class Web:
    """A server over a copy of the filled desk, at the time at which it was filled."""

    def __init__(self, address: str, clock: FakeClock, ids: dict[str, str]) -> None:
        self.address, self.clock, self.q = address, clock, ids
        self.site = Site(address, clock=clock)
        self._opened: list[Client] = []

    @property
    def url(self) -> str:
        return self.site.url

    @property
    def desk(self) -> Client:
        return self.site.desk

    def as_(self, name: str) -> Client:
        self._opened.append(connect(self.address, as_=name, project="API", env={}, clock=self.clock))
        return self._opened[-1]

    def link(self, name: str = "ana") -> str:
        return f"{self.url}/enter/{self.secret(name)}"

    def secret(self, name: str = "ana") -> str:
        return str(self.desk.create_link(name)["link"])

    def ask(self, text: str, kind: str = "input", task: str = "API-4", agent: str = "coder", **more: Any) -> str:
        """A new question of an agent."""
        return str(self.as_(f"agent:{agent}").ask(task, text, kind, **{"on_timeout": "keep", **more})["id"])

    def timed_out(self, text: str, **more: Any) -> str:
        """A question that timed out and failed its task."""
        key = self.as_("human:ana").create(f"Print invoices ({text})")["key"]
        question = self.ask(text, task=key, timeout="5m", on_timeout="fail", **more)
        self.clock.advance(minutes=6)
        self.desk.reconcile()
        return question

    def stop(self) -> None:
        self.site.server.should_exit = True
        self.site.thread.join(20)
        self.site.socket.close()

    def start(self) -> None:
        """Restarts the server at the same address."""
        site = self.site
        site.app = create_app(self.address, clock=self.clock)
        site.app.state.shared.boot_id += "0"  # as another process would have it
        site.socket = listen("127.0.0.1", site.port)
        ready = threading.Event()
        site.server = Server(uvicorn_config(site.app, grace=5), site.app, ready.set)
        site.thread = threading.Thread(target=site.server.run, kwargs={"sockets": [site.socket]})
        site.thread.start()
        assert ready.wait(20)

    def leave(self) -> None:
        """Begins to stop the server, which takes half a second."""
        self.site.server.should_exit = True

    def close(self) -> None:
        for client in self._opened:
            client.close()
        self.site.close()


@pytest.fixture(scope="session")
def leaving() -> Iterator[list[Web]]:
    """The server of the last test, which stops while the next test runs."""
    servers: list[Web] = []
    yield servers
    for web in servers:
        web.close()


@pytest.fixture
def web(pattern: tuple[Path, int, dict[str, str]], tmp_path: Path, leaving: list[Web]) -> Iterator[Web]:
    source, now, ids = pattern
    address = tmp_path / "yourturn.db"
    shutil.copy(source, address)
    server = Web(str(address), FakeClock(now), ids)
    yield server
    server.leave()
    for before in [leaving.pop() for _ in leaving[:]]:
        before.close()
    leaving.append(server)


class Windows:
    """Reusable browser windows, and the errors in them."""

    def __init__(self, browsers: Browsers) -> None:
        self.browsers = browsers
        self.free: dict[bool, list[Page]] = {True: [], False: []}
        self.trouble: list[str] = []

    def open(self, width: int, js: bool, worker: bool, **more: Any) -> Page:
        usual = not worker and not more
        if usual and self.free[js]:
            page = self.free[js].pop()
        else:
            browser = self.browsers.whole if "permissions" in more else self.browsers.usual  # only the full browser shows notifications
            context = browser.new_context(java_script_enabled=js, service_workers="allow" if worker else "block", **more)
            context.set_default_timeout(PATIENCE)
            page = context.new_page()
            page.on("pageerror", lambda error: self.trouble.append(str(error)))
            page.on("console", self.on_console)
        page.set_viewport_size({"width": width, "height": SIZES.get(width, 800)})
        return page

    def on_console(self, message: Any) -> None:
        if "Content Security Policy" in message.text or "Trusted" in message.text:
            self.trouble.append(message.text)

    def put_back(self, page: Page, js: bool, usual: bool) -> None:
        context = page.context
        if not usual or page.is_closed():
            context.close()
            return
        for other in context.pages:
            if other is not page:
                other.close()
        context.set_offline(False)
        page.goto("about:blank")  # first: a page that is signed out would load the login page
        context.clear_cookies()
        page.unroute_all()
        page.emulate_media(color_scheme="null", reduced_motion="null", forced_colors="null")
        self.free[js].append(page)


@pytest.fixture(scope="session")
def windows(launched: Browsers) -> Windows:
    return Windows(launched)


@pytest.fixture
def visit(web: Web, browser: Browser, windows: Windows) -> Iterator[Callable[..., Page]]:
    """visit('ana', width=390, js=False): a page of a user who is logged in. Errors in the page fail the test."""
    opened: list[tuple[Page, bool, bool]] = []
    windows.trouble.clear()

    def go(name: str = "ana", path: str = "", *, width: int = 1280, js: bool = True, worker: bool = False, **more: Any) -> Page:
        page = windows.open(width, js, worker, **more)
        opened.append((page, js, not worker and not more))
        form = {"link": web.secret(name)}
        page.context.request.post(
            f"{web.url}/enter", form=form, max_redirects=0
        ).dispose()  # sets the cookie of the window without loading a page
        page.goto(web.url + (path or "/inbox"))
        return page

    yield go
    for one in opened:
        windows.put_back(*one)
    assert not windows.trouble, windows.trouble


def live(page: Page) -> Page:
    """The page, once its event stream is open."""
    expect(page.locator("html")).to_have_attribute("data-live", "live")
    return page


def until(page: Page, script: str) -> None:
    """Waits until the expression is true. (Polled from here, because the page's policy forbids eval.)"""
    ends = time.monotonic() + PATIENCE / 1000
    while not page.evaluate(script):
        assert time.monotonic() < ends, script
        page.wait_for_timeout(20)

"""Small screens, big fingers, few colours, readers that listen: what can be measured about how pages look."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

PAGES = ("inbox", "permission", "choice", "recovery", "approval", "text", "boolean", "cancel", "edit", "work")


def path_of(web, name: str) -> str:
    if name == "inbox":
        return "/inbox"
    if name in ("cancel", "edit"):
        return f"/questions/{web.q['choice' if name == 'cancel' else 'permission']}/{name}"
    return f"/questions/{web.q[name]}"


@pytest.mark.parametrize("width", [320, 390])
def test_no_sideways_scroll_and_big_targets(web, visit, width):
    page: Page = visit("ana", width=width, has_touch=True, is_mobile=True)
    for name in PAGES:
        page.goto(web.url + path_of(web, name))
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        small = page.evaluate("""() => [...document.querySelectorAll("a, button, summary, input, textarea, label.btn")]
            .filter(at => at.checkVisibility() && !at.closest(".sr, .skip") && !at.matches(".row h3 a, .opt input, .sr, .past a, .wrap a, .skip, .digest, .foot *, .log *"))
            .map(at => [at.outerHTML.slice(0, 80), at.getBoundingClientRect()]).filter(([, box]) => box.height < 43.5 || box.width < 43.5)
            .map(([html, box]) => `${html} ${box.width}x${box.height}`)""")
        assert not small, (name, small)


def test_everything_has_a_name(web, visit):
    page: Page = visit("ana")
    for name in PAGES:
        page.goto(web.url + path_of(web, name))
        nameless = page.evaluate("""() => [...document.querySelectorAll("input:not([type=hidden]), textarea, select")]
            .filter(at => !at.labels?.length && !at.getAttribute("aria-label")).map(at => at.outerHTML)
            .concat([...document.querySelectorAll("button, a, summary")].filter(at => !at.hidden && !at.textContent.trim() && !at.getAttribute("aria-label")).map(at => at.outerHTML))""")
        assert not nameless, (name, nameless)
        assert page.locator("h1").count() == 1, name
        assert page.locator("main").count() == 1 and page.locator("nav").count() >= 1
        doubled = page.evaluate(
            "() => { const ids = [...document.querySelectorAll('[id]')].map(at => at.id); return ids.filter((id, at) => ids.indexOf(id) !== at); }"
        )
        assert not doubled, (name, doubled)


CONTRAST = """() => {
    const lum = (c) => { const [r, g, b] = c.map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
    const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const rgba = (text) => { paint.clearRect(0, 0, 1, 1); paint.fillStyle = text; paint.fillRect(0, 0, 1, 1); return [...paint.getImageData(0, 0, 1, 1).data]; };
    const ground = (at) => { for (let up = at; up; up = up.parentElement) { const c = rgba(getComputedStyle(up).backgroundColor); if (c[3] > 250) return c.slice(0, 3); } return [255, 255, 255]; };
    const bad = [];
    for (const at of document.querySelectorAll("body *")) {
        const text = [...at.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
        if (!text || !at.checkVisibility() || at.closest(".sr, .skip, [aria-disabled=true], [disabled]")) continue;
        const a = lum(rgba(getComputedStyle(at).color).slice(0, 3)), b = lum(ground(at));
        const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
        if (ratio < 4.5) bad.push(`${at.textContent.trim().slice(0, 40)} ${ratio.toFixed(2)}`);
    }
    return bad;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(web, visit, scheme):
    page: Page = visit("ana", color_scheme=scheme)
    for name in PAGES:
        page.goto(web.url + path_of(web, name))
        assert page.evaluate(CONTRAST) == [], name


def test_forced_colours_and_calm_motion(web, visit):
    page: Page = visit("ana", forced_colors="active", reduced_motion="reduce")
    assert page.evaluate(
        "matchMedia('(forced-colors: active)').matches && matchMedia('(prefers-reduced-motion: reduce)').matches"
    )
    assert page.evaluate("getComputedStyle(document.querySelector('.btn')).transitionDuration") in ("0s", "")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"

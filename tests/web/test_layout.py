"""Layout and accessibility: small screens, touch targets, contrast, names for screen readers."""

from __future__ import annotations

from itertools import pairwise

from playwright.sync_api import Page, expect

from tests.web.conftest import live

PAGES = ("inbox", "permission", "choice", "recovery", "approval", "text", "boolean", "cancel", "edit", "work", "restart")


def path_of(web, name: str) -> str:
    if name == "inbox":
        return "/inbox"
    if name == "restart":
        return f"/questions/{web.timed_out('Which logo goes on the invoice?', options=['Round', 'Square'], confidence=0.4)}"
    if name in ("cancel", "edit"):
        return f"/questions/{web.q['choice' if name == 'cancel' else 'permission']}/{name}"
    return f"/questions/{web.q[name]}"


SMALL = """() => [...document.querySelectorAll("a, button, summary, input, textarea, label.btn")]
    .filter(at => at.checkVisibility() && !at.closest(".sr, .skip") && !at.matches(".row h3 a, .opt input, .sr, .past a, .wrap a, .skip, .digest, .foot *, .log *"))
    .map(at => [at.outerHTML.slice(0, 80), at.getBoundingClientRect()]).filter(([, box]) => box.height < 43.5 || box.width < 43.5)
    .map(([html, box]) => `${html} ${box.width}x${box.height}`)"""
CONTRAST = """() => {
    const lum = (c) => { const [r, g, b] = c.map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
    const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const known = new Map();
    const rgba = (text) => {
        if (!known.has(text)) { paint.clearRect(0, 0, 1, 1); paint.fillStyle = text; paint.fillRect(0, 0, 1, 1); known.set(text, [...paint.getImageData(0, 0, 1, 1).data]); }
        return known.get(text);
    };
    const ground = (at) => { for (let up = at; up; up = up.parentElement) { const c = rgba(getComputedStyle(up).backgroundColor); if (c[3] > 250) return c.slice(0, 3); } return [255, 255, 255]; };
    const bad = [];
    for (const at of document.querySelectorAll("body *")) {
        const text = [...at.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
        if (!text || !at.checkVisibility() || at.closest(".sr, .skip, [aria-disabled=true], [disabled]")) continue;
        const a = lum(rgba(getComputedStyle(at).color).slice(0, 3)), b = lum(ground(at));
        const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
        if (ratio < 4.5) bad.push(`${at.textContent.trim().slice(0, 40)} ${ratio.toFixed(2)}`);
    }
    for (const at of document.querySelectorAll(".field:not([type=search]), .opt, .say:not(.go):not([aria-disabled]), .claim")) {
        if (!at.checkVisibility()) continue;
        const a = lum(rgba(getComputedStyle(at).borderTopColor).slice(0, 3)), b = lum(ground(at.parentElement));
        const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
        if (ratio < 3) bad.push(`edge of ${at.className} ${ratio.toFixed(2)}`);
    }
    return bad;
}"""
LEVELS = "[...document.querySelectorAll('h1, h2, h3')].filter(at => at.checkVisibility()).map(at => Number(at.tagName[1]))"
DOUBLED = "() => { const ids = [...document.querySelectorAll('[id]')].map(at => at.id); return ids.filter((id, at) => ids.indexOf(id) !== at); }"


def check_names(page: Page, line) -> None:
    """In Chromium's accessibility tree everything that takes the focus has a name."""
    nodes = [node for node in line.send("Accessibility.getFullAXTree")["nodes"] if not node["ignored"]]

    def of(node, what):
        return str(node.get(what, {}).get("value", ""))

    takes = [n for n in nodes if any(p["name"] == "focusable" and p["value"].get("value") for p in n.get("properties", ()))]
    nameless = [of(n, "role") for n in takes if not of(n, "name").strip() and of(n, "role") != "RootWebArea"]
    assert not nameless, (page.url, nameless)
    roles = [of(n, "role") for n in nodes]
    assert roles.count("main") == 1 and "navigation" in roles, page.url
    levels = page.evaluate(LEVELS)
    assert levels.count(1) == 1 and all(b - a < 2 for a, b in pairwise(levels)), (page.url, levels)
    assert page.evaluate(DOUBLED) == [], page.url


def test_pages_are_accessible(web, visit):
    page: Page = visit("ana")
    line = page.context.new_cdp_session(page)
    for name in PAGES:
        page.set_viewport_size({"width": 1280, "height": 800})
        page.emulate_media(color_scheme="light", reduced_motion="reduce")
        page.goto(web.url + path_of(web, name))
        check_names(page, line)
        assert page.evaluate(CONTRAST) == [], name
        page.emulate_media(color_scheme="dark", reduced_motion="reduce")
        assert page.evaluate(CONTRAST) == [], f"{name}, dark"
        for width in (390, 320):
            page.set_viewport_size({"width": width, "height": 844})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
            small = page.evaluate(SMALL)
            assert not small, (name, small)


FOCUS = """() => {
    const at = document.activeElement, box = at.getBoundingClientRect();
    const rings = [at, at.closest(".row"), at.closest(".opt"), at.nextElementSibling].filter(Boolean);
    const ring = rings.some(one => { const s = getComputedStyle(one); return s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2; });
    return [at.tagName + "." + at.className + " " + (at.textContent || at.name || "").trim().slice(0, 30), ring, Math.round(box.top + scrollY), at === document.body];
}"""


def test_focus_is_visible_and_follows_the_reading_order(web, visit):
    page: Page = visit("ana")
    for name, least in (("inbox", 15), ("permission", 12), ("choice", 12), ("edit", 8)):
        page.goto(web.url + path_of(web, name))
        met = []
        for _ in range(40):
            page.keyboard.press("Tab")
            name_and_text, ring, _, end = page.evaluate(FOCUS)
            if end or name_and_text in met[:1]:
                break
            assert ring, (name, name_and_text)
            met.append(name_and_text)
        assert len(met) >= least, (name, met)
        assert met[0].startswith("A.skip"), met[0]
    # two keys to the content, and an answer without a mouse
    page.goto(web.url + path_of(web, "choice"))
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.name") == "option":
            break
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    while page.evaluate("document.activeElement.value") != "approved":
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Sent.").first).to_be_visible()
    assert web.desk.show(web.q["choice"])["response"]["value"] == "jwt"


def test_pages_are_small_and_fast(web, visit):
    """All bytes of the first visit. The time is the best of a few, because other tests run at the same time."""
    page: Page = visit("ana", locale="en")  # a new window with an empty cache
    line = page.context.new_cdp_session(page)
    line.send("Network.enable")
    line.send("Network.setCacheDisabled", {"cacheDisabled": True})
    sizes: list[float] = []
    line.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    took = []
    for _ in range(5):
        sizes.clear()
        page.goto(f"{web.url}/questions/{web.q['permission']}")
        live(page)
        took.append(page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd"))
    print(f"{sum(sizes):.0f} bytes in {len(sizes)} requests, {min(took):.0f} ms")
    assert 20_000 < sum(sizes) < 45_000 and len(sizes) < 24
    assert min(took) < 1000


def test_forced_colours_and_reduced_motion(web, visit):
    page: Page = visit("ana")
    page.emulate_media(forced_colors="active", reduced_motion="reduce")
    assert page.evaluate(
        "matchMedia('(forced-colors: active)').matches && matchMedia('(prefers-reduced-motion: reduce)').matches"
    )
    assert page.evaluate("getComputedStyle(document.querySelector('.btn')).transitionDuration") in ("0s", "")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"

"""Cross-site scripting: a corpus of harmful texts in every field that an agent can write has no effect on any page."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from playwright.sync_api import expect

CORPUS = (
    "<script>window.hit=1</script>",
    '"><img src=x onerror=window.hit=1>',
    "'><svg/onload=window.hit=1>",
    "</textarea><script>window.hit=1</script>",
    "</title><script>window.hit=1</script>",
    "<a href=javascript:window.hit=1>x</a>",
    "{{ 7*7 }}{% raw %}${window.hit=1}",
    "<style>*{display:none}</style>",
    "--><iframe srcdoc='<script>parent.hit=1</script>'>",
    "x\u2028<b onmouseover=window.hit=1>y</b>\u202e",
    "javascript:window.hit=1",
    '" autofocus onfocus=window.hit=1 x="',
)


def test_xss_corpus_has_no_effect(web, visit):
    every = " ".join(CORPUS)
    desk = web.desk
    key = desk.create(every[:300], description=every, project="API")["key"]
    agent = web.as_("agent:coder")
    claim = agent.claim(key, "coder-9")["claim"]
    agent.write_output(claim, [("said", every), ("<b>", every)])
    agent.keep_patch(claim, "abc", f"diff --git a/{every} b/{every}\n--- a/x\n+++ b/{every}\n@@ -1 +1 @@\n-{every}\n+{every}\n")
    context = {
        "text": every,
        every[:90]: every,
        "error": every,
        "diff": f"--- a/x\n+++ b/{every}\n+{every}",
        "suggestion": CORPUS[1],
    }
    options = [
        {"id": f"o{at}", "label": "".join(c for c in bad if c.isprintable()), "description": bad} for at, bad in enumerate(CORPUS)
    ]
    asked = [
        agent.ask(key, every, "permission", action={"tool": every, "input": {"command": every, every: every}, "folder": every, every: 1}, context=context, claim=claim, metadata={"rule": every})["id"],
        agent.ask(key, every, options=options, context=context, claim=claim, default="o1", allow_other=True)["id"],
        agent.ask(key, every, "approval", context=context, claim=claim)["id"],
        agent.ask(key, every, response_type="text", context=context, claim=claim, default=every, timeout="20m")["id"],
    ]  # fmt: skip
    page = visit("ana")
    for path in (
        "/inbox",
        "/inbox?search=%3Cscript%3Ewindow.hit%3D1%3C/script%3E",
        *(f"/questions/{q}" for q in asked),
        f"/questions/{asked[0]}/edit",
        f"/questions/{asked[1]}/cancel",
    ):
        page.goto(web.url + path)
        expect(page.locator("body")).to_be_visible()
        assert page.evaluate("window.hit") is None, path
        assert (
            page.locator("iframe, script:not([src^='/static/']), [onerror], [onload], [onfocus], [onmouseover]").count() == 0
        ), path
        assert page.locator("a[href^='javascript:']").count() == 0, path
        if path.endswith(asked[0]):  # shown as text
            assert all("".join(x for x in bad if x.isprintable()) in page.inner_text(".claim .said") for bad in CORPUS[:6])
    page.goto(f"{web.url}/questions/{asked[1]}")
    page.locator(".opt input").nth(1).check()
    page.locator(".answer .say.go").click()
    expect(page.get_by_text("Sent.").first).to_be_visible()
    assert desk.show(asked[1])["response"]["value"] == "o1" and page.evaluate("window.hit") is None
    # in closed questions: an earlier round, a person's answer, the reason of a withdrawal; and in a batch
    desk.answer(asked[3], every)
    desk.withdraw(asked[0], every)
    for path in (f"/questions/{asked[2]}", f"/questions/{asked[3]}", f"/questions/{asked[0]}"):
        page.goto(web.url + path)
        assert page.locator("iframe, [onerror], [onload], [onfocus]").count() == 0 and page.evaluate("window.hit") is None, path
    page.goto(f"{web.url}/inbox?search=script")
    page.locator(".row .pick").first.check()
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("heading", name=re.compile("Answer one"))).to_be_visible()
    assert page.evaluate("window.hit") is None
    # live: in a toast and in a sheet
    page.goto(f"{web.url}/inbox")
    expect(page.locator("html")).to_have_attribute("data-live", "live")
    page.get_by_placeholder("Search").focus()
    agent.ask(key, every, "checkpoint", claim=claim)
    page.locator(".toast").get_by_role("link", name="Answer").click()
    expect(page.locator("dialog.sheet")).to_be_visible()
    assert page.evaluate("window.hit") is None


def shown(text: str, route: Any) -> None:
    route.fulfill(body=text, content_type="text/html")


def test_other_sites_have_no_effect(web, visit):
    """A cross-origin form in a browser that is signed in here, also from another port of this host (the same site to a browser), is
    refused. Framing the page is refused too."""
    q = web.q["permission"]
    page = visit("ana")
    for evil in ("http://evil.example", "http://127.0.0.1:9"):
        for path, fields in (
            (f"/questions/{q}/answer", {"say": "approved"}),
            ("/inbox/send", {"send": f"{q} k"}),
            ("/logout", {}),
        ):
            inputs = "".join(f"<input name='{name}' value='{value}'>" for name, value in fields.items())
            form = f"<form method=post action='{web.url}{path}'>{inputs}<button>go</button></form><iframe src='{web.url}/questions/{q}'></iframe>"
            page.route(f"{evil}/", partial(shown, form))
            page.goto(f"{evil}/")
            assert "exact action" not in (page.frames[1].content() if len(page.frames) > 1 else "")
            with page.expect_response(lambda reply: reply.request.method == "POST") as reply:
                page.get_by_role("button", name="go").click()
            assert reply.value.status in (303, 403), (evil, path)
            page.unroute_all()
    assert web.desk.show(q)["status"] == "pending"
    page.goto(f"{web.url}/inbox")
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()

"""Pages over HTTP, without a browser: login, static files, CSRF, filters, sizes."""

from __future__ import annotations

import gzip
import re
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.web.conftest import Web
from yourturn.web import assets

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Caller:
    """An HTTP client with a cookie jar and CSRF tokens."""

    def __init__(self, web: Web, name: str | None = "ana") -> None:
        self.web, self.cookie, self.csrf = web, "", ""
        if name:
            reply = web.site.enter(web.secret(name))
            self.cookie = reply.headers["set-cookie"].partition(";")[0]
            self.csrf = str(re.search(r'name="csrf" value="(\w+)"', self.get("/inbox").raw.decode())[1])  # type: ignore[index]

    def get(self, path: str, **headers: str) -> Any:
        return self.web.site.get(path, role=None, headers={"Accept": "text/html", "Cookie": self.cookie, **headers})

    def text(self, path: str) -> str:
        return str(self.get(path).raw.decode())

    def post(self, path: str, csrf: str | None = None, accept: str = "text/html", **fields: Any) -> Any:
        body = urlencode({"csrf": self.csrf if csrf is None else csrf, **fields}, doseq=True).encode()
        headers = {**FORM, "Accept": accept, "Cookie": self.cookie, "Origin": self.web.url}
        return self.web.site.call("POST", path, raw=body, role=None, headers=headers)


@pytest.fixture
def ana(web: Web) -> Caller:
    return Caller(web)


def test_login_page(web):
    nobody = Caller(web, None)
    reply = nobody.get("/questions/Q1?x=1")
    assert reply.status == 303 and reply.headers["location"] == "/login?next=/questions/Q1%3Fx%3D1"
    assert "Sign in" in nobody.text("/login") and "waits" not in nobody.text("/login").replace("what waits for you", "")
    web.desk.set_password("ben", "a long password")
    wrong = nobody.post("/login", name="ben", password="no", next="/inbox")
    assert wrong.status == 401 and b"Wrong name or password" in wrong.raw and b'value="ben"' in wrong.raw
    right = nobody.post("/login", name="ben", password="a long password", next="/questions/Q3")
    assert right.status == 303 and right.headers["location"] == "/questions/Q3"
    nobody.cookie = right.headers["set-cookie"].partition(";")[0]
    assert "HttpOnly" in right.headers["set-cookie"] and "SameSite=Lax" in right.headers["set-cookie"]
    nobody.csrf = str(re.search(r'data-csrf="(\w+)"', nobody.text("/inbox"))[1])
    assert nobody.post("/logout", csrf="wrong").status == 403
    gone = nobody.post("/logout")
    assert gone.status == 303 and "Max-Age=0" in gone.headers["set-cookie"]
    assert nobody.get("/inbox").status == 303, "the session is over, not only its cookie"


def test_login_redirects_only_to_own_pages(web):
    for where in ("//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "", "/login", "/x\ny"):
        reply = Caller(web, "ben").get(f"/login?{urlencode({'next': where})}")
        assert reply.status == 303 and reply.headers["location"] == "/inbox", where


def test_login_link_works_once(web):
    path = web.link("ben").removeprefix(web.url)
    nobody = Caller(web, None)
    for _ in range(3):  # a mail filter loads the page and does not use the link
        looked = nobody.get(path)
        assert looked.status == 200 and b"Sign in as ben" in looked.raw and "set-cookie" not in looked.headers
        assert looked.headers["cache-control"] == "no-store" and looked.headers["referrer-policy"] == "strict-origin"
    assert not web.as_("human:ben").sessions()
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="(\w*)"', looked.raw.decode()))
    came = nobody.post("/enter", **fields)
    assert came.status == 303 and came.headers["location"] == "/" and "ys_" in came.headers["set-cookie"]
    for again in (nobody.get(path), nobody.post("/enter", **fields), nobody.get("/enter/yl_x"), nobody.post("/enter")):
        assert again.status == 401 and b"not" in again.raw and b"Sign in" in again.raw and "set-cookie" not in again.headers
    assert b"not valid any more" in nobody.get(path).raw
    later = web.link("ben").removeprefix(web.url)
    web.clock.advance(days=30)
    assert nobody.get(later).status == 401


def test_static_files_are_cached(web):
    nobody = Caller(web, None)
    first = nobody.get(assets.url("style.css"))
    assert first.status == 200 and "immutable" in first.headers["cache-control"]
    assert nobody.get(assets.url("style.css"), **{"If-None-Match": first.headers["etag"]}).status == 304
    small = nobody.get(assets.url("app.js"), **{"Accept-Encoding": "gzip"})
    assert small.headers["content-encoding"] == "gzip"
    old = nobody.get("/static/0000000000/style.css")
    assert old.status == 200 and old.headers["cache-control"] == "no-cache"
    for path in ("/manifest.webmanifest", "/sw.js"):
        assert nobody.get(path).headers["cache-control"] == "no-cache"
    for path in ("/static/x/../frame.py", "/static/x/%2e%2e%2fframe.py", "/static/x/nothing.css"):
        assert nobody.get(path).status == 404


def test_size_of_a_page_with_its_files(ana):
    size = sum(len(asset.compressed or asset.body) for name, asset in assets.ASSETS.items() if not name.endswith(".png"))
    page = ana.get("/inbox")
    assert size + len(gzip.compress(page.raw)) < 60_000
    assert "'unsafe" not in page.headers["content-security-policy"]
    text = page.raw.decode()
    assert not re.search(r"\sstyle=|<style|\son\w+=|<script(?! type=\"module\" src=\"/static/)|https?://", text)


def test_cross_site_requests_get_uncompressed_pages(web, ana):
    plain = ana.get("/inbox")
    for site in ({}, {"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Site": "same-origin"}):
        small = ana.get("/inbox", **{"Accept-Encoding": "gzip, br", **site})
        assert small.headers["content-encoding"] == "gzip" and "accept-encoding" in small.headers["vary"]
        whole = gzip.decompress(small.raw).decode()
        assert int(small.headers["content-length"]) == len(small.raw) < len(plain.raw) / 3 and "Inbox</h1>" in whole
    for site in ("cross-site", "same-site"):  # another site must not learn anything from the length
        assert "content-encoding" not in ana.get("/inbox", **{"Accept-Encoding": "gzip", "Sec-Fetch-Site": site}).headers
    assert "content-encoding" not in plain.headers
    for path in ("/inbox/counts", "/api/me", "/healthz"):
        assert "content-encoding" not in ana.get(path, **{"Accept-Encoding": "gzip"}).headers, path


def test_csrf_token_is_masked_differently_on_each_page(ana):
    """In compressed pages a constant token could be guessed from the length."""
    seen = [set(re.findall(r'csrf"(?: value)?="(\w+)"', ana.text(path))) for path in ("/inbox", "/inbox", "/tasks/new")]
    assert all(len(one) == 1 for one in seen) and len(set.union(*seen)) == 3, "one for all forms of a page"
    for token in set.union(*seen):
        assert ana.post("/settings/looks", csrf=token).status == 303
        for wrong in (token[:-1], token[:32], token[32:] + token[:31], token + "00", "0" * 64, "zz" * 32):
            assert ana.post("/settings/looks", csrf=wrong).status == 403, wrong


def test_forms_need_a_csrf_token(web, ana):
    q = web.q["permission"]
    for csrf in ("", "wrong", Caller(web, "ben").csrf):
        assert ana.post(f"/questions/{q}/answer", csrf=csrf, say="approved").status == 403
    body = urlencode({"csrf": ana.csrf, "say": "approved"}).encode()
    for origin in ("null", "https://evil.example"):
        headers = {**FORM, "Cookie": ana.cookie, "Origin": origin, "Accept": "text/html"}
        assert web.site.call("POST", f"/questions/{q}/answer", raw=body, role=None, headers=headers).status == 403
    assert web.desk.show(q)["status"] == "pending"
    assert ana.post(f"/questions/{q}/answer", say="approved").status == 303


def test_viewer_cannot_answer(web):
    vera = Caller(web, "vera")
    assert vera.post(f"/questions/{web.q['permission']}/answer", say="approved").status == 403
    assert vera.post("/inbox/preview", pick=web.q["approval"]).status == 403
    assert web.desk.show(web.q["permission"])["status"] == "pending"
    text = vera.text("/inbox")
    assert 'class="quick"' not in text and 'class="pick"' not in text
    agent = web.site.call(
        "POST",
        f"/questions/{web.q['permission']}/answer",
        raw=b"say=approved",
        role="agent",
        headers={**FORM, "Accept": "text/html"},
    )
    assert agent.status == 403


def test_an_answer_sent_twice_counts_once(web, ana):
    q = web.q["checkpoint"]
    for _ in range(2):
        assert ana.post(f"/questions/{q}/answer", say="approved", key="k-1").status == 303
    late = ana.post(f"/questions/{q}/answer", say="rejected", text="no", key="k-2")
    assert late.status == 409 and b"You answered this before" in late.raw
    data = ana.post(f"/questions/{q}/answer", accept="application/json", say="rejected", text="no", key="k-3")
    assert data.status == 409 and data.json["late"]["lead"] == "You answered this before:"


def test_non_blocking_question_says_that_nothing_waits(web):
    ana = Caller(web, "ana")
    page = ana.text(f"/questions/{web.q['nonblocking']}")
    assert "Why it asks" in page and "It would like to know; it does not wait for the answer" in page
    assert "Why it waits" not in page and "Cancel task" not in page, "a no is heard, and ends nothing"
    page = ana.text(f"/questions/{web.q['text']}")
    assert "Why it waits" in page and "it does not wait" not in page and "Cancel task" in page


def test_confidence_is_shown_without_other_context(web):
    page = Caller(web, "ana").text(f"/questions/{web.ask('Which size?', options=['small', 'large'], confidence=0.75)}")
    assert "<b>coder is 75% sure.</b> Not checked." in page and "own words.</b>" not in page
    page = Caller(web, "ana").text(f"/questions/{web.q['choice']}")
    assert "architect's own words.</b> Not checked" in page.replace("&#39;", "'") and "60% sure" in page


def test_a_member_restarts_a_failed_task_with_a_late_answer(web):
    key = web.desk.create("Move the data", project="API")["key"]
    q = web.ask("Which region?", task=key, timeout="10m", on_timeout="fail")
    web.clock.advance(minutes=11)
    web.desk.reconcile()
    chidi = Caller(web, "chidi")
    assert f"Restart {key} with it" in chidi.text(f"/questions/{q}"), "also on a page that was opened afterwards"
    assert "Restart" not in Caller(web, "vera").text(f"/questions/{q}"), "a viewer only looks"
    late = chidi.post(f"/questions/{q}/answer", say="approved", value="Paris")
    assert late.status == 409 and f"Restart {key} with it" in late.raw.decode()
    assert chidi.post(f"/questions/{q}/late", do="restart", note="Paris").status == 303
    note = f"Late answer to {q} (Which region?): Paris"
    assert (web.desk.show(key)["state"], web.desk.show(key)["notes"][-1]["text"]) == ("ready", note)
    again = chidi.post(f"/questions/{q}/answer", say="approved", value="Rome")
    assert again.status == 409 and "Restart" not in again.raw.decode(), "it goes on: there is nothing to restart"


def test_finished_work_is_reviewed_once(web, ana):
    q, key, ben = web.q["finished"], "WEB-4", Caller(web, "ben")
    assert ben.post(f"/questions/{q}/answer", say="approved").status == 303
    late = ana.post(f"/questions/{q}/answer", say="rejected", text="The picture is missing")
    assert late.status == 409 and b"ben was faster:</b> approved this" in late.raw and b"The picture is missing" in late.raw
    assert f"Restart {key} with it" in late.raw.decode()
    assert ana.post(f"/questions/{q}/late", do="note", note="The picture is missing").status == 303
    assert web.desk.show(key)["notes"][-1]["text"] == "The picture is missing"
    assert "ben approved this." in ana.text(f"/questions/{q}")
    member = Caller(web, "chidi").post(f"/questions/{q}/answer", say="approved", key="k").raw.decode()
    assert f"Restart {key} with it" in member, "who may answer may restart"


def test_finished_work_accepted_by_timeout(web, ana):
    web.desk.set("review", "2h", "DOC")
    agent = web.as_("agent:coder")
    key = web.desk.create("Tidy up", project="DOC")["key"]
    agent.complete(agent.claim(key, "coder-3")["claim"], "Tidied up")
    asked = web.desk.show(key)["questions"][-1]["id"]
    web.clock.advance(hours=3)
    web.desk.reconcile()
    late = ana.post(f"/questions/{asked}/answer", say="rejected", text="Not the archive!")
    assert (
        late.status == 409
        and b"The time was over:</b> No answer in 2 h. It was accepted" in late.raw
        and b"Not the archive!" in late.raw
    )


def test_filters_search_and_chips(web, ana):
    def ids(path: str) -> set[str]:
        return set(re.findall(r'<li class="row[^"]*" data-id="([^"]+)"', ana.text(path)))

    everything = ids("/inbox?whose=all")
    assert ids("/inbox") == everything - {web.q["for_ben"]} and web.q["finished"] in everything
    assert ids("/inbox?kind=permission") == {web.q["permission"]}
    assert ids("/inbox?project=ops") == {web.q[name] for name in ("recovery", "checkpoint", "boolean")}
    assert ids("/inbox?urgency=later") == {web.q["nonblocking"]}
    assert ids("/inbox?search=dark+theme") == {web.q["approval"]}
    assert ids("/inbox?search=100%25_") == set()
    assert ids("/inbox?urgency=soon") == {web.q["recovery"]}, "what is given half an hour runs out in the last ten minutes"
    web.clock.advance(minutes=21)
    assert ids("/inbox?urgency=soon&kind=choice") == {web.q["choice"]}
    assert "Nothing fits" in ana.text("/inbox?search=zzz") and "Remove filter" in ana.text("/inbox?kind=permission")
    for wrong in ("kind=x", "urgency=x", "start=-1", "start=x"):
        assert ana.get(f"/inbox?{wrong}").status == 422
    assert "1–12 of 12" not in ana.text("/inbox")


def test_pages_of_a_long_list(web, ana):
    agent = web.as_("agent:coder")
    for at in range(40):
        agent.ask("API-4", f"Question {at}?", blocking=False, default="x", response_type="text")
    first = ana.text("/inbox")
    assert first.count('<li class="row') == 25 and "1–25 of 51" in first
    assert ana.text("/inbox?start=50").count('<li class="row') == 1


def test_unknown_pages(web, ana):
    idle = web.desk.create("Nothing is asked", project="DOC")["key"]
    for path in ("/questions/Q999", "/questions/NOPE-1", "/nowhere", f"/questions/{idle}"):
        reply = ana.get(path)
        assert reply.status == 404 and b"<h1>" in reply.raw and reply.headers["content-type"].startswith("text/html")
    assert ana.get("/nowhere", Accept="application/json").headers["content-type"] == "application/json"


def test_hidden_characters_are_shown_by_name(web, ana):
    q = web.ask(
        "Safe\u202egnihton\x1b[31m?", "permission", action={"tool": "Bash", "input": {"command": "echo a\u200bb"}, "folder": "."}
    )
    text = ana.text(f"/questions/{q}")
    assert (
        "<span class=ctl>U+202E</span>" in text
        and "<span class=ctl>ESC</span>" in text
        and "a<span class=ctl>U+200B</span>b" in text
    )
    assert not re.search("[\u202e\u200b\x1b]", text)
    edit = ana.text(f"/questions/{q}/edit")
    assert "as JSON" in edit and "\\u200b" in edit


def test_a_wide_diff_is_folded_and_cut(web, ana):
    body = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,1 +1,5000 @@\n" + "".join(f"+line {n}\n" for n in range(5000))
    q = web.ask("Look?", "checkpoint", context={"diff": body})
    text = ana.text(f"/questions/{q}")
    assert 'class="fold">' in text and "Given by coder. Not checked." in text and "more lines are not shown" in text


def test_context_of_an_agent_is_shown_as_text(web, ana):
    context = {
        "suggestedOptions": ["dev", "design"], "current_step": "research", "sure": True,
        "choices": [{"id": "a", "label": "Alpha", "value": 1}], "deep": [{"label": "x", "more": 1}],
    }  # fmt: skip
    q = web.ask("Which?", context=context)
    text = re.sub(r"<[^>]+>", " ", ana.text(f"/questions/{q}"))
    assert re.search(r"Suggested options\s+- dev\s+- design", text) and re.search(r"Current step\s+research", text)
    assert re.search(r"Choices\s+Alpha", text) and "suggestedOptions" not in text and "&#34;more&#34;: 1" in text


def test_reminder_is_not_shown_as_a_deadline(web, ana):
    q = web.ask("Which?", timeout="10m", on_timeout="remind")
    text = ana.text(f"/questions/{q}")
    assert "its time runs again" in text and "reminded" not in text

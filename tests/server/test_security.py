"""Host names, cross-origin requests, sessions and cookies; secrets are shown nowhere."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.fixtures.server import Site
from yourturn.core.errors import Usage
from yourturn.server import auth
from yourturn.server.address import ServerAddress, server_address

PASSWORD = "correct horse battery"


@pytest.fixture
def session(site):
    """The cookie and the CSRF token of a member who used a login link."""
    if "mia" not in {u["name"] for u in site.desk.users()}:
        site.desk.set_user("mia", "member")
    link = site.desk.create_link("mia")["link"]
    reply = site.enter(link)
    secret = reply.headers["set-cookie"].partition("=")[2].partition(";")[0]
    return {"Cookie": f"yourturn={secret}"}, {"X-CSRF-Token": auth.csrf_token(secret)}


# --- hosts ------------------------------------------------------------------------------------------------------------

HOSTS = (
    "evil.example", "evil.example:8321", "localhost.evil.example", "127.0.0.1.evil.example", "127.0.0.1@evil.example", "", " ",
    "localhost/evil", "localhost#x", "[::1", "evil.example\t", "0.0.0.0", "2130706433", "127.1", "localhost,evil.example", "xn--lcalhost",
)  # fmt: skip


@pytest.mark.parametrize("host", HOSTS)
def test_unknown_host_is_refused(sqlite_site, host):
    import http.client

    line = http.client.HTTPConnection("127.0.0.1", sqlite_site.port, timeout=10)
    line.putrequest("GET", "/api/tasks", skip_host=True)
    line.putheader("Host", host)
    line.putheader("Authorization", f"Bearer {sqlite_site.token('admin')}")
    line.endheaders()
    reply = line.getresponse()
    assert reply.status == 400 and b"title" not in reply.read()
    line.close()


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:99", "[::1]:8321", "127.0.0.1"])
def test_own_hosts_are_accepted(sqlite_site, host):
    assert sqlite_site.get("/api/tasks", headers={"Host": host}).status == 200


def test_server_address():
    here = server_address("0.0.0.0", "https://turn.example.org")
    assert here.secure and here.cookie == "__Host-yourturn"
    for host in ("turn.example.org", "10.1.2.3:8321", "[fe80::1]", "localhost"):
        auth.check_host(here, {"host": host})
    for host in ("evil.example", "turn.example.org.evil.example", ""):
        with pytest.raises(Usage):
            auth.check_host(here, {"host": host})
    with pytest.raises(Usage):
        auth.check_host(server_address("127.0.0.1"), {"host": "10.1.2.3"})
    auth.check_host(server_address("127.0.0.1", allow=["desk.local"]), {"host": "desk.local:80"})
    for wrong in ("turn.example.org", "ftp://x", "https://", "javascript:alert(1)"):
        with pytest.raises(Usage):
            server_address("127.0.0.1", wrong)
    assert "Secure" in auth.session_cookie(here, "x", 5) and "Secure" not in auth.session_cookie(ServerAddress(), "x", 5)


# --- cross-origin -----------------------------------------------------------------------------------------------------

ORIGINS = (
    "https://evil.example", "null", "http://localhost.evil.example", "http://127.0.0.1:1", "http://127.0.0.1", "file://", "javascript:",
    "http://evil.example@127.0.0.1:{port}", "http://127.0.0.1:{port}.evil.example", "http://127.0.0.1:{port}/", " http://127.0.0.1:{port} x",
)  # fmt: skip


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_cross_origin_request_is_refused(sqlite_site, session_cookie, origin):
    site = sqlite_site
    key = site.desk.create("A")["key"]
    for extra in (
        session_cookie[0],
        {**session_cookie[0], **session_cookie[1]},
        {"Authorization": f"Bearer {site.token('admin')}"},
    ):
        reply = site.call(
            "POST", f"/api/tasks/{key}/note", {"text": "x"}, role=None, headers={"Origin": origin.format(port=site.port), **extra}
        )
        assert reply.status == 403, (origin, extra)
    assert site.desk.show(key)["notes"] == []


@pytest.fixture
def session_cookie(sqlite_site):
    secret = sqlite_site.desk.use_link(sqlite_site.desk.create_link()["link"])["session"]
    return {"Cookie": f"yourturn={secret}"}, {"X-CSRF-Token": auth.csrf_token(secret)}


def test_same_origin_requests_are_accepted(site, session, job):
    cookie, token = session
    for origin in ({}, {"Origin": site.url}, {"Sec-Fetch-Site": "same-origin"}):
        assert site.post(f"/api/tasks/{job}/note", {"text": "x"}, role=None, headers={**cookie, **token, **origin}).status == 200
    for site_ in ("cross-site", "same-site"):
        headers = {**cookie, **token, "Sec-Fetch-Site": site_}
        assert site.post(f"/api/tasks/{job}/note", {"text": "x"}, role=None, headers=headers).status == 403
    preflight = site.call("OPTIONS", "/api/tasks", role=None, headers={"Origin": "https://evil.example"})
    assert preflight.status == 405 and not [h for h in preflight.headers if h.startswith("access-control")]


@pytest.mark.parametrize("token", ["", "x", "0" * 64, "None", "\u00e9"])
def test_cookie_without_csrf_token_changes_nothing(site, session, job, token):
    cookie, _ = session
    reply = site.post(f"/api/tasks/{job}/note", {"text": "x"}, role=None, headers={**cookie, "X-CSRF-Token": token})
    assert reply.status == 403 and "CSRF" in reply.json["error"]["message"]
    assert site.get("/api/me", role=None, headers=cookie).json["actor"] == "human:mia"


def test_another_sessions_csrf_token_does_not_fit(site, session, job):
    other = site.desk.use_link(site.desk.create_link("mia")["link"])["session"]
    headers = {**session[0], "X-CSRF-Token": auth.csrf_token(other)}
    assert site.post(f"/api/tasks/{job}/note", {"text": "x"}, role=None, headers=headers).status == 403


# --- sessions ---------------------------------------------------------------------------------------------------------


def test_login_link_works_once_and_is_not_leaked(site):
    link = site.desk.create_link()["link"]
    assert site.get(f"/enter/{link}", role=None).status == 200
    reply = site.enter(link)
    assert reply.status == 303 and reply.headers["location"] == "/" and reply.raw == b""
    cookie = reply.headers["set-cookie"]
    assert cookie.startswith("yourturn=ys_") and all(w in cookie for w in ("HttpOnly", "SameSite=Lax", "Path=/", "Max-Age="))
    assert link not in str(reply.headers)
    for _ in range(2):
        assert site.get(f"/enter/{link}", role=None).status == site.enter(link).status == 401
    assert site.post(f"/enter/{link}", role=None).status == 405


def test_ended_session_is_refused(site, session):
    cookie, _ = session
    assert site.get("/api/me", role=None, headers=cookie).status == 200
    for one in site.desk.sessions():
        if one["actor"] == "human:mia":
            site.desk.end_session(one["id"])
    assert site.get("/api/me", role=None, headers=cookie).status == 401
    for wrong in ("yourturn=", "yourturn=x", "yourturn=" + "x" * 5000, "other=1", "yourturn=a; yourturn=b"):
        assert site.get("/api/me", role=None, headers={"Cookie": wrong}).status == 401


@pytest.mark.parametrize(
    "authorization",
    ["Bearer", "Bearer ", "Basic YW5hOng=", "bearer x", "Bearer yt_x yt_y", "Bearer \u00e9", "Token x", "Bearer " + "x" * 9000],
)
def test_invalid_credentials_are_refused(site, authorization):
    reply = site.get("/api/me", role=None, headers={"Authorization": authorization.encode("latin-1").decode("latin-1")})
    assert reply.status == 401 and reply.headers["www-authenticate"].startswith("Bearer")


def test_session_and_token_are_not_interchangeable(site, session):
    secret = session[0]["Cookie"].partition("=")[2]
    assert site.get("/api/me", role=None, token=secret).status == 401
    assert site.get("/api/me", role=None, headers={"Cookie": f"yourturn={site.token('admin')}"}).status == 401


# --- headers, logs ----------------------------------------------------------------------------------------------------


def test_security_headers(site, job):
    for reply in (
        site.get(f"/api/tasks/{job}"),
        site.get("/nothing"),
        site.get("/healthz", role=None),
        site.get("/api/me", role=None),
    ):
        assert reply.headers["x-content-type-options"] == "nosniff" and reply.headers["x-frame-options"] == "DENY"
        assert reply.headers["content-security-policy"].startswith("default-src 'none'")
        assert reply.headers["referrer-policy"] == "no-referrer" and "no" in reply.headers["cache-control"]
        assert "server" not in reply.headers or "uvicorn" in reply.headers["server"]


def test_headers_cannot_be_injected(site):
    reply_to_create = site.post("/api/tasks", {"title": "A\r\nSet-Cookie: x=1"})
    assert reply_to_create.status == 422
    for path in ("/api/tasks/x%0d%0aSet-Cookie:%20y=1", "/enter/x%0d%0aSet-Cookie:%20y=1", "/x%0d%0a"):
        reply = site.get(path)
        assert "set-cookie" not in reply.headers and reply.status in (401, 404, 422)


def test_secrets_are_not_stored_or_logged(new_address, caplog):
    """Secrets are not in the log, the events, later replies or the database file."""
    caplog.set_level(logging.DEBUG)
    site = Site(new_address("sqlite"))
    try:
        link = site.desk.create_link()["link"]
        assert site.get(f"/enter/{link}", role=None).status == 200
        secret = site.enter(link).headers["set-cookie"].partition("=")[2].partition(";")[0]
        site.get(f"/api/tasks?search={site.token('admin')}")
        site.get("/api/me", role=None, headers={"Cookie": f"yourturn={secret}"})
        site.get(f"/api/tasks/{site.token('admin')}")
        site.get("/nothing%E2%80%A8%0aFake")
        site.desk.set_user("ben")
        site.desk.set_password("ben", PASSWORD)
        worker = site.post("/api/desk/create_token", {"args": ["w"], "fields": {"scopes": ["run"]}}).json["result"]["token"]
        claim = site.post("/api/claims", {"worker": "w1"}, token=worker) if site.desk.create("A") else None
        assert claim is not None and claim.status == 200
        session = "'; DROP " + "a" * 32
        tool = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "next_task", "arguments": {}}}
        more = {"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2025-06-18", "Mcp-Session-Id": session}
        site.desk.create("B")
        taken = site.call("POST", "/mcp", tool, token=worker, headers=more)
        assert taken.status == 200 and b"is yours" in taken.raw, taken.raw
        seats = [t["claim"]["worker"] for t in site.desk.list(state="working")]
        assert seats == ["w1", "w.mcp-DROPaaaaaaaa"], "the name of the client is sanitized"
        secrets = (link, secret, site.token("admin"), worker, claim.json["claim"]["token"], PASSWORD)
        shown = str([site.desk.history(limit=500), site.desk.tokens(), site.desk.sessions(), site.desk.users(), taken.raw])
        shown += site.get("/openapi.json").raw.decode() + site.get("/metrics").raw.decode()
        stored = b"".join(path.read_bytes() for path in Path(site.address).parent.iterdir())
    finally:
        site.close()
    text = caplog.text
    assert "GET /enter/… 200" in text and "POST /enter 303" in text and "GET /api/me 200" in text and "POST /mcp 200" in text
    assert not [s for s in secrets if s in text or s in shown or s.encode() in stored]
    assert not [line for line in text.splitlines() if line.startswith("Fake")]

"""A row of the table as a page: who comes, may they, what do they see. One hop to a thread and back.

Whoever has not said who they are is sent to the door and comes back afterwards. What goes wrong is a page too, in the words
of the error; a module that asked for data gets the error's own JSON.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from ..core import permissions
from ..core.errors import NotKnown, YourturnError
from ..http import auth, errors, limits
from ..http.errors import Headers
from ..http.gate import answer
from ..http.site import Site
from . import assets, layout, view_models
from .page_table import Row
from .request import Data, Go, Page, Part, Shown, Visit, as_json

HTML: Headers = [
    (b"content-type", b"text/html; charset=utf-8"),
    (b"cache-control", b"private, no-cache"),
    (b"content-security-policy", layout.CSP.encode()),
    (b"referrer-policy", b"same-origin"),  # with none at all, a browser does not say which page a form comes from
]
Reply = tuple[int, Headers, bytes]
#: Pages that follow what happens, where there is JavaScript.
LIVE = ("inbox", "tasks", "activity")
#: Bytes from which on compressing pays.
WORTH = 1000


class Endpoint:
    """All methods of one path."""

    def __init__(self, site: Site, rows: list[Row]) -> None:
        self.site = site
        self.rows = {row.method: row for row in rows}
        if "GET" in self.rows:
            self.rows.setdefault("HEAD", self.rows["GET"])

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        method = scope["method"]
        row = self.rows.get(method)
        if row is None:
            allowed = ", ".join(sorted(self.rows)).encode()
            status, headers, out = problem(self.site, scope, YourturnError(f"{method} is not for this"), 405)
            await answer(send, status, [*headers, (b"allow", allowed)], out)
            return
        try:
            body = b"" if method in auth.SAFE else await limits.body(scope, receive)
            status, headers, out = await self.site.desks.run(self._work, row, scope, body)
        except Exception as error:
            status, headers, out = await self.site.desks.run(problem, self.site, scope, error)
        await answer(send, status, headers, out, head=method == "HEAD")

    def _work(self, row: Row, scope: Any, body: bytes) -> Reply:
        visit = Visit(self.site, admitted(self.site, scope, row.operation), scope, body)
        if scope["method"] not in auth.SAFE and visit.session:
            auth.check_csrf(visit.session, visit.field("csrf") or visit.headers.get("x-csrf-token", ""))
        if visit.looks and visit.session and not visit.wants_data and "as" not in visit.query:
            visit.after = visit.client.desk.cursor()
        return reply(visit, row.handler(visit))


def admitted(site: Site, scope: Any, operation: str) -> auth.Asker:
    """Who comes, if they may. Who comes to an open door need not say, but is known if they do."""
    try:
        asker = auth.asker(site.desks, site.here, scope["yourturn.headers"])
    except NotKnown:
        if permissions.NEEDS[operation] != "open":
            raise
        asker = None
    permissions.check(asker.client.who if asker else None, operation)
    return asker or auth.Asker(site.desks.client())


def reply(visit: Visit, found: Shown) -> Reply:
    if isinstance(found, Go):
        told = [(name.lower().encode(), value.encode("latin-1")) for name, value in found.headers]
        return 303, [(b"location", quote(found.url, safe="/?&=#%+:").encode()), (b"cache-control", b"no-store"), *told], b""
    if isinstance(found, Data):
        return found.status, [(b"content-type", b"application/json"), (b"cache-control", b"no-store")], as_json(found.value)
    if isinstance(found, Part):
        return squeezed(visit.headers, (found.status, HTML, found.html.encode()))
    other = {name for name, _ in found.headers}
    headers = [*(pair for pair in HTML if pair[0] not in other), *found.headers]
    return squeezed(visit.headers, (found.status, headers, page(visit, found).encode()))


def squeezed(asked: Mapping[str, str], found: Reply) -> Reply:
    """Compressed, where the browser takes that and one of our own pages, or a person, asked for it. A page of somebody else's
    that makes a browser ask could otherwise learn from the length whether what it put into the address stands in the page."""
    status, headers, body = found
    headers = [*headers, (b"vary", b"accept-encoding")]
    ours = asked.get("sec-fetch-site", "none") in ("none", "same-origin")
    if not ours or "gzip" not in asked.get("accept-encoding", "") or len(body) < WORTH:
        return status, headers, body
    return status, [*headers, (b"content-encoding", b"gzip")], gzip.compress(body, 5, mtime=0)


def page(visit: Visit, found: Page) -> str:
    """In its frame, if somebody is known."""
    context: dict[str, Any] = {"csrf": visit.csrf, "boot": visit.boot, "after": visit.after}
    context["follows"] = visit.looks and found.context.get("here") in LIVE
    if visit.session or visit.client.who.is_person:
        context |= {
            "me": view_models.who(visit.client.who.name, visit.client.who.role),
            "workspace": visit.client.desk.workspace_name,
        }
        context["identity"] = visit.client.desk.identity()
        context |= view_models.wishes(visit.client) | {"drawn": view_models.now_of(visit.client) // 1000}
        if "waiting" not in found.context:
            from .inbox import waiting_for

            context["waiting"] = waiting_for(visit)
    return layout.render(found.template, **context | found.context)


def problem(site: Site, scope: Any, error: BaseException, status: int | None = None) -> Reply:
    """What went wrong, as a page where one is wanted."""
    code, headers, body = errors.response(error)
    wants = scope["yourturn.headers"].get("accept", "")
    if "text/html" not in wants and "*/*" not in wants:
        return status or code, headers, body
    if isinstance(error, NotKnown):
        back = scope["path"] + (f"?{scope['query_string'].decode('ascii', 'replace')}" if scope["query_string"] else "")
        told = "" if scope["method"] in auth.SAFE else "&out=1"
        where = f"/login?next={quote(back if not told else '/inbox', safe='/')}{told}"
        return 303, [(b"location", where.encode()), (b"cache-control", b"no-store")], b""
    ours = error if isinstance(error, YourturnError) else YourturnError("This is a bug in the server", hint="Its log says where.")
    hint = "" if "turn " in ours.hint else ours.hint  # a page has no command line
    context = {"title": ours.message, "text": ours.reason, "hint": hint, "back": ""}
    try:
        visit = Visit(
            site, admitted(site, {**scope, "method": "GET"}, "page"), {**scope, "method": "GET", "query_string": b""}, b""
        )
        html = page(visit, Page("notice.html", context))
    except Exception:  # nobody we know, or nothing works: the bare words
        html = layout.render("bare.html", **context)
    more = [pair for pair in headers if pair[0] in (b"retry-after",)]
    return squeezed(scope["yourturn.headers"], (status or code, [*HTML, *more], html.encode()))


class Files:
    """/static/…, the manifest and the service worker: no secrets, so nobody is asked who they are."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = scope["yourturn.headers"]
        if scope["method"] not in ("GET", "HEAD"):
            await answer(send, 405, [(b"allow", b"GET, HEAD")], b"")
            return
        name = self.name or scope["path_params"]["name"]
        asset = assets.MANIFEST if name == "manifest.webmanifest" else assets.ASSETS.get(name)
        if asset is None:
            await answer(send, 404, [(b"content-type", b"text/plain")], b"There is no such file")
            return
        forever = not self.name and scope["path_params"]["build"] == assets.BUILD
        status, told, body = assets.served(asset, headers, forever)
        if name == "sw.js":  # a worker's own policy says what it may fetch
            told = [*told, (b"content-security-policy", b"default-src 'none'; connect-src 'self'; frame-ancestors 'none'")]
        await answer(send, status, told, body, head=scope["method"] == "HEAD")

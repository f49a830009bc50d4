"""Serves the rows of the pages' table: authorizes a request, calls its handler in a thread, renders what it returns.

A request without a credential is redirected to the login and returns afterwards. Errors are pages too, with the error's message;
a script that asked for JSON gets the error's JSON.
"""

from __future__ import annotations

import gzip
from typing import Any
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..core import permissions
from ..core.errors import NotKnown
from ..server import auth
from ..server.app_state import AppState
from ..server.endpoint import Endpoint
from ..server.errors import error_headers, error_response, public_error, status_of
from . import assets, layout, view_models
from .page_table import Row
from .request import Data, Go, Page, Part, Shown, Visit, as_json

HTML = {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "private, no-cache",
    "content-security-policy": layout.CSP,
    "referrer-policy": "same-origin",  # with no-referrer a browser sends `Origin: null` with our own forms
}
#: Pages that are updated live, where there is JavaScript.
LIVE = ("inbox", "tasks", "activity")
#: Bytes from which compression pays.
MIN_COMPRESSED = 1000


class PageEndpoint(Endpoint):
    def handle(self, row: Row, request: Request, body: bytes) -> Response:
        visit = Visit(self.state, authorize(self.state, request, row.operation), request, body)
        if request.method not in auth.SAFE_METHODS and visit.session:
            auth.check_csrf(visit.session, visit.field("csrf") or visit.headers.get("x-csrf-token", ""))
        if visit.looks and visit.session and not visit.wants_data and "as" not in visit.query:
            visit.after = visit.client.desk.cursor()
        return render(visit, row.handler(visit))

    async def error(self, request: Request, error: Exception) -> Response:
        return await self.state.pool.run(error_page, self.state, request, error)


def authorize(state: AppState, request: Request, operation: str) -> auth.Principal:
    """The request's principal, if it may do this. An open page needs no credential, but recognizes a valid one."""
    try:
        principal = auth.authenticate(state.pool, state.address, request.headers)
    except NotKnown:
        if permissions.NEEDS[operation] != "open":
            raise
        principal = None
    permissions.check(principal.client.who if principal else None, operation)
    return principal or auth.Principal(state.pool.client())


def render(visit: Visit, shown: Shown) -> Response:
    if isinstance(shown, Go):
        location = quote(shown.url, safe="/?&=#%+:")
        headers = {"location": location, "cache-control": "no-store", **{name.lower(): value for name, value in shown.headers}}
        return Response(status_code=303, headers=headers)
    if isinstance(shown, Data):
        return Response(as_json(shown.value), shown.status, {"content-type": "application/json", "cache-control": "no-store"})
    if isinstance(shown, Part):
        return compressed(visit.headers, shown.html, shown.status, HTML)
    return compressed(visit.headers, page(visit, shown), shown.status, {**HTML, **shown.headers})


def compressed(asked: Headers, html: str, status: int, headers: dict[str, str]) -> Response:
    """Compresses for browsers that accept it, unless another site caused the request: from the length of a compressed page it
    could learn whether the page contains what it put into the address."""
    body = html.encode()
    headers = {**headers, "vary": "accept-encoding"}
    ours = asked.get("sec-fetch-site", "none") in ("none", "same-origin")
    if ours and "gzip" in asked.get("accept-encoding", "") and len(body) >= MIN_COMPRESSED:
        body, headers["content-encoding"] = gzip.compress(body, 5, mtime=0), "gzip"
    return Response(body, status, headers)


def page(visit: Visit, shown: Page) -> str:
    """The page in its layout; with the user's menu, if there is one."""
    context: dict[str, Any] = {"csrf": visit.csrf, "boot": visit.boot, "after": visit.after}
    context["follows"] = visit.looks and shown.context.get("here") in LIVE
    if visit.session or visit.client.who.is_person:
        context |= {
            "me": view_models.who(visit.client.who.name, visit.client.who.role),
            "workspace": visit.client.desk.workspace_name,
        }
        context["identity"] = visit.client.desk.identity()
        context |= view_models.wishes(visit.client) | {"drawn": view_models.now_of(visit.client) // 1000}
        if "waiting" not in shown.context:
            from .inbox import waiting_for

            context["waiting"] = waiting_for(visit)
    return layout.render(shown.template, **context | shown.context)


def error_page(state: AppState, request: Request, error: BaseException) -> Response:
    """The error as a page, as JSON where no HTML is accepted, or as a redirect to the login."""
    accept = request.headers.get("accept", "")
    if "text/html" not in accept and "*/*" not in accept:
        return error_response(error)
    shown = public_error(error)
    if isinstance(shown, NotKnown):
        query = request.scope["query_string"].decode("ascii", "replace")
        back = request.scope["path"] + (f"?{query}" if query else "")
        out = request.method not in auth.SAFE_METHODS
        login = f"/login?next={quote('/inbox' if out else back, safe='/')}{'&out=1' if out else ''}"
        return Response(status_code=303, headers={"location": login, "cache-control": "no-store"})
    hint = "" if "turn " in shown.hint else shown.hint  # a page has no command line
    context = {"title": shown.message, "text": shown.reason, "hint": hint, "back": ""}
    try:
        plain = Request({**request.scope, "method": "GET", "query_string": b""})
        html = page(Visit(state, authorize(state, plain, "page"), plain, b""), Page("notice.html", context))
    except Exception:  # no valid credential, or the database is unreachable: without a layout
        html = layout.render("bare.html", **context)
    more = {name: value for name, value in error_headers(shown).items() if name in ("retry-after", "allow")}
    return compressed(request.headers, html, status_of(shown), HTML | more)


class Files:
    """Serves /static/…, the manifest and the service worker. They contain no secrets, so no credential is needed."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._response(Request(scope))(scope, receive, send)

    def _response(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return Response(status_code=405, headers={"allow": "GET, HEAD"})
        name = self.name or request.path_params["name"]
        asset = assets.MANIFEST if name == "manifest.webmanifest" else assets.ASSETS.get(name)
        if asset is None:
            return Response("There is no such file", 404, {"content-type": "text/plain"})
        forever = not self.name and request.path_params["build"] == assets.BUILD
        response = assets.served(asset, request.headers, forever)
        if name == "sw.js":  # a worker's own policy says what it may fetch
            response.headers["content-security-policy"] = "default-src 'none'; connect-src 'self'; frame-ancestors 'none'"
        return response

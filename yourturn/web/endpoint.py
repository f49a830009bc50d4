"""Serves the rows of the pages' route table: authorizes a request, calls its handler in a thread, renders the result.

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

from ..core import permissions
from ..core.errors import NotKnown
from ..server import auth
from ..server.app_state import AppState
from ..server.endpoint import Endpoint
from ..server.errors import error_headers, error_response, public_error, status_of
from . import layout, times, view_models
from .inbox_summary import waiting_count
from .request import Fragment, Json, Page, PageRequest, PageResult, Redirect, as_json
from .route_table import PageRow

HTML = {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "private, no-cache",
    "content-security-policy": layout.CSP,
    "referrer-policy": "same-origin",  # with no-referrer a browser sends `Origin: null` with our own forms
}
#: Pages with live updates.
LIVE = ("inbox", "tasks", "activity")
#: Bytes from which compression pays.
MIN_COMPRESSED = 1000


class PageEndpoint(Endpoint):
    def handle(self, row: PageRow, request: Request, body: bytes) -> Response:
        page_request = PageRequest(self.state, authorize(self.state, request, row.operation), request, body)
        if not page_request.is_read and page_request.session:
            auth.check_csrf(page_request.session, page_request.field("csrf") or request.headers.get("x-csrf-token", ""))
        if page_request.is_read and page_request.session and not page_request.wants_json and "as" not in page_request.query:
            page_request.cursor = page_request.client.desk.cursor()
        return render(page_request, row.handler(page_request))

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


def render(request: PageRequest, result: PageResult) -> Response:
    if isinstance(result, Redirect):
        return redirect(quote(result.url, safe="/?&=#%+:"), dict(result.headers))
    if isinstance(result, Json):
        headers = {"content-type": "application/json", "cache-control": "no-store"}
        return Response(as_json(result.value), result.status, headers)
    if isinstance(result, Fragment):
        return compressed(request.headers, result.html, result.status, HTML)
    return compressed(request.headers, render_page(request, result), result.status, {**HTML, **result.headers})


def redirect(location: str, headers: dict[str, str] | None = None) -> Response:
    return Response(status_code=303, headers={"location": location, "cache-control": "no-store", **(headers or {})})


def compressed(request_headers: Headers, html: str, status: int, headers: dict[str, str]) -> Response:
    """Compresses for browsers that accept it, unless another site caused the request: from the length of a compressed page it
    could learn whether the page contains what it put into the address."""
    body = html.encode()
    headers = {**headers, "vary": "accept-encoding"}
    same_site = request_headers.get("sec-fetch-site", "none") in ("none", "same-origin")
    if same_site and "gzip" in request_headers.get("accept-encoding", "") and len(body) >= MIN_COMPRESSED:
        body, headers["content-encoding"] = gzip.compress(body, 5, mtime=0), "gzip"
    return Response(body, status, headers)


def render_page(request: PageRequest, page: Page) -> str:
    """The page in its layout, with the user's menu if there is a user."""
    client = request.client
    context: dict[str, Any] = {"csrf": request.csrf, "boot": request.server_version, "after": request.cursor}
    context["follows"] = request.is_read and page.context.get("here") in LIVE
    if request.session or client.who.is_person:
        context |= {
            "me": view_models.actor_view(client.who.name, client.who.role),
            "workspace": client.desk.workspace_name,
            "identity": client.desk.identity(),
            "drawn": times.desk_time(client) // 1000,
            **view_models.preferences(client),
        }
        if "waiting" not in page.context:
            context["waiting"] = waiting_count(request)
    return layout.render(page.template, **context | page.context)


def error_page(state: AppState, request: Request, error: BaseException) -> Response:
    """The error as a page, as JSON where no HTML is accepted, or as a redirect to the login."""
    accept = request.headers.get("accept", "")
    if "text/html" not in accept and "*/*" not in accept:
        return error_response(error)
    shown = public_error(error)
    if isinstance(shown, NotKnown):
        return _login_redirect(request)
    hint = "" if "turn " in shown.hint else shown.hint  # a page has no command line
    context = {"title": shown.message, "text": shown.reason, "hint": hint, "back": ""}
    try:
        plain = Request({**request.scope, "method": "GET", "query_string": b""})
        page_request = PageRequest(state, authorize(state, plain, "page"), plain, b"")
        html = render_page(page_request, Page("notice.html", context))
    except Exception:  # no valid credential, or the database is unreachable: without a layout
        html = layout.render("error.html", **context)
    more = {name: value for name, value in error_headers(shown).items() if name in ("retry-after", "allow")}
    return compressed(request.headers, html, status_of(shown), HTML | more)


def _login_redirect(request: Request) -> Response:
    """The login, which leads back to the page; after a form, to the inbox, with a notice that nothing was sent."""
    if request.method not in auth.SAFE_METHODS:
        return redirect("/login?next=/inbox&out=1")
    query = request.scope["query_string"].decode("ascii", "replace")
    back = request.scope["path"] + (f"?{query}" if query else "")
    return redirect(f"/login?next={quote(back, safe='/')}")

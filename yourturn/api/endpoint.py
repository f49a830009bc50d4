"""Endpoint of the routes of the API: authorizes a request, calls its handler, and renders the reply as JSON."""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from ..core import permissions
from ..core.errors import Invalid, YourturnError
from ..server import auth, limits, refusals
from ..server.app_state import AppState
from ..server.endpoint import Endpoint
from ..server.errors import error_response
from .request import ApiRequest, ApiResponse, encoded, etag, is_cached
from .route_table import Row


class ApiEndpoint(Endpoint):
    async def respond(self, row: Row, request: Request) -> ASGIApp:
        if row.stream is not None:
            response: ASGIApp = await row.stream(self.state, request)
            return response
        return await super().respond(row, request)

    def body_limit(self, row: Row, request: Request) -> int:
        return row.large.get(request.path_params.get("method", ""), limits.MAX_BODY)

    def handle(self, row: Row, request: Request, body: bytes) -> Response:
        operation = row.operation_for(request.path_params)
        principal = authorize(self.state, request, operation)
        query, path = query_of(request), request.path_params
        api_request = ApiRequest(principal.client, path, query, request.headers, body, principal.session)
        try:
            response: ApiResponse = row.handler(api_request)
        except YourturnError as error:
            if operation in refusals.OPERATIONS:
                refusals.REFUSED[error.code] += 1
            raise
        return _rendered(response, request)

    async def error(self, request: Request, error: Exception) -> Response:
        return error_response(error)


def authorize(state: AppState, request: Request, operation: str) -> auth.Principal:
    """The principal of the request, if it may do this. Open operations ignore the credential."""
    if permissions.NEEDS[operation] == "open":
        return auth.Principal(state.pool.client())
    principal = auth.authenticate(state.pool, state.address, request.headers)
    permissions.check(principal.client.who if principal else None, operation)
    assert principal is not None
    if request.method not in auth.SAFE_METHODS:
        auth.check_csrf(principal.session, request.headers.get("x-csrf-token", ""))
    return principal


def query_of(request: Request) -> dict[str, str]:
    raw = request.scope["query_string"]
    if not raw:
        return {}
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=50)
    except ValueError:
        raise Invalid("The query of the address cannot be read", hint="Percent-encode it, as UTF-8.") from None
    query = dict(pairs)
    if len(query) != len(pairs):
        raise Invalid("The query of the address names something twice")
    return query


def _rendered(response: ApiResponse, request: Request) -> Response:
    body = response.text.encode() if response.text is not None else encoded(response.value)
    headers = {"content-type": response.media, **{name.lower(): value for name, value in response.headers}}
    if response.status < 300 and response.text is None:
        tag = etag(response.value, body)
        headers |= {"etag": tag, "cache-control": "private, no-cache"}
        if request.method in ("GET", "HEAD") and is_cached(request.headers, tag):
            return Response(status_code=304, headers=headers)
    else:
        headers["cache-control"] = "no-store"
    return Response(body, response.status, headers)

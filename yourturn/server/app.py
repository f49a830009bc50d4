"""Builds the ASGI application: the API, MCP, health checks and pages behind one middleware."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, nullcontext
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ..api import jobs
from ..api.endpoint import ApiEndpoint
from ..api.route_table import rows as api_rows
from ..core.errors import NotFound, StoreTrouble, Usage, YourturnError
from ..desk.lookups import Clock
from ..web import assets, layout
from ..web.endpoint import PageEndpoint, error_page
from ..web.route_table import ROWS as PAGE_ROWS
from .address import ServerAddress
from .app_state import AppState
from .desk_pool import DeskPool
from .endpoint import Endpoint
from .errors import MethodNotAllowed, error_response
from .middleware import SecurityMiddleware


def create_app(
    database: str, *, address: ServerAddress | None = None, clock: Clock | None = None, reconcile: bool = True
) -> Starlette:
    """The server for the desk in a database. `app.state.shared` is the AppState of its parts."""
    state = AppState(DeskPool(database, clock=clock), address or ServerAddress(), jobs.frames)
    mcp = _mcp(state)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        layout.load_templates()
        if reconcile:
            state.start()
        async with mcp.run() if mcp else nullcontext():
            try:
                yield
            finally:
                state.end_streams()
        state.close()

    routes = [
        *_routes(state, ApiEndpoint, api_rows()),
        Route("/mcp", mcp or Unavailable("The Model Context Protocol", "yourturn[mcp]")),
        Route("/healthz", HealthCheck(state, database=False)),
        Route("/readyz", HealthCheck(state, database=True)),
        *_routes(state, PageEndpoint, PAGE_ROWS),
        *(Route(path, assets.StaticFiles(name)) for path, name in assets.ROUTES.items()),
    ]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(SecurityMiddleware, state=state)],
        exception_handlers={HTTPException: _http_error},
        lifespan=lifespan,
    )
    app.state.shared, app.state.mcp = state, mcp
    return app


def _routes(state: AppState, endpoint: type[Endpoint], rows: Iterable[Any]) -> list[Route]:
    """One route for each path. Paths with fewer parameters come first: /tasks/new before /tasks/{key}."""
    by_path: dict[str, list[Any]] = {}
    for row in rows:
        by_path.setdefault(row.path, []).append(row)
    return [Route(path, endpoint(state, by_path[path])) for path in sorted(by_path, key=lambda path: path.count("{"))]


def _mcp(state: AppState) -> Any:
    try:
        from ..mcp.http_transport import Mcp
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in ("mcp", "mcp_types", "anyio"):
            raise
        return None
    return Mcp(state)


async def _http_error(request: Request, error: Exception) -> Response:
    """Renders the errors of Starlette's router as ours."""
    assert isinstance(error, HTTPException)
    shown: YourturnError = NotFound("There is nothing here", hint="What there is: /openapi.json")
    if error.status_code != 404:
        shown = Usage(str(error.detail))
    if "text/html" in request.headers.get("accept", ""):
        state: AppState = request.app.state.shared
        response = await state.pool.run(error_page, state, request, shown)
    else:
        response = error_response(shown)
    response.status_code = error.status_code
    response.headers.update(error.headers or {})
    return response


class Unavailable:
    """Answers for a route whose optional dependency is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        self.error = NotFound(f"{feature} is not installed here", hint=f"Where the server is: pip install '{extra}'")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await error_response(self.error)(scope, receive, send)


class HealthCheck:
    """Answers if the process is alive and, for readiness, if the database is reachable and the server is not stopping."""

    def __init__(self, state: AppState, database: bool) -> None:
        self.state = state
        self.database = database

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {"content-type": "application/json", "cache-control": "no-store"}
        try:
            if scope["method"] not in ("GET", "HEAD"):
                raise MethodNotAllowed(scope["method"], "GET, HEAD")
            if self.database:
                if self.state.closing:
                    raise StoreTrouble("The server is about to stop")
                await self.state.pool.run(self.state.pool.workspaces)
            response = Response(b'{"status": "ok"}', headers=headers)
        except Exception as error:
            response = error_response(error)
        await response(scope, receive, send)

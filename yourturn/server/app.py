"""One application of all that speaks HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from ..api import jobs
from ..api.endpoint import Endpoint
from ..api.route_table import rows
from ..core.errors import NotFound, StoreTrouble, Usage, YourturnError
from ..desk.lookups import Clock
from ..http import auth, errors
from ..http.desks import Desks
from ..http.gate import Gate, answer, refuse
from ..http.paths import Paths
from ..http.site import Site
from ..version import __version__
from ..web import layout
from ..web import page_table as web_table
from ..web import pages as web


class App(FastAPI):
    """A request goes through the gate to the route that has it. The framework's own layers, of which we need none there, are
    passed only by what no route has."""

    gate: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and self.gate is not None:
            await self.gate(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


class _Ways:
    def __init__(self, app: FastAPI) -> None:
        self.app = app
        self.paths = Paths((route.path, route.app) for route in app.router.routes if isinstance(route, Route))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        found = self.paths.find(scope["path"])
        if found is None:
            await FastAPI.__call__(self.app, scope, receive, send)
            return
        scope["path_params"] = found[1]
        await found[0](scope, receive, send)


def create_app(address: str, *, here: auth.Place | None = None, clock: Clock | None = None, clockwork: bool = True) -> FastAPI:
    """The server for the desk at an address. `app.state.site` is what its parts share."""
    site = Site(Desks(address, clock=clock), here or auth.Place(), jobs.frames)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        layout.warm()
        if clockwork:
            site.start()
        async with mcp.run() if mcp else nullcontext():
            try:
                yield
            finally:
                site.quiet()
        site.close()

    mcp = _mcp(site)

    app = App(title="Yourturn", version=__version__, openapi_url=None, docs_url=None, redoc_url=None, lifespan=lifespan)
    app.state.site, app.state.mcp = site, mcp
    app.add_exception_handler(HTTPException, _plainly)  # type: ignore[arg-type]
    app.add_exception_handler(YourturnError, _said)  # type: ignore[arg-type]
    by_path: dict[str, list[Any]] = {}
    for row in rows():
        by_path.setdefault(row.path, []).append(row)
    for path in sorted(by_path, key=lambda path: path.count("{")):  # a word before what stands for any
        app.router.routes.append(Route(path, endpoint=Endpoint(site, by_path[path])))
    app.router.routes.append(Route("/mcp", endpoint=mcp or _Missing("The Model Context Protocol", "yourturn[mcp]")))
    app.router.routes.append(Route("/healthz", endpoint=_Alive(site, deep=False)))
    app.router.routes.append(Route("/readyz", endpoint=_Alive(site, deep=True)))
    pages: dict[str, list[Any]] = {}
    for page in web_table.rows():
        pages.setdefault(page.path, []).append(page)
    for path in sorted(pages, key=lambda path: path.count("{")):
        app.router.routes.append(Route(path, endpoint=web.Endpoint(site, pages[path])))
    for path, name in web_table.FILES.items():
        app.router.routes.append(Route(path, endpoint=web.Files(name)))
    app.gate = Gate(_Ways(app), site)
    return app


def _mcp(site: Site) -> Any:
    try:
        from ..mcp.http_transport import Mcp
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in ("mcp", "mcp_types", "anyio"):
            raise
        return None
    return Mcp(site)


class _Missing:
    """What this server could do if more were installed."""

    def __init__(self, what: str, extra: str) -> None:
        self.error = NotFound(f"{what} is not installed here", hint=f"Where the server is: pip install '{extra}'")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await refuse(send, self.error)


def _said(request: Any, error: YourturnError) -> Response:
    status, headers, body = errors.response(error)
    return Response(body, status, {name.decode(): value.decode() for name, value in headers})


def _plainly(request: Any, error: HTTPException) -> Response:
    """What the framework refuses, in our shape."""
    ours: YourturnError = NotFound("There is nothing here", hint="What there is: /openapi.json")
    if error.status_code != 404:
        ours = Usage(str(error.detail))
    _, headers, body = errors.response(ours)
    if "text/html" in request.headers.get("accept", ""):
        _, headers, body = web.problem(request.app.state.site, request.scope, ours)
    told = {name.decode(): value.decode() for name, value in headers}
    return Response(body, error.status_code, {**told, **(error.headers or {})})


class _Alive:
    """Is the process there; and, where it matters, the database behind it too?"""

    def __init__(self, site: Site, deep: bool) -> None:
        self.site = site
        self.deep = deep

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            await refuse_method(send, b"GET, HEAD")
            return
        try:
            if self.deep:
                if self.site.closing:
                    raise StoreTrouble("The server is about to stop")
                await self.site.desks.run(self.site.desks.workspaces)
        except Exception as error:
            await refuse(send, error)
            return
        headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
        await answer(send, 200, headers, b'{"status": "ok"}', head=scope["method"] == "HEAD")


async def refuse_method(send: Any, allowed: bytes) -> None:
    _, headers, body = errors.response(Usage("Not with this method"))
    await answer(send, 405, [*headers, (b"allow", allowed)], body)

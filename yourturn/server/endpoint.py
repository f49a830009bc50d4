"""Serves the methods of one path. The API and the pages subclass it: they handle a request and render an error differently."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from . import limits
from .app_state import AppState
from .auth import SAFE_METHODS
from .errors import MethodNotAllowed


class Endpoint:
    def __init__(self, state: AppState, rows: Iterable[Any]) -> None:
        self.state = state
        self.rows = {row.method: row for row in rows}
        if "GET" in self.rows:
            self.rows.setdefault("HEAD", self.rows["GET"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        response: ASGIApp
        try:
            row = self.rows.get(request.method)
            if row is None:
                raise MethodNotAllowed(request.method, ", ".join(sorted(self.rows)))
            response = await self.respond(row, request)
        except Exception as error:
            response = await self.error(request, error)
        await response(scope, receive, send)

    async def respond(self, row: Any, request: Request) -> ASGIApp:
        body = b""
        if request.method not in SAFE_METHODS:
            body = await limits.read_body(request, self.body_limit(row, request))
        return await self.state.pool.run(self.handle, row, request, body)

    def body_limit(self, row: Any, request: Request) -> int:
        return limits.MAX_BODY

    def handle(self, row: Any, request: Request, body: bytes) -> Response:
        """Runs in a thread of the pool."""
        raise NotImplementedError

    async def error(self, request: Request, error: Exception) -> Response:
        raise NotImplementedError

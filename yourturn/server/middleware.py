"""Checks Host and Origin of every request, adds security headers to every response, renders errors, writes the request log."""

from __future__ import annotations

import re
import time

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .app_state import AppState
from .auth import check_host, check_origin
from .errors import error_response, log

SECURITY_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
HSTS = (b"strict-transport-security", b"max-age=31536000")
#: For responses other than pages: a browser loads nothing for them and shows them in no frame. Pages bring their own policy.
CSP = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
#: Secrets in paths are kept out of the log.
_SECRET = re.compile(r"(/enter/)[^/]+|y[tsl]_\w+")


class SecurityMiddleware:
    def __init__(self, app: ASGIApp, state: AppState) -> None:
        self.app = app
        self.state = state
        self._headers = (*SECURITY_HEADERS, *([HSTS] if state.address.secure else []), CSP)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                present = {name for name, _ in message["headers"]}
                added = [header for header in self._headers if header[0] not in present]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        try:
            headers = Headers(scope=scope)
            check_host(self.state.address, headers)
            check_origin(self.state.address, scope["method"], headers)
            await self.app(scope, receive, send_with_headers)
        except Exception as error:
            if status:
                raise
            await error_response(error)(scope, receive, send_with_headers)
        finally:
            if log.isEnabledFor(20):
                milliseconds = (time.perf_counter() - began) * 1000
                path = _SECRET.sub(r"\1…", ascii(scope["path"])[1:-1])
                log.info("%s %s %d %.0f ms", scope["method"], path, status, milliseconds)

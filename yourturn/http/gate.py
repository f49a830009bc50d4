"""The gate that every request passes: is it meant for us, does it come from our own pages, and what a browser may do with
the answer. Whatever goes wrong behind it has one shape."""

from __future__ import annotations

import re
import time
from typing import Any

from ..core.errors import YourturnError
from . import errors
from .auth import check_host, check_origin
from .errors import log
from .site import Site

HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
#: For what is no page: nothing may be loaded or shown by it.
CSP = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
HSTS = (b"strict-transport-security", b"max-age=31536000")
_OURS = frozenset(name for name, _ in (*HEADERS, CSP, HSTS))
#: A message with the whole of an answer, and a request that understands it. Any other gets it in two, as ASGI has it.
WHOLE = "yourturn.whole"
#: Secrets in a path are not for the log.
_SECRET = re.compile(r"(/enter/)[^/]+|y[tsl]_\w+")


def headers_of(scope: Any) -> dict[str, str]:
    """Lower-case names; of several with one name, the first, and cookies joined."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        word, text = name.decode("latin-1"), value.decode("latin-1")
        found[word] = f"{found[word]}; {text}" if word == "cookie" and word in found else found.get(word, text)
    return found


class Gate:
    def __init__(self, app: Any, site: Site) -> None:
        self.app = app
        self.site = site
        self._plain = (*HEADERS, *([HSTS] if site.here.secure else []), CSP)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def out(message: Any) -> None:
            nonlocal status
            if "status" in message:
                status = message["status"]
                given = {name for name, _ in message["headers"]}
                more = self._plain if given.isdisjoint(_OURS) else [pair for pair in self._plain if pair[0] not in given]
                message["headers"] = [*message["headers"], *more]
                if message["type"] == WHOLE and WHOLE not in scope:
                    await send({"type": "http.response.start", "status": status, "headers": message["headers"]})
                    message = {"type": "http.response.body", "body": message["body"]}
            await send(message)

        try:
            scope["yourturn.headers"] = headers = headers_of(scope)
            check_host(self.site.here, headers)
            check_origin(self.site.here, scope["method"], headers)
            await self.app(scope, receive, out)
        except Exception as error:
            if status:
                raise
            await refuse(out, error)
            if not isinstance(error, YourturnError):
                return
        finally:
            if log.isEnabledFor(20):
                took = (time.perf_counter() - began) * 1000
                path = _SECRET.sub(r"\1…", ascii(scope["path"])[1:-1])
                log.info("%s %s %d %.0f ms", scope["method"], path, status, took)


async def refuse(send: Any, error: BaseException) -> None:
    status, headers, body = errors.response(error)
    await answer(send, status, headers, body)


async def answer(send: Any, status: int, headers: list[tuple[bytes, bytes]], body: bytes, *, head: bool = False) -> None:
    if status in (204, 304):
        body = b""
    else:
        headers = [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": WHOLE, "status": status, "headers": headers, "body": b"" if head else body})

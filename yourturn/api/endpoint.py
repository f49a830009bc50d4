"""A row of the table as an endpoint: who asks, may they, what do they want, what came of it."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl

from ..core import permissions
from ..core.errors import Invalid, YourturnError
from ..http import auth, limits, refusals
from ..http.errors import Headers
from ..http.gate import answer, refuse
from ..http.site import Site
from .request import Answer, Call, encoded, etag, fresh
from .route_table import Row


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
            body = json.dumps({"error": {"code": "usage", "message": f"{method} is not for this", "hint": ""}}).encode()
            await answer(send, 405, [(b"content-type", b"application/json"), (b"allow", allowed)], body)
            return
        try:
            if row.stream is not None:
                await row.stream(self.site, scope, receive, send)
                return
            limit = row.large.get(scope.get("path_params", {}).get("method", ""), limits.BODY)
            body = b"" if method in auth.SAFE else await limits.body(scope, receive, limit)
            desks = self.site.desks
            run = desks.run if row.lasts(scope.get("path_params", {}), len(body)) else desks.run_short
            status, headers, out = await run(self._work, row, scope, body)
        except Exception as error:
            await refuse(send, error)
            return
        await answer(send, status, headers, out, head=method == "HEAD")

    def _work(self, row: Row, scope: Any, body: bytes) -> tuple[int, Headers, bytes]:
        headers = scope["yourturn.headers"]
        path = scope.get("path_params", {})
        operation = row.operation_for(path)
        asker = admitted(self.site, scope, operation)
        call = Call(asker.client, path, query_of(scope), headers, body, asker.session)
        try:
            found: Answer = row.handler(call)
        except YourturnError as error:
            if operation in refusals.OPERATIONS:
                refusals.REFUSED[error.code] += 1
            raise
        return _bytes(found, headers, scope["method"])


def admitted(site: Site, scope: Any, operation: str) -> auth.Asker:
    """Who asks, if they may. What is open to all asks nobody who they are."""
    headers = scope["yourturn.headers"]
    if permissions.NEEDS[operation] == "open":
        return auth.Asker(site.desks.client())
    asker = auth.asker(site.desks, site.here, headers)
    permissions.check(asker.client.who if asker else None, operation)
    assert asker is not None
    if scope["method"] not in auth.SAFE:
        auth.check_csrf(asker.session, headers.get("x-csrf-token", ""))
    return asker


def query_of(scope: Any) -> dict[str, str]:
    if not scope["query_string"]:
        return {}
    try:
        pairs = parse_qsl(scope["query_string"].decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=50)
    except ValueError:
        raise Invalid("The query of the address cannot be read", hint="Percent-encode it, as UTF-8.") from None
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Invalid("The query of the address names something twice")
    return found


def _bytes(found: Answer, headers: dict[str, str], method: str) -> tuple[int, Headers, bytes]:
    out = found.text.encode() if found.text is not None else encoded(found.value)
    told: Headers = [(b"content-type", found.media.encode())]
    told += [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in found.headers]
    if found.status < 300 and found.text is None:
        tag = etag(found.value, out)
        told += [(b"etag", tag.encode()), (b"cache-control", b"private, no-cache")]
        if method in ("GET", "HEAD") and fresh(headers, tag):
            return 304, told, b""
    else:
        told.append((b"cache-control", b"no-store"))
    return found.status, told, out

"""The one shape of an error over HTTP: the command's own JSON, with the status that each error knows."""

from __future__ import annotations

import json
import logging

from ..core.errors import TooMany, YourturnError

log = logging.getLogger("yourturn.http")

Headers = list[tuple[bytes, bytes]]


def response(error: BaseException) -> tuple[int, Headers, bytes]:
    """status, headers, body. What is no error of ours is a bug: it is written to the log, and told without details."""
    if not isinstance(error, YourturnError):
        log.error("a bug in the server", exc_info=error)
        error = YourturnError("This is a bug in the server", hint="Its log says where.")
    status = error.http_status if error.http_status >= 400 else 409
    headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
    if status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="yourturn"'))
    if isinstance(error, TooMany):
        headers.append((b"retry-after", str(error.retry_after).encode()))
    if status == 503:
        headers.append((b"retry-after", b"1"))
    return status, headers, json.dumps(error.as_json()).encode()

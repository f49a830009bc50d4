"""Errors as HTTP responses: the JSON that the command line prints, with the status of the error's class."""

from __future__ import annotations

import json
import logging

from starlette.responses import Response

from ..core.errors import TooMany, Usage, YourturnError

log = logging.getLogger("yourturn.http")


class MethodNotAllowed(Usage):
    http_status = 405

    def __init__(self, method: str, allowed: str) -> None:
        super().__init__(f"Method {method} is not allowed here")
        self.allowed = allowed


def public_error(error: BaseException) -> YourturnError:
    """The error to show. Any other exception is a bug: the log gets its traceback, the client no details."""
    if isinstance(error, YourturnError):
        return error
    log.error("a bug in the server", exc_info=error)
    return YourturnError("This is a bug in the server", hint="Its log says where.")


def error_headers(error: YourturnError) -> dict[str, str]:
    """The headers that clients need to react to the error."""
    status = status_of(error)
    headers = {}
    if status == 401:
        headers["www-authenticate"] = 'Bearer realm="yourturn"'
    if isinstance(error, TooMany):
        headers["retry-after"] = str(error.retry_after)
    if status == 503:
        headers["retry-after"] = "1"
    if isinstance(error, MethodNotAllowed):
        headers["allow"] = error.allowed
    return headers


def status_of(error: YourturnError) -> int:
    return error.http_status if error.http_status >= 400 else 409


def error_response(error: BaseException) -> Response:
    shown = public_error(error)
    headers = {"content-type": "application/json", "cache-control": "no-store", **error_headers(shown)}
    return Response(json.dumps(shown.as_json()), status_of(shown), headers)

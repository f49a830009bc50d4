"""A request for a page, as its handler sees it, and what a handler returns."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers
from starlette.requests import Request

from ..client import Client
from ..core import canonical_json
from ..core.errors import Invalid, Usage
from ..server import auth
from ..server.app_state import AppState
from . import assets

#: Fields of a form, at most.
MAX_FIELDS = 2000


class Page(NamedTuple):
    """A template and its context."""

    template: str
    context: dict[str, Any]
    status: int = 200
    headers: Mapping[str, str] = MappingProxyType({})  #: override those of HTML


class Fragment(NamedTuple):
    """HTML that a script puts into an open page."""

    html: str
    status: int = 200


class Json(NamedTuple):
    value: Any
    status: int = 200


class Redirect(NamedTuple):
    url: str
    headers: tuple[tuple[str, str], ...] = ()


PageResult = Page | Fragment | Json | Redirect


def parse_pairs(text: str, source: str) -> list[tuple[str, str]]:
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except ValueError:
        raise Invalid(f"{source} cannot be read", hint="Percent-encode it, as UTF-8.") from None
    return [(name, canonical_json.clean(value.replace("\r\n", "\n"), name[:40])) for name, value in pairs]


class PageRequest:
    def __init__(self, state: AppState, principal: auth.Principal, request: Request, body: bytes) -> None:
        self.state = state
        self.client: Client = principal.client
        self.session = principal.session
        self.headers: Headers = request.headers
        self.client_address = request.client.host if request.client else ""
        self.path_params: dict[str, str] = {k: canonical_json.clean(v, k) for k, v in request.path_params.items()}
        self.query = dict(parse_pairs(request.scope["query_string"].decode("ascii", "replace"), "The query of the address"))
        self.is_read = request.method in auth.SAFE_METHODS
        self._form = [] if self.is_read else self._parse_form(body)
        self._csrf = ""
        self.cursor = ""  #: where the log ended before the page was rendered; live updates continue there

    def _parse_form(self, body: bytes) -> list[tuple[str, str]]:
        media = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if body and media != "application/x-www-form-urlencoded":
            raise Usage("The body is not a form", hint="Send it from the page.")
        return parse_pairs(body.decode("ascii", "replace"), "The form")

    def field(self, name: str) -> str:
        """The first field of that name, or an empty text."""
        return next((value for field, value in self._form if field == name), "")

    def fields(self, name: str) -> list[str]:
        return [value for field, value in self._form if field == name]

    @property
    def server_version(self) -> str:
        """Build of the assets, host and start of the server. A page keeps it, to notice when the server was restarted."""
        return f"{assets.BUILD}.{self.state.boot_id}"

    @property
    def csrf(self) -> str:
        """One CSRF token for all forms of the page."""
        self._csrf = self._csrf or auth.csrf_token(self.session)
        return self._csrf

    @property
    def wants_json(self) -> bool:
        """True if a script sent the request, and not a browser that loads a page."""
        return "application/json" in self.headers.get("accept", "")

    @property
    def key(self) -> str | None:
        """The form's idempotency key."""
        return self.field("key")[:200] or None


def address(path: str, query: Mapping[str, Any]) -> str:
    """The path with the query; empty values are left out."""
    present = {name: str(value) for name, value in query.items() if value}
    return f"{path}?{urlencode(present)}" if present else path


def is_number(text: str) -> bool:
    """True for a number that every database can store."""
    return text.isascii() and text.isdigit() and len(text) < 19


def idempotency_key() -> str:
    return f"web-{os.urandom(9).hex()}"


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()

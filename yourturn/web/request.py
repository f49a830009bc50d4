"""One visit to a page: who comes, what they ask for, what they sent; and what they get."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.requests import Request

from ..client import Client
from ..core import canonical_json
from ..core.errors import Invalid, Usage
from ..server import auth
from ..server.app_state import AppState
from . import assets

FIELDS = 2000


class Page(NamedTuple):
    """A template and what it shows."""

    template: str
    context: dict[str, Any]
    status: int = 200
    headers: Mapping[str, str] = MappingProxyType({})  #: replace those of HTML


class Part(NamedTuple):
    """A piece of a page, for a page that is open already."""

    html: str
    status: int = 200


class Data(NamedTuple):
    value: Any
    status: int = 200


class Go(NamedTuple):
    """Look there now."""

    url: str
    headers: tuple[tuple[str, str], ...] = ()


Shown = Page | Part | Data | Go


def pairs(text: str, what: str) -> list[tuple[str, str]]:
    try:
        found = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=FIELDS)
    except ValueError:
        raise Invalid(f"{what} cannot be read", hint="Percent-encode it, as UTF-8.") from None
    return [(name, canonical_json.clean(value.replace("\r\n", "\n"), name[:40])) for name, value in found]


class Visit:
    def __init__(self, state: AppState, principal: auth.Principal, request: Request, body: bytes) -> None:
        self.state = state
        self.client: Client = principal.client
        self.session = principal.session
        self.headers: Headers = request.headers
        self.address = request.client.host if request.client else ""
        self.path: dict[str, str] = {k: canonical_json.clean(v, k) for k, v in request.path_params.items()}
        self.where: str = request.scope["path"]
        self.query_string = request.scope["query_string"].decode("ascii", "replace")
        self.query = dict(pairs(self.query_string, "The query of the address"))
        self.looks = request.method in auth.SAFE_METHODS
        self._form = [] if self.looks else self._read(body)
        self._csrf = ""
        self.after = ""  #: where the log ended before the page was drawn: what it does not show comes after that

    def _read(self, body: bytes) -> list[tuple[str, str]]:
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if body and kind != "application/x-www-form-urlencoded":
            raise Usage("That is no form", hint="Send it from the page.")
        return pairs(body.decode("ascii", "replace"), "The form")

    def field(self, name: str) -> str:
        """The first of that name; nothing where there is none."""
        return next((value for field, value in self._form if field == name), "")

    def fields(self, name: str) -> list[str]:
        return [value for field, value in self._form if field == name]

    def form(self) -> list[tuple[str, str]]:
        return list(self._form)

    @property
    def boot(self) -> str:
        """What a page remembers of the server that drew it: its files, its machine, and when it began there."""
        return f"{assets.BUILD}.{self.state.boot_id}"

    @property
    def csrf(self) -> str:
        """One for all forms of the page."""
        self._csrf = self._csrf or auth.csrf_token(self.session)
        return self._csrf

    @property
    def wants_data(self) -> bool:
        """A module asks, not a browser that goes to another page."""
        return "application/json" in self.headers.get("accept", "")

    @property
    def key(self) -> str | None:
        """The form's idempotency key: sent twice, it counts once."""
        return self.field("key")[:200] or None


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()

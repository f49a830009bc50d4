"""One visit to a page: who comes, what they ask for, what they sent; and what they get."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from ..client import Client
from ..core import canonical_json
from ..core.errors import Invalid, Usage
from ..http import auth
from ..http.site import Site
from . import assets

FIELDS = 2000


class Page(NamedTuple):
    """A template and what it shows."""

    template: str
    context: dict[str, Any]
    status: int = 200
    headers: tuple[tuple[bytes, bytes], ...] = ()  #: in the place of the usual ones


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
    def __init__(self, site: Site, asker: auth.Asker, scope: Any, body: bytes) -> None:
        self.site = site
        self.client: Client = asker.client
        self.session = asker.session
        self.headers: Mapping[str, str] = scope["yourturn.headers"]
        self.address: str = (scope.get("client") or ("",))[0]
        self.path: dict[str, str] = {k: canonical_json.clean(v, k) for k, v in scope.get("path_params", {}).items()}
        self.where: str = scope["path"]
        self.query_string = scope["query_string"].decode("ascii", "replace")
        self.query = dict(pairs(self.query_string, "The query of the address"))
        self.looks: bool = scope["method"] in auth.SAFE
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
        return f"{assets.BUILD}.{self.site.boot}"

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

"""Request and response of a handler of the API.

Input is validated before a handler gets it: texts must be valid in every database, JSON must not repeat a key, and numbers must
be numbers. Names may come in camelCase or snake_case.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from ..client import Client, serialize
from ..core import canonical_json
from ..core import fields as f
from ..core.errors import Changed, Invalid, Usage

_CAMEL = re.compile(r"(?<=[a-z0-9])[A-Z]")
_TAG = re.compile(r'(?:W/)?"([^"]*)"')
_VERSION = re.compile(r"v(\d{1,18})-[0-9a-f]+|(\d{1,18})")

#: Header that may carry the token of a claim.
CLAIM = "yourturn-claim"

#: Items on a page of a list.
MAX_LIMIT, DEFAULT_LIMIT = 500, 100


class ApiResponse(NamedTuple):
    """What a handler returns."""

    value: Any = None
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    text: str | None = None  #: instead of JSON
    media: str = "application/json"


class ApiRequest:
    """What a handler gets."""

    __slots__ = ("_body", "_fields", "client", "headers", "path", "query", "session")

    def __init__(
        self, client: Client, path: dict[str, str], query: dict[str, str], headers: Mapping[str, str], body: bytes, session: str
    ) -> None:
        self.client = client
        self.path = {name: canonical_json.clean(value, name) for name, value in path.items()}
        self.query = {snake(name): canonical_json.clean(value, name) for name, value in query.items()}
        self.headers = headers
        self.session = session
        self._body = body
        self._fields: dict[str, Any] | None = None

    @property
    def key(self) -> str | None:
        """The idempotency key."""
        key = self.headers.get("idempotency-key")
        return None if key is None else str(f.line(200)("Idempotency-Key", key))

    def body(self, *allowed: str, anything: bool = False) -> dict[str, Any]:
        """The JSON object of the body, with names in snake_case; empty without a body. Other fields than these are refused."""
        if self._fields is None:
            self._fields = self._parsed()
        return self._fields.copy() if anything else check_names(self._fields.copy(), allowed)

    def _parsed(self) -> dict[str, Any]:
        if not self._body.strip():
            return {}
        kind = self.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
        if kind != "application/json" and not kind.endswith("+json"):
            raise Usage(f"{kind[:60]!a} is not understood here", hint="Send JSON: Content-Type: application/json")
        try:
            text = self._body.decode()
        except UnicodeDecodeError as error:
            raise Invalid("The body is not valid UTF-8", reason=f"byte {error.start}") from None
        body = canonical_json.loads(text, "The body")
        if not isinstance(body, dict):
            raise Invalid("The body must be a JSON object")
        return {snake(name): value for name, value in body.items() if value is not None}

    def text(self, name: str) -> str | None:
        return self.query.get(name) or None

    def number(self, name: str, low: int, high: int, default: int) -> int:
        value = self.query.get(name)
        return default if value is None else int(f.integer(low, high)(name, value))

    def check_query(self, *allowed: str) -> None:
        """Refuse other parameters: a misspelt filter would list everything."""
        check_names(self.query, allowed)

    def limit(self) -> int:
        return self.number("limit", 1, MAX_LIMIT, DEFAULT_LIMIT)

    def client_at_version(self) -> Client:
        """The client; with If-Match, its moves need this version of the task."""
        header = self.headers.get("if-match")
        if header is None or header.strip() == "*":
            return self.client
        tag = _TAG.fullmatch(header.strip())
        version = _VERSION.fullmatch(tag[1]) if tag else None
        if version is None:
            raise Invalid("If-Match is not a version of a task", hint='Use the ETag of a response, or a version number like "7".')
        return self.client.at_version(int(version[1] or version[2]))

    def check_unchanged(self, value: Any) -> None:
        """Refuse the request if its If-Match names another version of this value."""
        header = self.headers.get("if-match")
        if header is not None and header.strip() != "*" and etag(value) not in [f'"{tag}"' for tag in _TAG.findall(header)]:
            raise Changed("It has changed since", hint="Read it again, then decide.")


def check_names(values: dict[str, Any], allowed: tuple[str, ...]) -> dict[str, Any]:
    """The values, if they have no other names than these."""
    for name in values:
        if name not in allowed:
            hint = f"Known: {', '.join(allowed)}." if allowed else "Leave it out."
            raise Invalid(f"{name[:60]!a} is not known here", hint=hint)
    return values


def snake(name: str) -> str:
    """questionId as question_id."""
    return name if name.islower() else _CAMEL.sub(lambda capital: f"_{capital[0].lower()}", name)


def camel(name: str) -> str:
    """question_id as questionId."""
    first, *more = name.split("_")
    return first + "".join(word.capitalize() for word in more)


def encoded(value: Any) -> bytes:
    """The value as compact JSON in UTF-8."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # a lone surrogate, which only an escape can express
        return serialize.dumps(value).encode()


def etag(value: Any, body: bytes | None = None) -> str:
    """Digest of the response's body, after the version if the value is a task."""
    digest = sha256(encoded(value) if body is None else body).hexdigest()[:16]
    version = value.get("version") if isinstance(value, dict) else None
    return f'"v{version}-{digest}"' if version is not None else f'"{digest}"'


def is_cached(headers: Mapping[str, str], tag: str) -> bool:
    """Whether If-None-Match names this tag."""
    header = headers.get("if-none-match", "")
    return header.strip() == "*" or tag.strip('"') in _TAG.findall(header)


def page(items: list[dict[str, Any]], limit: int, name: str, cursor: str) -> dict[str, Any]:
    """One page of a list, with the cursor of the next page, or null on the last page."""
    more = len(items) == limit
    return {name: items, "next_cursor": items[-1][cursor] if more and items else None}

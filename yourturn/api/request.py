"""One request, as a handler sees it, and what it answers.

Everything that comes from outside is checked before a handler sees it: texts that every database can carry, JSON that names
no key twice, numbers where numbers are wanted. camelCase and snake_case mean the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from pydantic_core import to_json

from ..client import Client, serialize
from ..core import canonical_json
from ..core import fields as f
from ..core.errors import Changed, Invalid, Usage

_CAMEL = re.compile(r"(?<=[a-z0-9])[A-Z]")
_TAG = re.compile(r'(?:W/)?"([^"]*)"')
_VERSION = re.compile(r"v(\d{1,18})-[0-9a-f]+|(\d{1,18})")

#: A claim's token may also come as a header.
CLAIM = "yourturn-claim"

#: How long a page of a list may be, and is.
MOST, USUAL = 500, 100


class Answer(NamedTuple):
    value: Any = None
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    text: str | None = None  #: instead of JSON
    media: str = "application/json"


class Call:
    __slots__ = ("_body", "_given", "client", "headers", "path", "query", "session")

    def __init__(
        self, client: Client, path: dict[str, str], query: dict[str, str], headers: Mapping[str, str], body: bytes, session: str
    ) -> None:
        self.client = client
        self.path = {name: canonical_json.clean(value, name) for name, value in path.items()}
        self.query = {snake(name): canonical_json.clean(value, name) for name, value in query.items()}
        self.headers = headers
        self.session = session
        self._body = body
        self._given: dict[str, Any] | None = None

    @property
    def key(self) -> str | None:
        """The idempotency key."""
        given = self.headers.get("idempotency-key")
        return None if given is None else str(f.line(200)("Idempotency-Key", given))

    def body(self, *known: str, anything: bool = False) -> dict[str, Any]:
        """The JSON object that was sent, in snake_case; nothing sent is an empty one. Unknown fields are refused."""
        if self._given is None:
            self._given = self._parsed()
        return self._given.copy() if anything else taken(self._given.copy(), known)

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
        found = canonical_json.loads(text, "The body")
        if not isinstance(found, dict):
            raise Invalid("The body must be a JSON object")
        return {snake(name): value for name, value in found.items() if value is not None}

    def text(self, name: str) -> str | None:
        return self.query.get(name) or None

    def number(self, name: str, low: int, high: int, default: int) -> int:
        given = self.query.get(name)
        return default if given is None else int(f.integer(low, high)(name, given))

    def only(self, *known: str) -> None:
        """No other parameters than these: a filter that is misspelt would show everything."""
        taken(self.query, known)

    def limit(self) -> int:
        return self.number("limit", 1, MOST, USUAL)

    def expecting(self) -> Client:
        """The client; with If-Match, what it says holds only for the version that was seen."""
        given = self.headers.get("if-match")
        if given is None or given.strip() == "*":
            return self.client
        tag = _TAG.fullmatch(given.strip())
        found = _VERSION.fullmatch(tag[1]) if tag else None
        if found is None:
            raise Invalid("If-Match is no version of a task", hint='Use the ETag that a read came with, or "7".')
        return self.client.at_version(int(found[1] or found[2]))

    def unchanged(self, value: Any) -> None:
        """With If-Match: is it as it was seen?"""
        given = self.headers.get("if-match")
        if given is not None and given.strip() != "*" and etag(value) not in [f'"{tag}"' for tag in _TAG.findall(given)]:
            raise Changed("It has changed since", hint="Look again, then decide.")


def taken(given: dict[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    for name in given:
        if name not in known:
            raise Invalid(f"{name[:60]!a} is not known here", hint=f"Known: {', '.join(known)}." if known else "Leave it out.")
    return given


def snake(name: str) -> str:
    """questionId and question_id are the same."""
    return name if name.islower() else _CAMEL.sub(lambda found: f"_{found[0].lower()}", name)


def camel(name: str) -> str:
    """question_id as programs that know jobs say it."""
    first, *more = name.split("_")
    return first + "".join(word.capitalize() for word in more)


def encoded(value: Any) -> bytes:
    """As JSON."""
    try:
        return to_json(value)
    except ValueError:  # half a character, which only escapes can say
        return serialize.dumps(value).encode()


def etag(value: Any, shown: bytes | None = None) -> str:
    """The version of a task, and a digest of what is shown."""
    digest = sha256(encoded(value) if shown is None else shown).hexdigest()[:16]
    version = value.get("version") if isinstance(value, dict) else None
    return f'"v{version}-{digest}"' if version is not None else f'"{digest}"'


def fresh(headers: Mapping[str, str], tag: str) -> bool:
    """Does the reader have exactly this?"""
    given = headers.get("if-none-match", "")
    return given.strip() == "*" or tag.strip('"') in _TAG.findall(given)


def page(items: list[dict[str, Any]], limit: int, name: str, cursor: str) -> dict[str, Any]:
    """A list, and where to go on, or null where it ends."""
    more = len(items) == limit
    return {name: items, "next_cursor": items[-1][cursor] if more and items else None}

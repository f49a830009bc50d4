"""Who is asking, and from where.

A **token** comes in `Authorization: Bearer …`. A **session** comes in a cookie, which a browser sends whoever made it ask;
so a change that comes with a cookie must also show the session's CSRF token, which only our own pages know.

**Host**: a name in DNS can be pointed at this machine by anybody. A request that calls us by a name that is not ours is
refused, whatever it carries. **Origin**: a page of somebody else's may not make a browser change anything here.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import urlsplit

from ..client import Client
from ..core.errors import NotAllowed, NotKnown, Usage
from ..core.fields import NAME
from .desks import Desks

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
COOKIE = "yourturn"
_CSRF = 16


class Place(NamedTuple):
    """Where this server is: what it may be called, and how it is reached."""

    hosts: frozenset[str] = frozenset({"localhost", "127.0.0.1", "::1"})
    public_url: str = ""
    secure: bool = False  #: reached over https
    anywhere: bool = False  #: bound to all addresses: any of them, but no strange name

    @property
    def cookie(self) -> str:
        return f"__Host-{COOKIE}" if self.secure else COOKIE


def place(host: str = "127.0.0.1", public_url: str = "", tls: bool = False, allow: Iterable[str] = ()) -> Place:
    names = {"localhost", "127.0.0.1", "::1", host.strip("[]").lower(), *(name.lower() for name in allow)}
    if public_url:
        parts = urlsplit(public_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Usage(f"{public_url[:80]!a} is no address of a server", hint="Like: --public-url https://turn.example.org")
        names.add(parts.hostname.lower())
    secure = tls or public_url.startswith("https://")
    return Place(frozenset(names), public_url.rstrip("/"), secure, host in ("0.0.0.0", "::", ""))


@lru_cache(64)
def _hostname(host: str) -> str:
    """Without its port; nothing where it makes no sense."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
        return "" if parts.username or parts.path or parts.query or parts.fragment else (parts.hostname or "").lower()
    except ValueError:
        return ""


def check_host(here: Place, headers: Mapping[str, str]) -> None:
    name = _hostname(headers.get("host", ""))
    if name in here.hosts or (here.anywhere and _is_address(name)):
        return
    raise Usage(f"This server is not called {name[:80]!a}", hint="Start it with --public-url or --allow-host if it should be.")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def check_origin(here: Place, method: str, headers: Mapping[str, str]) -> None:
    """What changes something comes from our own pages, or from no page at all."""
    if method in SAFE:
        return
    origin = headers.get("origin")
    if origin is None:
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise NotAllowed("A page of somebody else's cannot change anything here")
        return
    ours = {f"http://{headers.get('host', '')}", f"https://{headers.get('host', '')}"}
    if here.public_url:
        parts = urlsplit(here.public_url)
        ours.add(f"{parts.scheme}://{parts.netloc}")
    if origin.lower() not in {one.lower() for one in ours}:
        raise NotAllowed("A page of somebody else's cannot change anything here", reason=f"it comes from {origin[:80]!a}")


class Asker(NamedTuple):
    """Who asks: a client that speaks for them, and the secret of their session if they came with one."""

    client: Client
    session: str = ""


def bearer(headers: Mapping[str, str]) -> str:
    given = headers.get("authorization", "")
    if not given:
        return ""
    sort, _, token = given.partition(" ")
    if sort.lower() != "bearer" or not token.strip():
        raise NotKnown("That is no token", hint="Send: Authorization: Bearer …")
    return token.strip()[:200]


def cookies(headers: Mapping[str, str]) -> dict[str, str]:
    """The first of a name counts: what a neighbour adds behind it does not."""
    found: dict[str, str] = {}
    for part in headers.get("cookie", "").split(";"):
        name, equals, value = part.strip().partition("=")
        if equals:
            found.setdefault(name, value)
    return found


def asker(desks: Desks, here: Place, headers: Mapping[str, str]) -> Asker | None:
    """None: they have not said who they are. A credential that is worth nothing is an error, also where none is needed."""
    token = bearer(headers)
    if token:
        return Asker(_narrowed(desks.by_token(token), headers.get("yourturn-agent", "")))
    session = cookies(headers).get(here.cookie, "")[:200]
    return Asker(desks.by_session(session), session) if session else None


def _narrowed(client: Client, agent: str) -> Client:
    """A person's worker speaks as an agent, which is less; an agent stays the one that it is."""
    if not agent or not client.who.is_person:
        return client
    if not NAME.fullmatch(agent) or ":" in agent:
        raise NotAllowed("Yourturn-Agent is not a name", hint="Letters, digits and . _ - @ + / are fine.")
    return client.as_(client.who._replace(name=f"human:{agent}").as_agent())


def csrf_token(session: str) -> str:
    """What a page of ours shows with each change. Whoever knows it can read our pages. It looks different each time: pages are
    compressed, and what stays the same could be guessed, sign by sign, from how long they are (BREACH)."""
    if not session:
        return ""
    mask = os.urandom(_CSRF)
    return (mask + _under(mask, _csrf(session))).hex()


def check_csrf(session: str, given: str) -> None:
    try:
        raw = bytes.fromhex(given)
    except ValueError:
        raw = b""
    if session and not hmac.compare_digest(_csrf(session), _under(raw[:_CSRF], raw[_CSRF:])):
        raise NotAllowed("This page is too old", reason="its CSRF token does not fit", hint="Load it again.")


def _csrf(session: str) -> bytes:
    return hmac.new(session.encode(), b"csrf", sha256).digest()[:_CSRF]


def _under(mask: bytes, text: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(mask, text, strict=True)) if len(mask) == len(text) else b""


def cookie(here: Place, session: str, seconds: int) -> str:
    """A Set-Cookie header; an empty session takes it away."""
    age = seconds if session else 0
    return f"{here.cookie}={session}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax" + "; Secure" * here.secure

"""Authentication of requests, and protection against requests that other sites make a browser send.

A **token** comes in `Authorization: Bearer …`. A **session** comes in a cookie. A browser attaches cookies to requests of any
site, so a change that is authenticated by a cookie must also carry the session's CSRF token, which only our own pages contain.

**Host**: anyone can point a DNS name at this machine (DNS rebinding), so a request with an unknown Host header is refused.
**Origin**: a page of another origin cannot change anything here.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from ..client import Client
from ..core.errors import NotAllowed, NotKnown, Usage
from ..core.fields import NAME
from .address import ServerAddress
from .desk_pool import DeskPool

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_CSRF_BYTES = 16


@lru_cache(64)
def _hostname(host: str) -> str:
    """The host without its port; empty if it is malformed."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
        return "" if parts.username or parts.path or parts.query or parts.fragment else (parts.hostname or "").lower()
    except ValueError:
        return ""


def check_host(address: ServerAddress, headers: Mapping[str, str]) -> None:
    name = _hostname(headers.get("host", ""))
    if name in address.hosts or (address.any_ip and _is_ip(name)):
        return
    raise Usage(f"Unknown host {name[:80]!a}", hint="Start the server with --public-url or --allow-host to accept it.")


def _is_ip(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def check_origin(address: ServerAddress, method: str, headers: Mapping[str, str]) -> None:
    """Refuses changes that a page of another origin sends; programs send no Origin header and pass."""
    if method in SAFE_METHODS:
        return
    origin = headers.get("origin")
    if origin is None:
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise NotAllowed("Cross-origin request refused")
        return
    host = headers.get("host", "")
    allowed = {f"http://{host}".lower(), f"https://{host}".lower()}
    if address.public_url:
        parts = urlsplit(address.public_url)
        allowed.add(f"{parts.scheme}://{parts.netloc}".lower())
    if origin.lower() not in allowed:
        raise NotAllowed("Cross-origin request refused", reason=f"it comes from {origin[:80]!a}")


class Principal(NamedTuple):
    """The authenticated sender of a request: a client that acts for them, and the session's secret if a cookie carried one."""

    client: Client
    session: str = ""


def bearer(headers: Mapping[str, str]) -> str:
    authorization = headers.get("authorization", "")
    if not authorization:
        return ""
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise NotKnown("Invalid Authorization header", hint="Send: Authorization: Bearer …")
    return token.strip()[:200]


def cookies(headers: Headers) -> dict[str, str]:
    """The request's cookies. The first of a name wins: a cookie that another host of the domain adds comes after ours."""
    values: dict[str, str] = {}
    for part in ";".join(headers.getlist("cookie")).split(";"):
        name, equals, value = part.strip().partition("=")
        if equals:
            values.setdefault(name, value)
    return values


def authenticate(pool: DeskPool, address: ServerAddress, headers: Headers) -> Principal | None:
    """None without a credential. An invalid credential is an error, also where none is required."""
    token = bearer(headers)
    if token:
        return Principal(_as_agent(pool.by_token(token), headers.get("yourturn-agent", "")))
    session = cookies(headers).get(address.cookie, "")[:200]
    return Principal(pool.by_session(session), session) if session else None


def _as_agent(client: Client, agent: str) -> Client:
    """A person's worker names the agent that it runs and gets an agent's rights; an agent's own token is never renamed."""
    if not agent or not client.who.is_person:
        return client
    if not NAME.fullmatch(agent) or ":" in agent:
        raise NotAllowed("Yourturn-Agent is not a name", hint="Letters, digits and . _ - @ + / are fine.")
    return client.as_(client.who._replace(name=f"human:{agent}").as_agent())


def csrf_token(session: str) -> str:
    """The token that our pages send with each change. A random mask makes it different each time: pages are compressed, and an
    attacker could guess a constant token byte by byte from their length (BREACH)."""
    if not session:
        return ""
    mask = os.urandom(_CSRF_BYTES)
    return (mask + _xor(mask, _csrf(session))).hex()


def check_csrf(session: str, token: str) -> None:
    try:
        raw = bytes.fromhex(token)
    except ValueError:
        raw = b""
    if session and not hmac.compare_digest(_csrf(session), _xor(raw[:_CSRF_BYTES], raw[_CSRF_BYTES:])):
        raise NotAllowed("This page is too old", reason="its CSRF token does not fit", hint="Load it again.")


def _csrf(session: str) -> bytes:
    return hmac.new(session.encode(), b"csrf", sha256).digest()[:_CSRF_BYTES]


def _xor(mask: bytes, text: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(mask, text, strict=True)) if len(mask) == len(text) else b""


def session_cookie(address: ServerAddress, session: str, seconds: int) -> str:
    """The value of a Set-Cookie header; an empty session deletes the cookie."""
    age = seconds if session else 0
    return f"{address.cookie}={session}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax" + "; Secure" * address.secure

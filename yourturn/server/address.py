"""The addresses at which clients reach this server. Imports no web framework: `turn user link` checks `--public-url` with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

from ..core.errors import Usage

COOKIE = "yourturn"


class ServerAddress(NamedTuple):
    """The accepted host names, and how clients reach the server."""

    hosts: frozenset[str] = frozenset({"localhost", "127.0.0.1", "::1"})
    public_url: str = ""
    secure: bool = False  #: clients use https
    any_ip: bool = False  #: bound to all interfaces: every IP address is accepted as host, no unknown name is

    @property
    def cookie(self) -> str:
        return f"__Host-{COOKIE}" if self.secure else COOKIE


def server_address(host: str = "127.0.0.1", public_url: str = "", tls: bool = False, allow: Iterable[str] = ()) -> ServerAddress:
    names = {"localhost", "127.0.0.1", "::1", host.strip("[]").lower(), *(name.lower() for name in allow)}
    if public_url:
        parts = urlsplit(public_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Usage(f"Invalid server address {public_url[:80]!a}", hint="Like: --public-url https://turn.example.org")
        names.add(parts.hostname.lower())
    secure = tls or public_url.startswith("https://")
    return ServerAddress(frozenset(names), public_url.rstrip("/"), secure, host in ("0.0.0.0", "::", ""))

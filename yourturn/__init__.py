"""Yourturn: the desk between coding agents and people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from .client import Client
    from .config import connect

__all__ = ["Client", "__version__", "connect"]


def __getattr__(name: str) -> Any:
    if name == "connect":
        from .config import connect

        return connect
    if name == "Client":
        from .client import Client

        return Client
    raise AttributeError(f"module 'yourturn' has no attribute {name!r}")

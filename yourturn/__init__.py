"""Yourturn: the desk between coding agents and people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from .client import Client
    from .config import connect, restore

__all__ = ["Client", "__version__", "connect", "restore"]


def __getattr__(name: str) -> Any:
    if name in ("connect", "restore"):
        from . import config

        return getattr(config, name)
    if name == "Client":
        from .client import Client

        return Client
    raise AttributeError(f"module 'yourturn' has no attribute {name!r}")

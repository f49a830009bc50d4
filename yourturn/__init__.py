"""Yourturn: the desk between coding agents and people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from .approval.decorator import approved, approved_async, requires_approval
    from .client import Client
    from .config import connect, restore

__all__ = ["Client", "__version__", "approved", "approved_async", "connect", "requires_approval", "restore"]

_HOMES = {
    "Client": "client", "approved": "approval.decorator", "approved_async": "approval.decorator", "connect": "config",
    "requires_approval": "approval.decorator", "restore": "config",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'yourturn' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)

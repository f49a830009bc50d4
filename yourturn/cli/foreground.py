"""A run that can go on goes on here, in this terminal, like `turn run`; unless a worker was faster."""

from __future__ import annotations

from argparse import Namespace
from typing import Any


def go_on(a: Namespace, desk: Any, key: str) -> int:
    """Work on this run until it waits or ends; the exit code."""
    from .run import go

    return int(go(a, desk, key))

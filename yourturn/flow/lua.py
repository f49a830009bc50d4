"""Lua scripts. (Being written.)"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def load(body: str, file: str) -> Callable[[str], Any]:
    raise ImportError

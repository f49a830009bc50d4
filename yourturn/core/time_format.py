"""Formats times and durations for error texts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso(micros: int) -> str:
    """2026-11-15T14:31:07.000250Z"""
    seconds, rest = divmod(micros, 1_000_000)
    return f"{_second(seconds)}.{rest:06d}Z"


@lru_cache(1024)
def _second(seconds: int) -> str:
    """Cached: most events share recent times."""
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()[:19]


def when(micros: int) -> str:
    """2026-11-15 14:31 UTC"""
    return (_EPOCH + timedelta(microseconds=micros)).strftime("%Y-%m-%d %H:%M UTC")


def lasting(micros: int) -> str:
    """24 h, 90 min, 30 s: the largest exact unit."""
    seconds = micros // 1_000_000
    return next((f"{seconds // size} {name}" for size, name in ((3600, "h"), (60, "min")) if seconds % size == 0), f"{seconds} s")

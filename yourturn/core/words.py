"""Time in words for error texts: the only words that the core itself has to find."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso(micros: int) -> str:
    """2026-11-15T14:31:07.000250Z"""
    return (_EPOCH + timedelta(microseconds=micros)).isoformat(timespec="microseconds").replace("+00:00", "Z")


def when(micros: int) -> str:
    """2026-11-15 14:31 UTC"""
    return (_EPOCH + timedelta(microseconds=micros)).strftime("%Y-%m-%d %H:%M UTC")

"""Canonical JSON, digests and the hash chain of events: the same bytes on every machine.

hashlib is imported on first use: a command that only reads starts 4 ms sooner without it.
"""

from __future__ import annotations

import json
import math
from typing import Any

from .errors import Invalid

#: Maximum nesting of a value.
DEPTH = 32
#: Maximum bits of an integer.
BITS = 1024


def check(value: Any, what: str = "value", depth: int = 0) -> Any:
    """Refuse values that JSON cannot represent exactly: NaN, infinities, lone surrogates, NUL, keys that are not text."""
    if type(value) is str:
        return clean(value, what)
    if depth > DEPTH:
        raise Invalid(f"{what} is nested too deeply", reason=f"at most {DEPTH} levels")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if value.bit_length() <= BITS:
            return value
        raise Invalid(f"{what} holds a number that is too long", reason=f"at most {BITS} bits")
    if isinstance(value, str):
        return clean(value, what)
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        raise Invalid(f"{what} must be a finite number")
    if isinstance(value, (list, tuple)):
        return [check(item, what, depth + 1) for item in value]
    if isinstance(value, dict):
        return {_key(k, what): check(v, what, depth + 1) for k, v in value.items()}
    raise Invalid(f"{what} contains a value that JSON cannot represent", reason=type(value).__name__)


def _key(key: Any, what: str) -> str:
    if not isinstance(key, str):
        raise Invalid(f"{what} has a key that is not text", reason=repr(key)[:40])
    return clean(key, what)


def clean(text: str, what: str) -> str:
    """Text that both databases and every terminal accept."""
    if "\x00" in text:
        raise Invalid(f"{what} contains a NUL character")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise Invalid(f"{what} is not valid UTF-8", hint="Send it as UTF-8 text.") from None
    return text


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, check_circular=False)


def dumps(value: Any) -> str:
    """Canonical: sorted keys, no spaces, plain UTF-8."""
    return _ENCODER.encode(value)


def loads(text: str, what: str = "value") -> Any:
    """Strict: duplicate keys, NaN and the like are refused."""
    try:
        return check(_DECODER.decode(text), what)
    except _NotStrict as error:
        raise Invalid(f"{what} {error}", reason=error.reason) from None
    except (ValueError, RecursionError) as error:
        raise Invalid(f"{what} is not JSON", reason=str(error)) from None


class _NotStrict(Exception):
    """JSON that strict parsing refuses."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


def _pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(items)
    if len(out) != len(items):
        raise _NotStrict("names a key twice")
    return out


def _constant(word: str) -> Any:
    raise _NotStrict(f"contains {word}", "JSON has no such number")


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant)


def _sha256(data: bytes) -> Any:
    """Replaces itself on first use."""
    global _sha256
    from hashlib import sha256 as _sha256

    return _sha256(data)


def digest(value: Any) -> str:
    """The hash that an approval is bound to."""
    return str(_sha256(dumps(value).encode()).hexdigest())


def secret_hash(secret: str) -> str:
    """The stored hash of a token. Tokens are long and random, so one round of SHA-256 is enough."""
    return str(_sha256(secret.encode()).hexdigest())


def seat_token(token: str) -> str:
    """The token for an agent in a step of a run: it proves the claim, but not that the script itself is speaking."""
    return f"{token.rpartition('.')[0]}.{secret_hash(token)}"


def claim_hash(token: str, run: bool) -> str:
    """The stored hash of a run's claim: it verifies both tokens of the run and reveals neither."""
    return secret_hash(seat_token(token) if run else token)


def link(prev: str, chain: str, n: int, at: int, actor: str, action: str, data: str) -> str:
    """The hash of one event in its chain. `chain` is the task's key, or the workspace's name for events without a task."""
    return str(_sha256("\x1f".join((prev, chain, str(n), str(at), actor, action, data)).encode()).hexdigest())

"""Password hashes (scrypt). A stored hash names its parameters, so that they can be raised later.

Checking an unknown user takes as long as a wrong password, so the time does not reveal which users exist.
"""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from hashlib import scrypt
from hmac import compare_digest

from ..core.errors import Invalid

#: scrypt parameters log2(n), r, p: 16 MB and about 0.2 s.
WORK = 14, 8, 5
SHORTEST, LONGEST = 8, 1000


def make(password: str) -> str:
    """The hash to store for a password."""
    if not isinstance(password, str) or not SHORTEST <= len(password) <= LONGEST:
        raise Invalid(f"A password has {SHORTEST} to {LONGEST} characters")
    salt = os.urandom(16)
    return _stored(salt, _derived(password, salt, *WORK))


def proves(password: str, stored: str | None) -> bool:
    """True if the password matches. Without a stored hash it takes as long and is false."""
    _, log_n, r, p, salt, expected = (stored or _stored(bytes(16), bytes(32))).split("$")
    derived = _derived(password[:LONGEST], b64decode(salt), int(log_n), int(r), int(p))
    return compare_digest(derived, b64decode(expected)) and stored is not None


def _stored(salt: bytes, derived: bytes) -> str:
    return "$".join(["scrypt", *map(str, WORK), b64encode(salt).decode(), b64encode(derived).decode()])


def _derived(password: str, salt: bytes, log_n: int, r: int, p: int) -> bytes:
    return scrypt(password.encode(errors="surrogatepass"), salt=salt, n=2**log_n, r=r, p=p, maxmem=256 * 2**log_n * r, dklen=32)

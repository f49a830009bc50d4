"""Passwords: what proves one, and whether it does. What is stored names its parameters, so that they can grow.

A name that nobody has costs as much as a wrong password: nobody learns from the time it takes who is here.
"""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from hashlib import scrypt
from hmac import compare_digest

from ..core.errors import Invalid

#: log2 of the work, the size of a block, how often: 16 MB, and about a fifth of a second.
WORK = 14, 8, 5
SHORTEST, LONGEST = 8, 1000


def make(password: str) -> str:
    """What is stored in the place of a password."""
    if not isinstance(password, str) or not SHORTEST <= len(password) <= LONGEST:
        raise Invalid(f"A password has {SHORTEST} to {LONGEST} characters")
    salt = os.urandom(16)
    return _stored(salt, _derived(password, salt, *WORK))


def proves(password: str, stored: str | None) -> bool:
    """Is this the password? Without a stored one it never is, and that takes as long."""
    _, log_n, r, p, salt, wanted = (stored or _stored(bytes(16), bytes(32))).split("$")
    found = _derived(password[:LONGEST], b64decode(salt), int(log_n), int(r), int(p))
    return compare_digest(found, b64decode(wanted)) and stored is not None


def _stored(salt: bytes, derived: bytes) -> str:
    return "$".join(["scrypt", *map(str, WORK), b64encode(salt).decode(), b64encode(derived).decode()])


def _derived(password: str, salt: bytes, log_n: int, r: int, p: int) -> bytes:
    return scrypt(password.encode(errors="surrogatepass"), salt=salt, n=2**log_n, r=r, p=p, maxmem=256 * 2**log_n * r, dklen=32)

"""How much. How often is said in the database (desk/rate_limits.py), because there all processes count together."""

from __future__ import annotations

from typing import Any

from ..core.errors import TooLarge, Usage

#: Bytes of a request.
BODY = 1_000_000


async def body(scope: Any, receive: Any, limit: int = BODY) -> bytes:
    """The whole body of a request, or an error before more of it is read than we take."""
    said = scope["yourturn.headers"].get("content-length", "")
    if said and (not said.isdigit() or int(said[:20]) > limit):
        raise _too_large(limit)
    chunks, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Usage("The request ended in the middle")
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > limit:
            raise _too_large(limit)
        if not message.get("more_body", False):
            return b"".join(chunks)


def _too_large(limit: int) -> TooLarge:
    return TooLarge("The request is too large", reason=f"at most {limit:,} bytes", hint="Send less, or in parts.")

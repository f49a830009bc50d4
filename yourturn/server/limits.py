"""The size limit of request bodies. Rate limits are rows in the database (desk/rate_limits.py), as processes share them."""

from __future__ import annotations

from starlette.requests import ClientDisconnect, Request

from ..core.errors import TooLarge, Usage

#: Bytes of a request body.
MAX_BODY = 1_000_000


async def read_body(request: Request, limit: int = MAX_BODY) -> bytes:
    """The whole body; an error as soon as the announced or the received size exceeds the limit."""
    announced = request.headers.get("content-length", "")
    if announced and (not announced.isdigit() or int(announced[:20]) > limit):
        raise _too_large(limit)
    chunks, size = [], 0
    try:
        async for chunk in request.stream():
            chunks.append(chunk)
            size += len(chunk)
            if size > limit:
                raise _too_large(limit)
    except ClientDisconnect:
        raise Usage("The request body is incomplete") from None
    return b"".join(chunks)


def _too_large(limit: int) -> TooLarge:
    return TooLarge("The request is too large", reason=f"at most {limit:,} bytes", hint="Send less, or in parts.")

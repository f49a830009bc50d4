"""A bare Starlette endpoint with one bare SQLite commit per request: `python -m bench.bare_http PORT FILE`."""

from __future__ import annotations

import sys
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from . import bare


def app(path: str) -> Starlette:
    commit = bare.update(path)

    async def answer(request: Any) -> JSONResponse:
        await request.json()
        return JSONResponse({"done": commit()})

    return Starlette(routes=[Route("/answer", answer, methods=["POST"])])


if __name__ == "__main__":
    uvicorn.run(app(sys.argv[2]), host="127.0.0.1", port=int(sys.argv[1]), log_level="critical", access_log=False)

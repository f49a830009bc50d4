"""Events as they happen: server-sent events, and a long poll that returns at the next event."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ..core.errors import Invalid, NotFound, StoreTrouble
from ..core.fields import project_key
from ..server.app_state import AppState
from ..server.auth import Principal
from ..server.broadcast import EventFilter, parse_id
from .endpoint import authorize, query_of
from .request import check_names

#: Seconds after which a watcher's credential is checked again.
RECHECK = 30.0
_PARAMETERS = ("project", "task", "only", "format", "after", "workspaceId", "workspace_id")
_HEADERS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store", "x-accel-buffering": "no"}


async def stream(state: AppState, request: Request) -> ASGIApp:
    def begin() -> tuple[Principal, EventFilter]:
        principal = authorize(state, request, "events")
        return principal, _filter(principal, check_names(query_of(request), _PARAMETERS))

    principal, event_filter = await state.pool.run(begin)
    after = request.headers.get("last-event-id") or query_of(request).get("after", "")
    parse_id(after)
    if state.closing:
        raise StoreTrouble("The server is about to stop", hint="Try again in a moment.")
    if request.method == "HEAD":
        return Response(headers=_HEADERS)
    chunks = state.broadcast(principal.client.desk.workspace_name).watch(event_filter, after, state.pool.run)
    first = await anext(chunks)  # subscribes: a client that reads the headers misses no event
    return EventStream(state, request, first, chunks)


class EventStream:
    """Sends the chunks until the client disconnects, the watcher is too slow, its credential is revoked, or the server stops.

    Starlette's StreamingResponse does not fit: the broadcast cancels this task when the watcher is too slow."""

    def __init__(self, state: AppState, request: Request, first: bytes, chunks: AsyncGenerator[bytes, None]) -> None:
        self.state = state
        self.request = request
        self.first = first
        self.chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        disconnect = asyncio.ensure_future(_cancel_on_disconnect(receive, asyncio.current_task()))
        checked = time.monotonic()
        try:
            async with aclosing(self.chunks):
                await send({"type": "http.response.body", "body": self.first, "more_body": True})
                async for chunk in self.chunks:
                    if time.monotonic() - checked > RECHECK:
                        checked = time.monotonic()
                        await self.state.pool.run(authorize, self.state, self.request, "events")
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except asyncio.CancelledError:  # the client disconnected or is too slow: there is nothing left to send
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
        except Exception as error:
            await send({"type": "http.response.body", "body": f": the stream ends: {type(error).__name__}\n\n".encode()})
        finally:
            disconnect.cancel()


async def _cancel_on_disconnect(receive: Receive, task: asyncio.Task[Any] | None) -> None:
    """Cancel the task when the client disconnects, also while there is nothing to send."""
    while (await receive())["type"] != "http.disconnect":
        pass
    if task is not None:
        task.cancel()


def _filter(principal: Principal, query: dict[str, str]) -> EventFilter:
    task = query.get("task", "")
    if task:
        task = principal.client.show(task).get("key", "")
        if not task:
            raise NotFound("There is no such task")
    project = project_key("project", query["project"]) if query.get("project") else ""
    if project and project not in {p["key"] for p in principal.client.projects()}:
        raise NotFound(f"There is no project {project}")
    form = query.get("format", "")
    if form not in ("", "log"):
        raise Invalid("format must be log, or nothing")
    workspace = query.get("workspaceId", query.get("workspace_id"))
    if workspace is not None and workspace != principal.client.desk.workspace_name:
        raise NotFound(f"There is no workspace {workspace[:60]!a}")
    return EventFilter(project, task, frozenset(filter(None, query.get("only", "").split(","))), form == "log")


async def changes(state: AppState, request: Request) -> Response:
    """Return as soon as there is an event after the cursor, or when the time is over."""
    principal = await state.pool.run(authorize, state, request, "events")
    query = check_names(query_of(request), ("after", "seconds"))
    try:
        seconds = min(30.0, max(0.0, float(query.get("seconds", "10"))))
    except ValueError:
        raise Invalid("seconds must be a number") from None
    parse_id(query.get("after", ""))
    broadcast = state.broadcast(principal.client.desk.workspace_name)
    broadcast.start()
    if query.get("after", broadcast.cursor) == broadcast.cursor and seconds == seconds and not state.closing:
        await broadcast.changed(seconds)
    headers = {"content-type": "application/json", "cache-control": "no-store"}
    return Response(json.dumps({"cursor": broadcast.cursor}), headers=headers)

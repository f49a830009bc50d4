"""Events as they happen: a stream for watchers, and a long poll for those who only want to know that something did."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from typing import Any

from ..core.errors import Invalid, NotFound, StoreTrouble
from ..core.fields import project_key
from ..http.auth import Asker
from ..http.gate import answer
from ..http.hub import Wish, parse_id
from ..http.site import Site
from .endpoint import admitted, query_of
from .request import taken

#: Seconds after which a watcher's credential is looked at again.
RECHECK = 30.0
_KNOWN = ("project", "task", "only", "format", "after", "workspaceId", "workspace_id")


async def stream(site: Site, scope: Any, receive: Any, send: Any) -> None:
    def begin() -> tuple[Asker, Wish]:
        asker = admitted(site, scope, "events")
        return asker, _wish(asker, taken(query_of(scope), _KNOWN))

    asker, wish = await site.desks.run(begin)
    after = scope["yourturn.headers"].get("last-event-id") or query_of(scope).get("after", "")
    parse_id(after)
    if site.closing:
        raise StoreTrouble("The server is about to stop", hint="Try again in a moment.")
    headers = [
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),
    ]
    if scope["method"] == "HEAD":
        await answer(send, 200, headers, b"", head=True)
        return
    texts = site.hub(asker.client.desk.workspace_name).watch(wish, after, site.desks.run)
    first = await anext(texts)  # who reads the headers is being told already
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    gone = asyncio.ensure_future(_gone(receive, asyncio.current_task()))
    checked = time.monotonic()
    try:
        async with aclosing(texts):
            await send({"type": "http.response.body", "body": first, "more_body": True})
            async for text in texts:
                if time.monotonic() - checked > RECHECK:
                    checked = time.monotonic()
                    await site.desks.run(admitted, site, scope, "events")
                await send({"type": "http.response.body", "body": text, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    except asyncio.CancelledError:  # it left, or it was too slow: either way nobody listens any more
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()
    except Exception as error:
        text = f": the stream ends: {type(error).__name__}\n\n".encode()
        await send({"type": "http.response.body", "body": text})
    finally:
        gone.cancel()


async def _gone(receive: Any, task: Any) -> None:
    """A watcher that leaves is noticed even when there is nothing to tell."""
    while (await receive())["type"] != "http.disconnect":
        pass
    task.cancel()


def _wish(asker: Asker, query: dict[str, str]) -> Wish:
    task = query.get("task", "")
    if task:
        task = asker.client.show(task).get("key", "")
        if not task:
            raise NotFound("There is no such task")
    project = project_key("project", query["project"]) if query.get("project") else ""
    if project and project not in {p["key"] for p in asker.client.projects()}:
        raise NotFound(f"There is no project {project}")
    form = query.get("format", "")
    if form not in ("", "log"):
        raise Invalid("format must be log, or nothing")
    workspace = query.get("workspaceId", query.get("workspace_id"))
    if workspace is not None and workspace != asker.client.desk.workspace_name:
        raise NotFound(f"There is no workspace {workspace[:60]!a}")
    return Wish(project, task, frozenset(filter(None, query.get("only", "").split(","))), form == "log")


async def changes(site: Site, scope: Any, receive: Any, send: Any) -> None:
    """Answers as soon as there is something after the cursor, or when the time is over."""
    import json

    asker = await site.desks.run(admitted, site, scope, "events")
    query = taken(query_of(scope), ("after", "seconds"))
    try:
        seconds = min(30.0, max(0.0, float(query.get("seconds", "10"))))
    except ValueError:
        raise Invalid("seconds must be a number") from None
    parse_id(query.get("after", ""))
    hub = site.hub(asker.client.desk.workspace_name)
    hub.start()
    if query.get("after", hub.cursor) == hub.cursor and seconds == seconds and not site.closing:
        await hub.changed(seconds)
    body = json.dumps({"cursor": hub.cursor}).encode()
    await answer(send, 200, [(b"content-type", b"application/json"), (b"cache-control", b"no-store")], body)

"""The protocol: a seat's tools, spoken with the official SDK.

Everything that touches the desk runs in threads. Waiting does not: however many calls wait for a person, one thread listens to
the desk and rings a bell, and whoever waits looks at its own question. While it waits, a call says so every few seconds, so
that the client sees that it is alive. If the client goes away or cancels the call, the wait ends and the question stays.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
import mcp_types as types
from mcp.server import Server, ServerRequestContext

from ..core.errors import StoreTrouble, YourturnError
from ..version import __version__
from .tool_schemas import INSTRUCTIONS, TOOLS, Tool
from .tools import Reply, Tools

T = TypeVar("T")

#: A waiting call says that it is alive so often, in seconds.
PULSE = 8.0
#: Calls that are at the desk at the same time; waiting ones do not count.
ABREAST = 24


class Bell:
    """Rings when something may have changed on the desk. One thread listens, while anybody waits."""

    def __init__(self, seat: Tools) -> None:
        self._seat = seat
        self._rung = anyio.Event()
        self._waiting = 0
        self._wanted = threading.Event()
        self._over = False
        self._thread: threading.Thread | None = None

    async def wait(self, seconds: float) -> None:
        self._waiting += 1
        self._wanted.set()
        if self._thread is None:
            token = anyio.lowlevel.current_token()
            self._thread = threading.Thread(target=self._listen, args=(token,), name="bell", daemon=True)
            self._thread.start()
        try:
            with anyio.move_on_after(seconds):
                await self._rung.wait()
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._wanted.clear()

    def _listen(self, token: Any) -> None:
        while True:
            self._wanted.wait()
            if self._over:
                return
            try:
                self._seat.desk.sleep_until_due(0.25)
            except Exception:  # whoever looks will say what is wrong
                time.sleep(0.2)
            try:
                anyio.from_thread.run_sync(self._ring, token=token)
            except RuntimeError:  # the loop is gone
                return
            time.sleep(0.01)  # on a busy desk, look a hundred times a second and not more

    def _ring(self) -> None:
        rung, self._rung = self._rung, anyio.Event()
        rung.set()

    def stop(self) -> None:
        """When this returns, nobody listens any more. It takes a moment."""
        self._over = True
        self._wanted.set()
        if self._thread is not None:
            self._thread.join(5.0)


class Service:
    """What the handlers of one connection share."""

    def __init__(self, seat: Tools, pulse: float = PULSE) -> None:
        self.seat = seat
        self.pulse = pulse
        self.bell = Bell(seat)
        self.places = anyio.CapacityLimiter(ABREAST)
        self.claimed = anyio.Event()

    @property
    def over(self) -> bool:
        """Is there no more time to wait for anybody?"""
        return False

    async def run(self, work: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(work, limiter=self.places)

    async def call(self, ctx: ServerRequestContext[Any], params: types.CallToolRequestParams) -> types.CallToolResult:
        info = ctx.session.client_params
        meta: dict[str, Any] = dict(ctx.meta or {})
        call = self.seat.call(
            meta.get("threadId") or meta.get("sessionId"), meta.get("claudecode/toolUseId") or meta.get("callId")
        )

        def perform() -> Reply:
            self.seat.sit(info.client_info.name if info else None)
            return self.seat.perform(params.name, params.arguments or {}, call)

        try:
            reply = await self.run(perform)
            self.claimed.set()
            if reply.wait > 0:
                reply = await self.until_closed(ctx, reply)
            return _result(reply, [] if reply.plain else await self.run(self.seat.news))
        except YourturnError as error:
            return refusal(params.name, error)
        except Exception as bug:
            if os.environ.get("YOURTURN_DEBUG"):
                raise
            what = f"{type(bug).__name__}: {bug}".splitlines()[0]
            return refusal(params.name, YourturnError("This is a bug in turn", reason=what))

    async def until_closed(self, ctx: ServerRequestContext[Any], reply: Reply) -> Reply:
        """The reply as it stands when the person has answered, or when its time is over."""
        began = last = time.monotonic()
        wait, asked = reply.wait, reply.asked
        await ctx.session.report_progress(0.0, wait, f"{asked}: a person is asked, waiting for the answer.")
        while reply.again is not None:
            now = time.monotonic()
            left, due = began + wait - now, last + self.pulse - now
            if left <= 0 or self.over:
                return reply
            await self.bell.wait(max(0.0, min(left, due)))
            try:
                reply = await self.run(reply.again)
            except StoreTrouble:  # it may pass
                continue
            now = time.monotonic()
            if reply.again is not None and now - last >= self.pulse:
                last = now
                said = f"{asked}: still waiting for a person, {now - began:.0f} of {wait:.0f} s."
                await ctx.session.report_progress(now - began, wait, said)
        return reply

    async def keep_alive(self) -> None:
        """Heartbeats for what this session has claimed, by itself or by a call."""
        while True:
            self.claimed = anyio.Event()
            seconds = await self.run(self.seat.beat)
            with anyio.move_on_after(seconds):
                await self.claimed.wait()


def refusal(tool: str, error: YourturnError) -> types.CallToolResult:
    lines = error.lines()
    if tool == "approve":
        return _text(json.dumps({"behavior": "deny", "message": "\n".join(lines)}))
    return types.CallToolResult(
        content=[types.TextContent(type="text", text="\n".join(lines))], structured_content=error.as_json(), is_error=True
    )


def _text(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


def _result(reply: Reply, news: list[tuple[str, str]]) -> types.CallToolResult:
    if reply.plain:
        return _text(reply.message)
    said = [words for _, words in news]
    data = {**reply.data, "news": said, "told": [name for name, _ in news if name]} if news else reply.data
    text = "\n\n".join([reply.message, *said])
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], structured_content=data)


def offered(tool: Tool) -> types.Tool:
    hints = types.ToolAnnotations(
        title=tool.title, read_only_hint=tool.reads, destructive_hint=False, open_world_hint=False, idempotent_hint=tool.reads
    )
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.schema,
        output_schema=tool.result,
        annotations=hints,
    )


def build(seat: Tools, pulse: float = PULSE) -> Server[Service]:
    """A server for one seat."""

    @asynccontextmanager
    async def sitting(_: Server[Service]) -> AsyncIterator[Service]:
        service = Service(seat, pulse)
        async with anyio.create_task_group() as group:
            group.start_soon(service.keep_alive)
            try:
                yield service
            finally:
                group.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(service.bell.stop)
                    await anyio.to_thread.run_sync(seat.leave)

    async def list_tools(_: ServerRequestContext[Service], __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[offered(tool) for tool in TOOLS.values()])

    async def call_tool(ctx: ServerRequestContext[Service], params: types.CallToolRequestParams) -> types.CallToolResult:
        return await ctx.lifespan_context.call(ctx, params)

    return Server(
        "yourturn",
        version=__version__,
        title="Yourturn",
        instructions=INSTRUCTIONS,
        lifespan=sitting,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def serve(seat: Tools) -> int:
    """Serve standard input and output until the client goes away, or somebody ends the process."""
    if not os.environ.get("YOURTURN_DEBUG"):
        logging.disable(logging.CRITICAL)
    anyio.run(_serve, seat)
    return 0


async def _serve(seat: Tools) -> None:
    from mcp.server.stdio import stdio_server

    async with anyio.create_task_group() as group:
        group.start_soon(_on_signal, seat)
        async with stdio_server() as (incoming, outgoing):
            server = build(seat)
            await server.run(incoming, outgoing, server.create_initialization_options())
        group.cancel_scope.cancel()


async def _on_signal(seat: Tools) -> None:
    """Told to end: park what is held, and go. The thread that reads standard input cannot be asked to stop."""
    told = [signal.SIGTERM, signal.SIGINT, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    with anyio.open_signal_receiver(*told) as signals:
        async for _ in signals:
            with anyio.move_on_after(5.0, shield=True):
                await anyio.to_thread.run_sync(seat.leave, abandon_on_cancel=True)
            sys.stderr.flush()
            os._exit(0)

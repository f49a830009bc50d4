"""MCP server: offers the tools over the Model Context Protocol, with the official SDK.

All access to the desk runs in threads. Waiting for a person does not: one thread listens to the desk for all waiting calls, and
each of them checks its own question after a change. A waiting call reports progress every few seconds, so that the client sees
that it is alive. If the client disconnects or cancels the call, the wait ends and the question stays open.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

from ..core.errors import StoreTrouble, YourturnError
from ..version import __version__
from .session import AgentSession
from .tool_schemas import INSTRUCTIONS, TOOLS, Tool
from .tools import Reply, Tools

#: Seconds between two progress reports of a waiting call.
PROGRESS_INTERVAL = 8.0
#: Calls that use the desk at the same time; waiting ones do not count.
MAX_CONCURRENT = 24


class ChangeNotifier:
    """Wakes waiting calls when the desk has changed. One thread listens while calls wait."""

    def __init__(self, session: AgentSession) -> None:
        self._session = session
        self._changed = anyio.Event()
        self._waiting = 0
        self._wanted = threading.Event()
        self._stopped = False
        self._thread: threading.Thread | None = None

    async def wait(self, seconds: float) -> None:
        self._waiting += 1
        self._wanted.set()
        if self._thread is None:
            token = anyio.lowlevel.current_token()
            self._thread = threading.Thread(target=self._listen, args=(token,), name="change notifier", daemon=True)
            self._thread.start()
        try:
            with anyio.move_on_after(seconds):
                await self._changed.wait()
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._wanted.clear()

    def _listen(self, token: Any) -> None:
        while True:
            self._wanted.wait()
            if self._stopped:
                return
            try:
                self._session.desk.sleep_until_due(0.25)
            except Exception:  # the waiting call meets the same error and reports it
                time.sleep(0.2)
            try:
                anyio.from_thread.run_sync(self._notify, token=token)
            except RuntimeError:  # the event loop is closed
                return
            time.sleep(0.01)  # at most 100 notifications a second on a busy desk

    def _notify(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    def stop(self) -> None:
        """Stop the thread and wait for its end, for 5 seconds at most."""
        self._stopped = True
        self._wanted.set()
        if self._thread is not None:
            self._thread.join(5.0)


class Heartbeats:
    """Renews the session's claims until it is cancelled."""

    def __init__(self, session: AgentSession, run: Callable[..., Awaitable[Any]]) -> None:
        self._session, self._run = session, run
        self._call_ended = anyio.Event()

    def call_ended(self) -> None:
        """A call may have made a claim."""
        self._call_ended.set()

    async def run(self) -> None:
        while True:
            self._call_ended = anyio.Event()
            seconds = await self._run(self._session.heartbeat)
            with anyio.move_on_after(seconds):
                await self._call_ended.wait()


class ToolCalls:
    """Handles tool calls.

    run            runs a function in a thread
    wait           waits for a change of the desk, at most so many seconds
    after_call     is called when a tool has returned
    closing        whether waiting calls must return now
    """

    def __init__(
        self,
        tools: Tools,
        run: Callable[..., Awaitable[Any]],
        wait: Callable[[float], Awaitable[None]],
        *,
        after_call: Callable[[], None] = lambda: None,
        closing: Callable[[], bool] = lambda: False,
        progress_interval: float = PROGRESS_INTERVAL,
    ) -> None:
        self.tools, self.run, self.wait = tools, run, wait
        self.after_call, self.closing, self.progress_interval = after_call, closing, progress_interval

    async def handle(self, ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams) -> types.CallToolResult:
        info = ctx.session.client_params
        meta: dict[str, Any] = dict(ctx.meta or {})
        call = self.tools.call_id(
            meta.get("threadId") or meta.get("sessionId"), meta.get("claudecode/toolUseId") or meta.get("callId")
        )

        def perform() -> Reply:
            self.tools.session.begin_call(info.client_info.name if info else None)
            return self.tools.perform(params.name, params.arguments or {}, call)

        try:
            reply: Reply = await self.run(perform)
            self.after_call()
            if reply.wait > 0:
                reply = await self._wait_for_answer(ctx, reply)
            return _result(reply, [] if reply.plain else await self.run(self.tools.news))
        except YourturnError as error:
            return refusal(params.name, error)
        except Exception as bug:
            if os.environ.get("YOURTURN_DEBUG"):
                raise
            message = f"{type(bug).__name__}: {bug}".splitlines()[0]
            return refusal(params.name, YourturnError("This is a bug in turn", reason=message))

    async def _wait_for_answer(self, ctx: ServerRequestContext[Any, Any], reply: Reply) -> Reply:
        """The reply after the person has answered, or after the wait has timed out."""
        began = last = time.monotonic()
        wait, asked = reply.wait, reply.asked
        await ctx.session.report_progress(0.0, wait, f"{asked}: a person is asked, waiting for the answer.")
        while reply.refresh is not None:
            now = time.monotonic()
            left, due = began + wait - now, last + self.progress_interval - now
            if left <= 0 or self.closing():
                return reply
            await self.wait(max(0.0, min(left, due)))
            try:
                reply = await self.run(reply.refresh)
            except StoreTrouble:  # may be temporary
                continue
            now = time.monotonic()
            if reply.refresh is not None and now - last >= self.progress_interval:
                last = now
                progress = f"{asked}: still waiting for a person, {now - began:.0f} of {wait:.0f} s."
                await ctx.session.report_progress(now - began, wait, progress)
        return reply


def refusal(tool: str, error: YourturnError) -> types.CallToolResult:
    text = "\n".join(error.lines())
    if tool == "approve":
        return _text(json.dumps({"behavior": "deny", "message": text}))
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=text)]
    return types.CallToolResult(content=content, structured_content=error.as_json(), is_error=True)


def _text(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


def _result(reply: Reply, news: list[tuple[str, str]]) -> types.CallToolResult:
    if reply.plain:
        return _text(reply.message)
    messages = [message for _, message in news]
    data = {**reply.data, "news": messages, "told": [name for name, _ in news if name]} if news else reply.data
    text = "\n\n".join([reply.message, *messages])
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], structured_content=data)


def protocol_tool(tool: Tool) -> types.Tool:
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


def build(tools: Tools, progress_interval: float = PROGRESS_INTERVAL) -> Server[ToolCalls]:
    """A server for one connection."""

    @asynccontextmanager
    async def lifespan(_: Server[ToolCalls]) -> AsyncIterator[ToolCalls]:
        run = partial(anyio.to_thread.run_sync, limiter=anyio.CapacityLimiter(MAX_CONCURRENT))
        notifier, heartbeats = ChangeNotifier(tools.session), Heartbeats(tools.session, run)
        async with anyio.create_task_group() as group:
            group.start_soon(heartbeats.run)
            try:
                yield ToolCalls(
                    tools, run, notifier.wait, after_call=heartbeats.call_ended, progress_interval=progress_interval
                )
            finally:
                group.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(notifier.stop)
                    await anyio.to_thread.run_sync(tools.session.close)

    async def list_tools(_: ServerRequestContext[ToolCalls], __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[protocol_tool(tool) for tool in TOOLS.values()])

    async def call_tool(ctx: ServerRequestContext[ToolCalls], params: types.CallToolRequestParams) -> types.CallToolResult:
        return await ctx.lifespan_context.handle(ctx, params)

    return Server(
        "yourturn",
        version=__version__,
        title="Yourturn",
        instructions=INSTRUCTIONS,
        lifespan=lifespan,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def serve(tools: Tools) -> int:
    """Serve standard input and output until the client disconnects or the process is terminated."""
    if not os.environ.get("YOURTURN_DEBUG"):
        logging.disable(logging.CRITICAL)
    anyio.run(_serve, tools)
    return 0


async def _serve(tools: Tools) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(_on_signal, tools.session)
        async with stdio_server() as (incoming, outgoing):
            server = build(tools)
            await server.run(incoming, outgoing, server.create_initialization_options())
        group.cancel_scope.cancel()


async def _on_signal(session: AgentSession) -> None:
    """Park the claims and exit the process, because the thread that reads standard input cannot be interrupted."""
    handled = [signal.SIGTERM, signal.SIGINT, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    with anyio.open_signal_receiver(*handled) as signals:
        async for _ in signals:
            with anyio.move_on_after(5.0, shield=True):
                await anyio.to_thread.run_sync(session.close, abandon_on_cancel=True)
            sys.stderr.flush()
            os._exit(0)

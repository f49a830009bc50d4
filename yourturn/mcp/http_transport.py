"""MCP over streamable HTTP: `/mcp` on a server.

Any process of any server may get the next request of a session, so sessions are stateless (stateless_session.py). A process that
has served a session renews its claims, as `turn mcp` does, until the session has been silent for QUIET seconds. `DELETE` ends a
session and parks its claims; the claims of a session that vanishes expire with their leases.

Only tokens are accepted: a browser would send its cookie with a foreign page's request. A person's token acts as an agent here.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import anyio
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import Response

from ..core import permissions
from ..core.errors import Invalid, NotKnown, StoreTrouble, YourturnError
from ..server import auth, limits, refusals
from ..server.app_state import AppState
from ..server.errors import error_response, log
from ..version import __version__
from .server import ToolCalls, protocol_tool
from .stateless_session import EVERY, StatelessSession
from .tool_schemas import INSTRUCTIONS, TOOLS
from .tools import Tools

#: Seconds after its last call in which the claims of a session are renewed.
QUIET = 7200.0
_SESSION = b"mcp-session-id"
#: Headers that identify a session.
_IDENTITY = ("authorization", "yourturn-agent", "mcp-session-id")
_ONLY_POST = b'{"error": {"code": "usage", "message": "Only POST and DELETE are for this", "hint": ""}}'


class Mcp:
    """`POST /mcp`, and `DELETE /mcp` to end a session."""

    operation = "mcp"

    def __init__(self, state: AppState) -> None:
        self.state = state
        #: Sessions to renew, with the time of the heartbeat after their last call; None: called since the last heartbeat.
        self._sessions: dict[tuple[str, str], tuple[Headers, datetime | None]] = {}
        trusted = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # the middleware checks Host and Origin
        server: Server[Any] = Server(
            "yourturn", version=__version__, title="Yourturn", instructions=INSTRUCTIONS, on_list_tools=_list_tools,
            on_call_tool=self._call_tool,
        )  # fmt: skip
        self.manager = StreamableHTTPSessionManager(
            server, stateless=True, security_settings=trusted, max_request_body_size=limits.MAX_BODY
        )

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = Headers(scope=scope)
        response = Response(_ONLY_POST, 405, {"content-type": "application/json", "allow": "POST, DELETE"})
        try:
            if scope["method"] == "DELETE":
                await self.state.pool.run(self._end_session, headers)
                response = Response(status_code=204)
            elif scope["method"] == "POST":
                scope["yourturn.session"] = await self.state.pool.run(self._session, headers)
        except Exception as error:
            response = error_response(error)
        if "yourturn.session" in scope:
            await self.manager.handle_request(scope, receive, _with_session_id(headers, send))
        else:
            await response(scope, receive, send)

    def _session(self, headers: Headers) -> StatelessSession:
        token = auth.bearer(headers)
        if not token:
            raise NotKnown("Missing credential", reason="this takes a token", hint="Send it: Authorization: Bearer …")
        principal = auth.authenticate(self.state.pool, self.state.address, headers)
        assert principal is not None
        client = principal.client
        if client.who.is_person:
            client = client.as_(client.who.as_agent())
        permissions.check(client.who, self.operation)
        session_id = "".join(c for c in headers.get("mcp-session-id", "")[:64] if c.isascii() and c.isalnum())
        env = {name: os.environ[name] for name in ("YOURTURN_ASK_WAIT",) if name in os.environ}
        return StatelessSession(*self.state.pool.for_session(client, token, session_id), session_id, env)

    def _end_session(self, headers: Headers) -> None:
        if "mcp-session-id" not in headers:
            raise Invalid("Which session?", hint="Send its name: Mcp-Session-Id: …")
        self._sessions.pop(_key_of(headers), None)
        self._session(headers).close()

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        async with self.manager.run(), anyio.create_task_group() as group:
            group.start_soon(self._keep_alive)
            try:
                yield
            finally:
                group.cancel_scope.cancel()

    async def _keep_alive(self) -> None:
        while True:
            await anyio.sleep(EVERY)
            try:
                await self.state.pool.run(self._heartbeat)
            except Exception as bug:  # skip this heartbeat, keep the server
                log.error("a bug in the server", exc_info=bug)

    def _heartbeat(self) -> None:
        """Renew the claims of the recent sessions. Each is authenticated again, because a token may have been revoked."""
        for key, entry in list(self._sessions.items()):
            headers, called_at = entry
            try:
                session = self._session(headers)
                now = datetime.fromisoformat(session.desk.now())
                if called_at is None and self._sessions.get(key) is entry:
                    self._sessions[key] = entry = headers, now
                forget = (now - (called_at or now)).total_seconds() > QUIET or not session.heartbeat()
            except StoreTrouble:  # may be temporary
                return
            except YourturnError:
                forget = True
            if forget and self._sessions.get(key) is entry:  # no call has come meanwhile
                self._sessions.pop(key, None)

    async def _call_tool(
        self, ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        assert ctx.request is not None
        session, headers = ctx.request.scope["yourturn.session"], Headers(scope=ctx.request.scope)

        async def wait(seconds: float) -> None:
            """At most a second at a time, because the broadcast misses a change from before the call."""
            await self.state.broadcast(session.desk.desk.workspace_name).changed(min(seconds, 1.0))

        self._remember(headers)
        try:
            calls = ToolCalls(Tools(session), self.state.pool.run, wait, closing=lambda: self.state.closing)
            result = await calls.handle(ctx, params)
            if result.is_error and params.name in refusals.TOOLS and result.structured_content:
                refusals.REFUSED[result.structured_content["error"]["code"]] += 1
            return result
        finally:  # a heartbeat during the call may have forgotten the session, because it had no claim yet
            self._remember(headers)

    def _remember(self, headers: Headers) -> None:
        self._sessions[_key_of(headers)] = Headers({name: headers[name] for name in _IDENTITY if name in headers}), None


async def _list_tools(_: ServerRequestContext[Any], __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[protocol_tool(tool) for tool in TOOLS.values()])


def _key_of(headers: Headers) -> tuple[str, str]:
    return headers.get("authorization", ""), headers.get("mcp-session-id", "")


def _with_session_id(headers: Headers, send: Any) -> Any:
    """Adds an id to the response that begins a session. With another token, the same id is another session."""
    if "mcp-session-id" in headers or "mcp-protocol-version" in headers:
        return send

    async def send_with_id(message: Any) -> None:
        if message["type"] == "http.response.start" and message["status"] < 300:
            message = {**message, "headers": [*message["headers"], (_SESSION, os.urandom(16).hex().encode())]}
        await send(message)

    return send_with_id

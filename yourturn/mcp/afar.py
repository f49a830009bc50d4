"""The tools for agents elsewhere: `/mcp` on a server, by the protocol's streamable HTTP.

Any process of any server may get the next request, so a seat here remembers nothing: each request brings its token, and what
the agent holds stands on the desk. A claim's secret is made of the token and of the session's id, so whoever comes with both
proves it, and nobody else; no process has to know it. Nor does anybody beat for the agent between two calls: its claims
are good for a lease after each, and a session that is never heard of again loses them then, like any worker that died.

Only tokens open this: a browser sends its cookie whoever makes it ask. Who comes with a person's token is an agent here.
"""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime
from typing import Any

import anyio
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from ..client import Client
from ..core import access
from ..core.errors import Invalid, NotKnown, YourturnError
from ..http import auth, limits
from ..http.gate import answer, refuse
from ..http.site import Site
from ..version import __version__
from .catalogue import INSTRUCTIONS, TOOLS
from .server import PULSE, Service, offered
from .tools import Call, Reply, Tools

#: What is held for less than so many seconds more is held on to.
RENEW = 1800.0
_SESSION = b"mcp-session-id"


class Afar(Tools):
    """A seat that is made for each request."""

    def __init__(self, client: Client, secret: str, session: str) -> None:
        super().__init__(lambda _: client, {name: os.environ[name] for name in ("YOURTURN_ASK_WAIT",) if name in os.environ})
        self._secret = secret
        self._session = session

    @property
    def folder(self) -> str:
        return ""

    @property
    def worker(self) -> str:
        return f"{self.desk.who.name.partition(':')[2]}.mcp{f'-{self._session[:12]}' if self._session else ''}"

    def perform(self, name: str, arguments: dict[str, Any], call: Call) -> Reply:
        for task in self.desk.list(worker=self.worker):
            ends, now = (datetime.fromisoformat(at) for at in (task["claim"]["expires_at"], self.desk.now()))
            if (ends - now).total_seconds() < RENEW:
                with suppress(YourturnError):
                    self.desk.heartbeat(self._token(task))
        return super().perform(name, arguments, call)

    def _token(self, task: dict[str, Any]) -> str:
        return f"{task['key']}.{task['claim']['epoch']}.{self._secret}"

    def _is_own(self, task: dict[str, Any]) -> bool:
        """Was it made for one question?"""
        who = self.desk.who.name
        return bool(task["created_by"] == who and task["title"].startswith(f"{who.partition(':')[2]} asks: "))

    def task(self, given: str | None) -> str | None:
        mine = self.claimed() if given is None else []
        if len(mine) > 1:
            raise Invalid("Which task?", reason=f"you hold {', '.join(mine)}", hint="Give task, like PROJ-42.")
        return given or (mine[0] if mine else None)

    def claimed(self) -> list[str]:
        return [task["key"] for task in self.desk.list(worker=self.worker) if not self._is_own(task)]

    def proof(self, task: str) -> str | None:
        found = self.desk.show(task)
        held = found.get("claim")
        return self._token(found) if held and held["worker"] == self.worker else None

    def keep(self, got: dict[str, Any], own: bool = False) -> None:
        """The desk knows."""

    def finish_own(self, task: str, summary: str) -> None:
        found = self.desk.show(task)
        token = self.proof(task)
        if token is not None and self._is_own(found):
            with suppress(YourturnError):
                self.desk.complete(token, summary)

    def _ask(self, task: str | None, call: Call, fields: dict[str, Any], names: dict[str, Any]) -> dict[str, Any]:
        about = self.task(task)
        if about is not None:
            self.desk.may_ask(about)
        return super()._ask(about, call, fields, names)


class Sitting(Service):
    """One request. Its threads, and the bell that rings when something changes, are the server's."""

    def __init__(self, site: Site, seat: Afar) -> None:
        self.site = site
        self.seat = seat
        self.pulse = PULSE
        self.bell = self  # type: ignore[assignment]
        self.claimed = anyio.Event()

    @property
    def over(self) -> bool:
        return self.site.closing

    async def run(self, work: Any) -> Any:
        return await self.site.desks.run(work)

    async def wait(self, seconds: float) -> None:
        """What rings while nobody listens is seen a second later."""
        await self.site.hub(self.seat.desk.desk.workspace_name).changed(min(seconds, 1.0))


class Mcp:
    """`POST /mcp`."""

    operation = "mcp"

    def __init__(self, site: Site) -> None:
        self.site = site
        trusted = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # names and origins were seen to at the gate
        server: Server[Any] = Server(
            "yourturn", version=__version__, title="Yourturn", instructions=INSTRUCTIONS, on_list_tools=_list,
            on_call_tool=self._call,
        )  # fmt: skip
        self.manager = StreamableHTTPSessionManager(
            server, stateless=True, security_settings=trusted, max_request_body_size=limits.BODY
        )

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["method"] != "POST":
            await answer(send, 405, [(b"content-type", b"application/json"), (b"allow", b"POST")], _ONLY_POST)
            return
        try:
            scope["yourturn.seat"] = await self.site.desks.run(self._seat, scope["yourturn.headers"])
        except Exception as error:
            await refuse(send, error)
            return
        await self.manager.handle_request(scope, receive, _named(scope["yourturn.headers"], send))

    def _seat(self, headers: dict[str, str]) -> Afar:
        token = auth.bearer(headers)
        if not token:
            raise NotKnown("Who are you?", reason="this takes a token", hint="Send it: Authorization: Bearer …")
        found = auth.asker(self.site.desks, self.site.here, headers)
        assert found is not None
        client = found.client if not found.client.who.is_person else found.client.as_(found.client.who.as_agent())
        access.check(client.who, self.operation)
        session = "".join(c for c in headers.get("mcp-session-id", "")[:64] if c.isascii() and c.isalnum())
        return Afar(*self.site.desks.seated(client, token, session), session)

    async def _call(self, ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams) -> types.CallToolResult:
        assert ctx.request is not None
        seat = ctx.request.scope["yourturn.seat"]
        return await Sitting(self.site, seat).call(ctx, params)


async def _list(_: ServerRequestContext[Any], __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[offered(tool) for tool in TOOLS.values()])


def _named(headers: dict[str, str], send: Any) -> Any:
    """Who begins a session is told its name. It is theirs: whoever else says it is at another seat, having another token."""
    if "mcp-session-id" in headers or "mcp-protocol-version" in headers:
        return send

    async def out(message: Any) -> None:
        if message["type"] == "http.response.start" and message["status"] < 300:
            message = {**message, "headers": [*message["headers"], (_SESSION, os.urandom(16).hex().encode())]}
        await send(message)

    return out


_ONLY_POST = b'{"error": {"code": "usage", "message": "Only POST is for this", "hint": ""}}'

"""The tools for agents elsewhere: `/mcp` on a server, by the protocol's streamable HTTP.

Any process of any server may get the next request, so a seat here remembers nothing: each request brings its token, and what
the agent holds stands on the desk. A claim's secret is made of the token and of the session's id, so whoever comes with both
proves it, and nobody else; no process has to know it. Whichever process was called goes on beating for the session, as
`turn mcp` does, for as long as an agent may well be busy without calling (QUIET). A session that says goodbye parks what it
holds; one that is never heard of again loses it a lease later, like any worker that died.

Only tokens open this: a browser sends its cookie whoever makes it ask. Who comes with a person's token is an agent here.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import Any

import anyio
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from ..client import Client
from ..core import permissions
from ..core.errors import Invalid, NotKnown, StoreTrouble, YourturnError
from ..http import auth, limits, refusals
from ..http.errors import log
from ..http.gate import answer, refuse
from ..http.site import Site
from ..version import __version__
from .server import PULSE, Service, offered
from .tool_schemas import INSTRUCTIONS, TOOLS
from .tools import Call, Reply, Tools

#: What is held for less than so many seconds more is held on to.
RENEW = 1800.0
#: A session that has not called for so many seconds is gone; and seconds between two looks at what to hold on to.
QUIET, EVERY = 7200.0, 20.0
_SESSION = b"mcp-session-id"
#: What says who comes.
_WHO = ("authorization", "yourturn-agent", "mcp-session-id")


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
        self.beat()
        return super().perform(name, arguments, call)

    def beat(self) -> float:
        """Hold on to what is held. Nothing at all needs no further look."""
        held = self.desk.list(worker=self.worker)
        for task in held:
            ends, now = (datetime.fromisoformat(at) for at in (task["claim"]["expires_at"], self.desk.now()))
            if (ends - now).total_seconds() < RENEW:
                with suppress(YourturnError):
                    self.desk.heartbeat(self._token(task))
        return EVERY if held else 0.0

    def leave(self) -> None:
        for task in self.desk.list(worker=self.worker):
            with suppress(YourturnError):
                if self._is_own(task) and not any(q["blocking"] for q in self.desk.show(task["key"])["questions"]):
                    self.desk.complete(self._token(task), "The session ended.")
                else:
                    self.desk.park(self._token(task))

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
    """`POST /mcp`, and `DELETE /mcp` to say goodbye."""

    operation = "mcp"

    def __init__(self, site: Site) -> None:
        self.site = site
        self._heard: dict[tuple[str, str], tuple[dict[str, str], datetime | None]] = {}  #: None: since the last look
        trusted = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # names and origins were seen to at the gate
        server: Server[Any] = Server(
            "yourturn", version=__version__, title="Yourturn", instructions=INSTRUCTIONS, on_list_tools=_list,
            on_call_tool=self._call,
        )  # fmt: skip
        self.manager = StreamableHTTPSessionManager(
            server, stateless=True, security_settings=trusted, max_request_body_size=limits.BODY
        )

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["method"] not in ("POST", "DELETE"):
            await answer(send, 405, [(b"content-type", b"application/json"), (b"allow", b"POST, DELETE")], _ONLY_POST)
            return
        try:
            if scope["method"] == "DELETE":
                await self.site.desks.run(self._goodbye, scope["yourturn.headers"])
                await answer(send, 204, [], b"")
                return
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
        permissions.check(client.who, self.operation)
        session = "".join(c for c in headers.get("mcp-session-id", "")[:64] if c.isascii() and c.isalnum())
        return Afar(*self.site.desks.seated(client, token, session), session)

    def _goodbye(self, headers: dict[str, str]) -> None:
        if "mcp-session-id" not in headers:
            raise Invalid("Which session?", hint="Send its name: Mcp-Session-Id: …")
        self._heard.pop(_name_of(headers), None)
        self._seat(headers).leave()

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
                await self.site.desks.run(self._beat)
            except Exception as bug:  # one look less, and the server goes on
                log.error("a bug in the server", exc_info=bug)

    def _beat(self) -> None:
        """For each session that was heard of lately. Who it is is asked anew: a token may have been revoked."""
        for name, known in list(self._heard.items()):
            headers, heard = known
            try:
                seat = self._seat(headers)
                now = datetime.fromisoformat(seat.desk.now())
                if heard is None and self._heard.get(name) is known:
                    self._heard[name] = known = headers, now
                gone = (now - (heard or now)).total_seconds() > QUIET or not seat.beat()
            except StoreTrouble:  # it may pass
                return
            except YourturnError:
                gone = True
            if gone and self._heard.get(name) is known:  # it has not called meanwhile
                self._heard.pop(name, None)

    async def _call(self, ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams) -> types.CallToolResult:
        assert ctx.request is not None
        seat, headers = ctx.request.scope["yourturn.seat"], ctx.request.scope["yourturn.headers"]
        self._hear(headers)
        try:
            found = await Sitting(self.site, seat).call(ctx, params)
            if found.is_error and params.name in refusals.TOOLS and found.structured_content:
                refusals.REFUSED[found.structured_content["error"]["code"]] += 1
            return found
        finally:  # a look that came before it held something has forgotten it
            self._hear(headers)

    def _hear(self, headers: dict[str, str]) -> None:
        self._heard[_name_of(headers)] = {name: headers[name] for name in _WHO if name in headers}, None


async def _list(_: ServerRequestContext[Any], __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[offered(tool) for tool in TOOLS.values()])


def _name_of(headers: dict[str, str]) -> tuple[str, str]:
    return headers.get("authorization", ""), headers.get("mcp-session-id", "")


def _named(headers: dict[str, str], send: Any) -> Any:
    """Who begins a session is told its name. It is theirs: whoever else says it is at another seat, having another token."""
    if "mcp-session-id" in headers or "mcp-protocol-version" in headers:
        return send

    async def out(message: Any) -> None:
        if message["type"] == "http.response.start" and message["status"] < 300:
            message = {**message, "headers": [*message["headers"], (_SESSION, os.urandom(16).hex().encode())]}
        await send(message)

    return out


_ONLY_POST = b'{"error": {"code": "usage", "message": "Only POST and DELETE are for this", "hint": ""}}'

"""MCP over HTTP: the official client against `/mcp`, with a token."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client as Caller
from mcp.client.streamable_http import streamable_http_client

from tests.fixtures.server import Site
from tests.mcp.conftest import ask, data_of, text_of
from yourturn.client import Client
from yourturn.mcp import http_transport
from yourturn.testing import FakeClock

_BEGIN = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}  # fmt: skip
_ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture(autouse=True)
def _no_wait(monkeypatch):
    monkeypatch.setenv("YOURTURN_ASK_WAIT", "0")


@asynccontextmanager
async def caller(site, role: str = "agent", mode: str = "auto", token: str | None = None) -> AsyncIterator[Caller]:
    headers = {"Authorization": f"Bearer {token or site.token(role)}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Caller(streamable_http_client(f"{site.url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


def fresh_project(site) -> str:
    return str(site.desk.create_project(f"M{os.urandom(4).hex().upper()}")["key"])


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_life_of_a_task_over_http(site, mode):
    project = fresh_project(site)
    key = site.desk.create("Add login", project=project)["key"]
    token = site.desk.create_token(f"coder-{key}-{mode}", "agent")["token"]

    async def main() -> None:
        async with caller(site, mode=mode, token=token) as agent:
            assert {tool.name for tool in (await agent.list_tools()).tools} >= {"ask_question", "next_task", "complete_task"}
            assert data_of(await agent.call_tool("next_task", {"project": project}))["task"]["key"] == key
            asked = data_of(await agent.call_tool("ask_question", ask()))
            assert asked["status"] == "pending" and site.desk.show(key)["state"] == "human"
            await anyio.to_thread.run_sync(lambda: site.desk.answer(asked["question_id"], "jwt"))
            assert "jwt" in text_of(await agent.call_tool("get_answer", {"question_id": asked["question_id"]}))
            assert data_of(await agent.call_tool("complete_task", {"summary": "Done."}))["state"] == "done"
            refused = await agent.call_tool("complete_task", {"summary": "Again.", "task": key})
            assert refused.is_error and "it is 'done'" in text_of(refused)

    anyio.run(main)
    events = site.desk.history(key)
    assert {e["actor"] for e in events if e["action"] in ("claim", "ask", "complete")} == {f"agent:coder-{key}-{mode}"}


def test_call_waits_for_an_answer(sqlite_site, monkeypatch):
    monkeypatch.setenv("YOURTURN_ASK_WAIT", "20")
    site, began = sqlite_site, time.monotonic()
    cursor = site.desk.desk_cursor()

    def person() -> None:
        for event in site.desk.watch(cursor, 20):
            for q in event["data"].get("opened", ()):
                site.desk.answer(q["id"], "blue")
                return

    async def main() -> None:
        async with caller(site) as agent:
            result = data_of(await agent.call_tool("ask_question", ask("Which colour?")))
            assert result["status"] == "answered" and "blue" in result["message"]
            assert site.desk.show(site.desk.show(result["question_id"])["task"])["state"] == "done", "it was created for the question"

    thread = threading.Thread(target=person)
    thread.start()
    anyio.run(main)
    thread.join()
    assert time.monotonic() - began < 15


def test_only_tokens_are_accepted_and_persons_act_as_agents(sqlite_site):
    site = sqlite_site
    begin = {"body": _BEGIN, "headers": _ACCEPT}
    assert site.call("POST", "/mcp", role=None, **begin).status == 401
    assert site.call("POST", "/mcp", role="viewer", **begin).status == 403
    session = site.desk.use_link(site.desk.create_link()["link"])["session"]
    cookie = {"Cookie": f"yourturn={session}", **_ACCEPT}
    assert site.call("POST", "/mcp", _BEGIN, role=None, headers=cookie).status == 401, "a cookie is no credential here"
    assert site.call("POST", "/mcp", _BEGIN, headers={"Origin": "https://evil.example", **_ACCEPT}).status == 403
    assert site.call("POST", "/mcp", _BEGIN, headers={"Host": "evil.example", **_ACCEPT}).status == 400
    assert site.call("GET", "/mcp", headers=_ACCEPT).status == 405
    assert site.call("POST", "/mcp", raw=b"x" * 1_100_000, headers=_ACCEPT).status == 413
    good = site.call("POST", "/mcp", **begin)
    assert good.status == 200 and len(good.headers["mcp-session-id"]) == 32

    async def main() -> None:
        async with caller(site, "admin") as agent:
            key = data_of(await agent.call_tool("add_note", {"task": site.desk.create("Ours")["key"], "text": "x"}))["task"]
            assert site.desk.show(key)["notes"][0]["author"].startswith("agent:")

    anyio.run(main)


def test_claim_needs_both_token_and_session(sqlite_site):
    site = sqlite_site
    project = fresh_project(site)
    key = site.desk.create("Hold this", project=project)["key"]
    token = site.desk.create_token(f"holder-{key}", "agent")["token"]

    def call(session: str, tool: str, whose: str = token, **arguments: object) -> dict:
        body = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        more = {"Mcp-Session-Id": session, "Mcp-Protocol-Version": "2025-06-18", **_ACCEPT}
        reply = site.call("POST", "/mcp", body, token=whose, headers=more)
        assert reply.status == 200, reply.raw
        return json.loads(reply.raw[reply.raw.index(b"{") :].splitlines()[0])["result"]

    assert call("a" * 32, "next_task", project=project)["structuredContent"]["task"]["key"] == key
    other = site.desk.create_token(f"other-{key}", "agent")["token"]
    for session, whose in (("b" * 32, token), ("a" * 12 + "b" * 20, token), ("a" * 32, other)):
        assert call(session, "complete_task", whose, task=key, summary="Mine?")["isError"]
    assert site.desk.show(key)["state"] == "working"
    assert not call("a" * 32, "complete_task", summary="Mine.").get("isError")
    assert site.desk.show(key)["state"] == "done"


@pytest.fixture
def timed(new_address, monkeypatch, request):
    """A server with a fake clock; the parameter is its heartbeat interval."""
    monkeypatch.setattr(http_transport, "EVERY", request.param)
    clock = FakeClock()
    site = Site(new_address("sqlite"), clock=clock)
    yield site, clock
    site.close()


def wait_for_renewal(site, key: str, ends: str) -> None:
    limit = time.monotonic() + 20
    while site.desk.show(key)["claim"]["expires_at"] == ends:
        assert time.monotonic() < limit, "the claim is not renewed"
        time.sleep(0.01)


@pytest.mark.parametrize("timed", [0.02], indirect=True, ids=["often"])
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_claims_are_renewed_between_calls(timed, mode):
    site, clock = timed
    project = fresh_project(site)
    key = site.desk.create("Build for hours", project=project)["key"]

    async def main() -> None:
        async with caller(site, mode=mode) as agent:
            assert data_of(await agent.call_tool("next_task", {"project": project}))["task"]["key"] == key
            for _ in range(2):  # a lease is an hour
                ends = site.desk.show(key)["claim"]["expires_at"]
                clock.advance(minutes=40)
                await anyio.to_thread.run_sync(wait_for_renewal, site, key, ends)
            assert data_of(await agent.call_tool("complete_task", {"summary": "Built."}))["state"] == "done"

    anyio.run(main)


@pytest.mark.parametrize("timed", [3600.0], indirect=True, ids=["by hand"])
def test_heartbeat_during_the_first_claim_forgets_no_session(timed, monkeypatch):
    """The session holds nothing yet when the heartbeat comes, and a claim right after it."""
    site, clock = timed
    project, mcp = fresh_project(site), site.app.state.mcp
    key = site.desk.create("Build for hours", project=project)["key"]
    claim_next = Client.claim_next

    def claim_after_heartbeat(self: Client, *args: Any, **fields: Any) -> Any:
        mcp._heartbeat()
        return claim_next(self, *args, **fields)

    monkeypatch.setattr(Client, "claim_next", claim_after_heartbeat)

    async def main() -> None:
        async with caller(site, mode="auto") as agent:
            await agent.call_tool("next_task", {"project": project})

    anyio.run(main)
    ends = site.desk.show(key)["claim"]["expires_at"]
    clock.advance(minutes=40)
    mcp._heartbeat()
    assert site.desk.show(key)["claim"]["expires_at"] > ends


@pytest.mark.parametrize("timed", [3600.0], indirect=True, ids=["by hand"])
def test_no_heartbeat_for_silent_sessions_or_revoked_tokens(timed):
    site, clock = timed
    project, mcp = fresh_project(site), site.app.state.mcp
    lost, revoked = (site.desk.create(title, project=project)["key"] for title in ("Lost", "Revoked"))
    tokens = [site.desk.create_token(name, "agent")["token"] for name in ("quiet", "bad")]

    async def main() -> None:
        for token in tokens:
            async with caller(site, token=token, mode="auto") as agent:
                await agent.call_tool("next_task", {"project": project})

    anyio.run(main)
    assert [site.desk.show(key)["state"] for key in (lost, revoked)] == ["working", "working"]
    site.desk.revoke_token("bad")
    for minutes, states in ((45, ("working", "working")), (45, ("working", "ready")), (45, ("working", "ready"))):
        clock.advance(minutes=minutes)
        mcp._heartbeat()
        assert tuple(site.desk.show(key)["state"] for key in (lost, revoked)) == states
    clock.advance(minutes=45)
    mcp._heartbeat()
    assert not mcp._sessions, "the last call was more than two hours ago"
    clock.advance(minutes=45)
    mcp._heartbeat()
    assert site.desk.show(lost)["state"] == "ready", "the claim is not renewed any more"


def test_ended_session_parks_its_claims(sqlite_site):
    site = sqlite_site
    project = fresh_project(site)
    key = site.desk.create("Hold this", project=project)["key"]

    async def main() -> None:
        async with caller(site, mode="legacy") as agent:
            await agent.call_tool("next_task", {"project": project})
            assert site.desk.show(key)["state"] == "working"

    anyio.run(main)
    task = site.desk.show(key)
    assert task["state"] == "ready" and task["retry_count"] == 0
    assert site.call("DELETE", "/mcp", role="agent").status == 422
    assert site.call("DELETE", "/mcp", role=None, headers={"Mcp-Session-Id": "a" * 32}).status == 401


def test_rate_limit_with_and_without_a_task(site):
    project = fresh_project(site)
    site.desk.set("question_rate_actor", 3, project)
    key = site.desk.create("Add login", project=project)["key"]
    token = site.desk.create_token(f"often-{key}", "agent")["token"]

    async def main() -> None:
        async with caller(site, token=token) as agent:
            for at in range(3):
                data_of(await agent.call_tool("ask_question", ask(f"Which, {at}?", task=key)))
            for more in ({"task": key}, {}):
                refused = await agent.call_tool("ask_question", ask("Which, at last?", **more))
                assert refused.is_error and "asks too many questions" in text_of(refused)

    anyio.run(main)

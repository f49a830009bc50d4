"""The official client, on both databases: against the real process, or against the same server within this one."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client as Caller
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult, Implementation

from tests.conftest import TURN
from yourturn.client import Client
from yourturn.mcp.server import build
from yourturn.mcp.tools import Tools

Caught = Callable[..., AbstractAsyncContextManager[Caller]]


def ask(question: str = "JWT or sessions?", **more: Any) -> dict[str, Any]:
    return {"question": question, "type": "blocking", "responseType": "text", **more}


def said(result: CallToolResult) -> str:
    (block,) = result.content
    return str(block.text)  # type: ignore[union-attr]


def told(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, said(result)
    found: dict[str, Any] = result.structured_content
    assert found["message"] in said(result)
    return found


@pytest.fixture
def env(address: str, tmp_path: Path) -> dict[str, str]:
    return {"YOURTURN_DB": address, "PATH": os.environ["PATH"], "HOME": str(tmp_path)}


@pytest.fixture
def outside(env: dict[str, str], tmp_path: Path) -> Iterator[Caught]:
    """async with outside(YOURTURN_TASK=…) as agent: a real `turn mcp`. Whatever it prints beside the protocol is a failure."""
    errors = tmp_path / "stderr"

    @asynccontextmanager
    async def start(mode: str = "auto", **more: str) -> AsyncIterator[Caller]:
        with errors.open("a") as log:
            server = StdioServerParameters(command=TURN, args=["mcp"], cwd=tmp_path, env={**env, **more})
            async with Caller(stdio_client(server, log), mode=mode) as caller:
                yield caller

    yield start
    assert not errors.exists() or errors.read_text() == ""


@pytest.fixture
def inside(open_desk: Callable[..., Client]) -> Caught:
    """The same without a process, so that time can be wound: the desk has the tests' clock."""

    @asynccontextmanager
    async def start(
        mode: str = "auto", name: str = "claude-code", pulse: float = 8.0, fake: bool = True, **env: str
    ) -> AsyncIterator[Caller]:
        seat = Tools(lambda agent: open_desk(f"agent:{agent}", fake=fake), {"YOURTURN_ASK_WAIT": "0", **env})
        info = Implementation(name=name, version="1")
        async with Caller(build(seat, pulse), mode=mode, client_info=info) as caller:
            yield caller

    return start

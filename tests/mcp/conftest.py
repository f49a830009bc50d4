"""Fixtures for MCP: the official client, connected to a `turn mcp` process or to the same server in this process."""

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
from yourturn.mcp.session import LocalSession
from yourturn.mcp.tools import Tools

Connect = Callable[..., AbstractAsyncContextManager[Caller]]


def ask(question: str = "JWT or sessions?", **more: Any) -> dict[str, Any]:
    return {"question": question, "type": "blocking", "responseType": "text", **more}


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    return str(block.text)  # type: ignore[union-attr]


def data_of(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, text_of(result)
    data: dict[str, Any] = result.structured_content
    assert data["message"] in text_of(result)
    return data


@pytest.fixture
def env(address: str, tmp_path: Path) -> dict[str, str]:
    return {"YOURTURN_DB": address, "PATH": os.environ["PATH"], "HOME": str(tmp_path)}


@pytest.fixture
def real_server(env: dict[str, str], tmp_path: Path) -> Iterator[Connect]:
    """async with real_server(YOURTURN_TASK=…) as agent: a `turn mcp` process. Any output on standard error is a failure."""
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
def in_process(open_desk: Callable[..., Client]) -> Connect:
    """The same server in this process, with the fake clock of the tests."""

    @asynccontextmanager
    async def start(
        mode: str = "auto", name: str = "claude-code", progress_interval: float = 8.0, fake: bool = True, **env: str
    ) -> AsyncIterator[Caller]:
        session = LocalSession(lambda agent: open_desk(f"agent:{agent}", fake=fake), {"YOURTURN_ASK_WAIT": "0", **env})
        info = Implementation(name=name, version="1")
        async with Caller(build(Tools(session), progress_interval), mode=mode, client_info=info) as caller:
            yield caller

    return start

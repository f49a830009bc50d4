"""`turn mcp` as a process: with the official client, and with single messages."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.conftest import TURN
from tests.mcp.conftest import Connect, ask, data_of, text_of
from yourturn.client import Client
from yourturn.mcp.tool_schemas import TOOLS

pytestmark = pytest.mark.processes

#: For tests that do not depend on the database.
ONE = pytest.mark.parametrize("dialect", ["sqlite"])


@pytest.fixture
def ana(open_desk: Callable[..., Client]) -> Client:
    return open_desk(fake=False)


@pytest.fixture
def worker_env(ana: Client, open_desk: Callable[..., Client]) -> dict[str, str]:
    """The environment of an agent that a worker has started."""
    ana.create("Add login")
    got = open_desk("agent:coder", fake=False).claim_next("w1")
    assert got is not None
    return {"YOURTURN_AGENT": "coder", "YOURTURN_TASK": "PROJ-1", "YOURTURN_CLAIM": got["claim"]["token"]}


def test_question_is_answered_while_the_call_waits(ana: Client, worker_env: dict[str, str], real_server: Connect) -> None:
    messages: list[str] = []

    async def answer(progress: float, total: float | None, message: str | None) -> None:
        messages.append(str(message))
        if progress == 0:
            await anyio.to_thread.run_sync(lambda: ana.answer("Q1", "jwt", "The app has no cookies."))

    async def use_tools() -> None:
        async with real_server(YOURTURN_ASK_WAIT="60", **worker_env) as agent:
            assert [tool.name for tool in (await agent.list_tools()).tools] == list(TOOLS)
            question = ask(responseType="choice", options=[{"label": "JWT", "value": "jwt"}, {"label": "sessions"}])
            result = data_of(await agent.call_tool("ask_question", question, progress_callback=answer))
            assert (result["status"], result["value"], result["verdict"]) == ("answered", "jwt", "approved")
            assert (result["text"], result["answered_by"]) == ("The app has no cookies.", "human:ana")
            assert result["message"] == 'ana answered Q1: "jwt" and wrote: "The app has no cookies.".'
            assert ana.show("PROJ-1")["claim"] is not None, "the claim was held all the time"
            done = data_of(await agent.call_tool("complete_task", {"summary": "Login with a JWT."}))
            assert done["state"] == "done"

    anyio.run(use_tools)
    assert messages[0] == "Q1: a person is asked, waiting for the answer."
    assert ana.show("Q1")["asked_by"] == "agent:coder"


@ONE
def test_repeated_call_returns_the_answer(ana: Client, worker_env: dict[str, str], real_server: Connect) -> None:
    call = {"claudecode/toolUseId": "toolu_01"}

    async def first() -> None:
        async with real_server("legacy", YOURTURN_ASK_WAIT="0.05", YOURTURN_SESSION="s-1", **worker_env) as agent:
            result = data_of(await agent.call_tool("ask_question", ask(), meta=call))
            assert (result["status"], result["question_id"], result["task"]) == ("pending", "Q1", "PROJ-1")
            assert "End your turn now" in result["message"] and "resumed with the answer" in result["message"]

    async def again(claim: str) -> None:
        more = {**worker_env, "YOURTURN_CLAIM": claim}
        async with real_server("legacy", YOURTURN_ASK_WAIT="60", YOURTURN_SESSION="s-1", **more) as agent:
            result = data_of(await agent.call_tool("ask_question", ask(), meta=call))
            assert (result["status"], result["question_id"], result["value"]) == ("answered", "Q1", "JWT")
            changed = await agent.call_tool("ask_question", ask("Something else?"), meta=call)
            assert changed.is_error and "was used for something else" in text_of(changed)

    anyio.run(first)
    coder = ana.as_(ana.who._replace(name="agent:coder", role="agent"))
    coder.park(worker_env["YOURTURN_CLAIM"])
    ana.answer("Q1", "JWT")
    got = coder.claim_next("w2")
    assert got is not None
    anyio.run(again, got["claim"]["token"])
    assert len(ana.show("PROJ-1")["questions"]) == 1


def test_twenty_concurrent_calls(ana: Client, real_server: Connect) -> None:
    answers: dict[str, str] = {}

    async def use_tools() -> None:
        async with real_server(YOURTURN_ASK_WAIT="60") as agent:

            async def one(number: int) -> None:
                result = data_of(await agent.call_tool("ask_question", ask(f"Number {number}?")))
                answers[f"Number {number}?"] = result["value"]

            async with anyio.create_task_group() as group:
                for number in range(20):
                    group.start_soon(one, number)
                with anyio.fail_after(30):
                    while len(waiting := await anyio.to_thread.run_sync(ana.inbox)) < 20:
                        await anyio.sleep(0.02)
                for question in waiting:
                    ana.answer(question["id"], question["text"].upper())

    anyio.run(use_tools)
    assert answers == {f"Number {n}?": f"NUMBER {n}?" for n in range(20)}
    assert ana.counts() == {"done": 20}


def test_claim_is_renewed_and_parked_at_the_end(ana: Client, real_server: Connect) -> None:
    ana.set("lease", "3s", project="PROJ")
    ana.create("Add login")

    def until() -> str:
        claim = ana.show("PROJ-1")["claim"]
        assert claim is not None, "the claim was lost"
        return str(claim["expires_at"])

    async def use_tools() -> None:
        async with real_server() as agent:
            result = data_of(await agent.call_tool("next_task", {}))
            assert result["task"]["key"] == "PROJ-1"
            seen = {await anyio.to_thread.run_sync(until)}
            with anyio.fail_after(30):
                while len(seen) < 3:
                    await anyio.sleep(0.05)
                    seen.add(await anyio.to_thread.run_sync(until))

    anyio.run(use_tools)
    task = ana.show("PROJ-1")
    assert (task["state"], task["claim"], task["retry_count"]) == ("ready", None, 0)
    assert ana.history("PROJ-1")[-1]["action"] == "park"


# --- single messages --------------------------------------------------------------------------------------------------------


class RawClient:
    """Sends and reads single messages, to see exactly what is on standard output."""

    def __init__(self, env: dict[str, str], folder: Path) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([TURN, "mcp"], cwd=folder, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "codex mcp", "version": "1"}}
        self.send("initialize", hello, 1)
        assert self.read()["result"]["serverInfo"]["name"] == "yourturn"
        self.send("notifications/initialized")

    def send(self, method: str, params: Any = None, number: int | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})}
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message | ({"id": number} if number else {})) + "\n")
        self.process.stdin.flush()

    def ask(self, number: int) -> None:
        meta = {"progressToken": number, "threadId": "t-1", "sessionId": "t-1", "callId": f"call_{number}"}
        self.send("tools/call", {"name": "ask_question", "arguments": ask(), "_meta": meta}, number)
        assert self.read()["method"] == "notifications/progress"

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        result: dict[str, Any] = json.loads(self.process.stdout.readline())
        return result

    def end(self) -> tuple[int, list[str], str]:
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out.splitlines(), err


@pytest.fixture
def client(ana: Client, env: dict[str, str], tmp_path: Path) -> Any:
    """Started with a person's token: it is an agent nevertheless."""
    token = ana.create_token("laptop", "admin", actor="human:ana")["token"]
    client = RawClient({**env, "YOURTURN_ASK_WAIT": "200", "YOURTURN_TOKEN": token}, tmp_path)
    yield client
    if client.process.poll() is None:
        client.process.kill()
    client.process.communicate()


def test_sigterm_while_a_call_waits(ana: Client, client: RawClient) -> None:
    client.ask(2)
    began = time.monotonic()
    client.process.send_signal(signal.SIGTERM)
    client.process.wait(30)
    code, out, err = client.end()
    assert (code, out, err) == (0, [], "")
    assert time.monotonic() - began < 10, "it did not wait for the person"
    (task,) = ana.list()
    assert (task["state"], task["claim"], task["questions"][0]["status"]) == ("human", None, "pending")
    assert task["questions"][0]["asked_by"] == "agent:codex-mcp"


@ONE
def test_disconnect_while_a_call_waits(ana: Client, client: RawClient) -> None:
    client.ask(2)
    code, _, err = client.end()
    assert (code, err) == (0, "")
    (task,) = ana.list()
    assert (task["state"], task["claim"], task["questions"][0]["status"]) == ("human", None, "pending")


@ONE
def test_cancelled_call_does_not_stop_the_others(ana: Client, client: RawClient) -> None:
    assert client.process.stdin is not None
    client.process.stdin.write("nonsense\n{}\n[1]\n")
    client.ask(2)
    client.ask(3)
    client.send("notifications/cancelled", {"requestId": 2})
    client.send("ping", None, 4)
    assert client.read()["id"] == 4
    for question in ana.inbox():
        ana.answer(question["id"], "yes")
    reply = client.read()
    assert (reply["id"], reply["result"]["structuredContent"]["value"]) == (3, "yes")
    assert client.end()[1] == [], "the cancelled call is not replied to"


@ONE
def test_missing_desk_is_an_error(real_server: Connect, tmp_path: Path) -> None:
    async def use_tools() -> None:
        async with real_server(YOURTURN_DB=str(tmp_path / "nowhere.db")) as agent:
            result = await agent.call_tool("next_task", {})
            assert result.is_error and "turn init" in text_of(result), text_of(result)

    anyio.run(use_tools)


def turn(*words: str, env: dict[str, str], **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TURN, *words], env={**env, **more}, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
    )


@ONE
def test_acting_as_a_person_is_refused(env: dict[str, str]) -> None:
    for who in ("human:ana", "agent:coder"):
        done = turn("mcp", "--as", who, env=env)
        assert (done.returncode, done.stdout) == (5, "") and "always an agent" in done.stderr


@ONE
def test_print_config(env: dict[str, str]) -> None:
    import tomllib

    printed = turn("mcp", "--print-config", "--project", "PROJ", env=env)
    assert printed.returncode == 0 and "claude mcp add yourturn -- " in printed.stdout
    result = json.loads(turn("mcp", "--print-config", "--project", "PROJ", "--json", env=env).stdout)
    server = result["claude"][".mcp.json"]["mcpServers"]["yourturn"]
    assert server["args"] == ["mcp", "--project", "PROJ"] and os.access(server["command"], os.X_OK)
    codex = tomllib.loads(result["codex"]["config.toml"])["mcp_servers"]["yourturn"]
    assert (codex["command"], codex["args"]) == (server["command"], server["args"])
    assert codex["default_tools_approval_mode"] == "approve"


@ONE
def test_other_commands_do_not_load_the_sdk(env: dict[str, str]) -> None:
    code = (
        "import sys; from yourturn.cli.main import main; main(['list']);"
        "main(['mcp', '--print-config']); print(sorted({'mcp', 'mcp_types', 'anyio', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"

"""`turn mcp` as agents start it: a process, spoken to with the official client or by hand."""

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
from tests.mcp.conftest import Caught, ask, said, told
from yourturn.client import Client
from yourturn.mcp.tool_schemas import TOOLS

#: What has nothing to do with the database.
ONE = pytest.mark.parametrize("dialect", ["sqlite"])


@pytest.fixture
def ana(open_desk: Callable[..., Client]) -> Client:
    return open_desk(fake=False)


@pytest.fixture
def given(ana: Client, open_desk: Callable[..., Client]) -> dict[str, str]:
    """What a worker gives to the agent that it starts."""
    ana.create("Add login")
    got = open_desk("agent:coder", fake=False).claim_next("w1")
    assert got is not None
    return {"YOURTURN_AGENT": "coder", "YOURTURN_TASK": "PROJ-1", "YOURTURN_CLAIM": got["claim"]["token"]}


def test_a_question_is_answered_while_the_agent_waits(ana: Client, given: dict[str, str], outside: Caught) -> None:
    heard: list[str] = []

    async def answer(progress: float, total: float | None, message: str | None) -> None:
        heard.append(str(message))
        if progress == 0:
            await anyio.to_thread.run_sync(lambda: ana.answer("Q1", "jwt", "The app has no cookies."))

    async def story() -> None:
        async with outside(YOURTURN_ASK_WAIT="60", **given) as agent:
            assert [tool.name for tool in (await agent.list_tools()).tools] == list(TOOLS)
            question = ask(responseType="choice", options=[{"label": "JWT", "value": "jwt"}, {"label": "sessions"}])
            found = told(await agent.call_tool("ask_question", question, progress_callback=answer))
            assert (found["status"], found["value"], found["verdict"]) == ("answered", "jwt", "approved")
            assert (found["text"], found["answered_by"]) == ("The app has no cookies.", "human:ana")
            assert found["message"] == 'ana answered Q1: "jwt" and wrote: "The app has no cookies.".'
            assert ana.show("PROJ-1")["claim"] is not None, "the claim was held all the time"
            done = told(await agent.call_tool("complete_task", {"summary": "Login with a JWT."}))
            assert done["state"] == "done"

    anyio.run(story)
    assert heard[0] == "Q1: a person is asked, waiting for the answer."
    assert ana.show("Q1")["asked_by"] == "agent:coder"


@ONE
def test_nobody_is_there_and_the_call_is_made_again_after_the_answer(ana: Client, given: dict[str, str], outside: Caught) -> None:
    call = {"claudecode/toolUseId": "toolu_01"}

    async def first() -> None:
        async with outside("legacy", YOURTURN_ASK_WAIT="0.05", YOURTURN_SESSION="s-1", **given) as agent:
            found = told(await agent.call_tool("ask_question", ask(), meta=call))
            assert (found["status"], found["question_id"], found["task"]) == ("pending", "Q1", "PROJ-1")
            assert "End your turn now" in found["message"] and "resumed with the answer" in found["message"]

    async def again(claim: str) -> None:
        more = {**given, "YOURTURN_CLAIM": claim}
        async with outside("legacy", YOURTURN_ASK_WAIT="60", YOURTURN_SESSION="s-1", **more) as agent:
            found = told(await agent.call_tool("ask_question", ask(), meta=call))
            assert (found["status"], found["question_id"], found["value"]) == ("answered", "Q1", "JWT")
            changed = await agent.call_tool("ask_question", ask("Something else?"), meta=call)
            assert changed.is_error and "was used for something else" in said(changed)

    anyio.run(first)
    coder = ana.as_(ana.who._replace(name="agent:coder", role="agent"))
    coder.park(given["YOURTURN_CLAIM"])
    ana.answer("Q1", "JWT")
    got = coder.claim_next("w2")
    assert got is not None
    anyio.run(again, got["claim"]["token"])
    assert len(ana.show("PROJ-1")["questions"]) == 1


def test_twenty_calls_at_once(ana: Client, outside: Caught) -> None:
    answers: dict[str, str] = {}

    async def story() -> None:
        async with outside(YOURTURN_ASK_WAIT="60") as agent:

            async def one(number: int) -> None:
                found = told(await agent.call_tool("ask_question", ask(f"Number {number}?")))
                answers[f"Number {number}?"] = found["value"]

            async with anyio.create_task_group() as group:
                for number in range(20):
                    group.start_soon(one, number)
                with anyio.fail_after(30):
                    while len(waiting := await anyio.to_thread.run_sync(ana.inbox)) < 20:
                        await anyio.sleep(0.02)
                for question in waiting:
                    ana.answer(question["id"], question["text"].upper())

    anyio.run(story)
    assert answers == {f"Number {n}?": f"NUMBER {n}?" for n in range(20)}
    assert ana.counts() == {"done": 20}


def test_a_claim_is_kept_alive_and_parked_at_the_end(ana: Client, outside: Caught) -> None:
    ana.set("lease", "3s", project="PROJ")
    ana.create("Add login")

    def until() -> str:
        claim = ana.show("PROJ-1")["claim"]
        assert claim is not None, "the claim was lost"
        return str(claim["expires_at"])

    async def story() -> None:
        async with outside() as agent:
            found = told(await agent.call_tool("next_task", {}))
            assert found["task"]["key"] == "PROJ-1"
            seen = {await anyio.to_thread.run_sync(until)}
            with anyio.fail_after(30):
                while len(seen) < 3:
                    await anyio.sleep(0.05)
                    seen.add(await anyio.to_thread.run_sync(until))

    anyio.run(story)
    task = ana.show("PROJ-1")
    assert (task["state"], task["claim"], task["retry_count"]) == ("ready", None, 0)
    assert ana.history("PROJ-1")[-1]["action"] == "park"


# --- by hand --------------------------------------------------------------------------------------------------------


class Wire:
    """The protocol as lines, to see exactly what is on standard output."""

    def __init__(self, env: dict[str, str], folder: Path) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([TURN, "mcp"], cwd=folder, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "codex mcp", "version": "1"}}
        self.say("initialize", hello, 1)
        assert self.hear()["result"]["serverInfo"]["name"] == "yourturn"
        self.say("notifications/initialized")

    def say(self, method: str, params: Any = None, number: int | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})}
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message | ({"id": number} if number else {})) + "\n")
        self.process.stdin.flush()

    def ask(self, number: int) -> None:
        meta = {"progressToken": number, "threadId": "t-1", "sessionId": "t-1", "callId": f"call_{number}"}
        self.say("tools/call", {"name": "ask_question", "arguments": ask(), "_meta": meta}, number)
        assert self.hear()["method"] == "notifications/progress"

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def end(self) -> tuple[int, list[str], str]:
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out.splitlines(), err


@pytest.fixture
def wire(ana: Client, env: dict[str, str], tmp_path: Path) -> Any:
    """Started with a person's token, which makes nobody a person here."""
    token = ana.create_token("laptop", "admin", actor="human:ana")["token"]
    found = Wire({**env, "YOURTURN_ASK_WAIT": "200", "YOURTURN_TOKEN": token}, tmp_path)
    yield found
    if found.process.poll() is None:
        found.process.kill()
    found.process.communicate()


def test_told_to_end_while_somebody_waits(ana: Client, wire: Wire) -> None:
    wire.ask(2)
    began = time.monotonic()
    wire.process.send_signal(signal.SIGTERM)
    wire.process.wait(30)
    code, out, err = wire.end()
    assert (code, out, err) == (0, [], "")
    assert time.monotonic() - began < 10, "it did not wait for the person"
    (task,) = ana.list()
    assert (task["state"], task["claim"], task["questions"][0]["status"]) == ("human", None, "pending")
    assert task["questions"][0]["asked_by"] == "agent:codex-mcp"


@ONE
def test_the_client_goes_away_while_somebody_waits(ana: Client, wire: Wire) -> None:
    wire.ask(2)
    code, _, err = wire.end()
    assert (code, err) == (0, "")
    (task,) = ana.list()
    assert (task["state"], task["claim"], task["questions"][0]["status"]) == ("human", None, "pending")


@ONE
def test_a_call_is_cancelled_and_the_others_go_on(ana: Client, wire: Wire) -> None:
    assert wire.process.stdin is not None
    wire.process.stdin.write("nonsense\n{}\n[1]\n")
    wire.ask(2)
    wire.ask(3)
    wire.say("notifications/cancelled", {"requestId": 2})
    wire.say("ping", None, 4)
    assert wire.hear()["id"] == 4
    for question in ana.inbox():
        ana.answer(question["id"], "yes")
    heard = wire.hear()
    assert (heard["id"], heard["result"]["structuredContent"]["value"]) == (3, "yes")
    assert wire.end()[1] == [], "the cancelled call is not replied to"


@ONE
def test_where_there_is_no_desk(outside: Caught, tmp_path: Path) -> None:
    async def story() -> None:
        async with outside(YOURTURN_DB=str(tmp_path / "nowhere.db")) as agent:
            found = await agent.call_tool("next_task", {})
            assert found.is_error and "turn init" in said(found), said(found)

    anyio.run(story)


def turn(*words: str, env: dict[str, str], **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TURN, *words], env={**env, **more}, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
    )


@ONE
def test_never_a_person(env: dict[str, str]) -> None:
    for who in ("human:ana", "agent:coder"):
        done = turn("mcp", "--as", who, env=env)
        assert (done.returncode, done.stdout) == (5, "") and "always an agent" in done.stderr


@ONE
def test_what_to_paste(env: dict[str, str]) -> None:
    import tomllib

    printed = turn("mcp", "--print-config", "--project", "PROJ", env=env)
    assert printed.returncode == 0 and "claude mcp add yourturn -- " in printed.stdout
    found = json.loads(turn("mcp", "--print-config", "--project", "PROJ", "--json", env=env).stdout)
    server = found["claude"][".mcp.json"]["mcpServers"]["yourturn"]
    assert server["args"] == ["mcp", "--project", "PROJ"] and os.access(server["command"], os.X_OK)
    codex = tomllib.loads(found["codex"]["config.toml"])["mcp_servers"]["yourturn"]
    assert (codex["command"], codex["args"]) == (server["command"], server["args"])
    assert codex["default_tools_approval_mode"] == "approve"


@ONE
def test_other_commands_do_not_load_the_sdk(env: dict[str, str]) -> None:
    """It takes longer than everything else that they do."""
    code = (
        "import sys; from yourturn.cli.main import main; main(['list']);"
        "main(['mcp', '--print-config']); print(sorted({'mcp', 'mcp_types', 'anyio', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"

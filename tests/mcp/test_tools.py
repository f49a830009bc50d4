"""The tools: what each does on the desk, its result for the agent, and what no tool can do."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from mcp import Client as Caller

from tests.mcp.conftest import Connect, ask, data_of, text_of
from yourturn.client import Client
from yourturn.core.rules import KINDS
from yourturn.mcp.session import agent_name
from yourturn.mcp.tool_schemas import INSTRUCTIONS, TOOLS
from yourturn.testing import FakeClock
from yourturn.worker.claude import permission_gate
from yourturn.worker.claude.hook_question import ask_wait

Script = Callable[[Caller], Awaitable[None]]


@pytest.fixture
def run_script(in_process: Connect) -> Callable[..., None]:
    """run_script(use_tools, YOURTURN_TASK=…): call a function with a connected client."""

    def run(use_tools: Script, **how: Any) -> None:
        async def main() -> None:
            async with in_process(**how) as agent:
                await use_tools(agent)

        anyio.run(main)

    return run


@pytest.fixture
def worker_env(desk: Client, agent: Client) -> dict[str, str]:
    desk.create("Add login", description="With e-mail.", acceptance="One can log in.")
    got = agent.claim_next("w1")
    assert got is not None
    return {
        "YOURTURN_AGENT": "coder",
        "YOURTURN_TASK": "PROJ-1",
        "YOURTURN_CLAIM": got["claim"]["token"],
        "YOURTURN_SESSION": "s",
    }


async def refused(agent: Caller, tool: str, arguments: dict[str, Any]) -> str:
    result = await agent.call_tool(tool, arguments)
    assert result.is_error, text_of(result)
    assert set(result.structured_content["error"]) == {"code", "message", "hint"}
    return text_of(result)


# --- schemas --------------------------------------------------------------------------------------------------


def test_schema_of_ask_question() -> None:
    schema = TOOLS["ask_question"].schema
    assert schema["required"] == ["question", "type", "responseType"]
    properties = schema["properties"]
    assert list(properties) == [
        "question", "type", "responseType", "options", "context", "timeoutMinutes", "defaultResponse", "task",
    ]  # fmt: skip
    assert properties["type"]["enum"] == ["blocking", "non_blocking", "approval", "error_recovery"]
    assert properties["responseType"]["enum"] == ["text", "choice", "boolean", "approval"]
    assert properties["options"]["items"]["properties"] == {
        name: {"type": "string"} for name in ("label", "value", "description")
    }
    types = {name: part["type"] for name, part in properties.items()}
    assert types == {
        "question": "string", "type": "string", "responseType": "string", "options": "array", "context": "object",
        "timeoutMinutes": "number", "defaultResponse": "object", "task": "string",
    }  # fmt: skip


def test_descriptions_explain_when_to_ask() -> None:
    for text in (INSTRUCTIONS, TOOLS["ask_question"].description):
        assert "assume" in text.lower() and "end your turn" in text.lower() and "resumed with the answer" in text.lower()
    for tool in TOOLS.values():
        assert len(tool.description) > 60 and tool.schema["type"] == "object"
    assert all(f"`{kind}`" in TOOLS["flag_task"].description for kind in KINDS if KINDS[kind].signals)


def test_tool_list_and_instructions(run_script: Callable[..., None]) -> None:
    async def use_tools(agent: Caller) -> None:
        result = {tool.name: tool for tool in (await agent.list_tools()).tools}
        assert list(result) == list(TOOLS)
        assert all(result[name].input_schema == tool.schema for name, tool in TOOLS.items())
        assert [name for name, tool in result.items() if tool.annotations.read_only_hint] == ["get_answer", "get_task"]
        assert agent.instructions == INSTRUCTIONS

    run_script(use_tools)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(None, 45), ("", 45), ("0", 0), ("7.5", 7.5), ("-3", 0), ("900", 240), ("soon", 45), ("nan", 45), ("inf", 240)],
)
def test_wait_is_read_from_the_environment(text: str | None, seconds: float) -> None:
    assert ask_wait({} if text is None else {"YOURTURN_ASK_WAIT": text}) == seconds


def test_agent_name() -> None:
    assert agent_name("claude-code", {"YOURTURN_AGENT": "coder"}) == "coder"
    assert agent_name("Claude Code (nightly)", {}) == "Claude-Code-nightly"
    assert agent_name("../../x", {}) == "x"
    assert agent_name("", {}) == agent_name(None, {}) == agent_name("::", {}) == "mcp"


# --- asking ---------------------------------------------------------------------------------------------------------


def test_question_without_a_task_gets_its_own_task(desk: Client, run_script: Callable[..., None]) -> None:
    async def use_tools(agent: Caller) -> None:
        result = data_of(await agent.call_tool("ask_question", ask("Which colour?\nFor the button.")))
        assert (result["status"], result["task"]) == ("pending", "PROJ-1")
        task = desk.show("PROJ-1")
        assert (task["title"], task["state"]) == ("claude-code asks: Which colour? For the button.", "human")
        assert task["claim"] is not None, "it is claimed while this session lasts"
        assert desk.claim_next("w1") is None
        desk.answer("Q1", "green")
        assert desk.claim_next("w1") is None
        result = data_of(await agent.call_tool("get_answer", {"question_id": "Q1"}))
        assert (result["status"], result["value"], result["answered_by"]) == ("answered", "green", "human:ana")
        assert desk.show("PROJ-1")["state"] == "done"

    run_script(use_tools)


def test_boolean_answers(desk: Client, run_script: Callable[..., None]) -> None:
    async def use_tools(agent: Caller) -> None:
        for word, verdict in (("no", "rejected"), ("yes", "approved")):
            asked = data_of(await agent.call_tool("ask_question", ask("Delete the old table?", responseType="boolean")))
            desk.answer(asked["question_id"], word)
            result = data_of(await agent.call_tool("get_answer", {"question_id": asked["question_id"]}))
            assert (result["value"], result["verdict"]) == (word == "yes", verdict) and word in result["message"]

    run_script(use_tools)


def test_two_questions_without_a_task_are_independent(desk: Client, run_script: Callable[..., None]) -> None:
    async def use_tools(agent: Caller) -> None:
        one, two = [data_of(await agent.call_tool("ask_question", ask(text))) for text in ("One?", "Two?")]
        assert one["task"] != two["task"]
        desk.reject(one["question_id"], "Never mind.")
        result = data_of(await agent.call_tool("get_answer", {"question_id": one["question_id"]}))
        assert (result["verdict"], result["text"]) == ("rejected", "Never mind.")
        assert "said no" in result["message"] and "Do not do it" in result["message"]
        assert data_of(await agent.call_tool("get_answer", {"question_id": two["question_id"]}))["status"] == "pending"

    run_script(use_tools)
    assert [task["state"] for task in desk.list()] == ["cancelled", "human"]
    assert desk.show("PROJ-2")["claim"] is None


def test_end_of_session_parks_blocking_questions(desk: Client, agent: Client, run_script: Callable[..., None]) -> None:
    async def use_tools(caller: Caller) -> None:
        data_of(await caller.call_tool("ask_question", ask()))
        data_of(await caller.call_tool("ask_question", ask("Verbose?", type="non_blocking", defaultResponse={"value": "no"})))

    run_script(use_tools)
    assert {task["key"]: (task["state"], task["retry_count"]) for task in desk.list()} == {
        "PROJ-1": ("human", 0),
        "PROJ-2": ("done", 0),
    }
    desk.answer("Q1", "jwt")
    got = agent.claim_next("w1")
    assert got is not None and agent.show(got["task"])["questions"][0]["response"]["value"] == "jwt"


def test_next_task_returns_notes_and_answers(desk: Client, run_script: Callable[..., None]) -> None:
    key = desk.create("Add login")["key"]
    desk.note(key, "The form is in forms/login.html.")
    desk.await_person(key, "input", "JWT or sessions?")
    desk.answer(key, "jwt")

    async def use_tools(caller: Caller) -> None:
        result = data_of(await caller.call_tool("next_task", {}))
        assert [note["text"] for note in result["task"]["notes"]] == ["The form is in forms/login.html."]
        assert [q["value"] for q in result["task"]["questions"]] == ["jwt"]
        assert "forms/login.html" in result["message"] and "jwt" in result["message"]
        first = data_of(await caller.call_tool("report_progress", {"message": "Half of it"}))
        for _ in range(20):
            desk.note(key, "More")
        assert data_of(await caller.call_tool("report_progress", {"message": "Half of it"})) == first

    run_script(use_tools)


def test_undelivered_answer_is_kept_for_a_worker(desk: Client, agent: Client, run_script: Callable[..., None]) -> None:
    async def use_tools(caller: Caller) -> None:
        data_of(await caller.call_tool("ask_question", ask()))
        desk.answer("Q1", "jwt")

    run_script(use_tools)
    got = agent.claim_next("w1")
    assert got is not None and got["task"]["retry_count"] == 0
    assert agent.show(got["task"])["questions"][0]["response"]["value"] == "jwt"


def test_repeated_call_asks_once(desk: Client, run_script: Callable[..., None]) -> None:
    """Also without a task, and from another session."""
    meta = {"threadId": "t", "callId": "c1"}

    async def first(agent: Caller) -> None:
        assert data_of(await agent.call_tool("ask_question", ask(), meta=meta))["status"] == "pending"
        assert data_of(await agent.call_tool("ask_question", ask(), meta=meta))["question_id"] == "Q1"
        assert data_of(await agent.call_tool("ask_question", ask(), meta={**meta, "threadId": "u"}))["question_id"] == "Q2"

    async def second(agent: Caller) -> None:
        result = data_of(await agent.call_tool("ask_question", ask(), meta=meta))
        assert (result["status"], result["question_id"], result["value"]) == ("answered", "Q1", "jwt")

    run_script(first)
    desk.answer("Q1", "jwt")
    run_script(second)
    assert desk.show("PROJ-1")["state"] == "done"


def test_claim_of_the_worker_is_kept(
    desk: Client, worker_env: dict[str, str], run_script: Callable[..., None]
) -> None:
    async def use_tools(agent: Caller) -> None:
        data_of(await agent.call_tool("ask_question", ask(context={"currentStep": "login"}, timeoutMinutes=60)))
        desk.answer("Q1", "jwt")
        assert desk.show("PROJ-1")["state"] == "working"

    run_script(use_tools, **worker_env)
    task = desk.show("PROJ-1")
    assert task["claim"] is not None, "the worker parks it"
    assert task["questions"][0]["context"] == {"currentStep": "login"}


def test_lost_claim_is_refused(desk: Client, worker_env: dict[str, str], clock: FakeClock, run_script: Callable[..., None]) -> None:
    async def use_tools(agent: Caller) -> None:
        assert "claim is lost" in await refused(agent, "ask_question", ask())
        assert "claim is lost" in await refused(agent, "complete_task", {"summary": "done"})

    clock.advance(hours=2)
    run_script(use_tools, **worker_env)
    assert desk.show("PROJ-1")["questions"] == []


def test_late_answer_to_a_non_blocking_question_is_reported(
    desk: Client, worker_env: dict[str, str], run_script: Callable[..., None]
) -> None:
    async def use_tools(agent: Caller) -> None:
        question = ask(
            "Verbose logs?", type="non_blocking", responseType="boolean", defaultResponse={"type": "boolean", "value": False}
        )
        result = data_of(await agent.call_tool("ask_question", question))
        assert (result["status"], result["value"], result["assumed"]) == ("pending", False, True)
        assert "Go on with false" in result["message"] and "End your turn" not in result["message"]
        assert desk.show("PROJ-1")["state"] == "working"
        desk.answer("Q1", "yes")
        late = await agent.call_tool("add_note", {"text": "Half way."})
        assert late.structured_content["news"] == ["Meanwhile: ana said yes to Q1."] and "said yes to Q1" in text_of(late)
        assert late.structured_content["told"] == ["Q1"], "the worker need not report it again"
        assert "news" not in (await agent.call_tool("add_note", {"text": "Nearly."})).structured_content

    run_script(use_tools, YOURTURN_ASK_WAIT="100", **{name: value for name, value in worker_env.items() if name != "YOURTURN_ASK_WAIT"})


def test_timeout_is_neither_yes_nor_no(desk: Client, worker_env: dict[str, str], clock: FakeClock, run_script: Callable[..., None]) -> None:
    async def use_tools(agent: Caller) -> None:
        data_of(await agent.call_tool("ask_question", ask(timeoutMinutes=10, defaultResponse={"type": "text", "value": "jwt"})))
        clock.advance(minutes=11)
        result = data_of(await agent.call_tool("get_answer", {"question_id": "Q1"}))
        assert (result["status"], result["value"], result["verdict"], result["assumed"]) == ("timeout", "jwt", None, True)
        assert result["answered_by"] is None and "neither a yes nor a no" in result["message"] and '"jwt"' in result["message"]
        data_of(await agent.call_tool("ask_question", ask("Delete it?", type="approval", responseType="approval")))
        clock.advance(minutes=16)
        result = data_of(await agent.call_tool("get_answer", {"question_id": "Q2"}))
        assert (result["status"], result["value"], result["assumed"]) == ("timeout", None, False)
        assert "Do not do what you asked about" in result["message"]

    run_script(use_tools, **worker_env)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_waiting_call_reports_progress(desk: Client, in_process: Connect, mode: str) -> None:
    reports: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, total, message))
        if len(reports) == 4:
            await anyio.to_thread.run_sync(lambda: desk.answer("Q1", "jwt"))

    async def use_tools() -> None:
        async with in_process(mode, progress_interval=0.05, YOURTURN_ASK_WAIT="30") as agent:
            result = data_of(await agent.call_tool("ask_question", ask(), progress_callback=note))
            assert result["status"] == "answered"

    anyio.run(use_tools)
    assert [message for _, _, message in reports][:2] == [
        "Q1: a person is asked, waiting for the answer.", "Q1: still waiting for a person, 0 of 30 s.",
    ]  # fmt: skip
    assert [progress for progress, _, _ in reports] == sorted({progress for progress, _, _ in reports}), "progress only grows"


# --- permissions ----------------------------------------------------------------------------------------------------


async def prompt(agent: Caller, tool: str, worker_env: dict[str, Any], call: str = "toolu_1") -> dict[str, Any]:
    arguments = {"tool_name": tool, "input": worker_env, "tool_use_id": call, "something": "new"}
    result = await agent.call_tool("approve", arguments, meta={"claudecode/toolUseId": "toolu_prompt"})
    assert not result.is_error and result.structured_content is None
    reply: dict[str, Any] = json.loads(text_of(result))
    return reply


PUSH = {"command": "git push"}


def test_permission_prompt(desk: Client, worker_env: dict[str, str], run_script: Callable[..., None]) -> None:
    async def use_tools(agent: Caller) -> None:
        reply = await prompt(agent, "Bash", PUSH)
        assert reply["behavior"] == "deny" and "End your turn" in reply["message"]
        question = desk.show("Q1")
        assert (question["kind"], question["action"]["tool"], question["action"]["input"]) == ("permission", "Bash", PUSH)
        desk.approve("Q1")
        for _ in range(2):
            assert await prompt(agent, "Bash", PUSH) == {"behavior": "allow", "updatedInput": PUSH}, "the same call, again"
        assert desk.show("Q1")["used_by"] == "s/toolu_1"
        reply = await prompt(agent, "Bash", {"command": "git push --force"})
        assert reply["behavior"] == "deny", "it was for another input"
        await prompt(agent, "Bash", {"command": "rm -rf build"}, "toolu_2")
        desk.reject("Q2", "Keep it.")
        reply = await prompt(agent, "Bash", {"command": "rm -rf build"}, "toolu_2")
        assert reply["behavior"] == "deny" and "Keep it." in reply["message"]
        assert (await prompt(agent, "mcp__yourturn__add_note", {"text": "x"}))["behavior"] == "allow", "our own tools need no permission"

    run_script(use_tools, **worker_env)
    assert [q["id"] for q in desk.show("PROJ-1")["questions"]] == ["Q1", "Q2"]


def test_late_permission_is_used_once_by_the_next_call(
    desk: Client, worker_env: dict[str, str], run_script: Callable[..., None]
) -> None:
    async def use_tools(agent: Caller) -> None:
        await prompt(agent, "Bash", PUSH, "toolu_1")
        desk.approve("Q1")
        assert (await prompt(agent, "Bash", {"command": "git push -f"}, "toolu_2"))["behavior"] == "deny"
        desk.reject("Q2")
        assert (await prompt(agent, "Bash", PUSH, "toolu_3"))["behavior"] == "allow"
        assert (await prompt(agent, "Bash", PUSH, "toolu_4"))["behavior"] == "deny"
        desk.answer("Q3", {**desk.show("Q3")["action"], "input": {"command": "git push --dry-run"}})
        assert (await prompt(agent, "Bash", {"command": "ls"}, "toolu_5"))["behavior"] == "deny", "edited for another call"
        reply = await prompt(agent, "Bash", PUSH, "toolu_6")
        assert reply == {"behavior": "allow", "updatedInput": {"command": "git push --dry-run"}}

    run_script(use_tools, **worker_env)
    assert [q["used_by"] for q in desk.show("PROJ-1")["questions"]] == ["s/toolu_3", None, "s/toolu_6", None]


def test_permission_prompt_waits_for_an_answer(desk: Client, in_process: Connect) -> None:
    """Without a task, with an edited input; and for the questions of Claude Code."""
    questions = {"questions": [{"question": "Which database?", "options": [{"label": "Postgres"}, {"label": "SQLite"}]}]}

    async def use_tools() -> None:
        async with in_process(YOURTURN_ASK_WAIT="60") as agent:

            async def one(tool: str, worker_env: dict[str, Any], call: str) -> None:
                replies[tool] = await prompt(agent, tool, worker_env, call)

            replies: dict[str, Any] = {}
            async with anyio.create_task_group() as group:
                group.start_soon(one, "Bash", PUSH, "toolu_1")
                group.start_soon(one, "AskUserQuestion", questions, "toolu_2")
                with anyio.fail_after(30):
                    while len(waiting := desk.inbox()) < 2:
                        await anyio.sleep(0.01)
                for q in waiting:
                    if q["action"]:
                        edited = {**q["action"], "input": {"command": "git push --dry-run"}}
                        await anyio.to_thread.run_sync(lambda q=q, edited=edited: desk.answer(q["id"], edited))
                    else:
                        await anyio.to_thread.run_sync(lambda q=q: desk.answer(q["id"], "SQLite"))
            assert replies["Bash"] == {"behavior": "allow", "updatedInput": {"command": "git push --dry-run"}}
            assert replies["AskUserQuestion"]["updatedInput"] == {**questions, "answers": {"Which database?": "SQLite"}}

    anyio.run(use_tools)
    assert {task["state"] for task in desk.list()} == {"done"}


def test_request_permission(desk: Client, worker_env: dict[str, str], run_script: Callable[..., None]) -> None:
    action = {"tool": "deploy", "input": {"to": "production"}, "reason": "The release is tested."}

    async def use_tools(agent: Caller) -> None:
        meta = {"claudecode/toolUseId": "toolu_1"}
        assert data_of(await agent.call_tool("request_permission", action, meta=meta))["status"] == "pending"
        question = desk.show("Q1")
        assert (question["text"], question["action"]["input"]) == ("The release is tested.", {"to": "production"})
        desk.answer("Q1", {**question["action"], "input": {"to": "staging"}}, "Not yet.")
        assert desk.show("Q1")["used_by"] is None
        for tool, arguments in (("get_answer", {"question_id": "Q1"}), ("request_permission", action)):
            result = data_of(await agent.call_tool(tool, arguments, meta=meta))
            assert (result["verdict"], result["value"]["input"], result["text"]) == ("approved", {"to": "staging"}, "Not yet.")
            assert "Do exactly this, once" in result["message"] and '"staging"' in result["message"]
        assert desk.show("Q1")["used_by"] == "s/toolu_1"
        assert (await prompt(agent, "deploy", {"to": "staging"}, "toolu_9"))["behavior"] == "deny", "it is used up"

    run_script(use_tools, **worker_env)


def test_hook_and_tool_share_a_question(
    desk: Client, agent: Client, worker_env: dict[str, str], run_script: Callable[..., None]
) -> None:
    """The hook defers the call; when it is repeated, the tool runs and finds the answer."""
    question = ask(responseType="choice", options=[{"label": "JWT", "value": "jwt"}, {"label": "sessions"}], context={"a": 1})
    payload = {"session_id": "s", "tool_use_id": "toolu_1", "tool_name": "mcp__yourturn__ask_question", "tool_input": question}

    def hook() -> str:
        result = permission_gate.hook(agent, payload, {**worker_env, "YOURTURN_ASK_WAIT": "0"})
        assert result is not None
        return str(result["hookSpecificOutput"]["permissionDecision"])

    async def use_tools(caller: Caller) -> None:
        result = data_of(await caller.call_tool("ask_question", question, meta={"claudecode/toolUseId": "toolu_1"}))
        assert (result["question_id"], result["value"]) == ("Q1", "jwt")

    assert hook() == "defer"
    desk.answer("Q1", "jwt")
    assert hook() == "allow"
    run_script(use_tools, **worker_env)
    assert len(desk.show("PROJ-1")["questions"]) == 1


# --- tasks ----------------------------------------------------------------------------------------------------------


def test_life_of_a_task(desk: Client, run_script: Callable[..., None]) -> None:
    async def use_tools(agent: Caller) -> None:
        result = data_of(await agent.call_tool("next_task", {}))
        assert "There is nothing to work on" in result["message"] and result["task"] is None
        assert "Which task?" in await refused(agent, "add_note", {"text": "?"})
        desk.create("Add login", acceptance="One can log in.")
        desk.note("PROJ-1", "Look at the old one.")
        result = data_of(await agent.call_tool("next_task", {"project": "PROJ"}))
        assert result["task"]["key"] == "PROJ-1" and result["task"]["notes"][0]["text"] == "Look at the old one."
        assert "One can log in." in result["message"] and "Look at the old one." in result["message"]
        data_of(await agent.call_tool("report_progress", {"message": "The form is there.", "percent": 50}))
        result = data_of(await agent.call_tool("get_task", {}))
        assert result["task"]["notes"][-1]["text"] == "Progress (50 %): The form is there."
        result = data_of(
            await agent.call_tool("complete_task", {"task": "1", "summary": "Login.", "details": "JWT", "issues": ["slow"]})
        )
        assert (result["task"], result["state"]) == ("PROJ-1", "done")
        assert "Which task?" in await refused(agent, "complete_task", {"summary": "Again."})

    run_script(use_tools)
    assert desk.show("PROJ-1")["summary"] == "Login."
    assert desk.show("PROJ-1")["notes"][-1]["text"] == "JWT\n\nIssues:\n- slow"
    assert [event["actor"] for event in desk.history("PROJ-1") if event["action"] == "complete"] == ["agent:claude-code"]


def test_flag_decompose_and_release(desk: Client, run_script: Callable[..., None]) -> None:
    async def use_tools(agent: Caller) -> None:
        for title in ("One", "Two", "Three"):
            desk.create(title)
            data_of(await agent.call_tool("next_task", {}))
        result = data_of(await agent.call_tool("flag_task", {"text": "Which of them?", "kind": "input", "reason": "decision_needed"}))
        assert (result["task"], result["state"], result["awaiting"]) == ("PROJ-3", "human", "input")
        result = data_of(
            await agent.call_tool("decompose_task", {"children": [{"title": "A"}, {"title": "B", "depends_on": ["PROJ-3"]}]})
        )
        assert (result["task"], result["state"]) == ("PROJ-2", "blocked")
        result = data_of(await agent.call_tool("release_task", {"reason": "The API is down."}))
        assert (result["task"], result["state"]) == ("PROJ-1", "ready")

    run_script(use_tools)
    assert desk.show("PROJ-1")["retry_count"] == 1
    assert [task["parent"] for task in desk.list()][3:] == ["PROJ-2", "PROJ-2"]
    assert all(task["claim"] is None for task in desk.list())


def test_session_of_a_worker_claims_no_other_task(desk: Client, worker_env: dict[str, str], run_script: Callable[..., None]) -> None:
    desk.create("Another")

    async def use_tools(agent: Caller) -> None:
        assert "started for PROJ-1" in await refused(agent, "next_task", {})

    run_script(use_tools, **worker_env)
    assert desk.show("PROJ-2")["state"] == "ready"


def test_cancelled_task_is_refused(desk: Client, clock: FakeClock, run_script: Callable[..., None]) -> None:
    async def use_tools(agent: Caller) -> None:
        data_of(await agent.call_tool("next_task", {}))
        desk.cancel("PROJ-1")
        assert "Cannot complete PROJ-1" in await refused(agent, "complete_task", {"summary": "Done."})

    desk.create("Add login")
    run_script(use_tools)


# --- errors and limits ----------------------------------------------------------------------------------------------


WRONG = [
    ("ask_question", {}, "needs question"),
    ("ask_question", ask(type="rhetorical"), "Choose one of: blocking, non_blocking, approval, error_recovery"),
    ("ask_question", ask(responseType="number"), "Choose one of: text, choice, boolean, approval"),
    ("ask_question", ask(timeout=5), "takes no 'timeout'"),
    ("ask_question", ask("  "), "must not be empty"),
    ("ask_question", ask(timeoutMinutes="soon"), "must be a number"),
    ("ask_question", ask(timeoutMinutes=1), "between 5 min and 24 h"),
    ("ask_question", ask(timeoutMinutes=1e300), "length of time"),
    ("ask_question", ask(responseType="choice"), "A choice needs options"),
    ("ask_question", ask(options=["jwt"]), "options 1 must be an object"),
    ("ask_question", ask(type="non_blocking"), "needs a default"),
    ("ask_question", ask(type="approval", responseType="approval", defaultResponse={"value": True}), "takes no default"),
    ("ask_question", ask(task="PROJ-99"), "There is no task PROJ-99"),
    ("ask_question", ask("\ud800"), "UTF-8"),
    ("get_answer", {"question_id": "Q99"}, "There is no question Q99"),
    ("get_answer", {"question_id": "PROJ-1"}, "There is no question PROJ-1"),
    ("get_answer", {"question_id": "Q1", "wait_seconds": 900}, "from 0 to 240"),
    ("get_task", {"task": "PROJ-99"}, "There is no task PROJ-99"),
    ("request_permission", {"tool": "x"}, "needs input"),
    ("report_progress", {"message": "x", "percent": True}, "must be a number"),
    ("next_task", {"epic": "PROJ-99"}, "There is no task PROJ-99"),
    ("next_task", {"project": "NOPE"}, "There is no project NOPE"),
    ("complete_task", {"task": "PROJ-1", "summary": "x"}, "Cannot complete PROJ-1"),
    ("flag_task", {"task": "PROJ-1", "text": "x", "kind": "permission"}, "Choose one of"),
    ("decompose_task", {"task": "PROJ-1", "children": []}, "must not be empty"),
    ("decompose_task", {"task": "PROJ-1", "children": [{"title": "A", "max_retries": 50}]}, "takes no 'max_retries'"),
    ("release_task", {"task": "PROJ-1", "reason": "x"}, "Cannot release PROJ-1"),
    ("answer_question", {"question_id": "Q1", "value": "yes"}, "There is no tool 'answer_question'"),
]  # fmt: skip


def test_claim_that_an_answer_ended_is_not_named_as_held(desk: Client, run_script: Callable[..., None]) -> None:
    async def use_tools(agent: Caller) -> None:
        desk.create("Delete old rows")
        desk.create("Add login")
        await agent.call_tool("next_task", {})
        await agent.call_tool("ask_question", ask("Delete?", responseType="approval"))
        desk.reject("Q1", "keep them")
        shown = data_of(await agent.call_tool("get_task", {"task": "PROJ-1"}))
        assert shown["message"].startswith("PROJ-1 is 'cancelled': it was abandoned.")
        assert "You also hold" not in data_of(await agent.call_tool("next_task", {}))["message"]

    run_script(use_tools)


def test_next_task_names_no_lost_claim(desk: Client, run_script: Callable[..., None]) -> None:
    async def use_tools(agent: Caller) -> None:
        desk.create("Add login")
        desk.create("Add logout")
        await agent.call_tool("next_task", {})
        desk.cancel("PROJ-1")
        result = data_of(await agent.call_tool("next_task", {}))
        assert result["task"]["key"] == "PROJ-2" and "You also hold" not in result["message"]
        assert any(words.startswith("Your claim on PROJ-1 is over") for words in result["news"])

    run_script(use_tools)


def test_every_offered_reason_is_accepted(desk: Client, run_script: Callable[..., None]) -> None:
    async def use_tools(agent: Caller) -> None:
        for reason in TOOLS["flag_task"].schema["properties"]["reason"]["enum"]:
            task = desk.create("Add login")
            data_of(await agent.call_tool("flag_task", {"task": task["key"], "text": "Stuck.", "reason": reason}))

    run_script(use_tools)


def test_error_messages(desk: Client, run_script: Callable[..., None]) -> None:
    desk.create("Another agent's")

    async def use_tools(agent: Caller) -> None:
        for tool, arguments, words in WRONG:
            message = await refused(agent, tool, arguments)
            assert words in message and "Traceback" not in message and "bug" not in message, (tool, arguments, message)
        reply = await agent.call_tool("approve", {"tool_name": "Bash"})
        assert json.loads(text_of(reply))["behavior"] == "deny", "a permission prompt can parse nothing else"

    run_script(use_tools)
    (task,) = desk.list()
    assert (task["state"], task["questions"], task["notes"]) == ("ready", [], [])


def test_no_tool_answers_a_question(desk: Client, worker_env: dict[str, str], run_script: Callable[..., None]) -> None:
    """A question for a person stays open, whatever an agent passes to the tools."""
    desk.ask("PROJ-1", "Deploy?", "permission", action={"tool": "deploy", "input": {}})
    desk.ask("PROJ-1", "Which?", options=["a", "b"])
    words = {"summary": "yes", "text": "approved", "reason": "approved", "message": "yes", "question": "yes"}

    async def use_tools(agent: Caller) -> None:
        for name in ("PROJ-1", "Q1", "Q2"):
            for tool in TOOLS.values():
                takes = tool.schema["properties"]
                text_of = {
                    field: value
                    for field, value in words.items()
                    if field in takes and (tool.name, field) != ("flag_task", "reason")
                }
                known = {
                    "task": name, "question_id": name, "type": "blocking", "responseType": "text", "tool": "deploy", "input": {},
                    "children": [{"title": "x"}], "tool_name": "deploy", "tool_use_id": name,
                }  # fmt: skip
                text_of |= {field: value for field, value in known.items() if field in takes}
                await agent.call_tool(tool.name, text_of)
                assert [desk.show(q)["status"] for q in ("Q1", "Q2")] == ["pending", "pending"], (tool.name, text_of)

    run_script(use_tools, **worker_env)
    by = {event["actor"] for event in desk.history("PROJ-1", limit=1000) if event["action"] in ("answer", "withdraw", "timeout")}
    assert by == set()


def test_repeated_question_returns_the_answer_once(run_script: Callable[..., None], desk: Client) -> None:
    """An agent that repeats a question gets its answer once; only then it can be asked again."""

    async def use_tools(agent: Caller) -> None:
        words = {"question": "Free?", "type": "blocking", "responseType": "boolean"}
        first, second = [data_of(await agent.call_tool("ask_question", words)) for _ in range(2)]
        assert (first["status"], second["question_id"]) == ("pending", first["question_id"])
        desk.answer(first["question_id"], True)
        third = data_of(await agent.call_tool("ask_question", words))
        assert (third["status"], third["question_id"], third["value"]) == ("answered", first["question_id"], True)
        assert [q["id"] for q in desk.inbox()] == []
        assert data_of(await agent.call_tool("ask_question", words))["question_id"] != first["question_id"]

    run_script(use_tools, YOURTURN_ASK_WAIT="0")


# --- rate limits ------------------------------------------------------------------------------------------------------


def test_rate_limit_without_a_task_leaves_no_task(desk: Client, run_script: Callable[..., None]) -> None:
    desk.set("question_rate_actor", 3)

    async def use_tools(agent: Caller) -> None:
        for at in range(3):
            data_of(await agent.call_tool("ask_question", ask(f"Which, {at}?")))
        assert "asks too many questions" in await refused(agent, "ask_question", ask("Which, at last?"))

    run_script(use_tools)
    assert len(desk.list()) == len(desk.inbox()) == 3

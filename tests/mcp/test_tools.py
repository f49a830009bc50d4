"""What each tool says to the desk, what it tells the agent, and what none of them can do."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from mcp import Client as Caller

from tests.mcp.conftest import Caught, ask, said, told
from yourturn.client import Client
from yourturn.core.rules import KINDS
from yourturn.mcp.session import agent_name
from yourturn.mcp.tool_schemas import INSTRUCTIONS, TOOLS
from yourturn.testing import FakeClock
from yourturn.worker.claude import permission_gate
from yourturn.worker.claude.hook_question import ask_wait

Story = Callable[[Caller], Awaitable[None]]


@pytest.fixture
def play(inside: Caught) -> Callable[..., None]:
    """play(story, YOURTURN_TASK=…): run a story with a client."""

    def run(story: Story, **how: Any) -> None:
        async def all_of_it() -> None:
            async with inside(**how) as agent:
                await story(agent)

        anyio.run(all_of_it)

    return run


@pytest.fixture
def given(desk: Client, agent: Client) -> dict[str, str]:
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
    found = await agent.call_tool(tool, arguments)
    assert found.is_error, said(found)
    assert set(found.structured_content["error"]) == {"code", "message", "hint"}
    return said(found)


# --- the catalogue --------------------------------------------------------------------------------------------------


def test_the_schema_of_ask_question() -> None:
    """Other programs rely on it."""
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


def test_the_words_teach() -> None:
    for text in (INSTRUCTIONS, TOOLS["ask_question"].description):
        assert "assume" in text.lower() and "end your turn" in text.lower() and "resumed with the answer" in text.lower()
    for tool in TOOLS.values():
        assert len(tool.description) > 60 and tool.schema["type"] == "object"
    assert all(f"`{kind}`" in TOOLS["flag_task"].description for kind in KINDS if KINDS[kind].signals)


def test_the_list_and_the_instructions(play: Callable[..., None]) -> None:
    async def story(agent: Caller) -> None:
        found = {tool.name: tool for tool in (await agent.list_tools()).tools}
        assert list(found) == list(TOOLS)
        assert all(found[name].input_schema == tool.schema for name, tool in TOOLS.items())
        assert [name for name, tool in found.items() if tool.annotations.read_only_hint] == ["get_answer", "get_task"]
        assert agent.instructions == INSTRUCTIONS

    play(story)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(None, 45), ("", 45), ("0", 0), ("7.5", 7.5), ("-3", 0), ("900", 240), ("soon", 45), ("nan", 45), ("inf", 240)],
)
def test_how_long_it_waits(text: str | None, seconds: float) -> None:
    assert ask_wait({} if text is None else {"YOURTURN_ASK_WAIT": text}) == seconds


def test_who_it_is() -> None:
    assert agent_name("claude-code", {"YOURTURN_AGENT": "coder"}) == "coder"
    assert agent_name("Claude Code (nightly)", {}) == "Claude-Code-nightly"
    assert agent_name("../../x", {}) == "x"
    assert agent_name("", {}) == agent_name(None, {}) == agent_name("::", {}) == "mcp"


# --- asking ---------------------------------------------------------------------------------------------------------


def test_a_question_without_a_task_gets_one_that_ends_with_the_answer(desk: Client, play: Callable[..., None]) -> None:
    async def story(agent: Caller) -> None:
        found = told(await agent.call_tool("ask_question", ask("Which colour?\nFor the button.")))
        assert (found["status"], found["task"]) == ("pending", "PROJ-1")
        task = desk.show("PROJ-1")
        assert (task["title"], task["state"]) == ("claude-code asks: Which colour? For the button.", "human")
        assert task["claim"] is not None, "no worker takes it while this session lasts"
        assert desk.claim_next("w1") is None
        desk.answer("Q1", "green")
        assert desk.claim_next("w1") is None
        found = told(await agent.call_tool("get_answer", {"question_id": "Q1"}))
        assert (found["status"], found["value"], found["answered_by"]) == ("answered", "green", "human:ana")
        assert desk.show("PROJ-1")["state"] == "done"

    play(story)


def test_a_no_is_told_as_a_no(desk: Client, play: Callable[..., None]) -> None:
    async def story(agent: Caller) -> None:
        for word, verdict in (("no", "rejected"), ("yes", "approved")):
            asked = told(await agent.call_tool("ask_question", ask("Delete the old table?", responseType="boolean")))
            desk.answer(asked["question_id"], word)
            found = told(await agent.call_tool("get_answer", {"question_id": asked["question_id"]}))
            assert (found["value"], found["verdict"]) == (word == "yes", verdict) and word in found["message"]

    play(story)


def test_two_questions_without_a_task_do_not_meet(desk: Client, play: Callable[..., None]) -> None:
    async def story(agent: Caller) -> None:
        one, two = [told(await agent.call_tool("ask_question", ask(text))) for text in ("One?", "Two?")]
        assert one["task"] != two["task"]
        desk.reject(one["question_id"], "Never mind.")
        found = told(await agent.call_tool("get_answer", {"question_id": one["question_id"]}))
        assert (found["verdict"], found["text"]) == ("rejected", "Never mind.")
        assert "said no" in found["message"] and "Do not do it" in found["message"]
        assert told(await agent.call_tool("get_answer", {"question_id": two["question_id"]}))["status"] == "pending"

    play(story)
    assert [task["state"] for task in desk.list()] == ["cancelled", "human"]
    assert desk.show("PROJ-2")["claim"] is None


def test_what_a_session_leaves_unanswered_goes_on_without_it(desk: Client, agent: Client, play: Callable[..., None]) -> None:
    async def story(caller: Caller) -> None:
        told(await caller.call_tool("ask_question", ask()))
        told(await caller.call_tool("ask_question", ask("Verbose?", type="non_blocking", defaultResponse={"value": "no"})))

    play(story)
    assert {task["key"]: (task["state"], task["retry_count"]) for task in desk.list()} == {
        "PROJ-1": ("human", 0),
        "PROJ-2": ("done", 0),
    }
    desk.answer("Q1", "jwt")
    got = agent.claim_next("w1")
    assert got is not None and agent.show(got["task"])["questions"][0]["response"]["value"] == "jwt"


def test_the_next_task_comes_with_its_notes_and_answers(desk: Client, play: Callable[..., None]) -> None:
    key = desk.create("Add login")["key"]
    desk.note(key, "The form is in forms/login.html.")
    desk.await_person(key, "input", "JWT or sessions?")
    desk.answer(key, "jwt")

    async def story(caller: Caller) -> None:
        found = told(await caller.call_tool("next_task", {}))
        assert [note["text"] for note in found["task"]["notes"]] == ["The form is in forms/login.html."]
        assert [q["value"] for q in found["task"]["questions"]] == ["jwt"]
        assert "forms/login.html" in found["message"] and "jwt" in found["message"]
        first = told(await caller.call_tool("report_progress", {"message": "Half of it"}))
        for _ in range(20):
            desk.note(key, "More")
        assert told(await caller.call_tool("report_progress", {"message": "Half of it"})) == first

    play(story)


def test_an_answer_that_nobody_heard_is_not_lost(desk: Client, agent: Client, play: Callable[..., None]) -> None:
    async def story(caller: Caller) -> None:
        told(await caller.call_tool("ask_question", ask()))
        desk.answer("Q1", "jwt")

    play(story)
    got = agent.claim_next("w1")
    assert got is not None and got["task"]["retry_count"] == 0
    assert agent.show(got["task"])["questions"][0]["response"]["value"] == "jwt"


def test_the_same_call_asks_once(desk: Client, play: Callable[..., None]) -> None:
    """Without a task too, and after another session."""
    meta = {"threadId": "t", "callId": "c1"}

    async def first(agent: Caller) -> None:
        assert told(await agent.call_tool("ask_question", ask(), meta=meta))["status"] == "pending"
        assert told(await agent.call_tool("ask_question", ask(), meta=meta))["question_id"] == "Q1"
        assert told(await agent.call_tool("ask_question", ask(), meta={**meta, "threadId": "u"}))["question_id"] == "Q2"

    async def second(agent: Caller) -> None:
        found = told(await agent.call_tool("ask_question", ask(), meta=meta))
        assert (found["status"], found["question_id"], found["value"]) == ("answered", "Q1", "jwt")

    play(first)
    desk.answer("Q1", "jwt")
    play(second)
    assert desk.show("PROJ-1")["state"] == "done"


def test_a_task_that_was_claimed_elsewhere_keeps_its_claim(
    desk: Client, given: dict[str, str], play: Callable[..., None]
) -> None:
    async def story(agent: Caller) -> None:
        told(await agent.call_tool("ask_question", ask(context={"currentStep": "login"}, timeoutMinutes=60)))
        desk.answer("Q1", "jwt")
        assert desk.show("PROJ-1")["state"] == "working"

    play(story, **given)
    task = desk.show("PROJ-1")
    assert task["claim"] is not None, "it is the worker's to park"
    assert task["questions"][0]["context"] == {"currentStep": "login"}


def test_a_lost_claim_can_ask_nothing(desk: Client, given: dict[str, str], clock: FakeClock, play: Callable[..., None]) -> None:
    async def story(agent: Caller) -> None:
        assert "claim is lost" in await refused(agent, "ask_question", ask())
        assert "claim is lost" in await refused(agent, "complete_task", {"summary": "done"})

    clock.advance(hours=2)
    play(story, **given)
    assert desk.show("PROJ-1")["questions"] == []


def test_a_non_blocking_question_goes_on_and_is_told_of_later(
    desk: Client, given: dict[str, str], play: Callable[..., None]
) -> None:
    async def story(agent: Caller) -> None:
        question = ask(
            "Verbose logs?", type="non_blocking", responseType="boolean", defaultResponse={"type": "boolean", "value": False}
        )
        found = told(await agent.call_tool("ask_question", question))
        assert (found["status"], found["value"], found["assumed"]) == ("pending", False, True)
        assert "Go on with false" in found["message"] and "End your turn" not in found["message"]
        assert desk.show("PROJ-1")["state"] == "working"
        desk.answer("Q1", "yes")
        late = await agent.call_tool("add_note", {"text": "Half way."})
        assert late.structured_content["news"] == ["Meanwhile: ana said yes to Q1."] and "said yes to Q1" in said(late)
        assert late.structured_content["told"] == ["Q1"], "for the worker, who need not tell it again"
        assert "news" not in (await agent.call_tool("add_note", {"text": "Nearly."})).structured_content

    play(story, YOURTURN_ASK_WAIT="100", **{name: value for name, value in given.items() if name != "YOURTURN_ASK_WAIT"})


def test_silence_is_told_as_such(desk: Client, given: dict[str, str], clock: FakeClock, play: Callable[..., None]) -> None:
    async def story(agent: Caller) -> None:
        told(await agent.call_tool("ask_question", ask(timeoutMinutes=10, defaultResponse={"type": "text", "value": "jwt"})))
        clock.advance(minutes=11)
        found = told(await agent.call_tool("get_answer", {"question_id": "Q1"}))
        assert (found["status"], found["value"], found["verdict"], found["assumed"]) == ("timeout", "jwt", None, True)
        assert found["answered_by"] is None and "neither a yes nor a no" in found["message"] and '"jwt"' in found["message"]
        told(await agent.call_tool("ask_question", ask("Delete it?", type="approval", responseType="approval")))
        clock.advance(minutes=16)
        found = told(await agent.call_tool("get_answer", {"question_id": "Q2"}))
        assert (found["status"], found["value"], found["assumed"]) == ("timeout", None, False)
        assert "Do not do what you asked about" in found["message"]

    play(story, **given)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_it_says_that_it_is_alive(desk: Client, inside: Caught, mode: str) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))
        if len(heard) == 4:
            await anyio.to_thread.run_sync(lambda: desk.answer("Q1", "jwt"))

    async def story() -> None:
        async with inside(mode, pulse=0.05, YOURTURN_ASK_WAIT="30") as agent:
            found = told(await agent.call_tool("ask_question", ask(), progress_callback=note))
            assert found["status"] == "answered"

    anyio.run(story)
    assert [message for _, _, message in heard][:2] == [
        "Q1: a person is asked, waiting for the answer.", "Q1: still waiting for a person, 0 of 30 s.",
    ]  # fmt: skip
    assert [progress for progress, _, _ in heard] == sorted({progress for progress, _, _ in heard}), "it only grows"


# --- permissions ----------------------------------------------------------------------------------------------------


async def prompt(agent: Caller, tool: str, given: dict[str, Any], call: str = "toolu_1") -> dict[str, Any]:
    arguments = {"tool_name": tool, "input": given, "tool_use_id": call, "something": "new"}
    found = await agent.call_tool("approve", arguments, meta={"claudecode/toolUseId": "toolu_prompt"})
    assert not found.is_error and found.structured_content is None
    reply: dict[str, Any] = json.loads(said(found))
    return reply


PUSH = {"command": "git push"}


def test_the_permission_prompt(desk: Client, given: dict[str, str], play: Callable[..., None]) -> None:
    async def story(agent: Caller) -> None:
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
        assert (await prompt(agent, "mcp__yourturn__add_note", {"text": "x"}))["behavior"] == "allow", "nobody is bothered"

    play(story, **given)
    assert [q["id"] for q in desk.show("PROJ-1")["questions"]] == ["Q1", "Q2"]


def test_a_permission_that_came_after_the_call_serves_the_next_one_once(
    desk: Client, given: dict[str, str], play: Callable[..., None]
) -> None:
    async def story(agent: Caller) -> None:
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

    play(story, **given)
    assert [q["used_by"] for q in desk.show("PROJ-1")["questions"]] == ["s/toolu_3", None, "s/toolu_6", None]


def test_the_prompt_waits_for_a_quick_person(desk: Client, inside: Caught) -> None:
    """Outside any task, with an edited input; and the questions of Claude Code come through it too."""
    questions = {"questions": [{"question": "Which database?", "options": [{"label": "Postgres"}, {"label": "SQLite"}]}]}

    async def story() -> None:
        async with inside(YOURTURN_ASK_WAIT="60") as agent:

            async def one(tool: str, given: dict[str, Any], call: str) -> None:
                replies[tool] = await prompt(agent, tool, given, call)

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

    anyio.run(story)
    assert {task["state"] for task in desk.list()} == {"done"}


def test_a_permission_that_the_agent_asks_for(desk: Client, given: dict[str, str], play: Callable[..., None]) -> None:
    action = {"tool": "deploy", "input": {"to": "production"}, "reason": "The release is tested."}

    async def story(agent: Caller) -> None:
        meta = {"claudecode/toolUseId": "toolu_1"}
        assert told(await agent.call_tool("request_permission", action, meta=meta))["status"] == "pending"
        question = desk.show("Q1")
        assert (question["text"], question["action"]["input"]) == ("The release is tested.", {"to": "production"})
        desk.answer("Q1", {**question["action"], "input": {"to": "staging"}}, "Not yet.")
        assert desk.show("Q1")["used_by"] is None
        for tool, arguments in (("get_answer", {"question_id": "Q1"}), ("request_permission", action)):
            found = told(await agent.call_tool(tool, arguments, meta=meta))
            assert (found["verdict"], found["value"]["input"], found["text"]) == ("approved", {"to": "staging"}, "Not yet.")
            assert "Do exactly this, once" in found["message"] and '"staging"' in found["message"]
        assert desk.show("Q1")["used_by"] == "s/toolu_1"
        assert (await prompt(agent, "deploy", {"to": "staging"}, "toolu_9"))["behavior"] == "deny", "it has served"

    play(story, **given)


def test_the_hook_and_the_tool_ask_the_same_question(
    desk: Client, agent: Client, given: dict[str, str], play: Callable[..., None]
) -> None:
    """The hook parks the call; when it is made again, the tool runs and finds what was answered."""
    question = ask(responseType="choice", options=[{"label": "JWT", "value": "jwt"}, {"label": "sessions"}], context={"a": 1})
    payload = {"session_id": "s", "tool_use_id": "toolu_1", "tool_name": "mcp__yourturn__ask_question", "tool_input": question}

    def hook() -> str:
        found = permission_gate.hook(agent, payload, {**given, "YOURTURN_ASK_WAIT": "0"})
        assert found is not None
        return str(found["hookSpecificOutput"]["permissionDecision"])

    async def story(caller: Caller) -> None:
        found = told(await caller.call_tool("ask_question", question, meta={"claudecode/toolUseId": "toolu_1"}))
        assert (found["question_id"], found["value"]) == ("Q1", "jwt")

    assert hook() == "defer"
    desk.answer("Q1", "jwt")
    assert hook() == "allow"
    play(story, **given)
    assert len(desk.show("PROJ-1")["questions"]) == 1


# --- tasks ----------------------------------------------------------------------------------------------------------


def test_a_task_from_beginning_to_end(desk: Client, play: Callable[..., None]) -> None:
    async def story(agent: Caller) -> None:
        found = told(await agent.call_tool("next_task", {}))
        assert "There is nothing to work on" in found["message"] and found["task"] is None
        assert "Which task?" in await refused(agent, "add_note", {"text": "?"})
        desk.create("Add login", acceptance="One can log in.")
        desk.note("PROJ-1", "Look at the old one.")
        found = told(await agent.call_tool("next_task", {"project": "PROJ"}))
        assert found["task"]["key"] == "PROJ-1" and found["task"]["notes"][0]["text"] == "Look at the old one."
        assert "One can log in." in found["message"] and "Look at the old one." in found["message"]
        told(await agent.call_tool("report_progress", {"message": "The form is there.", "percent": 50}))
        found = told(await agent.call_tool("get_task", {}))
        assert found["task"]["notes"][-1]["text"] == "Progress (50 %): The form is there."
        found = told(
            await agent.call_tool("complete_task", {"task": "1", "summary": "Login.", "details": "JWT", "issues": ["slow"]})
        )
        assert (found["task"], found["state"]) == ("PROJ-1", "done")
        assert "Which task?" in await refused(agent, "complete_task", {"summary": "Again."})

    play(story)
    assert desk.show("PROJ-1")["summary"] == "Login."
    assert desk.show("PROJ-1")["notes"][-1]["text"] == "JWT\n\nIssues:\n- slow"
    assert [event["actor"] for event in desk.history("PROJ-1") if event["action"] == "complete"] == ["agent:claude-code"]


def test_the_other_ways_out(desk: Client, play: Callable[..., None]) -> None:
    async def story(agent: Caller) -> None:
        for title in ("One", "Two", "Three"):
            desk.create(title)
            told(await agent.call_tool("next_task", {}))
        found = told(await agent.call_tool("flag_task", {"text": "Which of them?", "kind": "input", "reason": "decision_needed"}))
        assert (found["task"], found["state"], found["awaiting"]) == ("PROJ-3", "human", "input")
        found = told(
            await agent.call_tool("decompose_task", {"children": [{"title": "A"}, {"title": "B", "depends_on": ["PROJ-3"]}]})
        )
        assert (found["task"], found["state"]) == ("PROJ-2", "blocked")
        found = told(await agent.call_tool("release_task", {"reason": "The API is down."}))
        assert (found["task"], found["state"]) == ("PROJ-1", "ready")

    play(story)
    assert desk.show("PROJ-1")["retry_count"] == 1
    assert [task["parent"] for task in desk.list()][3:] == ["PROJ-2", "PROJ-2"]
    assert all(task["claim"] is None for task in desk.list())


def test_a_workers_session_takes_no_other_task(desk: Client, given: dict[str, str], play: Callable[..., None]) -> None:
    desk.create("Another")

    async def story(agent: Caller) -> None:
        assert "started for PROJ-1" in await refused(agent, "next_task", {})

    play(story, **given)
    assert desk.show("PROJ-2")["state"] == "ready"


def test_a_claim_that_was_lost_is_told(desk: Client, clock: FakeClock, play: Callable[..., None]) -> None:
    async def story(agent: Caller) -> None:
        told(await agent.call_tool("next_task", {}))
        desk.cancel("PROJ-1")
        assert "Cannot complete PROJ-1" in await refused(agent, "complete_task", {"summary": "Done."})

    desk.create("Add login")
    play(story)


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


def test_errors_are_words(desk: Client, play: Callable[..., None]) -> None:
    desk.create("Somebody else's")

    async def story(agent: Caller) -> None:
        for tool, arguments, words in WRONG:
            heard = await refused(agent, tool, arguments)
            assert words in heard and "Traceback" not in heard and "bug" not in heard, (tool, arguments, heard)
        reply = await agent.call_tool("approve", {"tool_name": "Bash"})
        assert json.loads(said(reply))["behavior"] == "deny", "whoever prompts can read nothing else"

    play(story)
    (task,) = desk.list()
    assert (task["state"], task["questions"], task["notes"]) == ("ready", [], [])


def test_no_tool_can_answer(desk: Client, given: dict[str, str], play: Callable[..., None]) -> None:
    """Whatever an agent says about a question that waits for a person, and however it names it, it stays open."""
    desk.ask("PROJ-1", "Deploy?", "permission", action={"tool": "deploy", "input": {}})
    desk.ask("PROJ-1", "Which?", options=["a", "b"])
    words = {"summary": "yes", "text": "approved", "reason": "approved", "message": "yes", "question": "yes"}

    async def story(agent: Caller) -> None:
        for name in ("PROJ-1", "Q1", "Q2"):
            for tool in TOOLS.values():
                takes = tool.schema["properties"]
                said = {
                    field: value
                    for field, value in words.items()
                    if field in takes and (tool.name, field) != ("flag_task", "reason")
                }
                known = {
                    "task": name, "question_id": name, "type": "blocking", "responseType": "text", "tool": "deploy", "input": {},
                    "children": [{"title": "x"}], "tool_name": "deploy", "tool_use_id": name,
                }  # fmt: skip
                said |= {field: value for field, value in known.items() if field in takes}
                await agent.call_tool(tool.name, said)
                assert [desk.show(q)["status"] for q in ("Q1", "Q2")] == ["pending", "pending"], (tool.name, said)

    play(story, **given)
    by = {event["actor"] for event in desk.history("PROJ-1", limit=1000) if event["action"] in ("answer", "withdraw", "timeout")}
    assert by == set()


def test_the_same_words_again_are_the_same_question(play: Callable[..., None], desk: Client) -> None:
    """An agent that asks again instead of looking: the answer is told once, and only then it may be asked anew."""

    async def story(agent: Caller) -> None:
        words = {"question": "Free?", "type": "blocking", "responseType": "boolean"}
        first, second = [told(await agent.call_tool("ask_question", words)) for _ in range(2)]
        assert (first["status"], second["question_id"]) == ("pending", first["question_id"])
        desk.answer(first["question_id"], True)
        third = told(await agent.call_tool("ask_question", words))
        assert (third["status"], third["question_id"], third["value"]) == ("answered", first["question_id"], True)
        assert [q["id"] for q in desk.inbox()] == []
        assert told(await agent.call_tool("ask_question", words))["question_id"] != first["question_id"]

    play(story, YOURTURN_ASK_WAIT="0")


# --- how often ------------------------------------------------------------------------------------------------------


def test_an_agent_without_a_task_asks_only_so_often_and_leaves_no_task_behind(desk: Client, play: Callable[..., None]) -> None:
    desk.set("question_rate_actor", 3)

    async def story(agent: Caller) -> None:
        for at in range(3):
            told(await agent.call_tool("ask_question", ask(f"Which, {at}?")))
        assert "asks too many questions" in await refused(agent, "ask_question", ask("Which, at last?"))

    play(story)
    assert len(desk.list()) == len(desk.inbox()) == 3

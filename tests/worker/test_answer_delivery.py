"""Answers reach the session that asked: none is lost, and none is repeated without a failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.worker.test_run_session import Flow
from tests.worker.workshop import DONE, Doubles, until
from yourturn.worker.agents import Agent

END = {"text": DONE}
DROP = {"text": "<promise>INPUT_NEEDED: May I drop the table?</promise>"}
WAIT = 'touch "$SHOP/at"; until [ -e "$SHOP/go" ]; do sleep 0.02; done'
#: The program starts, and has not read its prompt yet.
SLOW = f'if [ -e "$SHOP/slow" ]; then {WAIT}; fi'
#: How each program calls our tools, and a shell.
TOOL: dict[str, Callable[[str, dict[str, Any]], dict[str, Any]]] = {
    "claude": lambda name, given: {"tool": f"mcp__yourturn__{name}", "input": given},
    "codex": lambda name, given: {"mcp": ["yourturn", name, given]},
}
SHELL: dict[str, Callable[[str], dict[str, Any]]] = {
    "claude": lambda command: {"tool": "Bash", "input": {"command": command}},
    "codex": lambda command: {"command": command},
}
PORT = {"question": "Which port?", "type": "blocking", "responseType": "text"}
LOUD = {
    "question": "Verbose?", "type": "non_blocking", "responseType": "boolean", "defaultResponse": {"value": True},
}  # fmt: skip
PERMISSION = {"tool": "shell", "input": {"command": "rm -rf x"}, "reason": "May I remove x?"}
NO = "Answer to Q1 (asked: May I drop the table?): no, never drop it"

both = pytest.mark.parametrize("adapter", ["claude", "codex"])


@pytest.fixture
def shop(address: str, tmp_path: Path) -> Iterator[Doubles]:
    found = Doubles(tmp_path, address)
    yield found
    found.close()


@pytest.fixture
def lone(new_desk: Callable[[str], str], tmp_path: Path) -> Iterator[Flow]:
    """On SQLite only: these tests do not depend on the database."""
    found = Flow(tmp_path, new_desk("sqlite"))
    yield found
    found.close()


def touch(shop: Doubles, name: str, there: bool = True) -> None:
    path = shop.folder / name
    path.touch() if there else path.unlink()


def stopped_before_it_reads(shop: Doubles, agent: Agent, **more: Any) -> None:
    """`turn work`, stopped with Ctrl+C while the program starts."""
    touch(shop, "slow")
    with shop.draining(agent, **more) as worker:
        until(lambda: (shop.folder / "at").exists(), "the program's start")
        worker.stop()
    assert [result.what for _, result in worker.results] == ["stopped"]
    touch(shop, "slow", there=False)


# --- 1: the program has not read its prompt -----------------------------------------------------------------------------


@both
def test_unread_answer_is_sent_by_the_next_worker(lone: Flow, adapter: str) -> None:
    agent = lone.plays(adapter, DROP, END, before=SLOW)
    key = lone.task()
    assert lone.drain(agent) == [(key, "waiting")]
    lone.desk.respond(key, "no, never drop it")
    stopped_before_it_reads(lone, agent)
    assert lone.drain(agent) == [(key, "done")]
    assert lone.heard().count(NO) == 1


@pytest.mark.parametrize("dies", ["kill -9 $$", "echo 'error loading config.toml' >&2; exit 1"])
@both
def test_answer_survives_a_program_that_does_not_start(lone: Flow, adapter: str, dies: str) -> None:
    agent = lone.plays(adapter, DROP, END, before=f'if [ -e "$SHOP/broken" ]; then rm "$SHOP/broken"; {dies}; fi')
    key = lone.task()
    assert lone.drain(agent) == [(key, "waiting")]
    lone.desk.respond(key, "no, never drop it")
    touch(lone, "broken")
    assert lone.drain(agent) == [(key, "released"), (key, "done")]
    assert lone.heard().count(NO) == 1


def test_unread_answer_is_sent_to_a_step_of_a_run(lone: Flow) -> None:
    agent = lone.plays("claude", DROP, END, before=SLOW)
    key = lone.begin('run("coder")')
    assert lone.go_on(agent)[0] == "waiting"
    lone.desk.respond(key, "no, never drop it")
    stopped_before_it_reads(lone, agent)
    assert lone.go_on(agent)[0] == "done"
    assert lone.heard().count(NO) == 1


@pytest.mark.parametrize("trouble", [{"crash": "SIGKILL"}, {"api_error": 529}])
def test_read_answer_is_not_repeated_after_a_crash(lone: Flow, trouble: dict[str, Any]) -> None:
    agent = lone.plays("claude", DROP, SHELL["claude"]("true"), trouble, END)
    key = lone.task()
    assert lone.drain(agent) == [(key, "waiting")]
    lone.desk.respond(key, "no, never drop it")
    assert lone.drain(agent) == [(key, "released"), (key, "done")]
    assert lone.heard().count(NO) == 1
    assert "Nobody has added anything to what you were told." in str(lone.prompts()[-1])


def test_session_cut_off_before_its_brief_gets_the_brief(lone: Flow) -> None:
    agent = lone.plays("claude", {"crash": "SIGKILL"}, END)
    key = lone.task("Add login", description="For members only.")
    assert lone.drain(agent) == [(key, "released"), (key, "done")]
    first, second = lone.prompts()
    assert "For members only." in str(second) and f"It was cut off before it had said anything. Go on with {key}" in str(second)
    assert "It was cut off" not in str(first)


def test_read_mark_is_kept_when_the_agent_completes_by_tool(lone: Flow) -> None:
    """The claim ends with the turn."""
    done = TOOL["claude"]("complete_task", {"summary": "I did it"})
    agent = lone.plays("claude", DROP, done, {"text": "Bye."}, done, {"text": "Bye."})
    key = lone.task(requires="review")
    assert lone.drain(agent) == [(key, "waiting")]
    lone.desk.respond(key, "no, never drop it")
    lone.drain(agent)
    lone.desk.reject(key, "the tests are missing")
    lone.drain(agent)
    assert lone.heard().count(NO) == 1 and lone.heard().count("the tests are missing") == 1


# --- 2: a parked session --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("yes", [True, False])
def test_parked_session_gets_every_answer(shop: Doubles, yes: bool) -> None:
    """Also through the worker's socket, on PostgreSQL."""
    use = TOOL["claude"]
    agent = shop.plays("claude", use("request_permission", PERMISSION), use("ask_question", PORT), END)
    key = shop.task()
    assert shop.drain(agent) == [(key, "waiting")]
    first, second = shop.show(key)["questions"]
    shop.desk.approve(first["id"], "carefully") if yes else shop.desk.reject(first["id"], "never remove x")
    shop.desk.respond(second["id"], "8080")
    assert shop.drain(agent) == [(key, "done")]
    assert shop.prompts()[1] is None
    heard = shop.heard()
    words = "Yes. carefully" if yes else "No. never remove x"
    assert heard.count(f"Answer to {first['id']} (asked: May I remove x?): {words}, from human:ana") == 1
    assert '"value": "8080"' in heard and f"Answer to {second['id']}" not in heard, "the tool itself tells that"


def test_note_reaches_a_parked_session(lone: Flow) -> None:
    agent = lone.plays("claude", TOOL["claude"]("ask_question", PORT), {"text": "Hm."}, END)
    key = lone.task()
    lone.desk.note(key, "From before")
    assert lone.drain(agent) == [(key, "waiting")]
    lone.desk.note(key, "And use TLS")
    lone.desk.respond(lone.question(key)["id"], "8080")
    assert lone.drain(agent) == [(key, "done")]
    assert lone.heard().count("human:ana said: And use TLS") == 1 and "From before" not in lone.heard()


def test_late_answer_reaches_the_resumed_session(lone: Flow) -> None:
    agent = lone.plays("claude", TOOL["claude"]("ask_question", {**PORT, "timeoutMinutes": 5}), END)
    key = lone.task()
    assert lone.drain(agent) == [(key, "waiting")]
    later = lone.person(400)
    assert later.show(key)["state"] == "failed"
    later.respond(later.show(key)["questions"][0]["id"], "none of them", restart=True)
    assert lone.drain(agent, later=400) == [(key, "done")]
    assert "Nobody answered Q1 in time" in lone.heard()
    assert lone.heard().count("Late answer to Q1 (Which port?): none of them") == 1


@pytest.mark.parametrize("yes", [True, False])
def test_news_come_with_the_parked_gated_call_only(lone: Flow, yes: bool) -> None:
    use = SHELL["claude"]
    agent = lone.plays("claude", use("echo a >> $LEDGER"), use("echo b >> $LEDGER"), END, gate=("Bash(echo*)",))
    key = lone.task()
    assert lone.drain(agent) == [(key, "waiting")]
    lone.desk.note(key, "And use TLS")
    lone.desk.approve(lone.question(key)["id"]) if yes else lone.desk.reject(lone.question(key)["id"], "Not that")
    assert lone.drain(agent) == [(key, "waiting")]
    assert lone.heard().count("And use TLS") == 1 and "Answer to Q1" not in lone.heard()
    lone.desk.approve(lone.question(key)["id"], "but slowly")
    assert lone.drain(agent) == [(key, "done")] and lone.done() == (["a", "b"] if yes else ["b"])
    assert lone.heard().count("And use TLS") == 1 and "Answer to Q2" in lone.heard() and "Yes. but slowly" in lone.heard()


def test_session_stopped_during_resume_gets_all_news_later(lone: Flow) -> None:
    agent = lone.plays("claude", TOOL["claude"]("ask_question", PORT), END, before=SLOW)
    key = lone.task()
    assert lone.drain(agent) == [(key, "waiting")]
    lone.desk.note(key, "And use TLS")
    lone.desk.respond(lone.question(key)["id"], "8080")
    stopped_before_it_reads(lone, agent)
    assert lone.drain(agent) == [(key, "done")]
    assert lone.heard().count("And use TLS") == 1 and lone.heard().count('"value": "8080"') == 1


def test_answers_beside_a_rejection_are_sent(lone: Flow) -> None:
    questions = [{"question": text, "header": "h", "multiSelect": False, "options": [{"label": "A"}, {"label": "B"}]}
                 for text in ("Which database?", "Which cache?")]  # fmt: skip
    agent = lone.plays("claude", {"ask": questions}, END)
    key = lone.begin('run("coder")')
    assert lone.go_on(agent)[0] == "waiting"
    first, second = lone.show(key)["questions"]
    lone.desk.answer(first["id"], "A")
    lone.desk.reject(second["id"], "No cache at all")
    assert lone.go_on(agent)[0] == "done"
    assert lone.heard().count(f"Answer to {first['id']} (asked: Which database?): A") == 1
    assert lone.heard().count("No cache at all") == 1


# --- 3: a nudge -----------------------------------------------------------------------------------------------------------


@both
def test_nudge_keeps_the_answer(lone: Flow, adapter: str) -> None:
    agent = lone.plays(adapter, TOOL[adapter]("ask_question", LOUD), SHELL[adapter](WAIT), {"text": "I go on."}, END)
    key = lone.task()
    with lone.draining(agent):
        until(lambda: (lone.folder / "at").exists())
        lone.desk.answer(lone.show(key)["questions"][0]["id"], False)
        lone.go()
    assert lone.show(key)["state"] == "done"
    told = str(lone.prompts()[-1])
    assert "Answer to Q1 (asked: Verbose?): No, from human:ana" in told and "without a signal" in told


# --- 4 and 8: what a turn ends with beside a question by tool --------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "asked", "state"),
    [
        ("<promise>INPUT_NEEDED: And the port?</promise>", "And the port?", "human"),
        ("<promise>APPROVAL_NEEDED: May I deploy?</promise>", "May I deploy?", "human"),
        ('{"status": "failed", "summary": "it cannot be done"}', "", "failed"),
        (DONE, "", "done"),
    ],
)
@both
def test_question_that_does_not_block_keeps_the_signal(
    lone: Flow, adapter: str, last: str, asked: str, state: str
) -> None:
    agent = lone.plays(adapter, TOOL[adapter]("ask_question", LOUD), {"text": last}, END)
    key = lone.task()
    lone.drain(agent)
    task = lone.show(key)
    assert (task["state"], [q["text"] for q in task["questions"] if q["blocking"]]) == (state, [asked] if asked else [])
    assert len(lone.prompts()) == 1


def test_tag_and_tool_both_ask(lone: Flow) -> None:
    last = (
        "<promise>INPUT_NEEDED: By tag?</promise> <promise>INPUT_NEEDED: Which port?</promise> "
        "<promise>APPROVAL_NEEDED: Then it is done</promise>"
    )
    agent = lone.plays("codex", TOOL["codex"]("ask_question", PORT), {"text": last}, END)
    key = lone.task()
    assert lone.drain(agent) == [(key, "waiting")]
    task = lone.show(key)
    assert [(q["text"], q["status"]) for q in task["questions"]] == [("Which port?", "pending"), ("By tag?", "pending")]
    assert (task["state"], task["claim"]) == ("human", None)
    lone.desk.respond("Q1", "8080")
    lone.desk.respond("Q2", "by all means")
    assert lone.drain(agent) == [(key, "done")]
    assert lone.heard().count("8080") == 1 and lone.heard().count("by all means") == 1


def test_tag_without_text_means_the_open_question(lone: Flow) -> None:
    last = {"text": "I have asked Q1 and wait. <promise>INPUT_NEEDED</promise>"}
    agent = lone.plays("codex", TOOL["codex"]("ask_question", PORT), last, END)
    key = lone.task()
    assert lone.drain(agent) == [(key, "waiting")] and lone.question(key)["text"] == "Which port?"


def test_signal_file_and_command_both_ask_in_a_step(lone: Flow) -> None:
    said = '{"status": "NEEDS_HUMAN", "question": "By file?", "options": ["a", "b"]}'
    lone.plays_as("coder", f"turn ask $YOURTURN_TASK 'Which port?' --wait 0 > /dev/null; signal '{said}'", f"echo '{DONE}'")
    key = lone.begin('run("coder", timeout="2h")')
    assert lone.go_on()[0] == "waiting"
    port, file = lone.show(key)["questions"]
    assert (file["text"], file["step"], [o["id"] for o in file["options"]]) == ("By file?", "1", ["a", "b"])
    lone.desk.respond(port["id"], "8080")
    lone.desk.answer(file["id"], "b")
    assert lone.go_on()[0] == "done"
    assert "8080" in lone.told("coder", 2) and "By file?" in lone.told("coder", 2)


# --- 13: what a tool has told ------------------------------------------------------------------------------------------------

SLOWLY = {"text": "<promise>INPUT_NEEDED: Slow one?</promise>"}


@pytest.mark.parametrize("then", [SLOWLY, {"text": "Hm."}], ids=["a question", "silence"])
@both
def test_quick_answer_by_the_tool_is_not_repeated(lone: Flow, adapter: str, then: dict[str, Any]) -> None:
    lone.env["YOURTURN_ASK_WAIT"] = "25"
    agent = lone.plays(adapter, TOOL[adapter]("ask_question", PORT), then, END)
    key = lone.task()
    with lone.draining(agent):
        lone.desk.respond(lone.asked(key)["id"], "8080")
    if then is SLOWLY:
        lone.desk.respond(lone.question(key)["id"], "Slowly")
        assert lone.drain(agent) == [(key, "done")]
    assert lone.heard().count('"value": "8080"') == 1 and "Answer to Q1" not in lone.heard()
    assert ("without a signal" in str(lone.prompts()[-1])) == (then is not SLOWLY)


def test_quick_answer_by_the_hook_is_not_repeated(lone: Flow) -> None:
    lone.env["YOURTURN_ASK_WAIT"] = "25"
    which = {"question": "Which one?", "header": "h", "multiSelect": False, "options": [{"label": "A"}, {"label": "B"}]}
    agent = lone.plays("claude", {"ask": [which]}, SHELL["claude"]("echo x"), SLOWLY, END, gate=("Bash(echo*)",))
    key = lone.task()
    with lone.draining(agent):
        lone.desk.answer(lone.asked(key)["id"], "B")
        lone.desk.reject(until(lambda: [q for q in lone.desk.inbox() if q["kind"] == "permission"])[0]["id"], "Not that")
    lone.desk.respond(lone.question(key)["id"], "Slowly")
    assert lone.drain(agent) == [(key, "done")]
    told = str(lone.prompts()[-1])
    assert "Slowly" in told and "Which one?" not in told and "Not that" not in told
    assert '"Which one?"="B"' in lone.heard() and "Not that" in lone.heard()


def test_late_answer_by_another_tool_is_not_repeated(lone: Flow) -> None:
    use = TOOL["claude"]
    agent = lone.plays(
        "claude", use("ask_question", LOUD), SHELL["claude"](WAIT), use("get_answer", {"question_id": "Q1"}), SLOWLY, END
    )
    key = lone.task()
    with lone.draining(agent):
        until(lambda: (lone.folder / "at").exists())
        lone.desk.answer("Q1", False)
        lone.go()
    lone.desk.respond(lone.question(key)["id"], "Slowly")
    assert lone.drain(agent) == [(key, "done")]
    assert "Verbose?" not in str(lone.prompts()[-1]) and "Slowly" in str(lone.prompts()[-1])


def test_repeated_question_gets_its_answer_again(lone: Flow) -> None:
    lone.env["YOURTURN_ASK_WAIT"] = "25"
    last = {"text": "<promise>INPUT_NEEDED: Which port?</promise>"}
    agent = lone.plays("codex", TOOL["codex"]("ask_question", PORT), last, END)
    key = lone.task()
    with lone.draining(agent):
        lone.desk.respond(lone.asked(key)["id"], "8080")
    assert lone.show(key)["state"] == "done" and "Answer to Q1 (asked: Which port?): 8080" in str(lone.prompts()[-1])

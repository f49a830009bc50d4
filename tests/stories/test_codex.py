"""Stories with Codex: its turn ends with an open question, and the same thread continues with the answer as its prompt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worker.workshop import DONE, Doubles, until

ASK = {"command": 'turn ask "$YOURTURN_TASK" "Which database?"'}
PENDING = {"text": "I have asked which database to use and wait for the answer."}
END = {"text": DONE}


@pytest.fixture
def shop(address: str, tmp_path: Path) -> Iterator[Doubles]:
    found = Doubles(tmp_path, address)
    yield found
    found.close()


def threads(shop: Doubles) -> list[str]:
    return [path.stem.removeprefix("rollout-") for path in (shop.folder / "codex").rglob("rollout-*.json")]


def test_question_ends_the_turn_and_the_answer_resumes_the_thread(shop: Doubles) -> None:
    shop.repository()
    agent = shop.plays("codex", {"command": "echo half > half.txt"}, ASK, PENDING, {"command": "cat half.txt"}, END)
    key = shop.task()
    assert shop.drain(agent) == [(key, "waiting")]
    parked = shop.show(key)
    assert (parked["state"], parked["claim"], parked["retry_count"]) == ("human", None, 0)
    assert [parked["session_id"]] == threads(shop)
    shop.desk.respond(shop.question(key)["id"], "SQLite, it is a small thing")
    assert shop.drain(agent) == [(key, "done")]
    brief, answer = shop.prompts()
    assert brief and key in brief
    assert answer and "SQLite, it is a small thing" in answer and "Which database?" in answer
    task = shop.show(key)
    assert [task["session_id"]] == threads(shop) and task["retry_count"] == 0
    assert shop.git("show", f"{task['branch']}:half.txt") == "half\n"


def test_own_tool_returns_pending_and_the_answer_resumes_the_thread(shop: Doubles) -> None:
    asks = {"mcp": ["yourturn", "ask_question", {"question": "Which database?", "type": "blocking", "responseType": "text"}]}
    agent = shop.plays("codex", asks, PENDING, END)
    key = shop.task()
    assert shop.drain(agent) == [(key, "waiting")]
    asked = shop.question(key)
    assert (asked["text"], asked["asked_by"]) == ("Which database?", "agent:coder")
    shop.desk.respond(asked["id"], "SQLite")
    assert shop.drain(agent) == [(key, "done")]
    assert "SQLite" in str(shop.prompts()[1])


def test_answer_before_the_end_of_the_turn_is_sent_at_once(shop: Doubles) -> None:
    agent = shop.plays("codex", ASK, {"command": 'until [ -e "$SHOP/go" ]; do sleep 0.02; done'}, PENDING, END)
    key = shop.task()
    with shop.draining(agent):
        shop.desk.respond(shop.asked(key)["id"], "SQLite, it is a small thing")
        shop.go()
    _, answer = shop.prompts()
    assert answer and "SQLite, it is a small thing" in answer and "without a signal" not in answer
    assert shop.show(key)["state"] == "done"
    assert [e["action"] for e in shop.desk.history(key)].count("claim") == 1


def test_thread_is_recorded_with_its_first_event(shop: Doubles) -> None:
    """The process is killed after its first event, and the same thread continues."""
    agent = shop.plays("codex", {"command": 'until [ -e "$SHOP/go" ]; do sleep 0.02; done'}, {"crash": "SIGKILL"}, END)
    key = shop.task()
    with shop.draining(agent):
        until(lambda: shop.show(key)["session_id"], "the thread's id")
        until(lambda: threads(shop), "the double's own record, written after the event")
        assert [shop.show(key)["session_id"]] == threads(shop)
        shop.go()
    task = shop.show(key)
    assert (task["state"], task["retry_count"], [task["session_id"]]) == ("done", 1, threads(shop))


@pytest.mark.parametrize(
    ("words", "results", "reason"),
    [
        ("stream disconnected before completion: 503 overloaded", ["released", "done"], None),
        ("unexpected status 401 Unauthorized", ["waiting"], "access_required"),
    ],
)
def test_failed_turn_of_codex(shop: Doubles, words: str, results: list[str], reason: str | None) -> None:
    agent = shop.plays("codex", {"fail": words}, END)
    key = shop.task()
    assert [what for _, what in shop.drain(agent)] == results
    task = shop.show(key)
    if reason:
        asked = shop.question(key)
        assert (asked["reason"], task["retry_count"]) == (reason, 0) and words in asked["text"]
    else:
        assert (task["state"], task["retry_count"], len(threads(shop))) == ("done", 1, 1)


def test_lost_thread_restarts_with_the_whole_history(shop: Doubles) -> None:
    agent = shop.plays("codex", ASK, PENDING, END)
    key = shop.task()
    assert shop.drain(agent) == [(key, "waiting")]
    before = shop.show(key)["session_id"]
    shop.forget("codex")
    shop.steps(END)
    shop.desk.respond(shop.question(key)["id"], "SQLite")
    assert shop.drain(agent) == [(key, "done")]
    brief = str(shop.prompts()[-1])
    assert "is gone" in brief and "Which database?" in brief and "SQLite" in brief
    assert shop.show(key)["session_id"] != before and shop.show(key)["retry_count"] == 0

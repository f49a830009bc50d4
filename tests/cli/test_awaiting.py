"""`--awaiting` on create, update and list: whose turn it is, as one field, with the question that goes with it."""

from __future__ import annotations

import pytest

from tests.fixtures.command import Turn


def _open(task: dict) -> list[tuple[str, str]]:
    return [(q["kind"], q["text"]) for q in task["questions"] if q["status"] == "pending"]


def test_create_keeps_the_question_and_the_reviewer(turn: Turn) -> None:
    task = turn("create", "Found", "--awaiting", "content", "--question", "Is this needed?", "--reviewer", "design")
    assert _open(task) == [("content", "Is this needed?")]
    assert task["questions"][0]["reviewer"] == "design"
    assert "Is this needed?" in turn.text("show", "PROJ-1")


def test_a_question_goes_with_awaiting(turn: Turn) -> None:
    """Said alone it would be lost, so it is refused, and nothing is made."""
    for words in (["--question", "Why?"], ["--reviewer", "ana"], ["--awaiting=null", "--question", "Why?"]):
        assert "goes with --awaiting" in turn("create", "A", *words, exit=2)["message"]
    assert turn("list") == []
    turn("create", "A")
    assert "goes with --awaiting" in turn("update", "PROJ-1", "--title", "B", "--question", "Why?", exit=2)["message"]
    assert turn("show", "PROJ-1")["title"] == "A"


def test_create_awaiting_null_is_a_task_that_waits_for_no_person(turn: Turn) -> None:
    assert turn("create", "A", "--awaiting=null")["state"] == "ready"
    assert "PROJ-2 waits for no person." in turn.text("create", "B", "--awaiting=null")


def test_update_awaiting_null_on_what_waits_for_no_person_does_nothing(turn: Turn) -> None:
    turn("create", "A")
    before = turn("show", "PROJ-1")
    assert "PROJ-1 waits for no person: nothing to hand back." in turn.text("update", "PROJ-1", "--awaiting=null")
    assert turn("update", "PROJ-1", "--awaiting=null")["version"] == before["version"]
    turn("close", "PROJ-1")
    assert turn("update", "PROJ-1", "--awaiting=null")["state"] == "done"
    assert turn("update", "PROJ-1", "--awaiting=null", "--title", "B")["title"] == "B"
    assert turn("update", "PROJ-9", "--awaiting=null", exit=3)["code"] == "not_found"


def test_manual_is_awaiting_work(turn: Turn) -> None:
    turn("create", "A")
    turn("create", "B", "--awaiting", "input")
    assert turn("update", "PROJ-1", "--manual")["awaiting"] == "work"
    assert [task["key"] for task in turn("list", "--manual")] == ["PROJ-1"]


def test_update_changes_fields_and_whose_turn_it_is_in_one_move(turn: Turn) -> None:
    turn("create", "A")
    words = ("--awaiting", "content", "--question", "Is it clear?", "--reviewer", "design", "--title", "B", "-l", "docs")
    task = turn("update", "PROJ-1", *words)
    assert (task["title"], task["labels"], task["awaiting"]) == ("B", ["docs"], "content")
    assert (_open(task), task["questions"][0]["reviewer"]) == ([("content", "Is it clear?")], "design")
    assert [e["action"] for e in turn("log", "PROJ-1")] == ["create", "flag"]
    task = turn("update", "PROJ-1", "--awaiting=null", "--priority", "0")
    assert (task["state"], task["priority"], len(turn("log", "PROJ-1"))) == ("ready", 0, 3)


def test_what_is_refused_changes_neither(turn: Turn) -> None:
    turn("create", "A")
    assert turn.as_agent("update", "PROJ-1", "--awaiting", "input", "--priority", "0", exit=5)["code"] == "not_allowed"
    turn("close", "PROJ-1")
    assert turn("update", "PROJ-1", "--awaiting", "input", "--title", "B", exit=4)["code"] == "illegal_move"
    task = turn("show", "PROJ-1")
    assert (task["title"], task["priority"], task["questions"]) == ("A", 2, [])


def test_update_awaiting_replaces_all_that_the_person_may_take_off(turn: Turn) -> None:
    turn("create", "A")
    turn.as_agent("ask", "PROJ-1", "Which?")
    turn.as_agent("ask", "PROJ-1", "And which one then?")
    task = turn("update", "PROJ-1", "--awaiting", "approval")
    assert [q["status"] for q in task["questions"]].count("pending") == 1
    assert turn("approve", "PROJ-1")["state"] == "done"


def test_update_awaiting_replaces(turn: Turn) -> None:
    """One value, as one field: the question that it stood for is closed with the reason, and a key means the new one."""
    turn("create", "A")
    turn("update", "PROJ-1", "--awaiting", "input", "--question", "Which one?")
    task = turn("update", "PROJ-1", "--awaiting", "approval")
    old = task["questions"][0]
    assert (task["awaiting"], old["status"]) == ("approval", "cancelled")
    assert old["close_reason"] == "replaced by a question of kind approval"
    assert [e["action"] for e in turn("log", "PROJ-1")] == ["create", "flag", "flag"]
    assert _open(turn("update", "PROJ-1", "--awaiting", "approval", "--question", "Good?")) == [("approval", "Good?")]
    assert turn("approve", "PROJ-1")["state"] == "done"


def test_an_agent_replaces_its_own_questions_and_no_persons(turn: Turn) -> None:
    turn("create", "A")
    turn("update", "PROJ-1", "--awaiting", "approval")
    task = turn.as_agent("update", "PROJ-1", "--awaiting", "input")
    assert [kind for kind, _ in _open(task)] == ["approval", "input"]
    turn("create", "B")
    token = turn.as_agent("claim", "PROJ-2")["claim"]["token"]
    turn.as_agent("ask", "PROJ-2", "Which?", "--claim", token)
    task = turn.as_agent("update", "PROJ-2", "--awaiting", "escalation", "--question", "Help", "--claim", token)
    assert _open(task) == [("escalation", "Help")]
    assert [kind for kind, _ in _open(turn.as_agent("update", "PROJ-2", "--awaiting", "input"))] == ["escalation", "input"]


def test_a_question_of_the_system_is_not_replaced(turn: Turn) -> None:
    turn("create", "A", "--max-retries", "1")
    token = turn.as_agent("claim", "PROJ-1")["claim"]["token"]
    turn.as_agent("release", "PROJ-1", "--claim", token)
    task = turn("update", "PROJ-1", "--awaiting", "approval")
    assert [kind for kind, _ in _open(task)] == ["escalation", "approval"]
    assert [kind for kind, _ in _open(turn("update", "PROJ-1", "--awaiting", "input"))] == ["escalation", "input"]


def test_no_hint_offers_what_is_refused(turn: Turn) -> None:
    turn("create", "A", "--manual")
    said = turn("respond", "PROJ-1", "do it again", exit=6)
    assert "turn approve Q1" in said["hint"]
    assert said["message"].startswith("Q1 takes a yes, not “do it again”: allowed: yes (") and " or no" not in said["message"]
    assert "reject" not in said["hint"]
    assert "reject" not in turn.text("show", "PROJ-1")


@pytest.mark.parametrize("kind", ["approval", "work"])
def test_respond_to_all_names_what_needs_a_yes_or_no(turn: Turn, kind: str) -> None:
    turn("create", "A", "--awaiting", kind)
    said = turn.text("respond", "--all", "Go on")
    assert "1 question needs a yes or no: Q1." in said
    assert "Nothing waits" not in said
    turn("create", "B", "--awaiting", "input")
    assert "✓ Q2" in turn.text("respond", "--all", "Go on")

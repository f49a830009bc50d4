"""An agent hands off, a person says yes or no, the agent never waits: seven hand-offs and the whole verdict matrix."""

from __future__ import annotations

import pytest

from tests.fixtures.command import Turn
from yourturn.core.rules import KINDS

#: kind, what the agent says, where yes leads, where no leads
HANDOFFS = [
    ("approval", "The session table was migrated. Sign off?", "done", "ready"),
    ("input", "Which currency do we bill in?", "ready", "cancelled"),
    ("review", "https://example.com/pull/7 is up for review.", "done", "ready"),
    ("content", "New wording for the empty page.", "done", "ready"),
    ("escalation", "The parser has a hole that predates this task.", "ready", "cancelled"),
    ("checkpoint", "Phase 1: 40,000 rows copied.", "ready", "ready"),
    ("work", "A human hand has to plug the cable in.", "done", None),
]


@pytest.mark.parametrize(("kind", "said", "yes", "no"), HANDOFFS, ids=[row[0] for row in HANDOFFS])
def test_hand_off_and_verdict(turn: Turn, kind: str, said: str, yes: str, no: str | None) -> None:
    turn("create", "Hand this off")
    turn("create", "Something else to do")
    got = turn.as_agent("next", "--claim", "--worker-id", "w1")
    assert got["task"]["key"] == "PROJ-1"
    task = turn.as_agent("flag", "PROJ-1", said, "--kind", kind, "--claim", got["claim"]["token"])
    assert (task["state"], task["awaiting"], task["claim"]) == ("human", kind, None)
    assert task["questions"][0]["text"] == said
    # The agent goes on with something else at once; what waits is never offered.
    assert turn.as_agent("next")["key"] == "PROJ-2"
    assert [t["key"] for t in turn("ready")] == ["PROJ-2"]
    assert [t["key"] for t in turn("list", "--awaiting", kind)] == ["PROJ-1"]
    if no is None:
        error = turn("reject", "PROJ-1", exit=4)
        assert "--awaiting=null" in error["hint"]
        assert "turn cancel PROJ-1" in error["hint"]
        assert turn.state("PROJ-1") == "human"
        assert turn("approve", "PROJ-1")["state"] == yes
        return
    task = turn("reject", "PROJ-1", "Softer, please")
    assert (task["state"], task["awaiting"]) == (no, None)
    assert [(n["author"], n["text"]) for n in task["notes"]] == [("human:ana", "Softer, please")]
    if no == "ready":
        got = turn.as_agent("next", "--claim", "--worker-id", "w1")
        assert got["task"]["key"] == "PROJ-1"
        assert turn.as_agent("show", "PROJ-1")["notes"][0]["text"] == "Softer, please"
        turn.as_agent("flag", "PROJ-1", said, "--kind", kind, "--claim", got["claim"]["token"])
        assert turn("approve", "PROJ-1")["state"] == yes


def test_table_of_handoffs_covers_every_kind() -> None:
    assert {row[0] for row in HANDOFFS} | {"permission", "recovery"} == set(KINDS)


def test_awaiting_and_verdict_as_fields(turn: Turn) -> None:
    """The lines of people who think in two fields: awaiting and verdict."""
    assert turn("create", "Task title", "--awaiting", "work")["awaiting"] == "work"
    assert turn("create", "By hand", "--manual")["awaiting"] == "work"
    assert turn("create", "Plain")["awaiting"] is None
    task = turn("update", "PROJ-3", "--awaiting", "approval")
    assert (task["state"], task["awaiting"]) == ("human", "approval")
    assert len(turn("update", "PROJ-3", "--awaiting", "approval")["questions"]) == 1
    assert turn("update", "PROJ-3", "--awaiting=null")["state"] == "ready"
    turn("update", "PROJ-3", "--awaiting", "content")
    task = turn("update", "PROJ-3", "--verdict", "rejected")
    assert (task["state"], task["awaiting"]) == ("ready", None)
    turn("update", "PROJ-3", "--awaiting", "review")
    assert {t["key"] for t in turn("list", "--awaiting")} == {"PROJ-1", "PROJ-2", "PROJ-3"}
    assert [t["key"] for t in turn("list", "--awaiting", "input,review")] == ["PROJ-3"]
    assert turn("update", "PROJ-3", "--verdict", "approved")["state"] == "done"
    assert turn("update", "PROJ-1", "--verdict", "rejected", exit=4)["code"] == "precondition"


def test_notes_name_their_author(turn: Turn) -> None:
    turn("create", "Payments")
    turn("note", "PROJ-1", "Use Stripe", "--from", "human")
    turn("note", "PROJ-1", "By a person who says otherwise", "--from", "agent")
    turn.as_agent("note", "PROJ-1", "PR is up")
    turn.as_agent("note", "PROJ-1", "I am a person", "--from", "human", exit=5)
    assert [n["author"] for n in turn("show", "PROJ-1")["notes"]] == ["human:ana", "agent:ana", "agent:coder"]


def test_an_agent_cannot_answer_itself(turn: Turn) -> None:
    turn("create", "Deploy")
    turn.as_agent("ask", "PROJ-1", "May I?", "--kind", "approval")
    before = turn("show", "PROJ-1")
    for line in (
        ("approve", "PROJ-1"), ("reject", "PROJ-1"), ("answer", "Q1", "yes"), ("respond", "PROJ-1", "yes"),
        ("update", "PROJ-1", "--verdict", "approved"), ("update", "PROJ-1", "--awaiting=null"), ("inbox", "respond", "1", "yes"),
        ("resolve", "PROJ-1"), ("cancel", "PROJ-1"), ("close", "PROJ-1"), ("withdraw", "Q1"), ("assign", "Q1", "me"),
        ("signal", "PROJ-1", "--status", "CONTINUE"), ("update", "PROJ-1", "--max-retries", "99"),
        ("approve", "PROJ-1", "--as", "human:ana"),
        ("token", "create", "x", "--role", "admin"), ("user", "add", "coder", "--role", "admin"),
        ("project", "set", "approvals", "members"),
    ):  # fmt: skip
        assert turn.as_agent(*line, exit=5)["code"] == "not_allowed", line
    assert turn("show", "PROJ-1") == before


def test_a_token_is_an_identity(turn: Turn) -> None:
    turn("create", "Deploy")
    agent = turn("token", "create", "coder", "--role", "agent")
    ben = turn("token", "create", "ben", "--role", "member", "--expires", "30d")
    assert agent["actor"] == "agent:coder"
    assert turn("note", "PROJ-1", "by token", env={"YOURTURN_TOKEN": agent["token"]})["notes"][0]["author"] == "agent:coder"
    turn("approve", "PROJ-1", exit=5, env={"YOURTURN_TOKEN": agent["token"]})
    turn("note", "PROJ-1", "x", "--as", "human:ana", exit=5, env={"YOURTURN_TOKEN": agent["token"]})
    turn("flag", "PROJ-1", "Which way?")
    assert turn("respond", "PROJ-1", "left", env={"YOURTURN_TOKEN": ben["token"]})["responded_by"] == "human:ben"
    turn("token", "revoke", "ben")
    turn("note", "PROJ-1", "x", exit=5, env={"YOURTURN_TOKEN": ben["token"]})
    turn("note", "PROJ-1", "x", exit=5, env={"YOURTURN_TOKEN": "yt_nobody"})
    assert agent["token"] not in turn.run("log", "--json").stdout + turn.run("token", "list", "--json").stdout


def test_a_process_with_an_agents_name_is_an_agent(turn: Turn) -> None:
    """Even with a person's token, and even by its own name."""
    turn("create", "Deploy", "--awaiting", "input")
    boss = turn("token", "create", "boss", "--role", "admin")["token"]
    turn("respond", "PROJ-1", "x", exit=5, env={"YOURTURN_TOKEN": boss, "YOURTURN_AGENT": "coder"})
    note = turn("note", "PROJ-1", "x", env={"YOURTURN_TOKEN": boss, "YOURTURN_AGENT": "coder"})["notes"][0]
    assert note["author"] == "agent:coder"
    turn.as_agent("note", "PROJ-1", "x", "--as", "agent:coder", exit=5)
    turn.as_agent("stop", "PROJ-1", exit=5)
    assert turn("respond", "PROJ-1", "x", env={"YOURTURN_TOKEN": boss})["responded_by"] == "human:boss"


def test_viewer_only_reads(turn: Turn) -> None:
    turn("create", "Deploy")
    eyes = {"YOURTURN_TOKEN": turn("token", "create", "eyes", "--role", "viewer")["token"]}
    before = turn("show", "PROJ-1")
    for line in (("note", "PROJ-1", "x"), ("note", "PROJ-1", "x", "--from", "agent"), ("create", "x"), ("claim", "PROJ-1")):
        assert "a viewer only looks" in turn(*line, exit=5, env=eyes)["message"]
    assert turn("show", "PROJ-1", env=eyes) == before


def test_a_claim_that_is_given_is_checked(turn: Turn) -> None:
    """Also one from the environment, also beside a worker's name that fits."""
    turn("create", "Deploy")
    old = turn("claim", "PROJ-1", "--worker-id", "w1")["claim"]["token"]
    turn("release", "PROJ-1")
    new = turn("claim", "PROJ-1", "--worker-id", "w1")["claim"]["token"]
    for line in (("complete", "PROJ-1"), ("heartbeat", "PROJ-1"), ("ask", "PROJ-1", "x"), ("park", "PROJ-1")):
        for token in (old, "garbage"):
            assert turn(*line, "--worker-id", "w1", exit=4, env={"YOURTURN_CLAIM": token})["code"] == "claim_lost"
            assert turn(*line, "--claim", token, "--worker-id", "w1", exit=4)["code"] == "claim_lost"
    assert turn("heartbeat", "PROJ-1", "--claim", new, "--worker-id", "other", exit=4)["code"] == "claim_lost"
    turn("create", "Another")
    turn("note", "PROJ-2", "the claim is about something else", env={"YOURTURN_CLAIM": new})
    assert turn("complete", "PROJ-1", env={"YOURTURN_CLAIM": new})["state"] == "done"


def test_a_wrong_project_is_no_empty_list(turn: Turn) -> None:
    turn("create", "Deploy")
    for line in (("list",), ("ready",), ("next",), ("next", "--claim"), ("inbox",), ()):
        assert "There is no project NOPE" in turn(*line, "--project", "NOPE", exit=3)["message"]

"""Tickets: vetting, claims, retries, dependencies, flags, decomposition, review, and queries over many tasks."""

from __future__ import annotations

import shlex

import pytest

from tests.fixtures.command import Turn
from yourturn.config import connect
from yourturn.testing import FakeClock


def test_a_ticket_from_draft_to_done(turn: Turn) -> None:
    turn("create", "Login", "--draft", "--complexity", "xlarge")
    error = turn("ticket", "vet", "PROJ-1", exit=4)
    assert error["message"] == "Cannot vet PROJ-1: it is 'xlarge': decompose it first"
    turn("update", "PROJ-1", "--complexity", "large")
    assert turn("ticket", "vet", "PROJ-1")["state"] == "ready"
    got = turn("ticket", "claim", "PROJ-1", "--worker-id", "abc123")
    assert (got["task"]["state"], got["task"]["branch"], got["claim"]["worker"]) == ("working", "turn/PROJ-1-login", "abc123")
    turn("project", "set", "review", "ask")
    assert turn("ticket", "complete", "PROJ-1", "--summary", "Login with JWT")["state"] == "review"
    (q,) = turn("inbox")
    assert (q["id"], q["kind"], q["reason"], q["text"]) == ("Q1", "approval", "finished", "Login with JWT")
    task = turn("ticket", "reject", "PROJ-1", "--reason", "Missing error handling")
    assert (task["state"], task["notes"][0]["text"]) == ("ready", "Missing error handling")
    turn("ticket", "next", "--project", "PROJ")
    turn("ticket", "complete", "PROJ-1", "--summary", "Now with errors")
    assert [(q["id"], q["text"]) for q in turn("inbox")] == [("Q2", "Now with errors")]
    task = turn("ticket", "accept", "PROJ-1")
    assert task["state"] == "done"
    assert task["ended_at"] is not None


def test_dependencies_block_and_unblock(turn: Turn) -> None:
    for title in ("Schema", "API", "UI"):
        turn("create", title)
    assert turn("dep", "add", "PROJ-3", "PROJ-1", "PROJ-2")["state"] == "blocked"
    error = turn.text("ticket", "claim", "PROJ-3", exit=4)
    assert error == "Error: Cannot claim PROJ-3\nReason: unresolved dependencies: PROJ-1, PROJ-2\n"
    assert turn("dep", "add", "PROJ-1", "PROJ-3", exit=4)["code"] == "precondition"
    blocked = turn("list", "--blocked")
    assert [(t["key"], t["blocked_by"]) for t in blocked] == [("PROJ-3", ["PROJ-1", "PROJ-2"])]
    assert "waits for PROJ-1, PROJ-2" in turn.text("list", "--blocked")
    turn("close", "PROJ-1")
    assert turn.state("PROJ-3") == "blocked"
    turn("cancel", "PROJ-2")
    assert turn.state("PROJ-3") == "ready"
    turn("reopen", "PROJ-1")
    assert turn.state("PROJ-3") == "blocked"
    assert turn("dep", "remove", "PROJ-3", "PROJ-1")["state"] == "ready"


def test_errors_in_their_exact_shape(turn: Turn) -> None:
    turn("create", "Login")
    turn("close", "PROJ-1")
    assert turn.text("claim", "PROJ-1", exit=4) == "Error: Cannot claim PROJ-1: it is 'done'\nValid from 'done': reopen (admin)\n"
    turn("create", "Epic", "--type", "epic")
    turn("create", "Part", "--parent", "PROJ-2")
    words = "Error: Cannot close PROJ-2\nReason: open children: PROJ-3\nFinish or cancel them first: turn tree PROJ-2\n"
    assert turn.text("close", "PROJ-2", exit=4) == words


_EPIC = ("create Epic --type epic", "create Part --parent PROJ-1")
#: What was done before; what is refused then, why, and what to do about it; and what of that helps.
_REFUSED = (
    (("create Big -c xlarge --draft",), "vet PROJ-1", "it is 'xlarge': decompose it first",
     'turn decompose PROJ-1 --child "…" --child "…", or call it smaller: turn update PROJ-1 -c large', "update PROJ-1 -c large"),
    (_EPIC, "close PROJ-1", "open children: PROJ-2", "Finish or cancel them first: turn tree PROJ-1", ""),
    ((*_EPIC, "close PROJ-2"), "reopen PROJ-2", "its parent PROJ-1 is 'done'", "First: turn reopen PROJ-1", "reopen PROJ-1"),
    (("project set review ask", "create A", "claim PROJ-1 --worker-id w1", "complete PROJ-1 --worker-id w1"),
     "create More --parent PROJ-1", "its parent PROJ-1 is 'review'", 'First: turn reject PROJ-1 "why"', 'reject PROJ-1 "why"'),
    (("create A",), "defer PROJ-1 --until 2020-01-01", "the date is in the past",
     "Name one that is still to come: --until 2d", ""),
    (("create A", "create B", "dep add PROJ-2 PROJ-1"), "dep add PROJ-1 PROJ-2",
     "that would be a circle: PROJ-2 already waits for PROJ-1", "See what each waits for: turn dep list PROJ-2",
     "dep remove PROJ-2 PROJ-1"),
    (("create A",), "claim PROJ-1 --lease 2d", "a lease lasts at most 24 h without a heartbeat",
     "Take it for less, and say that you are still at it: turn heartbeat PROJ-1", ""),
    (("create A", "claim PROJ-1 --worker-id w1", "release PROJ-1 --worker-id w1"), "update PROJ-1 --max-retries 1",
     "1 of its tries is used already", "Give it more than that: --max-retries 2", ""),
    (("create A",), "heartbeat PROJ-1 --worker-id w1", "it was never claimed; it is 'ready'", "Take it: turn claim PROJ-1",
     "claim PROJ-1 --worker-id w1"),
)  # fmt: skip


@pytest.mark.parametrize(("before", "line", "why", "hint", "helps"), _REFUSED, ids=[row[1] for row in _REFUSED])
def test_a_refusal_says_what_helps(turn: Turn, before: tuple[str, ...], line: str, why: str, hint: str, helps: str) -> None:
    for words in before:
        turn(*shlex.split(words))
    _, reason, step = turn.text(*shlex.split(line), exit=4).splitlines()
    assert (reason, step) == (f"Reason: {why}", hint)
    if helps:
        turn(*shlex.split(helps))
        turn(*shlex.split(line))


def test_flag_and_answer(turn: Turn) -> None:
    turn("create", "Upgrade the library")
    turn("claim", "PROJ-1", "--worker-id", "w1")
    words = "The required version conflicts.\nOptions: 1) upgrade all, 2) another library, 3) fork"
    task = turn("ticket", "flag", "PROJ-1", "--reason", "irreconcilable_conflict", words)
    assert (task["state"], task["claim"], task["questions"][0]["reason"]) == ("human", None, "irreconcilable_conflict")
    assert turn("inbox", "respond", "1", "Another library")["status"] == "answered"
    assert turn.state("PROJ-1") == "ready"


def test_inbox_messages(turn: Turn) -> None:
    turn("create", "API")
    turn("claim", "PROJ-1", "--worker-id", "w1")
    q = turn("inbox", "send", "PROJ-1", "--type", "question", "REST or GraphQL?")
    assert (q["id"], q["kind"], q["timeout_at"]) == ("Q1", "input", None)
    assert turn("inbox", "show", "1")["text"] == "REST or GraphQL?"
    turn("inbox", "respond", "1", "REST for simplicity.")
    assert turn.state("PROJ-1") == "ready"
    assert turn("inbox", "send", "PROJ-1", "--type", "info", "For your information")["state"] == "ready"
    for sort, kind in (("decision", "input"), ("review", "review"), ("escalation", "escalation")):
        assert turn("inbox", "send", "PROJ-1", "--type", sort, "Look at this")["kind"] == kind
    assert len(turn("inbox")) == 3


def test_release_until_a_person_is_asked(turn: Turn) -> None:
    turn("create", "Flaky")
    for count in (1, 2):
        turn("claim", "PROJ-1", "--worker-id", "w1")
        task = turn("ticket", "reclaim", "PROJ-1", "--reason", "Need more context")
        assert (task["state"], task["retry_count"]) == ("ready", count)
    turn("claim", "PROJ-1", "--worker-id", "w1")
    task = turn("ticket", "release", "PROJ-1")
    assert (task["state"], task["retry_count"]) == ("human", 3)
    assert [q["reason"] for q in task["questions"]] == ["retry_exhausted"]
    turn("respond", "PROJ-1", "Use the staging credentials")
    assert turn("show", "PROJ-1")["retry_count"] == 0


def test_decompose(turn: Turn) -> None:
    turn("create", "Big", "--priority", "1")
    turn("claim", "PROJ-1", "--worker-id", "w1")
    task = turn("ticket", "decompose", "PROJ-1", "--child", "Schema", "--child", "Endpoints", "--child", "Middleware")
    assert (task["state"], task["claim"], task["depends_on"]) == ("blocked", None, ["PROJ-2", "PROJ-3", "PROJ-4"])
    assert [(t["title"], t["priority"], t["parent"]) for t in turn("ready")] == [
        ("Schema", 1, "PROJ-1"), ("Endpoints", 1, "PROJ-1"), ("Middleware", 1, "PROJ-1"),
    ]  # fmt: skip
    for key in ("PROJ-2", "PROJ-3"):
        turn("close", key)
    turn("cancel", "PROJ-4")
    assert turn.state("PROJ-1") == "ready"


def test_expiring_claims_and_late_writes(here: Turn) -> None:
    db = str(here.folder / ".yourturn" / "yourturn.db")
    early = FakeClock()
    early.advance(minutes=-50)
    with connect(db, as_="agent:coder", clock=early, env={}) as desk:
        desk.create("Slow")
        desk.create("Lost", priority=3)
        slow = desk.claim_next("w1")["claim"]
        lost = desk.claim_next("w2", lease="20m")["claim"]
    assert [t["key"] for t in here("list", "--expiring", "15m")] == ["PROJ-1"]
    assert here("list", "--expiring", "1m") == []
    # No reconcile has run, but every read shows that the lease has expired.
    task = here("show", "PROJ-2")
    assert (task["state"], task["claim"], task["retry_count"]) == ("ready", None, 1)
    late = here.as_agent("complete", "PROJ-2", "--claim", lost["token"], exit=4)
    assert late["code"] == "claim_lost"
    assert here("log", "PROJ-2")[-1]["action"] == "claim"
    assert here("reconcile") == {"moved": 1, "failed": 0}
    assert here("reconcile") == {"moved": 0, "failed": 0}
    assert here("log", "PROJ-2")[-1]["action"] == "expire"
    here.as_agent("heartbeat", "PROJ-1", "--claim", slow["token"])
    assert here("list", "--expiring", "15m") == []


def test_reopen_is_for_admins(turn: Turn) -> None:
    turn("create", "Login")
    turn("cancel", "PROJ-1")
    turn("user", "add", "ben", "--role", "member")
    assert turn("reopen", "PROJ-1", "--as", "human:ben", exit=5)["code"] == "not_allowed"
    assert turn("reopen", "PROJ-1")["state"] == "created"
    turn("vet", "PROJ-1")
    turn("close", "PROJ-1")
    assert turn("reopen", "PROJ-1", "--as", "human:ben", exit=5)["code"] == "not_allowed"
    assert turn("reopen", "PROJ-1")["state"] == "ready"
    turn("user", "add", "vic", "--role", "viewer")
    assert turn("note", "PROJ-1", "x", "--as", "human:vic", exit=5)["code"] == "not_allowed"


def test_names_words_and_pages(here: Turn) -> None:
    """Old ids with digits, words beyond ASCII, trees in other projects, and pages of an inbox that end."""
    db = str(here.folder / ".yourturn" / "yourturn.db")
    with connect(db, as_="human:ana", env={}) as desk:
        desk.create("Ärger mit Umlauten", labels=["grün"], external_id="tk-12")
        desk.create_project("WEB")
        desk.create("Elsewhere", project="WEB")
        desk.create("A child", project="WEB", parent="WEB-1")
        desk.set("review", "ask", "PROJ")
        for i in range(3):
            key = desk.create(f"Finished {i}", project="PROJ")["key"]
            desk.complete(desk.claim(key, "w1")["claim"], "look at it")
        desk.flag("WEB-1", "What now?")
    assert here("show", "tk-12")["key"] == "PROJ-1"
    assert [t["key"] for t in here("list", "--search", "ärger")] == ["PROJ-1"]
    assert [t["key"] for t in here("list", "--label", "grün")] == ["PROJ-1"]
    (tree,) = here("tree", "WEB-1", "--project", "PROJ")
    assert [child["key"] for child in tree["children"]] == ["WEB-2"]
    seen: list[str] = []
    while page := here("inbox", "--limit", "2", *(("--after", seen[-1]) if seen else ())):
        seen += [item["id"] for item in page]
        assert len(seen) < 9
    assert seen == ["Q4", "Q1", "Q2", "Q3"]  # the escalation is the most urgent


def test_removed_person_can_only_read(here: Turn) -> None:
    here("create", "Login", "--awaiting", "input")
    here("user", "add", "ben", "--role", "admin")
    token = here("token", "create", "ben", "--role", "admin")["token"]
    here("user", "set", "ben", "--role", "viewer")
    here("respond", "PROJ-1", "x", exit=5, env={"YOURTURN_TOKEN": token})
    here("user", "set", "ben", "--role", "admin")
    here("user", "remove", "ben")
    here("respond", "PROJ-1", "x", "--as", "human:ben", exit=5)
    here("token", "create", "root", "--role", "admin", "--actor", "system", exit=6)
    here("token", "create", "odd", "--role", "admin", "--actor", "human:../x", exit=6)

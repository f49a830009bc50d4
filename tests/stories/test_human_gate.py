"""The gate: an agent that is not sure asks, with context; a person finds the question, answers, and the work goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.fixtures.command import Turn
from yourturn.config import connect
from yourturn.testing import FakeClock

ASKED = "Should the API use JWT tokens or session cookies?"
WHY = "The requirements ask for secure login and name no method. Tokens suit the mobile app, cookies the web."


def _past(turn: Turn, **units: float) -> FakeClock:
    clock = FakeClock()
    clock.advance(**{name: -value for name, value in units.items()})
    return clock


def test_from_doubt_to_done(turn: Turn) -> None:
    turn("create", "Implement user authentication", "--complexity", "medium")
    got = turn.as_agent("claim", "PROJ-1", "--worker-id", "w1")
    turn.as_agent("update", "PROJ-1", "--session-id", "session-7", "--claim", got["claim"]["token"])
    q = turn.as_agent("ask", "PROJ-1", ASKED, "--context", WHY, "--claim", got["claim"]["token"])
    assert (q["id"], q["status"], q["context"]) == ("Q1", "pending", {"text": WHY})
    turn.as_agent("park", "PROJ-1", "--claim", got["claim"]["token"])
    assert turn("next") is None

    listed = turn.text("list", "--awaiting")
    assert "PROJ-1" in listed
    assert f"❓ {ASKED}" in listed
    assert f"Context: {WHY[:40]}" in listed
    assert "Asked: just now" in listed

    said = turn.text("respond", "PROJ-1", "Use JWT tokens. We're mobile first.")
    assert "✓ Q1" in said
    assert "PROJ-1 is 'ready': a worker picks it up." in said

    got = turn.as_agent("next", "--claim", "--worker-id", "w2")
    task = got["task"]
    assert (task["key"], task["session_id"], task["retry_count"]) == ("PROJ-1", "session-7", 0)
    answered = turn.as_agent("show", "PROJ-1")["questions"][0]
    assert answered["response"] == {
        "type": "text",
        "value": "Use JWT tokens. We're mobile first.",
        "text": "Use JWT tokens. We're mobile first.",
        "verdict": "approved",
    }
    assert answered["responded_by"] == "human:ana"
    assert turn.as_agent("complete", "PROJ-1", "--claim", got["claim"]["token"], "--summary", "JWT login")["state"] == "done"


def test_what_the_lists_look_like(here: Turn) -> None:
    """Ages need a past: the questions are asked by a desk whose clock runs hours behind."""
    db = str(here.folder / ".yourturn" / "yourturn.db")
    with connect(db, as_="agent:coder", clock=_past(here, hours=2, minutes=5), env={}) as desk:
        desk.create("Design payment system", type="epic")
        desk.create("Implement user authentication", parent="PROJ-1")
        desk.create("Implement payment API", parent="PROJ-1")
        desk.create("Write integration tests", parent="PROJ-1")
        desk.flag("PROJ-2", ASKED, kind="input", context={"text": WHY})
    with connect(db, as_="agent:ops", clock=_past(here, minutes=30, seconds=20), env={}) as desk:
        desk.create("Configure deployment", priority=1, complexity="small")
        desk.flag("PROJ-5", "Which cloud provider should we use?", kind="input")
    assert here.text("list", "--awaiting").splitlines() == [
        "Awaiting human input:",
        "",
        "PROJ-2   P2  medium  Implement user authentication",
        f"         ❓ {ASKED}",
        f"         Context: {WHY}",
        "         Asked: 2 hours ago by coder, input, Q1",
        "",
        "PROJ-5   P1  small   Configure deployment",
        "         ❓ Which cloud provider should we use?",
        "         Asked: 30 minutes ago by ops, input, Q2",
        "",
        'Next: turn respond PROJ-2 "…" | turn show PROJ-2',
    ]
    assert here.text("tree", "PROJ-1").splitlines() == [
        "PROJ-1 [blocked] ◌ Design payment system",
        "├── PROJ-2 [human] ❓ Implement user authentication",
        f"│   └── Question: {ASKED}",
        "├── PROJ-3 [ready] ○ Implement payment API",
        "└── PROJ-4 [ready] ○ Write integration tests",
    ]


def test_answer_in_the_editor(here: Turn, editor: Callable[[str], str], tmp_path: Path) -> None:
    here("create", "Login")
    here("flag", "PROJ-1", ASKED, "--kind", "input", "--context", WHY)
    here.text("respond", "PROJ-1", "--edit", env={"EDITOR": editor("Tokens.\n\nWith a day of life.")})
    seen = (tmp_path / "seen.md").read_text()
    assert ASKED in seen
    assert WHY in seen
    assert "PROJ-1: Login" in seen
    assert here("show", "Q1")["response"]["value"] == "Tokens.\n\nWith a day of life."


def test_an_empty_answer_changes_nothing(here: Turn, editor: Callable[[str], str]) -> None:
    here("create", "Login")
    here("flag", "PROJ-1", ASKED, "--kind", "input")
    before = here("show", "PROJ-1")
    assert here("respond", "PROJ-1", "", exit=6)["code"] == "invalid"
    assert here("respond", "PROJ-1", "  \n ", exit=6)["code"] == "invalid"
    assert here("respond", "PROJ-1", "--edit", exit=6, env={"EDITOR": editor("   ")})["code"] == "invalid"
    assert here("respond", "PROJ-1", "--edit", exit=6, env={"EDITOR": "false"})["code"] == "invalid"
    assert here("respond", "PROJ-1", "--edit", exit=2, env={"EDITOR": "no-such-editor"})["code"] == "usage"
    assert here("respond", "PROJ-1", exit=2)["code"] == "usage"
    assert here("show", "PROJ-1") == before


def test_not_awaiting(here: Turn) -> None:
    here("create", "Login")
    error = here("respond", "PROJ-1", "JWT", exit=4)
    assert error["message"] == "Cannot answer PROJ-1: it is 'ready'"
    assert error["hint"].startswith("Valid from 'ready': claim")


def test_late_answer_names_the_winner_and_becomes_a_note(here: Turn) -> None:
    here("create", "Login")
    here("flag", "PROJ-1", ASKED, "--kind", "input")
    here("respond", "PROJ-1", "JWT", "--as", "human:ben")
    for name in ("PROJ-1", "Q1"):
        error = here("respond", name, "Sessions", exit=4)
        assert error["code"] == "already_answered"
        assert "human:ben answered “JWT” at" in error["message"]
        assert "--restart" in error["hint"]
    here("cancel", "PROJ-1")
    assert "✓ too late for Q1, stored as a note on PROJ-1" in here.text("respond", "Q1", "Sessions", "--restart")
    task = here("show", "PROJ-1")
    assert (task["state"], task["notes"][0]["text"]) == ("created", f"Late answer to Q1 ({ASKED}): Sessions")


def test_answers_for_all(here: Turn) -> None:
    for title in ("A", "B"):
        here("create", title)
    here("flag", "PROJ-1", "Tabs?", "--kind", "input")
    here("ask", "PROJ-2", "Spaces?", "--option", "two", "--option", "four")
    answered = here("respond", "--all", "two")
    assert [(q["task"], q["response"]["value"]) for q in answered] == [("PROJ-1", "two"), ("PROJ-2", "two")]


def test_answer_templates(here: Turn) -> None:
    here("create", "Login")
    here("flag", "PROJ-1", ASKED, "--kind", "input")
    assert "config.toml" in here("respond", "PROJ-1", "--template", "usual", exit=3)["hint"]
    config = here.folder / ".yourturn" / "config.toml"
    config.write_text('[responses]\nusual = "Do as we always do."\n')
    assert here("respond", "PROJ-1", "--template", "other", exit=3)["hint"] == "Templates: usual."
    assert here("respond", "PROJ-1", "--template", "usual")["response"]["value"] == "Do as we always do."
    config.write_text("[responses\n")
    assert here("respond", "PROJ-1", "--template", "usual", exit=6)["code"] == "invalid"

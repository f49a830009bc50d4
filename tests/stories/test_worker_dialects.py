"""Agents end their turn with each form of signal; a person answers; the session that asked continues."""

from __future__ import annotations

from tests.fixtures.worker import Crew

ASKED = "Should the API use JWT tokens or session cookies?"
WHY = "Tokens suit the mobile app, cookies the web."
ANSWER = "Use JWT tokens. We build for phones first."


def test_question_in_json_is_answered_and_completed(crew: Crew) -> None:
    crew.repository()
    epic = crew.tasks("Design payment system", type="epic")[0]
    key = crew.tasks("Implement user authentication", parent=epic)[0]
    crew.plays(
        [
            {"write": "user.py", "text": "class User: ...\n"},
            {
                "result": {
                    "status": "needs_input",
                    "summary": "Need to know the method",
                    "question": ASKED,
                    "questionContext": WHY,
                    "details": "The user model is there.",
                }
            },
            {"end": True},
            {"brief": "told.txt"},
            {"run": "git status --porcelain user.py > status.txt"},
            {"result": {"status": "completed", "summary": "JWT login", "details": "Login, register, middleware."}},
        ]
    )
    told = crew.work(agent=False)
    assert [(row["task"], row["outcome"]) for row in told["results"]] == [(key, "waiting")]
    task = crew.desk.show(key)
    assert (task["state"], task["awaiting"], task["claim"], task["retry_count"]) == ("human", "input", None, 0)
    session = task["session_id"]
    assert session

    listed = crew.text("list", "--awaiting")
    assert f"❓ {ASKED}" in listed
    assert WHY in listed
    assert f"Question: {ASKED}" in crew.text("tree", epic)
    folder = crew.folder / ".yourturn" / "worktrees" / key
    assert crew.git("status", "--porcelain", "--", "user.py", folder=folder) == "?? user.py"

    assert f"{key} is 'ready'" in crew.text("respond", key, ANSWER)
    told = crew.work(agent=False)
    assert [(row["task"], row["outcome"], row["words"]) for row in told["results"]] == [(key, "done", "JWT login")]
    task = crew.desk.show(key)
    assert (task["state"], task["summary"], task["session_id"], task["retry_count"]) == ("done", "JWT login", session, 0)
    assert ASKED in (said := (folder / "told.txt").read_text())
    assert ANSWER in said
    assert (folder / "status.txt").read_text() == "?? user.py\n"
    assert "user.py" in crew.git("show", "--stat", task["branch"])
    assert crew.git("status", "--porcelain", folder=folder) == ""


def test_fresh_session_gets_question_and_answer(crew: Crew) -> None:
    """An agent without sessions gets the whole history in its brief."""
    key = crew.tasks("Implement user authentication")[0]
    crew.says(key, f'{{"status": "needs_input", "summary": "?", "question": "{ASKED}", "questionContext": "{WHY}"}}')
    crew.work()
    crew("respond", key, ANSWER)
    crew.work()
    brief = crew.told(key, 2)
    assert "## Human Response to Your Question" in brief
    assert f"**Question asked:** {ASKED}" in brief.replace("\n\n> ", " ")
    assert f"**Human's answer:** {ANSWER}" in brief.replace("\n\n> ", " ")
    assert WHY in brief
    assert crew.state(key) == "done"


def test_needs_human_in_a_signal_file(crew: Crew) -> None:
    crew.repository()
    key = crew.tasks("Log in")[0]
    crew.plays(
        [
            {"signal": {"status": "NEEDS_HUMAN", "reason": "Need clarification on the way to log in"}},
            {"end": True},
            {"brief": "told.txt"},
            {"signal": {"status": "DONE", "summary": "With a magic link"}},
        ]
    )
    assert crew.work(agent=False)["results"][0]["outcome"] == "waiting"
    assert crew.waiting(key, "input")["text"] == "Need clarification on the way to log in"
    crew("respond", key, "A magic link")
    assert crew.work(agent=False)["results"][0]["outcome"] == "done"
    task = crew.desk.show(key)
    assert (task["state"], task["summary"]) == ("done", "With a magic link")
    folder = crew.folder / ".yourturn" / "worktrees" / key
    assert "A magic link" in (folder / "told.txt").read_text()
    assert ".agents/signals" not in crew.git("ls-tree", "-r", "--name-only", task["branch"])


def test_signal_file_of_an_earlier_turn_is_ignored(crew: Crew) -> None:
    key = crew.tasks("Old news")[0]
    old = crew.folder / ".agents" / "signals" / "exec.json"
    old.parent.mkdir(parents=True)
    old.write_text('{"status": "DONE"}')
    crew.says(key, "Hm.", "Hm.")
    crew.work("--turns", "2")
    assert crew.waiting(key, "escalation")["reason"] == "decision_needed"


def test_signal_files_of_agents_that_share_a_folder(crew: Crew) -> None:
    """Without a repository all agents work in one folder; the signal of one never counts for another."""
    keys = crew.tasks("One", "Two", "Three")
    for key in keys:
        said = f'{{"status": "NEEDS_HUMAN", "reason": "about {key}"}}'
        crew.says(key, f'$ mkdir -p "$YOURTURN_SIGNALS"; echo \'{said}\' > "$YOURTURN_SIGNALS/exec.json"; sleep 0.3')
    crew.work("--parallel", "3")
    assert [crew.waiting(key, "input")["text"] for key in keys] == [f"about {key}" for key in keys]
    assert ".agents/signals/PROJ-1/exec.json" in crew.told("PROJ-1")


def test_command_counts_before_the_message(crew: Crew) -> None:
    """A command of the agent counts, whatever its message says afterwards."""
    keys = crew.tasks("Finish", "Ask", "Give up", "Split", "Hand back")
    verbs = ("complete {} --summary 'by hand'", "ask {} 'Which?'", "fail {} --reason 'no way'",
             "decompose {} --child A --child B", "release {} --reason 'not now'")  # fmt: skip
    for key, verb in zip(keys, verbs, strict=True):
        crew.says(key, f"$ turn {verb.format('$YOURTURN_TASK')} > /dev/null && echo '<promise>EJECT: confused</promise>'")
    told: dict[str, list[str]] = {}
    for row in crew.work("--parallel", "2")["results"]:
        told.setdefault(row["task"], []).append(row["outcome"])
    assert {key: sorted(outcomes) for key, outcomes in told.items()} == {  # a new session may end before the one it follows
        "PROJ-1": ["done"], "PROJ-2": ["waiting"], "PROJ-3": ["failed"], "PROJ-4": ["done", "moved"], "PROJ-5": ["done", "moved"],
        "PROJ-6": ["done"], "PROJ-7": ["done"],
    }  # fmt: skip
    assert {key for key, state in crew.states().items() if state != "done"} == {"PROJ-2", "PROJ-3"}
    assert crew.desk.show("PROJ-1")["summary"] == "by hand"
    assert [q["kind"] for q in crew.desk.show("PROJ-2")["questions"]] == ["input"]
    assert crew.desk.show("PROJ-5")["retry_count"] == 1


def test_unknown_status_reaches_a_person(crew: Crew) -> None:
    keys = crew.tasks("Two at once", "Unknown", "Unclosed", "Asked and finished")
    crew.says(keys[0], "<promise>COMPLETE</promise>\n<promise>EJECT: or not</promise>")
    crew.says(keys[1], "<promise>FINISHED</promise>")
    crew.says(keys[2], '{"status": "completed", "summary": ')
    crew.says(keys[3], '<promise>INPUT_NEEDED: Which?</promise>\n{"status": "completed", "summary": "x"}')
    crew.work("--turns", "1")
    for key in keys:
        assert crew.waiting(key, "escalation")["reason"] in ("protocol_error", "decision_needed")
    assert [crew.desk.show(key)["questions"][0]["reason"] for key in (keys[0], keys[1], keys[3])] == ["protocol_error"] * 3


def test_verdict_question_needs_no_text(crew: Crew) -> None:
    """A question that wants only a verdict needs no text."""
    key = crew.tasks("Paint the door")[0]
    crew.says(key, "<promise>APPROVAL_NEEDED</promise>")
    crew.work()
    assert crew.waiting(key, "approval")["text"] == "Sign off: Paint the door"
    assert crew.desk.show(key)["notes"] == []


def test_inbox_shows_the_command_that_answers(crew: Crew) -> None:
    key = crew.tasks("Decide")[0]
    crew.says(key, "<promise>CHECKPOINT: Half of it is done.</promise>")
    crew.work()
    assert crew.text("inbox").splitlines()[-1] == 'Next: turn show Q1 | turn approve Q1 | turn reject Q1 "why"'


def test_finished_work_that_a_person_signs_off(crew: Crew) -> None:
    key = crew.tasks("Move the money", requires="approval")[0]
    assert crew.work()["results"][0]["outcome"] == "waiting"
    assert crew.desk.show(key)["awaiting"] == "approval"
    crew("reject", key, "Twice is not once")
    crew.work()
    assert "Twice is not once" in crew.told(key, 2)
    assert crew("approve", key)["state"] == "done"

"""What an agent says at the end of its turn arrives whole: questions, how they are asked, details, issues, exact words."""

from __future__ import annotations

import json

from tests.fixtures.worker import Crew

PORT, REGION = "Which port?", "Which region?"


def result(**said: object) -> str:
    return f"Here is where I am.\n\n```json\n{json.dumps(said)}\n```"


def test_two_tags_are_two_questions_and_both_answers_arrive(crew: Crew) -> None:
    key = crew.tasks("Deploy it")[0]
    crew.says(key, f"<promise>INPUT_NEEDED: {PORT}</promise>\n<promise>INPUT_NEEDED: {REGION}</promise>")
    told = crew.work()
    assert told["results"][0]["words"] == f"waits for a person (input): {PORT} (and 1 more)"
    asked = crew.desk.show(key)["questions"]
    assert [(q["text"], q["kind"], q["status"]) for q in asked] == [(PORT, "input", "pending"), (REGION, "input", "pending")]
    assert asked[0]["group"] == asked[1]["group"] is not None
    crew("respond", asked[0]["id"], "8080")
    assert crew.state(key) == "human"
    crew("respond", asked[1]["id"], "Frankfurt")
    crew.work()
    brief = crew.told(key, 2)
    assert "8080" in brief and "Frankfurt" in brief
    assert crew.state(key) == "done"


def test_a_result_says_how_its_questions_are_asked(crew: Crew) -> None:
    key = crew.tasks("Deploy it")[0]
    region = {"question": REGION, "options": ["eu", "us"], "default": "eu", "timeout": "2h", "reviewer": "ops"}
    crew.says(key, result(status="needs_input", summary="The image is built.", questions=[PORT, region], confidence=0.4))
    crew.work()
    port, where = crew.desk.show(key)["questions"]
    assert (where["response_type"], where["default"], where["reviewer"], where["on_timeout"]) == (
        "choice",
        "eu",
        "ops",
        "default",
    )
    assert where["timeout_at"] and port["timeout_at"] is None
    assert (port["confidence"], where["confidence"]) == (0.4, 0.4)
    assert port["context"] == where["context"] == {"summary": "The image is built."}
    assert [option["id"] for option in where["options"]] == ["eu", "us"]
    crew("respond", where["id"], "us")
    crew("respond", port["id"], "443")
    crew.work()
    assert crew.told(key, 2).count("The image is built.") == 1


def test_a_tag_and_a_signal_file_say_it_too(crew: Crew) -> None:
    tag, file = crew.tasks("By tag", "By file")
    crew.says(tag, '<promise>INPUT_NEEDED: {"question": "JWT?", "options": ["yes", "no"], "urgency": "high"}</promise>')
    said = '{"status": "NEEDS_HUMAN", "question": "JWT?", "responseType": "boolean", "questionContext": "Phones first."}'
    crew.says(file, f'$ mkdir -p "$YOURTURN_SIGNALS"; echo \'{said}\' > "$YOURTURN_SIGNALS/exec.json"')
    crew.work()
    (one,), (two,) = (crew.desk.show(key)["questions"] for key in (tag, file))
    assert (one["text"], one["urgency"], [o["id"] for o in one["options"]]) == ("JWT?", "high", ["yes", "no"])
    assert (two["text"], two["response_type"], two["context"]) == ("JWT?", "boolean", {"text": "Phones first."})


def test_handoff_the_desk_cannot_ask_reaches_a_person_verbatim(crew: Crew) -> None:
    """The fields are fine each, but not together, or not in this project."""
    keys = crew.tasks("Too long", "No choice", "Not open")
    crew.says(keys[0], result(status="needs_input", question=PORT, timeout="9d"))
    crew.says(
        keys[1], result(status="needs_input", questions=[REGION, {"question": PORT, "default": "x", "options": ["y", "z"]}])
    )
    crew.says(keys[2], '<promise>APPROVAL_NEEDED: {"question": "Is it good?", "options": ["a", "b"]}</promise>')
    crew.work()
    why = ("The timeout must be between", "The default does not fit the question", "is answered with yes or no")
    for key, words, asked in zip(keys, why, (PORT, PORT, "Is it good?"), strict=True):
        (found,) = crew.desk.show(key)["questions"]
        assert (found["kind"], found["reason"]) == ("escalation", "protocol_error")
        assert words in found["text"] and found["context"]["question"] == asked
        assert asked in found["context"]["final_message"]


def test_protocol_error_shows_the_message_without_a_traceback(crew: Crew) -> None:
    keys = crew.tasks("Two ends", "Unknown", "A word of its own", "In a file")
    both = "It works, I think.\n<promise>COMPLETE</promise>\n<promise>EJECT: no key</promise>"
    crew.says(keys[0], both)
    crew.says(keys[1], "<promise>FINISHED</promise>")
    crew.says(keys[2], result(status="weird", summary="x"))
    crew.says(keys[3], '$ mkdir -p "$YOURTURN_SIGNALS"; echo \'{"status": "ALMOST"}\' > "$YOURTURN_SIGNALS/exec.json"; echo Hm.')
    crew.work()
    asked = [crew.desk.show(key)["questions"] for key in keys]
    assert [[q["reason"] for q in some] for some in asked] == [["protocol_error"]] * 4
    assert asked[0][0]["context"] == {"final_message": both}
    assert "There is no status 'weird'. There are: " in asked[2][0]["text"]
    assert "There is no status 'ALMOST'." in asked[3][0]["text"]
    assert asked[3][0]["context"] == {"final_message": "Hm.", "signal_file": '{"status": "ALMOST"}'}
    assert [crew.turns(key) for key in keys] == [1, 1, 1, 1]
    shown = crew.text("show", keys[0])
    assert "Final message:" in shown and "It works, I think." in shown and "{'" not in shown


def test_a_tag_without_words_asks_with_the_last_message(crew: Crew) -> None:
    old, bare = crew.tasks("Old word", "Nothing else")
    crew.says(old, f"Two services listen.\n\n{PORT}\n\n<promise>BLOCKED</promise>")
    crew.says(bare, "<promise>INPUT_NEEDED</promise>")
    crew.work()
    assert crew.waiting(old, "input")["text"] == f"Two services listen.\n\n{PORT}"
    assert crew.waiting(bare, "input")["text"] == "Information is needed: Nothing else"


def test_details_and_issues_reach_reviewer_next_session_and_commit(crew: Crew) -> None:
    crew.repository()
    signed, free, failed = crew.tasks("Log in", requires="approval") + crew.tasks("Log out", "Give up")
    said = {"summary": "It works", "details": "JWT, see auth.py.", "issues": ["one flaky test", "no rate limit"], "testsRun": 12}
    for key in (signed, free):
        crew.says(key, f"$ echo code > {key}.py; cat <<'END'\n{json.dumps({'status': 'completed', **said})}\nEND")
    crew.says(failed, json.dumps({"status": "failed", "summary": "no network", "details": "Tried twice.", "issues": ["DNS"]}))
    crew.work()
    kept = "JWT, see auth.py.\nTests run: 12\n\nIssues:\n- one flaky test\n- no rate limit"
    assert [note["text"] for note in crew.desk.show(free)["notes"]] == [kept]
    assert kept in crew.git("log", "-1", "--format=%B", crew.desk.show(free)["branch"])
    task = crew.desk.show(failed)
    assert (task["reason"], [note["text"] for note in task["notes"]]) == ("no network", ["Tried twice.\n\nIssues:\n- DNS"])
    (question,) = crew.desk.show(signed)["questions"]
    assert question["context"] == {"details": "JWT, see auth.py.\nTests run: 12", "issues": ["one flaky test", "no rate limit"]}
    shown = crew.text("show", signed)
    assert "Issues:" in shown and "- one flaky test" in shown
    crew("reject", signed, "Mend the flaky test")
    crew.work()
    brief = crew.told(signed, 2)
    assert brief.count("one flaky test") == 1 and "JWT, see auth.py." in brief


def test_by_command_too(crew: Crew) -> None:
    crew.repository()
    key, lost = crew.tasks("By hand", "By hand, in vain")
    more = "--details 'JWT, see auth.py.' --issue 'one flaky test'"
    crew.says(key, f"$ echo code > a.py; turn complete $YOURTURN_TASK --summary 'It works' {more} > /dev/null")
    crew.says(lost, f"$ turn fail $YOURTURN_TASK --reason 'no network' {more} > /dev/null")
    crew.work()
    kept = "JWT, see auth.py.\n\nIssues:\n- one flaky test"
    for task in (crew.desk.show(key), crew.desk.show(lost)):
        assert [note["text"] for note in task["notes"]] == [kept]
    assert f"It works\n\n{kept}" in crew.git("log", "-1", "--format=%B", crew.desk.show(key)["branch"])


def test_the_context_is_not_hidden_behind_the_summary(crew: Crew) -> None:
    key = crew.tasks("Log in")[0]
    why = "Tokens suit the mobile app, cookies the web."
    crew.says(
        key, result(status="needs_input", summary="word " * 60, question="JWT?", questionContext=why, filesTouched=["a", "b"])
    )
    crew.work()
    assert f"Context: {why}" in crew.text("list", "--awaiting")
    shown = crew.text("show", key)
    assert "Files touched:" in shown and "filesTouched" not in shown and "questionContext" not in shown
    assert shown.index(why) < shown.index("Summary:")
    editor = crew.place / "editor.sh"
    editor.write_text(f'#!/bin/sh\ncp "$1" {crew.place}/template; echo JWT >> "$1"\n')
    editor.chmod(0o755)
    crew("respond", key, "--edit", env={"EDITOR": str(editor)})
    template = (crew.place / "template").read_text()
    assert f"## Context\n\n{why}\nSummary: word" in template
    crew.work()
    brief = crew.told(key, 2)
    assert brief.index(why) < brief.index("Summary: word")


def test_a_yes_without_words_points_to_the_notes(crew: Crew) -> None:
    noted, silent = crew.tasks("Noted", "Silent")
    for key in (noted, silent):
        crew.says(key, "<promise>INPUT_NEEDED: Which payment provider?</promise>")
    crew.work()
    crew("note", noted, "Use Stripe.")
    for key in (noted, silent):
        crew("approve", key)
    crew.work()
    brief = crew.told(noted, 2)
    assert "Approved without words; see the notes. The newest, by human:ana:" in brief
    assert "Use Stripe." in brief and "answer:** Yes" not in brief
    assert "Approved without words, and no person has written a note." in crew.told(silent, 2)


def test_show_lists_earlier_answers_with_their_questions(crew: Crew) -> None:
    key = crew.tasks("Log in")[0]
    crew.says(key, *(f"<promise>INPUT_NEEDED: {asked}</promise>" for asked in (PORT, REGION, "Which name?")))
    for said in ("8080", "Frankfurt", ""):
        crew.work()
        crew("respond", key, said) if said else crew("approve", key)
    shown = crew.text("show", key)
    assert f"{PORT}   " in shown and "ana: “8080”" in shown
    assert f"{REGION} " in shown and "ana: “Frankfurt”" in shown
    assert "ana said yes without words" in shown


def test_a_project_reminds_of_what_agents_ask(crew: Crew) -> None:
    crew("project", "set", "signal_timeout", "3d")
    crew("project", "set", "signal_timeout.escalation", "none")
    crew("project", "set", "signal_on_timeout", "defer")
    asked, odd = crew.tasks("Asks", "Odd")
    crew.says(asked, f"<promise>INPUT_NEEDED: {PORT}</promise>")
    crew.says(odd, "<promise>ESCALATE: Odd.</promise>")
    crew.work()
    question = crew.waiting(asked, "input")
    assert (question["timeout_at"] is not None, question["on_timeout"]) == (True, "defer")
    assert crew.waiting(odd, "escalation")["timeout_at"] is None
    shown = crew.text("project", "show")
    assert "signal_timeout " in shown and "signal_timeout.escalation" in shown

"""Handoffs with several questions and their fields; details and issues."""

from __future__ import annotations

import json
from typing import Any

import pytest

from yourturn.worker.signals.outcomes import Outcome, account, from_file, from_message, read, unknown


def tags(*said: str) -> Outcome:
    return from_message("\n".join(f"<promise>{text}</promise>" for text in said))


def result(**said: Any) -> Outcome:
    return from_message(json.dumps({"status": "needs_input", **said}))


def texts(outcome: Outcome) -> list[tuple[str, str]]:
    return [(question["kind"], question["text"]) for question in outcome.questions]


# --- several


def test_two_tags_that_ask_are_two_questions():
    found = tags("INPUT_NEEDED: a?", "INPUT_NEEDED: b?")
    assert (found.what, texts(found)) == ("ask", [("input", "a?"), ("input", "b?")])
    assert texts(tags("CHECKPOINT: half", "ESCALATE: odd", "CHECKPOINT: half")) == [("checkpoint", "half"), ("escalation", "odd")]


def test_tag_with_text_replaces_the_same_tag_without():
    assert texts(tags("INPUT_NEEDED", "INPUT_NEEDED: a?")) == [("input", "a?")]
    assert texts(tags("APPROVAL_NEEDED: look", "APPROVAL_NEEDED")) == [("approval", "look")]


@pytest.mark.parametrize(
    "said", [("COMPLETE", "INPUT_NEEDED: a?"), ("APPROVAL_NEEDED: a", "EJECT: b"), ("CONTENT_REVIEW: a", "REVIEW_REQUESTED: b")]
)
def test_two_questions_that_end_the_task_contradict(said):
    assert tags(*said).what == "broken"
    assert "contradicts itself" in tags(*said).text


def test_a_result_with_several_questions():
    found = result(
        summary="The model is there.",
        questions=[
            "Which port?",
            {"question": "Which region?", "questionContext": "Both cost the same.", "options": ["eu", "us"]},
        ],
    )
    assert texts(found) == [("input", "Which port?"), ("input", "Which region?")]
    assert found.context == {"summary": "The model is there."}
    assert found.fields["also"] == [
        {"kind": "input", "text": "Which region?", "options": ["eu", "us"],
         "context": {"text": "Both cost the same.", "summary": "The model is there."}}
    ]  # fmt: skip


def test_single_question_comes_first_and_once():
    found = result(question="a?", options=["x", "y"], questions=["b?", "a?"], reviewer="ana")
    assert texts(found) == [("input", "a?"), ("input", "b?")]
    assert found.fields == {
        "options": ["x", "y"],
        "reviewer": "ana",
        "also": [{"kind": "input", "text": "b?", "reviewer": "ana"}],
    }


def test_options_beside_several_questions_are_refused():
    found = result(questions=["a?", "b?"], options=["x", "y"])
    assert found.what == "broken" and "options beside several questions" in found.text
    assert result(questions=["a?"], options=["x", "y"]).fields == {"options": ["x", "y"]}


def test_kinds_of_several_questions():
    found = result(questions=["a?", {"question": "Half of it is done.", "kind": "checkpoint"}])
    assert texts(found) == [("input", "a?"), ("checkpoint", "Half of it is done.")]
    two = [{"question": "a", "kind": "approval"}, {"question": "b", "kind": "work"}]
    assert result(questions=two).text == "The agent contradicts itself: it says 'approval' and 'work' (the JSON results)."


def test_questions_of_a_less_trusted_source_are_kept():
    found = read("<promise>INPUT_NEEDED: And the region?</promise>", b'{"status": "NEEDS_HUMAN", "reason": "Which port?"}')
    assert (texts(found), found.context) == ([("input", "Which port?")], {"also_said": "And the region?"})


# --- how it is asked

FIELDS = {
    "options": ["jwt", {"id": "cookie", "label": "Cookies", "description": "for the web"}], "default": "jwt", "reviewer": "ana",
    "confidence": 0.7, "timeout": "2h", "on_timeout": "remind", "response_type": "choice", "urgency": "high", "multi": False,
    "allow_other": True,
}  # fmt: skip
CAMEL = {"on_timeout": "onTimeout", "response_type": "responseType", "allow_other": "allowOther"}


@pytest.mark.parametrize("way", ["tag", "json", "file"])
@pytest.mark.parametrize("names", [{}, CAMEL], ids=["snake", "camel"])
def test_every_form_has_question_fields(way, names):
    said = json.dumps({"question": "JWT?", **{names.get(name, name): value for name, value in FIELDS.items()}})
    found = {
        "tag": lambda: from_message(f"<promise>INPUT_NEEDED: {said}</promise>"),
        "json": lambda: from_message(f'{{"status": "needs_input", {said[1:]}'),
        "file": lambda: from_file(f'{{"status": "NEEDS_HUMAN", {said[1:]}'.encode()),
    }[way]()
    assert (found.what, found.kind, found.text, found.context) == ("ask", "input", "JWT?", {})
    assert found.fields == FIELDS


def test_result_accepts_argument_names_of_the_tool():
    assert result(question="JWT?", timeoutMinutes=90, defaultResponse={"value": "jwt"}).fields == {
        "timeout": 5400, "default": {"value": "jwt"}
    }  # fmt: skip
    several = result(questions=[{"question": "a?", "default_response": "x"}, "b?"], timeout_minutes=0.5)
    assert several.fields["timeout"] == 30 and several.fields["also"][0]["timeout"] == 30 and several.fields["default"] == "x"
    assert result(question="JWT?", timeoutMinutes=5, timeout="2h").fields == {"timeout": "2h"}
    assert "timeout must be" in result(question="JWT?", timeoutMinutes="soon").text


@pytest.mark.parametrize(("field", "value", "why"), [
    ("options", "a or b", "options must be a list"), ("confidence", 7, "confidence must be a number from 0 to 1"),
    ("timeout", "soon", "timeout must be a length of time"), ("onTimeout", "panic", "on_timeout cannot be"),
    ("urgency", "asap", "urgency cannot be"), ("responseType", "essay", "response_type cannot be"),
    ("multi", "perhaps", "multi must be"),
    ("reviewer", ["ana"], "reviewer must be"),
])  # fmt: skip
def test_invalid_question_is_shown_to_a_person(field, value, why):
    found = result(question="JWT?", **{field: value})
    assert found.what == "broken" and found.reason == "protocol_error"
    assert why in found.text and "JWT?" in found.context["final_message"]


def test_given_context_comes_first():
    found = result(summary="s", question="q?", questionContext="what it is about", details="d", files=["a"])
    assert list(found.context.items()) == [("text", "what it is about"), ("summary", "s"), ("details", "d"), ("files", ["a"])]
    assert result(question="q?", context={"error": "E1"}).context == {"error": "E1"}


# --- words


def test_tag_without_text_asks_the_message():
    found = from_message("I found two ports.\n\nWhich one?\n\n<promise>INPUT_NEEDED</promise>")
    assert (found.what, found.kind, found.text) == ("ask", "input", "I found two ports.\n\nWhich one?")
    assert from_message("<promise>BLOCKED</promise>") == Outcome("ask", "BLOCKED", "input", "", {}, None, "promise")
    assert len(from_message("word " * 9000 + "<promise>ESCALATE</promise>").text) == 4001


@pytest.mark.parametrize(
    "said", ['{"status": "weird", "summary": "x"}', 'Ready.\n\n```json\n{"status": "weird", "summary": "x"}\n```']
)
def test_unknown_status_is_kept_for_scripts(said):
    """A script may wait for it; elsewhere it is an error (agent_turns.py)."""
    assert (from_message(said).what, from_message(said).status) == ("nothing", "weird")


@pytest.mark.parametrize(
    "said",
    [
        'The API said {"status": "weird", "summary": "x"}.',
        '{"status": "weird", "summary": "x"}\nThat is it.',
        '{"status": "a|b", "summary": "x"}',
        '{"status": "weird", "id": 7}',
    ],
)
def test_a_quoted_status_does_not_count(said):
    assert from_message(said) == Outcome("nothing")


@pytest.mark.parametrize("word", ["done", "complete", "Completed"])
def test_done_and_complete_count_at_the_end_of_a_message(word):
    said = f'Well.\n\n{{"status": "{word}", "summary": "I did it", "details": "d"}}'
    found = from_message(said)
    assert (found.what, found.text, found.context) == ("done", "I did it", {"details": "d"})
    assert from_message(f'```json\n{{"status": "{word}", "summary": "I did it"}}\n```').what == "done"


@pytest.mark.parametrize(
    "said",
    [
        '{"status": "done", "summary": "Fix login", "key": "PROJ-7"}',
        'It is {"status": "done", "summary": "x"} now.',
        '{"status": "done", "summary": "x"}\nThe tests still fail.',
        '{"status": "done", "summary": " "}',
        '{"status": "done", "priority": 2}',
    ],
)
def test_record_with_status_done_is_no_result(said):
    assert from_message(said).what == "nothing"


def test_unknown_status_lists_the_known_ones():
    assert "complete, " in unknown("weird", "file") and " done, " in unknown("weird", "file")
    assert "complete, " not in unknown("weird", "json") and "completed, " in unknown("weird", "json")


# --- what is said about the work


def test_details_and_issues_and_everything_else():
    said = {
        "details": "Login, register.",
        "issues": ["flaky test", {"file": "a.py", "line": 3}],
        "testsRun": 12,
        "files": ["a", "b"],
    }
    assert account(said) == {
        "details": "Login, register.\nTests run: 12\nFiles:\n  - a\n  - b",
        "issues": ["flaky test", "File: a.py; Line: 3"],
    }
    assert account({}) == {"details": "", "issues": []}
    assert account({"issues": "one"})["issues"] == ["one"]

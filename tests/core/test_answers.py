"""Which answers fit which question. One that does not leaves the question open and says what is allowed."""

from __future__ import annotations

import pytest

from yourturn.core.errors import Invalid

from .states import everything, state

SESSIONS = {"id": "s", "label": "Server sessions", "value": "sessions"}
CHOICE = {"options": ["jwt", SESSIONS, {"label": "Three", "value": 3}]}
COMMA = {"options": ["Auth, basic", "OAuth", "A,B , C"], "multi": True}
TWO_WAYS = {"options": ["Auth", "Auth, basic", "basic"], "multi": True}
FITS = [
    (COMMA, "Auth, basic", ["Auth, basic"]),
    (COMMA, "oauth,auth,  BASIC", ["OAuth", "Auth, basic"]),
    (COMMA, "a, b, c, OAuth", ["A,B , C", "OAuth"]),
    ({**COMMA, "allow_other": True}, "Auth, basic", ["Auth, basic"]),
    ({**COMMA, "allow_other": True}, "Auth, OAuth", ["Auth", "OAuth"]),
    (TWO_WAYS, "basic, Auth", ["basic", "Auth"]),
    (TWO_WAYS, '["Auth, basic"]', ["Auth, basic"]),
    ({}, "Use JWT", "Use JWT"),
    ({}, {"use": "jwt"}, '{"use": "jwt"}'),
    (CHOICE, "jwt", "jwt"),
    (CHOICE, "JWT ", "jwt"),
    (CHOICE, "s", "sessions"),
    (CHOICE, "server sessions", "sessions"),
    (CHOICE, 3, 3),
    (CHOICE, "3", 3),
    ({**CHOICE, "multi": True}, ["jwt", "s", "jwt"], ["jwt", "sessions"]),
    ({**CHOICE, "multi": True}, "jwt, s", ["jwt", "sessions"]),
    ({**CHOICE, "allow_other": True}, "oauth", "oauth"),
    ({**CHOICE, "multi": True, "allow_other": True}, "jwt,oauth", ["jwt", "oauth"]),
    ({**CHOICE, "multi": True, "allow_other": True}, '["jwt", "oauth, but later"]', ["jwt", "oauth, but later"]),
    ({**CHOICE, "multi": True, "allow_other": True}, "[jwt, oauth", ["[jwt", "oauth"]),
    ({"response_type": "choice", "allow_other": True}, "anything", "anything"),
    ({"response_type": "boolean"}, "Yes", True),
    ({"response_type": "boolean"}, False, False),
    ({"response_type": "number"}, "42", 42),
    ({"response_type": "number"}, 4.5, 4.5),
    ({"response_type": "number"}, "-1e3", -1000),
    ({"response_type": "number"}, " 3,5 ", 3.5),
    ({"response_type": "number"}, "-0,125", -0.125),
    ({"response_type": "number"}, "1000,25", 1000.25),
    ({"response_type": "number"}, "3.500", 3.5),
    ({"response_type": "approval"}, "ok", True),
    ({"response_type": "approval"}, None, True),
]
MISFITS = [
    (COMMA, "Auth", "takes one or more of: “Auth, basic”, “OAuth”, “A,B , C”"),
    (TWO_WAYS, "Auth, basic", "fits the options of Q[0-9]+ in several ways"),
    ({}, "", "must not be empty"),
    ({}, " \n ", "must not be empty"),
    (CHOICE, None, "takes one of: jwt, s, 3"),
    (CHOICE, "", "takes one of: jwt, s, 3"),
    (CHOICE, "oauth", "takes one of: jwt, s, 3"),
    (CHOICE, ["jwt", "s"], "takes one of"),
    (CHOICE, {"id": "jwt"}, "takes one of"),
    ({**CHOICE, "multi": True}, [], "takes one or more of: jwt, s, 3"),
    ({**CHOICE, "multi": True}, ",", "takes one or more of"),
    ({**CHOICE, "multi": True}, ["jwt", "oauth"], "takes one or more of"),
    ({**CHOICE, "multi": True}, [["jwt"]], "takes one or more of"),
    ({**CHOICE, "multi": True}, '[["jwt"]]', "takes one or more of"),
    ({**CHOICE, "multi": True}, "[]", "takes one or more of"),
    ({**CHOICE, "allow_other": True}, "  ", r"takes one of: jwt, s, 3 \(or something else\)"),
    ({"response_type": "boolean"}, "perhaps", "takes a yes or a no, not “perhaps”"),
    ({"response_type": "boolean"}, "", "takes a yes or a no"),
    ({"response_type": "boolean"}, [], "takes a yes or a no"),
    ({"response_type": "number"}, None, "takes a number"),
    ({"response_type": "number"}, "many", "takes a number"),
    ({"response_type": "number"}, "nan", "takes a number"),
    ({"response_type": "number"}, "inf", "takes a number"),
    ({"response_type": "number"}, True, "takes a number"),
    ({"response_type": "number"}, [1], "takes a number"),
    ({"response_type": "number"}, "1,000", "takes a number: '1,000' may be 1000 or 1.000"),
    ({"response_type": "number"}, "-12,345", "may be -12345 or -12.345"),
    ({"response_type": "number"}, "1,000,000", "takes a number"),
    ({"response_type": "number"}, "1,5.2", "takes a number"),
    ({"response_type": "number"}, "3,", "takes a number"),
    ({"response_type": "approval"}, "hmm", "takes a yes or a no, not “hmm”: allowed: yes .*approve.* or no .*deny"),
]


def test_answers_are_taken_as_the_question_asks(bench):
    for fields, given, value in FITS:
        key = bench.ready()
        question = bench.desk.ask(key, "Which?", **fields)
        response = bench.desk.answer(question, given)["response"]
        assert (response["value"], response["type"]) == (value, question["response_type"]), (fields, given)
        assert state(bench.desk, key) == "ready"


def test_an_answer_that_does_not_fit_leaves_the_question_open(bench):
    for fields, given, says in MISFITS:
        question = bench.desk.ask(bench.ready(), "Which?", **fields)
        before = everything(bench.desk)
        with pytest.raises(Invalid, match=says) as error:
            bench.desk.answer(question, given)
        assert "still open" in error.value.hint and error.value.exit_code == 6
        assert everything(bench.desk) == before


def test_the_text_of_an_answer_stands_for_its_value(bench):
    for fields, text, value in (({}, "JWT", "JWT"), (CHOICE, "s", "sessions"), ({"response_type": "number"}, "7", 7)):
        assert bench.desk.answer(bench.desk.ask(bench.ready(), "?", **fields), text=text)["response"]["value"] == value
    question = bench.desk.ask(bench.ready(), "?")
    with pytest.raises(Invalid, match="must not be empty"):
        bench.desk.answer(question, text="  ")


def test_approving_needs_a_value_only_where_one_must_be_chosen(bench):
    assert bench.desk.approve(bench.desk.ask(bench.ready(), "?"))["questions"][0]["response"]["value"] is None
    for fields in (CHOICE, {"response_type": "number"}):
        question = bench.desk.ask(bench.ready(), "?", **fields)
        with pytest.raises(Invalid):
            bench.desk.approve(question)
        assert bench.desk.reject(question)["state"] == "cancelled"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"response_type": "choice"}, "A choice needs options"),
        ({"response_type": "text", "options": ["a"]}, "Options do not go with a text answer"),
        ({"multi": True}, "Several answers at once need a choice"),
        ({"options": ["a", "a"]}, "names 'a' twice"),
        ({"kind": "nonsense"}, "Choose one of: work, approval"),
        ({"default": "x", "options": ["a", "b"]}, "takes one of: a, b"),
    ],
)
def test_a_question_that_cannot_be_answered_is_not_asked(bench, fields, says):
    key = bench.ready()
    before = everything(bench.desk)
    with pytest.raises(Invalid) as error:
        bench.desk.ask(key, "Which?", **fields)
    assert says in f"{error.value} {error.value.hint}"
    assert everything(bench.desk) == before

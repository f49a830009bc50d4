"""The truth of an answer in an `if`: a no is never true."""

from __future__ import annotations

import pytest

from yourturn.flow import ask, pause, step

WIPED: list[int] = []


@pytest.mark.parametrize(("say", "truth"), [
    (lambda s: s.answer("no"), False), (lambda s: s.answer("yes"), True), (lambda s: s.answer(False), False),
    (lambda s: s.reject("never"), False), (lambda s: s.hand_back(), False), (lambda s: s.signal("STOP", "never"), False),
    (lambda s: s.signal("CONTINUE"), True),
], ids=["no", "yes", "False", "rejected", "handed back", "STOP", "CONTINUE"])  # fmt: skip
def test_truth_of_a_boolean_answer(stage, say, truth):
    seen = []

    def work(prompt):
        seen.append(bool(ask("Delete the database?", response_type="boolean")))
        pause("Sure?")

    s = say(stage(work).run())
    assert s.approve().state == "done" and seen == [truth, truth], "also on replay"


def test_no_is_false(stage):
    def work(prompt):
        if ask("Delete the database?", response_type="boolean"):
            return step(WIPED.append, 1)
        return "kept"

    assert stage(work).run().answer("no").summary == "kept" and WIPED == []


@pytest.mark.parametrize(("word", "truth"), [("approve", True), ("reject", False)])
@pytest.mark.parametrize("how", [{"kind": "approval"}, {"response_type": "approval"}])
def test_truth_of_an_approval(stage, how, word, truth):
    seen = []
    s = stage(lambda prompt: seen.append(bool(ask("Ship?", **how)))).run()
    (s.approve if word == "approve" else s.reject)("so be it")
    assert s.state == "done" and seen == [truth]


@pytest.mark.parametrize(("fields", "say", "words"), [
    ({"response_type": "boolean"}, lambda s: s.answer("no"), "no"),
    ({"response_type": "boolean"}, lambda s: s.answer(True), "yes"),
    ({"response_type": "boolean"}, lambda s: s.reject(), "no"), ({"kind": "approval"}, lambda s: s.reject(), "no"),
    ({"kind": "approval"}, lambda s: s.approve(), "yes"), ({"kind": "approval"}, lambda s: s.approve("ship"), "ship"),
    ({"options": ["a", "b"]}, lambda s: s.answer("b"), "b"), ({"response_type": "number"}, lambda s: s.answer("0"), "0"),
    ({}, lambda s: s.reject(), ""),
])  # fmt: skip
def test_text_of_an_answer(stage, fields, say, words):
    seen = []

    def work(prompt):
        seen.append(str(ask("Delete the database?", **fields)))
        pause("Sure?")

    say(stage(work).run()).approve()
    assert seen == [words, words], "also on replay"


def test_a_boolean_answer_still_equals_its_value(stage):
    seen = []
    stage(lambda prompt: seen.append(ask("Delete?", response_type="boolean"))).run().answer("no")
    assert seen[0] == False and seen[0].value is False and not seen[0]  # noqa: E712


@pytest.mark.parametrize(("fields", "answer", "type"), [
    ({"options": ["yes", "no"]}, "no", "choice"), ({"options": ["yes", "no"]}, "yes", "choice"), ({}, "no", "text"),
    ({"response_type": "number"}, "0", "number"),
])  # fmt: skip
def test_other_answers_raise_on_truth(stage, fields, answer, type):
    """A run that takes one for a yes fails with the line and the remedy, and does not go on."""

    def work(prompt):
        return "went on" if ask("Delete?", **fields) else "kept"

    s = stage(work).run().answer(answer)
    assert s.state == "human" and f"an answer of type {type} is neither true nor false: compare its .value" in s.waiting.text


def test_rejected_choice_raises_on_truth(stage):
    seen = []

    def work(prompt):
        name = ask("Which name?")
        with pytest.raises(TypeError, match=r"compare its \.value"):
            bool(name)
        seen.append((name.value, name.verdict, name.approved))

    assert stage(work).run().reject("none").state == "done" and seen == [(None, "rejected", None)]


@pytest.mark.parametrize("fields", [{"options": ["yes", "no"]}, {"response_type": "boolean"}, {"default": True}, {"multi": True}])
def test_a_pause_is_answered_with_yes_or_no(stage, fields):
    s = stage(lambda prompt: pause("Ship?", **fields)).run()
    assert "pause() takes no " in s.waiting.text and s.waiting.kind == "recovery"


def test_pause_takes_no_default(stage):
    s = stage(lambda prompt: pause("Ship?", on_timeout="default")).run()
    assert "pause() takes no default" in s.waiting.text


@pytest.mark.parametrize(("word", "goes_on"), [("no", False), ("yes", True)])
def test_pause_of_any_kind_is_a_verdict(stage, word, goes_on):
    seen = []
    s = stage(lambda prompt: seen.append(bool(pause("Ship?", kind="input")))).run().answer(word)
    assert s.state == "done" and seen == [goes_on]

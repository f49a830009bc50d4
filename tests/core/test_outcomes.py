"""What each verdict on each kind of question does, and which answers fit."""

from __future__ import annotations

import re

import pytest

from yourturn.core.errors import AlreadyClosed, Invalid, NotAllowed, Precondition
from yourturn.core.model import VERDICTS, Who
from yourturn.core.rules import KINDS, OUTCOMES

from .states import everything, number, state, verbs

LANDS = {"done": "done", "cancelled": "cancelled", "back": "ready"}
MEMBER = Who("human:mia", "member")
APPROVER = Who("human:max", "approver")


def ask(bench, kind="input", **fields):
    key = bench.ready()
    return key, bench.desk.flag(key, "What now?", kind=kind, **fields)["questions"][0]["id"]


def verdict(desk, named, word, text=""):
    return desk.approve(named, text) if word == "approved" else desk.reject(named, text)


# --- the verdict table ----------------------------------------------------------------------------------------------


def test_the_published_table():
    """The cells as they were promised; the code's table has to say the same."""
    promised = {
        "work": "done refused", "approval": "done back", "input": "back cancelled", "review": "done back",
        "content": "done back", "escalation": "back cancelled", "checkpoint": "back back", "permission": "back back",
        "recovery": "back back",
    }  # fmt: skip
    assert {(kind, v): row.split()[i] for kind, row in promised.items() for i, v in enumerate(VERDICTS)} == OUTCOMES


@pytest.mark.parametrize("by", ["key", "question"])
@pytest.mark.parametrize("word", VERDICTS)
def test_every_verdict_leads_to_the_state_of_the_table(bench, word, by):
    for kind in KINDS:
        key, question = ask(bench, kind)
        outcome = OUTCOMES[kind, word]
        named = key if by == "key" else question
        if outcome == "refused":
            before = everything(bench.desk)
            with pytest.raises(Precondition) as error:
                verdict(bench.desk, named, word, "no")
            assert "--awaiting=null" in error.value.hint and "turn cancel" in error.value.hint
            assert everything(bench.desk) == before
            continue
        task = verdict(bench.desk, named, word, "because")
        assert (task["state"], task["awaiting"]) == (LANDS[outcome], None), kind
        closed = task["questions"][0]
        assert (closed["status"], closed["response"]["verdict"]) == ("answered", word)
        assert closed["responded_by"] == "human:ana"


def test_in_a_workflow_every_verdict_goes_back_to_the_script(bench):
    for kind in KINDS:
        for word in VERDICTS:
            key = bench.ready(workflow="feature.py")
            bench.desk.flag(key, "What now?", kind=kind)
            assert verdict(bench.desk, key, word)["state"] == "ready", (kind, word)


def test_yes_and_no_words_are_verdicts_only_if_the_kind_asks_for_one(bench):
    _, question = ask(bench, "checkpoint")
    assert bench.desk.answer(question, "no", text="too soon")["response"]["verdict"] == "rejected"
    _, question = ask(bench, "input", response_type="boolean")
    response = bench.desk.answer(question, "no")["response"]
    assert response == {"type": "boolean", "value": False, "text": "", "verdict": "approved"}


def test_no_by_value_on_work_is_refused_like_a_rejection(bench):
    key, question = ask(bench, "work")
    before = everything(bench.desk)
    with pytest.raises(Precondition):
        bench.desk.answer(question, "no")
    assert everything(bench.desk) == before and state(bench.desk, key) == "human"


def test_text_of_a_rejection_becomes_a_note_unless_blank(bench):
    for kind in ("approval", "input", "permission"):
        key, _ = ask(bench, kind)
        notes = bench.desk.reject(key, "softer, please")["notes"]
        assert [(n["author"], n["text"]) for n in notes] == [("human:ana", "softer, please")]
        key, _ = ask(bench, kind)
        assert bench.desk.reject(key, "  ")["notes"] == []
    key = bench.review()
    task = bench.desk.reject(key, "not yet")
    assert (task["state"], [n["text"] for n in task["notes"]]) == ("ready", ["not yet"])


def test_rejected_input_cancels_the_task_with_the_reason(bench):
    key, question = ask(bench, "escalation")
    assert bench.desk.reject(key, "drop it")["reason"] == "drop it"
    key, question = ask(bench, "input")
    assert bench.desk.reject(key)["reason"] == f"{question} was rejected"


def test_approval_after_complete_ends_the_task_rejection_keeps_its_gate(bench):
    key = bench.review(requires="content")
    assert bench.desk.show(key)["awaiting"] == "content"
    task = bench.desk.reject(key, "warmer")
    assert (task["state"], task["requires"]) == ("ready", "content")
    claim = bench.agent.claim_next("w1")["claim"]
    assert claim["task"] == key
    assert bench.agent.complete(claim, "warmer now")["state"] == "human"
    assert bench.desk.approve(key)["state"] == "done"


# --- the first answer wins ------------------------------------------------------------------------------------------


def test_second_answer_is_refused_with_author_and_time_of_the_first(bench):
    key, question = ask(bench)
    bench.desk.answer(question, "Use JWT")
    bench.clock.advance(hours=1)
    before = everything(bench.desk)
    for named in (question, key):
        with pytest.raises(AlreadyClosed) as error:
            bench.desk.as_(MEMBER).answer(named, "Use sessions")
        assert str(error.value) == f"Cannot answer {question}: human:ana answered “Use JWT” at 2026-09-21 14:13 UTC"
        assert error.value.exit_code == 4 and "--restart" in error.value.hint
    assert everything(bench.desk) == before


@pytest.mark.parametrize(
    ("asked", "given", "told"),
    [
        ({"response_type": "boolean"}, {"value": "no"}, "human:ana said no at 2026"),
        ({"response_type": "boolean"}, {"value": True, "text": "go on"}, "human:ana said yes “go on” at 2026"),
        ({"kind": "approval", "response_type": "boolean"}, {"value": "no"}, "human:ana rejected it at 2026"),
        ({"kind": "approval"}, {"verdict": "approved"}, "human:ana said yes at 2026"),
        ({"response_type": "number"}, {"value": 0}, "human:ana answered “0” at 2026"),
        (
            {"options": [{"id": "eu", "label": "Europe", "value": "eu-1"}, {"id": "us", "label": "America", "value": "us-1"}],
             "multi": True},
            {"value": ["eu", "us"]}, "human:ana answered “Europe, America” at 2026",
        ),
    ],
)  # fmt: skip
def test_second_answer_is_refused_with_the_label_of_the_first(bench, asked, given, told):
    _, question = ask(bench, **asked)
    bench.desk.answer(question, **given)
    with pytest.raises(AlreadyClosed, match=re.escape(f"Cannot answer {question}: {told}")):
        bench.desk.answer(question, "late")


def test_late_answer_names_the_rejection_timeout_or_cancellation(bench):
    _, question = ask(bench, "approval")
    bench.desk.reject(question, "softer")
    with pytest.raises(AlreadyClosed, match=r"human:ana rejected it “softer” at 2026"):
        bench.desk.approve(question)
    _, question = ask(bench, timeout="10m")
    bench.clock.advance(minutes=11)
    with pytest.raises(AlreadyClosed, match=r"it timed out at 2026.* \(no answer: fail\)"):
        bench.desk.answer(question, "late")
    key, question = ask(bench)
    bench.desk.cancel(key)
    with pytest.raises(AlreadyClosed, match=rf"it was cancelled by human:ana at .* \({key} was cancelled\)"):
        bench.desk.answer(question, "late")


@pytest.mark.parametrize("verb", ["answer", "approve", "reject", "withdraw", "assign"])
def test_closed_question_refuses_every_verb(bench, verb):
    key, question = ask(bench)
    bench.desk.answer(question, "done with it")
    before = everything(bench.desk)
    args = {"assign": {"reviewer": "bob"}}.get(verb, {})
    with pytest.raises(AlreadyClosed, match="human:ana"):
        bench.desk.do(verb, task=number(bench.desk, key), question_id=int(question[1:]), **args)
    assert everything(bench.desk) == before


def test_late_answer_becomes_a_note_and_reopens_the_task(bench):
    key, question = ask(bench, timeout="10m", on_timeout="fail")
    bench.clock.advance(minutes=11)
    assert state(bench.desk, key) == "failed"
    for named in (question, key):
        kept = bench.desk.answer(named, "Use JWT after all", restart=True)
        assert (kept["id"], kept["status"], kept["response"]) == (question, "timeout", None)
    task = bench.desk.show(key)
    assert (task["state"], task["failure"], task["reason"]) == ("ready", None, "")
    assert [n["text"] for n in task["notes"]] == [f"Late answer to {question} (What now?): Use JWT after all"] * 2
    assert verbs(bench.desk, key)[-2:] == ["reopen", "answer"]


def test_late_answer_to_an_open_task_is_only_a_note(bench):
    key, question = ask(bench)
    bench.desk.answer(question, "one")
    bench.desk.answer(question, "two", restart=True)
    (kept,) = bench.desk.show(key)["notes"]
    assert (state(bench.desk, key), kept["text"]) == ("ready", f"Late answer to {question} (What now?): two")
    with pytest.raises(Invalid, match="needs words"):
        bench.desk.answer(question, restart=True)


def test_a_late_answer_keeps_its_verdict_and_is_checked(bench):
    """The words alone say the opposite of the no, and a word that fits no yes or no is refused as it is in time."""
    key, question = ask(bench, "checkpoint", timeout="10m", on_timeout="fail")
    bench.clock.advance(minutes=11)
    with pytest.raises(Invalid, match="takes a yes or a no"):
        bench.desk.answer(question, "maybe", restart=True)
    assert state(bench.desk, key) == "failed"
    bench.desk.reject(question, "the screenshots look great", restart=True)
    bench.desk.answer(question, "no", restart=True)
    bench.desk.approve(question, restart=True)
    told = [n["text"].removeprefix(f"Late answer to {question} (What now?): ") for n in bench.desk.show(key)["notes"]]
    assert told == ["no. the screenshots look great", "no", "yes"]


def test_the_right_to_answer_includes_a_restart_with_a_late_answer(bench):
    key, question = ask(bench)
    bench.desk.reject(question, "no")
    before = everything(bench.desk)
    for other in (Who("agent:coder", "agent"), Who("human:vic", "viewer")):
        with pytest.raises(NotAllowed):
            bench.desk.as_(other).answer(question, "yes after all", restart=True)
    with pytest.raises(NotAllowed, match="only an admin"):
        bench.desk.as_(MEMBER).reopen(key)
    assert everything(bench.desk) == before
    bench.desk.as_(MEMBER).answer(question, "yes after all", restart=True)
    assert state(bench.desk, key) == "created"


def test_a_gate_that_is_for_approvers_is_restarted_by_them(bench):
    bench.desk.set("approvals", "approvers")
    key = bench.ready()
    question = bench.ask(key, kind="checkpoint", timeout="10m", on_timeout="fail")
    bench.clock.advance(minutes=11)
    assert state(bench.desk, key) == "failed"
    with pytest.raises(NotAllowed, match="only approvers"):
        bench.desk.as_(MEMBER).answer(question, "yes", "after all", restart=True)
    bench.desk.as_(APPROVER).answer(question, "yes", "after all", restart=True)
    assert state(bench.desk, key) == "ready"


def test_a_late_cancel_keeps_no_answer(bench):
    _, question = ask(bench)
    bench.desk.answer(question, "one")
    with pytest.raises(AlreadyClosed) as error:
        bench.desk.withdraw(question)
    assert "note" not in error.value.hint and question in error.value.hint


# --- gates, and the other ways to close a question ------------------------------------------------------------------


def test_a_project_can_reserve_its_gates_for_approvers(bench):
    bench.desk.set("approvals", "approvers")
    for kind, row in KINDS.items():
        _, question = ask(bench, kind)
        if row.gate:
            before = everything(bench.desk)
            for move in (bench.desk.as_(MEMBER).approve, bench.desk.as_(MEMBER).reject):
                with pytest.raises(NotAllowed, match="only approvers can, and human:mia is a member"):
                    move(question)
            assert everything(bench.desk) == before
        bench.desk.as_(APPROVER if row.gate else MEMBER).approve(question, "fine")
        assert bench.desk.show(question)["status"] == "answered"


def test_finished_work_is_a_gate_too(bench):
    bench.desk.set("approvals", "approvers")
    key = bench.review()
    for move in ("accept", "approve", "reject"):
        with pytest.raises(NotAllowed, match="only approvers can"):
            getattr(bench.desk.as_(MEMBER), move)(key)
    assert bench.desk.as_(APPROVER).accept(key)["state"] == "done"


def test_withdraw_takes_a_question_off_the_desk_without_an_answer(bench):
    key, question = bench.waiting("working")
    asked = bench.desk.withdraw(question, "found it myself")
    assert (asked["status"], asked["response"], asked["responded_by"]) == ("cancelled", None, "human:ana")
    assert state(bench.desk, key) == "working"


def test_an_agent_withdraws_only_what_it_asked_and_what_holds_nothing_up(bench):
    _, own = bench.asked_aside("working")
    assert bench.agent.withdraw(own)["status"] == "cancelled"
    _, other = bench.asked_aside("working")
    _, gate = bench.waiting("working")
    for question, agent in ((other, Who("agent:rival", "agent")), (gate, bench.agent.who)):
        with pytest.raises(NotAllowed, match="only people"):
            bench.desk.as_(agent).withdraw(question)


def test_assign_sends_a_question_to_a_person(bench):
    key, question = ask(bench)
    assert bench.desk.assign(question, "bob")["reviewer"] == "bob"
    assert bench.desk.assign(key, "approver")["reviewer"] == "approver"
    assert [q["id"] for q in bench.desk.inbox(reviewer="approver")] == [question]


def test_hand_back_cancels_what_is_open_and_resets_the_tries(bench):
    key = bench.working(max_retries=1)
    bench.agent.release(bench.claims.pop(key))
    aside = bench.ask(key, blocking=False, default="x")
    task = bench.desk.hand_back(key)
    assert (task["state"], task["retry_count"]) == ("ready", 0)
    assert {q["id"]: q["status"] for q in task["questions"]}[aside] == "cancelled"
    assert all(q["status"] == "cancelled" for q in task["questions"])

"""A handoff: several questions in one move, how long they wait, and what is said about finished or failed work."""

from __future__ import annotations

import pytest

from yourturn.core.errors import Invalid
from yourturn.core.settings import SETTINGS

from .states import everything, state

ALSO = [{"text": "Which region?", "options": ["eu", "us"], "reviewer": "bob"}, {"text": "Half is done.", "kind": "checkpoint"}]


def flagged(bench, text="Which port?", **fields):
    key = bench.working()
    found = bench.agent.flag(key, text, None, fields.pop("kind", "input"), claim=bench.claims[key], **fields)
    return key, found["questions"]


# --- several questions, one move


def test_several_questions_are_asked_in_one_move(bench):
    key, asked = flagged(bench, also=ALSO)
    assert [(q["text"], q["kind"], q["response_type"], q["reviewer"]) for q in asked] == [
        ("Which port?", "input", "text", None), ("Which region?", "input", "choice", "bob"),
        ("Half is done.", "checkpoint", "approval", None),
    ]  # fmt: skip
    (group,) = {q["group"] for q in asked}
    assert group and group.startswith(f"{key}/")
    (event,) = bench.desk.history(key, action="flag")
    assert [q["text"] for q in event["data"]["opened"]] == [q["text"] for q in asked]
    assert bench.desk.show(key)["claim"] is None
    for q, said in zip(asked, ("8080", "eu", "yes"), strict=True):
        assert state(bench.desk, key) == "human"
        bench.desk.answer(q["id"], said)
    assert state(bench.desk, key) == "ready"


def test_groups_of_two_handoffs_differ(bench):
    key, first = flagged(bench, also=ALSO[:1])
    for q in first:
        bench.desk.answer(q["id"], q["options"][0]["id"] if q["options"] else "so")
    claim = bench.agent.claim(key, "w1")["claim"]
    second = bench.agent.flag(key, "Again?", None, "input", claim=claim, also=ALSO[:1])["questions"]
    assert len({q["group"] for q in [*first, *second] if q["group"]}) == 2
    assert bench.desk.flag(bench.ready(), "One?", None, "input")["questions"][0]["group"] is None


@pytest.mark.parametrize(
    ("also", "why"),
    [
        ("b?", "also must be a list of questions"),
        ([{"options": ["x"]}], "needs a text"),
        ([{"text": "b?", "blocking": False}], "takes no 'blocking'"),
        ([{"text": "b?", "kind": "approval", "options": ["x", "y"]}], "answered with yes or no"),
        ([{"text": f"{n}?"} for n in range(20)], "at most 20"),
        ([{"text": "b?", "timeout": "40d"}], "The timeout must be between"),
    ],
)
def test_one_that_does_not_fit_leaves_all_of_them_unasked(bench, also, why):
    key = bench.working()
    before = everything(bench.desk)
    with pytest.raises(Invalid, match=why):
        bench.agent.flag(key, "a?", None, "input", claim=bench.claims[key], also=also)
    assert everything(bench.desk) == before


# --- how long they wait


def test_a_project_says_how_long_a_handoff_waits_and_reminds(bench):
    bench.desk.set("signal_timeout", "3d")
    key, (asked,) = flagged(bench)
    assert asked["on_timeout"] == "remind"
    bench.clock.advance(days=3)
    bench.desk.reconcile()
    (reminded,) = bench.desk.show(key)["questions"]
    assert (reminded["status"], state(bench.desk, key)) == ("pending", "human")
    assert reminded["timeout_at"] > asked["timeout_at"]


@pytest.mark.parametrize(
    ("word", "lands", "failure"), [("fail", "failed", "timeout"), ("stuck", "failed", "stuck"), ("defer", "deferred", None)]
)
def test_a_project_fails_or_defers_unanswered_questions(bench, word, lands, failure):
    bench.desk.set("signal_timeout", "30d")
    bench.desk.set("signal_on_timeout", word)
    key, _ = flagged(bench, also=ALSO[1:])
    bench.clock.advance(days=29)
    bench.desk.reconcile()
    assert state(bench.desk, key) == "human"
    bench.clock.advance(days=1)
    bench.desk.reconcile()
    assert (state(bench.desk, key), bench.desk.show(key)["failure"]) == (lands, failure)


def test_a_kind_can_have_a_time_of_its_own(bench):
    bench.desk.set("signal_timeout", "3d")
    bench.desk.set("signal_timeout.checkpoint", "1d")
    bench.desk.set("signal_timeout.approval", "none")
    bench.desk.set("signal_on_timeout.checkpoint", "defer")
    found = {kind: flagged(bench, kind=kind)[1][0] for kind in ("input", "checkpoint", "approval")}
    assert found["approval"]["timeout_at"] is None
    assert found["checkpoint"]["timeout_at"] < found["input"]["timeout_at"]
    assert (found["checkpoint"]["on_timeout"], found["input"]["on_timeout"]) == ("defer", "remind")
    shown = bench.desk.projects()[0]["settings"]
    assert (shown["signal_timeout"], shown["signal_timeout.checkpoint"], shown["signal_timeout.approval"]) == (
        259200,
        86400,
        "none",
    )


def test_agents_own_values_win_over_the_settings(bench):
    bench.desk.set("signal_timeout", "3d")
    _, (own,) = flagged(bench, timeout="1h", on_timeout="escalate")
    assert own["on_timeout"] == "escalate" and own["timeout_at"] < flagged(bench)[1][0]["timeout_at"]
    _, (defaulted,) = flagged(bench, default="8080")
    assert defaulted["on_timeout"] == "default"


def test_what_people_ask_and_tools_have_their_own_times(bench):
    bench.desk.set("signal_timeout", "3d")
    assert bench.desk.flag(bench.ready(), "Look", None, "escalation")["questions"][0]["timeout_at"] is None
    key = bench.working()
    tool = bench.agent.ask(key, "Which?", claim=bench.claims[key])
    assert tool["on_timeout"] == "default"


def test_finished_work_that_is_to_be_signed_off_waits_as_long(bench):
    bench.desk.set("signal_timeout", "2d")
    key = bench.working(requires="approval")
    (asked,) = bench.agent.complete(bench.claims[key], "Login")["questions"]
    assert (asked["timeout_at"] is not None, asked["on_timeout"]) == (True, "remind")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("signal_timeout", "31d"),
        ("signal_timeout", "soon"),
        ("signal_on_timeout", "approve"),
        ("signal_on_timeout", "default"),
        ("signal_timeout.vote", "1d"),
        ("lease.input", "1d"),
    ],
)
def test_settings_that_are_refused(bench, name, value):
    with pytest.raises(Invalid):
        bench.desk.set(name, value)


def test_the_default_is_no_limit(bench):
    assert (SETTINGS["signal_timeout"].default, bench.desk.projects()[0]["settings"]["signal_timeout"]) == (0, "none")
    assert flagged(bench)[1][0]["timeout_at"] is None


# --- what is said about the work


def test_details_and_issues_are_kept_as_one_note(bench):
    key = bench.working()
    task = bench.agent.complete(
        bench.claims[key], "Login", details="JWT, see auth.py.\n", issues=["one flaky test", "no rate limit"]
    )
    (note,) = task["notes"]
    assert note["author"].startswith("agent:")
    assert note["text"] == "JWT, see auth.py.\n\nIssues:\n- one flaky test\n- no rate limit"
    assert task["summary"] == "Login"


def test_the_approver_sees_them(bench):
    key = bench.working(requires="approval")
    task = bench.agent.complete(bench.claims[key], "Login", details="JWT", issues=["one flaky test"])
    assert task["questions"][0]["context"] == {"details": "JWT", "issues": ["one flaky test"]}
    assert [note["text"] for note in task["notes"]] == ["JWT\n\nIssues:\n- one flaky test"]
    bench.desk.set("review", "ask")
    bench.desk.set("signal_timeout", "1d")
    key = bench.working()
    (looked,) = bench.agent.complete(bench.claims[key], "Logout", issues=["slow"])["questions"]
    assert (looked["context"], looked["timeout_at"]) == ({"issues": ["slow"]}, None)


def test_a_failure_keeps_them_too(bench):
    key = bench.working()
    task = bench.agent.fail(bench.claims[key], "no network", details="Tried twice.", issues="DNS")
    assert (task["state"], task["reason"]) == ("failed", "no network")
    assert [note["text"] for note in task["notes"]] == ["Tried twice.\n\nIssues:\n- DNS"]


def test_without_them_there_is_no_note(bench):
    key = bench.working()
    assert bench.agent.complete(bench.claims[key], "Login")["notes"] == []


@pytest.mark.parametrize("said", [{"issues": [""]}, {"issues": [7]}, {"issues": {"a": 1}}, {"details": 7}])
def test_what_does_not_fit_completes_nothing(bench, said):
    key = bench.working()
    with pytest.raises(Invalid):
        bench.agent.do("complete", task=bench.desk._task(key), claim=bench.claims[key]["token"], **said)
    assert state(bench.desk, key) == "working"

"""Outcomes of an approval: approved, rejected, timed out, edited, still open."""

from __future__ import annotations

import asyncio
import inspect
import os

import pytest

from tests.approval.person import PROGRAM, edit, outcome, person
from yourturn.approval.decorator import approved, approved_async, requires_approval
from yourturn.core.canonical_json import digest
from yourturn.core.errors import Invalid, NobodyAnswered, Refused, StillWaiting, YourturnError

# --- outcomes -------------------------------------------------------------------------------------------------


def test_approved_call_runs_with_the_shown_arguments(desk, yes):
    ran = []

    @requires_approval(desk=desk)
    def deploy(version: str, to: str = "staging") -> str:
        """Bring it out."""
        ran.append((version, to))
        return "deployed"

    with person(desk, yes) as seen:
        assert deploy("1.2") == "deployed"
    (q,) = seen
    tool = f"{__name__}.{deploy.__qualname__}"
    action = {"tool": tool, "arguments": {"version": "1.2", "to": "staging"}, "folder": os.getcwd()}
    assert ran == [("1.2", "staging")]
    assert (q["kind"], q["blocking"], q["action"], q["digest"]) == ("permission", True, action, digest(action))
    assert q["text"] == f'Run {tool}(version="1.2", to="staging")?'
    assert q["asked_by"] == f"agent:{PROGRAM}"
    assert (deploy.__name__, deploy.__doc__) == ("deploy", "Bring it out.")
    assert inspect.signature(deploy).parameters["to"].default == "staging"
    assert desk.show(q["id"])["used_by"].startswith(f"{PROGRAM}/")
    assert [event["action"] for event in desk.history(q["task"])] == ["create", "ask", "approve", "use"]


def test_rejected_call_raises_refused(desk, no):
    @requires_approval(desk=desk)
    def deploy(version):
        raise AssertionError("it ran")

    with person(desk, no), pytest.raises(Refused) as caught:
        deploy("1.2")
    error = caught.value
    assert (error.who, error.why, error.question) == ("human:ana", "Not on a Friday.", "Q1")
    assert error.at == desk.show("Q1")["responded_at"]
    assert (error.code, error.exit_code, error.http_status) == ("refused", 5, 403)
    assert str(error) == f"human:ana refused {__name__}.{deploy.__qualname__} (Q1): Not on a Friday."
    assert outcome(desk.show("Q1")) == ("answered", None)


def test_timeout_raises_nobody_answered(desk, clock):
    @requires_approval(desk=desk, timeout="5m")
    def deploy(version):
        raise AssertionError("it ran")

    def time_out(q):
        clock.advance(minutes=6)
        desk.create("Something else happens")

    with person(desk, time_out), pytest.raises(NobodyAnswered, match="Q1 was not answered in time") as caught:
        deploy("1.2")
    assert (caught.value.question, caught.value.exit_code) == ("Q1", 4)
    assert not isinstance(caught.value, Refused)
    with pytest.raises(YourturnError):
        desk.approve("Q1")
    assert outcome(desk.show("Q1")) == ("timeout", None)


@pytest.mark.parametrize("how", ["withdraw", "hand_back", "cancel"])
def test_withdrawn_question_raises_refused(desk, how):
    @requires_approval(desk=desk)
    def deploy(version):
        raise AssertionError("it ran")

    def act(q):
        getattr(desk, how)(q["id"] if how == "withdraw" else q["task"])

    with person(desk, act), pytest.raises(Refused, match="human:ana withdrew") as caught:
        deploy("1.2")
    assert caught.value.question == "Q1"
    assert caught.value.why == desk.show("Q1")["close_reason"] != ""


def test_wait_without_an_answer_raises_still_waiting(desk):
    @requires_approval(desk=desk, wait=0.01)
    def deploy(version):
        raise AssertionError("it ran")

    with pytest.raises(StillWaiting) as caught:
        deploy("1.2")
    assert (caught.value.question, caught.value.exit_code) == ("Q1", 7)
    assert desk.show("Q1")["status"] == "pending"


# --- edited -----------------------------------------------------------------------------------------------------------


def test_edited_arguments_are_used(desk):
    @requires_approval(desk=desk)
    def deploy(version, /, *hosts, to="staging", **more):
        return version, hosts, to, more

    with person(desk, edit(desk, to="canary", hosts=["c"], more={"slowly": True})):
        assert deploy("1.2", "a", "b", fast=1) == ("1.2", ("c",), "canary", {"slowly": True})
    assert desk.show("Q1")["used_by"] is not None


@pytest.mark.parametrize(
    "changed, why",
    [
        ({"speed": 9}, "speed is not what it takes"),
        ({"hosts": "c"}, "hosts must be a list"),
        ({"more": []}, "more must be an object"),
        ({"more": {"to": "x"}}, "to is named twice"),
    ],
)
def test_edited_arguments_must_fit_the_function(desk, changed, why):
    @requires_approval(desk=desk)
    def deploy(version, /, *hosts, to="staging", **more):
        raise AssertionError("it ran")

    with person(desk, edit(desk, **changed)), pytest.raises(Invalid, match=why):
        deploy("1.2", "a")


def test_edit_must_keep_all_arguments(desk):
    @requires_approval(desk=desk)
    def deploy(version, to="staging"):
        raise AssertionError("it ran")

    def act(q):
        desk.approve(q["id"], value={**q["action"], "arguments": {"version": "1.2"}})

    with person(desk, act), pytest.raises(Invalid, match="to is not what it takes"):
        deploy("1.2")


@pytest.mark.parametrize("changed", [{"arguments": ["1.2"]}, {"arguments": None}])
def test_edited_arguments_must_be_a_dictionary(desk, changed):
    @requires_approval(desk=desk)
    def deploy(version):
        raise AssertionError("it ran")

    def act(q):
        desk.approve(q["id"], value={**q["action"], **changed})

    with person(desk, act), pytest.raises(Invalid, match="allowed something else in Q1"):
        deploy("1.2")


# --- without a decorator ----------------------------------------------------------------------------------------------


def test_plain_functions(desk, yes):
    with person(desk, yes):
        assert approved(desk, "shell", {"argv": ["ls"]}) == {"argv": ["ls"]}
    with person(desk, edit(desk, argv=["pwd"])):
        assert asyncio.run(approved_async(desk, "shell", {"argv": ["ls"]}, text="List it?")) == {"argv": ["pwd"]}
    with pytest.raises(Invalid, match="must be named"):
        approved(desk, "shell", ["ls"])  # type: ignore[arg-type]
    with pytest.raises(Invalid, match="tool"):
        approved(desk, "two\nlines", {})


def test_keys_are_separate_per_program(desk, agent, yes):
    """The same key of another agent asks a new question."""
    with pytest.raises(StillWaiting):
        approved(agent, "shell", {"argv": ["ls"]}, key="k", wait=0)
    desk.approve("Q1")
    with pytest.raises(StillWaiting, match="Q2"):
        approved(desk, "shell", {"argv": ["ls"]}, key="k", wait=0, agent="other")

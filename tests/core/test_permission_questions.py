"""A permission allows one exact action, to one call, once; and what a person edits is theirs."""

from __future__ import annotations

import pytest

from yourturn import strict
from yourturn.core.canonical_json import digest
from yourturn.core.errors import AlreadyClosed, ClaimLost, IllegalMove, Invalid, NotAllowed, Precondition
from yourturn.core.model import Who

from .states import Bench, everything, state, verbs

PUSH = {"tool": "Bash", "input": {"command": "git push"}, "folder": "/shop"}
DRY = {**PUSH, "input": {"command": "git push --dry-run"}}


def given(bench: Bench, where: str = "working", **answer) -> tuple[str, str]:
    key, asked = bench.waiting(where, kind="permission", action=PUSH)
    bench.desk.approve(asked, **answer)
    return key, asked


def use(bench: Bench, key: str, asked: str, by: str = "s1/c1", action=PUSH):
    return bench.agent.use(asked, by, action, claim=bench.claims.get(key))


def refused(bench: Bench, why: str, move) -> None:
    before = everything(bench.desk)
    with pytest.raises(Precondition, match=why) as error:
        move()
    assert error.value.exit_code == 4
    assert everything(bench.desk) == before


def test_first_use_binds_the_permission_and_may_be_repeated(bench):
    key, asked = given(bench)
    assert use(bench, key, asked)["used_by"] == "s1/c1"
    events = bench.desk.history(key)
    assert events[-1]["action"] == "use" and events[-1]["actor"] == "agent:coder"
    assert events[-1]["data"] == {
        "from": "working", "to": "working", "question": asked, "used_by": "s1/c1", "digest": digest(PUSH),
    }  # fmt: skip
    assert use(bench, key, asked)["used_by"] == "s1/c1"
    assert verbs(bench.desk, key).count("use") == 1
    refused(bench, f"{asked} was used already, by s1/c1", lambda: use(bench, key, asked, "s1/c2"))
    refused(bench, "was used already", lambda: use(bench, key, asked, "s2/c1"))
    assert strict.examine(bench.desk) == []


@pytest.mark.parametrize(
    "other",
    [DRY, {**PUSH, "folder": "/other"}, {**PUSH, "tool": "Sh"}, {**PUSH, "more": 1}, PUSH["input"], None],
    ids=["input", "folder", "tool", "more", "less", "none"],
)
def test_anything_else_than_what_was_shown_is_refused(bench, other):
    key, asked = given(bench)
    refused(bench, f"{asked} allows something else", lambda: use(bench, key, asked, action=other))
    assert use(bench, key, asked)["used_by"] == "s1/c1"


def test_what_was_not_given_cannot_be_used(bench):
    key, asked = bench.waiting("working", kind="permission", action=PUSH)
    refused(bench, f"{asked} has no answer yet", lambda: use(bench, key, asked))
    bench.desk.reject(asked, "not on a Friday")
    refused(bench, f"{asked} was rejected by human:ana", lambda: use(bench, key, asked))
    key, asked = bench.waiting("working", kind="permission", action=PUSH)
    bench.desk.withdraw(asked)
    refused(bench, f"{asked} was cancelled by human:ana", lambda: use(bench, key, asked))
    key, asked = bench.waiting("working", kind="checkpoint", action=PUSH)
    bench.desk.approve(asked)
    refused(bench, f"{asked} is no permission", lambda: use(bench, key, asked))


def test_silence_gives_nothing(bench):
    _, asked = bench.waiting("working", kind="permission", action=PUSH, on_timeout="defer")
    bench.clock.advance(minutes=16)
    bench.desk.reconcile()
    assert bench.desk.show(asked)["status"] == "timeout"
    refused(bench, f"{asked} was not answered in time", lambda: bench.agent.use(asked, "s1/c1", PUSH))


def test_a_task_that_has_ended_allows_nothing_any_more(bench):
    key, asked = given(bench, "ready")
    bench.desk.cancel(key)
    before = everything(bench.desk)
    with pytest.raises(IllegalMove, match=f"Cannot use {key}: it is 'cancelled'"):
        bench.agent.use(asked, "s1/c1", PUSH)
    assert everything(bench.desk) == before


def test_a_restore_voids_used_permissions_too(bench):
    _, asked = given(bench, "ready")
    bench.agent.use(asked, "s1/c1", PUSH)
    other = given(bench, "ready")[1]
    bench.desk.do("restore")
    for name in (asked, other):
        refused(bench, "before this desk was restored: ask again", lambda n=name: bench.agent.use(n, "s1/c1", PUSH))
    _, fresh = given(bench, "ready")
    assert bench.agent.use(fresh, "s1/c2", PUSH)["used_by"] == "s1/c2"
    assert strict.examine(bench.desk) == []


def test_only_the_asker_or_the_holder_uses_it(bench):
    key, asked = given(bench, "ready")
    rival = bench.desk.as_(Who("agent:rival", "agent"))
    with pytest.raises(NotAllowed, match=f"Cannot use {asked}"):
        rival.use(asked, "s1/c1", PUSH)
    claim = rival.claim(key, "w2")["claim"]
    assert rival.use(asked, "s1/c1", PUSH, claim=claim)["used_by"] == "s1/c1"


def test_a_claim_that_is_shown_is_checked(bench):
    key, asked = given(bench)
    old = bench.claims[key]
    bench.clock.advance(hours=2)
    bench.agent.claim(key, "w2")
    before = everything(bench.desk)
    with pytest.raises(ClaimLost):
        bench.agent.use(asked, "s1/c1", PUSH, claim=old)
    assert everything(bench.desk) == before


def test_permission_without_an_action_is_bound_to_its_text(bench):
    key, asked = bench.waiting("working", kind="permission")
    bench.desk.approve(asked)
    refused(bench, "allows something else", lambda: use(bench, key, asked, action="What then?"))
    assert use(bench, key, asked, action="What now?")["used_by"] == "s1/c1"


# --- edited -----------------------------------------------------------------------------------------------------------


def test_edited_input_is_a_new_digest_by_the_person(bench):
    key, asked = given(bench, value=DRY, text="look first")
    q = bench.desk.show(asked)
    assert q["response"] == {"type": "approval", "value": DRY, "text": "look first", "verdict": "approved", "digest": digest(DRY)}
    assert (q["action"], q["digest"], q["responded_by"]) == (PUSH, digest(PUSH), "human:ana")
    refused(bench, f"{asked} allows something else", lambda: use(bench, key, asked))
    assert use(bench, key, asked, action=DRY)["used_by"] == "s1/c1"
    assert strict.examine(bench.desk) == []


def test_nothing_edited_is_a_plain_yes(bench):
    key, asked = given(bench, value=PUSH)
    assert bench.desk.show(asked)["response"]["value"] is True
    assert use(bench, key, asked)["used_by"] == "s1/c1"


@pytest.mark.parametrize(
    "value",
    [{**DRY, "tool": "Write"}, {**DRY, "folder": "/etc"}, {**DRY, "more": 1}, {"input": {}}, {}, [], "git push -f"],
    ids=["tool", "folder", "more", "less", "empty", "list", "words"],
)
def test_only_the_input_is_edited_and_a_wrong_edit_leaves_it_open(bench, value):
    _, asked = bench.waiting("working", kind="permission", action=PUSH)
    before = everything(bench.desk)
    with pytest.raises(Invalid, match=asked):
        bench.desk.approve(asked, value=value)
    assert everything(bench.desk) == before


def test_without_an_action_there_is_nothing_to_edit(bench):
    _, asked = bench.waiting("working", kind="permission")
    with pytest.raises(Invalid, match="no input that could be edited"):
        bench.desk.approve(asked, value=DRY)
    _, other = bench.waiting("working", kind="approval", action=PUSH)
    with pytest.raises(Invalid, match="takes a yes or a no"):
        bench.desk.approve(other, value=DRY)


def test_an_agent_edits_nothing(bench):
    _, asked = bench.waiting("working", kind="permission", action=PUSH)
    with pytest.raises(NotAllowed):
        bench.agent.approve(asked, value=DRY)


# --- taken back -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["input", "escalation", "permission", "recovery"])
def test_holder_withdraws_its_question(bench, kind):
    key, asked = bench.waiting("working", kind=kind)
    with pytest.raises(NotAllowed, match="only people"):
        bench.agent.withdraw(asked, "superseded")
    got = bench.agent.withdraw(asked, "superseded", claim=bench.claims[key])
    assert (got["status"], got["close_reason"], got["responded_by"]) == ("cancelled", "superseded", "agent:coder")
    assert state(bench.desk, key) == "working"
    with pytest.raises(AlreadyClosed):
        bench.agent.withdraw(asked, claim=bench.claims[key])
    assert strict.examine(bench.desk) == []


@pytest.mark.parametrize("kind", ["work", "approval", "review", "content", "checkpoint"])
def test_a_verdict_cannot_be_withdrawn(bench, kind):
    key, asked = bench.waiting("working", kind=kind)
    with pytest.raises(NotAllowed, match="only people"):
        bench.agent.withdraw(asked, claim=bench.claims[key])
    rival = bench.desk.as_(Who("agent:rival", "agent"))
    _, own = bench.waiting("working")
    with pytest.raises(NotAllowed, match="only people"):
        rival.withdraw(own, claim=bench.claims[list(bench.claims)[-1]])


def test_approvers_gate_does_not_stop_an_agents_withdrawal(bench):
    bench.desk.set("approvals", "approvers")
    key, asked = bench.waiting("working", kind="permission", action=PUSH)
    assert bench.agent.withdraw(asked, claim=bench.claims[key])["status"] == "cancelled"
    _, other = bench.waiting("working", kind="permission", action=PUSH)
    with pytest.raises(NotAllowed, match="only approvers"):
        bench.desk.as_(Who("human:mel", "member")).withdraw(other)


# --- names ------------------------------------------------------------------------------------------------------------


def test_a_request_is_the_same_under_another_claim(bench):
    """A resumed session asks again with a new claim and gets the same question."""
    key = bench.working()
    first = bench.agent.ask(key, "Which?", claim=bench.claims[key], key="hook/s/c/0")
    bench.agent.park(bench.claims[key])
    bench.desk.answer(first["id"], "that")
    again = bench.agent.claim(key, "w2")["claim"]
    found = bench.agent.ask(key, "Which?", claim=again, key="hook/s/c/0")
    assert (found["id"], found["status"]) == (first["id"], "answered")
    assert len(bench.desk.show(key)["questions"]) == 1

"""A claim that is expired, replaced or dropped writes nothing any more: every late write in every situation."""

from __future__ import annotations

from functools import partial

import pytest

from yourturn.core.actions import say
from yourturn.core.decide import decide
from yourturn.core.errors import ClaimLost

from .states import SCRIPT, case, everything, number, said

LATE = {
    "complete": lambda b, claim: b.agent.complete(claim, "late"),
    "ask": lambda b, claim: b.agent.ask(claim["task"], "late?", claim=claim),
    "flag": lambda b, claim: b.agent.flag(claim["task"], "late!", claim=claim),
    "heartbeat": lambda b, claim: b.agent.heartbeat(claim),
    "decompose": lambda b, claim: b.agent.decompose(claim, ["late"]),
    "release": lambda b, claim: b.agent.release(claim),
    "park": lambda b, claim: b.agent.park(claim),
    "fail": lambda b, claim: b.agent.fail(claim, "late"),
    "fail as a person": lambda b, claim: b.desk.fail(claim, "late"),
    "step": lambda b, claim: b.agent.record(claim, [said("1")]),
    "rewind": lambda b, claim: b.agent.rewind(claim["task"], 1, claim=claim),
    "flag with steps": lambda b, claim: b.agent.flag(claim["task"], "late!", claim=claim, steps=[said("1")], hold=True),
    "complete as a script": lambda b, claim: b.agent.complete(claim, steps=[said("1")], journal=0),
    "release by name": lambda b, claim: b.agent.release(claim["task"], worker="w1"),
}


def expired(bench):
    key = bench.working()
    bench.clock.advance(hours=1)
    return bench.claims[key]


def reconciled(bench):
    claim = expired(bench)
    bench.desk.reconcile()
    return claim


def replaced(bench):
    claim = expired(bench)
    bench.agent.claim(claim["task"], "w2")
    return claim


def replaced_with_a_question(bench):
    claim = expired(bench)
    bench.agent.ask(claim["task"], "?", claim=bench.agent.claim(claim["task"], "w2")["claim"])
    return claim


def ended(bench):
    key = bench.working()
    bench.desk.cancel(key)
    return bench.claims[key]


def dropped(bench):
    key = bench.working()
    bench.desk.flag(key, "Stop there")
    return bench.claims[key]


def parked(bench):
    key, _ = bench.waiting("working")
    bench.agent.park(bench.claims[key])
    return bench.claims[key]


def exhausted(bench):
    key = bench.working(max_retries=1)
    bench.clock.advance(hours=1)
    return bench.claims[key]


SITUATIONS = (expired, reconciled, replaced, replaced_with_a_question, ended, dropped, parked, exhausted)


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda s: s.__name__)
def test_a_late_write_is_refused_and_leaves_no_trace(bench, situation):
    for name, write in LATE.items():
        claim = situation(bench)
        before = everything(bench.desk)
        with pytest.raises(ClaimLost) as error:
            write(bench, claim)
        assert claim["task"] in str(error.value) and error.value.exit_code == 4
        assert everything(bench.desk) == before, f"{name} of a claim that was {situation.__name__} wrote something"


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda s: s.__name__)
def test_late_write_to_a_run_is_refused_and_leaves_no_trace(bench, situation, monkeypatch):
    monkeypatch.setattr(bench, "working", partial(bench.working, workflow=SCRIPT))
    test_a_late_write_is_refused_and_leaves_no_trace(bench, situation)


def test_the_same_name_with_a_new_epoch_is_no_proof_for_the_old_token(bench):
    claim = expired(bench)
    fresh = bench.agent.claim(claim["task"], "w1")["claim"]
    assert fresh["epoch"] == claim["epoch"] + 1 and fresh["token"] != claim["token"]
    with pytest.raises(ClaimLost, match=r"w1 holds it now \(epoch 2\)"):
        bench.agent.complete(claim)
    assert bench.agent.complete(fresh)["state"] == "review"


@pytest.mark.parametrize("proof", ["token", "worker", "person"])
def test_rules_refuse_an_expired_lease_before_the_due_move_is_applied(bench, proof):
    key = bench.ready()
    speaker = bench.desk if proof == "person" else bench.agent
    claim = speaker.claim(key, "w1")["claim"]
    args = {"token": {"claim": claim["token"]}, "worker": {"worker": "w1"}, "person": {}}[proof]
    action = say("complete", speaker.who, task=number(bench.desk, key), **args)
    found = case(bench.desk, key)
    ends = found.task.lease_expires_at
    assert decide(found, action, ends - 1).task.state == "review"
    with pytest.raises(ClaimLost):
        decide(found, action, ends)

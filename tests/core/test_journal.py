"""The journal of a run: a result never changes, its holder alone writes it, a person settles the step that asked, and a run
goes back on a new journal that keeps what was done before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from yourturn.core.canonical_json import seat_token
from yourturn.core.errors import AlreadyClosed, ClaimLost, IllegalMove, Invalid, NotAllowed, Precondition
from yourturn.core.model import Who
from yourturn.strict import examine

from .states import SCRIPT, case, everything, said, verbs

DONE = {"status": "COMPLETE"}
PROGRAM = {"file": SCRIPT, "body": "run('coder')\n"}
EVE = Who("human:eve", "member", direct=True)


def shown(client, key, journal=None):
    """The journal in short: what is laid aside has a ~."""
    return {f"{'~' * s['spare']}{s['index']}": s["status"] for s in client.steps(key, journal)}


def asking(bench, path="2", **fields):
    """A run whose script asks a person in this step: (key, question)."""
    key = bench.running(said("1"))
    fields = {"kind": "input", "steps": [said(path, "waiting")], "step": path, **fields}
    found = bench.agent.flag(key, "Which?", claim=bench.claims[key], **fields)
    return key, found["questions"][-1]["id"]


@pytest.fixture
def remote(desk):
    """remote('agent:far', 'agent'): an actor with a token, without direct access to the database."""
    return lambda name, role: desk.as_(Who(name, role))


@pytest.fixture(autouse=True)
def _well(desk):
    yield
    assert examine(desk) == []


# --- a result never changes -----------------------------------------------------------------------------------------


def test_a_step_runs_waits_and_is_completed_once(bench, clock):
    key = bench.running(said("1", "running", session_id="s1", seat={"base": "abc"}, agent="coder"))
    clock.advance(minutes=1)
    bench.agent.record(bench.claims[key], [said("1", "waiting")])
    clock.advance(minutes=1)
    bench.agent.record(bench.claims[key], [said("1", result={"text": "so"})])
    [step] = bench.desk.steps(key)
    assert (step["status"], step["result"]) == ("completed", {"text": "so"})
    assert (step["session_id"], step["seat"], step["agent"]) == ("s1", {"base": "abc"}, "coder"), "what is not said again stays"
    assert step["started_at"] < step["ended_at"] == bench.desk.show(key)["updated_at"]
    before = everything(bench.desk)
    for again in (said("1", result={"text": "other"}), said("1", result={"text": "so"}), said("1", "running")):
        with pytest.raises(Precondition, match=f"Cannot record step 1 of {key}") as error:
            bench.agent.record(bench.claims[key], [again])
        assert "a result never changes" in error.value.reason
    assert everything(bench.desk) == before


def test_another_call_in_its_place_is_refused(bench):
    key = bench.running(said("1", "running", call={"prompt": "a"}))
    before = everything(bench.desk)
    for other in (said("1", call={"prompt": "b"}), said("1", name="run", call={"prompt": "a"}), said("1", call=None)):
        with pytest.raises(Precondition, match="it is another call: step"):
            bench.agent.record(bench.claims[key], [other])
    assert everything(bench.desk) == before
    bench.agent.record(bench.claims[key], [said("01", call={"prompt": "a"})])
    assert shown(bench.desk, key) == {"1": "completed"}, "01 is 1"


def test_one_refused_step_of_many_refuses_all(bench):
    key = bench.running(said("1"))
    with pytest.raises(Precondition):
        bench.agent.record(bench.claims[key], [said("2"), said("1")])
    with pytest.raises(Precondition):
        bench.agent.record(bench.claims[key], [said("2"), said("2")])
    bench.agent.record(bench.claims[key], [said("2", "running"), said("2")])
    assert shown(bench.desk, key) == {"1": "completed", "2": "completed"}


def test_the_database_compares_when_another_writer_was_faster(bench, open_desk):
    """The holder's process remembers the case; a person settles the step in another one; the holder's result comes too late."""
    key = bench.running(said("1"))
    claim = bench.claims[key]
    bench.agent.flag(key, "Which?", kind="input", claim=claim, steps=[said("2", "waiting")], step="2", hold=True)
    other = open_desk("human:bob")
    other.answer(key, "so", signal=DONE)
    with pytest.raises(Precondition, match="a result never changes"):
        bench.agent.record(claim, [said("2", result="mine")])
    assert bench.desk.steps(key)[1]["result"] == DONE


def test_a_second_holder_writes_and_the_first_has_lost_its_claim(bench, clock, open_desk):
    key = bench.running(said("1", "running"))
    old = bench.claims[key]
    clock.advance(hours=2)
    other = open_desk("agent:other")
    new = other.claim(key, "w2")["claim"]
    other.record(new, [said("1", result="theirs")])
    before = everything(bench.desk)
    for late in (
        lambda: bench.agent.record(old, [said("1", result="mine")]),
        lambda: bench.agent.record(old, [said("2")]),
        lambda: bench.agent.park(old, steps=[said("2")]),
        lambda: bench.agent.complete(old, steps=[said("2")], journal=0),
        lambda: bench.agent.fail(old, steps=[said("2")], journal=0),
        lambda: bench.agent.flag(key, "Which?", claim=old, steps=[said("2")]),
        lambda: bench.agent.rewind(key, 1, claim=old),
    ):
        with pytest.raises(ClaimLost):
            late()
    assert everything(bench.desk) == before
    assert bench.desk.steps(key)[0]["result"] == "theirs"


# --- only the holder writes ------------------------------------------------------------------------------------------


def test_only_the_holder_writes_whatever_verb_brings_the_steps(bench):
    """An agent that flags, a person who fails: they may, but they do not speak for the script."""
    key, more = bench.running(said("1", "running")), {"steps": [said("1", result="mine")]}
    other = bench.desk.as_(Who("agent:other", "agent", direct=True))
    before = everything(bench.desk)
    for attempt in (
        lambda: other.record(key, **more),
        lambda: other.flag(key, "Stuck", **more),
        lambda: other.flag(key, "Stuck", program=PROGRAM),
        lambda: bench.desk.fail(key, **more),
        lambda: bench.desk.flag(key, "Stuck", **more),
    ):
        with pytest.raises(ClaimLost):
            attempt()
    assert everything(bench.desk) == before


def test_a_person_fails_an_unclaimed_run_without_steps(bench):
    key = bench.run()
    with pytest.raises(ClaimLost, match="you hold no claim on it"):
        bench.desk.fail(key, steps=[said("1")])
    assert bench.desk.fail(key)["state"] == "failed" and bench.desk.steps(key) == []


def test_what_has_no_script_has_no_journal(bench):
    key = bench.working()
    claim, more = bench.claims[key], {"steps": [said("1")]}
    before = everything(bench.desk)
    for attempt in (
        lambda: bench.agent.record(claim, **more),
        lambda: bench.agent.record(claim),
        lambda: bench.agent.park(claim, **more),
        lambda: bench.agent.complete(claim, **more),
        lambda: bench.agent.fail(claim, **more),
        lambda: bench.agent.flag(key, "Stuck", claim=claim, **more),
        lambda: bench.agent.rewind(key, claim=claim),
        lambda: bench.desk.create("No run", program=PROGRAM),
    ):
        with pytest.raises(Precondition, match="it has no script"):
            attempt()
    assert everything(bench.desk) == before
    asked = bench.agent.ask(key, "Which?", claim=claim, step="2")
    assert (asked["step"], asked["journal"]) == (None, None)


@pytest.mark.parametrize("path", ["", "a", "1.", ".1", "-1", "1.x", "~1", "1/2", "٣", "1234567", ".".join("1" * 21)])
@pytest.mark.parametrize("dialect", ["sqlite"])
def test_a_path_that_is_none_is_refused(bench, path, dialect):
    key = bench.running(said("1"))
    before = everything(bench.desk)
    for attempt in (
        lambda: bench.agent.record(bench.claims[key], [said(path)]),
        lambda: bench.agent.rewind(key, path or "x", claim=bench.claims[key]),
        lambda: bench.agent.flag(key, "Which?", claim=bench.claims[key], step=path or "x"),
    ):
        with pytest.raises(Invalid):
            attempt()
    assert everything(bench.desk) == before


@pytest.mark.parametrize(
    "steps", ["1", [1], [{}], [{"path": "1"}], [{**said("1"), "more": 1}], [{**said("1"), "status": "failed"}]], ids=str
)
@pytest.mark.parametrize("dialect", ["sqlite"])
def test_invalid_steps_are_refused(bench, steps, dialect):
    key = bench.running()
    with pytest.raises(Invalid, match="steps"):
        bench.agent.do("step", task=case(bench.desk, key).task.id, steps=steps, claim=bench.claims[key]["token"])


def test_only_a_script_waits_longer_than_the_limits(bench):
    bench.desk.set("max_timeout", "1h")
    plain, run = bench.working(), bench.running()
    for key, more in ((plain, {"steps": []}), (plain, {}), (run, {})):
        with pytest.raises(Invalid):
            bench.agent.flag(key, "Which?", claim=bench.claims[key], timeout="2h", **more)
    other = bench.desk.as_(Who("agent:other", "agent", direct=True))
    with pytest.raises(Invalid):
        other.flag(run, "Which?", timeout="2h", steps=[])
    assert bench.agent.flag(run, "Which?", claim=bench.claims[run], timeout="2h", steps=[])["state"] == "human"


def test_calls_come_in_their_order(bench):
    paths = ["10", "9", "3.1.0", "3.0.10", "3.0.2", "3", "1", "100"]
    key = bench.running(*map(said, paths))
    assert list(shown(bench.desk, key)) == ["1", "3", "3.0.2", "3.0.10", "3.1.0", "9", "10", "100"]
    assert [s["index"] for s in bench.desk.show(key)["steps"]] == list(shown(bench.desk, key))


def test_a_list_has_only_the_steps_that_have_not_ended(bench):
    key = bench.running(said("1"), said("2", "running"), said("3.0.0", "waiting"), said("3.1.0"))
    for found in (bench.desk.list(only_runs=True), bench.desk.tree(key)):
        assert [(s["index"], s["status"]) for s in found[0]["steps"]] == [("2", "running"), ("3.0.0", "waiting")]
    bench.agent.park(bench.claims[key])
    assert len(bench.desk.show(key)["steps"]) == 4 and bench.agent.claim(key, "w2")["task"]["steps"] == []


# --- asking ----------------------------------------------------------------------------------------------------------


def test_a_step_with_a_working_agent_is_not_settled_by_others(bench):
    key, question = asking(bench, steps=[said("2", "running", agent="coder")], hold=True)
    before = everything(bench.desk)
    with pytest.raises(Precondition, match=f"Cannot settle step 2 of {key}") as error:
        bench.desk.answer(question, "so", signal=DONE)
    assert error.value.reason == "coder is still working on it" and everything(bench.desk) == before
    bench.agent.park(bench.claims[key])
    bench.desk.answer(question, "so", signal=DONE)
    assert shown(bench.desk, key) == {"1": "completed", "2": "completed"}, "it was killed there: nobody is"


def test_answer_with_a_signal_settles_only_the_step_that_asked(bench):
    key, question = asking(bench, steps=[said("2", "waiting"), said("3", "waiting")])
    other, elsewhere = asking(bench)
    found = bench.desk.answer(question, "so", signal=DONE)
    assert (found["step"], found["journal"], found["response"]["value"]) == ("2", 0, "so")
    assert shown(bench.desk, key) == {"1": "completed", "2": "completed", "3": "waiting"}
    assert [s["result"] for s in bench.desk.steps(key)] == ["ok", DONE, None]
    assert bench.desk.show(key)["state"] == "ready"
    assert shown(bench.desk, other) == {"1": "completed", "2": "waiting"}
    with pytest.raises(AlreadyClosed):
        bench.desk.answer(question, "no", signal={"status": "REJECTED"})
    assert bench.desk.steps(key)[1]["result"] == DONE
    assert bench.desk.show(elsewhere)["status"] == "pending"


def test_an_answer_without_a_signal_settles_no_step(bench):
    key, question = asking(bench)
    bench.desk.answer(question, "so")
    assert shown(bench.desk, key) == {"1": "completed", "2": "waiting"} and bench.desk.show(key)["state"] == "ready"


def test_a_rejection_with_a_signal_settles_it_too(bench):
    key, question = asking(bench, kind="approval")
    bench.desk.answer(question, verdict="rejected", text="no", signal={"status": "REJECTED"})
    assert bench.desk.steps(key)[1]["result"] == {"status": "REJECTED"} and bench.desk.show(key)["state"] == "ready"


def test_a_signal_is_for_a_question_of_a_step(bench):
    """No step asked; the step is settled already; the step belongs to an older journal."""
    plain, asked = bench.waiting("ready")
    aside = bench.running(said("1"))
    of_nobody = bench.agent.ask(aside, "Which?", claim=bench.claims[aside])["id"]
    missing = bench.running(said("1"))
    of_nothing = bench.agent.ask(missing, "Which?", claim=bench.claims[missing], step="7")["id"]
    settled = bench.running(said("1"))
    of_one = bench.agent.ask(settled, "Which?", claim=bench.claims[settled], step="1")["id"]
    back = bench.running(said("1", "waiting"))
    of_old = bench.agent.ask(back, "Which?", blocking=False, default="a", claim=bench.claims[back], step="1")["id"]
    bench.agent.rewind(back, 2, claim=bench.claims[back])
    assert shown(bench.desk, back) == {"1": "waiting"}
    before = everything(bench.desk)
    for question in (asked, of_nobody, of_nothing, of_one, of_old):
        with pytest.raises(Invalid, match=f"{question} was not asked by a step"):
            bench.desk.answer(question, "so", signal=DONE)
    assert everything(bench.desk) == before
    assert bench.desk.answer(asked, "so")["status"] == "answered" and bench.desk.show(plain)["state"] == "ready"


@pytest.mark.parametrize(
    ("word", "kind"), [("NEEDS_HUMAN", "input"), ("APPROVAL_NEEDED", "approval"), ("ESCALATE", "escalation")]
)
def test_signal_that_asks_replaces_the_question(bench, clock, word, kind):
    key, question = asking(bench, timeout="2h", on_timeout="stuck", reviewer="ben", metadata={"notify": ["slack"]})
    clock.advance(hours=1)
    bench.desk.answer(question, "we talked", signal={"status": word, "reason": "And then?", "context": {"tried": "both"}})
    old, new = bench.desk.show(key)["questions"]
    assert (old["status"], old["response"], old["responded_by"]) == ("cancelled", None, "human:ana"), "nobody has judged it"
    assert (new["status"], new["kind"], new["text"], new["context"]) == ("pending", kind, "And then?", {"tried": "both"})
    same = ("asked_by", "step", "journal", "on_timeout", "reviewer", "metadata")
    assert {name: new[name] for name in same} == {name: old[name] for name in same}
    assert bench.desk.show(key)["state"] == "human" and shown(bench.desk, key)["2"] == "waiting"
    clock.advance(hours=1, minutes=30)
    assert bench.desk.show(key)["state"] == "human" and new["timeout_at"] > old["timeout_at"], "its time began anew"
    with pytest.raises(AlreadyClosed, match="something else is asked now"):
        bench.desk.answer(question, "so")
    bench.desk.answer(new["id"], signal=DONE)
    assert bench.desk.show(key)["state"] == "ready" and shown(bench.desk, key)["2"] == "completed"


def test_signal_answers_a_choice_without_a_value(bench):
    key, question = asking(bench, options=["a", "b"])
    with pytest.raises(Invalid, match="takes one of"):
        bench.desk.answer(question)
    assert bench.desk.answer(question, signal=DONE)["response"]["value"] is None
    assert shown(bench.desk, key)["2"] == "completed"


def test_what_holds_nothing_up_is_not_asked_again(bench):
    key = bench.running(said("1", "waiting"))
    asked = bench.agent.ask(key, "Which?", blocking=False, default="a", claim=bench.claims[key], step="1")["id"]
    before = everything(bench.desk)
    with pytest.raises(Invalid, match="holds nothing up"):
        bench.desk.answer(asked, signal={"status": "NEEDS_HUMAN", "reason": "And then?"})
    assert everything(bench.desk) == before


def test_only_people_settle(bench, remote):
    key, question = asking(bench)
    for who in (bench.agent, remote("agent:far", "agent"), remote("human:vic", "viewer")):
        with pytest.raises(NotAllowed):
            who.answer(question, "so", signal=DONE)
    assert shown(bench.desk, key)["2"] == "waiting"


def test_only_the_holder_of_a_run_writes_its_steps(bench):
    key = bench.running(said("1", "waiting"))
    asked = bench.desk.as_(Who("agent:other", "agent", direct=True)).ask(key, "Which?", step="1")
    assert asked["step"] is None
    with pytest.raises(Invalid):
        bench.desk.answer(asked, "so", signal=DONE)


def test_hold_keeps_the_claim_of_the_holder_alone(bench, clock):
    key, question = asking(bench, hold=True)
    assert bench.desk.show(key)["state"] == "human" and bench.desk.show(key)["claim"]["worker"] == "w1"
    bench.agent.heartbeat(bench.claims[key])
    bench.agent.record(bench.claims[key], [said("3", "running")])
    bench.desk.answer(question, "so")
    assert bench.desk.show(key)["state"] == "working"
    other = bench.running()
    bench.desk.as_(Who("agent:other", "agent", direct=True)).flag(other, "Stuck", hold=True)
    assert bench.desk.show(other)["claim"] is None, "who is not the holder stops it"
    plain = bench.running()
    bench.agent.flag(plain, "Stuck", claim=bench.claims[plain])
    assert bench.desk.show(plain)["claim"] is None, "and who does not say hold ends its turn"


def test_the_answer_comes_after_the_waiting_lease(bench, clock):
    """The end of the lease is paid in the same commit, before the answer is decided."""
    key, question = asking(bench, hold=True)
    clock.advance(hours=2)
    bench.desk.answer(question, "so", signal=DONE)
    assert verbs(bench.desk, key)[-2:] == ["expire", "answer"]
    assert bench.desk.steps(key)[1]["result"] == DONE and bench.desk.show(key)["state"] == "ready"


def test_due_move_before_a_step_does_not_make_it_new(bench, clock):
    """A reminder that is due is paid before the holder's word; the step it speaks of is still known."""
    key, _ = asking(bench, hold=True, timeout="10m", on_timeout="remind")
    began = bench.desk.steps(key)[1]["started_at"]
    clock.advance(minutes=11)
    bench.agent.record(bench.claims[key], [said("2")])
    assert verbs(bench.desk, key)[-2:] == ["timeout", "step"]
    assert bench.desk.steps(key)[1]["started_at"] == began
    clock.advance(minutes=11)
    with pytest.raises(Precondition, match="a result never changes"):
        bench.agent.record(bench.claims[key], [said("2")])


def test_a_run_that_waits_is_parked_with_its_steps(bench):
    key, _ = asking(bench, hold=True)
    found = bench.agent.park(bench.claims[key], steps=[said("3.0.0"), said("3.1.0", "waiting")])
    assert (found["state"], found["claim"]) == ("human", None)
    assert shown(bench.desk, key) == {"1": "completed", "2": "waiting", "3.0.0": "completed", "3.1.0": "waiting"}


def test_once_it_is_their_turn_steps_are_written_all_the_same(bench):
    key, _ = asking(bench, hold=True)
    found = bench.agent.flag(key, "Again", kind="input", claim=bench.claims[key], steps=[said("3")], once=True)
    assert len(found["questions"]) == 1 and shown(bench.desk, key)["3"] == "completed"
    told = len(bench.desk.history(key))
    bench.agent.flag(key, "Again", kind="input", claim=bench.claims[key], once=True)
    assert len(bench.desk.history(key)) == told, "and without any there is nothing to tell"


def test_park_until_wakes_with_its_steps(bench, clock):
    key = bench.running(said("1"))
    bench.agent.park(bench.claims[key], "2d", steps=[said("2", "waiting")])
    assert bench.desk.show(key)["state"] == "deferred" and shown(bench.desk, key)["2"] == "waiting"
    clock.advance(days=3)
    assert bench.desk.show(key)["state"] == "ready" and bench.desk.show(key)["retry_count"] == 0
    claim = bench.agent.claim(key, "w1")["claim"]
    bench.agent.record(claim, [said("2")])
    assert shown(bench.desk, key)["2"] == "completed"


_DIES = """
import sys
from yourturn.config import connect
from tests.core.states import said
desk = connect(sys.argv[1], as_="agent:coder", project="PROJ", env={})
steps = [said("1"), said("2", "waiting")]
claim = desk.claim("PROJ-1", "w1")["claim"]
getattr(desk, sys.argv[2])(*{"flag": ("PROJ-1", "Which?"), "park": (claim, "2d")}[sys.argv[2]], steps=steps, **(
    {"claim": claim, "step": "2", "kind": "input"} if sys.argv[2] == "flag" else {}))
"""


@pytest.mark.parametrize("verb", ["flag", "park"])
@pytest.mark.parametrize(("point", "made"), [("before-commit", False), ("first-write", False), ("after-commit", True)])
def test_steps_and_what_follows_from_them_are_one_commit(desk, address, verb, point, made):
    desk.create("A run", workflow=SCRIPT)
    env = {**os.environ, "YOURTURN_FAULT": f"{verb}:{point}"}
    done = subprocess.run([sys.executable, "-c", _DIES, address, verb], env=env, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with desk.desk.store.reading() as run:
        rows = run("SELECT state FROM tasks").fetchall(), run("SELECT count(*) FROM steps").fetchone()[0]
    states = {"flag": "human", "park": "deferred"}
    assert rows == ([(states[verb] if made else "working",)], 2 if made else 0)
    assert len(desk.inbox()) == (1 if made and verb == "flag" else 0)


# --- going back ------------------------------------------------------------------------------------------------------

FOUR = (said("1"), said("2"), said("3.0.0"), said("3.1.0", "running"), said("4", "waiting"))


def test_rewind_keeps_what_was_before_and_leaves_the_rest_behind(bench):
    key = bench.running(*FOUR)
    bench.agent.rewind(key, 3, claim=bench.claims[key])
    assert shown(bench.desk, key) == {"1": "completed", "2": "completed"} and bench.desk.show(key)["journal"] == 1
    assert list(shown(bench.desk, key, 0)) == ["1", "2", "3.0.0", "3.1.0", "4"], "the older journal can still be read"
    assert bench.desk.steps(key, journal=7) == []
    bench.agent.record(bench.claims[key], [said("3", name="other")])
    assert "3" not in shown(bench.desk, key, 0)
    event = bench.desk.history(key)[-2]
    assert event["action"] == "rewind" and event["data"]["rewound"] == {"to": "3", "spare": False}


@pytest.mark.parametrize("to", ["3", "3.0", "3.1.0", "3.9.9", "03"])
@pytest.mark.parametrize("dialect", ["sqlite"])
def test_branches_go_back_together(bench, to, dialect):
    key = bench.running(*FOUR)
    bench.agent.rewind(key, to, claim=bench.claims[key], spare=True)
    found = {"1": "completed", "2": "completed", "~3.0.0": "completed", "~3.1.0": "running", "~4": "waiting"}
    assert shown(bench.desk, key) == found


def test_spares_are_those_of_the_last_time_and_no_steps(bench):
    key = bench.running(*FOUR)
    claim = bench.claims[key]
    bench.agent.rewind(key, 1, claim=claim, spare=True)
    assert list(shown(bench.desk, key)) == ["~1", "~2", "~3.0.0", "~3.1.0", "~4"]
    bench.agent.record(claim, [said("1", name="new"), said("2", name="new")])
    bench.agent.rewind(key, 2, claim=claim, spare=True)
    assert list(shown(bench.desk, key)) == ["1", "~2"] and bench.desk.steps(key)[1]["name"] == "new"
    bench.agent.record(claim, [said("2", "running", name="newer")])
    assert list(shown(bench.desk, key)) == ["1", "2", "~2"]
    bench.agent.rewind(key, 2, claim=claim)
    assert list(shown(bench.desk, key)) == ["1"], "and whoever goes back without them has none"
    assert [len(bench.desk.steps(key, n)) for n in range(4)] == [5, 7, 3, 1]


def test_rewind_without_a_step_continues_at_the_same_step(bench):
    key, question = asking(bench)
    found = bench.desk.rewind(key)
    assert (found["state"], found["journal"]) == ("ready", 0)
    assert shown(bench.desk, key) == {"1": "completed", "2": "waiting"}
    assert bench.desk.show(question)["status"] == "cancelled"


@pytest.mark.parametrize("state", ["created", "ready", "blocked", "human", "deferred", "failed"])
def test_a_person_rewinds_a_run_in_every_state_without_a_holder(bench, state):
    key = bench.running(*FOUR[:2], depends_on=[])
    claim = bench.claims[key]
    if state in ("human", "failed"):
        bench.agent.flag(key, "Which?", claim=claim) if state == "human" else bench.agent.fail(claim, journal=0)
    elif state == "deferred":
        bench.agent.park(claim, "2d")
    elif state == "created":
        bench.desk.reopen(bench.desk.cancel(key)["key"])
    else:
        bench.agent.park(claim)
        if state == "blocked":
            bench.add_need(key)
    before = bench.desk.show(key)
    assert before["state"] == state
    found = bench.desk.rewind(key, 2)
    assert found["state"] == ("ready" if state in ("human", "failed", "deferred") else state)
    assert found["journal"] == before["journal"] + 1 and (found["wake_at"], found["ended_at"], found["failure"]) == (None,) * 3
    assert shown(bench.desk, key) == ({} if state == "created" else {"1": "completed"})


@pytest.mark.parametrize("state", ["review", "done", "cancelled"])
@pytest.mark.parametrize("dialect", ["sqlite"])
def test_from_elsewhere_a_run_does_not_go_back(bench, state, dialect):
    key = _container(bench) if state == "review" else bench.into(state, workflow=SCRIPT)
    with pytest.raises(IllegalMove):
        bench.desk.rewind(key, 1)


def _container(bench):
    """A run that is a container whose parts have all ended."""
    epic = bench.run(type="epic")
    bench.desk.close(bench.ready(parent=epic))
    return epic


def test_rewound_container_without_open_children_returns_to_review(bench):
    key = _container(bench)
    bench.ask(key)
    assert bench.desk.rewind(key, 1)["state"] == "review", "back to its parts, which have ended: so to review again"
    assert verbs(bench.desk, key)[-2:] == ["rewind", "parent"]


def test_while_it_is_claimed_only_the_holder_rewinds(bench):
    key = bench.running(*FOUR)
    with pytest.raises(ClaimLost):
        bench.desk.rewind(key, 1)
    with pytest.raises(ClaimLost):
        bench.desk.as_(Who("agent:other", "agent", direct=True)).rewind(key, 1)
    found = bench.agent.rewind(key, 1, claim=bench.claims[key])
    assert (found["state"], found["claim"]["worker"]) == ("working", "w1")
    with pytest.raises(Precondition, match="its script decides"):
        bench.agent.complete(bench.claims[key], journal=0)
    assert bench.agent.complete(bench.claims[key], journal=1)["state"] == "done"


def test_agent_cannot_rewind_a_run(bench):
    key, _ = asking(bench)
    failed = bench.failed(workflow=SCRIPT)
    for run in (key, failed, bench.run()):
        with pytest.raises(NotAllowed):
            bench.agent.rewind(run, 1)


def test_rewinding_a_waiting_run_withdraws_its_questions(bench):
    key, question = asking(bench, hold=True)
    aside = bench.agent.ask(key, "By the way?", claim=bench.claims[key], blocking=False, default="a")["id"]
    bench.desk.rewind(key, "2")
    for name in (question, aside):
        found = bench.desk.show(name)
        assert (found["status"], found["close_reason"]) == ("cancelled", "the run went back to step 2")
    assert bench.desk.show(key)["claim"] is None
    with pytest.raises(ClaimLost):
        bench.agent.record(bench.claims[key], [said("2")])
    with pytest.raises(AlreadyClosed):
        bench.desk.answer(question, "so", signal=DONE)
    assert bench.desk.inbox() == []


def test_rewinding_does_not_bypass_a_reserved_gate(bench):
    bench.desk.set("approvals", "approvers")
    eve = bench.desk.as_(EVE)
    gated, question = asking(bench, kind="approval")
    with pytest.raises(NotAllowed, match="only approvers can"):
        eve.rewind(gated, 1)
    assert bench.desk.show(question)["status"] == "pending"
    assert bench.desk.as_(Who("human:ann", "approver")).rewind(gated, 1)["state"] == "ready"
    free, _ = asking(bench)
    assert eve.rewind(free, 1)["state"] == "ready", "who could have answered may take it back"


def test_only_an_admin_rewinds_a_failed_run(bench):
    key = bench.failed(workflow=SCRIPT)
    for who in (EVE, Who("human:ann", "approver")):
        with pytest.raises(NotAllowed):
            bench.desk.as_(who).rewind(key, 1)
    assert bench.desk.rewind(key, 1)["state"] == "ready"


def test_rewinding_a_failed_run_updates_dependants_and_it_may_fail_again(bench):
    key = bench.run()
    waits = bench.ready(depends_on=[key])
    for _ in range(2):
        bench.desk.fail(key, "broken")
        assert bench.desk.show(waits)["state"] == "human", "told each time"
        assert bench.desk.rewind(key)["state"] == "ready"
        assert bench.desk.show(waits)["state"] == "blocked", "its question is closed"
    bench.desk.close(key)
    assert bench.desk.show(waits)["state"] == "ready"


def test_a_failed_run_whose_parent_has_ended_stays_failed(bench):
    epic = bench.ready(type="epic")
    key = bench.run(parent=epic)
    bench.desk.fail(key)
    bench.desk.close(epic)
    with pytest.raises(Precondition, match=f"its parent {epic} is 'done'"):
        bench.desk.rewind(key, 1)


def test_going_back_gives_the_tries_back(bench):
    key = bench.running(max_retries=2)
    bench.agent.release(bench.claims[key])
    bench.desk.rewind(key)
    assert bench.desk.show(key)["retry_count"] == 0
    claim = bench.agent.claim(key, "w1")["claim"]
    bench.agent.release(claim)
    claim = bench.agent.claim(key, "w1")["claim"]
    bench.agent.rewind(key, 1, claim=claim)
    assert bench.desk.show(key)["retry_count"] == 1, "but not to who goes back by itself"


def test_reopen_begins_an_empty_journal(bench):
    key = bench.running(*FOUR)
    bench.agent.complete(bench.claims[key], journal=0, steps=[said("4")])
    found = bench.desk.reopen(key)
    assert (found["state"], found["journal"], found["steps"]) == ("ready", 1, [])
    assert shown(bench.desk, key, 0)["4"] == "completed"
    plain = bench.done()
    assert bench.desk.reopen(plain)["journal"] == 0, "what has no script has none to begin"


def test_a_late_answer_that_restarts_a_run_begins_an_empty_journal(bench):
    key, question = asking(bench)
    bench.desk.cancel(key)
    bench.desk.answer(question, "use jwt", restart=True)
    assert (bench.desk.show(key)["state"], bench.desk.show(key)["journal"], bench.desk.steps(key)) == ("created", 1, [])


# --- who ends and who begins -----------------------------------------------------------------------------------------


def test_an_agent_in_a_step_does_not_end_the_run(bench):
    key = bench.running(said("1", "running"))
    claim = bench.claims[key]
    before = everything(bench.desk)
    for attempt in (
        lambda: bench.agent.complete(claim, "done"),
        lambda: bench.agent.complete(claim, "done", journal=1),
        lambda: bench.agent.fail(claim, "broken"),
        lambda: bench.agent.decompose(claim, ["a", "b"]),
    ):
        with pytest.raises(Precondition, match="its script decides; end your turn with a signal"):
            attempt()
    assert everything(bench.desk) == before
    done = bench.agent.complete(claim, "done", journal=0, steps=[said("1")])
    assert done["state"] == "done" and shown(bench.desk, key) == {"1": "completed"}
    failed = bench.running()
    assert bench.agent.fail(bench.claims[failed], journal=0, steps=[said("1")])["failure"] == "error"
    assert shown(bench.desk, failed) == {"1": "completed"}


def test_the_seat_of_an_agent_is_not_the_script(bench):
    """What an agent in a step is given proves that it works there, and forges nothing."""
    bench.desk.set("max_timeout", "1h")
    key = bench.running(said("1", "running"))
    claim, seat = bench.claims[key], seat_token(bench.claims[key]["token"])
    forged = said("1", name="pause", result={"verdict": "approved"})
    number = case(bench.desk, key).task.id
    before = everything(bench.desk)
    for attempt in (
        lambda: bench.agent.do("step", task=number, claim=seat, steps=[said("2")]),
        lambda: bench.agent.do("park", task=number, claim=seat, steps=[said("1")]),
        lambda: bench.agent.flag(key, "Which?", claim=seat, steps=[forged], step="1"),
        lambda: bench.agent.do("step", task=number, claim=seat, program=PROGRAM),
    ):
        with pytest.raises(NotAllowed, match=f"Cannot write the journal of {key}"):
            attempt()
    for attempt in (
        lambda: bench.agent.complete(key, "done", proof=seat, journal=0),
        lambda: bench.agent.fail(key, "broken", proof=seat, journal=0),
        lambda: bench.agent.rewind(key, 1, claim=seat),
    ):
        with pytest.raises(Precondition, match="its script decides"):
            attempt()
    with pytest.raises(Invalid):
        bench.agent.flag(key, "Which?", claim=seat, timeout="2h", steps=[])
    for token in (seat_token(seat), seat_token(seat_token(seat))):
        with pytest.raises(ClaimLost):
            bench.agent.heartbeat(key, proof=token)
    assert everything(bench.desk) == before
    bench.agent.heartbeat(key, proof=seat)
    bench.agent.write_output(seat, [("text", "working")])
    asked = bench.agent.flag(key, "Which?", claim=seat, step="1", hold=True)
    assert (asked["questions"][0]["step"], asked["claim"]["epoch"]) == ("1", claim["epoch"])
    plain = bench.working()
    with pytest.raises(ClaimLost):
        bench.agent.heartbeat(plain, proof=seat_token(bench.claims[plain]["token"]))


def test_an_agent_does_not_fail_a_run_while_it_waits(bench):
    key, _ = asking(bench, hold=True)
    with pytest.raises(Precondition, match="its script decides"):
        bench.agent.fail(bench.claims[key], "broken")
    assert bench.agent.fail(bench.claims[key], "broken", journal=0)["state"] == "failed"


def test_a_person_ends_a_run(bench):
    for end in (lambda c: c.complete, lambda c: c.fail):
        key = bench.run()
        claim = bench.desk.claim(key, "me")["claim"]
        assert end(bench.desk)(claim)["state"] in ("done", "failed")
    key = bench.run()
    assert bench.desk.decompose(bench.desk.claim(key, "me")["claim"], ["a"])["state"] == "blocked"
    assert bench.desk.fail(bench.running())["state"] == "failed"


def test_an_agent_begins_no_run(bench):
    for attempt in (
        lambda: bench.agent.create("A run", workflow=SCRIPT),
        lambda: bench.agent.create("A run", workflow=SCRIPT, program=PROGRAM),
    ):
        with pytest.raises(NotAllowed, match="only people start workflows"):
            attempt()


def test_code_comes_from_direct_database_users_or_admins(bench, remote):
    member, admin, agent = (remote(*who) for who in (("human:m", "member"), ("human:a", "admin"), ("agent:far", "agent")))
    with pytest.raises(NotAllowed, match="only an admin brings code to run"):
        member.create("A run", workflow=SCRIPT, program=PROGRAM)
    outside = ("/tmp/x.py", "../x.py", "a/../../x.py", ".venv/x.py", "a//x.py", "..\\x.py", "C:/x.py")
    for ref in (*outside, "subprocess:getoutput", "os.path"):
        with pytest.raises(NotAllowed, match="only an admin names a module"):
            member.create("A run", workflow=ref)
        assert admin.create("A run", workflow=ref)["workflow"] == bench.desk.create("A run", workflow=ref)["workflow"] == ref
    for ref in ("flows/x.py:release", "x.lua"):
        assert member.create("A run", workflow=ref)["workflow"] == ref
    for who in (admin, bench.desk.as_(EVE)):
        key = who.create("A run", workflow=SCRIPT, program=PROGRAM)["key"]
        found = bench.desk.program(key)
        assert (found["file"], found["body"], found["journal"]) == (SCRIPT, PROGRAM["body"], 0) and len(found["digest"]) == 64
    claim = agent.claim(key, "far")["claim"]
    newer = {"file": SCRIPT, "body": "pause()"}
    more = {"steps": [said("1", "waiting")], "program": newer}
    before = everything(bench.desk)
    for attempt in (
        lambda: agent.record(claim, program=newer),
        lambda: agent.flag(key, "Which?", claim=claim, **more),
        lambda: agent.do("park", task=case(bench.desk, key).task.id, claim=claim["token"], **more),
    ):
        with pytest.raises(NotAllowed, match="only an admin brings code to run"):
            attempt()
    assert everything(bench.desk) == before
    agent.record(claim, [said("1")])
    agent.rewind(key, 1, claim=claim)
    bench.agent.record(claim, program=newer)
    assert bench.desk.program(key)["body"] == "pause()" and bench.desk.program(key)["journal"] == 1
    assert bench.desk.program(bench.run()) is None


def test_the_next_task_is_a_run_only_for_workers_that_run_scripts(bench):
    run, plain = bench.run(priority=0), bench.ready(priority=3)
    assert bench.desk.next()["key"] == plain
    assert {task["key"] for task in bench.desk.ready()} == {run, plain}
    assert bench.agent.claim_next("w1")["task"]["key"] == plain
    assert bench.agent.claim_next("w1") is None and bench.desk.next() is None
    assert bench.agent.claim_next("w1", runs=True)["task"]["key"] == run


def test_a_run_requires_nothing_at_its_end(bench):
    """A run ends when its script ends, so a gate on it is refused."""
    with pytest.raises(Invalid, match="its script decides what it asks"):
        bench.desk.create("Release", workflow=SCRIPT, requires="approval")
    key = bench.ready(workflow=SCRIPT)
    with pytest.raises(Invalid, match="its script decides what it asks"):
        bench.desk.update(key, requires="review")
    assert bench.desk.update(key, requires=None)["requires"] is None and bench.desk.list()[-1]["key"] == key

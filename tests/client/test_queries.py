"""What pages look at: moves on trial, neighbours, lists from their newest end, the log backwards, numbers of a window."""

from __future__ import annotations

import pytest

from yourturn.core.errors import YourturnError
from yourturn.core.model import STATES, Who


def everywhere(desk, agent):
    """A task in each state; returns state -> key."""
    made = {}
    for state in STATES:
        key = desk.create(state, draft=state == "created" or None, requires="approval" if state == "human" else None)["key"]
        made[state] = key
    desk.set("review", "ask")
    desk.depend(made["blocked"], made["created"])
    agent.claim(made["working"], "w1")
    desk.flag(made["human"], "Look")
    agent.complete(agent.claim(made["review"], "w2")["claim"], "ready")
    desk.close(made["done"])
    desk.stop(made["failed"])
    desk.cancel(made["cancelled"])
    desk.defer(made["deferred"])
    assert {state: desk.show(key)["state"] for state, key in made.items()} == {state: state for state in STATES}
    return made


@pytest.mark.parametrize("approvals", ["members", "approvers"])
def test_what_is_offered_is_done_and_nothing_else(desk, agent, approvals):
    """Whatever `moves` lists succeeds, and whatever it does not list moves nothing. A yes or a no is an answer, no move."""
    words = (
        "vet",
        "accept",
        "hand_back",
        "resolve",
        "wake",
        "reopen",
        "rewind",
        "release",
        "defer",
        "close",
        "stop",
        "cancel",
        "reject",
    )
    answers = {("reject", "human"), ("accept", "review"), ("reject", "review")}
    desk.set("approvals", approvals)
    for role in ("viewer", "member", "admin"):
        person = desk.as_(Who("human:zoe", role))
        for state in STATES:
            key = everywhere_one(desk, agent, state)
            offered = person.moves(key)
            for verb in (word for word in words if word not in offered and (word, state) not in answers):
                try:
                    getattr(person, verb)(key)
                except YourturnError:
                    pass
                assert desk.show(key)["state"] == state, (role, state, verb)
            for verb in (word for word in words if word in offered):
                fresh = everywhere_one(desk, agent, state)
                getattr(person, verb)(fresh)
                assert desk.show(fresh)["state"] != state, (role, state, verb)


def everywhere_one(desk, agent, state):
    key = desk.create(state, draft=state == "created" or None)["key"]
    if state == "blocked":
        desk.depend(key, desk.create("before")["key"])
    elif state == "working":
        agent.claim(key, "w1")
    elif state == "human":
        desk.flag(key, "Sign off", kind="approval")
    elif state == "review":
        desk.set("review", "ask")
        agent.complete(agent.claim(key, "w1")["claim"], "ready")
    elif state in ("done", "failed", "cancelled", "deferred"):
        {"done": desk.close, "failed": desk.stop, "cancelled": desk.cancel, "deferred": desk.defer}[state](key)
    assert desk.show(key)["state"] == state
    return key


def test_looking_at_moves_changes_nothing(desk, agent):
    made = everywhere(desk, agent)
    before = desk.desk_cursor(), [desk.show(key) for key in made.values()]
    for key in made.values():
        desk.moves(key)
    assert (desk.desk_cursor(), [desk.show(key) for key in made.values()]) == before


def test_what_is_due_counts_as_done(desk, agent, clock):
    key = desk.create("A")["key"]
    agent.claim(key, "w1", lease="5m")
    assert "release" in desk.moves(key)
    clock.advance(minutes=6)
    assert "release" not in desk.moves(key) and "defer" in desk.moves(key)


def test_neighbours_up_and_down_but_not_sideways(desk):
    top, other = desk.create("top")["key"], desk.create("other")["key"]
    here = desk.create("here", depends_on=[top])["key"]
    sibling = desk.create("sibling", depends_on=[top])["key"]
    below = desk.create("below", depends_on=[here, other])["key"]
    last = desk.create("last", depends_on=[below])["key"]
    far = desk.create("far", depends_on=[last])["key"]
    found = desk.graph(here)
    assert {t["key"] for t in found["tasks"]} == {top, here, below, last} and not found["more"]
    assert found["edges"] == sorted([[here, top], [below, here], [last, below]])
    assert {t["key"] for t in desk.graph(here, steps=3)["tasks"]} == {top, here, below, last, far}
    assert {sibling, other} & {t["key"] for t in desk.graph(here, steps=9)["tasks"]} == set()
    for n in range(30):
        desk.create(f"many {n}", depends_on=[here])
    found = desk.graph(here, most=10)
    assert len(found["tasks"]) == 10 and found["more"] and top in {t["key"] for t in found["tasks"]}
    assert desk.graph(desk.create("alone")["key"])["edges"] == []


def test_lists_and_the_log_from_their_newest_end(desk):
    keys = [desk.create(f"task {n}")["key"] for n in range(7)]
    first = desk.list(newest=True, limit=3)
    assert [t["key"] for t in first] == keys[:3:-1]
    rest = desk.list(newest=True, after=first[-1]["key"])
    assert [t["key"] for t in first + rest] == keys[::-1]
    found = desk.history(limit=4)
    older = desk.history(limit=100, before=found[0]["seq"])
    assert [e["seq"] for e in older + found] == [e["seq"] for e in desk.history()]
    assert desk.history(project="PROJ", limit=2, before=found[0]["seq"])[-1]["seq"] < found[0]["seq"]
    with pytest.raises(YourturnError):
        desk.history(project="NOPE")


def test_numbers_of_a_window_and_of_the_one_before(desk, agent, clock):
    def asked(minutes: float | None, kind: str = "input") -> None:
        q = agent.ask(desk.create("A")["key"], "Hm?", kind, timeout="1h", on_timeout="fail")
        if minutes is not None:
            clock.advance(minutes=minutes)
            if minutes < 60:
                desk.answer(q["id"], "x")
        desk.reconcile()

    for minutes in (30, 40, 50):
        asked(minutes)
    clock.advance(days=8)
    for minutes in (2, 4, 6, 61):
        asked(minutes)
    asked(None, "recovery")
    found = desk.stats(days=7)
    assert found["questions"] == {"pending": 1, "answered": 3, "timeout": 1, "cancelled": 0}
    assert found["timeout_rate"] == 0.25 and found["kinds"]["recovery"]["timeout_rate"] is None
    assert found["answer_seconds"]["median"] == 240 and found["before"]["answer_seconds"]["median"] == 2400
    assert found["questions_per_task"] == {"mean": 1.0, "most": 1, "tasks": 5, "spread": [5, 0, 0, 0, 0]}
    assert len(found["queue"]) == 97 == len(found["before"]["queue"])
    assert found["queue"][-1]["waiting"] == 1 and found["queue"][0]["waiting"] == 0
    task = desk.create("asks a lot")["key"]
    for value in ("yes", "no", ""):
        q = agent.ask(task, "And this?", on_timeout="keep")
        clock.advance(minutes=8)
        desk.answer(q["id"], value) if value else desk.withdraw(q["id"])
    found = desk.stats(days=7)
    assert found["questions"] == {"pending": 1, "answered": 5, "timeout": 1, "cancelled": 1}
    assert found["questions_per_task"] == {"mean": 1.333, "most": 3, "tasks": 6, "spread": [5, 0, 1, 0, 0]}
    times = {"count": 5, "mean": 336.0, "median": 360.0, "p90": 480.0, "longest": 480.0}
    assert found["answer_seconds"] == times == found["kinds"]["input"]["answer_seconds"]
    assert found["kinds"]["input"]["timeout_rate"] == round(1 / 6, 4) == found["timeout_rate"]
    assert found["oldest_pending"] == 24 * 60 and sum(day["asked"] for day in found["by_day"]) == 8
    clock.advance(days=1)
    assert desk.stats(days=1)["queue"][0]["waiting"] == 1, "what waits since before is in the queue"

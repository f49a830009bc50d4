"""The summary of the inbox: the same facts as the inbox itself, on both databases."""

from __future__ import annotations


def test_waiting_is_the_inbox_without_texts(desk, agent, clock):
    keys = [desk.create(f"Task {n}")["key"] for n in range(4)]
    desk.depend(keys[1], keys[0])
    agent.ask(keys[0], "JWT or sessions?", options=["jwt", "sessions"], timeout="10m", default="jwt")
    agent.ask(keys[2], "Why?", reviewer="ben", on_timeout="keep")
    agent.ask(keys[3], "British?", options=["yes", "no"], default="yes", blocking=False)
    waiting, full = desk.waiting(), desk.inbox()
    assert [q["id"] for q in waiting] == [q["id"] for q in full]
    for short, whole in zip(waiting, full, strict=True):
        same = set(short) - {"project", "accept_at"}
        assert {name: short[name] for name in same} == {name: whole[name] for name in same}
        assert short["project"] == "PROJ"
    assert [q["holds_up"] for q in waiting if q["task"] == keys[0]] == [1]
    assert [q["task"] for q in desk.waiting(search="jwt")] == [keys[0]]
    assert [q["task"] for q in desk.waiting(search="task 3")] == [keys[3]]
    assert desk.waiting(search="%") == []


def test_finished_work_is_in_the_inbox(desk, agent):
    desk.set("review", "ask")
    key = desk.create("Theme")["key"]
    agent.complete(agent.claim(key, "w")["claim"], "Finished it")
    assert [(q["id"], q["task"], q["kind"], q["asked_by"]) for q in desk.waiting()] == [("Q1", key, "approval", "agent:coder")]
    assert [q["id"] for q in desk.inbox(only=["Q1"])] == ["Q1"]


def test_inbox_filter_only_keeps_the_order(desk, agent):
    asked = [agent.ask(desk.create(f"Task {n}")["key"], f"Q {n}?", on_timeout="keep")["id"] for n in range(5)]
    desk.answer(asked[1], "done")
    assert [q["id"] for q in desk.inbox(only=[asked[4], asked[1], "Q999", asked[0]])] == [asked[4], asked[1], asked[0]]

"""What a session says and leaves behind: only its own, never a late one's, and its last words are heard."""

from __future__ import annotations

import pytest

from yourturn.core.errors import ClaimLost, Invalid
from yourturn.core.model import Who
from yourturn.desk import agent_output


def said(desk, key="PROJ-1"):
    return [line["text"] for line in desk.output(key)]


def test_last_output_is_kept_until_the_next_claim(desk, agent):
    desk.create("A", requires="approval")
    first = agent.claim_next("w1")["claim"]
    agent.write_output(first, [("said", "working")])
    agent.complete(first, "done")
    agent.write_output(first, [("said", "goodbye")])
    with pytest.raises(ClaimLost):
        agent.keep_patch(first, "", "diff")
    stranger = agent.as_(Who("agent:coder", "agent"))
    with pytest.raises(ClaimLost):
        stranger.write_output(first, [("said", "by who only has a name")])
    desk.reject("PROJ-1", "again")
    second = agent.claim_next("w2")["claim"]
    with pytest.raises(ClaimLost):
        agent.write_output(first, [("said", "late")])
    agent.write_output(second, [("said", "mine")])
    assert said(desk) == ["working", "goodbye", "mine"]


def test_expired_lease_writes_no_output(desk, agent, clock):
    desk.create("A")
    claim = agent.claim_next("w1", lease="1m")["claim"]
    clock.advance(minutes=2)
    with pytest.raises(ClaimLost):
        agent.write_output(claim, [("said", "late")])
    with pytest.raises(ClaimLost):
        agent.write_output("PROJ-1.9.guessed", [("said", "forged")])
    assert said(desk) == []


def test_the_oldest_lines_go_and_long_ones_are_cut(desk, agent, monkeypatch):
    monkeypatch.setattr(agent_output, "LINES", 5)
    desk.create("A")
    claim = agent.claim_next("w1")["claim"]
    for n in range(4):
        agent.write_output(claim, [("said", f"{n}a"), ("said", f"{n}b\x00\ud800")])
    assert said(desk) == ["1b\ufffd?", "2a", "2b\ufffd?", "3a", "3b\ufffd?"]
    last = desk.output("PROJ-1")[-1]["id"]
    agent.write_output(claim, [("said", "x" * 10_000)])
    (line,) = desk.output("PROJ-1", after=last)
    assert len(line["text"]) < 8_100 and "10,000 characters" in line["text"]


def test_a_patch_replaces_the_one_before(desk, agent, monkeypatch):
    desk.create("A")
    claim = agent.claim_next("w1")["claim"]
    assert desk.patch("PROJ-1") is None
    for body in ("one", "two"):
        agent.keep_patch(claim, "base", body)
    assert (desk.patch("PROJ-1")["body"], desk.patch("PROJ-1")["epoch"]) == ("two", 1)
    monkeypatch.setattr(agent_output, "PATCH", 3)
    with pytest.raises(Invalid, match="too large"):
        agent.keep_patch(claim, "base", "four")
    agent.keep_patch(claim, "base", "")
    assert desk.patch("PROJ-1") is None

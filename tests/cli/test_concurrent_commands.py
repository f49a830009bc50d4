"""Many processes at once, with the real command."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

from tests import forked_commands
from tests.fixtures.command import Turn

PATIENT = {"YOURTURN_BUSY": "60"}  # 31 other processes may take longer than the default on a busy machine


def test_one_of_32_answers_wins(turn: Turn) -> None:
    turn.env |= PATIENT
    turn("create", "Login")
    turn("flag", "PROJ-1", "JWT or sessions?", "--kind", "input")
    started = [
        forked_commands.command(("respond", "PROJ-1", f"answer {i}", "--as", f"human:p{i}", "--json"), turn.folder, turn.env)
        for i in range(32)
    ]
    ended = [(p.communicate(timeout=120), p.returncode) for p in started]
    won = [json.loads(out) for (out, _), code in ended if code == 0]
    lost = [json.loads(err)["error"] for (_, err), code in ended if code == 4]
    assert (len(won), len(lost)) == (1, 31), [code for _, code in ended]
    winner = won[0]["responded_by"]
    assert all(f"{winner} answered" in error["message"] for error in lost)
    assert {error["code"] for error in lost} == {"already_answered"}
    assert won[0] == {**turn("show", "Q1"), "task_state": "ready"}
    assert [e["action"] for e in turn("log", "PROJ-1")] == ["create", "flag", "answer"]


def test_16_workers_share_40_tasks(here: Turn) -> None:
    here.env |= PATIENT
    for i in range(40):
        here("create", f"Task {i}")

    def work(name: str) -> list[str]:
        mine = []
        while (got := here("next", "--claim", "--worker-id", name)) is not None:
            mine.append(got["task"]["key"])
            here("complete", got["task"]["key"], "--claim", got["claim"]["token"])
        return mine

    with ThreadPoolExecutor(16) as pool:
        shares = list(pool.map(work, [f"w{i}" for i in range(16)]))
    done = sorted(key for share in shares for key in share)
    assert done == sorted(f"PROJ-{i}" for i in range(1, 41))
    assert sum(e["action"] == "claim" for e in here("log")) == 40


def test_a_replaced_claim_cannot_write(turn: Turn) -> None:
    """The first worker is thrown out; whatever it still says is refused, and the row does not change."""
    turn("create", "Login")
    old = turn.as_agent("claim", "PROJ-1", "--worker-id", "w1")["claim"]["token"]
    turn("release", "PROJ-1")
    new = turn.as_agent("claim", "PROJ-1", "--worker-id", "w2")["claim"]
    before = turn("show", "PROJ-1")
    for line in (
        ("complete", "PROJ-1"), ("heartbeat", "PROJ-1"), ("ask", "PROJ-1", "Still there?"), ("release", "PROJ-1"),
        ("park", "PROJ-1"),
        ("decompose", "PROJ-1", "--child", "A"), ("fail", "PROJ-1"), ("flag", "PROJ-1", "Help"),
    ):  # fmt: skip
        error = turn.as_agent(*line, "--claim", old, exit=4)
        assert error["code"] == "claim_lost", line
        assert "w2 holds it now (epoch 2)" in error["message"]
        assert turn.as_agent(*line, "--worker-id", "w1", exit=4)["code"] == "claim_lost", line
    assert turn("show", "PROJ-1") == before
    assert turn.as_agent("complete", "PROJ-1", "--claim", new["token"])["state"] == "done"

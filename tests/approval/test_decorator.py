"""The question of an approval: its text, key, task and actor; calls from threads and event loops."""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
import threading
from typing import Any

import pytest

import yourturn
from tests.approval.person import PROGRAM, outcome, person
from yourturn.approval.decorator import requires_approval
from yourturn.core.errors import IllegalMove, Invalid, KeyReused, NotAllowed, Precondition, Refused, StillWaiting, YourturnError

# --- text and key ---------------------------------------------------------------------------------------------------


def test_text_can_be_a_function_of_the_arguments(desk, yes):
    @requires_approval(desk=desk, text=lambda version, to="staging": f"{version} → {to}", reviewer="ops")
    def deploy(version, to="staging"):
        return to

    with person(desk, yes) as seen:
        assert deploy("1.2") == "staging"
    assert (seen[0]["text"], seen[0]["reviewer"]) == ("1.2 → staging", "ops")


@pytest.mark.parametrize("field", ["text", "key"])
@pytest.mark.parametrize("template", ["{nothing}", "{", "{}", "{version.x}", lambda version: 5])
@pytest.mark.parametrize("dialect", ["sqlite"])
def test_invalid_text_or_key_raises_before_asking(desk, field, template):
    with pytest.raises(Invalid, match=field):
        requires_approval(desk=desk, wait=0, **{field: template})(lambda version: version)("1.2")
    assert desk.list() == []


@pytest.mark.parametrize("wait", [-1, float("nan"), True, "1h"])
@pytest.mark.parametrize("dialect", ["sqlite"])
def test_wait_must_be_a_number_of_seconds(desk, wait):
    with pytest.raises(Invalid, match="wait must be a number"):
        requires_approval(desk=desk, wait=wait)(lambda version: version)("1.2")


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_long_arguments_are_cut_in_the_text_but_not_in_the_action(desk, yes):
    with person(desk, yes) as seen:
        assert len(requires_approval(desk=desk)(lambda words: words)("x" * 5000)) == 5000
    assert len(seen[0]["text"]) < 400
    assert len(seen[0]["action"]["arguments"]["words"]) == 5000


def test_key_finds_the_earlier_question(desk):
    ran = []

    @requires_approval(desk=desk, wait=0, key="deploy {version}")
    def deploy(version, to="staging"):
        ran.append(version)

    for _ in range(3):
        with pytest.raises(StillWaiting, match="Q1"):
            deploy("1.2")
    assert [task["key"] for task in desk.list()] == ["PROJ-1"]
    desk.approve("Q1")
    deploy("1.2")
    assert ran == ["1.2"]
    with pytest.raises(Precondition, match=f"has not run: Q1 was used already, by {PROGRAM}/"):
        deploy("1.2")
    with pytest.raises(KeyReused, match="stands for another call"):
        deploy("1.2", "production")
    with pytest.raises(StillWaiting, match="Q2"):
        deploy("1.3")
    assert ran == ["1.2"]


def test_key_is_bound_to_the_folder(desk, tmp_path, monkeypatch):
    deploy = requires_approval(desk=desk, wait=0, key="k")(lambda version: version)
    with pytest.raises(StillWaiting):
        deploy("1.2")
    desk.approve("Q1")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(KeyReused, match="in another folder"):
        deploy("1.2")


# --- task and actor -----------------------------------------------------------------------------------------


def test_carrier_task_is_never_claimable(desk, agent):
    deploy = requires_approval(desk=desk, wait=0, key="k")(lambda version: version)
    with pytest.raises(StillWaiting):
        deploy("1.2")
    assert agent.claim_next("w1") is None
    desk.approve("Q1")
    assert agent.claim_next("w1") is None
    assert deploy("1.2") == "1.2"
    assert agent.claim_next("w1") is None


def test_question_of_a_worker_keeps_its_claim(desk, agent, yes, monkeypatch):
    desk.create("Release it")
    got = agent.claim_next("w1")
    monkeypatch.setenv("YOURTURN_TASK", "PROJ-1")
    monkeypatch.setenv("YOURTURN_CLAIM", got["claim"]["token"])
    with person(desk, yes) as seen:
        assert requires_approval(desk=agent)(lambda version: version)("1.2") == "1.2"
    assert (seen[0]["task"], seen[0]["asked_by"]) == ("PROJ-1", "agent:coder")
    assert desk.show("PROJ-1")["claim"]["worker"] == "w1"
    assert agent.complete(got["claim"], "Released.")["state"] == "done"


def test_key_finds_the_question_of_an_earlier_claim(desk, agent, monkeypatch):
    desk.create("Release it")
    release = requires_approval(desk=agent, wait=0, key="k")(lambda version: version)
    monkeypatch.setenv("YOURTURN_TASK", "PROJ-1")
    for worker in ("w1", "w2"):
        got = agent.claim_next(worker)
        monkeypatch.setenv("YOURTURN_CLAIM", got["claim"]["token"])
        if worker == "w2":
            assert release("1.2") == "1.2"
            break
        with pytest.raises(StillWaiting):
            release("1.2")
        agent.park(got["claim"])
        desk.approve("Q1")


def test_claim_of_another_task_is_not_used(desk, agent, yes, monkeypatch):
    desk.create("Release it")
    desk.create("Another")
    monkeypatch.setenv("YOURTURN_CLAIM", agent.claim("PROJ-2", "w1")["claim"]["token"])
    with person(desk, yes):
        requires_approval(desk=agent, task="PROJ-1")(lambda version: version)("1.2")
    assert desk.show("PROJ-2")["claim"]["worker"] == "w1"


def test_ended_task_refuses_the_question(desk):
    desk.create("Release it")
    desk.close("PROJ-1")
    with pytest.raises(IllegalMove):
        requires_approval(desk=desk, task="PROJ-1", wait=0)(lambda version: pytest.fail("it ran"))("1.2")


def test_approval_is_void_after_the_task_has_ended(desk):
    desk.create("Release it")
    release = requires_approval(desk=desk, task="PROJ-1", wait=0, key="k")(lambda version: pytest.fail("it ran"))
    with pytest.raises(StillWaiting):
        release("1.2")
    desk.approve("Q1")
    desk.close("PROJ-1")
    with pytest.raises(YourturnError):
        release("1.2")


def test_question_is_asked_as_an_agent(desk, agent, open_desk):
    asks = ((desk, "deployer", "agent:deployer"), (desk, None, f"agent:{PROGRAM}"), (agent, "boss", "agent:coder"))
    for client, name, who in asks:
        with pytest.raises(StillWaiting) as caught:
            requires_approval(desk=client, wait=0, agent=name)(lambda version: version)("1.2")
        assert desk.show(caught.value.question)["asked_by"] == who
    with pytest.raises(NotAllowed):
        agent.approve("Q1")


def test_default_desk_is_opened_per_call(address, monkeypatch, open_desk):
    monkeypatch.setenv("YOURTURN_DB", address)
    desk = open_desk(fake=False)

    @requires_approval
    def deploy(version):
        return version

    @requires_approval(desk=address)
    async def later(version):
        return version

    with person(desk, lambda q: desk.approve(q["id"]), 3):
        assert deploy("1.2") == "1.2"
        assert asyncio.run(later("1.3")) == "1.3"
        assert yourturn.requires_approval(deploy.__wrapped__)("1.4") == "1.4"


# --- threads and asyncio ----------------------------------------------------------------------------------------------


def test_calls_in_threads(desk):
    double = requires_approval(desk=desk)(lambda number: number * 2)
    results: dict[int, Any] = {}

    def run(number):
        try:
            results[number] = double(number)
        except Refused as error:
            results[number] = error.why

    def act(q):
        number = q["action"]["arguments"]["number"]
        desk.approve(q["id"]) if number % 2 else desk.reject(q["id"], f"no {number}")

    with person(desk, act, 8):
        threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(40)
    assert results == {n: n * 2 if n % 2 else f"no {n}" for n in range(8)}


def test_calls_in_asyncio(desk):
    @requires_approval(desk=desk)
    async def double(number):
        await asyncio.sleep(0)
        return number * 2

    def act(q):
        number = q["action"]["arguments"]["number"]
        desk.approve(q["id"]) if number % 2 else desk.reject(q["id"], f"no {number}")

    async def main():
        assert inspect.iscoroutinefunction(double)
        results = await asyncio.gather(*(double(n) for n in range(40)), return_exceptions=True)
        return [error.why if isinstance(error, Refused) else error for error in results]

    with person(desk, act, 40):
        assert asyncio.run(main()) == [n * 2 if n % 2 else f"no {n}" for n in range(40)]


def test_cancelled_call_never_runs(desk):
    @requires_approval(desk=desk, key="k", wait=None)
    async def deploy(version):
        return version

    async def main():
        call = asyncio.create_task(deploy("1.2"))
        while not await desk.aio.inbox():
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await desk.aio.approve("Q1")
        assert outcome(await desk.aio.show("Q1")) == ("answered", None)
        assert await deploy("1.2") == "1.2"

    asyncio.run(main())


@pytest.mark.skipif(sys.platform != "linux", reason="counts open files as Linux shows them")
def test_ended_threads_leave_no_open_files(desk, open_desk):
    """A server may use a new thread for each request."""
    ask = requires_approval(desk=desk, wait=0.01)(lambda number: number)

    def run(number):
        with pytest.raises(StillWaiting):
            ask(number)

    def opened():
        return len(os.listdir("/proc/self/fd"))

    before = None
    for number in range(12):
        thread = threading.Thread(target=run, args=(number,))
        thread.start()
        thread.join(20)
        before = opened() if number == 3 else before
    assert opened() <= before + 2

"""The desk for asyncio: every verb awaited, waits that hold no thread, and nothing is left behind by a cancelled call."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from tests.db.processes import gathered
from yourturn.client import Client, aio
from yourturn.core.errors import NotAllowed, NotFound, StoreTrouble


def ears() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("yourturn-listener")]


def hands() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("yourturn_")]


async def gone(condition, seconds: float = 10.0) -> None:
    """Until it is true."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "it never became true"
        await asyncio.sleep(0.01)


def test_every_method_can_be_awaited(desk, agent):
    async def story():
        task = await desk.aio.create("Add login", priority=1)
        got = await agent.aio.claim_next("w1")
        asked = await agent.aio.ask(task, "JWT?", options=["jwt", "sessions"], claim=got["claim"])
        assert [q["id"] for q in await desk.aio.inbox()] == [asked["id"]]
        assert (await desk.aio.answer(asked, "jwt"))["status"] == "answered"
        assert (await agent.aio.wait_for(asked, 5))["response"]["value"] == "jwt"
        assert (await desk.aio.close(task))["state"] == "done"
        with pytest.raises(NotAllowed, match="only people answer"):
            await agent.aio.approve(task)
        with pytest.raises(NotFound):
            await desk.aio.show("PROJ-99")
        return [event["action"] for event in await desk.aio.history(task)]

    assert asyncio.run(story()) == ["create", "claim", "ask", "answer", "close"]


@pytest.mark.parametrize("name", ["who", "project", "_say", "nonsense"])
@pytest.mark.parametrize("dialect", ["sqlite"])
def test_method_that_cannot_be_awaited_raises(desk, name):
    with pytest.raises(AttributeError, match=name):
        getattr(desk.aio, name)


def test_an_answer_from_another_process_ends_the_wait(desk, agent, address, clock):
    desk.create("A")

    async def story():
        asked = await agent.aio.ask("PROJ-1", "Which?")
        waits = asyncio.create_task(agent.aio.wait_for(asked, 60))
        with gathered(address, ("answer", "human:bob", {"question": asked["id"], "value": "that"}), at=clock()) as (bob,):
            bob.stdin.write("go\n")
            bob.stdin.flush()
            return await waits

    found = asyncio.run(story())
    assert (found["responded_by"], found["response"]["value"]) == ("human:bob", "that")


def test_answer_wakes_the_waiter_at_once(desk, agent):
    """The best of some: a busy machine may hold one up, but not all. Looking once a second would make all slow."""
    desk.create("A")
    took = []

    async def story():
        for number in range(4):
            asked = await agent.aio.ask("PROJ-1", f"Which {number}?")
            waits = asyncio.create_task(agent.aio.wait_for(asked, 60))
            await asyncio.sleep(0.02)
            await desk.aio.answer(asked, "that")
            said = time.monotonic()
            await waits
            took.append(time.monotonic() - said)

    asyncio.run(story())
    assert min(took) < 0.3, took


def test_a_wait_ends_by_itself(desk, agent):
    desk.create("A")

    async def story():
        return await agent.aio.ask("PROJ-1", "Which?", wait=0.05)

    assert asyncio.run(story())["status"] == "pending"


def test_a_wait_that_is_longer_than_the_questions_own_time(desk, agent, clock):
    desk.create("A")

    async def story():
        asked = await agent.aio.ask("PROJ-1", "Which?", timeout="5m", default="this")
        waits = asyncio.create_task(agent.aio.wait_for(asked, 60))
        clock.advance(minutes=6)
        return await waits

    found = asyncio.run(story())
    assert (found["status"], found["response"]["value"], found["response"]["verdict"]) == ("timeout", "this", None)


def test_a_hundred_waits_need_one_thread_to_listen(desk, agent):
    desk.set("question_rate", 1000)
    desk.create("A")

    async def story():
        asked = [await agent.aio.ask("PROJ-1", f"Which {number}?") for number in range(100)]
        waits = [asyncio.create_task(agent.aio.wait_for(q, 60)) for q in asked]
        await asyncio.sleep(0)
        for q in asked:
            await desk.aio.answer(q, q["id"])
        found = await asyncio.gather(*waits)
        assert [q["response"]["value"] for q in found] == [q["id"] for q in asked]

    before = len(hands())
    asyncio.run(story())
    assert len(ears()) == 1
    assert len(hands()) - before <= 2 * aio.MAX_THREADS


def test_a_cancelled_wait_leaves_the_listener_to_the_others(desk, agent):
    desk.create("A")

    async def story():
        first, second = [await agent.aio.ask("PROJ-1", word) for word in ("First?", "Second?")]
        gives_up = asyncio.create_task(agent.aio.wait_for(first, 60))
        stays = asyncio.create_task(agent.aio.wait_for(second, 60))
        await gone(ears)
        gives_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gives_up
        await desk.aio.answer(second, "yes")
        assert (await stays)["status"] == "answered"
        assert (await desk.aio.show(first["id"]))["status"] == "pending"
        listening = agent._shared["threads"]._change
        await gone(listening.done)  # no waiter is left: the listener is not called again
        for _ in range(10):
            await asyncio.sleep(0)  # the woken task has run
        assert agent._shared["threads"]._change is listening

    asyncio.run(story())


def test_watching(desk):
    async def story():
        start = await desk.aio.desk_cursor()
        seen = []

        async def watch():
            async for event in desk.aio.watch(start):
                seen.append((event["action"], event["task"]))
                if len(seen) == 3:
                    break
            return event["cursor"]

        watching = asyncio.create_task(watch())
        await desk.aio.create("A")
        await desk.aio.note("PROJ-1", "first")
        await gone(lambda: len(seen) == 2)
        await desk.aio.note("PROJ-1", "second")
        cursor = await asyncio.wait_for(watching, 10)
        assert seen == [("create", "PROJ-1"), ("note", "PROJ-1"), ("note", "PROJ-1")]
        assert [event async for event in desk.aio.watch(cursor, seconds=0.05)] == []
        assert len([event async for event in desk.aio.watch(start, seconds=0)]) == 3

    asyncio.run(story())


def test_a_watch_can_be_cancelled(desk):
    async def story():
        before = len(hands())
        watching = asyncio.create_task(anext(desk.aio.watch()))
        await gone(lambda: len(hands()) > before)
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching

    began = time.monotonic()
    asyncio.run(story())
    assert time.monotonic() - began < 5


def test_two_loops_share_a_desk(desk, agent):
    """One after the other, and at the same time in two threads."""
    desk.create("A")
    found = {}

    async def asks(name):
        found[name] = await agent.aio.ask("PROJ-1", name, wait=60)

    async def answers():
        await gone(lambda: len(desk.inbox()) == 2)
        for q in await desk.aio.inbox():
            await desk.aio.answer(q, q["text"])

    loops = [threading.Thread(target=lambda name=name: asyncio.run(asks(name))) for name in ("one", "two")]
    for loop in loops:
        loop.start()
    asyncio.run(answers())
    for loop in loops:
        loop.join(20)
    assert {name: q["response"]["value"] for name, q in found.items()} == {"one": "one", "two": "two"}


def test_a_desk_that_is_closed_meanwhile(open_desk):
    desk, agent = open_desk(), open_desk("agent:coder")
    desk.create("A")

    async def story():
        asked = await agent.aio.ask("PROJ-1", "Which?")
        waits = asyncio.create_task(agent.aio.wait_for(asked, 60))
        await gone(ears)
        await agent.aio.close()
        with pytest.raises(StoreTrouble, match="closed during a wait"):
            await waits

    asyncio.run(story())


def test_closing_leaves_no_threads(open_desk):
    before = len(hands()) + len(ears())
    desk = open_desk()

    async def story():
        await desk.aio.create("A")
        await desk.aio.ask("PROJ-1", "Which?", wait=0.01)

    asyncio.run(story())
    assert len(hands()) + len(ears()) > before
    desk.close()
    assert len(hands()) + len(ears()) == before


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_the_same_desk_for_another_actor_shares_the_threads(desk):
    other = desk.as_(desk.who)
    assert isinstance(other, Client)
    assert other.aio._threads is desk.aio._threads


# --- the same, without asyncio ---------------------------------------------------------------------------------------


def test_an_answer_from_another_thread_ends_the_wait_at_once(desk, agent):
    """The best of some: a busy machine may hold one up, but not all. Looking once a second would make all slow."""
    desk.create("A")
    took = []

    def answer(asked, said):
        desk.answer(asked, "that")
        said.append(time.monotonic())

    for number in range(4):
        asked = agent.ask("PROJ-1", f"Which {number}?")
        said: list[float] = []
        thread = threading.Timer(0.02, answer, (asked, said))
        thread.start()
        assert agent.wait_for(asked, 60)["response"]["value"] == "that"
        ended = time.monotonic()
        thread.join()
        took.append(ended - said[0])
    assert min(took) < 0.3, took


def test_a_plain_wait_that_is_longer_than_the_questions_own_time(desk, agent, clock):
    desk.create("A")
    asked = agent.ask("PROJ-1", "Which?", timeout="5m", default="this")
    clock.advance(minutes=6)
    found = agent.wait_for(asked, 60)
    assert (found["status"], found["response"]["value"]) == ("timeout", "this")


def test_no_wait_and_a_wait_that_is_no_number(desk, agent):
    desk.create("A")
    began = time.monotonic()
    for wait in (None, 0, -1, float("nan")):
        assert agent.ask("PROJ-1", "Which?", wait=wait)["status"] == "pending"
    assert time.monotonic() - began < 10

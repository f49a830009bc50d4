"""Watching: awake within a tenth of a second, and asleep for almost nothing."""

from __future__ import annotations

import threading
import time

import pytest

from .processes import gathered, raw


class Watcher(threading.Thread):
    """Watches in a thread of its own until it has seen so many events; remembers when it saw each."""

    def __init__(self, client, count, seconds=10.0):
        super().__init__()
        self.client, self.count, self.seconds = client, count, seconds
        self.cursor = client.desk.cursor()
        self.seen, self.awake = [], threading.Semaphore(0)

    def run(self):
        for event in self.client.watch(self.cursor, self.seconds):
            self.seen.append((time.monotonic(), event))
            self.awake.release()
            if len(self.seen) == self.count:
                return


def _latencies(desk, watcher, rounds):
    """From the moment the writer has its answer until the watcher has the event. The first is to warm up."""
    found = []
    for number in range(rounds):
        desk.note("PROJ-1", f"note {number}")
        told = time.monotonic()
        assert watcher.awake.acquire(timeout=10)
        found.append(watcher.seen[-1][0] - told)
        time.sleep(0.03)  # let it fall asleep again
    return found[1:]


def test_a_watcher_wakes_within_a_tenth_of_a_second(open_desk, dialect):
    desk, other = open_desk(), open_desk()
    desk.create("A")
    watcher = Watcher(other, count=6)
    watcher.start()
    found = _latencies(desk, watcher, 6)
    watcher.join(10)
    print(f"\n{dialect}: watch woke after {', '.join(f'{1000 * x:.1f}' for x in sorted(found))} ms")
    assert [event["data"]["notes"][0]["text"] for _, event in watcher.seen] == [f"note {n}" for n in range(6)]
    assert min(found) < 0.1


def test_two_watchers_of_one_desk_wake_both(open_desk):
    desk, other = open_desk(), open_desk()
    desk.create("A")
    watchers = [Watcher(other, count=6), Watcher(other, count=6)]
    for watcher in watchers:
        watcher.start()
    best = []
    for number in range(6):
        desk.note("PROJ-1", f"note {number}")
        told = time.monotonic()
        assert all(watcher.awake.acquire(timeout=10) for watcher in watchers)
        best.append(max(watcher.seen[-1][0] for watcher in watchers) - told)
        time.sleep(0.03)
    for watcher in watchers:
        watcher.join(10)
    assert sorted(best[1:])[2] < 0.1, best


def test_an_idle_watcher_costs_almost_nothing(open_desk, dialect):
    desk = open_desk()
    desk.create("A")
    assert list(desk.watch(seconds=0.05)) == []
    cpu, wall = time.thread_time(), time.monotonic()  # this thread's own, whatever else the process does
    assert list(desk.watch(seconds=2.0)) == []
    cpu, wall = time.thread_time() - cpu, time.monotonic() - wall
    print(f"\n{dialect}: an idle watcher used {100 * cpu / wall:.2f} % of a core")
    assert wall > 1.9
    assert cpu / wall < 0.05


def test_watch_starts_at_its_cursor(desk):
    desk.create("A")
    start = desk.desk.cursor()
    desk.note("PROJ-1", "missed?")
    assert [e["action"] for e in desk.watch(start, 0.0)] == ["note"]
    assert list(desk.watch(None, 0.0)) == []
    first = next(iter(desk.watch(start, 0.0)))
    assert list(desk.watch(first["cursor"], 0.0)) == []


def test_wait_for_returns_when_another_process_answers(desk, agent, address, clock):
    desk.create("A")
    asked = agent.ask("PROJ-1", "Which?")
    with gathered(address, ("answer", "human:bob", {"question": asked["id"], "value": "that"}), at=clock()) as (bob,):
        timer = threading.Timer(0.1, lambda: (bob.stdin.write("go\n"), bob.stdin.flush()))
        timer.start()
        began = time.monotonic()
        found = agent.wait_for(asked, 20)
        took = time.monotonic() - began
        timer.join()
        bob.wait(20)
    assert (found["status"], found["responded_by"], found["response"]["value"]) == ("answered", "human:bob", "that")
    assert took < 10


def test_wait_for_gives_up(agent, desk):
    desk.create("A")
    asked = agent.ask("PROJ-1", "Which?")
    assert agent.wait_for(asked, 0.05)["status"] == "pending"


@pytest.mark.parametrize("dialect", ["postgres"])
def test_watcher_polls_without_a_notification(open_desk, address, dialect):
    desk, other = open_desk(), open_desk()
    desk.create("A")
    watcher = Watcher(other, count=1)
    watcher.start()
    with raw(address) as run:
        run(
            "INSERT INTO events (workspace_id, task_id, n, at, actor, action, data, prev, hash) "
            "VALUES (1, NULL, 2, 1, 'human:quiet', 'user_set', '{}', '', '')"
        )
        assert watcher.awake.acquire(timeout=other.desk.store.poll_interval + 2)
    watcher.join(10)
    assert watcher.seen[0][1]["actor"] == "human:quiet"


@pytest.mark.parametrize("dialect", ["postgres"])
def test_a_watcher_in_a_hurry_still_listens(open_desk, monkeypatch, dialect):
    """Told of a commit that it cannot see, or has seen already, it looks again soon; the next one must not meet it asleep."""
    desk, other = open_desk(), open_desk()
    desk.create("A")
    waited = []

    def wait(seconds):
        waited.append(seconds)
        if len(waited) == 2:
            desk.note("PROJ-1", "the next one")
        return True

    monkeypatch.setattr(other.desk.store, "wait", wait)
    assert next(other.watch(other.desk.cursor(), 5.0))["action"] == "note"
    assert len(waited) == 2
    assert waited[1] < 0.1 < waited[0]


def test_a_search_without_work_wakes_no_watcher(open_desk):
    """Else idle workers would keep each other awake."""
    one, other = open_desk(), open_desk("agent:coder")
    while one.desk.wait(0.05):
        pass
    assert other.claim_next("w") is None and other.claim_next("w", runs=True) is None
    assert not one.desk.wait(0.2)
    other.create("Something to do")
    assert one.desk.wait(5.0)

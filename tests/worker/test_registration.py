"""Registration of workers: real processes that end, stop, or are killed, with a database and with a server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import TURN
from tests.worker.workshop import DONE, Shop, until
from yourturn.client import Client
from yourturn.desk import worker_registry
from yourturn.worker.agents import exec_agent
from yourturn.worker.registration import Registration
from yourturn.worker.worker import HEARTBEAT_INTERVAL

GONE = worker_registry.GONE / 1_000_000


@pytest.fixture
def shop(address: str, tmp_path: Path) -> Iterator[Shop]:
    found = Shop(tmp_path, address)
    yield found
    found.close()


def running(desk: Client) -> list[str]:
    return [w["name"] for w in desk.workers() if w["running"]]


def test_idle_worker_is_registered_until_it_stops(shop: Shop) -> None:
    with shop.process(exec_agent(f"echo '{DONE}'", "coder"), "--worker-id", "w1", "--parallel", "2") as worker:
        until(lambda: running(shop.desk), "the worker")
        (found,) = shop.desk.workers()
        assert (found["name"], found["actor"], found["agents"], found["parallel"]) == ("w1", "agent:coder", ["coder"], 2)
        assert found["host"] and found["runs"] and found["project"] is None
        key = shop.task()
        until(lambda: shop.show(key)["state"] == "done", "the work")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(30) == 0
    assert shop.desk.workers() == []


def test_killed_worker_counts_as_gone_later(shop: Shop) -> None:
    with shop.process(exec_agent("sleep 60", "coder"), "--worker-id", "w1") as worker:
        until(lambda: running(shop.desk), "the worker")
        worker.kill()
        worker.wait()
    key = shop.task()
    assert running(shop.desk) == ["w1"] and shop.desk.unattended(task=key) is None, "nobody can know yet"
    later = shop.person(GONE + 1)
    assert running(later) == [] and [w["name"] for w in later.workers()] == ["w1"]
    assert later.unattended(task=key) == {"task": key, "ready": 1, "workers": 0, "start": "turn work"}


def test_next_worker_of_the_name_takes_the_row(shop: Shop) -> None:
    agent = shop.script(f'echo "{DONE}"\n')
    with shop.process(agent, "--worker-id", "w1") as worker:
        until(lambda: running(shop.desk), "the worker")
        worker.kill()
        worker.wait()
    shop.drain(agent, name="w1", later=GONE + 1)
    assert shop.desk.workers() == []


def test_worker_that_fails_to_start_leaves_no_row(shop: Shop) -> None:
    shop.repository()
    (shop.root / "README").write_text("Changed by a person.\n")
    with shop.process(exec_agent("true", "coder"), "--in-place") as worker:
        assert worker.wait(30) == 4
    assert shop.desk.workers() == []


def test_registration_is_renewed_or_repeated(shop: Shop) -> None:
    desk = shop.desk
    found = Registration(desk, "w1", HEARTBEAT_INTERVAL, agents=["coder"])
    found.begin()
    first = desk.workers()[0]["seen_at"]
    beats = round(worker_registry.RENEW / 1_000_000 / HEARTBEAT_INTERVAL)
    assert beats * HEARTBEAT_INTERVAL == 90.0 < GONE / 2 + 1, "one write per lease, and a second one before it counts as gone"
    for _ in range(beats - 1):
        found.renew()
    assert desk.workers()[0]["seen_at"] == first
    found.renew()
    assert desk.workers()[0]["seen_at"] > first
    desk.remove_worker("w1")
    for _ in range(beats):
        found.renew()
    assert running(desk) == ["w1"]
    found.end()
    assert desk.workers() == []


def test_worker_for_one_task_is_not_registered(shop: Shop) -> None:
    only = shop.task("Only this")
    with shop.draining(shop.script(f'wait_for go; echo "{DONE}"\n'), only=only):
        until(lambda: shop.show(only)["state"] == "working", "the work")
        assert shop.desk.workers() == []
        shop.go()
    assert shop.show(only)["state"] == "done"


def test_remote_worker_is_registered_and_can_be_killed(shop: Shop) -> None:
    """It has only an address and a token."""
    token = shop.desk.create_token("w", scopes=["run"])["token"]
    serve = subprocess.Popen(
        [TURN, "--db", shop.address, "serve", "--port", "0", "--json"], cwd=shop.root, env=shop.env, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert serve.stdout is not None
        env = shop.env | {"YOURTURN_URL": json.loads(serve.stdout.readline())["url"], "YOURTURN_TOKEN": token}
        for end in (signal.SIGTERM, signal.SIGKILL):
            worker = subprocess.Popen(
                [TURN, "work", "--exec", "true", "--worker-id", "far"], cwd=shop.root, env=env, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            try:
                until(lambda: running(shop.desk), "the worker")
                (found,) = shop.desk.workers()
                assert (found["name"], found["actor"], found["agents"]) == ("far", "agent:w", ["exec"])
            finally:
                os.kill(worker.pid, end)
                worker.wait(30)
            assert running(shop.desk) == ([] if end is signal.SIGTERM else ["far"])
        assert running(shop.person(GONE + 1)) == []
    finally:
        serve.terminate()
        serve.wait(30)

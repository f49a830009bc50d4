"""Failpoints: every change has all five, and when they are off they are not there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.conftest import TURN
from tests.core.states import Bench
from tests.faults.operations import FOUNDING, OPERATIONS, RESTORING, company
from yourturn.config import connect, init, replied, restore
from yourturn.core.actions import VERBS
from yourturn.core.errors import Usage
from yourturn.core.rules import ADMIN_VERBS
from yourturn.db.failpoints import POINTS

pytestmark = pytest.mark.processes

#: Changes that are no verb.
OTHERS = {"claim_next", "reconcile", "init", "migrate"}
#: What leaves no event of its own name.
UNTOLD = {"heartbeat", "claim_next", "reconcile"}


def test_every_change_has_a_recipe():
    assert {operation.verb for operation in OPERATIONS} | {*FOUNDING, *RESTORING} == set(VERBS) | set(ADMIN_VERBS) | OTHERS


def test_every_change_passes_all_points(desk, agent, clock, address, monkeypatch, tmp_path):
    bench, diary = Bench(desk, agent, clock), tmp_path / "diary"
    for operation in OPERATIONS:
        if operation.minutes:
            for task in desk.list(state=("working", "human")):
                desk.cancel(task)
        facts = operation.bring(bench)
        company(bench, facts)
        clock.advance(minutes=operation.minutes)
        last = desk.history(limit=1)[0]["seq"]
        with monkeypatch.context() as on:
            on.setenv("YOURTURN_FAULT", f"record:{diary}")
            with connect(address, as_=operation.who, project="PROJ", clock=clock, env={}) as faulty:
                operation.act(faulty, facts, None)
                replied()
        assert diary.read_text().splitlines() == [f"{operation.change}:{point}" for point in POINTS], operation.verb
        diary.unlink()
        told = {event["action"] for event in desk.history(after=last)}
        assert operation.verb in told | UNTOLD, f"the scene shows {operation.verb}"


def test_making_a_desk_passes_all_points(dialect, new_db, monkeypatch, tmp_path):
    diary = tmp_path / "diary"
    monkeypatch.setenv("YOURTURN_FAULT", f"record:{diary}")
    client, _ = init(new_db(dialect), "PROJ", None, {"USER": "ana"})
    replied()
    client.close()
    *passed, a, b, c = diary.read_text().splitlines()
    assert passed == [f"{change}:{point}" for change in FOUNDING for point in POINTS[:-1]]
    assert [a, b, c] == [f"{change}:after-reply" for change in FOUNDING]


def test_restoring_passes_all_points(desk, agent, dialect, new_db, monkeypatch, tmp_path):
    diary, file = tmp_path / "diary", str(tmp_path / "desk.jsonl")
    desk.create("A")
    agent.claim_next("w1")
    desk.export(file)
    target = new_db(dialect)
    init(target, "PROJ", None, {"USER": "ana"})[0].close()
    with monkeypatch.context() as on:
        on.setenv("YOURTURN_FAULT", f"record:{diary}")
        restore(file, target, env={"USER": "ana"})
        replied()
    assert diary.read_text().splitlines() == [f"restore:{point}" for point in POINTS]
    with connect(target, as_="human:ana", env={}) as new:
        assert set(RESTORING) <= {event["action"] for event in new.history()}


def test_read_passes_no_failpoint(desk, address, monkeypatch, tmp_path):
    desk.create("A")
    monkeypatch.setenv("YOURTURN_FAULT", f"record:{tmp_path / 'diary'}")
    with connect(address, as_="human:ana", env={}) as faulty:
        faulty.list(), faulty.inbox(), faulty.show("PROJ-1"), faulty.history()
        with pytest.raises(Exception, match="PROJ-9"):
            faulty.close("PROJ-9")
        replied()
    assert not (tmp_path / "diary").exists()


def test_refused_change_never_reaches_its_commit(desk, address, monkeypatch, tmp_path):
    desk.create("A")
    monkeypatch.setenv("YOURTURN_FAULT", f"record:{tmp_path / 'diary'}")
    with connect(address, as_="human:ana", env={}) as faulty, pytest.raises(Exception, match="Cannot wake"):
        faulty.wake("PROJ-1")
    assert (tmp_path / "diary").read_text().splitlines() == ["wake:before-begin"]


_OFF = """
import sys
from yourturn.config import connect, init, replied, restore
init(sys.argv[1], "PROJ", None, {"USER": "ana"})[0].close()
desk = connect(sys.argv[1], as_="human:ana", env={})
desk.create("A")
replied()
assert "yourturn.db.failpoints" not in sys.modules
assert type(desk.desk.store).__module__ in ("yourturn.db.sqlite", "yourturn.db.postgres")
desk.close()
"""


def test_off_they_are_not_there(dialect, new_db):
    done = subprocess.run([sys.executable, "-c", _OFF, new_db(dialect)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("fault", ["claim", "claim:once", ":before-commit", "stop:claim", "go:claim:before-commit", "record:x"])
def test_an_invalid_failpoint_is_refused(address, monkeypatch, fault):
    monkeypatch.setenv("YOURTURN_FAULT", fault)
    with pytest.raises(Usage, match="Invalid failpoint"):
        connect(address, as_="human:ana", env={})


def _turn(address: str, fault: str, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "YOURTURN_FAULT": fault, "USER": "ana"}
    return subprocess.run([TURN, *words, "--db", address, "--json"], capture_output=True, text=True, env=env)


@pytest.mark.parametrize("point", POINTS)
def test_the_command_dies_where_it_is_told(desk, address, point):
    done = _turn(address, f"create:{point}", "create", "A")
    assert done.returncode == -signal.SIGKILL
    there = [task["title"] for task in desk.list()]
    assert there == (["A"] if point in ("after-commit", "after-reply") else [])
    if point == "after-reply":
        assert json.loads(done.stdout)["key"] == "PROJ-1", "the reply was out before"
    else:
        assert done.stdout == ""


def test_the_command_passes_every_point(address, tmp_path):
    diary = tmp_path / "diary"
    assert _turn(address, f"record:{diary}", "create", "A").returncode == 0
    assert diary.read_text().splitlines() == [f"create:{point}" for point in POINTS]


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_a_process_can_be_stopped_in_its_sleep(desk, address, dialect):
    env = {**os.environ, "YOURTURN_FAULT": "stop:create:after-commit", "USER": "ana"}
    process = subprocess.Popen([TURN, "create", "A", "--db", address], stdout=subprocess.PIPE, env=env)
    try:
        while os.waitpid(process.pid, os.WUNTRACED | os.WNOHANG) == (0, 0):
            time.sleep(0.005)
        assert [task["title"] for task in desk.list()] == ["A"]
        process.send_signal(signal.SIGCONT)
        assert b"PROJ-1" in process.communicate(timeout=60)[0] and process.returncode == 0
    finally:
        process.kill()
        process.wait()

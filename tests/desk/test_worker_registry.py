"""The registry of running workers, and ready tasks that none of them takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.db.test_constant_cost import counted
from yourturn.client import Client
from yourturn.config import connect, restore
from yourturn.core.errors import Invalid, NotAllowed, NotFound
from yourturn.core.model import SECOND, Who
from yourturn.desk import worker_registry
from yourturn.health.doctor import examine

GONE = worker_registry.GONE // SECOND


@pytest.fixture
def desk(desk):
    """Seen without a default project, as a worker sees it that takes what there is."""
    return Client(desk.desk)


@pytest.fixture
def agent(agent):
    return Client(agent.desk)


def names(desk, running=True):
    return [w["name"] for w in desk.workers() if w["running"] == running]


def test_worker_is_listed_while_it_renews(desk, agent, clock):
    desk.create("A")
    assert desk.workers() == [] and desk.unattended()["start"] == "turn work"
    agent.register_worker("w1", host="box", agents=["coder"], runs=True, parallel=3)
    began = desk.now()
    (found,) = desk.workers()
    assert found == {
        "name": "w1", "actor": "agent:coder", "host": "box", "agents": ["coder"], "project": None, "epic": None, "role": None,
        "runs": True, "parallel": 3, "running": True, "tasks": [], "started_at": began, "seen_at": began,
    }  # fmt: skip
    assert desk.unattended() is None
    clock.advance(seconds=GONE - 1)
    assert names(desk) == ["w1"] and agent.renew_worker("w1") is True
    clock.advance(seconds=GONE - 1)
    (found,) = desk.workers()
    assert found["running"] and found["started_at"] == began < found["seen_at"]
    clock.advance(seconds=1)
    assert names(desk) == [] and names(desk, running=False) == ["w1"] and desk.unattended()["workers"] == 0
    agent.register_worker("w1", agents=["coder"])
    assert desk.workers()[0]["started_at"] == desk.now() and desk.unattended() is None
    agent.remove_worker("w1")
    assert desk.workers() == [] and agent.renew_worker("w1") is False and desk.unattended() is not None
    agent.remove_worker("w1")


def test_it_says_what_a_worker_does(desk, agent):
    key = desk.create("A")["key"]
    agent.register_worker("w1", agents=["coder"])
    agent.register_worker("w2", agents=["coder"])
    agent.claim(key, "w1")
    assert {w["name"]: w["tasks"] for w in desk.workers()} == {"w1": [key], "w2": []}


@pytest.fixture
def board(desk, agent):
    """Tasks of every sort that a worker may leave to others."""
    desk.create_project("WEB")
    epic = desk.create("All of it", type="epic")["key"]
    part = desk.create("Part", type="epic", parent=epic)["key"]
    roles = ({}, {"role": "coder"}, {"role": "reviewer"})
    for more in (*roles, {"workflow": "f.py"}, {"project": "WEB"}, {"parent": epic}, {"parent": part}):
        desk.create("A task", **more)
    return epic


TAKES = {
    "everything": {}, "one role": {"role": "coder"}, "one project": {"project": "WEB"}, "one epic": {"epic": True},
    "no runs": {"runs": False}, "runs only": {"agents": []}, "no such role": {"role": "designer", "project": "PROJ"},
    "one epic, one role": {"epic": True, "role": "reviewer"},
}  # fmt: skip


@pytest.mark.parametrize("what", TAKES)
def test_a_task_is_unattended_exactly_if_no_worker_would_be_given_it(desk, agent, board, what):
    """`pick` decides what a worker is given; what is said about it is the same."""
    takes = {"agents": ["coder"], "runs": True, **TAKES[what]}
    epic = board if takes.pop("epic", False) else None
    desk.register_worker("w1", epic=epic, **takes)
    said = {t["key"] for t in desk.ready() if desk.unattended(task=t["key"]) is None}
    given, agents = set(), takes.pop("agents")
    claims = []
    while got := desk.claim_next("w1", epic=epic, **takes):
        claims.append(got["claim"])
        if agents or got["task"]["workflow"]:
            given.add(got["task"]["key"])
    for claim in claims:
        desk.park(claim)
    left = {t["key"] for t in desk.ready()} - given
    assert said == given
    first = desk.unattended()
    assert (first and first["task"]) == next((t["key"] for t in desk.ready() if t["key"] in left), None)
    desk.register_worker("w2", agents=["coder"], runs=True)
    assert desk.unattended() is None


def test_the_command_starts_a_worker_for_that_task(desk, agent):
    desk.create("A", role="reviewer")
    assert desk.unattended() == {"task": "PROJ-1", "ready": 1, "workers": 0, "start": "turn work"}
    desk.register_worker("w1", agents=["coder"], role="coder")
    assert desk.unattended() == {"task": "PROJ-1", "ready": 1, "workers": 1, "start": "turn work --agent reviewer"}
    desk.create_project("WEB")
    desk.create("B", project="WEB", priority=0)
    assert desk.unattended(task="WEB-1") is None, "a task without a role is for anybody"
    desk.register_worker("w1", agents=["coder"], role="coder", project="PROJ")
    assert desk.unattended() == {"task": "WEB-1", "ready": 2, "workers": 1, "start": "turn work -p WEB"}
    assert desk.unattended("PROJ")["start"] == "turn work -p PROJ --agent reviewer"
    desk.remove_worker("w1")
    assert desk.unattended("PROJ")["start"] == "turn work -p PROJ"


def test_what_is_no_work_is_not_unattended(desk, agent):
    for more in ({"draft": True}, {"type": "epic"}, {"complexity": "xlarge"}, {"awaiting": "work"}):
        assert desk.unattended(task=desk.create("A", **more)["key"]) is None
    assert desk.unattended() is None


def test_an_unregistered_worker_may_take_the_next_task_too(desk, agent, clock):
    desk.create_project("WEB")
    for project in ("PROJ", "PROJ", "WEB"):
        desk.create("A", project=project)
    claim = agent.claim("PROJ-1", "mine", lease="1h")["claim"]
    assert desk.unattended("PROJ") is None and desk.unattended(task="PROJ-2") is None
    assert desk.unattended(task="WEB-1")["workers"] == 0, "that one works elsewhere"
    agent.register_worker("mine", agents=["coder"], role="coder", project="PROJ")
    assert desk.unattended("PROJ") is None and desk.unattended("WEB")["workers"] == 1
    agent.register_worker("mine", agents=["coder"], project="WEB")
    assert desk.unattended("PROJ")["task"] == "PROJ-2", "now it is known what it takes"
    agent.park(claim)
    assert desk.unattended("WEB") is None


def test_a_worker_cannot_renew_or_remove_the_row_of_another(desk, agent, open_desk):
    agent.register_worker("w1", host="box", agents=["coder"])
    other = open_desk("agent:other")
    assert other.renew_worker("w1") is False
    other.remove_worker("w1")
    other.register_worker("w1", host="elsewhere", agents=["other"])
    assert {(w["actor"], w["host"]) for w in desk.workers()} == {("agent:coder", "box"), ("agent:other", "elsewhere")}
    viewer = desk.as_(Who("human:vic", "viewer"))
    asker = agent.as_(Who("agent:coder", "agent", scopes=frozenset({"ask"})))
    for who in (viewer, asker):
        for say in (who.register_worker, who.renew_worker, who.remove_worker):
            with pytest.raises(NotAllowed):
                say("w1")
        assert len(who.workers()) == 2
    worker = agent.as_(Who("agent:coder", "agent", scopes=frozenset({"work"})))
    worker.register_worker("w1", agents=["coder"], runs=True)
    assert [w["runs"] for w in desk.workers() if w["actor"] == "agent:coder"] == [False], "its token takes no runs"


def test_what_does_not_fit_is_refused_and_nothing_is_written(desk):
    for wrong in ({"agents": ["a b"]}, {"host": "a\nb"}, {"role": ""}, {"parallel": 0}, {"parallel": True}):
        with pytest.raises(Invalid):
            desk.register_worker("w1", **wrong)
    for wrong in ({"project": "NOPE"}, {"epic": "PROJ-99"}):
        with pytest.raises(NotFound):
            desk.register_worker("w1", **wrong)
    with pytest.raises(Invalid):
        desk.register_worker("two words")
    assert desk.workers() == []


def test_a_renewal_is_one_small_write_without_an_event(desk, agent):
    agent.register_worker("w1", agents=["coder"])
    before, said = desk.history(), []
    with counted(agent, said):
        agent.renew_worker("w1")
    assert len([text for text, _ in said if text.startswith("UPDATE workers")]) == 1 and len(said) == 2
    assert desk.history() == before


def test_what_killed_workers_leave_is_bounded(desk, agent, clock):
    agent.register_worker("first", agents=["coder"])
    clock.advance(days=31)
    agent.register_worker("second", agents=["coder"])
    assert [w["name"] for w in desk.workers()] == ["second"]
    with desk.desk.store.begin("grow") as run:
        run(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500) INSERT INTO workers (workspace_id, "
            "actor, name, host, agents, runs, parallel, started_at, seen_at) SELECT 1, w.actor, 'x' || n.i, '', '', 0, 1, 1, "
            "w.seen_at - n.i FROM n, workers w WHERE w.name = 'second'"
        )
    desk.register_worker("others", agents=[])
    assert len(desk.workers()) == 1502
    agent.register_worker("third", agents=["coder"])
    left = [w["name"] for w in desk.workers()]
    assert len(left) == worker_registry.MOST + 1 and {"second", "third", "others", "x1"} <= set(left)


def test_the_doctor_names_running_workers_or_the_last_one(desk, agent, clock):
    def words():
        (found,) = [c for c in examine(desk, strict=True) if c["check"] == "workers"]
        assert found["status"] == "ok"
        return found["words"]

    assert words() == "none runs"
    key = desk.create("A")["key"]
    agent.register_worker("w1", host="box", agents=["coder", "reviewer"], project="PROJ")
    assert words() == "1 runs: w1 on box (PROJ, coder, reviewer): idle"
    agent.claim(key, "w1", lease="1h")
    desk.register_worker("w2", host="bin", runs=True)
    clock.advance(seconds=1)
    assert words() == f"2 run: w1 on box (PROJ, coder, reviewer): {key}; w2 on bin (runs only): idle"
    seen = desk.workers()[0]["seen_at"]
    clock.advance(seconds=GONE)
    assert words() == f"none runs; the last one, w1 on box (PROJ, coder, reviewer), was seen at {seen}"


@pytest.mark.parametrize("sort", ["backup", "export"])
def test_a_file_with_everything_brings_no_worker(desk, agent, address, new_db, dialect, tmp_path, sort):
    """A backup is all rows; but who ran then does not run here, and registers again if it does."""
    desk.create("A")
    agent.register_worker("w-secret", agents=["coder"])
    file, into = str(tmp_path / "desk.jsonl"), new_db(dialect)
    desk.export(file) if sort == "export" else desk.backup(file)
    assert ("w-secret" in Path(file).read_text()) == (sort == "backup")
    restore(file, into, as_="human:ana", env={})
    with connect(into, as_="human:ana", clock=desk.desk.clock, env={}) as new:
        assert new.workers() == [] and new.unattended()["task"] == "PROJ-1"
        assert [c for c in examine(new, strict=True) if c["status"] == "bad"] == []

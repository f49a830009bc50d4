"""A move is few statements and one commit."""

from __future__ import annotations

import re

import pytest

#: verb -> at most so many statements between BEGIN and COMMIT, both counted. One of `create` is for the limit on agents' tasks.
LIMITS = {"create": 7, "claim": 7, "claim_next": 8, "heartbeat": 6, "note": 8, "ask": 9, "answer": 8, "complete": 9}


class Counted:
    """All statements of a connection. A trigger that fires is traced as its statement said again; it counts once."""

    def __init__(self, desk):
        self.db = desk.desk.store.connection()
        self.said = []

    def __enter__(self):
        self.db.set_trace_callback(lambda sql: self.said.append(sql) if [sql] != self.said[-1:] else None)
        return self.said

    def __exit__(self, *_):
        self.db.set_trace_callback(None)


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_a_move_is_few_statements_and_one_commit(agent, dialect):
    agent.create("Before")
    person = agent.as_(agent.who._replace(name="human:ana", role="admin"))
    held = {}

    def claim():
        held["claim"] = agent.do("claim", task=2, worker="w1", secret="s").claim.token

    moves = {
        "create": lambda: agent.do("create", title="A", project="PROJ"),
        "claim": claim,
        "heartbeat": lambda: agent.do("heartbeat", task=2, claim=held["claim"]),
        "ask": lambda: agent.do("ask", task=2, text="Which?", claim=held["claim"]),
        "answer": lambda: person.do("answer", task=2, question_id=1, value="that"),
        "note": lambda: agent.do("note", task=2, text="hm"),
        "complete": lambda: agent.do("complete", task=2, claim=held["claim"]),
    }
    counts = {}
    for verb, move in moves.items():
        with Counted(agent) as said:
            move()
        counts[verb] = len(said)
        assert said[0] == "BEGIN IMMEDIATE" and said[-1] == "COMMIT"
        assert sum(bool(re.match(r"BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE", sql)) for sql in said) == 2, verb
    with Counted(agent) as said:
        agent.desk.claim_next("w2", project="PROJ")
    counts["claim_next"] = len(said)
    assert said.count("COMMIT") == 1
    print("\nstatements:", counts)
    assert {verb: count for verb, count in counts.items() if count > LIMITS[verb]} == {}


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_step_costs_one_more_read_and_one_more_write(desk, agent, dialect):
    """And a move without steps costs nothing more, also that of a run."""
    said_of = {}
    for what, fields in (("plain", {}), ("run", {"workflow": "f.py"})):
        task = desk.do("create", title=what, project="PROJ", **fields).task
        token = agent.do("claim", task=task, worker="w1", secret="s").claim.token
        steps = [{"path": str(n), "name": "step", "status": "completed"} for n in (1, 2)]
        for verb, more in (("park", {}), *([("with steps", {"steps": steps})] if what == "run" else [])):
            token = token if verb == "park" else agent.do("claim", task=task, worker="w1", secret="s").claim.token
            with Counted(agent) as said:
                agent.do("park", task=task, claim=token, **more)
            said_of[what, verb] = said
    assert len(said_of["run", "park"]) == len(said_of["plain", "park"])
    assert not any("steps" in sql or "programs" in sql for sql in said_of["run", "park"])
    assert len(said_of["run", "with steps"]) == len(said_of["run", "park"]) + 3


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_a_follow_up_is_in_the_same_commit(agent, dialect):
    agent.create("A")
    agent.create("B", depends_on=["PROJ-1"])
    token = agent.do("claim", task=1, worker="w1", secret="s").claim.token
    with Counted(agent) as said:
        agent.do("complete", task=1, claim=token)
    assert said.count("COMMIT") == 1 and agent.show("PROJ-2")["state"] == "ready"


def _committed(said):
    """The writes that a COMMIT followed, and no ROLLBACK."""
    kept, open_ = [], []
    for sql in said:
        if re.match(r"INSERT|UPDATE|DELETE", sql):
            open_.append(sql)
        elif sql in ("COMMIT", "ROLLBACK"):
            kept += open_ if sql == "COMMIT" else []
            open_ = []
    return kept + open_


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_a_read_writes_nothing(desk, agent, clock, dialect):
    """Even when it shows moves that are owed and not made."""
    desk.create("A")
    agent.claim_next("w1")
    clock.advance(hours=2)
    for look in (lambda: desk.show("PROJ-1"), desk.list, desk.ready, desk.inbox, desk.tree, desk.history, desk.projects):
        with Counted(desk) as said:
            look()
        assert _committed(said) == []
    assert desk.show("PROJ-1")["state"] == "ready"
    with desk.desk.store.reading() as run:
        assert run("SELECT state FROM tasks").fetchone()[0] == "working"
    with Counted(desk) as said:
        desk.reconcile()
    assert said.count("COMMIT") == 1 and len(_committed(said)) == 2

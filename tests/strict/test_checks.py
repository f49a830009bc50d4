"""The strict checker names whatever was done behind the desk's back, and finds nothing wrong with what the desk does itself."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.conftest import TURN
from tests.core.states import Bench, said
from tests.core.transition_recipes import recipes
from tests.db.processes import raw
from tests.db.test_event_log import live
from yourturn import strict
from yourturn.health import doctor
from yourturn.strict import checks

_TABLES = ("deps", "notes", "steps", "programs", "questions", "events", "tokens", "users", "tasks", "projects")


def _named(desk) -> set[str]:
    return {words.partition(":")[0] for words in strict.examine(desk)}


def _life(desk, agent, clock):
    """PROJ-1 … 6 are live()'s; then one task for each promise that can be broken."""
    live(desk, agent)
    desk.set("review", "ask")
    desk.create("G")
    agent.claim("PROJ-7", "w3")
    desk.create("H")
    desk.create("I")
    allowed = agent.ask("PROJ-9", "May I?", "permission", action={"tool": "rm", "args": ["-r"]})
    desk.approve(allowed["id"])
    agent.use(allowed, "s/c", allowed["action"])
    desk.create("J")
    agent.ask("PROJ-10", "Well?", timeout="10m", on_timeout="default", default="so")
    desk.create("K", max_retries=1)
    agent.release(agent.claim("PROJ-11", "w4")["claim"])
    desk.create("L", awaiting="work")
    desk.approve("PROJ-12")
    desk.create("M")
    agent.complete(agent.claim("PROJ-13", "w5")["claim"], "it is finished")
    desk.create_token("ci")
    desk.create_token("old")
    desk.revoke_token("old")
    desk.create("N")
    agent.ask("PROJ-14", "How many?", response_type="number", blocking=False, default=3)
    _run(desk, agent)
    _finished_and_failed(desk, agent)
    clock.advance(minutes=11)
    desk.reconcile()


def _run(desk, agent):
    """PROJ-15: a run that went back to its third call; PROJ-16: one whose second call was settled by a person's answer."""
    for key in ("PROJ-15", "PROJ-16"):
        desk.create("O", workflow="o.py", program={"file": "o.py", "body": "go()"})
        claim = agent.claim(key, "w6")["claim"]
        agent.record(claim, [said("1", result="one"), said("2", "running")])
        if key == "PROJ-15":
            agent.record(claim, [said("2", result="two"), said("3", result="three")])
            agent.rewind(key, 3, spare=True, claim=claim)
        more = {"steps": [said("2", "waiting")]} if key == "PROJ-16" else {"steps": [said("3", "waiting")]}
        agent.flag(key, "Well?", kind="input", claim=claim, step=more["steps"][0]["path"], **more)
    desk.answer("PROJ-16", "so", signal={"status": "COMPLETE"})


def _finished_and_failed(desk, agent):
    """PROJ-17: finished, and asked about once more; PROJ-18: opened again by the answer of PROJ-19, which waits for it."""
    desk.create("P")
    agent.complete(agent.claim("PROJ-17", "w7")["claim"], "it is finished")
    desk.withdraw(agent.ask("PROJ-17", "And the docs?")["id"])
    desk.create("Q")
    desk.create("R", depends_on=["PROJ-18"])
    agent.release(agent.claim("PROJ-18", "w7")["claim"])
    desk.fail("PROJ-18")
    desk.answer("PROJ-19", "retry")


def test_whatever_the_desk_does_is_well(desk, agent, clock):
    bench = Bench(desk, agent, clock)
    for number, (landing, recipe) in enumerate(recipes()):
        recipe(bench)
        if number % 10 == 0:
            assert strict.examine(desk) == [], landing
    _office(desk)
    assert strict.examine(desk) == []
    assert len(desk.list(limit=1000)) > 100


def _office(desk):
    for verb in (
        lambda: desk.create_project("OTHER", "Another"),
        lambda: desk.create("Elsewhere", project="OTHER", depends_on=["PROJ-1"]),
        lambda: desk.set_user("bob"),
        lambda: desk.create_token("his", "member", actor="human:bob"),
        lambda: desk.create_token("ci"),
        lambda: desk.set_user("bob", "approver"),
        lambda: desk.revoke_token("ci"),
        lambda: desk.create_token("ci"),
        lambda: desk.remove_user("bob"),
        lambda: desk.set_user("bob", "viewer"),
    ):
        verb()
        assert strict.examine(desk) == []


def test_due_moves_are_not_reported_as_damage(desk, agent, clock):
    _life(desk, agent, clock)
    agent.heartbeat("PROJ-7", worker="w3")
    assert strict.examine(desk) == []
    clock.advance(days=3)
    assert strict.examine(desk) == [], "the rows as they are written agree with their events"
    assert desk.show("PROJ-7")["state"] == "ready", "although a read shows what is owed"
    desk.reconcile()
    assert strict.examine(desk) == []
    assert desk.reconcile() == {"moved": 0, "failed": 0}


def test_small_pages_find_the_same(desk, agent, clock, monkeypatch):
    _life(desk, agent, clock)
    monkeypatch.setattr(checks, "PAGE", 2)
    assert strict.examine(desk) == []


def _event(task: int, action: str, old: str, new: str) -> str:
    return f"UPDATE events SET data = replace(data, '{old}', '{new}') WHERE task_id = {task} AND action = '{action}'"


def _said(name: str, value: object) -> str:
    """A field of a response, which is JSON inside JSON."""
    return json.dumps(json.dumps({name: value}))[2:-2]


_DEPS = "INSERT INTO deps (task_id, needs_id) VALUES"
_ASK = (
    "INSERT INTO questions (workspace_id, id, task_id, kind, blocking, text, urgency, response_type, on_timeout, status, "
    "asked_by, asked_at) VALUES (1, 77, 8, 'input', 1, '?', 'normal', 'text', 'keep', 'pending', 'human:ana', 1)"
)
#: kind of damage -> the check that names it, and how
DAMAGE: dict[str, tuple[str, str]] = {
    "a chain is broken": ("chain", "UPDATE events SET prev = hash WHERE task_id = 1 AND n = 3"),
    "an event is gone": ("chain", "DELETE FROM events WHERE task_id = 13 AND action = 'complete'"),
    "an event is hidden from watchers": ("readers", "UPDATE events SET xid = '999999999' WHERE task_id = 1 AND n = 3"),
    "a permission is used for something else": ("uses", _event(9, "use", '"digest":"', '"digest":"0')),
    "a permission that nobody gave is used": (
        "uses", _event(9, "approve", _said("verdict", "approved"), _said("verdict", "rejected"))
    ),
    "somebody else used it": ("asked", "UPDATE questions SET used_by = 's/other' WHERE task_id = 9"),
    "another verb": ("moves", "UPDATE events SET action = 'accept' WHERE task_id = 1 AND action = 'answer'"),
    "another beginning": ("moves", _event(7, "claim", '"from":"ready"', '"from":"blocked"')),
    "another end": ("moves", _event(13, "complete", '"to":"review"', '"to":"cancelled"')),
    "an agent answers": ("moves", "UPDATE events SET actor = 'agent:coder' WHERE action = 'answer'"),
    "the system claims as nobody": ("moves", "UPDATE events SET actor = 'nobody' WHERE task_id = 7 AND action = 'claim'"),
    "an agent closes": ("moves", "UPDATE events SET action = 'close', actor = 'agent:coder' WHERE task_id = 13 AND n = 3"),
    "nobody holds what is completed": ("moves", _event(13, "claim", '"holder":"w5"', '"holder":null')),
    "an event says nothing": ("moves", "UPDATE events SET data = '{}' WHERE task_id = 4 AND n = 1"),
    "an event is no JSON": ("log", "UPDATE events SET data = 'rubbish' WHERE task_id = 4 AND n = 1"),
    "working without a claim": ("claims", _event(7, "claim", '"holder":"w3"', '"holder":null')),
    "a claim stays behind": ("claims", _event(13, "complete", '"holder":null,', "")),
    "an epoch comes again": ("epochs", _event(6, "claim", '"epoch":2', '"epoch":1')),
    "an epoch falls": ("epochs", _event(6, "fail", '"holder":null', '"epoch":0,"holder":null')),
    "a try too many": ("retries", _event(6, "release", '"retry_count":1', '"retry_count":2')),
    "a try is forgotten": ("retries", _event(6, "release", '"retry_count":1', '"retry_count":0')),
    "tries come back by themselves": ("retries", _event(6, "fail", '"holder":null', '"holder":null,"retry_count":0')),
    "tries run out unsaid": ("retries", _event(11, "release", "retry_exhausted", "decision_needed")),
    "human without a question": ("turns", _event(2, "flag", '"blocking":1', '"blocking":0')),
    "a question, and it goes on": ("turns", _event(14, "ask", '"blocking":0', '"blocking":1')),
    "another digest": ("questions", _event(9, "ask", "tool", "fool")),
    "an approval with a default": ("questions", _event(9, "ask", '"digest"', '"default_value":"{}","digest"')),
    "aside without a default": ("questions", _event(14, "ask", '"default_value"', '"other_value"')),
    "an answer that does not fit": ("answers", _event(1, "answer", _said("value", "b"), _said("value", "c"))),
    "an answer by the system": ("answers", "UPDATE events SET actor = 'system' WHERE task_id = 1 AND action = 'answer'"),
    "somebody else answered": ("answers", _event(1, "answer", "human:ana", "human:eve")),
    "answered twice": ("answers", _event(9, "approve", '"status":"answered"', '"status":"pending"')),
    "silence approves": ("answers", _event(10, "timeout", _said("verdict", None), _said("verdict", "approved"))),
    "finished work is withdrawn": (
        "answers",
        "UPDATE events SET data = replace(data, (SELECT '\"id\":' || max(id) FROM questions WHERE task_id = 17), "
        "(SELECT '\"id\":' || min(id) FROM questions WHERE task_id = 17)) WHERE task_id = 17 AND action = 'withdraw'",
    ),
    "it is opened again, and nobody chose that": (
        "causes", _event(19, "answer", _said("value", "retry"), _said("value", "without"))
    ),
    "work is rejected": ("verdicts", _event(12, "approve", "approved", "rejected")),
    "a yes that goes back": ("verdicts", _event(12, "approve", '"to":"done"', '"to":"ready"')),
    "silence that ends": ("verdicts", _event(10, "timeout", '"to":"ready"', '"to":"failed"')),
    "time runs back": ("times", "UPDATE events SET at = at - 1000000 WHERE task_id = 1 AND n = 3"),
    "silence came too early": ("times", "UPDATE events SET at = at - 600000000 WHERE task_id = 10 AND action = 'timeout'"),
    "another silence": ("times", _event(10, "timeout", '"on_timeout":"default"', '"on_timeout":"remind"')),
    "an effect before its cause": (
        "causes",
        "UPDATE events SET seq = seq * 10 + 1000000; "
        "UPDATE events SET seq = 1000000 + 5 WHERE task_id = 2 AND action = 'create'; "
        "UPDATE events SET seq = 1000000 + 6 WHERE task_id = 2 AND action = 'unblock'",
    ),
    "a title": ("tasks", "UPDATE tasks SET title = 'Z' WHERE id = 8"),
    "a state": ("tasks", "UPDATE tasks SET state = 'cancelled', ended_at = 1 WHERE id = 8"),
    "a priority": ("tasks", "UPDATE tasks SET priority = 4 WHERE id = 8"),
    "a parent": ("tasks", "UPDATE tasks SET parent_id = NULL WHERE id = 4"),
    "a limit": ("tasks", "UPDATE tasks SET max_retries = 9 WHERE id = 8"),
    "tries": ("tasks", "UPDATE tasks SET retry_count = 2 WHERE id = 8"),
    "a claim vanishes": ("tasks", "UPDATE tasks SET holder = NULL WHERE id = 7"),
    "a claim changes hands": ("tasks", "UPDATE tasks SET holder = 'w9' WHERE id = 7"),
    "a claim of another time": ("tasks", "UPDATE tasks SET epoch = 7 WHERE id = 7"),
    "a lease is cut": ("tasks", "UPDATE tasks SET lease_expires_at = 5 WHERE id = 7"),
    "a version falls": ("tasks", "UPDATE tasks SET version = 0 WHERE id = 1"),
    "touched without an event": ("tasks", "UPDATE tasks SET updated_at = updated_at + 1 WHERE id = 8"),
    "a task is gone": ("chain", "DELETE FROM tasks WHERE id = 8"),
    "a note is gone": ("tasks", "DELETE FROM notes WHERE task_id = 1"),
    "a note is changed": ("tasks", "UPDATE notes SET text = 'ok' WHERE task_id = 1"),
    "a note is slipped in": ("tasks", "INSERT INTO notes (task_id, author, text, at) VALUES (8, 'human:ana', 'b', 1)"),
    "a need is gone": ("tasks", "DELETE FROM deps WHERE task_id = 2"),
    "a need appears": ("tasks", f"{_DEPS} (8, 1)"),
    "a need is another": ("tasks", "UPDATE deps SET needs_id = 8 WHERE task_id = 2"),
    "a question is gone": ("asked", "DELETE FROM questions WHERE id = 2"),
    "a question appears": ("asked", _ASK),
    "a question is changed": ("asked", "UPDATE questions SET text = 'Really?' WHERE id = 2"),
    "a question blocks no more": ("asked", "UPDATE questions SET blocking = 0 WHERE id = 2"),
    "an answer is changed": ("asked", "UPDATE questions SET response = replace(response, 'b', 'a') WHERE id = 1"),
    "a default is changed": ("asked", "UPDATE questions SET default_value = replace(default_value, '3', '4') WHERE task_id = 14"),
    "answered by another": ("asked", "UPDATE questions SET responded_by = 'human:eve' WHERE id = 1"),
    "answered by nobody": ("asked", "UPDATE questions SET status = 'answered', responded_by = 'human:ana' WHERE id = 2"),
    "a question of nobody's": ("inbox", "UPDATE questions SET workspace_id = 9 WHERE id = 2"),
    "ready too early": ("needs", "UPDATE tasks SET state = 'ready' WHERE id = 3"),
    "blocked by nothing": ("needs", "UPDATE tasks SET state = 'blocked' WHERE id = 8"),
    "done before its children": ("needs", "UPDATE tasks SET state = 'done', ended_at = 1 WHERE id = 3"),
    "a circle": ("circles", f"{_DEPS} (8, 9), (9, 8)"),
    "a longer circle": ("circles", f"{_DEPS} (8, 9), (9, 13), (13, 8)"),
    "a step without a script": ("steps", _event(16, "create", '"workflow":"o.py"', '"summary":"o.py"')),
    "a step that nobody held": ("steps", _event(16, "claim", '"holder":"w6"', '"holder":null')),
    "a result changes": ("steps", _event(16, "step", '"status":"running"', '"ended_at":1,"status":"completed"')),
    "another call in its place": ("steps", _event(16, "step", '"place":"000002"', '"name":"run","place":"000002"')),
    "an end of what waits": ("steps", _event(16, "flag", '"status":"waiting"', '"ended_at":1,"status":"waiting"')),
    "an answer settles another step": ("steps", _event(16, "flag", '"step":"0/000002"', '"step":"0/000001"')),
    "an answer settles no step": ("steps", _event(16, "flag", '"step":"0/000002"', '"other":"0/000002"')),
    "a journal is skipped": ("steps", _event(15, "rewind", '"journal":1', '"journal":2')),
    "another journal by itself": ("steps", _event(16, "flag", '"holder":null', '"holder":null,"journal":1')),
    "a result": ("journals", "UPDATE steps SET result = '\"other\"' WHERE task_id = 16 AND place = '000001'"),
    "a call": ("journals", "UPDATE steps SET call = '[]' WHERE task_id = 16 AND place = '000001'"),
    "a step runs again": (
        "journals", "UPDATE steps SET status = 'running', result = NULL, ended_at = NULL WHERE task_id = 15 AND place = '000001'"
    ),
    "a step is gone": ("journals", "DELETE FROM steps WHERE task_id = 16 AND place = '000001'"),
    "a step that was laid aside is gone": ("journals", "DELETE FROM steps WHERE task_id = 15 AND place = '~000003'"),
    "a step that was laid aside is back": ("journals", "UPDATE steps SET place = '000004' WHERE place = '~000003'"),
    "a step appears": (
        "journals",
        "INSERT INTO steps (task_id, journal, place, name, digest, call, status, started_at) "
        "VALUES (16, 0, '000009', 'run', '', 'null', 'running', 1)",
    ),
    "a result of an older journal": ("journals", "UPDATE steps SET result = '0' WHERE journal = 0 AND place = '000003'"),
    "an older journal is gone": ("journals", "DELETE FROM steps WHERE task_id = 15 AND journal = 0"),
    "another script": ("journals", "UPDATE programs SET body = 'rm()' WHERE task_id = 15"),
    "a whole other script": ("journals", "UPDATE programs SET file = 'p.py' WHERE task_id = 15"),
    "a script is gone": ("journals", "DELETE FROM programs WHERE task_id = 15"),
    "a script is slipped in": (
        "journals",
        "INSERT INTO programs (task_id, journal, at, file, digest, body) SELECT task_id, 1, 1, file, digest, 'x' FROM programs "
        "WHERE task_id = 15",
    ),
    "another journal": ("tasks", "UPDATE tasks SET journal = 0 WHERE id = 15"),
    "asked by another step": ("asked", "UPDATE questions SET step = '0/000001' WHERE task_id = 16"),
    "a role": ("accounts", "UPDATE users SET role = 'admin' WHERE name = 'bob'"),
    "a person is gone": ("accounts", "DELETE FROM users"),
    "a token appears": (
        "accounts",
        "INSERT INTO tokens (workspace_id, name, actor, role, hash, created_at) VALUES (1, 'x', 'human:eve', 'admin', 'x', 1)",
    ),
    "a token lives again": ("accounts", "UPDATE tokens SET revoked_at = NULL WHERE name = 'old'"),
    "a token of another": ("accounts", "UPDATE tokens SET role = 'admin'"),
    "a project is renamed": ("accounts", "UPDATE projects SET name = 'Z'"),
    "an agent is an admin": ("accounts", "UPDATE events SET actor = 'agent:coder' WHERE action = 'user_set'"),
}  # fmt: skip


def test_damage_is_named(desk, agent, clock, address):
    _life(desk, agent, clock)
    missed = {}
    with raw(address) as run:
        run.unguard()
        if run.postgres:
            for table, name in run(
                "SELECT CAST(conrelid AS regclass), conname FROM pg_constraint "
                "WHERE contype = 'c' AND connamespace = CAST(current_schema() AS regnamespace)"
            ):
                run(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
        assert strict.examine(desk) == []
        for table in _TABLES:
            run(f"CREATE TABLE {table}_before AS SELECT * FROM {table}")
        for how, (check, sql) in DAMAGE.items():
            for statement in sql.split("; "):
                run(statement)
            if check not in _named(desk):
                missed[how] = strict.examine(desk)
            for table in _TABLES:
                run(f"DELETE FROM {table}")
                run(f"INSERT INTO {table} SELECT * FROM {table}_before")
    assert strict.examine(desk) == [], "undone, it is well"
    assert missed == {}
    assert {check for check, _ in DAMAGE.values()} == {c.name for c in checks.CHECKS} | {"log"}


def test_the_doctor_is_strict_when_asked(desk, agent, clock, address):
    _life(desk, agent, clock)
    quick, all_ = doctor.examine(desk), doctor.examine(desk, strict=True)
    assert all_[: len(quick)] == quick and len(all_) == len(quick) + len(checks.CHECKS)
    assert {line["status"] for line in all_} == {"ok"} and all(line["words"] for line in all_)
    with raw(address) as run:
        run("UPDATE tasks SET title = 'Another' WHERE id = 8")
    assert {line["status"] for line in doctor.examine(desk)} == {"ok"}, "the quick look does not read everything"
    [line] = [line for line in doctor.examine(desk, strict=True) if line["status"] != "ok"]
    assert line["check"] == "strict tasks" and line["hint"]
    assert line["words"] == "PROJ-8 has title 'Another', and its events say 'H'"


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_the_command_is_strict_when_asked(address, dialect):
    def turn(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([TURN, *words, "--db", address], capture_output=True, text=True)

    turn("create", "A")
    assert turn("doctor").returncode == 0
    well = turn("doctor", "--strict", "--json")
    assert well.returncode == 0 and {line["status"] for line in json.loads(well.stdout)} == {"ok"}
    with raw(address) as run:
        run("UPDATE tasks SET title = 'Z' WHERE id = 1")
    assert turn("doctor").returncode == 0
    bad = turn("doctor", "--strict")
    assert bad.returncode == 1 and "PROJ-1 has title 'Z', and its events say 'A'" in bad.stdout and "backup" in bad.stdout


def test_events_name_tasks_by_their_keys(desk, agent):
    """Row numbers mean nothing outside the database: a desk rebuilt from its events could not use them."""
    live(desk, agent)
    desk.undepend("PROJ-2", "PROJ-1")
    born = {event["task"]: event["data"] for event in desk.history() if event["action"] == "create"}
    assert born["PROJ-2"]["needs_added"] == [["PROJ-2", "PROJ-1"]]
    assert born["PROJ-4"]["needs_added"] == [["PROJ-3", "PROJ-4"]] and born["PROJ-4"]["set"]["parent"] == "PROJ-3"
    assert "parent" not in born["PROJ-1"]["set"] and "parent_id" not in born["PROJ-4"]["set"]
    assert desk.history("PROJ-2")[-1]["data"]["needs_removed"] == [["PROJ-2", "PROJ-1"]]
    watched = [{name: value for name, value in e.items() if name != "cursor"} for e in desk.watch("0.0.0", 0)]
    assert watched == desk.history()

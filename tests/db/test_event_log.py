"""The log: append-only by the database's own will, chained, complete, and read without gaps."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tests.core.states import said
from yourturn.core.actions import say
from yourturn.core.canonical_json import link
from yourturn.core.errors import Invalid, YourturnError
from yourturn.core.model import Question, Step, Task
from yourturn.db.reads import Reader
from yourturn.db.unit_of_work import UnitOfWork
from yourturn.desk.move import Moves
from yourturn.health import audit

from .processes import gathered, oks, raw


def live(desk, agent):
    """A bit of everything; ends with PROJ-1 done, PROJ-2 human, PROJ-3 an epic with two children, PROJ-6 failed."""
    desk.create("A", priority=1, labels=["x"])
    desk.create("B", depends_on=["PROJ-1"])
    desk.create("C", type="epic")
    got = agent.claim_next("w1")
    asked = agent.ask("PROJ-1", "Which?", options=["a", "b"], claim=got["claim"])
    desk.note("PROJ-1", "hm")
    desk.answer(asked["id"], "b")
    desk.decompose("PROJ-3", ["D", {"title": "E", "priority": 0}])
    agent.complete(got["claim"], "did it")
    agent.flag("PROJ-2", "No idea")
    desk.create("F")
    got = agent.claim("PROJ-6", "w2")
    agent.release(got["claim"])
    got = agent.claim("PROJ-6", "w2")
    agent.fail(got["claim"], "broken")
    desk.set_user("bob")


# --- the database itself refuses --------------------------------------------------------------------------------------

_EVERYWHERE = [
    "UPDATE events SET data = '{}' WHERE seq = (SELECT max(seq) FROM events)",
    "UPDATE events SET actor = 'human:eve'",
    "UPDATE events SET seq = seq + 1000 WHERE n = 2",
    "DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)",
    "DELETE FROM events",
    "INSERT INTO events (workspace_id, task_id, n, at, actor, action, data, prev, hash) VALUES (1, 1, 1, 0, '', '', '', '', '') "
    "ON CONFLICT (task_id, n) WHERE task_id IS NOT NULL DO UPDATE SET data = '{}'",
]
_COPY = "SELECT {}, 0, workspace_id, task_id, n, at, 'human:eve', action, data, prev, hash FROM events"
REFUSED = {
    "sqlite": [
        *_EVERYWHERE,
        f"INSERT OR REPLACE INTO events {_COPY.format('seq')} WHERE task_id = 1 AND n = 1",
        f"INSERT OR REPLACE INTO events {_COPY.format('NULL')} WHERE task_id = 1 AND n = 1",
        f"REPLACE INTO events {_COPY.format('NULL')} WHERE task_id IS NULL AND n = 1",
        "UPDATE OR REPLACE events SET n = 1 WHERE task_id = 1 AND n = 2",
    ],
    "postgres": [*_EVERYWHERE, "TRUNCATE events", "TRUNCATE events, tasks, workspaces CASCADE"],
}


def test_the_database_refuses_to_change_events(desk, agent, dialect, address):
    live(desk, agent)
    with raw(address) as run:
        before = run("SELECT * FROM events ORDER BY seq")
        for sql in REFUSED[dialect]:
            with pytest.raises(run.refusals):
                run(sql)
            assert run("SELECT * FROM events ORDER BY seq") == before, sql
    desk.note("PROJ-1", "and goes on")


# --- the chain ---------------------------------------------------------------------------------------------------------


def test_an_untouched_history_verifies(desk, agent):
    live(desk, agent)
    found = audit.verify(desk)
    assert found["ok"] and found["problems"] == []
    assert found["chains"] == 7 and found["events"] == len(desk.history(limit=1000))


def test_small_pages_find_the_same(desk, agent, monkeypatch):
    live(desk, agent)
    whole = audit.verify(desk), audit.anchor(desk)
    monkeypatch.setattr(audit, "PAGE", 2)
    assert (audit.verify(desk), audit.anchor(desk)) == whole


_NEW = "(workspace_id, task_id, n, at, actor, action, data, prev, hash)"
TAMPERINGS = {
    "edit the words": "UPDATE events SET data = replace(data, 'hm', 'ok') WHERE task_id = 1 AND action = 'note'",
    "edit the actor": "UPDATE events SET actor = 'human:eve' WHERE task_id = 1 AND n = 2",
    "edit the time": "UPDATE events SET at = at + 1 WHERE task_id = 1 AND n = 2",
    "edit the action": "UPDATE events SET action = 'reject' WHERE task_id = 1 AND action = 'answer'",
    "edit the hash": "UPDATE events SET hash = prev WHERE task_id = 1 AND n = 2",
    "edit the office": "UPDATE events SET data = replace(data, 'bob', 'eve') WHERE task_id IS NULL",
    "delete the first": "DELETE FROM events WHERE task_id = 1 AND n = 1",
    "delete in the middle": "DELETE FROM events WHERE task_id = 1 AND n = 3",
    "delete the last": "DELETE FROM events WHERE task_id = 1 AND n = (SELECT event_count FROM tasks WHERE id = 1)",
    "delete a whole chain": "DELETE FROM events WHERE task_id = 2",
    "delete the office's last": "DELETE FROM events WHERE task_id IS NULL AND n = 2",
    "insert at the end": f"INSERT INTO events {_NEW} SELECT workspace_id, 1, event_count + 1, 1, 'human:ana', 'note', "
    "'{}', event_head, '0000' FROM tasks JOIN projects p ON p.id = project_id WHERE tasks.id = 1",
    "insert into the office": f"INSERT INTO events {_NEW} VALUES (1, NULL, 99, 1, 'human:ana', 'user_set', '{{}}', '', '0')",
    "insert a chain of one": f"INSERT INTO events {_NEW} VALUES (1, 4711, 1, 1, 'human:ana', 'create', '{{}}', '', '0')",
    "swap two numbers": "UPDATE events SET n = 5 - n WHERE task_id = 1 AND n IN (2, 3)",
    "swap two tasks": "UPDATE events SET task_id = 9 - task_id WHERE task_id IN (4, 5)",
    "swap what two say": "UPDATE events SET data = (SELECT o.data FROM events o WHERE o.task_id = 1 AND o.n = 7 - events.n) "
    "WHERE task_id = 1 AND n IN (3, 4)",
    "move to another place": "UPDATE events SET seq = seq + 100000 WHERE task_id = 1 AND n = 2",
    "rewrite the row's count": "UPDATE tasks SET event_count = event_count + 1 WHERE id = 1",
    "rewrite the row's head": "UPDATE tasks SET event_head = 'beef' WHERE id = 1",
    "rename the task": "UPDATE tasks SET key = 'PROJ-77' WHERE id = 1",
    "delete the task": "DELETE FROM tasks WHERE id = 2",
}
WHERE = {
    "delete a whole chain": "PROJ-2", "swap two tasks": "PROJ-4", "insert a chain of one": "task number 4711",
    "rename the task": "PROJ-77", "delete the task": "task number 2",
}  # fmt: skip


def test_tampering_is_found(desk, agent, address):
    live(desk, agent)
    missed = []
    with raw(address) as run:
        run.unguard()
        for index in ("events_chain", "events_office"):
            run(f"DROP INDEX {index}")
        for table in ("events", "tasks"):
            run(f"CREATE TABLE {table}_before AS SELECT * FROM {table}")
        for how, sql in TAMPERINGS.items():
            before = run("SELECT * FROM events ORDER BY seq"), run("SELECT * FROM tasks ORDER BY id")
            run(sql)
            assert before != (run("SELECT * FROM events ORDER BY seq"), run("SELECT * FROM tasks ORDER BY id")), how
            found = audit.verify(desk)
            assert all(set(problem) == {"chain", "n", "what"} for problem in found["problems"])
            chain = "default" if "office" in how else WHERE.get(how, "PROJ-1")
            if found["ok"] or chain not in {problem["chain"] for problem in found["problems"]}:
                missed.append((how, found))
            for table in ("events", "tasks"):
                run(f"DELETE FROM {table}")
                run(f"INSERT INTO {table} SELECT * FROM {table}_before")
            assert audit.verify(desk)["ok"]
    assert missed == []


def test_an_event_that_was_rewritten_whole_does_not_fit_the_next(desk, agent, address):
    """A forged event with a valid hash still breaks every event after it."""
    live(desk, agent)
    with raw(address) as run:
        run.unguard()
        n, at, action, data, prev = run("SELECT n, at, action, data, prev FROM events WHERE task_id = 1 AND n = 2")[0]
        fresh = link(prev, "PROJ-1", n, at, "human:eve", action, data)
        run(f"UPDATE events SET actor = 'human:eve', hash = '{fresh}' WHERE task_id = 1 AND n = 2")
    assert [(p["chain"], p["n"]) for p in audit.verify(desk)["problems"]] == [("PROJ-1", 3)]


def test_one_broken_link_does_not_hide_another(desk, agent, address):
    live(desk, agent)
    with raw(address) as run:
        run.unguard()
        run("UPDATE events SET actor = 'human:eve' WHERE n = 1")
    assert len(audit.verify(desk)["problems"]) == 7


def _cut(run, keep):
    """Cuts PROJ-1's chain and adapts its row: only an anchor shows it."""
    run.unguard()
    run(f"DELETE FROM events WHERE task_id = 1 AND n > {keep}")
    run(
        f"UPDATE tasks SET event_count = {keep}, "
        f"event_head = coalesce((SELECT hash FROM events WHERE task_id = 1 AND n = {keep}), '') WHERE id = 1"
    )


@pytest.mark.parametrize("keep", [0, 1, 4])
def test_only_an_anchor_finds_truncation(desk, agent, address, keep):
    live(desk, agent)
    anchor = json.loads(json.dumps(audit.anchor(desk)))
    assert anchor["workspace"] == "default" and anchor["events"] == len(desk.history(limit=1000))
    assert audit.verify(desk, anchor)["ok"]
    desk.note("PROJ-2", "time goes on")
    desk.create("G")
    assert audit.verify(desk, anchor)["ok"], "whatever came after the anchor is fine"
    with raw(address) as run:
        _cut(run, keep)
    assert audit.verify(desk)["ok"]
    found = audit.verify(desk, anchor)
    assert [p["chain"] for p in found["problems"]] == ["PROJ-1"] and "cut short" in found["problems"][0]["what"]


def test_an_anchor_finds_a_chain_that_was_cut_and_grew_again(desk, agent, address):
    live(desk, agent)
    anchor = audit.anchor(desk)
    with raw(address) as run:
        _cut(run, 4)
        run("UPDATE tasks SET version = version + 1 WHERE id = 1")
    for text in "abcdef":
        desk.note("PROJ-1", text)
    assert audit.verify(desk)["ok"]
    found = audit.verify(desk, anchor)
    assert [(p["chain"], p["n"]) for p in found["problems"]] == [("PROJ-1", anchor["heads"]["PROJ-1"][0])]


def test_a_changed_anchor_is_no_proof(desk, agent):
    live(desk, agent)
    anchor = audit.anchor(desk)
    anchor["heads"]["PROJ-1"][0] -= 1
    for wrong in (anchor, {}, {"heads": []}, {"digest": "x"}):
        with pytest.raises(Invalid):
            audit.verify(desk, wrong)


# --- rows and events are one -------------------------------------------------------------------------------------------


def _state(run):
    tables = ("tasks", "questions", "notes", "deps", "events", "replies", "users", "tokens", "projects", "workspaces")
    return {table: sorted(run(f"SELECT * FROM {table}"), key=repr) for table in tables}


def test_without_its_event_nothing_changes(desk, agent, address, dialect):
    desk.create("A")
    desk.create("B")
    got = agent.claim("PROJ-1", "w1")
    agent.flag("PROJ-2", "Which?")
    with raw(address) as run:
        if dialect == "postgres":
            run("CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no room'; END $$")
            run("CREATE TRIGGER full_disk BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION full_disk()")
        else:
            run("CREATE TRIGGER full_disk BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'no room'); END")
        before = _state(run)
        for move in (
            lambda: desk.create("C", key="k"),
            lambda: agent.complete(got["claim"]),
            lambda: agent.ask("PROJ-1", "?", claim=got["claim"]),
            lambda: agent.release(got["claim"]),
            lambda: desk.answer("Q1", "that"),
            lambda: desk.note("PROJ-1", "x"),
            lambda: desk.cancel("PROJ-1"),
            lambda: desk.depend("PROJ-2", "PROJ-1"),
            lambda: desk.create_token("ci"),
            lambda: desk.create_project("OTHER"),
        ):
            with pytest.raises((*run.refusals, YourturnError)):
                move()
            assert _state(run) == before
        run("DROP TRIGGER full_disk" + (" ON events" if dialect == "postgres" else ""))
    assert agent.complete(got["claim"])["state"] == "done"


_TOLD_ELSEWHERE = {"id", "claim_hash", "event_count", "event_head", "version", "updated_at", "due_at", "lease", "created_at"}
_BEATS = {"lease_expires_at"}  # a heartbeat leaves no event


def _run(desk, agent):
    """PROJ-7, a run that went as far as its third call, went back twice, and waits at the second."""
    desk.create("G", workflow="g.py", program={"file": "g.py", "body": "go()"})
    claim = agent.claim("PROJ-7", "w4")["claim"]
    agent.record(claim, [said("1", result=None), said("2", "running", agent="coder", session_id="s1", seat={"base": "0"})])
    agent.record(claim, [said("2", result={"status": "APPROVED"}), said("3.0.0", call=None), said("3.1.0", "running")])
    agent.rewind("PROJ-7", "3.1.0", spare=True, claim=claim)
    agent.record(claim, [said("3", name="parallel")], program={"file": "g.py", "body": "go on()"})
    agent.rewind("PROJ-7", 2, claim=claim)
    agent.flag("PROJ-7", "Which?", claim=claim, step="2", steps=[said("2", "waiting")], response_type="text", kind="input")


def _fold_steps(steps: dict[str, dict], data: dict) -> dict[str, dict]:
    """The journal after an event, from what the event says."""
    if "journal" in data.get("set", {}):
        back = data.get("rewound", {"to": "0", "spare": False})
        first = f"{int(back['to']):06d}"
        spare = {f"~{place}": step for place, step in steps.items() if first <= place < "~"} if back["spare"] else {}
        steps = {place: step for place, step in steps.items() if place < first} | spare
        steps = {place: {**step, "place": place, "journal": data["set"]["journal"]} for place, step in steps.items()}
    return steps | {step["place"]: dict.fromkeys(Step._fields) | step for step in data.get("steps", ())}


def test_folding_the_events_gives_the_rows(desk, agent, clock):
    live(desk, agent)
    got = agent.claim_next("w3")
    agent.heartbeat(got["claim"])
    clock.advance(hours=3)
    desk.reconcile()
    desk.update("PROJ-4", title="Other", labels=["y"], role="painter")
    desk.defer("PROJ-5", "2d")
    _run(desk, agent)

    def look(reader: Reader):
        tasks = reader.tasks(limit=100)
        return tasks, reader.details(tasks), reader.log.chain(0)

    tasks, details, events = desk.desk.read(look)
    empty = dict.fromkeys(Task._fields)
    empty.update(description="", acceptance="", summary="", reason="", labels="[]", retry_count=0, epoch=0, priority=0)
    empty.update(journal=0)
    for task in tasks:
        row, questions, state, notes, steps = dict(empty), {}, None, 0, {}
        for event in (e for e in events if e.task_id == task.id):
            data = json.loads(event.data)
            assert data["from"] == state, f"{task.key} event {event.n} continues where the last one stopped"
            state = data["to"]
            row.update(data.get("set", {}), state=state)
            notes += len(data.get("notes", ()))
            steps = _fold_steps(steps, data)
            for q in data.get("opened", ()):
                questions[q["id"]] = dict.fromkeys(Question._fields) | q
            for q in data.get("closed", ()):
                questions[q["id"]].update(q)
        for name in set(Task._fields) - _TOLD_ELSEWHERE - _BEATS:
            assert row[name] == getattr(task, name), f"{task.key}.{name}"
        assert notes == len(details[task.id].notes)
        told = [{n: v for n, v in q.items() if n != "task_id"} for _, q in sorted(questions.items())]
        assert told == [{n: v for n, v in q._asdict().items() if n != "task_id"} for q in details[task.id].questions]
        found = [{**step, "task_id": task.id} for _, step in sorted(steps.items())]
        assert found == [step._asdict() for step in details[task.id].steps]
    assert [step.place for step in details[tasks[-1].id].steps] == ["000001", "000002"] and tasks[-1].journal == 2


# --- reading by cursor -------------------------------------------------------------------------------------------------


class Follower:
    """Reads on and on, and checks that it sees each event once and each chain in order."""

    def __init__(self, desk):
        self.desk = desk
        self.cursor = None
        self.seen = []

    def read(self, limit=7):
        fresh = []
        while True:
            found, self.cursor = self.desk.desk.events(self.cursor, limit)
            if not found:
                break
            fresh += [event for _, event in found]
        self.seen += fresh
        return fresh

    def check(self):
        assert len({e.seq for e in self.seen}) == len(self.seen), "none twice"
        last = {}
        for e in self.seen:
            assert e.n == last.get(e.task_id, 0) + 1, f"{e.task} event {e.n} after {last.get(e.task_id, 0)}"
            last[e.task_id] = e.n


def test_a_cursor_of_every_event_goes_on_from_there(desk, agent):
    live(desk, agent)
    everything, end = desk.desk.events(None, 1000)
    for index, (cursor, _) in enumerate(everything):
        assert [e for _, e in desk.desk.events(cursor, 1000)[0]] == [e for _, e in everything[index + 1 :]]
    assert desk.desk.events(end) == ([], end)
    assert desk.desk.events(desk.desk.cursor())[0] == []
    for wrong in ("", "x", "1.2", "1.2.x", "-1.0.0", "1.2.3.4", "9" * 30 + ".1.1", "٣.1.1"):
        if wrong:
            with pytest.raises(Invalid):
                desk.desk.events(wrong)


@pytest.mark.parametrize("dialect", ["postgres"])
def test_an_event_that_commits_late_is_not_skipped(desk, agent, address, dialect):
    desk.create("A")
    reader = Follower(desk)
    reader.read()
    with raw(address) as slow:
        slow("BEGIN")
        slow(
            "INSERT INTO events (workspace_id, task_id, n, at, actor, action, data, prev, hash) "
            "VALUES (1, NULL, 2, 1, 'human:slow', 'user_set', '{}', '', '')"
        )
        for text in "abc":
            desk.note("PROJ-1", text)
        live_cursor = desk.desk.cursor()
        early = reader.read()
        assert "human:slow" not in {e.actor for e in early}
        slow("COMMIT")
    late = reader.read()
    reader.check()
    everything = desk.history(limit=1000)
    assert sorted(e.seq for e in reader.seen) == sorted(e["seq"] for e in everything)
    assert "human:slow" in {e.actor for e in late}
    assert "human:slow" in {e.actor for _, e in desk.desk.events(live_cursor)[0]}, "who starts at the end misses nothing"


def turned_around(desk, other, address, cause, effect, **tx) -> list[Any]:
    """The events of two moves, as a reader sees them: the first to write began last, and another stays open in between."""
    reader = Follower(desk)
    store = desk.desk.store
    with raw(address) as blocker:
        with store.begin() as run:
            run("SELECT pg_current_xact_id()")  # the oldest
            blocker("BEGIN")
            blocker("SELECT pg_current_xact_id()")
            cause(other)  # the youngest, and the first to write
            late = UnitOfWork(store, run, 1, **tx)
            Moves(late, desk.desk.now).make(effect)
            late.write()
        reader.read()
        reader.check()
        blocker("COMMIT")
    reader.read()
    reader.check()
    return reader.seen


@pytest.mark.parametrize("dialect", ["postgres"])
def test_an_effect_is_never_seen_before_its_cause(desk, address, open_desk, dialect):
    """A transaction that began early can write after one that began late; the reader must not turn them around."""
    desk.create("A")
    effect = say("note", desk.who, task=1, text="effect")
    seen = turned_around(desk, open_desk(), address, lambda other: other.note("PROJ-1", "cause"), effect)
    assert [json.loads(e.data)["notes"][0]["text"] for e in seen if e.action == "note"] == ["cause", "effect"]


@pytest.mark.parametrize("dialect", ["postgres"])
def test_an_answer_is_never_seen_before_its_question(desk, address, open_desk, dialect):
    """A remembered case without questions is read again for an answer, and then says nothing about the event before."""
    desk.create("A")
    effect = say("answer", desk.who, task=1, value="that")
    seen = turned_around(desk, open_desk(), address, lambda other: other.ask("PROJ-1", "Which?"), effect, remembering=True)
    assert [e.action for e in seen if e.action in ("ask", "answer")] == ["ask", "answer"]


@pytest.mark.parametrize("dialect", ["postgres"])
def test_what_one_commit_causes_is_seen_after_it(desk, address, open_desk, dialect):
    desk.create("A")
    desk.create("B", depends_on=["PROJ-1"])
    other = open_desk()
    reader = Follower(desk)
    store = desk.desk.store
    with raw(address) as blocker:
        with store.begin() as run:
            run("SELECT pg_current_xact_id()")
            blocker("BEGIN")
            blocker("SELECT pg_current_xact_id()")
            other.note("PROJ-1", "late")
            tx = UnitOfWork(store, run, 1)
            Moves(tx, desk.desk.now).make(say("close", desk.who, task=1))
            tx.write()
        reader.read()
        seen = [(e.task, e.action) for e in reader.seen]
        assert ("PROJ-2", "unblock") not in seen or ("PROJ-1", "close") in seen
        blocker("COMMIT")
    reader.read()
    reader.check()
    seen = [(e.task, e.action) for e in reader.seen]
    assert seen.index(("PROJ-1", "note")) < seen.index(("PROJ-1", "close")) < seen.index(("PROJ-2", "unblock"))


def test_six_writers_and_a_reader(desk, address):
    desk.create("Everybody's")
    reader = Follower(desk)
    with gathered(address, *[("write", f"human:p{i}", {"rounds": 4}) for i in range(6)]) as writers:
        for writer in writers:
            writer.stdin.write("go\n")
            writer.stdin.flush()
        while any(writer.poll() is None for writer in writers):
            reader.read(limit=random.choice((1, 3, 50)))
        said = [json.loads(writer.stdout.read()) for writer in writers]
        assert [writer.stderr.read() for writer in writers] == [""] * 6
    assert len({key for keys in oks(said) for key in keys}) == 24
    reader.read()
    reader.check()
    assert sorted(e.seq for e in reader.seen) == sorted(e["seq"] for e in desk.history(limit=10_000))
    assert audit.verify(desk)["ok"]

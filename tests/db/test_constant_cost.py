"""The cost and the reply of a move do not grow with the history of its task."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager

import pytest

from tests.db.processes import raw
from yourturn.core.errors import YourturnError
from yourturn.core.model import Question, Step

LONG = 3000
SCRIPT = "feature.py"


class Counted:
    """What `store.begin` gives; counts what is said to the database, and the rows that come back."""

    def __init__(self, run, said, asked):
        self._run, self._said, self._asked = run, said, asked

    def __getattr__(self, name):
        return getattr(self._run, name)

    def __call__(self, text, args=None):
        found = self._run(text, args)
        rows = found.fetchall() if found.description else []
        self._said.append((text, len(rows)))
        self._asked.append((text, args or {}))
        return Rows(found, rows)

    def later(self, text, args=None):
        self._said.append((text, 0))
        self._run.later(text, args)

    def must(self, text, args=None):
        self._said.append((text, 0))
        self._run.must(text, args)

    def many(self, *asked):
        found = self._run.many(*asked)
        self._said += [(text, len(rows)) for (text, _), rows in zip(asked, found, strict=True)]
        self._asked += asked
        return found


class Rows:
    """A cursor whose rows were counted."""

    def __init__(self, cursor, rows):
        self._cursor, self._rows = cursor, iter(rows)
        self.fetchall, self.fetchone = lambda: list(self._rows), lambda: next(self._rows, None)

    def __getattr__(self, name):
        return getattr(self._cursor, name)


@contextmanager
def counted(desk, said, asked=None):
    """Counts the statements of the transaction that counted; with `asked`, also their values."""
    store = desk.desk.store
    begin = store.begin

    @contextmanager
    def counting(what="", *, write=True):
        try:
            with begin(what, write=write) as run:
                yield Counted(run, said, [] if asked is None else asked)
        except Exception:  # a lost race, repeated: how much was sent before its error arrived is a matter of time
            said.clear()
            raise

    store.begin = counting
    try:
        yield
    finally:
        del store.begin


SERIES = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :times)"


TABLES = {"notes": ("task_id", "author", "text", "at"), "questions": ("workspace_id", *Question._fields), "steps": Step._fields}


def grow(desk, key, tables=tuple(TABLES)):
    """What the task has noted, asked and done in a step so far: the same again, so many times."""
    others = {"id": "100000 + n.i", "place": "CAST(100000 + n.i AS TEXT)"}
    with desk.desk.store.begin("grow") as run:
        (task,) = run("SELECT id FROM tasks WHERE key = :key", {"key": key}).fetchone()
        for table in tables:
            names = TABLES[table]
            values = ", ".join(others.get(name, f"o.{name}") for name in names)
            one = f"(SELECT * FROM {table} WHERE task_id = :task LIMIT 1) o"
            run(
                f"{SERIES} INSERT INTO {table} ({', '.join(names)}) SELECT {values} FROM {one}, n",
                {"task": task, "times": LONG},
            )


def said(path, status="completed"):
    return {"path": path, "name": "step", "call": {"n": path}, "status": status}


def begun(desk, agent, **fields):
    """A run that was worked on once: it has a note, an answered question and a step."""
    key = desk.create("Add login", workflow=SCRIPT, **fields)["key"]
    claim = agent.claim(key, "w1")["claim"]
    agent.note(key, "Begun")
    desk.answer(agent.ask(key, "Which?", claim=claim), "that")
    agent.record(claim, [said("1")])
    agent.park(claim)
    return key


def walk(desk, agent, key):
    """(verb, move) for each move of a task's life; each needs those before it."""
    kept = {}

    def claim(*_):
        kept["claim"] = agent.claim(key, "w1")

    def claim_next():
        kept["claim"] = got = agent.claim_next("w1", runs=True)
        assert got["task"]["key"] == key
        return got

    def asks():
        kept["asked"] = found = agent.ask(key, "Which?", claim=kept["claim"])
        return found

    def flag():
        return agent.flag(key, "Sure?", kind="approval", claim=kept["claim"], step="3", steps=[said("3", "waiting")])

    yield "claim_next", claim_next
    yield "heartbeat", lambda: agent.heartbeat(kept["claim"])
    yield "note", lambda: agent.note(key, "Hm")
    yield "update", lambda: agent.update(key, labels=["a"], claim=kept["claim"])
    yield "ask", asks
    yield "assign", lambda: desk.assign(kept["asked"], "bob")
    yield "answer", lambda: desk.answer(kept["asked"], "that")
    yield "step", lambda: agent.record(kept["claim"], [said("2")])
    yield "flag", flag
    yield "approve", lambda: desk.approve(key)
    yield "claim", claim
    yield "release", lambda: agent.release(kept["claim"], "no tests here")
    claim()
    yield "park", lambda: agent.park(kept["claim"])
    yield "await", lambda: desk.await_person(key, "input", "And?")
    yield "reject", lambda: desk.hand_back(key)
    yield "defer", lambda: desk.defer(key, "2d")
    yield "wake", lambda: desk.wake(key)
    yield "stop", lambda: desk.stop(key, "enough")
    yield "rewind", lambda: desk.rewind(key, "2")
    claim()
    yield "complete", lambda: agent.complete(kept["claim"], "finished", journal=kept["claim"]["task"]["journal"])
    yield "reopen", lambda: desk.reopen(key, "not yet")
    claim()
    yield "fail", lambda: agent.fail(kept["claim"], "broken", journal=kept["claim"]["task"]["journal"])
    yield "again", lambda: desk.reopen(key)
    yield "close", lambda: desk.close(key, "by hand")
    yield "once more", lambda: desk.reopen(key)
    yield "cancel", lambda: desk.cancel(key, "not needed")


def costs(desk, agent, key, remembered):
    """verb -> the statements with the number of rows that they gave, and the length of the reply."""
    found = {}
    for verb, move in walk(desk, agent, key):
        if not remembered:
            forgotten(desk, agent)
        said = []
        with counted(desk, said), counted(agent, said):
            reply = move()
        found[verb] = (said, len(json.dumps(reply)))
    return found


@pytest.mark.parametrize("near", [False, True], ids=["alone", "with neighbours"])
@pytest.mark.parametrize("remembered", [False, True], ids=["read", "remembered"])
def test_a_move_costs_and_answers_the_same_with_a_long_history(desk, agent, near, remembered):
    def made():
        if not near:
            return begun(desk, agent)
        need = desk.create("Before")["key"]
        desk.close(need)
        epic = desk.create("All of it", type="epic")["key"]
        desk.create("Not begun", parent=epic, draft=True)  # so that it stays open
        return begun(desk, agent, parent=epic, depends_on=[need])

    short = costs(desk, agent, made(), remembered)
    key = made()
    grow(desk, key)
    shown = desk.show(key)
    assert [len(shown[name]) for name in ("notes", "questions", "steps")] == [LONG + 1, LONG + 1, LONG + 1]
    long = costs(desk, agent, key, remembered)
    for verb, (said, size) in short.items():
        assert long[verb][0] == said, verb
        assert sum(rows for _, rows in said) < 30, verb
        assert abs(long[verb][1] - size) < 100, verb  # numbers have more digits
    assert long.keys() == short.keys()


def forgotten(desk, agent):
    """So that the next move reads what it is decided on."""
    for client in (desk, agent):
        client.desk.store.case_cache = type(client.desk.store.case_cache)()


def walked_in_sqlite(desk, agent, move):
    """Steps of SQLite's machine: whatever is walked through shows, also what is not returned."""
    count = [0]
    connections = [client.desk.store.connection() for client in (desk, agent)]
    for connection in connections:
        connection.set_progress_handler(lambda: count.__setitem__(0, count[0] + 1), 10)
    move()
    for connection in connections:
        connection.set_progress_handler(None, 0)
    return 10 * count[0]


def walked_in_postgres(desk, agent, move, address):
    """Rows that the server goes through for what the move asked for, as it explains it: also those that a filter drops."""
    said, asked = [], []
    with counted(desk, said, asked), counted(agent, said, asked):
        move()
    with raw(address) as run:
        run("BEGIN")
        plans = [run(f"EXPLAIN (ANALYZE, FORMAT JSON) {_filled(text, args)}")[0][0] for text, args in asked if _looks(text)]
        run("ROLLBACK")
    return sum(_rows_of(plan[0]["Plan"]) for plan in plans)


def _looks(text):
    return text.startswith(("SELECT", "WITH picked"))


def _filled(text, args):
    import psycopg

    return re.sub(r"(?<!:):([a-z_]\w*)", lambda name: psycopg.sql.Literal(args[name[1]]).as_string(), text)


def _rows_of(node):
    if node["Node Type"] == "Bitmap Index Scan":  # counts what earlier tests left in the index, too; who reads the rows does not
        return 0
    dropped = sum(count for name, count in node.items() if name.startswith("Rows Removed by"))
    return node["Actual Loops"] * (node["Actual Rows"] + dropped) + sum(map(_rows_of, node.get("Plans", ())))


def test_a_move_is_no_more_work_for_the_database_after_a_long_history(desk, agent, address, dialect):
    """Closed questions, notes and steps are not walked through, whatever the move is; a fresh process knows nothing of before."""
    if dialect == "sqlite":
        walked, room = walked_in_sqlite, 300  # a deeper index, and numbers with more digits
    else:
        walked, room = lambda *said: walked_in_postgres(*said, address), 300

    def work(key):
        found = {}
        for verb, move in walk(desk, agent, key):
            forgotten(desk, agent)
            found[verb] = walked(desk, agent, move)
        return found

    short = work(begun(desk, agent))
    key = begun(desk, agent)
    grow(desk, key)
    long = work(key)
    assert {verb: (short[verb], steps) for verb, steps in long.items() if steps > short[verb] + room} == {}


def too_late(desk, key):
    with pytest.raises(YourturnError):
        desk.answer(key, "too late")


def test_late_answers_and_repeated_moves_have_constant_cost(desk, agent, address, clock, dialect):
    def work(key):
        clock.advance(minutes=1)  # what was closed at the moment of the move belongs to its reply
        moves = {
            "late answer": lambda: too_late(desk, key),
            "said again": lambda: agent.note(key, "Hm", key=f"once-{key}"),
        }
        agent.note(key, "Hm", key=f"once-{key}")
        found = {}
        for name, move in moves.items():
            forgotten(desk, agent)
            walks = walked_in_sqlite if dialect == "sqlite" else lambda *said: walked_in_postgres(*said, address)
            found[name] = walks(desk, agent, move)
        return found

    short = work(begun(desk, agent))
    key = begun(desk, agent)
    grow(desk, key, tables=("questions",))
    room = 300  # plans differ by some rows with the statistics of the moment; the history has 3,000
    assert {name: (short[name], steps) for name, steps in work(key).items() if steps > short[name] + room} == {}


def texts(reply):
    return [note["text"] for note in reply["notes"]]


def ids(reply):
    return [q["id"] for q in reply["questions"]]


def test_a_move_answers_with_what_is_open_and_what_it_made(desk, agent):
    key = desk.create("Add login", description="E-mail and password.")["key"]
    shape = desk.show(key).keys()
    desk.note(key, "First")
    claim = agent.claim(key, "w1")["claim"]
    old = agent.ask(key, "JWT?", claim=claim)["id"]
    desk.answer(old, "yes")
    one = agent.ask(key, "Which browser?", default="Firefox", blocking=False, claim=claim)["id"]
    noted = agent.note(key, "Second")
    assert noted.keys() == shape and texts(noted) == ["Second"] and ids(noted) == [one]
    assert texts(agent.heartbeat(claim)) == []
    flagged = agent.flag(key, "Publish it?", kind="approval", claim=claim)
    two = flagged["questions"][-1]["id"]
    assert ids(flagged) == [one, two] and flagged["awaiting"] == "approval" and texts(flagged) == []
    sent_back = desk.reject(two, "Softer, please")
    assert ids(sent_back) == [one, two] and sent_back["questions"][-1]["response"]["text"] == "Softer, please"
    assert texts(sent_back) == ["Softer, please"] and sent_back["awaiting"] is None
    got = agent.claim_next("w1")
    assert ids(got["task"]) == [one] and texts(got["task"]) == []
    ended = desk.cancel(key, "not needed")
    assert [(q["id"], q["status"]) for q in ended["questions"]] == [(one, "cancelled")]
    shown = desk.show(key)
    assert shown.keys() == shape
    assert ids(shown) == [old, one, two] and texts(shown) == ["First", "Second", "Softer, please"]


@pytest.mark.parametrize("near", [False, True], ids=["alone", "with neighbours"])
def test_the_row_of_a_reply_is_the_row_that_show_has(desk, agent, near):
    before, other = desk.create("Before")["key"], desk.create("Other")["key"]
    more = {"parent": desk.create("All of it", type="epic")["key"], "depends_on": [before]} if near else {}
    task = desk.create("Add login", **more)["key"]
    desk.close(before)
    moves = [
        lambda: desk.await_person(task, "input", "Which?"),
        lambda: desk.note(task, "Hm"),
        lambda: desk.update(task, priority=0),
        lambda: desk.hand_back(task),
        lambda: agent.claim(task, "w1")["task"],
        lambda: agent.release(task, "no", worker="w1"),
        lambda: desk.depend(task, other),
        lambda: desk.undepend(task, other),
        lambda: agent.claim(task, "w1")["task"],
        lambda: agent.decompose(task, ["One", "Two"], worker="w1"),
        lambda: desk.cancel(task, "enough"),
    ]
    for move in moves:
        reply, shown = move(), desk.show(task)
        for name in shown.keys() - {"questions", "notes", "steps"}:
            assert reply[name] == shown[name], name
        opened = [q for q in reply["questions"] if q["status"] == "pending"]
        assert opened == [q for q in shown["questions"] if q["status"] == "pending"]
    assert shown["parent"] == more.get("parent") and set(shown["depends_on"]) >= set(more.get("depends_on", []))


def test_a_run_s_reply_has_the_steps_that_the_move_wrote(desk, agent):
    key = begun(desk, agent)
    got = agent.claim_next("w1", runs=True)
    assert got["task"]["steps"] == []
    parked = agent.park(got["claim"], steps=[said("2"), said("3", "waiting")])
    assert [(step["index"], step["status"]) for step in parked["steps"]] == [("2", "completed"), ("3", "waiting")]
    assert parked["steps"] == desk.show(key)["steps"][1:]
    assert desk.note(key, "Hm")["steps"] == []


def test_repeated_move_returns_the_result_of_the_first(desk, agent, clock):
    key = begun(desk, agent)
    claim = agent.claim(key, "w1")["claim"]
    moves = [
        lambda: agent.note(key, "Once", key="k1"),
        lambda: agent.flag(key, "Sure?", kind="approval", claim=claim, step="2", steps=[said("2", "waiting")], key="k2"),
        lambda: desk.reject(key, "No", key="k3"),
    ]
    for move in moves:
        clock.advance(seconds=1)
        first = move()
        clock.advance(seconds=1)
        agent.note(key, "Since then")
        again = move()
        assert {name: again[name] for name in ("notes", "questions", "steps")} == {
            name: first[name] for name in ("notes", "questions", "steps")
        }
    assert texts(desk.show(key)).count("Once") == 1


def test_lists_have_open_questions_and_no_notes(desk, agent):
    key = begun(desk, agent)
    desk.await_person(key, "input", "And?")
    desk.note(desk.create("Another")["key"], "Hm")
    shown = desk.show(key)
    for found in (desk.list(state="human"), desk.tree(key)):
        assert found[0]["questions"] == shown["questions"][-1:] and found[0]["notes"] == found[0]["steps"] == []
        assert shown.keys() <= found[0].keys() and found[0]["awaiting"] == "input"
    assert [task["notes"] for task in (desk.next(), *desk.ready())] == [[], []]
    assert desk.list(whole=True) == [desk.show(task["key"]) for task in desk.list()]


def test_repeated_move_names_the_follow_ups_of_the_first(desk, agent, clock):
    first, second = desk.create("A"), desk.create("B")
    for needed in (first, second, second):
        desk.create("Waits", depends_on=[needed])
    clock.advance(seconds=1)
    freed = desk.cancel(first, key="k1")
    clock.advance(seconds=1)
    failed = desk.stop(second, key="k2")
    assert [one["task"] for one in freed["follow_ups"]] == ["PROJ-3"]
    assert [(one["task"], one["questions"]) for one in failed["follow_ups"]] == [("PROJ-4", ["Q1"]), ("PROJ-5", ["Q2"])]
    assert desk.cancel(first, key="k1")["follow_ups"] == freed["follow_ups"]
    assert desk.stop(second, key="k2")["follow_ups"] == failed["follow_ups"]
